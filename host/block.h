// Runs the threads of one block as fibers: who runs next, barriers, operations of a warp, and what to say when threads
// wait for others that never come. Knows order (Clocks), not memory. Everything that looks up, compares or allocates
// runs on the scheduler's stack; a fiber only says what it wants and yields.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "host/clocks.h"
#include "host/fiber.h"
#include "host/finding_log.h"
#include "host/module_abi.h"
#include "host/random.h"
#include "host/warp_requests.h"
#include "host/warpgroups.h"

namespace jitconv::host {

/// What happens besides the threads of a block, on the scheduler's stack: copies land, warpgroups multiply.
class BlockEvents {
 public:
  /// All threads of the warpgroup came with these calls. False if they have to wait until try_again() is true.
  virtual bool warpgroup(std::uint32_t warpgroup, Warpgroups::Calls calls) = 0;
  virtual bool try_again(std::uint32_t warpgroup, const WarpgroupCall& call) = 0;
  /// No thread can run: something that is in flight arrives. False if nothing is.
  virtual bool land() = 0;
  /// All threads have returned.
  virtual void end() = 0;
  /// What a thread that waits for a phase, or a warpgroup that waits for registers, lacks.
  virtual std::string missing(std::uint32_t phase_barrier) const = 0;
  virtual std::string missing_registers(std::uint32_t warpgroup, const WarpgroupCall& call) const = 0;

 protected:
  ~BlockEvents() = default;
};

class Block {
 public:
  struct Thread {
    enum class State : std::uint8_t { ready, at_barrier, at_exchange, at_phase, at_warpgroup, at_registers, returned };
    Fiber fiber;
    std::uint32_t index = 0;
    State state = State::returned;
    char* stack = nullptr;                // Stacks::kBytes; `seen` is at its top, so a kernel may read it
    jitconv_host_thread* seen = nullptr;  // the module's view of the thread
    Block* block = nullptr;
    const void* pc = nullptr;             // of the operation it waits at
    std::uint32_t barrier = 0;            // at_barrier: id
    std::uint32_t barrier_threads = 0;    // and how many it takes
    std::uint32_t parity = 0;             // at_phase; `barrier` is the object's number
    const WarpgroupCall* call = nullptr;  // at_warpgroup, at_registers
    std::uint32_t mask = 0;               // at_exchange
    std::uint32_t bytes = 0;
    const void* mine = nullptr;
    void* all = nullptr;
    const void* basic_block = nullptr;  // of modules compiled to count: the one it is about to execute or in
  };
  /// What the threads run: the kernel's entry.
  struct Kernel {
    Module::Entry entry = nullptr;
    void** parameters = nullptr;
    jitconv_host_thread** current_thread = nullptr;
    bool counts = false;
  };

  Block(std::uint32_t threads, const Kernel& kernel, Clocks& clocks, FindingLog& log, Random& random,
        BlockEvents& events);

  /// Runs all threads to their end. False if a finding was such that the block had to be given up.
  bool run(const std::array<std::uint32_t, 3>& index, const std::array<std::uint32_t, 3>& grid, Counters& counters);

  // For the running thread, on its fiber.
  const Thread& running() const { return *running_; }
  const View& view() const { return view_; }
  /// The running thread learned something, or was heard.
  void renew_view() { view_ = clocks_.view(running_->index); }
  bool on_own_stack(const void* address) const {
    return reinterpret_cast<std::uintptr_t>(address) - running_stack_ < Stacks::kBytes;
  }
  void barrier(std::uint32_t id, std::uint32_t threads, const void* pc);
  void warp_exchange(std::uint32_t mask, const void* mine, void* all, std::uint32_t bytes, const void* pc);
  /// Waits until pass_phase() is called for the barrier object and the parity.
  void wait_phase(std::uint32_t object, std::uint32_t parity, const void* pc);
  /// Waits until all threads of the warpgroup called it and BlockEvents::warpgroup() let them go.
  void warpgroup(const WarpgroupCall& call);
  void basic_block(const void* pc);
  /// Logs it. Does not come back if `fatal`, or if the launch has findings enough.
  void report(Violation&& violation, bool fatal);
  WarpRequests& requests() { return requests_; }

  // From anywhere.
  /// Those who wait for a phase of this parity may go on.
  void pass_phase(std::uint32_t object, std::uint32_t parity);
  /// From the scheduler's stack: logs it, and gives up the block if `fatal`.
  void log(Violation&& violation, bool fatal = false);

 private:
  static void main_of(void* thread);
  void run_random();
  void run_warps(Counters& counters);
  void run_thread(Thread& thread);
  void make_ready(Thread& thread);
  void arrive_at_barrier(const Thread& thread);
  void release_barrier(std::uint32_t id);
  void arrive_at_exchange(Thread& thread);
  void complete_exchange(std::uint32_t warp, std::uint32_t lanes);
  void arrive_at_warpgroup(const Thread& thread);
  void complete_warpgroup(std::uint32_t warpgroup);
  void grow_waiting_warpgroups();
  void check_same_line(std::span<const std::uint32_t> threads, const char* operation);
  void resolve_stuck();
  bool release_past_returned();
  void report_stuck();
  std::uint32_t lanes_with_mask_of(const Thread& thread) const;
  std::uint32_t lanes_of(std::uint32_t warp) const;
  std::string what_is_missing(const Thread& waiting) const;
  std::string other_waits(std::uint32_t than) const;

  std::uint32_t count_;
  Kernel kernel_;
  Clocks& clocks_;
  FindingLog& log_;
  Random& random_;
  BlockEvents& events_;
  Stacks stacks_;
  std::unique_ptr<Thread[]> threads_;
  std::array<std::uint32_t, 3> index_{};

  Thread* running_ = nullptr;
  std::uintptr_t running_stack_ = 0;
  View view_;
  std::vector<std::uint32_t> ready_;            // in no order; not used by run_warps()
  std::uint32_t unfinished_ = 0;                // threads that have not returned
  std::array<std::uint32_t, 16> arrived_{};     // at each barrier
  std::array<std::uint32_t, 32> exchanging_{};  // lanes of each warp that are at_exchange
  std::array<std::uint32_t, kMostWarpgroups> at_warpgroup_{};
  std::optional<Violation> violation_;  // of the running thread
  bool fatal_ = false;
  bool given_up_ = false;
  std::vector<std::uint32_t> members_;  // of what is being released
  WarpRequests requests_;
};

}  // namespace jitconv::host
