// Planes of 16-bit pixels that TMA brings as they lie in x, and that threads shift to whole vectors (Pixels::aligned):
// every output that is stored meets its pixel in every channel, boxes start where they may, and all that is read was
// copied. Restates templates/wgmma/copy_periods.cu.in and align_*.cu.in.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <numeric>
#include <vector>

#include "codegen/arithmetic.h"
#include "codegen/wgmma/memory.h"
#include "unit/codegen/wgmma_runs.h"

namespace jitconv::codegen {
namespace {

using test::map_of;
using test::Run;
using test::WgmmaCandidate;

constexpr std::int64_t kVector = 8;  // elements
constexpr std::int64_t kPart = 64;   // pixels of a channel in a row of 128 bytes

using Element = test::ChannelPixel;

ConvSpec for_aligned_planes(ConvSpec spec) {
  spec = test::for_rows_of_channels(spec);
  spec.weight.c = (spec.groups > 1 ? 16 : 8) * *rc::gen::inRange<std::int64_t>(1, 9);
  spec.input.c = spec.weight.c * spec.groups;
  spec.input.h = *rc::gen::inRange<std::int64_t>(1, 25);
  spec.input.w = *rc::gen::inRange<std::int64_t>(1, 40);
  return spec;
}

std::vector<WgmmaCandidate> some_of_aligned_planes() {
  std::vector<WgmmaCandidate> all = test::wgmma_candidates(for_aligned_planes(*test::valid_specs()));
  std::erase_if(all, [](const WgmmaCandidate& one) { return !one.tiling.aligns_pixels(); });
  return test::some_of(all);
}

/// What the boxes of a run bring, element by element.
class Copies {
 public:
  Copies(const WgmmaCandidate& one, const Run& run, std::int64_t first_channel) : problem_(one.problem) {
    const WgmmaGeometry g = one.geometry();
    const TensorMapShape map = map_of(one, Tensor::x);
    const std::int64_t plane = problem_.input_plane(), period = WgmmaPixels::plane_period(problem_);
    RC_ASSERT(map.rank == 3 && !map.im2col && map.swizzle_bytes == 0 && map.element_bytes == 2);
    RC_ASSERT(map.extents[0] == period * plane && map.strides[1] == map.extents[0] && map.strides[1] % kVector == 0);
    RC_ASSERT(map.strides[2] % kVector == 0 && first_channel % period == 0);
    RC_ASSERT(map.box[0] == g.pixels().raw_pitch() && map.box[0] % kVector == 0 &&
              map.box[0] <= TensorMapShape::kMostBox);
    RC_ASSERT(map.box[1] * period == g.chunk_channels() && map.box_bytes() <= 2 * g.pixels().box_elements());
    RC_ASSERT(g.pixels().box_elements() * 2 % 128 == 0);
    elements_.resize(static_cast<std::size_t>(period * g.pixels().box_elements()));
    for (std::int64_t start = 0; start < period; ++start) {
      const std::int64_t first = run.first + start * plane / kVector * kVector;
      RC_ASSERT(first % kVector == 0);
      auto to = elements_.begin() + start * g.pixels().box_elements();
      for (std::int64_t image = 0; image < map.box[2]; ++image)
        for (std::int64_t row = 0; row < map.box[1]; ++row)
          for (std::int64_t i = first; i < first + map.box[0]; ++i)
            *to++ = element(map, i, first_channel / period + row, run.image + image);
    }
  }

  /// Eight elements, of vectors that were copied.
  Element at(std::int64_t place) const {
    RC_ASSERT(place >= 0 && place < static_cast<std::int64_t>(elements_.size()));
    return elements_[static_cast<std::size_t>(place)];
  }

 private:
  Element element(const TensorMapShape& map, std::int64_t in_row, std::int64_t row, std::int64_t n) const {
    if (in_row >= map.extents[0] || row >= map.extents[1] || n >= map.extents[2]) return {};
    const std::int64_t channel = row * WgmmaPixels::plane_period(problem_) + in_row / problem_.input_plane();
    return {true, n, channel, in_row % problem_.input_plane()};
  }

