// A loop over a range in as many threads as the machine has. For work of milliseconds and more: threads are started
// anew every time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace jitconv::check {

/// Calls body(begin, end) on disjoint pieces that cover [0, count), each `grain` or more long but for the last. The
/// first exception is rethrown after all threads have ended.
template <typename Body>
void parallel_for(std::int64_t count, std::int64_t grain, const Body& body) {
  const std::int64_t most = std::max<std::int64_t>(1, count / std::max<std::int64_t>(1, grain));
  const std::int64_t pieces = std::min<std::int64_t>(most, std::max(1u, std::thread::hardware_concurrency()));
  if (pieces == 1) {
    if (count > 0) body(std::int64_t{0}, count);
    return;
  }
  std::mutex mutex;
  std::exception_ptr error;
  const std::int64_t step = count / pieces, rest = count % pieces;
  const auto run = [&](std::int64_t piece) {
    const std::int64_t begin = piece * step + std::min(piece, rest);
    try {
      body(begin, begin + step + (piece < rest ? 1 : 0));
    } catch (...) {
      const std::lock_guard<std::mutex> lock(mutex);
      if (!error) error = std::current_exception();
    }
  };
  std::vector<std::thread> workers;
  workers.reserve(static_cast<std::size_t>(pieces - 1));
  std::int64_t dealt = 0;
  try {
    for (; dealt < pieces - 1; ++dealt) workers.emplace_back(run, dealt);
  } catch (const std::exception&) {  // no more threads, or no memory for them
  }
  // The last piece is this thread's, and so are those that no other could be started for.
  for (; dealt < pieces; ++dealt) run(dealt);
  for (std::thread& worker : workers) worker.join();
  if (error) std::rethrow_exception(error);
}

}  // namespace jitconv::check
