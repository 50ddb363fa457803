// Packed tensors of the wgrad_wgmma family: where pixels of phases and of other images lie, and that the kernel waits
// for the one that packs.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "codegen/plan.h"
#include "codegen/text/emitter.h"
#include "support/random_specs.h"

namespace jitconv::codegen {
namespace {

std::vector<ConvPlan> plans_of(const ConvSpec& spec) { return enumerate_plans(spec, parse_target("sm_90a"), SIZE_MAX); }

TEST(PackedPixels, AreAwaitedByWhatStartsEarly) {
  std::map<std::string, int> waits;
  for (const char* text : {"input=5,32,8,8 weight=72,32,4,4 stride=2 padding=1 bias math=tf32 layout=nhwc",
                           "input=5,32,7,8 weight=72,32,4,4 stride=2 padding=1 bias dtype=bf16",
                           "input=5,32,7,7 weight=72,32,1,1 bias math=tf32"})
    for (const ConvPlan& plan : plans_of(parse_spec(std::string(text) + " operation=weight_gradient")))
      for (const KernelPlan& kernel : plan.kernels) {
        if (!kernel.starts_early) continue;
        const KernelText printed = functions_of(kernel.family()).emit(kernel, "kernel");
        EXPECT_NE(printed.text.find("wait_for_previous_kernel();"), std::string::npos) << to_string(plan);
        ++waits[std::string(to_string(kernel.family()))];
      }
  EXPECT_GT(waits["wgrad_wgmma"], 0);
  EXPECT_GT(waits["reduce"], 0);
}

/// Where the packed tensor has a column of an image's row, in elements from the row's start.
std::int64_t place(const PackedPixels& x, std::int64_t image, std::int64_t column) {
  return image * x.pitch.n + column % x.column_phases * x.phase_pitch + column / x.column_phases * x.pitch.w;
}

/// And where the kernel looks for column `column` of its row.
std::int64_t place(const WgradWgmmaTiling& tiling, const Problem& problem, std::int64_t column) {
  if (tiling.takes_boxes()) return column * problem.input.stride.w;
  const std::int64_t stride = problem.columns.stride;
  return column % stride * (problem.input.stride.h / stride) + column / stride;
}

// A tap of a pixel of dy meets its pixel of x, or a column of zeros, whichever images are its neighbours.
RC_GTEST_PROP(PackedPixelsProperty, RowsOfAllImagesKeepTapsApart, ()) {
  ConvSpec spec = *test::valid_specs();
  spec.operation = Operation::weight_gradient;
  spec.epilogue = {};
  spec.groups = 1, spec.weight.c = spec.input.c = 16, spec.weight.k = 32;
  spec.alignment = 16, spec.math = MathMode::tf32;
  spec.input.n = std::max<std::int64_t>(spec.input.n, 2);
  int joined = 0;
  for (const ConvPlan& plan : plans_of(spec)) {
    const auto* const tiling = plan.tiling<WgradWgmmaTiling>();
    if (tiling == nullptr || !tiling->joins_rows || joined++ > 0) continue;
    const Problem asked = lower(plan.spec), problem = tiling->problem_of(asked);
    const PackPixelsTiling packing = tiling->packing_of(asked);
    const PackedPixels &x = packing.tensor[0], &dy = packing.tensor[1];
    RC_ASSERT(problem.n == 1 && x.n == asked.n && dy.n == asked.n);
    const Axis& columns = asked.columns;
    std::map<std::int64_t, std::int64_t> content;  // of the packed row: the pixel there, counted over images
    for (std::int64_t image = 0; image < x.n; ++image)
      for (std::int64_t column = 0; column < x.packed_columns; ++column) {
        // Phases of an image's packed columns follow each other.
        const std::int64_t phase_columns = x.packed_columns / x.column_phases;
        const std::int64_t w = column % phase_columns * x.column_phases + column / phase_columns;
        RC_ASSERT(content.emplace(place(x, image, w), w < x.columns ? image * columns.input + w : -1).second);
      }
    for (std::int64_t image = 0; image < dy.n; ++image)
      for (std::int64_t q = 0; q < columns.output; ++q)
        for (std::int64_t tap = 0; tap < columns.taps; ++tap) {
          const std::int64_t w = q * columns.stride + tap * columns.dilation - columns.pad;
          const std::int64_t of_all = image * dy.pitch.n / dy.pitch.w * columns.stride + w;
          const std::int64_t wanted = w >= 0 && w < columns.input ? image * columns.input + w : -1;
          const bool outside = of_all < 0 || of_all >= problem.columns.input;
          RC_ASSERT((outside ? -1 : content.at(place(*tiling, problem, of_all))) == wanted);
        }
  }
  RC_CLASSIFY(joined == 0, "none joined");
}

}  // namespace
}  // namespace jitconv::codegen
