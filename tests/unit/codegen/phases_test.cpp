// The phases of a data gradient with a stride, against the gradient's definition: every pixel meets the same taps at
// the same pixels of dy.
#include "codegen/phases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>

namespace jitconv::codegen {
namespace {

/// What a pixel's sum is made of: taps of the filter and pixels of dy.
using Products = std::set<std::pair<std::int64_t, std::int64_t>>;

struct Forward {
  std::int64_t pixels, taps, stride, dilation, pad;
  std::int64_t outputs() const { return (pixels + 2 * pad - (taps - 1) * dilation - 1) / stride + 1; }
  bool is_valid() const { return pixels + 2 * pad > (taps - 1) * dilation; }
};

Axis gradient_axis(const Forward& forward) {
  Axis axis;
  axis.input = forward.outputs();
  axis.output = forward.pixels;
  axis.taps = forward.taps;
  axis.dilation = forward.dilation;
  axis.pad = axis.reach() - forward.pad;
  axis.upsampling = forward.stride;
  return axis;
}

Problem gradient_of(const Forward& forward) {
  Problem problem;
  problem.rows = gradient_axis(forward);
  problem.k = 4;
  problem.input.type = DataType::f16;
  problem.output = {Tensor::dx, DataType::f16, dense_strides(Layout::nhwc, 4, forward.pixels, 1)};
  return problem;
}

Products by_definition(const Forward& forward, std::int64_t pixel) {
  Products products;
  for (std::int64_t tap = 0; tap < forward.taps; ++tap)
    for (std::int64_t output = 0; output < forward.outputs(); ++output)
      if (output * forward.stride + tap * forward.dilation - forward.pad == pixel) products.emplace(tap, output);
  return products;
}

Products by_phases(const Problem& problem, std::int64_t pixel) {
  Products products;
  const AxisPhases& phases = problem.phases.rows;
  for (const Phase& phase : phases.list) {
    if (phase.pixel != pixel % phases.stride) continue;
    const std::int64_t output = pixel / phases.stride + phase.shift;
    EXPECT_LT(output, problem.rows.output);
    for (std::int64_t t = 0; t < problem.rows.taps; ++t) {
      const std::int64_t tap = phase.first_tap - t * phases.tap_step;
      const std::int64_t met = output + t * problem.rows.dilation - problem.rows.pad;
      if (tap >= 0 && tap < phases.taps && met >= 0 && met < problem.rows.input) products.emplace(tap, met);
    }
  }
  return products;
}

/// The most taps that a pixel meets, those outside of dy included: the window need not be longer.
std::int64_t most_taps(const Forward& forward) {
  std::int64_t most = 1;
  for (std::int64_t pixel = 0; pixel < std::min(forward.stride, forward.pixels); ++pixel) {
    std::int64_t taps = 0;
    for (std::int64_t tap = 0; tap < forward.taps; ++tap)
      taps += (pixel + forward.pad - tap * forward.dilation) % forward.stride == 0 ? 1 : 0;
    most = std::max(most, taps);
  }
  return most;
}

void expect_same(const Forward& forward) {
  const Problem problem = sub_pixel_problem(gradient_of(forward));
  for (std::int64_t pixel = 0; pixel < forward.pixels; ++pixel)
    ASSERT_EQ(by_phases(problem, pixel), by_definition(forward, pixel))
        << "pixel " << pixel << " of " << forward.pixels << ", " << forward.taps << " taps, stride " << forward.stride
        << ", dilation " << forward.dilation << ", padding " << forward.pad;
  if (!problem.is_sub_pixel()) return;
  EXPECT_GE(problem.rows.pad, 0);
  EXPECT_EQ(problem.rows.taps, most_taps(forward));
}

TEST(Phases, MeetTheProductsOfTheDefinition) {
  for (std::int64_t stride = 1; stride <= 6; ++stride)
    for (std::int64_t dilation = 1; dilation <= 6; ++dilation)
      for (std::int64_t taps = 1; taps <= 5; ++taps)
        for (const std::int64_t pad : {0, 1, 2, 3, 7})
          for (std::int64_t pixels = 1; pixels <= 13; ++pixels) {
            const Forward forward{pixels, taps, stride, dilation, pad};
            if (forward.is_valid()) expect_same(forward);
          }
}

TEST(Phases, AreChannelsOfFloats) {
  const Problem problem = sub_pixel_problem(gradient_of({9, 3, 2, 1, 1}));
  EXPECT_EQ(problem.k, 2 * 4);
  EXPECT_EQ(problem.rows.output, 5);
  EXPECT_EQ(problem.rows.taps, 2);
  EXPECT_EQ(problem.output, (View{Tensor::scratch, DataType::f32, {40, 1, 8, 8}}));
  EXPECT_EQ(zero_percent(problem), 25);
}

TEST(Phases, StoredAsPixelsHaveTheGradientsTypeAndEpilogue) {
  Problem gradient = gradient_of({9, 3, 2, 1, 1});
  gradient.epilogue.bias = true;
  const Problem sums = sub_pixel_problem(gradient);
  const Problem stored = pixel_storing_problem(gradient, sums).value();
  EXPECT_EQ(stored.output, (View{Tensor::dx, DataType::f16, {40, 1, 8, 8}}));
  EXPECT_TRUE(stored.epilogue.bias);
  EXPECT_TRUE(stored.phases.stores_pixels);
  EXPECT_FALSE(stored.phases.columns_innermost);
  EXPECT_EQ(stored.phases.rows.pixels, 9);
  EXPECT_EQ(stored.pixel_channels(), 4);
  EXPECT_EQ(sums.pixel_channels(), 8) << "of sums, phases are channels";
}

TEST(Phases, AreStoredAsPixelsIfEveryPixelIsWrittenWithOne) {
  Problem lone = gradient_of({9, 1, 2, 1, 0});
  const auto zeros = pixel_storing_problem(lone, sub_pixel_problem(lone));
  ASSERT_TRUE(zeros) << "odd rows meet no tap, and lie behind even ones";
  EXPECT_TRUE(zeros->phases.rows.has_zeros());
  EXPECT_EQ(zeros->phases.pixels_of_output(), 2);
  EXPECT_EQ(sub_pixel_problem(lone).phases.pixels_of_output(), 1) << "of sums";
  EXPECT_EQ(work(*zeros).bytes - work(gradient_of({5, 1, 1, 1, 0})).bytes,
            static_cast<double>((2 * 5 - 5) * lone.n * lone.output_channels() * lone.columns.output * 2))
      << "zeros are written, too";
  lone.epilogue.bias = true;
  EXPECT_FALSE(pixel_storing_problem(lone, sub_pixel_problem(lone))) << "zeros have no bias";
  const Problem before = gradient_of({9, 1, 2, 1, 1});
  EXPECT_FALSE(pixel_storing_problem(before, sub_pixel_problem(before))) << "row 0 meets no tap";
  const Problem dense = gradient_of({9, 3, 1, 1, 1});
  EXPECT_FALSE(pixel_storing_problem(dense, dense)) << "there are no phases";
}

TEST(Phases, OfTapsBetweenThePixelsThereAreNone) {
  // Pixels 0 and 1 of stride 4 lie between what the only tap meets.
  EXPECT_FALSE(sub_pixel_problem(gradient_of({2, 1, 4, 1, 2})).is_sub_pixel());
  EXPECT_TRUE(sub_pixel_problem(gradient_of({3, 1, 4, 1, 2})).is_sub_pixel());
}

TEST(Phases, HaveNoZerosWhereTheStrideDividesTheFilter) {
  for (const std::int64_t pad : {0, 1, 2}) {
    const Problem problem = sub_pixel_problem(gradient_of({16, 4, 2, 1, pad}));
    EXPECT_EQ(problem.rows.taps, 2);
    EXPECT_EQ(zero_percent(problem), 0);
  }
}

}  // namespace
}  // namespace jitconv::codegen
