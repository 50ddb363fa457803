// What happens before what, for the threads of one block: a vector clock per thread, in ticks of one counter that only
// grows while a launch runs. An access carries the tick its thread had; another thread's access is ordered after it if
// that thread has since learned of the tick, through a barrier or another meeting of threads. Knows nothing of memory.
//
// Besides threads there are agents: what writes on nobody's stack, say the copies that complete on one mbarrier.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace jitconv::host {

using Tick = std::int32_t;

/// Compared with memory's marks at every access; a copy of what Clocks holds, good until the thread's clock changes.
struct View {
  std::uint32_t thread = 0;
  std::uint32_t warp_bit = 0, lane_bit = 0;  ///< 1 << thread / 32 and 1 << thread % 32
  Tick now = 0;                              ///< mark of this thread's accesses
  Tick ordered = 0;                          ///< the last full barrier: accesses up to it are ordered for all threads
  Tick first = 0;                            ///< no access of this block has a smaller tick
  const Tick* seen = nullptr;                ///< per thread and agent, the tick up to which its accesses are ordered
  const Tick* fenced = nullptr;              ///< of these, the tick up to which the async proxy sees writes

  bool after(std::uint32_t other, Tick tick) const { return tick <= ordered || other == thread || tick <= seen[other]; }
};

/// An object that carries order from those who arrive at it to those who wait for it: an mbarrier, a named barrier.
class MeetingPoint {
 public:
  explicit MeetingPoint(std::size_t threads_and_agents) : seen_(threads_and_agents), fenced_(threads_and_agents) {}

 private:
  friend class Clocks;
  std::vector<Tick> seen_, fenced_;
  std::uint32_t low_ = 0, high_ = 0;  // what may differ from zero lies in [low_, high_)
};

class Clocks {
 public:
  Clocks(std::uint32_t threads, std::uint32_t agents);

  /// No thread has done anything. All ticks of earlier blocks are smaller than View::first from here on.
  void start_block();
  /// True once ticks are running out: memory's marks must be cleared before restart() and the next start_block().
  bool exhausted() const { return counter_ > kLargest / 2; }
  void restart();

  View view(std::uint32_t thread) const;
  /// What all of `count` threads from `first` on know: nothing counts as their own. Good until a clock of theirs
  /// changes. Made again only if one did since the last call: multiplications that a warpgroup issues in a row share
  /// it.
  View common_view(std::uint32_t first, std::uint32_t count);
  Tick first() const { return first_; }

  /// All threads of the block meet.
  void meet_all();
  /// These meet, and nobody else learns of it.
  void meet(std::span<const std::uint32_t> threads);

  /// What `thread` did and knows becomes known to those who acquire `point` from now on.
  void release(std::uint32_t thread, MeetingPoint& point);
  /// `thread` learns what was released into `point` so far.
  void acquire(std::uint32_t thread, const MeetingPoint& point);
  /// A mark for accesses of `agent` (counted after the threads) that those who acquire `point` from now on know of.
  Tick release_agent(std::uint32_t agent, MeetingPoint& point);

  /// Who acquires `to` from now on learns what was released into `from` so far.
  void merge(const MeetingPoint& from, MeetingPoint& to) const;
  /// A mark for accesses of an agent that nobody knows of yet.
  Tick tick_of_agent() { return ++counter_; }
  /// `thread` knows of what `agent` did up to the tick.
  void acquire_agent(std::uint32_t thread, std::uint32_t agent, Tick tick);
  /// The agent's place in View::seen.
  std::uint32_t column(std::uint32_t agent) const { return threads_ + agent; }

  /// fence.proxy.async: the writes that `thread` knows of, its own included, can be seen by the async proxy.
  void fence_async_proxy(std::uint32_t thread);

  std::uint32_t threads() const { return threads_; }
  std::uint32_t agents() const { return agents_; }

  /// Larger than every tick: the mark of bytes an asynchronous operation may write at any time.
  static constexpr Tick kPending = INT32_MAX;

 private:
  static constexpr Tick kLargest = kPending - 1;
  struct Row {  // entries outside [low, high) are at most the last full barrier's tick
    std::uint32_t low, high;
    Tick barrier;  // `ordered_` when low and high were set
  };
  Tick* seen(std::uint32_t thread) { return seen_.data() + std::size_t{thread} * columns_; }
  Tick* fenced(std::uint32_t thread) { return fenced_.data() + std::size_t{thread} * columns_; }
  Row& row(std::uint32_t thread);
  void learn(std::uint32_t thread, const Tick* seen, const Tick* fenced, std::uint32_t low, std::uint32_t high);
  /// The thread's clock is not what it was.
  void change(std::uint32_t thread) { changed_[thread] = ++changes_; }
  struct Common {  // what some threads know, as of a change
    std::uint32_t count = 0;
    std::uint64_t as_of = 0;
    std::vector<Tick> seen, fenced;
  };

  std::uint32_t threads_, agents_, columns_;
  Tick counter_ = 0, first_ = 0, ordered_ = 0;
  std::vector<Tick> now_;                           // of each thread
  std::vector<Tick> seen_;                          // [thread][thread or agent]
  std::vector<Tick> fenced_;                        // the same
  bool fences_used_ = false;                        // until then fenced_ is left alone
  std::uint32_t acquired_low_, acquired_high_ = 0;  // columns that acquire_agent() raised
  std::vector<Row> rows_;
  std::vector<Tick> scratch_seen_, scratch_fenced_;
  std::uint64_t changes_ = 0;
  std::vector<std::uint64_t> changed_;  // of each thread, its last change
  std::vector<Common> common_;          // by the first thread
};

}  // namespace jitconv::host
