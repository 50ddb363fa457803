// How kernels cut their outputs into tiles, as each family says it for whoever computes fewer outputs with the same
// kernel (tools/reduce.h). Not what the kernels themselves decide with.
#pragma once

#include <cstdint>

namespace jitconv::codegen {

/// Tiles of a kernel, and the blocks that compute them.
struct OutputTiles {
  /// What a tile has several of: planes of channels, counted over all images, or whole images. Both are 0 if a tile is
  /// a part of one image.
  std::int64_t planes = 0, images = 0;
  /// Rows and columns of outputs that a tile has. Of tiles that are runs of outputs: rows and columns can be taken away
  /// in multiples of these numbers without moving the ends of runs. 0: all have to stay.
  std::int64_t rows = 1, columns = 1;
  /// Set if tiles are runs of outputs and not of rows: the outputs that a row counts, and the fewest outputs that have
  /// two tiles.
  std::int64_t row_outputs = 0, fewest_outputs = 0;
  std::int64_t line_outputs = 0;  ///< of a block, where the pixels of all images are one line; 0: they are not
  std::int64_t tiles = 1;         ///< that blocks walk over, or have one each
  std::int64_t slabs = 1;         ///< blocks of a tile, which begin alike
};

}  // namespace jitconv::codegen
