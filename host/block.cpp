// The scheduler of a block. Threads run until they meet others, in an order drawn from the seed; with counting modules
// the lanes of a warp instead run basic block by basic block, always the lowest address first, which is how a GPU
// brings lanes that took different branches together again.
#include "host/block.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace jitconv::host {
namespace {

constexpr std::size_t kSeenBytes = 64;
constexpr std::uint32_t kMostExchanged = 16;  // bytes of one lane
static_assert(sizeof(jitconv_host_thread) <= kSeenBytes);

}  // namespace

Block::Block(std::uint32_t threads, const Kernel& kernel, Clocks& clocks, FindingLog& log, Random& random,
             BlockEvents& events)
    : count_(threads),
      kernel_(kernel),
      clocks_(clocks),
      log_(log),
      random_(random),
      events_(events),
      stacks_(threads),
      threads_(std::make_unique<Thread[]>(threads)) {
  ready_.reserve(threads);
  members_.reserve(threads);
  for (std::uint32_t i = 0; i < threads; ++i) {
    Thread& thread = threads_[i];
    thread.index = i;
    thread.block = this;
    thread.stack = stacks_.lowest(i);
    thread.seen = reinterpret_cast<jitconv_host_thread*>(thread.stack + Stacks::kBytes - kSeenBytes);
  }
}

void Block::main_of(void* argument) {
  Thread& thread = *static_cast<Thread*>(argument);
  thread.block->kernel_.entry(thread.block->kernel_.parameters);
  thread.state = Thread::State::returned;
  thread.fiber.finish();
}

bool Block::run(const std::array<std::uint32_t, 3>& index, const std::array<std::uint32_t, 3>& grid,
                Counters& counters) {
  index_ = index;
  given_up_ = false;
  unfinished_ = count_;
  arrived_.fill(0);
  exchanging_.fill(0);
  at_warpgroup_.fill(0);
  ready_.clear();
  clocks_.start_block();
  for (std::uint32_t i = 0; i < count_; ++i) {
    Thread& thread = threads_[i];
    // Neighbours' stacks start at different cache sets, or 256 of them would compete for a few.
    const std::size_t shift = i % 16 * 256;
    thread.fiber.start(thread.stack, Stacks::kBytes - kSeenBytes - shift, &Block::main_of, &thread);
    *thread.seen = {{i, 0, 0}, {index[0], index[1], index[2]}, {count_, 1, 1}, {grid[0], grid[1], grid[2]}};
    thread.basic_block = nullptr;
    make_ready(thread);
  }
  while (unfinished_ > 0 && !given_up_) {
    if (kernel_.counts)
      run_warps(counters);
    else
      run_random();
    if (unfinished_ > 0 && !given_up_) resolve_stuck();
  }
  running_ = nullptr;
  if (!given_up_) events_.end();
  return !given_up_;
}

void Block::make_ready(Thread& thread) {
  thread.state = Thread::State::ready;
  ready_.push_back(thread.index);
}

void Block::run_random() {
  while (!ready_.empty() && !given_up_) {
    std::uint32_t& drawn = ready_[random_.below(static_cast<std::uint32_t>(ready_.size()))];
    Thread& thread = threads_[drawn];
    drawn = ready_.back();
    ready_.pop_back();
    run_thread(thread);
  }
}

void Block::run_warps(Counters& counters) {
  const std::uint32_t warps = (count_ + 31) / 32;
  const auto ready_lanes = [this](std::uint32_t warp) {
    std::uint32_t lanes = 0;
    for (std::uint32_t i = warp * 32; i < std::min(count_, warp * 32 + 32); ++i)
      if (threads_[i].state == Thread::State::ready) lanes |= 1u << (i % 32);
    return lanes;
  };
  for (bool any = true; any && !given_up_;) {
    any = false;
    ready_.clear();  // which is not looked at here
    const std::uint32_t first = random_.below(warps);
    for (std::uint32_t i = 0; i < warps && !given_up_; ++i) {
      const std::uint32_t warp = (first + i) % warps;
      for (std::uint32_t lanes; (lanes = ready_lanes(warp)) != 0 && !given_up_;) {
        any = true;
        const void* lowest = reinterpret_cast<const void*>(~std::uintptr_t{0});
        for (std::uint32_t l = lanes; l != 0; l &= l - 1)
          lowest = std::min(lowest, threads_[warp * 32 + static_cast<std::uint32_t>(std::countr_zero(l))].basic_block,
                            std::less<const void*>());
        for (std::uint32_t l = lanes; l != 0 && !given_up_; l &= l - 1) {
          Thread& thread = threads_[warp * 32 + static_cast<std::uint32_t>(std::countr_zero(l))];
          if (thread.basic_block != lowest) continue;
          requests_.begin_lane();
          run_thread(thread);
        }
        requests_.flush(counters);
      }
    }
  }
  ready_.clear();
}

