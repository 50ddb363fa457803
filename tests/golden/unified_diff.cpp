// Longest common subsequence of lines, by the textbook's table over what lies between the first and the last
// difference.
#include "golden/unified_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace jitconv::test {
namespace {

constexpr std::size_t kContext = 3;

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

struct Edit {
  char mark = ' ';  // ' ', '-', '+'
  std::string_view line;
  std::size_t before = 0, after = 0;  // line numbers where it stands, from 0
};

/// Both texts as one list of kept, removed and added lines.
std::vector<Edit> edits_between(const std::vector<std::string_view>& a, const std::vector<std::string_view>& b) {
  std::size_t head = 0, tail = 0;
  while (head < a.size() && head < b.size() && a[head] == b[head]) ++head;
  while (tail < a.size() - head && tail < b.size() - head && a[a.size() - 1 - tail] == b[b.size() - 1 - tail]) ++tail;
  const std::size_t rows = a.size() - head - tail, columns = b.size() - head - tail;

  // common[i][j]: most lines that a[head + i ..] and b[head + j ..] share.
  std::vector<std::vector<std::uint32_t>> common(rows + 1, std::vector<std::uint32_t>(columns + 1, 0));
  for (std::size_t i = rows; i-- > 0;)
    for (std::size_t j = columns; j-- > 0;)
      common[i][j] =
          a[head + i] == b[head + j] ? common[i + 1][j + 1] + 1 : std::max(common[i + 1][j], common[i][j + 1]);

  std::vector<Edit> edits;
  for (std::size_t i = 0; i < head; ++i) edits.push_back({' ', a[i], i, i});
  std::size_t i = 0, j = 0;
  while (i < rows || j < columns) {
    if (i < rows && j < columns && a[head + i] == b[head + j]) {
      edits.push_back({' ', a[head + i], head + i, head + j});
      ++i, ++j;
    } else if (i < rows && (j == columns || common[i + 1][j] >= common[i][j + 1])) {
      edits.push_back({'-', a[head + i], head + i, head + j});
      ++i;
    } else {
      edits.push_back({'+', b[head + j], head + i, head + j});
      ++j;
    }
  }
  for (std::size_t k = 0; k < tail; ++k)
    edits.push_back({' ', a[head + rows + k], head + rows + k, head + columns + k});
  return edits;
}

}  // namespace

std::string unified_diff(std::string_view before, std::string_view after, std::size_t most_lines) {
  const std::vector<Edit> edits = edits_between(lines_of(before), lines_of(after));
  std::string text;
  std::size_t shown = 0, shown_until = 0, changes = 0;
  for (std::size_t i = 0; i < edits.size(); ++i) {
    if (edits[i].mark == ' ') continue;
    ++changes;
    if (shown >= most_lines) continue;
    const std::size_t begin = std::max(shown_until, i >= kContext ? i - kContext : 0);
    if (begin > shown_until || i == 0 || shown_until == 0)
      text += fmt::format("@@ -{} +{} @@\n", edits[begin].before + 1, edits[begin].after + 1);
    // Up to the end of the context of this run of changes.
    std::size_t end = i;
    for (std::size_t j = i; j < edits.size() && j <= end + kContext; ++j)
      if (edits[j].mark != ' ') end = j;
    end = std::min(edits.size(), end + kContext + 1);
    for (std::size_t j = begin; j < end && shown < most_lines; ++j, ++shown)
      text += fmt::format("{}{}\n", edits[j].mark, edits[j].line);
    shown_until = end;
    for (std::size_t j = i + 1; j < end; ++j) changes += edits[j].mark != ' ' ? 1 : 0;
    i = end - 1;
  }
  if (shown >= most_lines) text += fmt::format("... cut off; {} lines differ in all\n", changes);
  if (text.empty() && before != after) text = "the texts differ in the line end of the last line\n";
  return text;
}

}  // namespace jitconv::test
