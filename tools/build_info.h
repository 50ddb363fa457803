// Facts that only the build knows; the values are written by CMake (build_info.cpp.in).
#pragma once

namespace jitconv::tools {

/// Short hash of the checked-out commit; empty outside a git checkout.
extern const char* const kBuildCommit;

}  // namespace jitconv::tools
