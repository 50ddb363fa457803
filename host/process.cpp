// See process.h. The program and what it starts are one process group, led by a supervisor: a few lines of shell that
// notice when this process is gone, however it ended, and then end the group. (PR_SET_PDEATHSIG would end the
// compiler's driver alone, not its passes.)
#include "host/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <utility>

#include "cache/files.h"

namespace jitconv::host {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// Runs "$@" and exits with its status. Standard input is a pipe that nobody writes to, so it ends when the process
/// that holds its other end is gone. Then the watcher sends the group a signal at which compilers remove their files,
/// removes the folder $0, and kills who is left. The shell waits for the watcher, since a container's init may not.
constexpr const char* kSupervisor = R"sh(
exec 9<&0 </dev/null
(
  trap '' HUP INT TERM
  read -r end
  kill -s TERM 0
  [ -z "$0" ] || rm -rf "$0"
  kill -s KILL 0
) <&9 9<&- >/dev/null 2>&1 &
"$@" 9<&-
status=$?
{ kill -s KILL $!; wait $!; } 2>/dev/null
exit $status
)sh";

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

/// The descriptor under a number that no program expects anything at: this process may run without standard streams.
cache::FileDescriptor moved_up(cache::FileDescriptor descriptor) {
  constexpr int kFirst = 10;
  if (descriptor.get() < 0 || descriptor.get() >= kFirst) return descriptor;
  return cache::FileDescriptor(::fcntl(descriptor.get(), F_DUPFD_CLOEXEC, kFirst));
}

struct Pipe {
  cache::FileDescriptor read{-1}, write{-1};
};

/// 0 or an errno.
int open_pipe(Pipe& pipe) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return errno;
  pipe.read = moved_up(cache::FileDescriptor(ends[0]));
  pipe.write = moved_up(cache::FileDescriptor(ends[1]));
  return pipe.read.get() < 0 || pipe.write.get() < 0 ? EMFILE : 0;
}

/// A process group whose leader this process has started. What is left of it when this goes is killed.
class Group {
 public:
  Group() = default;
  ~Group() {
    if (leader_ > 0) end();
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  /// 0 or an errno.
  int start(const Command& command, int input, int output) {
    std::vector<std::string> arguments{"/bin/sh", "-c", kSupervisor, command.directory};
    arguments.insert(arguments.end(), command.arguments.begin(), command.arguments.end());
    std::vector<std::string> environment = clean_environment(command.directory);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    if (command.inherited >= 0) posix_spawn_file_actions_adddup2(&actions, command.inherited, 3);
    posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
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
    const int error = ::posix_spawn(&leader_, arguments.front().c_str(), &actions, &attributes,
                                    pointers(arguments).data(), pointers(environment).data());
    if (error != 0) leader_ = -1;
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return error;
  }

  /// Whether the leader has ended. If this process ignores SIGCHLD, the system keeps nothing of a child that has ended,
  /// and waitid() fails with ECHILD.
  bool has_ended() const {
    siginfo_t info{};
    const int result =
        ::waitid(P_PID, static_cast<id_t>(leader_), &info, WEXITED | WNOHANG | WNOWAIT);  // its number stays taken
    return result == 0 ? info.si_pid == leader_ : errno == ECHILD;
  }

  /// Kills whoever is left, waits for the leader and returns its wait status: 0 if this process ignores SIGCHLD, so
  /// that there is none to give. Then the missing result will show.
  int end() {
    ::kill(-leader_, SIGKILL);
    int status = 0;
    while (::waitpid(leader_, &status, 0) < 0) {
      if (errno == EINTR) continue;
      status = 0;
      break;
    }
    leader_ = -1;
    return status;
  }

 private:
  pid_t leader_ = -1;
};

/// What a program printed. If that is too long, only the beginning and the end are kept.
class Text {
 public:
  void add(std::string_view more) {
    const std::size_t to_head = std::min(more.size(), kKept - head_.size());
    head_ += more.substr(0, to_head);
    tail_ += more.substr(to_head);
    if (tail_.size() > 2 * kKept) shorten();
  }
  std::string take() {
    if (tail_.size() > kKept) shorten();
    if (dropped_ > 0) head_ += "\n[" + std::to_string(dropped_) + " bytes left out]\n";
    return std::move(head_) + tail_;
  }

 private:
  static constexpr std::size_t kKept = kKeptOutput / 2;
  void shorten() {
    dropped_ += tail_.size() - kKept;
    tail_.erase(0, tail_.size() - kKept);
  }
  std::string head_, tail_;
  std::size_t dropped_ = 0;
};

/// Collects what comes until the writers are gone, or the leader is and there is no more: what it has started may hold
/// the pipe open for ever. False if the deadline comes first.
bool collect(int from, const Group& group, Clock::time_point deadline, Text& text) {
  constexpr milliseconds kLook{10};
  std::array<char, 4096> buffer;
  for (;;) {
    const bool ended = group.has_ended();  // before the look into the pipe, which then has all it wrote
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) return false;
    pollfd waited{from, POLLIN, 0};
    const int ready = ::poll(&waited, 1, ended ? 0 : static_cast<int>(std::min(left, kLook).count()));
    if (ready == 0 && ended) return true;
    if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
    if (ready < 0) return false;
    const ssize_t got = ::read(from, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return true;
    text.add({buffer.data(), static_cast<std::size_t>(got)});
  }
}

bool wait_for(const Group& group, Clock::time_point deadline) {
  while (!group.has_ended()) {
    if (Clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return true;
}

}  // namespace

Outcome run(const Command& command) {
  Outcome outcome;
  Pipe life, printed;
  if ((outcome.code = open_pipe(life)) != 0 || (outcome.code = open_pipe(printed)) != 0) return outcome;
  // The supervisor would only say that it found nothing to run.
  if (::access(command.arguments.front().c_str(), X_OK) != 0) {
    outcome.code = errno;
    return outcome;
  }
  Group group;
  outcome.code = group.start(command, life.read.get(), printed.write.get());
  if (outcome.code != 0) return outcome;
  printed.write.close();
  const Clock::time_point deadline = Clock::now() + command.limit;
  Text text;
  const bool in_time = collect(printed.read.get(), group, deadline, text) && wait_for(group, deadline);
  const int status = group.end();
  outcome.output = text.take();
  if (!in_time) {
    outcome.end = Outcome::End::timed_out;
    return outcome;
  }
  // A shell adds 128 to the signal that ended a program.
  const int code = WIFSIGNALED(status) ? WTERMSIG(status) + 128 : WEXITSTATUS(status);
  const bool by_signal = code > 128 && code <= 128 + SIGRTMAX;
  outcome.end = by_signal ? Outcome::End::signalled : Outcome::End::exited;
  outcome.code = by_signal ? code - 128 : code;
  return outcome;
}

}  // namespace jitconv::host
