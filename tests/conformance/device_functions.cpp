// See device_functions.h. Not a parser of C++: the device files are short and regular, and a function that this lexer
// cannot find makes the test that plants one fail.
#include "conformance/device_functions.h"

#include <algorithm>
#include <cctype>
#include <stdexcept>

#include "codegen/text/template_text.h"

namespace jitconv::test {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

constexpr std::string_view kFolder = "device/";

}  // namespace

std::string without_comments(std::string_view text) {
  std::string result;
  const auto space = [&result] {
    if (!result.empty() && result.back() != ' ') result += ' ';
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i, 2) == "//") {
      i = std::min(text.find('\n', i), text.size()) - 1;
      continue;
    }
    if (text.substr(i, 2) == "/*") {
      const std::size_t end = text.find("*/", i + 2);
      if (end == std::string_view::npos) throw std::runtime_error("a comment without an end");
      i = end + 1;
      space();
      continue;
    }
    if (text[i] == '"') {  // a string is kept as it is: it may be an instruction
      const std::size_t first = i;
      for (++i; i < text.size() && text[i] != '"'; ++i)
        if (text[i] == '\\') ++i;
      result += text.substr(first, i + 1 - first);
      continue;
    }
    if (std::isspace(static_cast<unsigned char>(text[i])) != 0) {
      space();
    } else {
      result += text[i];
    }
  }
  if (!result.empty() && result.back() == ' ') result.pop_back();
  return result;
}

std::vector<std::string> device_functions(std::string_view text) {
  constexpr std::string_view kMark = "__device__";
  const std::string plain = without_comments(text);
  std::vector<std::string> names;
  for (std::size_t at = plain.find(kMark); at != std::string::npos; at = plain.find(kMark, at)) {
    at += kMark.size();
    const std::size_t parenthesis = plain.find('(', at);
    if (parenthesis == std::string::npos) throw std::runtime_error("__device__ without a function behind it");
    std::size_t end = parenthesis;
    while (end > at && plain[end - 1] == ' ') --end;
    std::size_t first = end;
    while (first > at && is_word(plain[first - 1])) --first;
    if (first == end) throw std::runtime_error("a __device__ function whose name this lexer cannot read");
    std::string name = plain.substr(first, end - first);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
  }
  return names;
}

std::vector<std::string> all_device_functions() {
  std::vector<std::string> all;
  for (const codegen::EmbeddedFile& file : codegen::embedded_files()) {
    if (!file.name.starts_with(kFolder)) continue;
    const std::string name(file.name.substr(kFolder.size()));
    const std::vector<std::string> functions = device_functions(file.text);
    if (functions.empty()) all.push_back(name);
    for (const std::string& function : functions) all.push_back(name + ": " + function);
  }
  return all;
}

}  // namespace jitconv::test
