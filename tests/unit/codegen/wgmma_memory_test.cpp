// Statements about what a block of the wgmma family has: the map of its shared memory, how outputs are staged there,
// registers.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>
#include <vector>

#include "codegen/arithmetic.h"
#include "codegen/wgmma/memory.h"
#include "codegen/wgmma/registers.h"
#include "codegen/wgmma/store.h"
#include "unit/codegen/wgmma_candidates.h"

namespace jitconv::codegen {
namespace {

using test::some_wgmma_candidates;
using test::WgmmaCandidate;

constexpr int kMultiplyingWarps = 8, kStagedChannels = 8;

RC_GTEST_PROP(WgmmaMemoryProperty, SharedMemoryIsCutWithoutOverlap, ()) {
  for (const WgmmaCandidate& one : some_wgmma_candidates()) {
    const WgmmaTiling& t = one.tiling;
    const Problem& problem = one.problem;
    const WgmmaGeometry g = one.geometry();
    const WgmmaStore store(g);
    const WgmmaMemory memory(g);
    RC_ASSERT(t.pipeline.stages >= 2);
    RC_ASSERT(g.pixels().slice_pitch() >= g.run_pixels());
    const std::int64_t slice_pixels = t.copies_operands() ? g.run_pixels() : g.pixels().slice_pitch();
    RC_ASSERT(g.pixels().run_bytes() >= g.phases() * t.pipeline.slices * slice_pixels * test::kRowBytes);
    RC_ASSERT(g.weight_bytes() == g.units() * t.tile.channels * test::kRowBytes);
    // Weights come with each step, or all lie behind the stages.
    RC_ASSERT(memory.weight_offset() >= t.runs() * g.pixels().run_bytes());
    RC_ASSERT(memory.stage_bytes() >= memory.weight_offset() + (t.keeps_weights() ? 0 : g.weight_bytes()));
    RC_ASSERT(memory.weights_first_byte() >= t.pipeline.stages * memory.stage_bytes());
    RC_ASSERT(g.kept_weight_bytes() >= (t.keeps_weights() ? g.packed_rows() * test::kRowBytes : 0));
    RC_ASSERT(memory.staging_first_byte() >= memory.weights_first_byte() + g.kept_weight_bytes());
    // NCHW: eight channels of each warp; NHWC: some positions of each warpgroup.
    const std::int64_t staged_rows =
        problem.output.layout() == Layout::nhwc ? 2 * store.store_columns() : kMultiplyingWarps * kStagedChannels;
    const std::int64_t staging_bytes = store.staged_bytes() * staged_rows * store.staging_pitch() *
                                       std::max(t.staged_boxes, 1);  // of boxes, each warpgroup has several
    RC_ASSERT(memory.zeros_first_byte() >= memory.staging_first_byte() + staging_bytes);
    RC_ASSERT(memory.barriers_first_byte() >=
              memory.zeros_first_byte() + (g.has_zeros() ? t.tile.columns * test::kRowBytes : 0));
    RC_ASSERT(memory.shared_bytes() >=
              memory.barriers_first_byte() + (2 * t.pipeline.stages + (t.keeps_weights() ? 1 : 0)) * 8);
    RC_ASSERT(memory.shared_bytes() <= one.plan.target.shared_bytes_per_block);
    RC_ASSERT(memory.shared_bytes() == one.plan.convolution().launch.shared_bytes);
    // Bulk copies, operands and vectors are at multiples of 16 bytes, barriers at multiples of 8.
    RC_ASSERT(g.pixels().run_bytes() % test::kRowBytes == 0 && memory.stage_bytes() % test::kRowBytes == 0);
    RC_ASSERT(memory.weights_first_byte() % test::kRowBytes == 0);
    RC_ASSERT(memory.staging_first_byte() % test::kRowBytes == 0 && memory.zeros_first_byte() % test::kRowBytes == 0);
    // Of planes, the rows of eight channels are one copy.
    const int rows_of_copy = store.stores_planes() ? kStagedChannels : 1;
    RC_ASSERT(rows_of_copy * store.staging_pitch() * store.staged_bytes() % test::kRowBytes == 0);
    RC_ASSERT(memory.barriers_first_byte() % 8 == 0);
    // A descriptor has 14 bits for an address and for a distance, in rows of 16 bytes.
    RC_ASSERT(memory.shared_bytes() / test::kRowBytes < 1 << 14);
  }
}

// Restates wgmma/store_planes.cu.in and what stages its outputs: eight positions at a time, of one image or of two.
RC_GTEST_PROP(WgmmaMemoryProperty, PlanesAreStagedAsTheyLieInY, ()) {
  ConvSpec spec = test::for_im2col(*test::valid_specs(), Layout::nhwc);
  spec.dtype = DataType::bf16, spec.math = MathMode::fp32, spec.output_layout = Layout::nchw;
  spec.input.h = *rc::gen::inRange<std::int64_t>(1, 9), spec.input.w = *rc::gen::inRange<std::int64_t>(1, 9);
  spec.weight.r = *rc::gen::inRange<std::int64_t>(1, 4), spec.weight.s = 1;
  spec.stride = spec.dilation = {1, 1}, spec.padding = {}, spec.epilogue.residual = false;
  spec.padding.top = spec.padding.bottom = spec.weight.r / 2;
  spec.weight.k = spec.groups * 8 * *rc::gen::inRange<std::int64_t>(1, 20);
  std::vector<WgmmaCandidate> all = test::wgmma_candidates(spec);
  std::erase_if(all, [](const WgmmaCandidate& one) { return !WgmmaStore(one.geometry()).stores_planes(); });
  RC_CLASSIFY(all.empty(), "no candidates");
  for (const WgmmaCandidate& one : test::some_of(all)) {
    const WgmmaGeometry g = one.geometry();
    const std::int64_t plane = g.plane(), distance = g.image_positions(), images = one.tiling.tile.images;
    const WgmmaStore store(g);
    std::set<std::int64_t> places;
    for (std::int64_t position = 0; position < one.tiling.tile.columns; ++position) {
      const std::int64_t eight = position / 8 * 8,
                         image = eight / distance + (eight % distance + position % 8 >= distance ? 1 : 0);
      const std::int64_t output = position - image * distance;
      if (output >= plane || image >= images) continue;
      const std::int64_t place = position + image * (8 * plane - distance);
      RC_ASSERT(output >= 0 && place == image * 8 * plane + output && places.insert(place).second);
    }
    RC_ASSERT(static_cast<std::int64_t>(places.size()) == images * plane);
    RC_ASSERT(plane % 2 != 0 || images == 1 || distance % 2 == 0);  // pairs are of one image
    RC_ASSERT(store.staging_pitch() == images * plane && one.problem.k % 8 == 0 && g.row_padding() == 0);
  }
}

RC_GTEST_PROP(WgmmaMemoryProperty, RegistersAreThoseOfTheLaunch, ()) {
  for (const WgmmaCandidate& one : some_wgmma_candidates()) {
    const WgmmaTiling& t = one.tiling;
    const WgmmaGeometry g = one.geometry();
    RC_ASSERT(one.plan.convolution().launch.threads == static_cast<unsigned>(WgmmaTiling::kThreads));
    const int loader = WgmmaRegisters(g).producer(), consumer = WgmmaRegisters(g).consumer();
    for (const int count : {loader, consumer}) RC_ASSERT(count % 8 == 0 && count >= 24 && count <= 256);
    // A launch gives every thread what is left of 65536 registers in units of 8; setmaxnreg only moves them.
    const int launched = one.plan.target.registers_per_sm / WgmmaTiling::kThreads / 8 * 8;
    RC_ASSERT(WgmmaTiling::kLaunchRegisters == launched);
    RC_ASSERT(128 * loader + 256 * consumer <= launched * WgmmaTiling::kThreads);
    RC_ASSERT(t.tile.columns / 2 < consumer);
  }
}

// Vectors are whole, at multiples of their size, and eight neighbouring lanes store them to different banks.
RC_GTEST_PROP(WgmmaMemoryProperty, VectorsOfChannelsHaveNoBankConflicts, ()) {
  for (const WgmmaCandidate& one : some_wgmma_candidates()) {
    const Problem& problem = one.problem;
    const WgmmaGeometry g = one.geometry();
    if (!g.loads_vectors()) continue;
    RC_ASSERT(problem.input.layout() == Layout::nhwc && problem.alignment >= test::kRowBytes);
    RC_ASSERT(problem.c * element_bytes(problem.input.type) % g.load_bytes() == 0 &&
              test::kRowBytes % g.load_bytes() == 0);
    std::set<std::int64_t> banks;
    for (std::int64_t lane = 0; lane < 8; ++lane)
      banks.insert((lane % one.tiling.pipeline.slices * g.pixels().slice_pitch() + lane / one.tiling.pipeline.slices) %
                   8);
    RC_ASSERT(banks.size() == 8u);
  }
}

// What a consumer stages at a time has no bank conflicts, whole instructions write it, and vectors stay in a group.
RC_GTEST_PROP(WgmmaMemoryProperty, PositionsAreStagedAndWrittenInVectors, ()) {
  for (const WgmmaCandidate& one : some_wgmma_candidates()) {
    const WgmmaTiling& t = one.tiling;
    const Problem& problem = one.problem;
    const WgmmaGeometry g = one.geometry();
    const WgmmaStore store(g);
    if (store.stages_runs() || t.stores_boxes()) continue;
    const int bytes = store.staged_bytes(), pitch = store.staging_pitch();
    RC_ASSERT(store.store_columns() % 16 == 0 && store.store_columns() <= round_up(t.tile.columns, 16));
    RC_ASSERT(pitch >= 64);
    std::set<int> banks;
    if (bytes == 2)  // eight positions of 16 bytes
      for (int position = 0; position < 8; ++position) banks.insert(position * pitch * bytes / 16 % 8);
    else  // eight channels of four positions, two apart
      for (int lane = 0; lane < kWarpSize; ++lane) banks.insert((lane % 4 * 2 * pitch + lane / 4) % 32);
    RC_ASSERT(banks.size() == (bytes == 2 ? 8u : 32u));
    const std::int64_t written = store.written_bytes();
    const int vector = store.store_vector();
    RC_ASSERT(vector * written <= 16 && 64 % vector == 0 && problem.k % vector == 0);
    RC_ASSERT(store.store_columns() % (128 * vector / 64) == 0);
  }
}

}  // namespace
}  // namespace jitconv::codegen
