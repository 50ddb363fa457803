// Where tiles of the wgmma family find their pixels, for tests of the ways in which these come: runs of positions, and
// the outputs that each may store.
#pragma once

#include <algorithm>
#include <cstdint>

#include "unit/codegen/wgmma_candidates.h"

namespace jitconv::test {

/// A run of some tile: its first output, or position, and its image, or its first image.
struct Run {
  std::int64_t first, image;
};

/// A pixel of a channel, of all groups', or zero.
struct ChannelPixel {
  bool exists = false;
  std::int64_t n = 0, channel = 0, pixel = 0;
  bool operator==(const ChannelPixel&) const = default;
};

inline Run run_of(const WgmmaCandidate& one, std::int64_t tile, int run) {
  const codegen::WgmmaTiling& t = one.tiling;
  if (t.tile.images > 0) return {0, (tile * t.runs() + run) * t.tile.images};
  const std::int64_t of_plane = one.geometry().tiles_of_plane();
  return {(tile % of_plane * t.runs() + run) * t.tile.window, tile / of_plane};
}

/// Calls visit(position, image, output) for all outputs that a run may store, with those after its window where a
/// channel's runs start late.
template <typename Visit>
void visit_outputs(const WgmmaCandidate& one, const Run& run, const Visit& visit) {
  const codegen::WgmmaTiling::Tile& tile = one.tiling.tile;
  const codegen::WgmmaGeometry g = one.geometry();
  const codegen::Problem& problem = one.problem;
  const std::int64_t width = problem.columns.output, plane = problem.output_plane();
  if (one.tiling.stores_boxes()) {
    for (std::int64_t position = 0; position < tile.columns; ++position) {
      const std::int64_t p = (run.first + position) / g.run_row(), q = (run.first + position) % g.run_row();
      if (p < problem.rows.output && q < width) visit(position, run.image, p * width + q);
    }
    return;
  }
  const auto place_of = [&](std::int64_t output) { return output / width * g.pitch() + output % width; };
  if (tile.images == 0) {
    const std::int64_t end = std::min(plane, run.first + tile.window + g.alignment_outputs());
    for (std::int64_t o = run.first; o < end; ++o) visit(place_of(o) - place_of(run.first), run.image, o);
    return;
  }
  for (std::int64_t image = 0; image < std::min<std::int64_t>(tile.images, problem.n - run.image); ++image)
    for (std::int64_t o = 0; o < plane; ++o) visit(image * g.image_positions() + place_of(o), run.image + image, o);
}

}  // namespace jitconv::test
