// See translation.h. Device functions are found verbatim: they are embedded in this library as the generator printed
// them, so there is nothing to parse but the few words that must not be left. Some have @holes@; models do not.
#include "host/translation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "codegen/text/device_text.h"
#include "jitconv/error.h"

namespace jitconv::host {
namespace {

constexpr std::string_view kDevice = "device/";
constexpr std::string_view kDeviceSuffix = ".cuh";

std::string_view embedded(std::string_view name) {
  for (const codegen::EmbeddedFile& file : embedded_files()) {
    if (file.name == name) return file.text;
  }
  throw InternalError(fmt::format("host/ has no embedded file {}", name));
}

/// "models/vector.h" for "device/vector.cuh".
std::string model_name(std::string_view device_file) {
  device_file.remove_prefix(kDevice.size());
  device_file.remove_suffix(kDeviceSuffix.size());
  return fmt::format("models/{}.h", device_file);
}

bool has_model(std::string_view name) {
  const auto& files = embedded_files();
  return std::any_of(files.begin(), files.end(), [&](const codegen::EmbeddedFile& file) { return file.name == name; });
}

std::size_t line_at(std::string_view text, std::size_t position) {
  return 1 +
         static_cast<std::size_t>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(position), '\n'));
}

/// A declaration of a device file: what stands between its @holes@, and their names.
struct Pattern {
  std::vector<std::string_view> pieces;
  std::vector<std::string_view> holes;  // one less
};

Pattern pattern_of(std::string_view file) {
  const auto is_name = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  // The last line break is not the file's own in the generated text: a file may end there without one.
  while (!file.empty() && file.back() == '\n') file.remove_suffix(1);
  Pattern pattern;
  std::size_t first = 0;
  for (std::size_t at = file.find('@'); at != std::string_view::npos; at = file.find('@', at + 1)) {
    std::size_t end = at + 1;
    while (end < file.size() && is_name(file[end])) ++end;
    if (end == at + 1 || end == file.size() || file[end] != '@') continue;
    pattern.pieces.push_back(file.substr(first, at - first));
    pattern.holes.push_back(file.substr(at + 1, end - at - 1));
    first = end + 1;
    at = end;
  }
  pattern.pieces.push_back(file.substr(first));
  return pattern;
}

/// End of the pattern in the text, if it begins at `first`; npos if it does not. A hole's value is what stands before
/// the next piece, the same wherever the hole occurs, and within a line unless the hole has its lines to itself.
std::size_t match(std::string_view text, std::size_t first, const Pattern& pattern) {
  if (text.substr(first, pattern.pieces[0].size()) != pattern.pieces[0]) return std::string_view::npos;
  std::size_t at = first + pattern.pieces[0].size();
  std::map<std::string_view, std::string_view> values;
  for (std::size_t i = 0; i < pattern.holes.size(); ++i) {
    const std::size_t end = text.find(pattern.pieces[i + 1], at);
    if (end == std::string_view::npos) return end;
    const std::string_view value = text.substr(at, end - at);
    const std::string_view before = pattern.pieces[i], after = pattern.pieces[i + 1];
    const std::size_t indent = before.find_last_not_of(' ');
    const bool own_lines = indent != std::string_view::npos && before[indent] == '\n' && after.starts_with('\n');
    if (!own_lines && value.find('\n') != std::string_view::npos) return std::string_view::npos;
    if (values.emplace(pattern.holes[i], value).first->second != value) return std::string_view::npos;
    at = end + pattern.pieces[i + 1].size();
  }
  return at;
}

/// A declaration of a device file inside the generated text, and the model that replaces the file.
struct Replacement {
  std::size_t first = 0, size = 0;
  std::string model = {};  // empty: another replacement has it
  std::string text = {};   // of declarations that only a model may need
};

/// Where the text has a declaration of a device file. One with holes may be there several times, with other values in
/// them.
std::vector<Replacement> occurrences(std::string_view text, std::string_view declaration) {
  std::vector<Replacement> found;
  const Pattern pattern = pattern_of(declaration);
  for (std::size_t at = text.find(pattern.pieces[0]); at != std::string_view::npos;) {
    const std::size_t end = match(text, at, pattern);
    if (end != std::string_view::npos) found.push_back({.first = at, .size = end - at});
    at = text.find(pattern.pieces[0], end == std::string_view::npos ? at + 1 : end);
  }
  return found;
}

