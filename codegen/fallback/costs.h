// What the fallback family counts of a block. Instructions are a warp's.
#pragma once

#include <cstdint>

namespace jitconv::codegen {

struct FallbackCosts {
  std::int64_t pixel;    ///< instructions of a tap for a pixel: its address, its predicate, its load
  std::int64_t channel;  ///< instructions of a tap for an output channel: its weight
  std::int64_t latency;  ///< cycles of a block
};

}  // namespace jitconv::codegen
