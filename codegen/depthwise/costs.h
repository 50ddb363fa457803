// What the depthwise family counts of a block. Instructions and wavefronts are a warp's.
#pragma once

#include <cstdint>

namespace jitconv::codegen {

struct DepthwiseCosts {
  std::int64_t async_copy;         ///< instructions of a copy
  std::int64_t register_copy;      ///< the same, through registers
  std::int64_t output;             ///< instructions of an output that is stored in a vector
  std::int64_t staged_output;      ///< the same, of one that passes through shared memory
  std::int64_t flat_output;        ///< the same, of one whose row is found by its index
  std::int64_t staged_wavefronts;  ///< of an output that passes through shared memory
  std::int64_t flat_wavefronts;    ///< the same, of one whose row is found by its index
  std::int64_t block;              ///< instructions, once
  std::int64_t latency;            ///< cycles of a block
  std::int64_t wanted_warps;       ///< on an SM: loading, computing and storing alternate in a block
  std::int64_t wanted_blocks;      ///< on an SM, if copies pass through registers: a thread waits for its own
  std::int64_t halo_percent;       ///< of rows that several blocks read: DRAM's part, most are in the L2 cache
  std::int64_t row_end_bytes;      ///< of DRAM, where rows of y are stored one by one
};

}  // namespace jitconv::codegen
