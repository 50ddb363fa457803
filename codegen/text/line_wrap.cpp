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

/// `prefix` opens each line: the indentation, "//" and the spaces behind it.
void add_comment(std::string& text, std::string_view prefix, std::string_view words, std::size_t columns) {
  while (prefix.size() + words.size() > columns) {
    std::size_t end = words.rfind(' ', columns - std::min(columns, prefix.size()));
    if (end == std::string_view::npos || end == 0) end = words.find(' ');
    if (end == std::string_view::npos) break;
    text.append(prefix).append(words.substr(0, end)).push_back('\n');
    words.remove_prefix(end + 1);
  }
  text.append(prefix).append(words).push_back('\n');
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
  std::string wrapped;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    if (line.size() <= columns || line.front() == '#') {
      wrapped.append(line).append(end < text.size() ? "\n" : "");
    } else {
      add_long_line(wrapped, line, columns);
      if (end == text.size()) wrapped.pop_back();
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return wrapped;
}

}  // namespace jitconv::codegen
