// How much of itself a test program runs: the share that every change has to pass, or all that it has.
#pragma once

#include <cstdlib>
#include <string_view>

namespace jitconv::test {

/// Whether everything runs: `./dev test --full` sets JITCONV_TEST_FULL=1.
inline bool is_full_run() {
  const char* value = std::getenv("JITCONV_TEST_FULL");
  return value != nullptr && std::string_view(value) == "1";
}

}  // namespace jitconv::test
