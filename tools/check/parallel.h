// A loop over a range in as many threads as the machine has. For work of milliseconds and more: threads are started
// anew every time.
#pragma once

#include <algorithm>
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
  const std::int64_t pieces = std::max<std::int64_t>(1, count / std::max<std::int64_t>(1, grain));
  const std::int64_t threads = std::min<std::int64_t>(pieces, std::max(1u, std::thread::hardware_concurrency()));
  if (threads == 1) {
    if (count > 0) body(std::int64_t{0}, count);
    return;
  }
  std::mutex mutex;
  std::exception_ptr error;
  std::vector<std::thread> workers;
  const std::int64_t step = count / threads, rest = count % threads;
  std::int64_t begin = 0;
  for (std::int64_t i = 0; i < threads; ++i) {
    const std::int64_t end = begin + step + (i < rest ? 1 : 0);
    workers.emplace_back([&, begin, end] {
      try {
        body(begin, end);
      } catch (...) {
        const std::lock_guard<std::mutex> lock(mutex);
        if (!error) error = std::current_exception();
      }
    });
    begin = end;
  }
  for (std::thread& worker : workers) worker.join();
  if (error) std::rethrow_exception(error);
}

}  // namespace jitconv::check
