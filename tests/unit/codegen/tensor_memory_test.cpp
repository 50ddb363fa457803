// Statements about what a block of the tensor family has: the map of its shared memory, how outputs are staged there,
// registers.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

#include "codegen/arithmetic.h"
#include "unit/codegen/tensor_candidates.h"

namespace jitconv::codegen {
namespace {

using test::some_tensor_candidates;
using test::TensorCandidate;

constexpr std::int64_t kRow = 16;  // bytes of a slice of a pixel, and of a unit of an output channel
constexpr int kMultiplyingWarps = 8, kStagedChannels = 8;

RC_GTEST_PROP(TensorMemoryProperty, SharedMemoryIsCutWithoutOverlap, ()) {
  for (const TensorCandidate& one : some_tensor_candidates()) {
    const WgmmaTiling& t = one.tiling;
    const ConvSpec& spec = one.spec;
    RC_ASSERT(t.stages >= 2);
    RC_ASSERT(t.slice_pitch(spec) >= t.run_pixels(spec));
    const std::int64_t slice_pixels = t.walks_pixels() ? t.run_pixels(spec) : t.slice_pitch(spec);
    RC_ASSERT(t.run_bytes(spec) >= WgmmaTiling::phases(spec) * t.slices * slice_pixels * kRow);
    RC_ASSERT(t.weight_bytes(spec) == t.units(spec) * t.block_k * kRow);
    // Weights come with each step, or all lie behind the stages.
    RC_ASSERT(t.weights_in_stage(spec) >= t.runs() * t.run_bytes(spec));
    RC_ASSERT(t.stage_bytes(spec) >= t.weights_in_stage(spec) + (t.resident ? 0 : t.weight_bytes(spec)));
    RC_ASSERT(t.weights_first_byte(spec) >= t.stages * t.stage_bytes(spec));
    RC_ASSERT(t.kept_weight_bytes(spec) >= (t.resident ? t.packed_rows(spec) * kRow : 0));
    RC_ASSERT(t.staging_first_byte(spec) >= t.weights_first_byte(spec) + t.kept_weight_bytes(spec));
    // NCHW: eight channels of each warp; NHWC: some positions of each warpgroup.
    const std::int64_t staged_rows =
        spec.output_layout == Layout::nhwc ? 2 * t.store_columns(spec) : kMultiplyingWarps * kStagedChannels;
    const std::int64_t staging_bytes = t.staged_bytes(spec) * staged_rows * t.staging_pitch(spec) *
                                       std::max(t.staged_boxes, 1);  // of boxes, each warpgroup has several
    RC_ASSERT(t.zeros_first_byte(spec) >= t.staging_first_byte(spec) + staging_bytes);
    RC_ASSERT(t.barriers_first_byte(spec) >= t.zeros_first_byte(spec) + (t.has_zeros(spec) ? t.columns * kRow : 0));
    RC_ASSERT(t.shared_bytes(spec) >= t.barriers_first_byte(spec) + (2 * t.stages + (t.resident ? 1 : 0)) * 8);
    RC_ASSERT(t.shared_bytes(spec) <= one.plan.target.shared_bytes_per_block);
    RC_ASSERT(t.shared_bytes(spec) == one.plan.convolution().launch.shared_bytes);
    // Bulk copies, operands and vectors are at multiples of 16 bytes, barriers at multiples of 8.
    RC_ASSERT(t.run_bytes(spec) % kRow == 0 && t.stage_bytes(spec) % kRow == 0);
    RC_ASSERT(t.weights_first_byte(spec) % kRow == 0);
    RC_ASSERT(t.staging_first_byte(spec) % kRow == 0 && t.zeros_first_byte(spec) % kRow == 0);
    RC_ASSERT(t.staging_pitch(spec) * t.staged_bytes(spec) % kRow == 0);
    RC_ASSERT(t.barriers_first_byte(spec) % 8 == 0);
    // A descriptor has 14 bits for an address and for a distance, in rows of 16 bytes.
    RC_ASSERT(t.shared_bytes(spec) / kRow < 1 << 14);
  }
}

RC_GTEST_PROP(TensorMemoryProperty, RegistersAreThoseOfTheLaunch, ()) {
  for (const TensorCandidate& one : some_tensor_candidates()) {
    const WgmmaTiling& t = one.tiling;
    RC_ASSERT(one.plan.convolution().launch.threads == static_cast<unsigned>(WgmmaTiling::kThreads));
    const int loader = t.loader_registers(one.spec), consumer = t.consumer_registers(one.spec);
    for (const int count : {loader, consumer}) RC_ASSERT(count % 8 == 0 && count >= 24 && count <= 256);
    // A launch gives every thread what is left of 65536 registers in units of 8; setmaxnreg only moves them.
    const int launched = one.plan.target.registers_per_sm / WgmmaTiling::kThreads / 8 * 8;
    RC_ASSERT(WgmmaTiling::kLaunchRegisters == launched);
    RC_ASSERT(128 * loader + 256 * consumer <= launched * WgmmaTiling::kThreads);
    RC_ASSERT(t.columns / 2 < consumer);
  }
}

// Vectors are whole, at multiples of their size, and eight neighbouring lanes store them to different banks.
RC_GTEST_PROP(TensorMemoryProperty, VectorsOfChannelsMeetInNoBank, ()) {
  for (const TensorCandidate& one : some_tensor_candidates()) {
    const ConvSpec& spec = one.spec;
    if (!WgmmaTiling::loads_vectors(spec)) continue;
    RC_ASSERT(spec.input_layout == Layout::nhwc && spec.alignment >= kRow);
    RC_ASSERT(spec.weight.c * element_bytes(spec.dtype) % kRow == 0);
    std::set<std::int64_t> banks;
    for (std::int64_t lane = 0; lane < 8; ++lane)
      banks.insert((lane % one.tiling.slices * one.tiling.slice_pitch(spec) + lane / one.tiling.slices) % 8);
    RC_ASSERT(banks.size() == 8u);
  }
}

// What a consumer stages at a time has no bank conflicts, whole instructions write it, and vectors stay in a group.
RC_GTEST_PROP(TensorMemoryProperty, PositionsAreStagedAndWrittenInVectors, ()) {
  for (const TensorCandidate& one : some_tensor_candidates()) {
    const WgmmaTiling& t = one.tiling;
    const ConvSpec& spec = one.spec;
    if (spec.output_layout != Layout::nhwc || t.stores_boxes()) continue;
    const int bytes = t.staged_bytes(spec), pitch = t.staging_pitch(spec);
    RC_ASSERT(t.store_columns(spec) % 16 == 0 && t.store_columns(spec) <= round_up(t.columns, 16));
    RC_ASSERT(pitch >= 64);
    std::set<int> banks;
    if (bytes == 2)  // eight positions of 16 bytes
      for (int position = 0; position < 8; ++position) banks.insert(position * pitch * bytes / 16 % 8);
    else  // eight channels of four positions, two apart
      for (int lane = 0; lane < kWarpSize; ++lane) banks.insert((lane % 4 * 2 * pitch + lane / 4) % 32);
    RC_ASSERT(banks.size() == (bytes == 2 ? 8u : 32u));
    const std::int64_t written = t.written_bytes(spec);
    const int vector = t.store_vector(spec);
    RC_ASSERT(vector * written <= 16 && 64 % vector == 0 && spec.weight.k / spec.groups % vector == 0);
    RC_ASSERT(t.store_columns(spec) % (128 * vector / 64) == 0);
  }
}

}  // namespace
}  // namespace jitconv::codegen
