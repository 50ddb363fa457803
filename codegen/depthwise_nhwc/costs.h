// What the depthwise_nhwc family counts of a block. Instructions and wavefronts are a warp's.
#pragma once

#include <cstdint>

namespace jitconv::codegen {

struct DepthwiseNhwcCosts {
  std::int64_t register_copy;      ///< instructions of a copy through registers
  std::int64_t async_copy;         ///< the same, asynchronous
  std::int64_t box_copy;           ///< the same, a vector of a box of TMA
  std::int64_t weight_copy;        ///< instructions of a copy of a weight
  std::int64_t weight_wavefronts;  ///< of a copy of a weight
  std::int64_t pixel;              ///< instructions of an output pixel
  std::int64_t output;             ///< instructions of an output channel of a pixel
  std::int64_t rounded_pair;       ///< more of it, where two are rounded at once
  std::int64_t rounded;            ///< more of it, where each is rounded by itself
  std::int64_t block;              ///< instructions, once
  std::int64_t latency;            ///< cycles of a block
  std::int64_t wanted_warps;       ///< on an SM: loading, computing and storing alternate in a block
  /// Per cent of DRAM's bytes, more than each once.
  struct Memory {
    std::int64_t again;         ///< of pixels that several tiles read: most are in the L2 cache
    std::int64_t short_run;     ///< for runs of channels of one sector, where they are less than two
    std::int64_t cut_sector;    ///< for runs of one sector, where they end inside of sectors
    std::int64_t one_block;     ///< where an SM has a single block: none loads while it computes
    std::int64_t two_blocks;    ///< the same, two
    std::int64_t three_blocks;  ///< the same, three
    std::int64_t copied;        ///< where threads copy pixels, not TMA
  };
  Memory memory;
};

}  // namespace jitconv::codegen
