// Reduction of the gradients: dx takes the place of y, and of dw pixels are taken away.
#include <gtest/gtest.h>

#include "codegen/plan.h"
#include "tools/documented.h"
#include "unit/tools/reduce_test_support.h"

namespace jitconv::tools {
namespace {

TEST(Reduce, GradientsOfDocumentedConfigurationsKeepTheirKernels) {
  for (const Operation operation : {Operation::data_gradient, Operation::weight_gradient}) {
    for (const DocumentedConfiguration& configuration : documented_configurations()) {
      ConvSpec spec = configuration.spec;
      spec.operation = operation;
      SCOPED_TRACE(to_string(spec));
      const Reduction small = reduce(spec, kTarget, kDocumented);
      const codegen::ConvPlan full = codegen::make_plan(spec, kTarget);
      EXPECT_EQ(small.plan.spec, with_extents_of(full.spec, small.plan.spec));
      EXPECT_EQ(difference(small.plan, full), "");
      // Pixels are taken away no further than they must: more of them show nothing else, and fewer have fewer chunks.
      const bool takes_pixels = operation == Operation::weight_gradient;
      const std::int64_t limit = takes_pixels ? kDocumented.most : kDocumented.as_given;
      EXPECT_EQ(small.reduced, executed_multiply_adds(full) > limit);
      if (small.multiply_adds > kDocumented.most) {
        EXPECT_NE(small.note.find("cannot be made fewer"), std::string::npos) << small.note;
      }
    }
  }
}

TEST(Reduce, AWeightGradientKeepsItsTilesAndTwoSplits) {
  const Reduction small =
      reduced("input=8,32,512,512 weight=64,32,5,9 padding=2,4 dilation=2,3 bias operation=weight_gradient math=ieee",
              {0, 100'000'000});
  const auto& tiling = std::get<codegen::WgradTiling>(small.plan.convolution().tiling);
  EXPECT_EQ(small.tiles[0], 2);
  EXPECT_EQ(small.tiles[1] * small.tiles[2], tiling.tiles(small.plan.convolution().problem));
  EXPECT_EQ(small.plan.kernels.size(), 2u) << "the sums of the splits are added";
  EXPECT_LE(small.multiply_adds, 100'000'000);
  EXPECT_EQ(small.note, "");
}

TEST(Reduce, AWeightGradientOfPatchesSharesTheirPixels) {
  const Reduction small =
      reduced("input=32,3,224,224 weight=768,3,16,16 stride=16 operation=weight_gradient dtype=bf16", {0, 400'000'000});
  ASSERT_TRUE(small.reduced);
  const codegen::KernelPlan& kernel = small.plan.convolution();
  const auto& tiling = std::get<codegen::WgradWgmmaTiling>(kernel.tiling);
  ASSERT_TRUE(tiling.gathers_patches);
  codegen::WgradWgmmaTiling shared = tiling;
  shared.share_pixels(kernel.problem, tiling.splits);
  EXPECT_EQ(shared, tiling);
}

TEST(Reduce, ADepthwiseWeightGradientKeepsItsStripsAndTwoSplits) {
  const ConvSpec spec =
      parse_spec("input=16,64,512,512 weight=64,1,3,3 groups=64 padding=1 bias operation=weight_gradient");
  const Reduction small = reduce(spec, kTarget, {0, 100'000'000});
  const auto& tiling = std::get<codegen::WgradDepthwiseTiling>(small.plan.convolution().tiling);
  auto full = std::get<codegen::WgradDepthwiseTiling>(codegen::make_plan(spec, kTarget).convolution().tiling);
  full.turns = tiling.turns;
  EXPECT_EQ(tiling, full);
  EXPECT_EQ(small.tiles[0], 2);
  EXPECT_EQ(small.tiles[1], 64);
  EXPECT_EQ(small.plan.spec.input.w, 512);
  EXPECT_EQ(small.plan.kernels.size(), 2u) << "the sums of the splits are added";
  EXPECT_LE(small.multiply_adds, 100'000'000);
  EXPECT_EQ(small.note, "");
}

TEST(Reduce, PixelsStayWhereFewerAreMoreWork) {
  const std::string text =
      "input=1,1,49,512 weight=1,1,2,1 padding=0,0,1,1 dilation=3,1 math=ieee alignment=8 "
      "operation=weight_gradient";
  const Target target = parse_target("sm_75");
  const Reduction small = reduce(parse_spec(text), target, {0, 1});
  EXPECT_FALSE(small.reduced);
  EXPECT_EQ(small.multiply_adds, executed_multiply_adds(codegen::make_plan(parse_spec(text), target)));
  EXPECT_EQ(small.note, "0 M multiply-adds cannot be made fewer");
}

TEST(Reduce, RowsOfADataGradientAreThoseOfDx) {
  // Without padding dy has 62 rows; a stride of 2 takes rows of dx away in pairs.
  for (const char* stride : {"1", "2"}) {
    const ConvSpec spec =
        parse_spec(std::string("input=2,8,65,65 weight=8,8,3,3 operation=data_gradient stride=") + stride);
    const Reduction small = reduce(spec, kTarget, {0, 1});
    EXPECT_LT(small.plan.spec.input.h, 65);
    EXPECT_EQ((65 - small.plan.spec.input.h) % spec.stride.h, 0);
    EXPECT_EQ((output_shape(spec).h - output_shape(small.plan.spec).h) * spec.stride.h, 65 - small.plan.spec.input.h);
  }
}

}  // namespace
}  // namespace jitconv::tools
