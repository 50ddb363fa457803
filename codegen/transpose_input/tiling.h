// The pass that transposes NCHW pixels to an NHWC tensor of operand rows, or splits floats of either layout into pairs
// of fp16 numbers, and the problem that remains to be convolved.
#pragma once

#include <cstdint>

#include "codegen/problem.h"

namespace jitconv::codegen {

/// The pass's problem is that of the convolution behind it, whose input it makes: a pixel is `pixel_slices` rows of 16
/// bytes. A block makes `slices` rows of each of `pixels` pixels, counted over all images.
struct TransposeInputTiling {
  View source;  ///< of x, its rows and columns those of the input that is made
  int pixels = 64;
  int slices = 8;

  static constexpr int kThreads = 256;
  static constexpr std::int64_t kRowBytes = 16;

  static int slice_channels(const Problem& problem) {
    return static_cast<int>(kRowBytes / problem.input.element_bytes());
  }
  static std::int64_t pixel_slices(const Problem& problem);
  static std::int64_t transposed_bytes(const Problem& problem);
  std::int64_t pixel_tiles(const Problem& problem) const;  ///< of all images
  std::int64_t slice_tiles(const Problem& problem) const;  ///< of a pixel
  /// Rows from a pixel to the next in shared memory, so that lanes with neighbouring pixels have no bank conflicts.
  int row_pitch() const { return slices + 1; }
  std::int64_t shared_bytes() const { return pixels * row_pitch() * kRowBytes; }
  std::int64_t blocks(const Problem& problem) const;
  bool operator==(const TransposeInputTiling&) const = default;
};

/// The convolution of the NHWC tensor that x is transposed to. It has those rows and columns of x that taps may meet:
/// if only one residue modulo the stride does, the stride is 1. Its input is scratch region 0 until a plan gives it
/// one.
Problem transposed_problem(const Problem& problem);
/// The same of the tensor of pairs that a float input of either layout is split into.
Problem split_problem(const Problem& problem);

/// The pass that makes `transposed`'s input of the input of `asked`.
TransposeInputTiling transpose_input_tiling(const Problem& asked, const Problem& transposed);

}  // namespace jitconv::codegen
