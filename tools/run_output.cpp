// A signal handler may do next to nothing, so it wakes a thread that does the rest while the work goes on. The same
// thread redraws the progress line once a second.
#include "tools/run_output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "tools/tool.h"

namespace jitconv::tools {
namespace {

constexpr std::array<int, 3> kSignals = {SIGINT, SIGTERM, SIGHUP};

/// Where the handler writes the signal's number.
std::atomic<int> wake{-1};

extern "C" void on_signal(int number) {
  const int saved = errno;
  const auto byte = static_cast<unsigned char>(number);
  [[maybe_unused]] const ssize_t written = ::write(wake.load(), &byte, 1);  // a full pipe wakes as well
  errno = saved;
}

/// The first signal goes to the handler, a second ends the process at once. What is ignored (nohup) stays so.
void install_handlers() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
  for (const int number : kSignals) {
    struct sigaction before {};
    if (::sigaction(number, nullptr, &before) == 0 && before.sa_handler != SIG_IGN)
      ::sigaction(number, &action, nullptr);
  }
}

void restore_handlers() {
  for (const int number : kSignals) {
    struct sigaction now {};
    if (::sigaction(number, nullptr, &now) == 0 && now.sa_handler == on_signal) std::signal(number, SIG_DFL);
  }
}

}  // namespace

RunOutput::RunOutput(Settings settings) : settings_(std::move(settings)), progress_(settings_.quiet, settings_.total) {
  // A reader that leaves is an error of the next write, not the end of the process: the JSON is still to be written.
  std::signal(SIGPIPE, SIG_IGN);
  if (::pipe2(pipe_.data(), O_CLOEXEC) != 0)
    throw ToolError(kCheckFailed, fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  wake = pipe_[1];
  watcher_ = std::thread([this] { watch(); });
  install_handlers();
}

RunOutput::~RunOutput() {
  {
    const std::lock_guard lock(mutex_);
    if (!ended_) keep_rows("ended early");
  }
  stop_watching();
}

void RunOutput::print(const std::string& text) {
  const std::lock_guard lock(mutex_);
  if (ended_ || !settings_.text) return;
  progress_.clear();
  write_output("-", text);
}

void RunOutput::begin(const std::string& what) {
  const std::lock_guard lock(mutex_);
  if (!ended_) progress_.begin(what);
}

void RunOutput::add(const std::string& row, const json::Value& json, std::string closing) {
  const std::lock_guard lock(mutex_);
  if (ended_) return;
  json_rows_.push_back(json);
  closing_ = std::move(closing);
  progress_.clear();
  progress_.done();
  if (settings_.text) write_output("-", row);
}

void RunOutput::end() {
  const std::lock_guard lock(mutex_);
  if (!ended_) close(/*interrupted=*/false);
}

void RunOutput::watch() {
  for (;;) {
    pollfd waited{pipe_[0], POLLIN, 0};
    const int ready = ::poll(&waited, 1, 1000);
    if (ready < 0 && errno == EINTR) continue;
    const std::lock_guard lock(mutex_);
    if (ready == 0) {
      if (!ended_) progress_.draw();
      continue;
    }
    unsigned char number = 0;
    if (::read(pipe_[0], &number, 1) != 1) return;
    if (!ended_) keep_rows("interrupted");
    std::signal(number, SIG_DFL);
    ::kill(::getpid(), number);
  }
}

void RunOutput::stop_watching() {
  if (!watcher_.joinable()) return;
  restore_handlers();
  wake = -1;
  ::close(pipe_[1]);
  watcher_.join();
  ::close(pipe_[0]);
}

void RunOutput::close(bool interrupted) {
  ended_ = true;
  progress_.clear();
  // The JSON first: a reader of the text that has left does not lose it.
  if (settings_.json != nullptr) {
    settings_.head["interrupted"] = interrupted;
    settings_.head[settings_.rows] = json_rows_;
    settings_.json->write(json::render(settings_.head));
  }
  if (settings_.text) write_output("-", closing_);
}

void RunOutput::keep_rows(const std::string& why) {
  try {
    close(/*interrupted=*/true);
  } catch (const ToolError& error) {
    write_error(fmt::format("{}: {}\n", settings_.program, error.what()));
  }
  write_error(
      fmt::format("{}: {} after {} of {} convolutions\n", settings_.program, why, json_rows_.size(), settings_.total));
}

}  // namespace jitconv::tools
