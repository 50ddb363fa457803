// See process.h. The child is a process group of its own, so that a compiler that is killed takes its passes along.
#include "host/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <thread>

namespace jitconv::host {
namespace {

using Clock = std::chrono::steady_clock;

std::vector<std::string> clean_environment(const std::string& directory) {
  std::vector<std::string> environment{"LC_ALL=C", "TMPDIR=" + (directory.empty() ? "/tmp" : directory)};
  for (const char* name : {"PATH", "HOME", "LD_LIBRARY_PATH"}) {
    if (const char* value = ::secure_getenv(name)) environment.push_back(std::string(name) + "=" + value);
  }
  return environment;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

/// Two ends of a pipe, both closed when it goes.
struct Pipe {
  int ends[2] = {-1, -1};
  Pipe() {
    if (::pipe2(ends, O_CLOEXEC) != 0) ends[0] = ends[1] = -1;
  }
  ~Pipe() {
    close_write();
    if (ends[0] >= 0) ::close(ends[0]);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void close_write() {
    if (ends[1] >= 0) ::close(ends[1]);
    ends[1] = -1;
  }
};

/// 0 or an errno.
int spawn(const Command& command, int output, pid_t& child) {
  std::vector<std::string> arguments = command.arguments;
  std::vector<std::string> environment = clean_environment(command.directory);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
  if (command.inherited >= 0) posix_spawn_file_actions_adddup2(&actions, command.inherited, 3);
  if (!command.directory.empty()) posix_spawn_file_actions_addchdir_np(&actions, command.directory.c_str());
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // Signals blocked or ignored by the host program are its own affair.
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  const int error = ::posix_spawn(&child, arguments.front().c_str(), &actions, &attributes, pointers(arguments).data(),
                                  pointers(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

/// Collects what comes until the writers are gone. False if the deadline comes first.
bool drain(int from, Clock::time_point deadline, std::string& text) {
  std::array<char, 4096> buffer;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return false;
    pollfd waited{from, POLLIN, 0};
    const int ready = ::poll(&waited, 1, static_cast<int>(left));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    const ssize_t got = ::read(from, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return true;
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

/// Whether the child has ended by the deadline; then `status` is its wait status. A program that ignores SIGCHLD has no
/// status to give: that counts as success, and the missing result will show.
bool reap(pid_t child, Clock::time_point deadline, int& status) {
  for (;;) {
    const pid_t ended = ::waitpid(child, &status, WNOHANG);
    if (ended == child) return true;
    if (ended < 0 && errno != EINTR) {
      status = 0;
      return true;
    }
    if (Clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

}  // namespace

Outcome run(const Command& command) {
  Outcome outcome;
  Pipe pipe;
  if (pipe.ends[0] < 0) {
    outcome.code = errno;
    return outcome;
  }
  pid_t child = -1;
  outcome.code = spawn(command, pipe.ends[1], child);
  if (outcome.code != 0) return outcome;
  pipe.close_write();
  const Clock::time_point deadline = Clock::now() + command.limit;
  int status = 0;
  if (!drain(pipe.ends[0], deadline, outcome.output) || !reap(child, deadline, status)) {
    ::kill(-child, SIGKILL);
    ::waitpid(child, &status, 0);
    outcome.end = Outcome::End::timed_out;
    return outcome;
  }
  outcome.end = WIFSIGNALED(status) ? Outcome::End::signalled : Outcome::End::exited;
  outcome.code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
  return outcome;
}

}  // namespace jitconv::host
