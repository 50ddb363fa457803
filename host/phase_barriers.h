// The barrier objects of a block (mbarrier): arrivals and bytes that the current phase still needs, and the order that
// a completed phase carries from those who arrived to those who wait. Knows no threads that wait and no copies: who
// calls is told when a phase completes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "host/clocks.h"

namespace jitconv::host {

class PhaseBarriers {
 public:
  static constexpr std::uint32_t kMost = 256;                  ///< of a block; each is an agent of the clocks
  static constexpr std::uint32_t kBytes = 8;                   ///< of one, and its alignment
  static constexpr std::int64_t kMostCounted = (1 << 20) - 1;  ///< arrivals or bytes of a phase

  struct Barrier {
    Barrier(std::uint32_t its_number, std::size_t columns) : number(its_number), arriving(columns), complete(columns) {}
    std::uint32_t number;
    std::uint32_t offset = 0;   // in shared memory
    std::int64_t arrivals = 0;  // that a phase takes
    std::int64_t pending = 0;   // arrivals missing in the current phase
    std::int64_t bytes = 0;     // announced and not there yet; less than 0 if copies came before their announcement
    std::uint32_t phase = 0;    // current one: so many are complete
    std::uint32_t initialiser = 0, pc = 0;
    Tick tick = 0;         // of the initialisation
    bool visible = false;  // and of it fenced
    MeetingPoint arriving, complete;
  };

  explicit PhaseBarriers(Clocks& clocks) : clocks_(clocks) {}
  void start_block() { used_ = 0; }
  /// Forgets all ticks, for Clocks::restart().
  void clear() { barriers_.clear(), used_ = 0; }

  // What a call breaks is returned as a text, which is empty if all is well.

  /// `offset` is a multiple of kBytes.
  std::string init(const View& view, std::uint32_t offset, std::int64_t arrivals, std::uint32_t pc);
  /// fence.mbarrier_init by the thread.
  void make_visible(std::uint32_t thread);

  /// The barrier that lies at these bytes, or in part; nullptr if none does.
  Barrier* find(std::uint32_t offset, std::uint32_t bytes = kBytes);
  const Barrier* find(std::uint32_t offset, std::uint32_t bytes = kBytes) const;
  Barrier& at(std::uint32_t number) { return barriers_[number]; }
  const Barrier& at(std::uint32_t number) const { return barriers_[number]; }
  std::uint32_t count() const { return used_; }

  /// Whether the thread may use the barrier at all.
  std::string check_use(const Barrier& barrier, const View& view) const;

  /// Announces bytes (0: none) and arrives. Barrier::phase says whether that completed the phase.
  std::string arrive(Barrier& barrier, std::uint32_t thread, std::int64_t announced);
  /// Bytes have been copied.
  std::string land(Barrier& barrier, std::int64_t bytes);

  /// Whether a wait for the parity returns.
  static bool passes(const Barrier& barrier, std::uint32_t parity) { return barrier.phase % 2 != parity % 2; }

  /// "the barrier at shared + 0x40: its phase 3 lacks 1 of 2 arrivals"
  static std::string describe(const Barrier& barrier);

 private:
  void complete_if_done(Barrier& barrier);

  Clocks& clocks_;
  std::vector<Barrier> barriers_;  // the first used_ are this block's
  std::uint32_t used_ = 0;
};

}  // namespace jitconv::host
