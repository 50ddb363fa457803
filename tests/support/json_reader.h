// Reads the JSON that tests keep or that programs print: objects, arrays, strings without escapes beyond \" \\ \/ \n,
// numbers, true, false and null. Anything else is an error that names the place.
#pragma once

#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace jitconv::test {

struct Json {
  enum class Kind { null, boolean, number, string, array, object };
  Kind kind = Kind::null;
  std::string text;  ///< of a string; a number, true or false as it is written
  std::vector<Json> elements;
  std::map<std::string, Json> members;

  /// A member of an object. Throws std::runtime_error if there is none.
  const Json& at(const std::string& name) const {
    const auto found = members.find(name);
    if (found == members.end()) throw std::runtime_error("JSON: there is no member \"" + name + "\"");
    return found->second;
  }
  const std::string& string(const std::string& name) const {
    const Json& member = at(name);
    if (member.kind != Kind::string) throw std::runtime_error("JSON: \"" + name + "\" is not a string");
    return member.text;
  }
  long long integer(const std::string& name) const {
    const Json& member = at(name);
    if (member.kind != Kind::number) throw std::runtime_error("JSON: \"" + name + "\" is not a number");
    return std::stoll(member.text);
  }
};

class JsonReader {
 public:
  static Json read(std::string_view text) {
    JsonReader reader(text);
    Json value = reader.value();
    reader.skip_space();
    if (reader.at_ != text.size()) reader.fail("text behind the value");
    return value;
  }

 private:
  explicit JsonReader(std::string_view text) : text_(text) {}

  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error("JSON: " + what + " at character " + std::to_string(at_));
  }
  void skip_space() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) ++at_;
  }
  bool take(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail(std::string("no '") + c + "'");
  }

  std::string string() {
    expect('"');
    std::string result;
    for (; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (text_[at_] != '\\') {
        result += text_[at_];
        continue;
      }
      if (++at_ >= text_.size()) break;
      if (std::string_view("\"\\/n").find(text_[at_]) == std::string_view::npos)
        fail("an escape that is not read here");
      result += text_[at_] == 'n' ? '\n' : text_[at_];
    }
    if (at_ >= text_.size()) fail("a string without an end");
    ++at_;
    return result;
  }

  Json value() {
    Json json;
    skip_space();
    if (take('{')) {
      json.kind = Json::Kind::object;
      if (take('}')) return json;
      do {
        skip_space();
        std::string name = string();
        expect(':');
        json.members.emplace(std::move(name), value());
      } while (take(','));
      expect('}');
    } else if (take('[')) {
      json.kind = Json::Kind::array;
      if (take(']')) return json;
      do json.elements.push_back(value());
      while (take(','));
      expect(']');
    } else if (at_ < text_.size() && text_[at_] == '"') {
      json.kind = Json::Kind::string;
      json.text = string();
    } else {
      const std::size_t end = std::min(text_.find_first_of(",]} \t\r\n", at_), text_.size());
      json.text = std::string(text_.substr(at_, end - at_));
      at_ = end;
      if (json.text.empty()) fail("no value");
      json.kind = json.text == "null"                           ? Json::Kind::null
                  : json.text == "true" || json.text == "false" ? Json::Kind::boolean
                                                                : Json::Kind::number;
      if (json.kind == Json::Kind::number && json.text.find_first_not_of("0123456789+-.eE") != std::string::npos)
        fail("an unreadable value");
    }
    return json;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace jitconv::test
