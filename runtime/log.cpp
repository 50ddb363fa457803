// The runtime's log: level from the environment once, then a single write per line.
#include "runtime/log.h"

#include <unistd.h>

#include <array>
#include <string>

#include "runtime/env.h"

namespace jitconv::runtime {
namespace {

constexpr std::array<std::string_view, 5> kNames = {"off", "error", "warn", "info", "debug"};

void write_line(std::string_view label, std::string_view message) {
  std::string line = "jitconv: ";
  line.append(label).append(": ").append(message).append("\n");
  // A closed stderr is the user's wish; there is nobody to tell.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

LogLevel read_level() {
  const std::string value = log_level_from_environment();
  if (value.empty()) return LogLevel::warn;
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (value == kNames[i]) return static_cast<LogLevel>(i);
  }
  write_line("warning", "JITCONV_LOG=" + value + " is none of off, error, warn, info, debug: using warn");
  return LogLevel::warn;
}

}  // namespace

bool log_enabled(LogLevel level) {
  static const LogLevel threshold = read_level();
  return level != LogLevel::off && level <= threshold;
}

void log(LogLevel level, std::string_view message) noexcept try {
  if (!log_enabled(level)) return;
  write_line(level == LogLevel::warn ? std::string_view("warning") : kNames[static_cast<std::size_t>(level)], message);
} catch (...) {  // out of memory while building the line
}

}  // namespace jitconv::runtime
