// What the parts of a wgrad_wgmma kernel cost. Cycles are of an SM, if nothing else is said.
#pragma once

#include <cstdint>

namespace jitconv::codegen {

struct WgradWgmmaCosts {
  std::int64_t picoseconds_per_cycle;
  std::int64_t start;            ///< picoseconds: the launch, the first loads
  std::int64_t start_of_copies;  ///< the same, where TMA brings operands as they lie
  /// Cycles of a step.
  struct Multiply {
    std::int64_t step;           ///< barriers, the first operands
    std::int64_t step_of_boxes;  ///< the same of boxes: barriers, the last step's multiplications
    std::int64_t instruction;    ///< of one whose operands are in shared memory, whatever its columns
    std::int64_t alone_percent;  ///< of a consumer's multiplications, if the other has none at the time
    std::int64_t alone_steps;    ///< overheads of a step that a consumer has alone, where operands are registers
  };
  Multiply multiply;
  /// Cycles of producer warps.
  struct Loads {
    std::int64_t l2_bytes_per_cycle;  ///< an SM's share
    std::int64_t latency;             ///< of a batch of a producer thread
    std::int64_t issue;               ///< of a producer warp, for a pixel, whatever comes with it
    std::int64_t copy;                ///< the same, for a copy of dy of up to 16 bytes
    std::int64_t order_vector;        ///< of a unit of a row that is put in order, read as a vector
    std::int64_t order_pixel;         ///< the same, for each of its pixels that is read alone
  };
  Loads loads;
  /// Cycles of split operands, beside what three products take.
  struct Split {
    std::int64_t promotion;               ///< a consumer waits for an instruction's accumulators and adds them to sums
    std::int64_t dy;                      ///< it splits what a multiplication takes of dy
    std::int64_t x;                       ///< a producer warp splits a unit of x
    std::int64_t shared_bytes_per_cycle;  ///< of all that a step moves through shared memory
  };
  Split split;
  std::int64_t flush;          ///< cycles: sums are added to memory
  std::int64_t flush_sum;      ///< more for each accumulator
  std::int64_t reduce_launch;  ///< picoseconds of the kernel behind it
  std::int64_t reduce_bytes_per_picosecond;
  std::int64_t dram_bytes_per_microsecond;
  std::int64_t unhidden_percent;  ///< of the lesser of computing and memory, which the other does not hide
};

}  // namespace jitconv::codegen
