// What has been released into a barrier reaches those who wait only with the phase it belongs to, hence two meeting
// points: arrivals of the current phase go into one, which the phase's completion pours into the other.
#include "host/phase_barriers.h"

#include <fmt/format.h>

namespace jitconv::host {

std::string PhaseBarriers::init(const View& view, std::uint32_t offset, std::int64_t arrivals, std::uint32_t pc) {
  if (arrivals < 1 || arrivals > kMostCounted)
    return fmt::format("a phase of {} arrivals: it takes 1 to {}", arrivals, kMostCounted);
  if (find(offset) != nullptr) return "this is a barrier already";
  if (used_ == kMost) return fmt::format("the block has {} barriers already, as many as are followed here", kMost);
  if (used_ == barriers_.size()) barriers_.emplace_back(used_, clocks_.threads() + clocks_.agents());
  Barrier& barrier = barriers_[used_++];
  barrier.offset = offset;
  barrier.arrivals = barrier.pending = arrivals;
  barrier.bytes = 0;
  barrier.phase = 0;
  barrier.initialiser = view.thread;
  barrier.tick = view.now;
  barrier.pc = pc;
  barrier.visible = false;
  return {};
}

void PhaseBarriers::make_visible(std::uint32_t thread) {
  for (std::uint32_t i = 0; i < used_; ++i)
    if (barriers_[i].initialiser == thread) barriers_[i].visible = true;
}

const PhaseBarriers::Barrier* PhaseBarriers::find(std::uint32_t offset, std::uint32_t bytes) const {
  for (std::uint32_t i = 0; i < used_; ++i)
    if (offset < barriers_[i].offset + kBytes && barriers_[i].offset < offset + bytes) return &barriers_[i];
  return nullptr;
}

PhaseBarriers::Barrier* PhaseBarriers::find(std::uint32_t offset, std::uint32_t bytes) {
  return const_cast<Barrier*>(static_cast<const PhaseBarriers*>(this)->find(offset, bytes));
}

std::string PhaseBarriers::check_use(const Barrier& barrier, const View& view) const {
  if (!view.after(barrier.initialiser, barrier.tick))
    return fmt::format("thread {} made this a barrier in line {{line}}, and nothing orders the two",
                       barrier.initialiser);
  if (!barrier.visible)
    return fmt::format("thread {} made this a barrier in line {{line}}, without a fence that makes it visible",
                       barrier.initialiser);
  return {};
}

void PhaseBarriers::complete_if_done(Barrier& barrier) {
  if (barrier.pending != 0 || barrier.bytes != 0) return;
  clocks_.merge(barrier.arriving, barrier.complete);
  barrier.pending = barrier.arrivals;
  ++barrier.phase;
}

std::string PhaseBarriers::arrive(Barrier& barrier, std::uint32_t thread, std::int64_t announced) {
  if (announced < 0) return fmt::format("{} bytes are announced", announced);
  if (barrier.pending == 0)
    return fmt::format("phase {} takes {} arrivals, which have all come: it waits for {} more bytes", barrier.phase,
                       barrier.arrivals, barrier.bytes);
  if (barrier.bytes + announced > kMostCounted)
    return fmt::format("phase {} is to wait for {} bytes: it counts up to {}", barrier.phase, barrier.bytes + announced,
                       kMostCounted);
  barrier.bytes += announced;
  --barrier.pending;
  clocks_.release(thread, barrier.arriving);
  complete_if_done(barrier);
  return {};
}

std::string PhaseBarriers::land(Barrier& barrier, std::int64_t bytes) {
  barrier.bytes -= bytes;
  if (barrier.bytes < -kMostCounted) {
    return fmt::format("copies brought phase {} more than {} bytes that were not announced", barrier.phase,
                       kMostCounted);
  }
  complete_if_done(barrier);
  return {};
}

std::string PhaseBarriers::describe(const Barrier& barrier) {
  std::string text = fmt::format("the barrier at shared + {:#x}, whose phase {} lacks {} of {} arrivals",
                                 barrier.offset, barrier.phase, barrier.pending, barrier.arrivals);
  if (barrier.bytes > 0) text += fmt::format(" and {} announced bytes that no copy brings", barrier.bytes);
  if (barrier.bytes < 0) text += fmt::format(" and got {} bytes that nobody announced", -barrier.bytes);
  return text;
}

}  // namespace jitconv::host
