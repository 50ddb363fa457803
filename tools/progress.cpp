// The text of the progress line, and where it goes.
#include "tools/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "tools/output.h"

namespace jitconv::tools {
namespace {

std::string time_text(double seconds) {
  const auto whole = static_cast<long>(std::lround(seconds));
  return whole < 3600 ? fmt::format("{}:{:02}", whole / 60, whole % 60)
                      : fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

std::size_t terminal_columns() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

std::string progress_text(std::size_t done, std::size_t total, const std::string& what, double seconds,
                          std::size_t columns) {
  constexpr std::size_t kBar = 20;
  const std::size_t filled = total == 0 ? kBar : std::min(kBar, kBar * done / total);
  std::string text = fmt::format("[{}{}] {}/{} {}, {}", std::string(filled, '#'), std::string(kBar - filled, '-'), done,
                                 total, what, time_text(seconds));
  if (done > 0 && done < total) {
    const double left = seconds / static_cast<double>(done) * static_cast<double>(total - done);
    text += fmt::format(", about {} left", time_text(left));
  }
  return text.substr(0, columns);
}

Progress::Progress(bool quiet, std::size_t total) : enabled_(!quiet && isatty(STDERR_FILENO) == 1), total_(total) {}

void Progress::begin(const std::string& what) {
  what_ = what;
  draw();
}

void Progress::draw() {
  if (!enabled_ || what_.empty()) return;
  // A line as wide as the terminal would leave the cursor on the next one.
  const std::size_t columns = terminal_columns() - 1;
  write_error("\r\033[K" + progress_text(done_, total_, what_, watch_.ms() * 1e-3, columns));
  shown_ = true;
}

void Progress::clear() {
  if (!shown_) return;
  write_error("\r\033[K");
  shown_ = false;
}

}  // namespace jitconv::tools
