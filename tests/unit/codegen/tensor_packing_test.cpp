// Statements about weights that a kernel packs before a convolution of the tensor family, and how its blocks share
// that.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "unit/codegen/tensor_candidates.h"

namespace jitconv::codegen {
namespace {

using test::some_tensor_candidates;
using test::TensorCandidate;

constexpr std::int64_t kRow = 16;  // bytes of a slice of a pixel, and of a unit of an output channel

RC_GTEST_PROP(TensorPackingProperty, PackedWeightsHoldEveryTapOnce, ()) {
  for (const TensorCandidate& one : some_tensor_candidates()) {
    const WgmmaTiling& t = one.tiling;
    const ConvSpec& spec = one.spec;
    const std::int64_t steps_of_chunk = spec.weight.r / t.filter_rows, chunks = t.steps(spec) / steps_of_chunk;
    RC_ASSERT(chunks * steps_of_chunk == t.steps(spec));
    RC_ASSERT(chunks * t.chunk_channels(spec) >= spec.weight.c);
    RC_ASSERT((chunks - 1) * t.chunk_channels(spec) < spec.weight.c);
    RC_ASSERT(t.tiles_k(spec) * t.block_k >= spec.weight.k / spec.groups);
    RC_ASSERT(one.plan.packed_weight_bytes() == t.packed_weight_bytes(spec));
    if (!t.packs_weights()) {  // they are read as they lie in w
      RC_ASSERT(t.packed_rows(spec) == 0 && t.packed_weight_bytes(spec) == 0);
      continue;
    }
    RC_ASSERT(t.packed_rows(spec) * kRow == spec.groups * t.tiles_k(spec) * t.steps(spec) * t.weight_bytes(spec));
    RC_ASSERT(t.packed_rows(spec) <= INT32_MAX);
    RC_ASSERT(t.packed_weight_bytes(spec) >= t.packed_rows(spec) * kRow);
    RC_ASSERT(t.packed_weight_bytes(spec) % 256 == 0);
  }
}

RC_GTEST_PROP(TensorPackingProperty, PackingFitsAndHasNoIdleBlocks, ()) {
  for (const TensorCandidate& one : some_tensor_candidates()) {
    const WgmmaTiling& t = one.tiling;
    const ConvSpec& spec = one.spec;
    if (!t.packs_weights()) continue;
    const WgmmaTiling::Packing packing = t.packing(spec);
    RC_ASSERT(packing.channels >= 1 && packing.channels <= kWarpSize && t.block_k % packing.channels == 0);
    RC_ASSERT(kWarpSize % packing.channels == 0);
    RC_ASSERT(packing.slices >= 1);
    RC_ASSERT(WgmmaTiling::packing_bytes(spec, packing) <= WgmmaTiling::kMostPackingBytes);
    // Lanes that read the same place of neighbours' pieces meet in no bank.
    RC_ASSERT(WgmmaTiling::piece_pitch(spec, packing) % 2 == 1);
    RC_ASSERT(WgmmaTiling::piece_pitch(spec, packing) >= WgmmaTiling::piece_words(spec, packing));
    RC_ASSERT(WgmmaTiling::piece_words(spec, packing) * 4 == packing.slices * spec.weight.r * spec.weight.s * kRow);
    // Each block has a slice, and together they have all.
    const std::int64_t blocks_of_k =
        t.packing_blocks(spec, packing) * packing.channels / (spec.groups * t.tiles_k(spec) * t.block_k);
    RC_ASSERT(blocks_of_k * packing.slices >= t.packed_slices(spec));
    RC_ASSERT((blocks_of_k - 1) * packing.slices < t.packed_slices(spec));
    RC_ASSERT(t.packed_slices(spec) * WgmmaTiling::slice_channels(spec) >= spec.weight.c);
  }
}

// Large filters take few output channels at a time, small ones leave many blocks.
TEST(TensorPacking, PackingFollowsTheFilter) {
  const auto packing_of = [](const char* text) {
    const TensorCandidate one = test::tensor_candidates(parse_spec(text)).front();
    return one.tiling.packing(one.spec);
  };
  using Packing = WgmmaTiling::Packing;
  EXPECT_EQ(packing_of("input=16,64,56,56 weight=64,64,3,3 math=tf32"), (Packing{32, 1}));
  EXPECT_EQ(packing_of("input=16,512,14,14 weight=512,512,3,3 math=tf32"), (Packing{32, 2}));
  EXPECT_EQ(packing_of("input=16,1024,14,14 weight=2048,1024,1,1 math=tf32"), (Packing{32, 16}));
  EXPECT_EQ(packing_of("input=16,64,56,56 weight=64,64,1,1 math=tf32"), (Packing{32, 4}));
  EXPECT_EQ(packing_of("input=1,20,99,99 weight=20,20,31,31 dtype=f16"), (Packing{2, 1}));
}

TEST(TensorPacking, AFilterThatNoBlockCanPackIsLeftToOtherFamilies) {
  EXPECT_TRUE(test::tensor_candidates(parse_spec("input=1,16,1,9000 weight=64,16,1,4000 dtype=f16")).empty());
}

}  // namespace
}  // namespace jitconv::codegen
