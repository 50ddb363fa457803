// The text of JSON values. See json.h.
#include "tools/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace jitconv::tools::json {
namespace {

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (c == '\n') {
      out += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out + '"';
}

/// One item per line between the brackets; the lines of nested items move right with them.
class Lines {
 public:
  void add(const std::string& item) {
    body_ += body_.empty() ? "\n  " : ",\n  ";
    for (const char c : item) {
      body_ += c;
      if (c == '\n') body_ += "  ";
    }
  }
  std::string between(char open, char close) const {
    return body_.empty() ? std::string{open, close} : open + body_ + '\n' + close;
  }

 private:
  std::string body_;
};

}  // namespace

Value::Value(double value) : text_(std::isfinite(value) ? fmt::format("{}", value) : "null") {}

Value::Value(std::string_view utf8) : text_(quoted(utf8)) {}

Value::Value(const std::vector<Value>& array) {
  Lines lines;
  for (const Value& value : array) lines.add(value.text());
  text_ = lines.between('[', ']');
}

Value::Value(const Object& object) {
  Lines lines;
  for (const auto& [key, value] : object.members()) lines.add(quoted(key) + ": " + value.text());
  text_ = lines.between('{', '}');
}

Value& Object::operator[](std::string_view key) {
  const auto found =
      std::find_if(members_.begin(), members_.end(), [&](const Member& one) { return one.first == key; });
  if (found != members_.end()) return found->second;
  return members_.emplace_back(std::string(key), nullptr).second;
}

}  // namespace jitconv::tools::json
