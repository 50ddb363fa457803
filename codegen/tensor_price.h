// The tensor family's cost model: what a tiling would take, from cycles fitted to measurements. For ranking; integers,
// so that every machine ranks alike. Does not look for tilings: tensor_plan.cpp.
#pragma once

#include <cstdint>

#include "codegen/tensor_tiling.h"
#include "jitconv/spec.h"
#include "jitconv/target.h"

namespace jitconv::codegen {

class TensorPrice {
 public:
  /// Both must outlive the object.
  TensorPrice(const ConvSpec& spec, const Target& target);

  /// Picoseconds of all kernels of `tiling`, which has so many tiles.
  std::int64_t of(const TensorTiling& tiling, std::int64_t tiles) const;
  /// Of the kernel that makes this convolution's pixels of those of `source`.
  std::int64_t of_transposition(const ConvSpec& source) const;

 private:
  std::int64_t of_walk(const TensorTiling& tiling, std::int64_t tiles) const;
  /// Cycles of an SM between the loads of two steps by walks.
  std::int64_t load_walked(const TensorTiling& tiling) const;
  /// The same of other loads, and of the ways to load.
  std::int64_t step_load(const TensorTiling& tiling) const;
  std::int64_t load_copied(const TensorTiling& tiling) const;
  std::int64_t load_by_lanes(const TensorTiling& tiling) const;
  /// Cycles of a step's multiplications.
  std::int64_t step_multiply(const TensorTiling& tiling) const;
  /// Cycles of a tile's store, but for what it waits.
  std::int64_t store_columns(const TensorTiling& tiling, std::int64_t bytes_of_window) const;
  /// Bytes that a tile writes.
  std::int64_t tile_bytes(const TensorTiling& tiling) const;
  /// Cycles that a warpgroup waits for boxes of its tile that have no place until others are stored.
  std::int64_t awaited_boxes(const TensorTiling& tiling) const;
  /// Of x, in rows that any tap meets.
  std::int64_t input_bytes() const;

  const ConvSpec& spec_;
  const Target& target_;
  TensorShape out_;
  std::int64_t bytes_;
};

}  // namespace jitconv::codegen
