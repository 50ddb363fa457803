// From a plan to an image: generate the source, ask the disk cache for its key, compile what is not there.
#pragma once

#include <cstdint>
#include <optional>

#include "cache/key.h"
#include "cache/store.h"
#include "codegen/plan.h"
#include "codegen/source.h"
#include "jitconv/kernel.h"
#include "runtime/backend.h"

namespace jitconv::runtime {

/// All of a kernel but its plan.
struct Built {
  codegen::KernelSource source;
  std::optional<cache::Key> key;  ///< none where nothing is launched
  Binary binary;
};

/// Throws CompileError, and SpecError for options that the target does not have.
Built build(const codegen::ConvPlan& plan, const CompileOptions& options, const Backend& backend);

/// The kernel of what was built. An image of the cache that the backend refuses is compiled again, once.
Kernel make_kernel(codegen::ConvPlan plan, Built built, const CompileOptions& options, const Backend& backend);

/// How often a compiler was called in this process.
std::uint64_t compilations();

}  // namespace jitconv::runtime
