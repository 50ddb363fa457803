// Text from outside (environment variables, file names) in a form that is safe to print: what a terminal would obey is
// shown instead. UTF-8 stays as it is; of a text that is not UTF-8, ASCII does.
#pragma once

#include <string>
#include <string_view>

namespace jitconv::cache {

/// `text` with control characters, line ends included, as \xNN, and so all bytes from 0x80 on if it is not UTF-8.
std::string printable(std::string_view text);

}  // namespace jitconv::cache
