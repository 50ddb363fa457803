// Text from outside (environment variables, file names) in a form that is safe to print: what a terminal would obey is
// shown instead. UTF-8 stays as it is.
#pragma once

#include <string>
#include <string_view>

namespace jitconv::cache {

/// `text` with control characters, line ends included, as \xNN.
std::string printable(std::string_view text);

}  // namespace jitconv::cache
