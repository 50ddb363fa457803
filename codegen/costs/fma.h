// What the FMA kernels of all families cost, besides what is counted of each: the table of the formula in
// codegen/cost.cpp, and of passes that only move memory. Families' own tables, in <family>/costs.h, say what they
// count.
#pragma once

#include <cstdint>

namespace jitconv::codegen {

struct FmaCosts {
  std::int64_t picoseconds_per_cycle;
  std::int64_t fma_issue_percent;           ///< of an issue slot: operands collide on the register file's ports
  std::int64_t unhidden_percent;            ///< of the lesser of issue and shared memory, which the other does not hide
  std::int64_t no_warps_percent;            ///< more of a block's cycles, in proportion to the warps that an SM lacks
  std::int64_t no_block_percent;            ///< more of a block's cycles for each block that an SM lacks
  std::int64_t unhidden_memory_permille;    ///< of the lesser of computing and memory, which the other does not hide
  std::int64_t dram_bytes_per_microsecond;  ///< the whole GPU's
  std::int64_t pass_launch;                 ///< picoseconds of a pass beside the convolution, more than its bytes
};

}  // namespace jitconv::codegen
