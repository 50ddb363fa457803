// The runtime's log: level and file from the environment once, then a single write per line. The file is opened for
// each line: a descriptor kept open might be somebody else's by then, in a program that closes all it has.
#include "runtime/log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>

#include "cache/printable.h"
#include "cache/write_all.h"
#include "runtime/env.h"

namespace jitconv::runtime {
namespace {

constexpr std::array<std::string_view, 5> kLevelNames = {"off", "error", "warn", "info", "debug"};

/// 0 or errno.
int append(const std::string& path, std::string_view line) {
  // Without O_NONBLOCK a FIFO would hold us until somebody reads it.
  const int descriptor =
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0644);
  if (descriptor < 0) return errno;
  const int error = cache::write_once(descriptor, line);
  ::close(descriptor);
  return error;
}

std::string line_of(std::string_view label, std::string_view message) {
  std::string line = "jitconv: ";
  line.append(label).append(": ");
  for (std::size_t at = 0; at <= message.size();) {
    const std::size_t end = std::min(message.find('\n', at), message.size());
    if (at != 0) line += "\n  ";
    line += cache::printable(message.substr(at, end - at));
    at = end + 1;
  }
  return line += "\n";
}

/// A closed stderr is the user's wish; there is nobody to tell.
void write_to_stderr(std::string_view line) { static_cast<void>(cache::write_once(STDERR_FILENO, line)); }

/// Absolute, because the program may change its directory; empty for stderr.
std::string read_file_name() {
  const std::string name = log_file_from_environment();
  if (name.empty()) return {};
  std::error_code error;
  const std::filesystem::path path = std::filesystem::absolute(name, error);
  return error ? name : path.string();
}

void write_line(std::string_view label, std::string_view message) {
  static const std::string& file = *new std::string(read_file_name());  // never destroyed: see log()
  static std::atomic<bool> warned{false};
  const std::string line = line_of(label, message);
  if (file.empty()) return write_to_stderr(line);
  const int error = append(file, line);
  if (error == 0) return;
  if (!warned.exchange(true)) {
    write_to_stderr(line_of("warning", "JITCONV_LOG_FILE is " + cache::printable(file) +
                                           ", which cannot be written: " + std::generic_category().message(error) +
                                           " (its lines are on stderr; further trouble is not reported)"));
  }
  write_to_stderr(line);
}

LogLevel read_level() {
  const std::string value = log_level_from_environment();
  if (value.empty()) return LogLevel::warn;
  for (std::size_t i = 0; i < kLevelNames.size(); ++i) {
    if (value == kLevelNames[i]) return static_cast<LogLevel>(i);
  }
  write_line("warning",
             "JITCONV_LOG is " + cache::printable(value) + ", must be off, error, warn, info or debug: using warn");
  return LogLevel::warn;
}

}  // namespace

bool log_enabled(LogLevel level) {
  static const LogLevel threshold = read_level();
  return level != LogLevel::off && level <= threshold;
}

// May be called while static objects are destroyed.
void log(LogLevel level, std::string_view message) noexcept try {
  if (!log_enabled(level)) return;
  write_line(level == LogLevel::warn ? std::string_view("warning") : kLevelNames[static_cast<std::size_t>(level)],
             message);
} catch (...) {  // out of memory while building the line
}

}  // namespace jitconv::runtime
