// Lines of generated text that are too long for a reader's screen are broken: code between its parts, the outermost
// first; comments between words. Tokens stay as they are and in their order. Not a formatter: other lines are not
// looked at.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace jitconv::codegen {

/// `text` with lines of at most `columns` characters, where that is possible. A comment behind code that is too long
/// comes to stand before it.
std::string wrap_lines(std::string_view text, std::size_t columns);

}  // namespace jitconv::codegen
