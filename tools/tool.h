// What the three programs share besides the choice of a convolution: exit codes, one-line errors, --version, parsing
// with LLVM CommandLine, and writing to a file or stdout. No convolution, no GPU.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "jitconv/error.h"

namespace jitconv::tools {

/// Exit codes of every program, as docs/cli.md lists them.
enum ExitCode : int {
  kOk = 0,
  kCheckFailed = 1,  ///< a result is wrong, a cache entry is damaged, or the driver failed on the way
  kUsage = 2,        ///< the command line cannot be read
  kUnsupported = 3,  ///< the convolution it describes cannot be computed, here or at all
  kCompile = 4,      ///< NVRTC or the disassembler is missing or rejected its input
  kNoDevice = 5,     ///< no usable GPU
};

/// The command line cannot be read; what() is one line.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Something a program needs from the machine failed: a file that cannot be written, a missing disassembler.
class ToolError : public std::runtime_error {
 public:
  ToolError(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ExitCode code() const noexcept { return code_; }

 private:
  ExitCode code_;
};

/// The exit code that belongs to a library error.
ExitCode exit_code(ErrorCode code);

/// Runs `body`, turns what it throws into one line on stderr (plus the compiler's log, if there is one) and the exit
/// code that belongs to it.
int run_tool(const char* program, const std::function<int()>& body);

/// LLVM CommandLine over argv, with only jitconv's own options in --help. Throws UsageError; --help and --version print
/// and leave with 0.
void parse_command_line(int argc, const char* const* argv, const char* overview);

/// `jitconv 0.1.0 (abc1234)`, then one line per library, then the NVRTC that would compile.
std::string version_text();

/// Writes `text` to `path`, or to stdout for "-" and "". Throws ToolError.
void write_output(const std::string& path, std::string_view text);

/// A progress line that overwrites itself; silent unless stderr is a terminal.
class Progress {
 public:
  explicit Progress(bool quiet);
  ~Progress();
  void show(const std::string& text);
  void clear();

 private:
  bool enabled_;
  bool shown_ = false;
};

}  // namespace jitconv::tools