  const Problem& problem_;
  std::vector<Element> elements_;
};

/// What a lane makes of a position of a channel of the step.
Element aligned_element(const WgmmaCandidate& one, const Copies& copies, std::int64_t channel, std::int64_t position) {
  const WgmmaGeometry g = one.geometry();
  const std::int64_t plane = one.problem.input_plane(), period = WgmmaPixels::plane_period(one.problem);
  const std::int64_t start = channel % period, row = channel / period, rows = g.chunk_channels() / period;
  const std::int64_t images = one.tiling.tile.images;
  const std::int64_t image = images > 1 ? position / plane : 0, pixel = position - image * plane;
  return copies.at(start * g.pixels().box_elements() + (image * rows + row) * g.pixels().raw_pitch() +
                   start * plane % kVector + pixel);
}

RC_GTEST_PROP(WgmmaAlignedPlanesProperty, EveryOutputMeetsItsPixelInEveryChannel, ()) {
  for (const WgmmaCandidate& one : some_of_aligned_planes()) {
    const Problem& problem = one.problem;
    const WgmmaGeometry g = one.geometry();
    for (std::int64_t tile = 0; tile < std::min<std::int64_t>(g.tiles_of_images(), 4); ++tile) {
      for (int number = 0; number < one.tiling.runs(); ++number) {
        const Run run = test::run_of(one, tile, number);
        const std::int64_t first = (problem.groups - 1) * problem.c + (g.steps() - 1) * g.chunk_channels();
        const Copies copies(one, run, first);
        test::visit_outputs(one, run, [&](std::int64_t position, std::int64_t image, std::int64_t output) {
          RC_ASSERT(position < one.tiling.tile.columns);
          for (std::int64_t c = 0; c < g.chunk_channels(); ++c) {
            const bool exists = first + c < problem.input_channels();
            RC_ASSERT(exists || problem.groups == 1);
            const Element wanted = exists ? Element{true, image, first + c, output} : Element{};
            RC_ASSERT(aligned_element(one, copies, c, position) == wanted);
          }
        });
      }
    }
  }
}

RC_GTEST_PROP(WgmmaAlignedPlanesProperty, VectorsThatAreReadWereCopied, ()) {
  for (const WgmmaCandidate& one : some_of_aligned_planes()) {
    const WgmmaGeometry g = one.geometry();
    const WgmmaTiling::Tile& tile = one.tiling.tile;
    const std::int64_t plane = one.problem.input_plane(), pitch = g.pixels().raw_pitch();
    RC_ASSERT(tile.images > 0 || tile.window % kVector == 0);
    RC_ASSERT(g.pixels().raw_bytes() == 2 * one.tiling.runs() * g.pixels().raw_run_elements());
    RC_ASSERT(WgmmaMemory(g).raw_first_byte() % 128 == 0 && g.pixels().raw_bytes() % 128 == 0);
    if (tile.images <= 1) {  // a vector and the next one, whatever is wanted of it
      RC_ASSERT(tile.columns % kVector == 0 && tile.columns + kVector <= pitch);
      continue;
    }
    // Vectors behind a row's last are read if they have wanted elements only, and no vector is of three images.
    const std::int64_t latest = kVector - std::gcd(plane, kVector);
    RC_ASSERT(plane >= kVector && latest + plane <= pitch && pitch % kVector == 0);
    RC_ASSERT((tile.columns - kVector) < tile.images * plane);
  }
}

bool has_aligned_planes(const std::string& text) {
  for (const WgmmaCandidate& one : test::wgmma_candidates(parse_spec(text)))
    if (one.tiling.aligns_pixels()) return true;
  return false;
}

TEST(WgmmaAlignedPlanes, AreOf16BitPixelsWhosePlanesStartAnywhere) {
  const std::string plain = "input=2,64,14,14 weight=72,64,1,1 ";
  EXPECT_TRUE(has_aligned_planes(plain + "dtype=bf16"));
  EXPECT_TRUE(has_aligned_planes(plain + "dtype=f16 output_layout=nhwc"));
  for (const char* other : {"math=tf32", "dtype=bf16 input_layout=nhwc", "dtype=bf16 stride=2", "dtype=bf16 padding=1"})
    EXPECT_FALSE(has_aligned_planes(plain + other)) << other;
  EXPECT_FALSE(has_aligned_planes("input=2,64,14,14 weight=72,64,1,3 padding=0,1 dtype=bf16"));
  EXPECT_FALSE(has_aligned_planes("input=2,64,12,16 weight=72,64,1,1 dtype=bf16")) << "planes of whole vectors";
  EXPECT_FALSE(has_aligned_planes("input=2,60,13,13 weight=72,60,1,1 dtype=bf16")) << "images between vectors";
  EXPECT_FALSE(has_aligned_planes("input=2,48,14,14 weight=72,24,1,1 groups=2 dtype=bf16")) << "the next group";
}

}  // namespace
}  // namespace jitconv::codegen
