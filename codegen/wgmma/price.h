// The wgmma family's cost model: what a tiling would take, from cycles fitted to measurements. For ranking; integers,
// so that every machine ranks alike. Does not look for tilings: candidates.cpp.
#pragma once

#include <cstdint>

#include "codegen/wgmma/costs.h"
#include "codegen/wgmma/geometry.h"
#include "codegen/wgmma/store.h"
#include "jitconv/target.h"

namespace jitconv::codegen {

class WgmmaPrice {
 public:
  /// All must outlive the object.
  WgmmaPrice(const Problem& problem, const Target& target, const WgmmaCosts& costs);

  /// Picoseconds of all kernels of a tiling, which has so many tiles.
  std::int64_t of(const WgmmaGeometry& geometry, const WgmmaStore& outputs, std::int64_t tiles) const;
  /// Picoseconds of the kernel that makes this convolution's pixels of those of `source`.
  std::int64_t of_transposition(const Problem& source) const;
  std::int64_t of_gathering(const Problem& source) const;
  /// Of the kernels that find the ranges of the input and of w.
  std::int64_t of_ranges() const;

 private:
  /// Of a kernel before the convolution that reads and writes so many bytes.
  std::int64_t making_operand_rows(std::int64_t bytes) const;
  /// Of the kernel that adds partial sums.
  std::int64_t of_reduction(const WgmmaStore& outputs) const;
  /// What of() says where TMA brings operand rows.
  std::int64_t of_operands(const WgmmaGeometry& geometry, const WgmmaStore& outputs, std::int64_t tiles) const;
  /// Cycles that splitting takes, 0 of operands that are not split: of a pixel of each lane of a warp that has loaded
  /// it, or of its vector, and of a step that TMA brought.
  std::int64_t split_pixel(const WgmmaGeometry& geometry) const;
  std::int64_t split_copied(const WgmmaGeometry& geometry) const;
  /// Cycles of an SM between the loads of two steps whose operand rows TMA brings.
  std::int64_t load_operands(const WgmmaGeometry& geometry) const;
  /// The part of it that rows of transposed weights take if they end inside a box.
  std::int64_t cut_weight_rows(const WgmmaGeometry& geometry) const;
  /// The same of other loads, and of the ways to load.
  std::int64_t step_load(const WgmmaGeometry& geometry) const;
  std::int64_t load_copied(const WgmmaGeometry& geometry) const;
  std::int64_t load_by_lanes(const WgmmaGeometry& geometry) const;
  /// Cycles of a step's multiplications.
  std::int64_t step_multiply(const WgmmaGeometry& geometry) const;
  /// Cycles of a tile's store, but for what it waits.
  std::int64_t store_columns(const WgmmaGeometry& geometry, const WgmmaStore& outputs,
                             std::int64_t bytes_of_window) const;
  /// Bytes that a tile writes.
  std::int64_t tile_bytes(const WgmmaGeometry& geometry, const WgmmaStore& outputs) const;
  /// Cycles that a warpgroup waits for boxes of its tile that have no place until others are stored.
  std::int64_t awaited_boxes(const WgmmaGeometry& geometry, const WgmmaStore& outputs) const;
  /// Picoseconds at least, of tensors that the L2 cache does not hold; 0 of smaller ones.
  std::int64_t from_dram(const WgmmaGeometry& geometry, std::int64_t bytes) const;
  /// Picoseconds of the kernel that packs weights, which takes so long to launch; 0 where they are not packed.
  std::int64_t packing(const WgmmaGeometry& geometry, std::int64_t launch) const;
  /// Picoseconds of a launch that computes for `compute`, moves memory for `memory`, and DRAM at least for `dram`.
  std::int64_t launched(std::int64_t compute, std::int64_t memory, std::int64_t dram) const;
  /// Bytes of the rows of x that any tap meets.
  std::int64_t input_bytes() const { return input_bytes_; }

  const Problem& problem_;
  const Target& target_;
  const WgmmaCosts& costs_;
  PixelGrid grid_;
  std::int64_t bytes_, input_bytes_;
};

}  // namespace jitconv::codegen
