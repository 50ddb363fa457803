// Runs a program of tools/ without a shell and gives back what it printed. Nothing of the environment is inherited but
// what find the compiler needs, so that a developer's settings cannot change a test.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace jitconv::test {

struct ProcessResult {
  int exit_code = -1;  ///< minus the signal's number if one ended it
  std::string out, err;
};

struct ProcessOptions {
  std::map<std::string, std::string> environment;  ///< on top of the inherited part
  std::string directory;                           ///< working directory; empty: this program's
  std::string signal_at = {};                      ///< when stdout has this text, `signal` is sent, once
  int signal = 0;
};

ProcessResult run_process(const std::string& program, const std::vector<std::string>& arguments,
                          const ProcessOptions& options = {});

/// The first executable file of this name on PATH, or in one of `directories`; empty if there is none.
std::string find_program(const std::string& name, const std::vector<std::string>& directories = {});

/// A new directory, removed with everything in it at the end.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

std::string read_file(const std::string& path);
void write_file(const std::string& path, const std::string& text);

/// Lines of a text, without their ends.
std::vector<std::string> lines_of(const std::string& text);

}  // namespace jitconv::test
