// What a cache entry says of itself to people: `jitconv-cache list` and `explain` print it. No part of the key, and
// nothing reads it back to decide anything.
#pragma once

#include <vector>

#include "cache/entry.h"
#include "codegen/plan.h"
#include "codegen/source.h"
#include "runtime/backend.h"

namespace jitconv::runtime {

/// Describes the image that the backend's compiler has just made of `source` with these options. Throws CompileError
/// (compiler_missing). Plans of other specs may have the same source; the entry then names the spec that was compiled
/// first.
std::vector<cache::Property> describe_entry(const Backend& backend, const codegen::ConvPlan& plan,
                                            const codegen::KernelSource& source, const CompileOptions& options);

}  // namespace jitconv::runtime
