// Substitution of @holes@ in template text.
#include "codegen/text/template_text.h"

#include <set>

#include "fmt/format.h"
#include "jitconv/error.h"

namespace jitconv::codegen {
namespace {

bool is_name_char(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; }

struct Hole {
  std::size_t begin = 0, end = 0;  // of the text with both @
  std::string_view name;
};

/// The first hole of `line` at or after `from`; begin == npos if there is none.
Hole find_hole(std::string_view line, std::size_t from) {
  for (std::size_t at = line.find('@', from); at != std::string_view::npos; at = line.find('@', at + 1)) {
    std::size_t end = at + 1;
    while (end < line.size() && is_name_char(line[end])) ++end;
    if (end > at + 1 && end < line.size() && line[end] == '@') return {at, end + 1, line.substr(at + 1, end - at - 1)};
  }
  return {std::string_view::npos, std::string_view::npos, {}};
}

class Filler {
 public:
  explicit Filler(const Holes& holes) : holes_(holes) {}

  void add_line(std::string_view line) {
    const std::size_t indentation = line.find_first_not_of(' ');
    const Hole hole = find_hole(line, 0);
    if (hole.begin == indentation && hole.end == line.size() && !line.empty()) {
      add_block(line.substr(0, indentation), value_of(hole.name));
      return;
    }
    std::size_t from = 0;
    for (Hole next = hole; next.begin != std::string_view::npos; next = find_hole(line, next.end)) {
      const std::string& value = value_of(next.name);
      if (value.find('\n') != std::string::npos)
        throw InternalError(fmt::format("template hole @{}@ is inside a line but its value has several", next.name));
      result_.append(line.substr(from, next.begin - from)).append(value);
      from = next.end;
    }
    result_.append(line.substr(from)).push_back('\n');
  }

  std::string finish() {
    for (const auto& [name, value] : holes_)
      if (!used_.contains(name)) throw InternalError(fmt::format("no template hole takes the value of @{}@", name));
    return std::move(result_);
  }

 private:
  const std::string& value_of(std::string_view name) {
    const auto found = holes_.find(name);
    if (found == holes_.end()) throw InternalError(fmt::format("template hole @{}@ has no value", name));
    used_.insert(found->first);
    return found->second;
  }

  /// Preprocessor lines stay in column 0, as in the templates.
  void add_block(std::string_view indentation, std::string_view block) {
    while (!block.empty()) {
      const std::size_t end = block.find('\n');
      const std::string_view line = block.substr(0, end);
      if (!line.empty() && line.front() != '#') result_.append(indentation);
      result_.append(line).push_back('\n');
      if (end == std::string_view::npos) break;
      block.remove_prefix(end + 1);
    }
  }

  const Holes& holes_;
  std::set<std::string, std::less<>> used_;
  std::string result_;
};

}  // namespace

std::string_view embedded_text(std::string_view name) {
  for (const EmbeddedFile& file : embedded_files())
    if (file.name == name) return file.text;
  throw InternalError(fmt::format("no embedded file named {}", name));
}

std::string fill_template(std::string_view text, const Holes& holes) {
  Filler filler(holes);
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    filler.add_line(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return filler.finish();
}

}  // namespace jitconv::codegen
