// Lines of generated text that are too long for a reader's screen are broken: code between its parts, the outermost
// first; comments between words. Tokens stay as they are and in their order. Not a formatter: other lines stay as they
// are, but for those of a comment that goes on behind a line that is too long.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace jitconv::codegen {

/// `text` with lines of at most `columns` characters, where that is possible. A comment behind code that is too long
/// comes to stand before it. Words that a comment's line has no place for go to its next line; lists, tables and maps
/// keep their lines.
std::string wrap_lines(std::string_view text, std::size_t columns);

}  // namespace jitconv::codegen
