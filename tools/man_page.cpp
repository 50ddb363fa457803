// A build step, not installed: turns what a program of tools/ prints for --help, on stdin, into its manual page, on
// stdout.
//
//   jitconv-dump --help | jitconv-man-page jitconv-dump 0.1.0 > jitconv-dump.1
//
// Reads LLVM CommandLine's help: an overview, a usage line, options in groups, more sections with titles in capitals.
// Fails if it does not look like that.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace {

using Lines = std::vector<std::string>;

constexpr const char* kPrograms[] = {"jitconv-cache", "jitconv-dump", "jitconv-run"};

/// Text that roff prints as it is.
std::string escaped(std::string_view text) {
  std::string result;
  if (text.starts_with('.') || text.starts_with('\'')) result = "\\&";
  for (const char c : text) {
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else {
      result += c;
    }
  }
  return result;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(' ');
  return begin == std::string_view::npos ? "" : text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

/// Paragraphs; indented lines keep their line ends.
std::string description(const Lines& lines) {
  std::string text;
  bool verbatim = false;
  for (const std::string& line : lines) {
    const bool indented = line.starts_with(' ');
    if (verbatim && !indented) text += ".fi\n.RE\n";
    if (!verbatim && indented) text += ".RS\n.nf\n";
    verbatim = indented;
    text += line.empty() ? ".PP\n"
                         : escaped(verbatim ? std::string_view(line).substr(std::min<std::size_t>(line.size(), 2))
                                            : trimmed(line)) +
                               "\n";
  }
  return verbatim ? text + ".fi\n.RE\n" : text;
}

/// `  --name=<value>   - What it does`, or `    =value   -   What it means`; other lines are titles of groups.
std::string options(const Lines& lines) {
  constexpr std::string_view kSeparator = " - ";
  std::string text;
  for (const std::string& line : lines) {
    const std::size_t at = line.find(kSeparator);
    if (line.empty()) continue;
    if (!line.starts_with(' ') || at == std::string::npos) {
      text += line.ends_with(':') ? fmt::format(".SS {}\n", escaped(line.substr(0, line.size() - 1)))
                                  : escaped(line) + "\n";
      continue;
    }
    const std::string name = escaped(trimmed(std::string_view(line).substr(0, at)));
    const std::string meaning = escaped(trimmed(std::string_view(line).substr(at + kSeparator.size())));
    if (line.starts_with("    ")) {
      text += fmt::format(".RS\n.TP\n.B {}\n{}\n.RE\n", name, meaning);
    } else {
      text += fmt::format(".TP\n.B {}\n{}\n", name, meaning);
    }
  }
  return text;
}

/// OPTIONS and the sections behind it, whose titles are in capitals.
std::string sections(const Lines& lines) {
  const auto is_title = [](const std::string& line) {
    return line.ends_with(':') && line.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ :") == std::string::npos;
  };
  std::string text;
  for (auto begin = lines.begin(); begin != lines.end();) {
    const auto end = std::find_if(begin + 1, lines.end(), is_title);
    const std::string title = begin->substr(0, begin->size() - 1);
    const Lines body(begin + 1, end);
    text += fmt::format(".SH {}\n{}", title, title == "OPTIONS" ? options(body) : description(body));
    begin = end;
  }
  return text;
}

std::string see_also(std::string_view program) {
  std::string text;
  for (const std::string_view other : kPrograms) {
    if (other == program) continue;
    text += fmt::format("{}.BR {} (1)", text.empty() ? "" : ",\n", escaped(other));
  }
  return text + "\n";
}

/// Empty if `help` is not LLVM's.
std::string man_page(const std::string& program, const std::string& version, const std::string& help) {
  const std::string overview_mark = "OVERVIEW: " + program + ": ", usage_mark = "USAGE: ";
  const std::size_t usage = help.find(usage_mark), first = help.find("OPTIONS:\n");
  if (help.rfind(overview_mark, 0) != 0 || usage == std::string::npos || first == std::string::npos) return {};
  const auto lines_of = [&help](std::size_t begin, std::size_t end) {
    std::istringstream stream(help.substr(begin, end - begin));
    Lines lines;
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    while (!lines.empty() && lines.back().empty()) lines.pop_back();
    return lines;
  };
  Lines overview = lines_of(overview_mark.size(), usage);
  const std::string summary = overview.front();
  overview.erase(overview.begin());
  std::string upper = program;
  for (char& c : upper) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  const std::string synopsis = lines_of(usage + usage_mark.size(), first).front();
  return fmt::format(
      ".TH {} 1 \"\" \"jitconv {}\" \"User Commands\"\n"
      ".SH NAME\n{} \\- {}\n.SH SYNOPSIS\n.B {}\n{}\n.SH DESCRIPTION\n{}{}.SH SEE ALSO\n{}",
      escaped(upper), version, escaped(program), escaped(summary), escaped(program),
      escaped(trimmed(synopsis.substr(std::min(synopsis.size(), program.size())))), description(overview),
      sections(lines_of(first, help.size())), see_also(program));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: PROGRAM --help | jitconv-man-page PROGRAM VERSION\n", stderr);
    return 2;
  }
  const std::string help{std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
  const std::string page = man_page(argv[1], argv[2], help);
  if (page.empty()) {
    std::fputs("jitconv-man-page: stdin is not the help of that program\n", stderr);
    return 1;
  }
  std::cout << page << std::flush;
  return std::cout ? 0 : 1;
}
