// Compiles many plans with NVRTC in as many threads as the machine has, each distinct source once, and says what the
// compiler made of them. Goes past the disk cache: what is measured is NVRTC.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/plan.h"
#include "jitconv/kernel.h"

namespace jitconv::test {

struct CompileJob {
  std::string name;
  codegen::ConvPlan plan;
};

struct CompileResult {
  std::string name;
  codegen::ConvPlan plan;
  std::string error;             ///< empty if it compiled
  Resources resources;           ///< of the convolution's kernel, by the compiler's log
  std::string defect;            ///< what runtime::defect() says of the log; empty if nothing
  std::int64_t spill_bytes = 0;  ///< stores and loads, by the compiler's log
  std::int64_t cubin_bytes = 0;
  double seconds = 0;      ///< of processor time, so that busy machines do not change it much
  bool duplicate = false;  ///< an earlier job has the same source and options; all else is copied from it
};

/// Results in the order of the jobs.
std::vector<CompileResult> compile_all(const std::vector<CompileJob>& jobs);

/// What is wrong with the kernel that compile() makes in place of a spoiled one; empty if it is sound and explain()
/// says that another was not.
std::string fault_of_replacement(const CompileResult& spoiled);

/// Spilled bytes that a ptxas log reports, stores and loads, over all kernels of the log.
std::int64_t spill_bytes_of(const std::string& log);

/// One line: how many compiled, the slowest, the largest, the most registers.
std::string summary(const std::vector<CompileResult>& results);

}  // namespace jitconv::test
