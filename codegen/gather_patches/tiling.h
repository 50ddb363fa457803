// The pass that gathers the patches of the input that outputs meet, as pixels of an NHWC tensor of operand rows, and
// the matrix product that remains to be computed.
#pragma once

#include <cstdint>

#include "codegen/problem.h"

namespace jitconv::codegen {

/// The pass's problem is that of the 1x1 convolution behind it, whose input it makes: a pixel is a patch of x, with
/// channels and taps in the order c, r, s of w, and has whole rows of 16 bytes. A thread makes a row.
struct GatherPatchesTiling {
  View source;         ///< of x
  Axis rows, columns;  ///< of the convolution that was asked for
  std::int64_t channels = 1;
  std::int64_t alignment = 16;  ///< bytes: x's address is a multiple

  static constexpr int kThreads = 256;
  static constexpr std::int64_t kRowBytes = 16;

  int row_elements() const { return static_cast<int>(kRowBytes / source.element_bytes()); }
  std::int64_t patch_elements() const { return channels * rows.taps * columns.taps; }
  std::int64_t patch_rows() const;
  std::int64_t all_rows(const Problem& problem) const;  ///< of all images
  /// Neighbouring elements of x that one load brings: a part of a filter row, all of it inside of x or none.
  int load_elements() const;
  /// What is read and written; twice that where each element's place is found alone, which takes as long as moving it.
  std::int64_t priced_bytes(const Problem& problem) const;
  std::int64_t blocks(const Problem& problem) const;
  bool operator==(const GatherPatchesTiling&) const = default;
};

/// Whether patches are worth gathering: of few channels, of which a filter row makes an operand that is mostly zeros,
/// where patches overlap little, as those of vision transformers. Not of data gradients, nor of groups.
bool can_gather_patches(const Problem& asked);

/// The 1x1 convolution of the patches of x, or its weight gradient. Its weight is the same tensor. Its input is scratch
/// region 0 until a plan gives it one.
Problem patch_problem(const Problem& asked);

/// The pass that makes the input of patch_problem(asked).
GatherPatchesTiling gather_patches_tiling(const Problem& asked);

}  // namespace jitconv::codegen
