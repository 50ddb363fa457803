// What to say when no thread of a block can run and not all have returned. Who waits only for threads that have
// returned is let go after the finding, as a GPU would; otherwise the block is given up.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "host/block.h"

namespace jitconv::host {

void Block::resolve_stuck() {
  if (!events_.land() && !release_past_returned()) report_stuck();
}

bool Block::release_past_returned() {
  using State = Thread::State;
  for (std::uint32_t i = 0; i < count_; ++i) {
    const Thread& waiting = threads_[i];
    if (waiting.state != State::at_exchange) continue;
    const std::uint32_t warp = i / 32, here = lanes_with_mask_of(waiting);
    const std::uint32_t missing = waiting.mask & lanes_of(warp) & ~here;
    std::uint32_t returned = 0;
    for (std::uint32_t m = missing; m != 0; m &= m - 1)
      if (threads_[warp * 32 + static_cast<std::uint32_t>(std::countr_zero(m))].state == State::returned)
        returned |= m & (~m + 1);
    if (missing != returned) continue;
    const std::uint32_t first = warp * 32 + static_cast<std::uint32_t>(std::countr_zero(missing));
    log({Rule::divergent_barrier, waiting.pc, first, "",
         fmt::format("thread {} returned without coming to this warp operation of mask {:#x}, where thread {} waits",
                     first, waiting.mask, i),
         nullptr});
    complete_exchange(warp, here);
    return true;
  }
  for (std::uint32_t id = 0; id < arrived_.size(); ++id) {
    if (arrived_[id] != unfinished_) continue;  // some wait elsewhere
    std::uint32_t returned = count_, waiting = count_;
    for (std::uint32_t i = count_; i-- > 0;) (threads_[i].state == State::returned ? returned : waiting) = i;
    if (returned == count_ || threads_[waiting].barrier_threads != count_) continue;
    log({Rule::divergent_barrier, threads_[waiting].pc, returned, "",
         fmt::format("thread {} returned without coming to this barrier, where {} of {} threads wait", returned,
                     arrived_[id], count_),
         nullptr});
    release_barrier(id);
    return true;
  }
  return false;
}

std::string Block::what_is_missing(const Thread& waiting) const {
  if (waiting.state == Thread::State::at_phase) return events_.missing(waiting.barrier);
  return events_.missing_registers(waiting.index / kWarpgroupThreads, *waiting.call);
}

// Every other place where threads wait, in words, with one of the threads that do.
std::string Block::other_waits(std::uint32_t than) const {
  std::string text;
  std::vector<std::pair<Thread::State, const void*>> named{{threads_[than].state, threads_[than].pc}};
  for (std::uint32_t i = 0; i < count_; ++i) {
    const Thread& thread = threads_[i];
    const std::pair key(thread.state, thread.pc);
    if (thread.state == Thread::State::returned || std::find(named.begin(), named.end(), key) != named.end()) continue;
    named.push_back(key);
    text += fmt::format("; thread {} waits in line {}", i, log_.line(thread.pc));
    if (thread.state == Thread::State::at_phase || thread.state == Thread::State::at_registers)
      text += " for " + what_is_missing(thread);
  }
  return text;
}

void Block::report_stuck() {
  using State = Thread::State;
  given_up_ = true;
  // A phase that does not complete, or registers that nobody gives back, hold up everybody else.
  for (const State state : {State::at_phase, State::at_registers}) {
    for (std::uint32_t i = 0; i < count_; ++i) {
      const Thread& waiting = threads_[i];
      if (waiting.state != state) continue;
      log({Rule::divergent_barrier, waiting.pc, i, "",
           fmt::format("deadlock: thread {} waits for {}{}", i, what_is_missing(waiting), other_waits(i)), nullptr});
      return;
    }
  }
  // Named is the first thread that waits, and whom it waits for: one that waits elsewhere rather than one that
  // returned.
  const auto together = [](const Thread& a, const Thread& b) {
    if (a.state != b.state) return false;
    if (a.state == State::at_warpgroup) return a.index / kWarpgroupThreads == b.index / kWarpgroupThreads;
    return a.state == State::at_barrier ? a.barrier == b.barrier : a.mask == b.mask && a.index / 32 == b.index / 32;
  };
  for (std::uint32_t i = 0; i < count_; ++i) {
    const Thread& waiting = threads_[i];
    if (waiting.state == State::returned) continue;
    const char* const operation = waiting.state == State::at_barrier    ? "barrier"
                                  : waiting.state == State::at_exchange ? "warp operation"
                                                                        : "warpgroup operation";
    for (const bool look_for_returned : {false, true}) {
      for (std::uint32_t j = 0; j < count_; ++j) {
        const Thread& missing = threads_[j];
        const bool in_mask = j / 32 == i / 32 && (waiting.mask >> (j % 32) & 1u) != 0;
        if (together(waiting, missing) || (missing.state == State::returned) != look_for_returned) continue;
        if (waiting.state == State::at_exchange && !in_mask) continue;
        if (waiting.state == State::at_warpgroup && j / kWarpgroupThreads != i / kWarpgroupThreads) continue;
        const std::string why = look_for_returned ? "has returned" : "waits at line {line}";
        log({Rule::divergent_barrier, waiting.pc, j, "",
             fmt::format("deadlock: thread {} waits at this {} for thread {}, which {}", i, operation, j, why),
             look_for_returned ? nullptr : missing.pc});
        return;
      }
    }
    log({Rule::divergent_barrier, waiting.pc, i, "",
         fmt::format("deadlock: all {} threads wait at barrier {}, which takes {}", arrived_[waiting.barrier],
                     waiting.barrier, waiting.barrier_threads),
         nullptr});
    return;
  }
}

}  // namespace jitconv::host
