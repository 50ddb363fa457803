// fork, exec, two pipes; and small files.
#include "unit/tools/cli_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <system_error>

namespace jitconv::test {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

struct Pipe {
  int read_end = -1, write_end = -1;
  Pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) fail("pipe2");
    read_end = ends[0];
    write_end = ends[1];
  }
  ~Pipe() {
    close_write();
    if (read_end >= 0) close(read_end);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void close_write() {
    if (write_end >= 0) close(write_end);
    write_end = -1;
  }
};

std::vector<std::string> environment_of(const ProcessOptions& options) {
  std::map<std::string, std::string> variables;
  for (const char* name : {"PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH", "JITCONV_NVRTC_PATH", "JITCONV_HOST_CXX",
                           "CUDA_HOME", "CUDA_PATH", "VIRTUAL_ENV", "ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS"}) {
    if (const char* value = std::getenv(name)) variables[name] = value;
  }
  for (const auto& [name, value] : options.environment) variables[name] = value;
  std::vector<std::string> list;
  for (const auto& [name, value] : variables) list.push_back(name + "=" + value);
  return list;
}

std::vector<char*> pointers_of(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& one : strings) pointers.push_back(one.data());
  pointers.push_back(nullptr);
  return pointers;
}

void drain(Pipe& out, Pipe& err, pid_t child, const ProcessOptions& options, ProcessResult& result) {
  bool to_signal = options.signal != 0;
  std::array<pollfd, 2> fds{pollfd{out.read_end, POLLIN, 0}, pollfd{err.read_end, POLLIN, 0}};
  std::array<std::string*, 2> texts{&result.out, &result.err};
  std::array<char, 65536> buffer;
  for (int open = 2; open > 0;) {
    if (poll(fds.data(), fds.size(), -1) < 0) {
      if (errno == EINTR) continue;
      fail("poll");
    }
    for (std::size_t i = 0; i < fds.size(); ++i) {
      if (fds[i].fd < 0 || fds[i].revents == 0) continue;
      const ssize_t got = read(fds[i].fd, buffer.data(), buffer.size());
      if (got > 0) {
        texts[i]->append(buffer.data(), static_cast<std::size_t>(got));
        if (to_signal && result.out.find(options.signal_at) != std::string::npos) {
          kill(child, options.signal);
          to_signal = false;
        }
      } else if (got == 0 || errno != EINTR) {
        fds[i].fd = -1;
        --open;
      }
    }
  }
}

}  // namespace

ProcessResult run_process(const std::string& program, const std::vector<std::string>& arguments,
                          const ProcessOptions& options) {
  std::vector<std::string> argument_strings = {program}, environment_strings = environment_of(options);
  argument_strings.insert(argument_strings.end(), arguments.begin(), arguments.end());
  const std::vector<char*> argv = pointers_of(argument_strings), envp = pointers_of(environment_strings);
  Pipe out, err;
  const pid_t child = fork();
  if (child < 0) fail("fork");
  if (child == 0) {
    const int null = open("/dev/null", O_RDONLY);
    dup2(null, STDIN_FILENO);
    dup2(out.write_end, STDOUT_FILENO);
    dup2(err.write_end, STDERR_FILENO);
    // Tests may run where SIGINT is ignored, as in a background job; a user's program does not.
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) std::signal(number, SIG_DFL);
    if (!options.directory.empty() && chdir(options.directory.c_str()) != 0) _exit(126);
    execve(program.c_str(), argv.data(), envp.data());
    _exit(127);
  }
  out.close_write();
  err.close_write();
  ProcessResult result;
  drain(out, err, child, options, result);
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) fail("waitpid");
  }
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  return result;
}

std::string find_program(const std::string& name, const std::vector<std::string>& directories) {
  std::vector<std::string> places = directories;
  std::stringstream path(std::getenv("PATH") != nullptr ? std::getenv("PATH") : "");
  for (std::string place; std::getline(path, place, ':');) places.push_back(place);
  for (const std::string& place : places) {
    const std::string candidate = place + "/" + name;
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return {};
}

TemporaryDirectory::TemporaryDirectory() {
  std::string pattern = (fs::temp_directory_path() / "jitconv-test-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) fail("mkdtemp");
  path_ = pattern;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  if (!file.flush()) throw std::runtime_error("cannot write " + path);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::stringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace jitconv::test