void Block::run_thread(Thread& thread) {
  running_ = &thread;
  running_stack_ = reinterpret_cast<std::uintptr_t>(thread.stack);
  *kernel_.current_thread = thread.seen;
  view_ = clocks_.view(thread.index);
  thread.fiber.resume();
  while (violation_) {
    log(std::move(*violation_));
    violation_.reset();
    if (fatal_) given_up_ = true;
    if (given_up_) return;
    thread.fiber.resume();
  }
  switch (thread.state) {
    case Thread::State::returned:
      --unfinished_;
      break;
    case Thread::State::at_barrier:
      arrive_at_barrier(thread);
      break;
    case Thread::State::at_exchange:
      arrive_at_exchange(thread);
      break;
    case Thread::State::at_warpgroup:
      arrive_at_warpgroup(thread);
      break;
    case Thread::State::at_phase:
    case Thread::State::at_registers:
      break;
    case Thread::State::ready:
      break;  // between two basic blocks
  }
}

void Block::log(Violation&& violation, bool fatal) {
  log_.add(violation, index_);
  if (fatal || log_.full()) given_up_ = true;
}

// On the fibers.

void Block::barrier(std::uint32_t id, std::uint32_t threads, const void* pc) {
  Thread& thread = *running_;
  thread.state = Thread::State::at_barrier;
  thread.pc = pc;
  thread.barrier = id;
  thread.barrier_threads = threads == 0 ? count_ : threads;
  thread.fiber.yield();
}

void Block::warp_exchange(std::uint32_t mask, const void* mine, void* all, std::uint32_t bytes, const void* pc) {
  Thread& thread = *running_;
  thread.state = Thread::State::at_exchange;
  thread.pc = pc;
  thread.mask = mask;
  thread.mine = mine;
  thread.all = all;
  thread.bytes = bytes;
  thread.fiber.yield();
}

void Block::wait_phase(std::uint32_t object, std::uint32_t parity, const void* pc) {
  Thread& thread = *running_;
  thread.state = Thread::State::at_phase;
  thread.pc = pc;
  thread.barrier = object;
  thread.parity = parity;
  thread.fiber.yield();
}

void Block::pass_phase(std::uint32_t object, std::uint32_t parity) {
  for (std::uint32_t i = 0; i < count_; ++i) {
    Thread& thread = threads_[i];
    if (thread.state == Thread::State::at_phase && thread.barrier == object && thread.parity == parity)
      make_ready(thread);
  }
}

void Block::warpgroup(const WarpgroupCall& call) {
  Thread& thread = *running_;
  thread.state = Thread::State::at_warpgroup;
  thread.pc = call.pc;
  thread.call = &call;
  thread.fiber.yield();
}

void Block::basic_block(const void* pc) {
  Thread& thread = *running_;
  thread.basic_block = pc;
  thread.fiber.yield();
}

void Block::report(Violation&& violation, bool fatal) {
  violation_ = std::move(violation);
  fatal_ = fatal;
  running_->fiber.yield();
}

// Meetings, on the scheduler's stack.

void Block::check_same_line(std::span<const std::uint32_t> threads, const char* operation) {
  const Thread& reference = threads_[threads.front()];
  for (const std::uint32_t t : threads) {
    const Thread& thread = threads_[t];
    // Compilers copy code, so different addresses may be one line.
    if (thread.pc == reference.pc || log_.line(thread.pc) == log_.line(reference.pc)) continue;
    log({Rule::divergent_barrier, thread.pc, t, "",
         fmt::format("thread {} comes to this {} while thread {} of the same meeting comes to that of line {{line}}", t,
                     operation, reference.index),
         reference.pc});
    return;
  }
}

void Block::arrive_at_barrier(const Thread& thread) {
  const std::uint32_t id = thread.barrier;
  if (id >= arrived_.size()) {
    log({Rule::divergent_barrier, thread.pc, thread.index, "", fmt::format("barrier {}: there are 16", id), nullptr});
    given_up_ = true;
    return;
  }
  if (++arrived_[id] < thread.barrier_threads) return;
  release_barrier(id);
}

void Block::release_barrier(std::uint32_t id) {
  members_.clear();
  bool full = true;
  for (std::uint32_t i = 0; i < count_; ++i) {
    const Thread& thread = threads_[i];
    if (thread.state != Thread::State::at_barrier || thread.barrier != id) continue;
    members_.push_back(i);
    full = full && thread.barrier_threads == count_;
    if (const Thread& reference = threads_[members_.front()]; thread.barrier_threads != reference.barrier_threads)
      log({Rule::divergent_barrier, thread.pc, i, "",
           fmt::format("thread {} takes barrier {} to be for {} threads, thread {} in line {{line}} for {}", i, id,
                       thread.barrier_threads, reference.index, reference.barrier_threads),
           reference.pc});
  }
  check_same_line(members_, "barrier");
  arrived_[id] = 0;
  if (full)
    clocks_.meet_all();
  else
    clocks_.meet(members_);
  for (const std::uint32_t i : members_) make_ready(threads_[i]);
}

