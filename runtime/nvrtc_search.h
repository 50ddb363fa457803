// Where NVRTC may be. Split from nvrtc.cpp because nothing here loads a library: a warm start needs the answer, not
// NVRTC.
#pragma once

#include <string>
#include <vector>

#include "runtime/nvrtc.h"
#include "runtime/nvrtc_places.h"

namespace jitconv::runtime {

/// A library that was found and cannot be used.
struct RefusedCompiler {
  std::string path;  ///< links resolved
  std::string reason;
};

/// The search behind find_compiler(), with an environment of the caller's choice and nothing remembered. Passes over
/// what is in `refused_before`, damaged libraries, those of other machines and those that are too old; the error names
/// them.
CompilerIdentity search_compiler(const Environment& environment,
                                 const std::vector<RefusedCompiler>& refused_before = {});

/// What find_compiler() says from now on: what is in the process need not be what the search found there.
void correct_compiler(const CompilerIdentity& loaded);

/// Makes find_compiler() search on: the library looked right and could not be loaded.
void refuse_compiler(const CompilerIdentity& found, const std::string& reason);

/// Why "11.8" cannot be used; empty for a version that can, or that is not known.
std::string defect_of_version(const std::string& version);

/// Describes the library at `path`, whatever its name.
CompilerIdentity identify_compiler(const std::string& path);

/// libnvrtc-builtins of the same version in the same directory; empty if there is none.
std::string builtins_beside(const CompilerIdentity& compiler);

}  // namespace jitconv::runtime
