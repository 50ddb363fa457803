// Pixels that TMA brings as boxes of NCHW planes (Pixels::planes), an MN-major operand: every output that
// is stored meets its pixel in every channel, and boxes start where they may. Restates
// templates/wgmma/copy_planes.cu.in and how multiplications read rows that are channels.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

#include "codegen/arithmetic.h"
#include "fmt/format.h"
#include "unit/codegen/wgmma_runs.h"

namespace jitconv::codegen {
namespace {

using test::map_of;
using test::Run;
using test::WgmmaCandidate;

constexpr std::int64_t kPart = 64;  // pixels of a channel in a row of 128 bytes

using Element = test::ChannelPixel;

ConvSpec for_planes(ConvSpec spec) {
  spec = test::for_rows_of_channels(spec);
  if (spec.groups > 1) spec.weight.c = 16 * *rc::gen::inRange<std::int64_t>(1, 9);
  spec.input.c = spec.weight.c * spec.groups;
  const bool parts = *rc::gen::inRange(0, 3) == 0;  // images of whole parts, of which a run has several
  spec.input.h = parts ? 8 : *rc::gen::inRange<std::int64_t>(1, 25);
  spec.input.w = 8 * (parts ? 1 : *rc::gen::inRange<std::int64_t>(1, 12));
  return spec;
}

std::vector<WgmmaCandidate> some_of_planes() {
  std::vector<WgmmaCandidate> all = test::wgmma_candidates(for_planes(*test::valid_specs()));
  std::erase_if(all, [](const WgmmaCandidate& one) { return !one.tiling.uses_planes(); });
  return test::some_of(all);
}

/// What the boxes of a run bring, by elements of a stage as multiplications address them: swizzles cancel out.
std::vector<Element> filled_run(const WgmmaCandidate& one, const TensorMapShape& map, const Run& run,
                                std::int64_t first_channel) {
  const Problem& problem = one.problem;
  const WgmmaGeometry g = one.geometry();
  const std::int64_t plane = problem.input_plane(), images = one.tiling.tile.images;
  RC_ASSERT(map.box[0] == kPart && map.box[1] == g.chunk_channels() && map.box[2] == 1 && map.swizzle_bytes == 128);
  std::vector<Element> elements;
  for (std::int64_t part = 0; part < g.pixels().parts(); ++part) {
    const std::int64_t pixel = images > 1 ? part * kPart % plane : run.first + part * kPart,
                       image = images > 1 ? run.image + part * kPart / plane : run.image;
    RC_ASSERT(pixel * map.element_bytes % 16 == 0);
    for (std::int64_t c = first_channel; c < first_channel + g.chunk_channels(); ++c)
      for (std::int64_t i = pixel; i < pixel + kPart; ++i)
        elements.push_back(i < plane && c < problem.input_channels() && image < problem.n ? Element{true, image, c, i}
                                                                                          : Element{});
  }
  RC_ASSERT(static_cast<std::int64_t>(elements.size()) * map.element_bytes == g.pixels().run_bytes());
  return elements;
}

RC_GTEST_PROP(WgmmaPlanesProperty, EveryOutputMeetsItsPixelInEveryChannel, ()) {
  for (const WgmmaCandidate& one : some_of_planes()) {
    const Problem& problem = one.problem;
    const WgmmaGeometry g = one.geometry();
    const TensorMapShape map = map_of(one, Tensor::x);
    RC_ASSERT(map.rank == 3 && !map.im2col);
    for (std::int64_t tile = 0; tile < std::min<std::int64_t>(g.tiles_of_images(), 4); ++tile) {
      for (int number = 0; number < one.tiling.runs(); ++number) {
        const Run run = test::run_of(one, tile, number);
        const std::int64_t group = problem.groups - 1, chunk = g.steps() - 1;
        const std::int64_t first = group * problem.c + chunk * g.chunk_channels();
        const std::vector<Element> elements = filled_run(one, map, run, first);
        test::visit_outputs(one, run, [&](std::int64_t position, std::int64_t image, std::int64_t output) {
          RC_ASSERT(position < one.tiling.tile.columns);
          for (std::int64_t c = 0; c < g.chunk_channels(); ++c) {
            const bool exists = first + c < problem.input_channels();
            RC_ASSERT(exists || problem.groups == 1);
            const Element wanted = exists ? Element{true, image, first + c, output} : Element{};
            const std::int64_t at = (position / kPart * g.chunk_channels() + c) * kPart + position % kPart;
            RC_ASSERT(elements.at(static_cast<std::size_t>(at)) == wanted);
          }
        });
      }
    }
  }
}

bool has_planes(const std::string& text) {
  for (const WgmmaCandidate& one : test::wgmma_candidates(parse_spec(text)))
    if (one.tiling.uses_planes()) return true;
  return false;
}

TEST(WgmmaPlanes, AreOf16BitPixelsThatLieAsOutputsDo) {
  const std::string plain = "input=2,64,12,16 weight=72,64,1,1 ";
  EXPECT_TRUE(has_planes(plain + "dtype=bf16"));
  EXPECT_TRUE(has_planes(plain + "dtype=f16 output_layout=nhwc"));
  for (const char* other : {"math=tf32", "dtype=bf16 input_layout=nhwc", "dtype=bf16 stride=2", "dtype=bf16 padding=1"})
    EXPECT_FALSE(has_planes(plain + other)) << other;
  EXPECT_FALSE(has_planes("input=2,64,12,16 weight=72,64,1,3 padding=0,1 dtype=bf16"));
  EXPECT_FALSE(has_planes("input=2,64,14,14 weight=72,64,1,1 dtype=bf16")) << "planes of 392 bytes";
  EXPECT_FALSE(has_planes("input=2,48,12,16 weight=72,24,1,1 groups=2 dtype=bf16")) << "channels of the next group";
}

TEST(WgmmaPlanes, AreChosenForManyChannels) {
  for (const char* text :
       {"input=2,2048,128,128 weight=256,2048,1,1 dtype=bf16 bias", "input=2,1920,64,64 weight=640,1920,1,1 dtype=f16",
        "input=16,768,28,28 weight=400,768,1,1 dtype=bf16"}) {
    const ConvPlan plan = make_plan(parse_spec(text), parse_target("sm_90a"));
    const auto* tiling = plan.tiling<WgmmaTiling>();
    ASSERT_NE(tiling, nullptr) << text;
    EXPECT_TRUE(tiling->uses_planes()) << text;
  }
}

}  // namespace
}  // namespace jitconv::codegen