void Block::arrive_at_warpgroup(const Thread& thread) {
  const std::uint32_t warpgroup = thread.index / kWarpgroupThreads;
  if ((warpgroup + 1) * kWarpgroupThreads > count_) {
    log({Rule::divergent_barrier, thread.pc, thread.index, "",
         fmt::format("thread {} is in no warpgroup: the block has {} threads, {} of them in whole ones", thread.index,
                     count_, warpgroup * kWarpgroupThreads),
         nullptr},
        true);
    return;
  }
  if (++at_warpgroup_[warpgroup] == kWarpgroupThreads) complete_warpgroup(warpgroup);
}

void Block::complete_warpgroup(std::uint32_t warpgroup) {
  at_warpgroup_[warpgroup] = 0;
  members_.clear();
  std::array<const WarpgroupCall*, kWarpgroupThreads> calls{};
  for (std::uint32_t i = 0; i < kWarpgroupThreads; ++i) {
    members_.push_back(warpgroup * kWarpgroupThreads + i);
    calls[i] = threads_[members_[i]].call;
  }
  check_same_line(members_, "warpgroup operation");
  for (std::uint32_t i = 1; i < kWarpgroupThreads; ++i) {
    if (calls[i]->kind == calls[0]->kind) continue;
    given_up_ = true;  // check_same_line() has said why
    return;
  }
  const bool done = events_.warpgroup(warpgroup, calls);
  for (const std::uint32_t i : members_) {
    if (done)
      make_ready(threads_[i]);
    else
      threads_[i].state = Thread::State::at_registers;
  }
  if (done && calls[0]->kind == WarpgroupCall::Kind::registers) grow_waiting_warpgroups();
}

void Block::grow_waiting_warpgroups() {
  for (std::uint32_t first = 0; first + kWarpgroupThreads <= count_; first += kWarpgroupThreads) {
    if (threads_[first].state != Thread::State::at_registers) continue;
    if (!events_.try_again(first / kWarpgroupThreads, *threads_[first].call)) continue;
    for (std::uint32_t i = first; i < first + kWarpgroupThreads; ++i) make_ready(threads_[i]);
  }
}

std::uint32_t Block::lanes_of(std::uint32_t warp) const {
  const std::uint32_t lanes = std::min(32u, count_ - warp * 32);
  return lanes == 32 ? ~0u : (1u << lanes) - 1;
}

// The lanes that wait with the same mask as `thread`, itself included.
std::uint32_t Block::lanes_with_mask_of(const Thread& thread) const {
  const std::uint32_t warp = thread.index / 32;
  std::uint32_t lanes = 0;
  for (std::uint32_t m = thread.mask & exchanging_[warp]; m != 0; m &= m - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(m));
    if (threads_[warp * 32 + lane].mask == thread.mask) lanes |= 1u << lane;
  }
  return lanes;
}

void Block::arrive_at_exchange(Thread& thread) {
  const std::uint32_t warp = thread.index / 32;
  // A mask may name lanes that a block's last warp does not have.
  const std::uint32_t wanted = thread.mask & lanes_of(warp);
  exchanging_[warp] |= 1u << (thread.index % 32);
  if ((wanted >> (thread.index % 32) & 1u) == 0) {
    log({Rule::divergent_barrier, thread.pc, thread.index, "",
         fmt::format("thread {} is lane {}, which the mask {:#x} of this warp operation leaves out", thread.index,
                     thread.index % 32, thread.mask),
         nullptr});
    complete_exchange(warp, 1u << (thread.index % 32));
    return;
  }
  if ((exchanging_[warp] & wanted) == wanted && lanes_with_mask_of(thread) == wanted) complete_exchange(warp, wanted);
}

void Block::complete_exchange(std::uint32_t warp, std::uint32_t lanes) {
  members_.clear();
  exchanging_[warp] &= ~lanes;
  for (std::uint32_t l = lanes; l != 0; l &= l - 1)
    members_.push_back(warp * 32 + static_cast<std::uint32_t>(std::countr_zero(l)));
  check_same_line(members_, "warp operation");
  const std::uint32_t bytes = threads_[members_.front()].bytes;
  for (const std::uint32_t reader : members_) {
    if (threads_[reader].bytes != bytes || bytes > kMostExchanged) {
      log({Rule::divergent_barrier, threads_[reader].pc, reader, "",
           fmt::format("thread {} hands in {} bytes, thread {} in line {{line}} {}", reader, threads_[reader].bytes,
                       members_.front(), bytes),
           threads_[members_.front()].pc});
      given_up_ = true;
      return;
    }
  }
  if (bytes > 0) {
    std::array<char, 32 * kMostExchanged> all{};
    for (const std::uint32_t i : members_) std::memcpy(all.data() + i % 32 * bytes, threads_[i].mine, bytes);
    for (const std::uint32_t i : members_) std::memcpy(threads_[i].all, all.data(), 32 * bytes);
  }
  clocks_.meet(members_);
  for (const std::uint32_t i : members_) make_ready(threads_[i]);
}

}  // namespace jitconv::host
