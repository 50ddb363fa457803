// The one way out of the programs: text to stdout, to stderr or to a file. A stream that cannot be written is an error
// or is ignored, as said at each function; it never ends the program by itself. No formats, no progress.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace jitconv::tools {

/// A file of --json or -o that is opened before the work, so that a path that cannot be written fails at once. "-" and
/// "" are stdout. What the file holds is replaced when write() is called and not before.
class OutputFile {
 public:
  /// Throws ToolError.
  explicit OutputFile(std::string path);
  /// Removes the file if it is new and was never written.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  /// `text` becomes the contents of the file; to stdout it is added. Throws ToolError.
  void write(std::string_view text);

 private:
  std::string path_;
  int descriptor_ = -1;
  bool is_new_ = false, written_ = false;
};

/// Writes `text` to `path`, or to stdout for "-" and "". Throws ToolError.
void write_output(const std::string& path, std::string_view text);

/// Writes to stderr, also while that is captured. Where nobody can read it, nothing is said.
void write_error(std::string_view text);

/// While it lives, what others write to stderr is kept instead: LLVM prints some errors there whatever stream it is
/// given. One at a time.
class CapturedStderr {
 public:
  CapturedStderr();
  ~CapturedStderr() { finish(); }
  CapturedStderr(const CapturedStderr&) = delete;
  CapturedStderr& operator=(const CapturedStderr&) = delete;

  /// What was written. Ends the capture.
  std::string finish();

 private:
  std::FILE* file_;
};

/// Makes stdin, stdout and stderr safe to use, whatever they are: one that is closed becomes /dev/null, lest a file
/// that is opened later take its number, and writing to a closed stdout still fails; a file that has reached its limit
/// of size is an error instead of a signal; LLVM's streams do not abort the program when --help cannot be written.
void prepare_standard_streams();

}  // namespace jitconv::tools
