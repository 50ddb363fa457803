// Messages on stderr, or in the file JITCONV_LOG_FILE names, one line each: `jitconv: warning: ...`. JITCONV_LOG
// chooses how many (default: warn). For things a user may want to know although nothing failed; what failed is an
// exception and is not logged as well.
#pragma once

#include <string_view>

namespace jitconv::runtime {

enum class LogLevel { off, error, warn, info, debug };

/// Whether a message of this level would be printed: ask before formatting an expensive one.
bool log_enabled(LogLevel level);

/// Never throws and never ends the process, whatever becomes of the line: a reader that is gone, a full disk, a limit
/// on file sizes. Lines of different threads do not mix. Control characters are shown as \xNN; further lines of a
/// message are indented.
void log(LogLevel level, std::string_view message) noexcept;

}  // namespace jitconv::runtime
