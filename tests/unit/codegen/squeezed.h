// For tests that look for code in generated text, wherever its lines break.
#pragma once

#include <cctype>
#include <string>

namespace jitconv::test {

inline std::string squeezed(std::string text) {
  std::erase_if(text, [](unsigned char c) { return std::isspace(c) != 0; });
  return text;
}

}  // namespace jitconv::test
