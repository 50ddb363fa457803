// How long something takes on this machine, by the clock on the wall and by that of the core that did it.
#pragma once

#include <chrono>
#include <ctime>

namespace jitconv::tools {

/// Runs from its construction on.
class Stopwatch {
 public:
  double ms() const { return std::chrono::duration<double, std::milli>(Clock::now() - begin_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin_ = Clock::now();
};

/// The same in time that the calling thread had a core, whatever else the machine does.
class CpuStopwatch {
 public:
  double ms() const { return now() - begin_; }

 private:
  static double now() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) * 1e-6;
  }
  double begin_ = now();
};

}  // namespace jitconv::tools
