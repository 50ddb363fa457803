// Runs another program and waits for it, no longer than it may take. For compilers and addr2line: a clean environment,
// output collected, nothing left behind. If this process dies first, the program and what it has started die with it.
// LLVM's ExecuteAndWait times out with SIGALRM, which a library has no right to.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace jitconv::host {

struct Command {
  std::vector<std::string> arguments;  ///< the program's absolute path first; no shell reads them
  /// The program's working directory and TMPDIR. Removed if this process dies before the program. If it is empty, the
  /// program runs in this process's directory, and its TMPDIR is /tmp.
  std::string directory;
  int inherited = -1;  ///< a descriptor the program gets as number 3
  std::chrono::milliseconds limit{60000};
};

/// The most bytes that are kept of what a program prints. If it prints more, its beginning and its end are kept.
inline constexpr std::size_t kKeptOutput = 512 * 1024;

struct Outcome {
  enum class End { exited, signalled, timed_out, not_started };
  End end = End::not_started;
  int code = 0;        ///< exit status, signal, or errno of what failed
  std::string output;  ///< stdout and stderr together, of the program and of what it has started until it ended
  bool succeeded() const { return end == End::exited && code == 0; }
};

/// The program sees PATH, HOME and LD_LIBRARY_PATH of this process, and no variable that changes what compilers do.
Outcome run(const Command& command);

}  // namespace jitconv::host