/// Declarations that several device files have: they do not say which of the files a text has.
std::set<std::string_view> shared_declarations() {
  std::set<std::string_view> known, shared;
  for (const codegen::EmbeddedFile& file : codegen::embedded_files()) {
    if (!file.name.starts_with(kDevice)) continue;
    for (const codegen::Declaration& one : codegen::declarations_of(file.text))
      if (!known.insert(one.text).second) shared.insert(one.text);
  }
  return shared;
}

/// Models call to_float() and from_float(). What the text has not of them, as no kernel does, follows what it has.
std::optional<Replacement> rest_of_element(std::string_view text, std::string_view file) {
  Replacement rest;
  for (const codegen::Declaration& one : codegen::declarations_of(file)) {
    const std::size_t at = text.find(one.text);
    if (at == std::string_view::npos)
      rest.text.append(one.text).append("\n");
    else
      rest.first = std::max(rest.first, at + one.text.size() + 1);
  }
  if (rest.first == 0 || rest.text.empty()) return std::nullopt;
  return rest;
}

/// The text has some declarations of a device file, or none. The file's model takes the place of the first.
std::vector<Replacement> replacements(std::string_view text) {
  static const auto& shared = *new std::set(shared_declarations());  // never destroyed: see device_text.cpp
  std::vector<Replacement> all;
  for (const codegen::EmbeddedFile& file : codegen::embedded_files()) {
    if (!file.name.starts_with(kDevice)) continue;
    if (!has_model(model_name(file.name))) {
      if (!file.name.starts_with("device/element_")) continue;
      if (const auto rest = rest_of_element(text, file.text)) all.push_back(*rest);
      continue;
    }
    std::vector<Replacement> of_file;
    bool has_file = false;
    for (const codegen::Declaration& one : codegen::declarations_of(file.text)) {
      if (one.name.empty()) continue;
      const std::vector<Replacement> found = occurrences(text, one.text);
      has_file = has_file || (!found.empty() && !shared.contains(one.text));
      of_file.insert(of_file.end(), found.begin(), found.end());
    }
    if (!has_file) continue;
    const auto earlier = [](const Replacement& a, const Replacement& b) { return a.first < b.first; };
    std::min_element(of_file.begin(), of_file.end(), earlier)->model = model_name(file.name);
    all.insert(all.end(), of_file.begin(), of_file.end());
  }
  std::sort(all.begin(), all.end(), [](const Replacement& a, const Replacement& b) { return a.first < b.first; });
  return all;
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// Reads a text as words, string literals and single characters, without its comments.
class Tokens {
 public:
  explicit Tokens(std::string_view text) : text_(text) {}

  /// The next token, empty at the end.
  std::string_view next() {
    skip();
    first_ = at_;
    if (at_ >= text_.size()) return {};
    if (is_word(text_[at_])) {
      while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    } else if (text_[at_] == '"' || text_[at_] == '\'') {
      const char quote = text_[at_++];
      while (at_ < text_.size() && text_[at_] != quote) at_ += text_[at_] == '\\' ? 2 : 1;
      at_ = std::min(at_ + 1, text_.size());
    } else {
      ++at_;
    }
    return text_.substr(first_, at_ - first_);
  }
  /// Where the token began that next() returned.
  std::size_t position() const { return first_; }

 private:
  void skip() {
    for (;;) {
      while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
      if (text_.substr(at_, 2) == "//") {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (text_.substr(at_, 2) == "/*") {
        const std::size_t end = text_.find("*/", at_ + 2);
        at_ = end == std::string_view::npos ? text_.size() : end + 2;
      } else {
        return;
      }
    }
  }

  std::string_view text_;
  std::size_t at_ = 0, first_ = 0;
};

/// "cp.async.wait_group" of "\"cp.async.wait_group %0;\""; nothing of braces and declarations.
std::string instruction(std::string_view literal) {
  if (!literal.empty() && literal.front() == '"') literal.remove_prefix(1);
  const std::size_t first = std::min(literal.find_first_not_of(" \t{"), literal.size());
  if (literal.substr(first, 1) == ".") return {};
  literal.remove_prefix(first);
  return std::string(literal.substr(0, literal.find_first_of(" \t;\\\"")));
}

struct Refusal {
  std::size_t position;
  std::string reason;
};

/// The first thing in the text, device files with a model left out, that the CPU cannot do.
std::optional<Refusal> find_refusal(std::string_view text) {
  Tokens tokens(text);
  std::string_view previous;
  for (std::string_view token = tokens.next(); !token.empty(); token = tokens.next()) {
    const std::size_t position = tokens.position();
    if (token == "asm" || token == "__asm__" || token == "__asm") {
      std::string_view inside = tokens.next();
      while (!inside.empty() && inside.front() != '"' && inside != ";") inside = tokens.next();
      std::string name = instruction(inside);
      while (name.empty() && inside.starts_with('"')) {
        inside = tokens.next();
        if (inside.starts_with('"')) name = instruction(inside);
      }
      return Refusal{position, fmt::format("no CPU model of the instruction '{}'", name.empty() ? "?" : name)};
    }
    if (token == "__shared__" && previous != "extern") {
      return Refusal{position, "no CPU model of static shared memory: kernels use `extern __shared__`"};
    }
    previous = token;
  }
  return std::nullopt;
}

std::string line_directive(std::size_t line, std::string_view file) {
  return fmt::format("#line {} \"{}\"\n", line, file);
}

void append_file(std::string& unit, std::string_view name) {
  unit += line_directive(1, fmt::format("jitconv/host/{}", name));
  unit += embedded(name);
}

/// extern "C" void jitconv_entry_<name>(void** p): calls the kernel with what the pointers point to. A C cast, since
/// g++ refuses a static_cast to `const float* __restrict__*`.
std::string wrapper(const codegen::KernelEntry& entry) {
  std::string types, values;
  for (std::size_t i = 0; i < entry.arguments.size(); ++i) {
    types += fmt::format("  using Parameter{} = {};\n", i, entry.arguments[i].type);
    values += fmt::format("{}*(Parameter{}*)parameters[{}]", i == 0 ? "" : ", ", i, i);
  }
  return fmt::format(
      "extern \"C\" __attribute__((visibility(\"default\"))) JITCONV_PLAIN void {}(void** parameters) {{\n{}  "
      "{}({});\n}}\n",
      wrapper_name(entry.name), types, entry.scope + entry.name, values);
}

}  // namespace

std::string source_file(const codegen::KernelSource& source) {
  if (source.entries.empty()) throw InternalError("a source without an entry has nothing to compile");
  return std::string(source.name()) + ".cu";
}

std::string wrapper_name(const std::string& entry) { return "jitconv_entry_" + entry; }

std::string with_line_numbers(std::string_view text) {
  std::string numbered;
  for (std::size_t line = 1, at = 0; at < text.size(); ++line) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    numbered += fmt::format("{:5} | {}\n", line, text.substr(at, end - at));
    at = end + 1;
  }
  return numbered;
}

