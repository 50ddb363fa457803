// What becomes of writes that the kernel answers with a signal, and of writes that a signal interrupts.
#include "cache/write_all.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "../../support/file_size_limit.h"

namespace jitconv::cache {
namespace {

class Pipe {
 public:
  Pipe() { EXPECT_EQ(::pipe(ends_.data()), 0); }
  ~Pipe() {
    close_reader();
    ::close(ends_[1]);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  int reader() const { return ends_[0]; }
  int writer() const { return ends_[1]; }
  void close_reader() {
    if (ends_[0] >= 0) ::close(ends_[0]);
    ends_[0] = -1;
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

TEST(WriteOnce, APartIsAnErrorAndALimitEndsNoProcess) {
  std::string name = testing::TempDir() + "write-once-XXXXXX";
  const int file = ::mkstemp(name.data());
  ASSERT_GE(file, 0);
  ::unlink(name.c_str());
  std::vector<int> errors;
  {
    const test::FileSizeLimit limit(6);
    for (const char* bytes : {"abcd", "efgh", "ijkl"}) errors.push_back(write_once(file, bytes));
  }
  EXPECT_EQ(errors, (std::vector<int>{0, EIO, EFBIG}));
  EXPECT_EQ(::lseek(file, 0, SEEK_END), 6);
  ::close(file);
}

TEST(WriteOnce, APipeWithoutAReaderEndsNoProcess) {
  Pipe pipe;
  pipe.close_reader();
  EXPECT_EQ(write_once(pipe.writer(), "line\n"), EPIPE);
  EXPECT_EQ(write_all(pipe.writer(), "line\n"), EPIPE);
}

TEST(WriteOnce, ASignalOfTheProgramStaysPending) {
  sigset_t signals, before, pending;
  sigemptyset(&signals);
  sigaddset(&signals, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &signals, &before);
  raise(SIGPIPE);
  Pipe pipe;
  pipe.close_reader();
  EXPECT_EQ(write_once(pipe.writer(), "line\n"), EPIPE);
  sigpending(&pending);
  EXPECT_EQ(sigismember(&pending, SIGPIPE), 1);
  const timespec now{};
  sigtimedwait(&signals, nullptr, &now);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST(WriteOnce, AnInterruptedWriteIsTriedAgain) {
  struct sigaction nothing {
  }, before{};
  nothing.sa_handler = [](int) {};  // without SA_RESTART
  ASSERT_EQ(sigaction(SIGUSR1, &nothing, &before), 0);
  const Pipe pipe;
  const std::string full(static_cast<std::size_t>(::fcntl(pipe.writer(), F_GETPIPE_SZ)), 'x');
  ASSERT_EQ(write_once(pipe.writer(), full), 0);
  std::thread other([&, writing = pthread_self()] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    pthread_kill(writing, SIGUSR1);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::string taken(full.size(), '\0');
    EXPECT_GT(::read(pipe.reader(), taken.data(), taken.size()), 0);
  });
  EXPECT_EQ(write_once(pipe.writer(), "line\n"), 0);
  other.join();
  sigaction(SIGUSR1, &before, nullptr);
}

}  // namespace
}  // namespace jitconv::cache
