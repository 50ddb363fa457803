// Splits device files into declarations and prints those that are used, see device_text.h.
#include "codegen/text/device_text.h"

#include <algorithm>
#include <map>
#include <unordered_set>

#include "codegen/text/template_text.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

/// A multiplication's text, "device/multiply_tf32.cuh" or its like, for a number of columns.
std::string multiply_text(const DeviceFile& file) {
  const int accumulators = file.columns / 2;
  std::string results = "\"", sums;
  for (int i = 0; i < accumulators; ++i) {
    const bool last = i + 1 == accumulators;
    results += fmt::format("%{}{}", i, last ? "\\n\"\n" : i % 16 == 15 ? ",\\n\"\n\"" : ", ");
    sums += fmt::format("\"+f\"(sum[{}]){}", i, last ? "\n" : i % 6 == 5 ? ",\n" : ", ");
  }
  // The first operand is a descriptor or four registers.
  const int a_parts = file.name.find("registers") == std::string_view::npos ? 1 : 4;
  std::string a = std::to_string(accumulators);
  for (int i = 1; i < a_parts; ++i) a += fmt::format(", %{}", accumulators + i);
  return fill_template(embedded_text(file.name), {{"columns", std::to_string(file.columns)},
                                                  {"accumulators", std::to_string(accumulators)},
                                                  {"accumulate", std::to_string(accumulators + a_parts + 1)},
                                                  {"a", a},
                                                  {"b", std::to_string(accumulators + a_parts)},
                                                  {"results", results},
                                                  {"sums", sums}});
}

bool in_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }

/// Takes the first line off `text`.
std::string_view next_line(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(text.size(), line.size() + 1));
  return line;
}

/// Whether a declaration ends with this line: with what closes it, or with all of it.
bool ends_declaration(std::string_view line) {
  if (line == "}" || line == "};") return true;
  const bool begins = !line.empty() && in_word(line.front()) && !line.starts_with("template");
  return begins && (line.ends_with(';') || line.ends_with('}'));
}

/// The name that a declaration declares in `line`, its first that is neither a comment nor `template <...>`.
std::string_view name_of(std::string_view line) {
  const auto last_word = [](std::string_view before) {
    std::size_t first = before.size();
    while (first > 0 && in_word(before[first - 1])) --first;
    return before.substr(first);
  };
  const bool is_struct = line.starts_with("struct");
  const bool is_alias = line.starts_with("using") || line.starts_with("constexpr");
  return last_word(line.substr(0, line.find(is_struct ? " {" : is_alias ? " =" : "(")));
}

using Words = std::unordered_set<std::string_view>;

/// Calls `visit` for each word of a text, comments apart.
template <typename Visit>
void for_each_word(std::string_view text, Visit visit) {
  while (!text.empty()) {
    std::string_view line = next_line(text);
    line = line.substr(0, line.find("//"));
    for (std::size_t first = 0, i = 0; i <= line.size(); ++i) {
      if (i < line.size() && in_word(line[i])) continue;
      if (i > first) visit(line.substr(first, i - first));
      first = i + 1;
    }
  }
}

/// A device file's declarations, and the words of each.
struct DeviceDeclarations {
  std::vector<Declaration> all;
  std::vector<Words> words;
};

DeviceDeclarations parsed(std::string_view file) {
  DeviceDeclarations result{.all = declarations_of(file), .words = {}};
  for (const Declaration& one : result.all)
    for_each_word(one.text, [&words = result.words.emplace_back()](std::string_view word) { words.insert(word); });
  return result;
}

std::map<std::string_view, DeviceDeclarations> parsed_files() {
  std::map<std::string_view, DeviceDeclarations> all;
  for (const EmbeddedFile& file : embedded_files())
    if (file.name.starts_with("device/")) all.emplace(file.name, parsed(file.text));
  return all;
}

/// Files are parsed once in a process: sources are written before the disk cache is asked. They are never destroyed,
/// since a static object may compile when the process ends.
const DeviceDeclarations& declarations_in(std::string_view name) {
  static const auto& files = *new std::map(parsed_files());
  return files.at(name);
}

}  // namespace

void add_files(std::vector<DeviceFile>& files, const std::vector<DeviceFile>& more) {
  for (const DeviceFile& file : more)
    if (std::find(files.begin(), files.end(), file) == files.end()) files.push_back(file);
}

std::vector<Declaration> declarations_of(std::string_view file) {
  std::vector<Declaration> declarations;
  bool after_empty_line = false;
  while (!file.empty()) {
    if (file.front() == '\n') {
      file.remove_prefix(1);
      after_empty_line = true;
      continue;
    }
    const std::string_view rest = file;
    Declaration next{.text = {}, .name = {}, .after_empty_line = after_empty_line};
    // Up to what closes a declaration or, of a comment, an empty line.
    while (!file.empty() && (!next.name.empty() || file.front() != '\n')) {
      const std::string_view line = next_line(file);
      if (line.starts_with("//") || line.starts_with("template")) continue;
      if (next.name.empty()) next.name = name_of(line);
      if (ends_declaration(line)) break;
    }
    next.text = rest.substr(0, rest.size() - file.size());
    while (next.text.ends_with('\n')) next.text.remove_suffix(1);
    declarations.push_back(next);
    after_empty_line = false;
  }
  return declarations;
}

std::string device_text(const std::vector<DeviceFile>& files, std::string_view kernels) {
  Words names, used;
  for (const DeviceFile& file : files)
    for (const Declaration& one : declarations_in(file.name).all) names.insert(one.name);
  for_each_word(kernels, [&](std::string_view word) {
    if (names.contains(word)) used.insert(word);
  });
  // The text of a file that is made for a number of columns is always used.
  for (const DeviceFile& file : files)
    if (file.columns > 0)
      for (const Words& words : declarations_in(file.name).words) used.insert(words.begin(), words.end());
  // What is declared later may name what comes before, in this file or another.
  for (auto file = files.rbegin(); file != files.rend(); ++file) {
    const DeviceDeclarations& declared = declarations_in(file->name);
    for (std::size_t i = declared.all.size(); i-- > 0;)
      if (used.contains(declared.all[i].name)) used.insert(declared.words[i].begin(), declared.words[i].end());
  }

  std::string text;
  for (std::size_t i = 0; i < files.size(); ++i) {
    std::string of_file;
    Declaration comment;
    for (const Declaration& one : declarations_in(files[i].name).all) {
      if (one.name.empty()) comment = one;
      if (!used.contains(one.name)) continue;
      if (!comment.text.empty()) of_file += fmt::format("{}{}\n\n", of_file.empty() ? "" : "\n", comment.text);
      const bool gap = comment.text.empty() && one.after_empty_line && !of_file.empty();
      of_file += fmt::format("{}{}\n", gap ? "\n" : "", one.text);
      comment = {};
    }
    if (files[i].columns > 0) of_file = multiply_text(files[i]);
    if (of_file.empty()) continue;
    text += fmt::format("{}{}", text.empty() ? "" : "\n", of_file);
  }
  if (!text.empty()) text.pop_back();
  return text;
}

}  // namespace jitconv::codegen
