// What the wgrad family counts of a block. Instructions and wavefronts are a warp's.
#pragma once

#include <cstdint>

namespace jitconv::codegen {

struct WgradCosts {
  std::int64_t nchw_copy;                ///< instructions of a copy: address and predicate
  std::int64_t nhwc_copy;                ///< the same, where lanes run along channels: it decodes its pixel
  std::int64_t copy_wavefronts;          ///< of a copy
  std::int64_t chunk;                    ///< instructions of a stage
  std::int64_t value_wavefront_percent;  ///< of a value that a thread reads
  std::int64_t latency;                  ///< cycles of a block
  std::int64_t chunk_latency;            ///< more of a stage, which only other blocks hide
  std::int64_t copy_latency;             ///< and of a copy of a thread that does not wait for it,
  std::int64_t load_latency;             ///< or does
  std::int64_t wanted_warps;             ///< resident on an SM to cover latencies
};

}  // namespace jitconv::codegen
