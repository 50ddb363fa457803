// How long something takes on this machine, by the clock on the wall and by that of the core that did it.
#pragma once

#include <ctime>

#include "runtime/stopwatch.h"

namespace jitconv::tools {

using runtime::Stopwatch;

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
