// See line_wrap.h.
#include "codegen/text/line_wrap.h"

#include <algorithm>
#include <climits>

namespace jitconv::codegen {
namespace {

constexpr std::size_t kContinuation = 4;  // columns by which the rest of a broken line is indented further

/// Calls visit(position, brackets around it) for every character outside of string literals, until it returns false.
template <typename Visit>
void walk_code(std::string_view code, const Visit& visit) {
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < code.size(); ++i) {
    const char c = code[i];
    if (quoted && c == '\\') ++i;
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == ')' || c == ']' || c == '}') --depth;
    if (!visit(i, depth)) return;
    if (c == '(' || c == '[' || c == '{') ++depth;
  }
}

/// Where a comment starts; the end of the line if none does.
std::size_t comment_start(std::string_view line) {
  std::size_t found = line.size();
  walk_code(line, [&](std::size_t i, int) {
    if (line.substr(i, 2) == "//") found = i;
    return found == line.size();
  });
  return found;
}

/// Whether the next line may start at `i` because an operator ends there, or a part of `a ? b : c` begins.
bool is_at_operator(std::string_view code, std::size_t i) {
  const std::string_view before = code.substr(0, i), after = code.substr(i);
  for (const std::string_view end : {" = ", " && ", " || ", " & ", " | ", " + "})
    if (before.ends_with(end)) return true;
  return after.starts_with("? ") || after.starts_with(": ");
}

/// The end of `if (...) ` or `for (...) ` before a statement on the same line; 0 if there is none.
std::size_t end_of_condition(std::string_view code) {
  const std::size_t first = code.find_first_not_of(' ');
  if (!code.substr(first).starts_with("if (") && !code.substr(first).starts_with("for (")) return 0;
  std::size_t end = 0;
  walk_code(code, [&](std::size_t i, int depth) {
    if (code[i] == ')' && depth == 0) end = i + 1;
    return end == 0;
  });
  return end != 0 && code.substr(end, 1) == " " && code.substr(end) != " {" ? end + 1 : 0;
}

/// Where to break a line of code: of what fits, the outermost place, a comma rather than an operator, and of those the
/// last. If nothing fits, the first bracket: names of kernels may be longer than a line. 0 if there is none.
std::size_t best_break(std::string_view code, std::size_t columns) {
  const std::size_t least = code.find_first_not_of(' ') + kContinuation + 1;
  if (const std::size_t end = end_of_condition(code); end > least && end <= columns) return end;
  std::size_t best = 0;
  int lowest = INT_MAX;
  walk_code(code, [&](std::size_t i, int depth) {
    if (i > columns) return false;
    const bool comma = code.substr(0, i).ends_with(", ");
    const int rank = 2 * depth + (comma ? 0 : 1);
    if (i >= least && rank <= lowest && (comma || is_at_operator(code, i))) {
      best = i;
      lowest = rank;
    }
    return true;
  });
  if (best != 0) return best;
  const std::size_t bracket = code.find('(', least);
  return bracket == std::string_view::npos || bracket + 1 == code.size() ? 0 : bracket + 1;
}

void add_piece(std::string& text, std::string_view piece) {
  text.append(piece.substr(0, piece.find_last_not_of(' ') + 1)).push_back('\n');
}

void add_code(std::string& text, std::string_view code, std::size_t columns) {
  const std::string indentation(code.find_first_not_of(' ') + kContinuation, ' ');
  std::string rest(code);
  while (rest.size() > columns) {
    const std::size_t end = best_break(rest, columns);
    if (end == 0) break;
    add_piece(text, std::string_view(rest).substr(0, end));
    rest = indentation + rest.substr(end);
  }
  add_piece(text, rest);
}

/// Adds full lines of a comment and returns the words that are left for the last one. `prefix` opens each line: the
/// indentation, "//" and the spaces behind it.
std::string_view add_full_lines(std::string& text, std::string_view prefix, std::string_view words,
                                std::size_t columns) {
  while (prefix.size() + words.size() > columns) {
    std::size_t end = words.rfind(' ', columns - std::min(columns, prefix.size()));
    if (end == std::string_view::npos || end == 0) end = words.find(' ');
    if (end == std::string_view::npos) break;
    text.append(prefix).append(words.substr(0, end)).push_back('\n');
    words.remove_prefix(end + 1);
  }
  return words;
}

void add_comment(std::string& text, std::string_view prefix, std::string_view words, std::size_t columns) {
  words = add_full_lines(text, prefix, words, columns);
  text.append(prefix).append(words).push_back('\n');
}

/// A line of running text: its prefix and its words. A line of a table, map or list has none: it is indented behind the
/// slashes, begins with a dash, or has columns that two blanks keep apart.
struct ProseLine {
  std::string_view prefix, words;
};

ProseLine prose_line(std::string_view line) {
  constexpr std::string_view kSlashes = "// ";
  const std::size_t first = std::min(line.find_first_not_of(' '), line.size());
  if (!line.substr(first).starts_with(kSlashes)) return {};
  const std::string_view words = line.substr(first + kSlashes.size());
  if (words.empty() || words.starts_with(' ') || words.starts_with('-') || words.find("  ") != std::string_view::npos)
    return {};
  return {line.substr(0, first + kSlashes.size()), words};
}

/// Takes the first line off `text`.
std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

/// Breaks a line of running text that is too long. What does not fit goes to the front of the lines that follow in
/// `rest`, as far as one of them becomes too long by it.
void add_prose(std::string& text, const ProseLine& line, std::string_view& rest, std::size_t columns) {
  std::string words(line.words);
  while (line.prefix.size() + words.size() > columns) {
    const std::size_t length = text.size();
    words = std::string(add_full_lines(text, line.prefix, words, columns));
    const ProseLine next = prose_line(rest.substr(0, rest.find('\n')));
    if (text.size() == length || next.prefix != line.prefix) break;
    take_line(rest);
    words.append(" ").append(next.words);
  }
  text.append(line.prefix).append(words).push_back('\n');
}

void add_long_line(std::string& text, std::string_view line, std::size_t columns) {
  const std::size_t comment = comment_start(line);
  const std::string_view code = line.substr(0, comment);
  const std::size_t first = std::min(code.find_first_not_of(' '), comment);
  if (comment < line.size()) {
    const std::size_t words = std::min(line.find_first_not_of(' ', comment + 2), line.size());
    const std::string prefix = std::string(first, ' ').append(line.substr(comment, words - comment));
    add_comment(text, prefix, line.substr(words), columns);
  }
  if (first < comment) add_code(text, code.substr(0, code.find_last_not_of(' ') + 1), columns);
}

}  // namespace

std::string wrap_lines(std::string_view text, std::size_t columns) {
  const bool ends_line = text.ends_with('\n');
  std::string wrapped;
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    if (line.size() <= columns || line.front() == '#')
      wrapped.append(line).push_back('\n');
    else if (const ProseLine prose = prose_line(line); !prose.prefix.empty())
      add_prose(wrapped, prose, text, columns);
    else
      add_long_line(wrapped, line, columns);
  }
  if (!ends_line && !wrapped.empty()) wrapped.pop_back();
  return wrapped;
}

}  // namespace jitconv::codegen