std::string translate(const codegen::KernelSource& source) {
  const std::string file = source_file(source);
  const std::string_view text = source.text;
  std::string unit;
  for (const char* name : {"module_abi.h", "models/prelude.h", "models/undefined.h", "models/vector_types.h",
                           "models/builtins.h", "models/math.h", "models/f16_bits.h", "models/asynchronous.h"}) {
    append_file(unit, name);
  }
  // Hidden, so that shared memory is addressed directly.
  unit += "#pragma GCC visibility push(hidden)\n";

  std::string unmodelled(text);  // blanks in place of what has a model, so that positions stay
  std::size_t at = 0;
  unit += line_directive(1, file);
  for (const Replacement& one : replacements(text)) {
    unit += text.substr(at, one.first - at);
    if (!one.model.empty()) append_file(unit, one.model);
    if (!one.text.empty()) unit += line_directive(1, "jitconv/host/element") + one.text;
    at = one.first + one.size;
    unit += line_directive(line_at(text, at), file);
    std::fill_n(unmodelled.begin() + static_cast<std::ptrdiff_t>(one.first), one.size, ' ');
  }
  unit += text.substr(at);

  if (const auto refusal = find_refusal(unmodelled)) {
    throw CompileError(ErrorCode::unsupported,
                       fmt::format("{} ({}, line {})", refusal->reason, file, line_at(text, refusal->position)), {},
                       with_line_numbers(text));
  }
  unit += "\n" + line_directive(1, "jitconv/host/entries") + "#pragma GCC visibility pop\n";
  for (const codegen::KernelEntry& entry : source.entries) unit += wrapper(entry);
  return unit;
}

}  // namespace jitconv::host
