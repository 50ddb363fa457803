// Messages on stderr, one line each, `jitconv: warning: ...`. JITCONV_LOG chooses how many (default: warn). For things
// a user may want to know although nothing failed; what failed is an exception and is not logged as well.
#pragma once

#include <string_view>

namespace jitconv::runtime {

enum class LogLevel { off, error, warn, info, debug };

/// Whether a message of this level would be printed: ask before formatting an expensive one.
bool log_enabled(LogLevel level);

/// Never throws; lines of different threads do not mix.
void log(LogLevel level, std::string_view message) noexcept;

}  // namespace jitconv::runtime
