// The names and values of an entry's description, in the order in which they are printed. See entry_description.h.
#include "runtime/entry_description.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <ctime>
#include <string>

#include "jitconv/kernel.h"

namespace jitconv::runtime {
namespace {

std::string kernel_names(const codegen::KernelSource& source) {
  std::vector<std::string_view> names;
  for (const codegen::KernelEntry& entry : source.entries) names.push_back(entry.name);
  return fmt::format("{}", fmt::join(names, " "));
}

}  // namespace

std::vector<cache::Property> describe_entry(const Backend& backend, const codegen::ConvPlan& plan,
                                            const codegen::KernelSource& source, const CompileOptions& options) {
  const CompilerIdentity compiler = backend.compiler();
  return {{"spec", to_string(plan.spec)},
          {"target", std::string(backend.format().key_prefix) + plan.target.arch()},
          {"family", std::string(to_string(plan.family()))},
          {"kernels", kernel_names(source)},
          {"compiler", plan.target.execution == Execution::host ? compiler.version : "NVRTC " + compiler.version},
          {"compiler path", compiler.path},
          {"compiler identity", compiler.build_id},
          {"options", fmt::format("{}", fmt::join(backend.options(source, options), " "))},
          {"jitconv", version()},
          {"generator", std::string(codegen::generator_fingerprint())},
          {"created", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)))}};
}

}  // namespace jitconv::runtime
