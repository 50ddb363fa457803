// What the direct family counts of a block. Instructions are a warp's.
#pragma once

#include <cstdint>

namespace jitconv::codegen {

struct DirectCosts {
  /// Instructions.
  struct Copies {
    std::int64_t nchw_row;           ///< of a row of the input tile: address and predicates
    std::int64_t nchw;               ///< of a copy, NCHW
    std::int64_t nhwc;               ///< of a copy, NHWC: it decodes its pixel and channel
    std::int64_t weight;             ///< of a copy of a weight
    std::int64_t registers_percent;  ///< of all, where they go through registers
  };
  Copies copies;
  /// Groups of one channel. Their elements are copied one by one. There is one stage, so a block has nothing to do
  /// while it waits.
  struct Single {
    std::int64_t async_wait;         ///< cycles of a batch of a warp's copies: addresses and predicates
    std::int64_t register_wait;      ///< the same through registers: until its loads have arrived
    std::int64_t wavefront_percent;  ///< wavefronts of an element of x or y, where neighbours are other groups'
  };
  Single single;
  /// Instructions.
  struct Loop {
    std::int64_t iteration;  ///< of a channel, or of a filter row that is not unrolled
    std::int64_t chunk;      ///< of a stage: barriers, the pipeline
    std::int64_t block;      ///< once
  };
  Loop loop;
  /// Instructions.
  struct Store {
    std::int64_t nchw_row;  ///< of a row of y
    std::int64_t nchw;      ///< of 32 columns of it
    std::int64_t nhwc;      ///< of an output of a thread
  };
  Store store;
  std::int64_t replay_percent;  ///< wavefronts of a bank conflict: more than it occupies
  std::int64_t latency;         ///< cycles of a block
  std::int64_t chunk_latency;   ///< more for each chunk
  std::int64_t row_end_bytes;   ///< of DRAM, where runs of y end inside sectors that two blocks share
  std::int64_t wanted_warps;    ///< resident on an SM to cover latencies
  /// What the model does not see, where tensor cores serve the same problem.
  struct BesideTensorCores {
    std::int64_t percent;       ///< more of the time
    std::int64_t half_percent;  ///< the same of 16-bit tensors, which are converted on their way to shared memory
    std::int64_t launch;        ///< picoseconds: a long text is fetched once for a few outputs
  };
  BesideTensorCores beside_tensor_cores;
};

}  // namespace jitconv::codegen
