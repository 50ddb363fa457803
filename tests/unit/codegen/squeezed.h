// For tests that look for code in generated text, wherever its lines break.
#pragma once

#include <cctype>
#include <string>

namespace jitconv::test {

inline std::string squeezed(std::string text) {
  std::erase_if(text, [](unsigned char c) { return std::isspace(c) != 0; });
  return text;
}

inline std::size_t count(const std::string& text, const std::string& part) {
  std::size_t times = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++times;
  return times;
}

}  // namespace jitconv::test
