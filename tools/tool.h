// What the three programs share besides the choice of a convolution: exit codes, one-line errors, --version and parsing
// with LLVM CommandLine. No convolution, no GPU.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "jitconv/error.h"
#include "tools/output.h"

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

/// For the end of --help: what changes the programs that compile, besides their options.
inline constexpr const char* kEnvironmentHelp =
    "\nENVIRONMENT:\n\n"
    "  JITCONV_NVRTC_PATH  the NVRTC to compile with, or its directory; default: searched\n"
    "  JITCONV_HOST_CXX    the C++ compiler of host execution; default: c++, g++ or clang++ on PATH\n"
    "  JITCONV_CACHE_DIR   the directory of compiled kernels; default: $XDG_CACHE_HOME/jitconv, else ~/.cache/jitconv\n"
    "  JITCONV_CACHE       rw, ro or off: how that directory is used; default: rw\n"
    "  JITCONV_NO_COMPILE  1: a kernel that is not in the cache is an error instead of a compilation\n"
    "  JITCONV_MAX_KERNELS kernels that a process keeps in memory; default: 512\n"
    "  JITCONV_DUMP_DIR    a directory into which everything that is generated and compiled is written\n"
    "  JITCONV_LOG         off, error, warn, info or debug: what is logged; default: warn\n"
    "  JITCONV_LOG_FILE    the file to which the log is appended; default: stderr\n";

/// The exit code that belongs to a library error.
ExitCode exit_code(ErrorCode code);

/// Runs `body` with standard streams that are safe to use, turns what it throws into one line on stderr (plus the
/// compiler's log, if there is one) and the exit code that belongs to it.
int run_tool(const char* program, const std::function<int()>& body);

/// LLVM CommandLine over argv, with only jitconv's own options in --help. Throws UsageError; --help and --version print
/// and leave with 0.
void parse_command_line(int argc, const char* const* argv, const char* overview);

/// `jitconv 0.1.0 (abc1234)`, then one line per library, then the NVRTC that would compile.
std::string version_text();

}  // namespace jitconv::tools
