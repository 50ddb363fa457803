// JSON out: a value is its own text, so objects keep the order they were written in. Not a parser, and not LLVM's
// json::Value, whose header clang 14 rejects in C++20.
#pragma once

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace jitconv::tools::json {

class Object;

class Value {
 public:
  Value(std::nullptr_t) : text_("null") {}
  Value(bool value) : text_(value ? "true" : "false") {}
  template <std::integral Integer>
  Value(Integer value) : text_(std::to_string(value)) {}
  Value(double value);  ///< null unless finite, which JSON cannot say
  Value(std::string_view utf8);
  Value(const std::string& utf8) : Value(std::string_view(utf8)) {}
  Value(const char* utf8) : Value(std::string_view(utf8)) {}
  Value(const std::vector<Value>& array);
  Value(const Object& object);

  /// Indented by two, without a line end.
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

using Array = std::vector<Value>;

class Object {
 public:
  using Member = std::pair<std::string, Value>;
  Object() = default;
  Object(std::initializer_list<Member> members) : members_(members) {}
  /// The member of that name, added as null if it is new.
  Value& operator[](std::string_view key);
  const std::vector<Member>& members() const { return members_; }

 private:
  std::vector<Member> members_;
};

/// The text of a file.
inline std::string render(const Value& value) { return value.text() + "\n"; }

}  // namespace jitconv::tools::json
