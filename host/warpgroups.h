// What the warpgroups of a block have in flight: matrix multiplications (wgmma) in groups, the accumulators that belong
// to them, and how many registers each warpgroup holds (setmaxnreg). All 128 threads are there when a function that
// takes `calls` runs, on the scheduler's stack. Knows the marks of shared memory, not who runs when.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "host/engine.h"
#include "host/operand_place.h"
#include "host/random.h"
#include "host/shared_memory.h"
#include "host/tile_multiply.h"

namespace jitconv::host {

inline constexpr std::uint32_t kWarpgroupThreads = 128;
inline constexpr std::uint32_t kMostWarpgroups = 1024 / kWarpgroupThreads;

/// An operation of a warpgroup as one of its threads asks for it.
struct WarpgroupCall {
  enum class Kind : std::uint8_t { multiply, wait, registers };
  Kind kind{};
  const void* pc = nullptr;
  // multiply
  MultiplyType type{};
  bool accumulate = false;
  float* sum = nullptr;
  std::uint32_t accumulators = 0;
  std::uint64_t a = 0, b = 0;
  const std::uint32_t* a_registers = nullptr;  ///< four words, in place of the operand `a`
  OperandOrder a_order{}, b_order{};
  // wait: groups that may be in flight; registers: of a thread from now on
  std::uint32_t number = 0;
  bool more = false;  // of registers
};

/// What a call breaks.
struct WarpgroupFault {
  Rule rule{};
  std::uint32_t thread = 0;  ///< of the warpgroup, from 0
  std::string text;          ///< "{line}" stands for the line of other_pc
  std::uint32_t other_pc = 0;
  /// What is wrong with the operand's bytes at this offset; takes the place of a text.
  Conflict conflict{};
  std::uint32_t offset = 0, bytes = 0;
  bool fatal = false;
};

class Warpgroups {
 public:
  using Calls = std::span<const WarpgroupCall* const, kWarpgroupThreads>;

  /// Warpgroup g is agent `first_agent` + g of the clocks.
  Warpgroups(std::uint32_t threads, std::uint32_t first_agent, const char* memory, std::uint32_t memory_bytes,
             SharedMemory& marks, Clocks& clocks, Landing landing, Random& random);
  void start_block();

  // By one thread, for itself.
  void begin(std::uint32_t thread) { ++begun_[thread]; }
  void commit(std::uint32_t thread) { ++committed_[thread]; }

  std::optional<WarpgroupFault> multiply(std::uint32_t warpgroup, Calls calls);
  std::optional<WarpgroupFault> wait(std::uint32_t warpgroup, Calls calls);

  /// setmaxnreg. Whether the block has the registers; otherwise the warpgroup has to wait for others to give some back.
  bool set_registers(std::uint32_t warpgroup, const WarpgroupCall& call);
  std::optional<WarpgroupFault> check_registers(std::uint32_t warpgroup, Calls calls) const;
  /// "128 threads x 16 more registers: the block has 512 left"
  std::string describe_registers(std::uint32_t warpgroup, const WarpgroupCall& call) const;

  /// Whether any multiplication has not been waited for.
  bool in_flight() const { return in_flight_ != 0; }
  /// Return address (low half) of the multiplication, not waited for, that the thread's sum at `address` belongs to.
  std::optional<std::uint32_t> owner_of(std::uint32_t thread, const void* address) const;

  /// Return address (low half) of the oldest multiplication that was never waited for; nothing if there is none.
  std::optional<std::uint32_t> unfinished(std::uint32_t warpgroup) const;

 private:
  struct Accumulators {
    std::array<float*, kWarpgroupThreads> of_thread{};
    std::uint32_t count = 0;      // of a thread
    std::uint32_t in_flight = 0;  // multiplications
    bool hidden = false;          // the threads' own hold poison until the wait
    std::uint64_t begun = 0;      // multiply_begin() calls when the threads got theirs back
    std::uint32_t pc = 0;         // of the last multiplication
    std::vector<float> tile;      // [64][2 * count]
  };
  struct Multiplication {
    MultiplyType type{};
    TileOperand a{}, b{};
    /// For an operand in registers: where each thread has them, and the operand's rows as they were when it began.
    std::array<const std::uint32_t*, kWarpgroupThreads> registers{};
    std::vector<char> rows;
    bool accumulate = false, computed = false;
    std::size_t accumulators = 0;  // index
    std::uint32_t group = 0;
    Tick tick = 0;
    std::uint32_t pc = 0;
  };
  struct Warpgroup {
    std::vector<Accumulators> accumulators;
    std::vector<Multiplication> multiplications;  // oldest first
    std::uint32_t closed_groups = 0;
    std::uint64_t committed = 0;
    std::uint32_t registers = 0;  // of a thread
    bool registers_set = false;   // since the launch, whose number is the most that there may be
  };

  std::optional<WarpgroupFault> differs(Calls calls) const;
  std::optional<WarpgroupFault> close_groups(std::uint32_t warpgroup);
  std::optional<WarpgroupFault> take_operand(std::uint32_t warpgroup, const View& view, Tick tick,
                                             const OperandPlace& place, std::uint32_t rows, std::uint32_t pc,
                                             TileOperand& taken);
  static void take_registers(Calls calls, Multiplication& multiplication);
  static std::optional<WarpgroupFault> changed_registers(const Multiplication& multiplication);
  std::optional<WarpgroupFault> take_accumulators(std::uint32_t warpgroup, Calls calls, std::size_t& index);
  std::optional<WarpgroupFault> give_back(std::uint32_t warpgroup, Accumulators& accumulators);
  static void compute(Warpgroup& group, Multiplication& multiplication);

  std::uint32_t first_agent_;
  const char* memory_;
  std::uint32_t memory_bytes_;
  SharedMemory& marks_;
  Clocks& clocks_;
  Landing landing_;
  Random& random_;
  std::uint32_t launch_registers_, free_registers_ = 0;
  std::size_t in_flight_ = 0;
  std::vector<std::uint64_t> begun_, committed_;  // calls of each thread
  std::vector<Warpgroup> warpgroups_;
};

}  // namespace jitconv::host
