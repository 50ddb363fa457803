// A full barrier costs nothing per pair of threads: it raises one tick that orders everything before it. Rows of the
// table therefore matter only where something was learned since then, and each row remembers that range; a __syncwarp()
// touches the 32 x 32 entries of its warp.
#include "host/clocks.h"

#include <algorithm>
#include <utility>

namespace jitconv::host {
namespace {

void raise(Tick* to, const Tick* from, std::uint32_t low, std::uint32_t high) {
  for (std::uint32_t i = low; i < high; ++i) to[i] = std::max(to[i], from[i]);
}

}  // namespace

Clocks::Clocks(std::uint32_t threads, std::uint32_t agents)
    : threads_(threads),
      agents_(agents),
      columns_(threads + agents),
      now_(threads),
      seen_(std::size_t{threads} * columns_),
      fenced_(std::size_t{threads} * columns_),
      acquired_low_(columns_),
      rows_(threads),
      scratch_seen_(columns_),
      scratch_fenced_(columns_),
      changed_(threads),
      common_(threads) {}

void Clocks::restart() {
  counter_ = 0;
  std::fill(seen_.begin(), seen_.end(), 0);
  std::fill(fenced_.begin(), fenced_.end(), 0);
}

void Clocks::start_block() {
  first_ = ++counter_;
  ordered_ = first_;
  std::fill(now_.begin(), now_.end(), ++counter_);
  // Ticks of earlier blocks are smaller than all that are compared from now on, so the rows may keep them.
  std::fill(rows_.begin(), rows_.end(), Row{0, 0, ordered_});
  std::fill(changed_.begin(), changed_.end(), ++changes_);
}

View Clocks::view(std::uint32_t thread) const {
  View view;
  view.thread = thread;
  view.warp_bit = 1u << (thread / 32);
  view.lane_bit = 1u << (thread % 32);
  view.now = now_[thread];
  view.ordered = ordered_;
  view.first = first_;
  view.seen = seen_.data() + std::size_t{thread} * columns_;
  view.fenced = fenced_.data() + std::size_t{thread} * columns_;
  return view;
}

View Clocks::common_view(std::uint32_t first, std::uint32_t count) {
  const auto lower = [](Tick* to, const Tick* from, std::uint32_t columns) {
    for (std::uint32_t i = 0; i < columns; ++i) to[i] = std::min(to[i], from[i]);
  };
  Common& common = common_[first];
  const auto changed = changed_.begin() + first;
  if (common.count != count || *std::max_element(changed, changed + count) > common.as_of) {
    common.count = count;
    common.as_of = changes_;
    common.seen.assign(columns_, kPending);
    common.fenced.assign(columns_, fences_used_ ? kPending : 0);
    for (std::uint32_t t = first; t < first + count; ++t) {
      Tick* const own = seen(t) + t;
      const Tick before = std::exchange(*own, now_[t]);
      lower(common.seen.data(), seen(t), columns_);
      *own = before;
      if (fences_used_) lower(common.fenced.data(), fenced(t), columns_);
    }
  }
  View view;
  view.thread = columns_;  // nobody
  view.ordered = ordered_;
  view.first = first_;
  view.seen = common.seen.data();
  view.fenced = common.fenced.data();
  return view;
}

Clocks::Row& Clocks::row(std::uint32_t thread) {
  Row& row = rows_[thread];
  if (row.barrier != ordered_) row = Row{0, 0, ordered_};
  return row;
}

void Clocks::meet_all() {
  if (fences_used_) {
    std::fill(scratch_fenced_.begin(), scratch_fenced_.end(), 0);
    for (std::uint32_t t = 0; t < threads_; ++t) raise(scratch_fenced_.data(), fenced(t), 0, columns_);
    for (std::uint32_t t = 0; t < threads_; ++t) std::copy(scratch_fenced_.begin(), scratch_fenced_.end(), fenced(t));
  }
  // What an agent did is not ordered by threads that meet, unless one of them knows of it.
  for (std::uint32_t column = acquired_low_; column < acquired_high_; ++column) {
    Tick known = 0;
    for (std::uint32_t t = 0; t < threads_; ++t) known = std::max(known, seen(t)[column]);
    for (std::uint32_t t = 0; t < threads_; ++t) seen(t)[column] = known;
  }
  ordered_ = counter_;
  std::fill(now_.begin(), now_.end(), ++counter_);
  std::fill(changed_.begin(), changed_.end(), ++changes_);
}

void Clocks::meet(std::span<const std::uint32_t> threads) {
  std::uint32_t low = columns_, high = 0;
  for (const std::uint32_t t : threads) {
    const Row& known = row(t);
    low = std::min(low, t), high = std::max(high, t + 1);
    if (known.low < known.high) low = std::min(low, known.low), high = std::max(high, known.high);
  }
  if (low >= high) return;
  std::fill(scratch_seen_.begin() + low, scratch_seen_.begin() + high, 0);
  for (const std::uint32_t t : threads) {
    raise(scratch_seen_.data(), seen(t), low, high);
    scratch_seen_[t] = std::max(scratch_seen_[t], now_[t]);
  }
  if (fences_used_) {
    std::fill(scratch_fenced_.begin(), scratch_fenced_.end(), 0);
    for (const std::uint32_t t : threads) raise(scratch_fenced_.data(), fenced(t), 0, columns_);
  }
  ++counter_;
  for (const std::uint32_t t : threads) {
    std::copy(scratch_seen_.begin() + low, scratch_seen_.begin() + high, seen(t) + low);
    if (fences_used_) std::copy(scratch_fenced_.begin(), scratch_fenced_.end(), fenced(t));
    Row& known = row(t);
    known.low = low, known.high = high;
    now_[t] = counter_;
    change(t);
  }
}

void Clocks::release(std::uint32_t thread, MeetingPoint& point) {
  const Row& known = row(thread);
  const bool empty = known.low >= known.high;
  const std::uint32_t low = empty ? thread : std::min(known.low, thread);
  const std::uint32_t high = empty ? thread + 1 : std::max(known.high, thread + 1);
  raise(point.seen_.data(), seen(thread), low, high);
  point.seen_[thread] = std::max(point.seen_[thread], now_[thread]);
  if (fences_used_) raise(point.fenced_.data(), fenced(thread), 0, columns_);
  const bool point_empty = point.low_ >= point.high_;
  point.low_ = point_empty ? low : std::min(point.low_, low);
  point.high_ = point_empty ? high : std::max(point.high_, high);
  now_[thread] = ++counter_;  // what the thread does next is not part of what it released
  change(thread);
}

void Clocks::learn(std::uint32_t thread, const Tick* seen_by, const Tick* fenced_by, std::uint32_t low,
                   std::uint32_t high) {
  if (low >= high) return;
  raise(seen(thread), seen_by, low, high);
  if (fences_used_) raise(fenced(thread), fenced_by, 0, columns_);
  change(thread);
  Row& known = row(thread);
  const bool empty = known.low >= known.high;
  known.low = empty ? low : std::min(known.low, low);
  known.high = empty ? high : std::max(known.high, high);
}

void Clocks::acquire(std::uint32_t thread, const MeetingPoint& point) {
  learn(thread, point.seen_.data(), point.fenced_.data(), point.low_, point.high_);
}

void Clocks::merge(const MeetingPoint& from, MeetingPoint& to) const {
  if (from.low_ < from.high_) {
    raise(to.seen_.data(), from.seen_.data(), from.low_, from.high_);
    const bool empty = to.low_ >= to.high_;
    to.low_ = empty ? from.low_ : std::min(to.low_, from.low_);
    to.high_ = empty ? from.high_ : std::max(to.high_, from.high_);
  }
  if (fences_used_) raise(to.fenced_.data(), from.fenced_.data(), 0, columns_);
}

void Clocks::acquire_agent(std::uint32_t thread, std::uint32_t agent, Tick tick) {
  const std::uint32_t at = column(agent);
  seen(thread)[at] = std::max(seen(thread)[at], tick);
  change(thread);
  Row& known = row(thread);
  const bool empty = known.low >= known.high;
  known.low = empty ? at : std::min(known.low, at);
  known.high = empty ? at + 1 : std::max(known.high, at + 1);
  acquired_low_ = std::min(acquired_low_, at);
  acquired_high_ = std::max(acquired_high_, at + 1);
}

Tick Clocks::release_agent(std::uint32_t agent, MeetingPoint& point) {
  const std::uint32_t column = threads_ + agent;
  const bool empty = point.low_ >= point.high_;
  point.low_ = empty ? column : std::min(point.low_, column);
  point.high_ = empty ? column + 1 : std::max(point.high_, column + 1);
  point.seen_[column] = ++counter_;
  return counter_;
}

void Clocks::fence_async_proxy(std::uint32_t thread) {
  if (!fences_used_) {
    std::fill(fenced_.begin(), fenced_.end(), 0);
    fences_used_ = true;
  }
  for (std::uint32_t i = 0; i < columns_; ++i)
    fenced(thread)[i] = std::max({fenced(thread)[i], seen(thread)[i], ordered_});
  fenced(thread)[thread] = std::max(fenced(thread)[thread], now_[thread]);
  now_[thread] = ++counter_;  // later writes of the thread need another fence
  change(thread);
}

}  // namespace jitconv::host
