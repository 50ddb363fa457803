// Runs another program and waits for it, no longer than it may take. For compilers and addr2line: no shell, a clean
// environment, output collected, nothing left behind. LLVM's ExecuteAndWait times out with SIGALRM, which a library has
// no right to.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace jitconv::host {

struct Command {
  std::vector<std::string> arguments;  ///< the program's absolute path first
  std::string directory;               ///< to run in; also its TMPDIR. Empty: here, and /tmp
  int inherited = -1;                  ///< a descriptor the program gets as number 3
  std::chrono::milliseconds limit{60000};
};

struct Outcome {
  enum class End { exited, signalled, timed_out, not_started };
  End end = End::not_started;
  int code = 0;        ///< exit status, signal, or errno of what failed
  std::string output;  ///< stdout and stderr together
  bool succeeded() const { return end == End::exited && code == 0; }
};

/// The program sees PATH, HOME and LD_LIBRARY_PATH of this process, and no variable that changes what compilers do.
Outcome run(const Command& command);

}  // namespace jitconv::host
