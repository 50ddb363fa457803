// The line on a terminal that says how far a run is and how long it will take. Not the rows of the run.
#pragma once

#include <cstddef>
#include <string>

#include "tools/stopwatch.h"

namespace jitconv::tools {

/// `[####------] 12/44 A_tf32, 1:20, about 3:33 left`: a bar, how many of how many are done, what is being done, the
/// time it took so far and, once something is done, the time left at the same pace. No wider than `columns`.
std::string progress_text(std::size_t done, std::size_t total, const std::string& what, double seconds,
                          std::size_t columns);

/// A progress line on stderr that overwrites itself; silent unless stderr is a terminal.
class Progress {
 public:
  Progress(bool quiet, std::size_t total);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// One of `total` begins, or takes its next step.
  void begin(const std::string& what);
  void done() { ++done_; }
  /// Draws the line again, with the present time.
  void draw();
  /// Removes the line, so that something else can be printed.
  void clear();

 private:
  bool enabled_;
  std::size_t total_, done_ = 0;
  std::string what_;
  bool shown_ = false;
  Stopwatch watch_;
};

}  // namespace jitconv::tools
