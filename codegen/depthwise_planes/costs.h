// What the depthwise_planes family counts of a block. Instructions and wavefronts are a warp's.
#pragma once

#include <cstdint>

namespace jitconv::codegen {

struct DepthwisePlanesCosts {
  std::int64_t copy;             ///< instructions of a copy of 16 bytes
  std::int64_t copy_wavefronts;  ///< the same
  std::int64_t read;             ///< instructions of a read of a vector
  std::int64_t weight;           ///< instructions of a tap
  std::int64_t store;            ///< instructions of a store of a vector
  std::int64_t output;           ///< instructions of an output
  std::int64_t rounded_output;   ///< the same, where it is rounded to 16 bits
  std::int64_t block;            ///< instructions, once
  std::int64_t latency;          ///< cycles of a block
  std::int64_t wanted_warps;     ///< on an SM: loading, computing and storing alternate in a block
};

}  // namespace jitconv::codegen
