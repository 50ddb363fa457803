// The pass that packs the pixels of x, of dy or of both: as planes, or as NHWC rows, whichever way they lay. Planes
// leave out what the stride of a 1x1 filter skips; rows may end with columns of zeros, and have columns in phases.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "codegen/problem.h"

namespace jitconv::codegen {

/// A block packs kTile pixels, counted over all images, of kTile channels.
struct PackedPixels {
  View source;
  bool is_input = true;                                     ///< of the convolution's problem; else its output
  std::int64_t n = 1, channels = 1, rows = 1, columns = 1;  ///< extents of `source`
  View::Strides pitch;                                      ///< of the result, along images, channels, rows and columns
  std::int64_t packed_columns = 1;                          ///< of a row of the result: `columns`, or more
  /// Columns of a row that differ modulo this are kept apart in the result: [phase][column], phases of equal lengths.
  std::int64_t column_phases = 1;
  std::int64_t phase_pitch = 0;  ///< of the result, from a phase to the next
  Tensor packed = Tensor::scratch;

  static constexpr int kTile = 64;
  /// The parameter's name. "dy" is also dy multiplied by an activation's derivative.
  const char* name() const { return source.is_operand_rows ? "patches" : source.tensor == Tensor::x ? "x" : "dy"; }
  std::int64_t pixels() const { return n * rows * packed_columns; }
  std::int64_t bytes() const;
  std::int64_t pixel_tiles() const;
  std::int64_t blocks() const;
  /// Lanes read along channels, or else along pixels; and write so.
  bool reads_channels() const { return source.stride.c == 1; }
  bool writes_channels() const { return pitch.c == 1; }
  /// Whether rows of the result have columns of zeros, or phases.
  bool pads() const { return column_phases > 1 || packed_columns != columns; }
  /// By way of shared memory.
  bool transposes() const { return reads_channels() != writes_channels(); }
  /// Elements from a row to the next in shared memory: an odd number of words, so no bank conflicts.
  int tile_pitch() const { return kTile + static_cast<int>(4 / source.element_bytes()); }
  std::int64_t shared_bytes() const { return transposes() ? source.element_bytes() * kTile * tile_pitch() : 0; }
  bool operator==(const PackedPixels&) const = default;
};

struct PackPixelsTiling {
  static constexpr int kThreads = 256;
  int count = 0;  ///< of tensors: one or two
  std::array<PackedPixels, 2> tensor;
  void add(const PackedPixels& one) { tensor[static_cast<std::size_t>(count++)] = one; }
  std::span<const PackedPixels> tensors() const { return {tensor.data(), static_cast<std::size_t>(count)}; }
  std::span<PackedPixels> tensors() { return {tensor.data(), static_cast<std::size_t>(count)}; }
  bool operator==(const PackPixelsTiling&) const = default;
};

}  // namespace jitconv::codegen
