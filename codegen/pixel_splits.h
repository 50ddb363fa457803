// What all families of weight gradients say of the pixels that their sums run over: how blocks share them, and what of
// them a kernel is made for. For those that want a smaller gradient with the same kernel; emitters have numbers of
// their own.
#pragma once

#include <concepts>
#include <cstdint>

#include "codegen/problem.h"

namespace jitconv::codegen {

/// The rows and columns of y that a smaller gradient may not leave out, or its kernel would be another.
struct KeptPixels {
  bool columns = false;       ///< copies are made for their number
  std::int64_t multiple = 1;  ///< rows go in multiples of it, because planes must be whole vectors of 16 bytes
};

struct PixelSplits {
  std::int64_t splits = 0;                      ///< blocks that share the pixels of a tile of dw
  std::int64_t tiles_k = 0, tiles_columns = 0;  ///< of dw, along K and along C/groups*R*S
  KeptPixels kept = {};
  std::int64_t blocks() const { return splits * tiles_k * tiles_columns; }
};

/// A tiling of a family of weight gradients.
template <typename Tiling>
concept SumsPixels = requires(const Tiling& tiling, Tiling& changed, const Problem& problem, std::int64_t splits) {
  { tiling.pixel_splits(problem) } -> std::same_as<PixelSplits>;
  /// Lets at most `splits` blocks share the pixels of a tile.
  changed.share_pixels(problem, splits);
};

}  // namespace jitconv::codegen
