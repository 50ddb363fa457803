// Where tiles of the tensor family find their pixels, for tests of the ways in which these come: runs of positions, and
// the outputs that each may store.
#pragma once

#include <algorithm>
#include <cstdint>

#include "unit/codegen/tensor_candidates.h"

namespace jitconv::test {

/// A run of some tile: its first output, or position, and its image, or its first image.
struct Run {
  std::int64_t first, image;
};

inline Run run_of(const TensorCandidate& one, std::int64_t tile, int run) {
  const codegen::WgmmaTiling& t = one.tiling;
  if (t.images > 0) return {0, (tile * t.runs() + run) * t.images};
  const std::int64_t of_plane = t.tiles_of_plane(one.spec);
  return {(tile % of_plane * t.runs() + run) * t.window, tile / of_plane};
}

/// Calls visit(position, image, output) for all outputs that a run may store, with those after its window where a
/// channel's runs start late.
template <typename Visit>
void visit_outputs(const TensorCandidate& one, const Run& run, const Visit& visit) {
  const codegen::WgmmaTiling& t = one.tiling;
  const ConvSpec& spec = one.spec;
  const TensorShape out = output_shape(spec);
  const std::int64_t pitch = codegen::WgmmaTiling::pitch(spec), plane = out.h * out.w;
  if (t.stores_boxes()) {
    for (std::int64_t position = 0; position < t.columns; ++position) {
      const std::int64_t p = (run.first + position) / t.run_row(spec), q = (run.first + position) % t.run_row(spec);
      if (p < out.h && q < out.w) visit(position, run.image, p * out.w + q);
    }
    return;
  }
  const auto place_of = [&](std::int64_t output) { return output / out.w * pitch + output % out.w; };
  if (t.images == 0) {
    const std::int64_t end = std::min(plane, run.first + t.window + codegen::WgmmaTiling::slack(spec));
    for (std::int64_t o = run.first; o < end; ++o) visit(place_of(o) - place_of(run.first), run.image, o);
    return;
  }
  for (std::int64_t image = 0; image < std::min<std::int64_t>(t.images, spec.input.n - run.image); ++image)
    for (std::int64_t o = 0; o < plane; ++o) visit(image * t.image_positions(spec) + place_of(o), run.image + image, o);
}

}  // namespace jitconv::test
