// Where NVRTC may be. Split from nvrtc.cpp because nothing here loads a library: a warm start needs the answer, not
// NVRTC.
#pragma once

#include <functional>
#include <string>

#include "runtime/nvrtc.h"

namespace jitconv::runtime {

/// Looks up an environment variable; empty if unset.
using Environment = std::function<std::string(const char* name)>;

/// The search behind find_compiler(), with an environment of the caller's choice and nothing remembered.
CompilerIdentity search_compiler(const Environment& environment);

/// What find_compiler() says from now on: what is in the process need not be what the search found there.
void correct_compiler(const CompilerIdentity& loaded);

/// Describes the library at `path`, whatever its name.
CompilerIdentity identify_compiler(const std::string& path);

/// libnvrtc-builtins of the same version in the same directory; empty if there is none.
std::string builtins_beside(const CompilerIdentity& compiler);

}  // namespace jitconv::runtime
