// The wgrad_wgmma family's cost model: the time of a kernel and of the pass that adds its partial sums. For ranking;
// integers, so that every machine ranks alike. Does not look for tilings: candidates.cpp.
#pragma once

#include <cstdint>

#include "codegen/wgrad_wgmma/costs.h"
#include "codegen/wgrad_wgmma/tiling.h"
#include "jitconv/target.h"

namespace jitconv::codegen {

class WgradWgmmaPrice {
 public:
  /// `target` and `costs` must outlive the object.
  WgradWgmmaPrice(const Problem& problem, const Target& target, const WgradWgmmaCosts& costs);

  /// Picoseconds of a launch of `blocks` blocks.
  std::int64_t of(const WgradGeometry& geometry, std::int64_t blocks) const;

 private:
  /// Cycles of a step in which a consumer splits and promotes.
  std::int64_t split_and_promote(const WgradWgmmaTiling& tiling) const;
  /// What a step of split operands moves through shared memory: what multiplications read, rows of x and dy.
  static std::int64_t shared_bytes(const WgradGeometry& geometry);
  /// Cycles of an SM.
  std::int64_t cycles_of_instruction(const WgradGeometry& geometry) const;
  /// What a step brings to shared memory.
  std::int64_t bytes_of_step(const WgradGeometry& geometry) const;
  /// Cycles in which warps put a row of x in order.
  std::int64_t order(const WgradGeometry& geometry) const;
  /// Cycles that a step takes in the producer warpgroups.
  std::int64_t load_of_step(const WgradGeometry& geometry) const;
  /// Cycles in which producer threads copy dy for a step.
  std::int64_t copy_dy(const WgradGeometry& geometry) const;

  const Target& target_;
  const WgradWgmmaCosts& costs_;
  std::int64_t bytes_;  ///< of all tensors
};

}  // namespace jitconv::codegen
