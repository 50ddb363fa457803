// Runs the threads of one block as fibers: who runs next, barriers, operations of a warp, and what to say when threads
// wait for others that never come. Knows order (Clocks), not memory. Everything that looks up, compares or allocates
// runs on the scheduler's stack; a fiber only says what it wants and yields.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "host/clocks.h"
#include "host/fiber.h"
#include "host/finding_log.h"
#include "host/module_abi.h"
#include "host/random.h"
#include "host/warp_requests.h"

namespace jitconv::host {

class Block {
 public:
  struct Thread {
    enum class State : std::uint8_t { ready, at_barrier, at_exchange, returned };
    Fiber fiber;
    std::uint32_t index = 0;
    State state = State::returned;
    char* stack = nullptr;                // Stacks::kBytes; `seen` is at its top, so a kernel may read it
    jitconv_host_thread* seen = nullptr;  // the module's view of the thread
    Block* block = nullptr;
    const void* pc = nullptr;           // of the operation it waits at
    std::uint32_t barrier = 0;          // at_barrier: id
    std::uint32_t barrier_threads = 0;  // and how many it takes
    std::uint32_t mask = 0;             // at_exchange
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

  Block(std::uint32_t threads, const Kernel& kernel, Clocks& clocks, FindingLog& log, Random& random);

  /// Runs all threads to their end. False if a finding was such that the block had to be given up.
  bool run(const std::array<std::uint32_t, 3>& index, const std::array<std::uint32_t, 3>& grid, Counters& counters);

  // For the running thread, on its fiber.
  const Thread& running() const { return *running_; }
  const View& view() const { return view_; }
  bool on_own_stack(const void* address) const {
    return reinterpret_cast<std::uintptr_t>(address) - running_stack_ < Stacks::kBytes;
  }
  void barrier(std::uint32_t id, std::uint32_t threads, const void* pc);
  void warp_exchange(std::uint32_t mask, const void* mine, void* all, std::uint32_t bytes, const void* pc);
  void basic_block(const void* pc);
  /// Logs it. Does not come back if `fatal`, or if the launch has findings enough.
  void report(Violation&& violation, bool fatal);
  WarpRequests& requests() { return requests_; }

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
  void check_same_line(std::span<const std::uint32_t> threads, const char* operation);
  void resolve_stuck();
  bool release_past_returned();
  void report_stuck();
  std::uint32_t lanes_with_mask_of(const Thread& thread) const;
  std::uint32_t lanes_of(std::uint32_t warp) const;
  void log(Violation&& violation);

  std::uint32_t count_;
  Kernel kernel_;
  Clocks& clocks_;
  FindingLog& log_;
  Random& random_;
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
  std::optional<Violation> violation_;          // of the running thread
  bool fatal_ = false;
  bool given_up_ = false;
  std::vector<std::uint32_t> members_;  // of what is being released
  WarpRequests requests_;
};

}  // namespace jitconv::host
