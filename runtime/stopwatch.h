// How long something takes by the clock on the wall.
#pragma once

#include <chrono>

namespace jitconv::runtime {

/// Runs from its construction on.
class Stopwatch {
 public:
  double ms() const { return std::chrono::duration<double, std::milli>(Clock::now() - begin_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin_ = Clock::now();
};

}  // namespace jitconv::runtime
