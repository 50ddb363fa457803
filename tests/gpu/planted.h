// One bug per tool of compute-sanitizer, for sanitize.sh, which fails if the tool does not find it.
#pragma once

#include <string>

namespace jitconv::test {

/// Launches the kernel that breaks the rule of `tool` (memcheck, racecheck, synccheck, initcheck). False if there is no
/// such tool. Needs a GPU.
bool run_planted_bug(const std::string& tool);

}  // namespace jitconv::test
