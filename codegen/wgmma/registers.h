// Registers per thread of a wgmma kernel's producer and consumers, which setmaxnreg moves between them.
#pragma once

#include "codegen/wgmma/geometry.h"

namespace jitconv::codegen {

/// Worked out once. Together they are no more than what the launch has, kLaunchRegisters for each thread.
class WgmmaRegisters {
 public:
  explicit WgmmaRegisters(const WgmmaGeometry& geometry);

  int consumer() const { return consumer_; }
  int producer() const { return producer_; }
  /// What a consumer thread would use at best, and whether it gets that.
  int wanted_by_consumer() const { return wanted_; }
  bool fit() const { return consumer_ == wanted_; }
  /// Registers of a producer thread for elements in flight. For floats, a batch of 17 vectors is the largest that ptxas
  /// does not spill, and faster than two batches (B, NHWC: 2.62 ms, 2.71). For 16-bit vectors it is slower (1.66 ms,
  /// 1.49).
  int for_loads() const { return for_loads_; }
  /// Registers of a producer thread for its part of one of its loads. A 16-bit load has a whole register.
  int per_load() const { return per_load_; }

 private:
  int wanted_, consumer_, producer_, for_loads_, per_load_;
};

}  // namespace jitconv::codegen
