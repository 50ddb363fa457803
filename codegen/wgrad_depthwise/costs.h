// What the wgrad_depthwise family counts of a block. Instructions are a warp's.
#pragma once

#include <cstdint>

namespace jitconv::codegen {

struct WgradDepthwiseCosts {
  std::int64_t unrolled_copy;  ///< instructions of a copy whose place is kept in registers: address and predicate
  std::int64_t copy;           ///< the same, of one whose place is found again
  std::int64_t strip_copy;     ///< more of a copy, where it finds its strip among several
  std::int64_t register_copy;  ///< more of a copy through registers
  std::int64_t step;           ///< instructions of a step
  std::int64_t period;         ///< instructions of a period of rows
  std::int64_t bias_values;    ///< values of which one is summed for db, by an instruction
  std::int64_t sum;            ///< instructions of a sum: it is added over lanes and warps
  std::int64_t block;          ///< instructions, once
  std::int64_t latency;        ///< cycles of a block
  std::int64_t wanted_warps;   ///< resident on an SM to cover latencies
  std::int64_t split;          ///< picoseconds of the pass behind for a share: it asks for sixteen at a time
  /// Per cent of DRAM's bytes, more than each once.
  struct Memory {
    std::int64_t halo;             ///< of rows that several strips read: most are in the L2 cache
    std::int64_t again;            ///< for each further time that tensors are read
    std::int64_t last_wave;        ///< for blocks of one wave: the last leave SMs idle, half of a wave
    std::int64_t bytes_under_way;  ///< what an SM must have asked for: its share of bandwidth times latency, bytes
    std::int64_t too_few;          ///< for half as many bytes under way
    std::int64_t two_stages;       ///< with two stages: nothing is under way between a step's copies and the next
    std::int64_t missing_warp;     ///< for each warp less than wanted: they wait for each other
    std::int64_t short_line;       ///< for runs of channels of half a line of 128 bytes
  };
  Memory memory;
};

}  // namespace jitconv::codegen
