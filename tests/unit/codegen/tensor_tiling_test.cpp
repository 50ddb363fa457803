// Statements about every tiling of the tensor family: taps as distances between pixels, what the loading warps load,
// and that the columns of a run hold the outputs it stores.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>

#include "codegen/arithmetic.h"
#include "unit/codegen/tensor_candidates.h"

namespace jitconv::codegen {
namespace {

using test::some_tensor_candidates;
using test::TensorCandidate;

constexpr std::int64_t kRow = 16;  // bytes of a slice of a pixel, and of a unit of an output channel
constexpr int kLoadingWarps = 4;

// Every run that the copy engine stores: from and to multiples of 16 bytes, inside its plane, where the one before
// ends; and there is one.
RC_GTEST_PROP(TensorTilingProperty, CopiedRunsAreWholeVectorsOfTheirPlane, ()) {
  for (const TensorCandidate& one : some_tensor_candidates()) {
    const WgmmaTiling& t = one.tiling;
    const ConvSpec& spec = one.spec;
    if (!t.stores_bulk(spec)) continue;
    const TensorShape out = output_shape(spec);
    const std::int64_t plane = out.h * out.w, bytes = t.staged_bytes(spec),
                       sector = WgmmaTiling::sector_elements(spec);
    RC_ASSERT(bytes == t.written_bytes(spec));  // nothing is converted on the way
    RC_ASSERT(t.window * bytes % kRow == 0 && t.lead(spec) * bytes % kRow == 0);
    RC_ASSERT(t.partial_sum_stride(spec) * 4 % kRow == 0);
    std::int64_t copied = 0;
    for (const std::int64_t channel : {0, 1, 2, 7}) {
      const std::int64_t late = positive_modulo(-channel * plane, sector);
      RC_ASSERT(late <= (t.lead(spec) == 0 ? 0 : WgmmaTiling::slack(spec)));
      for (std::int64_t first = 0; first < plane; first += t.window) {
        const bool inside =
            t.lead(spec) == 0 ? first + t.window <= plane : first > 0 && first + t.window + sector <= plane;
        if (!inside) continue;
        ++copied;
        RC_ASSERT((channel * plane + first + late) * bytes % kRow == 0);
        RC_ASSERT(first + late + t.window <= plane);
        // Staged are the outputs from the run's first to the copy's last.
        RC_ASSERT(late + t.window + t.row_ends(spec) * WgmmaTiling::gap(spec) <= t.columns);
      }
    }
    RC_ASSERT(copied > 0);
  }
}

RC_GTEST_PROP(TensorTilingProperty, TapsAreOrderedByThePlacesOfTheirPixels, ()) {
  for (const TensorCandidate& one : some_tensor_candidates()) {
    const ConvSpec& spec = one.spec;
    const std::vector<int> order = one.tiling.tap_order(spec);
    std::vector<int> sorted = order, all(static_cast<std::size_t>(one.tiling.taps(spec)));
    std::iota(all.begin(), all.end(), 0);
    std::sort(sorted.begin(), sorted.end());
    RC_ASSERT(sorted == all);
    RC_ASSERT(WgmmaTiling::phases(spec) <= spec.stride.w);
    std::int64_t previous = -1;
    for (const int tap : order) {
      const std::int64_t r = tap / spec.weight.s, s = tap % spec.weight.s;
      const int phase = WgmmaTiling::phase_of(spec, s);
      RC_ASSERT(phase >= 0 && phase < WgmmaTiling::phases(spec));
      // Tap s of the position in column q reads input column q * stride + s * dilation, in the same grid row.
      const std::int64_t shift = s * spec.dilation.w / spec.stride.w;
      RC_ASSERT(shift * spec.stride.w + phase == s * spec.dilation.w);
      RC_ASSERT(shift <= WgmmaTiling::row_reach(spec));
      const std::int64_t place = shift + r * spec.dilation.h * WgmmaTiling::pitch(spec);
      RC_ASSERT(place == WgmmaTiling::tap_place(spec, tap));
      RC_ASSERT(one.tiling.columns + place <= one.tiling.run_pixels(spec));
      // A matrix operand's right half lies nowhere before its left half.
      const std::int64_t row = phase * one.tiling.slices * one.tiling.slice_pitch(spec) + place;
      RC_ASSERT(row >= previous);
      previous = row;
    }
  }
}

/// Whether taps of `outputs` find along one axis what they need: what x has lies where it is looked for, and where x
/// has nothing, neither has what lies there instead, `pitch` positions later.
bool taps_find_pixels(std::int64_t outputs, std::int64_t pitch, std::int64_t taps, std::int64_t dilation,
                      std::int64_t stride, std::int64_t before, std::int64_t extent) {
  const auto exists = [&](std::int64_t pixel) { return pixel >= 0 && pixel < extent; };
  for (std::int64_t output = 0; output < outputs; ++output)
    for (std::int64_t tap = 0; tap < taps; ++tap) {
      const std::int64_t position = output + tap * dilation / stride, residue = tap * dilation % stride;
      const std::int64_t pixel = position * stride + residue - before;
      if (exists(pixel) ? position >= pitch : exists(position % pitch * stride + residue - before)) return false;
    }
  return true;
}

RC_GTEST_PROP(TensorTilingProperty, PaddingBehindARowIsThatOfTheNext, ()) {
  for (const TensorCandidate& one : some_tensor_candidates()) {
    const ConvSpec& spec = one.spec;
    const TensorShape out = output_shape(spec);
    const std::int64_t pitch = WgmmaTiling::pitch(spec);
    RC_ASSERT(pitch >= out.w && pitch <= out.w + WgmmaTiling::row_reach(spec));
    RC_ASSERT(
        taps_find_pixels(out.w, pitch, spec.weight.s, spec.dilation.w, spec.stride.w, spec.padding.left, spec.input.w));
    RC_ASSERT(!WgmmaTiling::loads_pairs(spec) || pitch % 2 == 0);  // two pixels of a word lie in one row
    const std::int64_t rows = one.tiling.image_rows(spec), filter_rows = one.tiling.filter_rows;
    RC_ASSERT(rows >= out.h && rows <= out.h + (filter_rows - 1) * spec.dilation.h);
    if (filter_rows == 1) continue;  // a step's rows are those of one filter row
    RC_ASSERT(taps_find_pixels(out.h, rows, filter_rows, spec.dilation.h, 1, spec.padding.top, spec.input.h));
  }
}

TEST(WgmmaTiling, SharesPaddingBetweenRowsAndImages) {
  const auto pitch = [](const std::string& text) { return WgmmaTiling::pitch(parse_spec(text)); };
  EXPECT_EQ(pitch("input=2,64,14,14 weight=64,64,3,3 padding=1 math=tf32"), 15);
  EXPECT_EQ(pitch("input=2,64,14,14 weight=64,64,3,3 padding=0,0,0,2 math=tf32"), 16);
  EXPECT_EQ(pitch("input=2,64,14,14 weight=64,64,3,3 math=tf32"), 14);
  EXPECT_EQ(pitch("input=2,64,14,14 weight=64,64,5,5 padding=2 dilation=2 math=tf32"), 16);
  EXPECT_EQ(pitch("input=2,64,14,14 weight=64,64,3,3 padding=1 stride=2 math=tf32"), 8);
  EXPECT_EQ(pitch("input=2,64,14,14 weight=64,64,1,1 padding=2 math=tf32"), 18);
  // Two pixels of 16 bits at a time.
  EXPECT_EQ(pitch("input=2,64,14,14 weight=64,64,3,3 padding=1 dtype=bf16"), 16);
  EXPECT_EQ(pitch("input=2,64,14,15 weight=64,64,3,3 padding=1 dtype=bf16"), 16);
  WgmmaTiling tiling{.images = 2, .filter_rows = 3};
  const ConvSpec spec = parse_spec("input=2,64,7,7 weight=64,64,3,3 padding=1 math=tf32");
  EXPECT_EQ(tiling.image_positions(spec), 8 * 8);
  tiling.filter_rows = 1;
  EXPECT_EQ(tiling.image_positions(spec), 7 * 8);
}

RC_GTEST_PROP(TensorTilingProperty, UnitsComeInPairs, ()) {
  for (const TensorCandidate& one : some_tensor_candidates()) {
    const WgmmaTiling& t = one.tiling;
    RC_ASSERT(t.filter_rows == 1 || t.filter_rows == one.spec.weight.r);
    const std::int64_t taps = t.filter_rows * one.spec.weight.s * t.slices;
    RC_ASSERT(t.units(one.spec) % 2 == 0);
    RC_ASSERT(t.units(one.spec) >= taps && t.units(one.spec) < taps + 2);
    RC_ASSERT(t.slices == 1 || t.slices % 2 == 0);
    RC_ASSERT(t.has_zeros(one.spec) == (t.units(one.spec) != taps));
    RC_ASSERT(WgmmaTiling::slice_channels(one.spec) * element_bytes(one.spec.dtype) == kRow);
    RC_ASSERT(t.chunk_channels(one.spec) == t.slices * WgmmaTiling::slice_channels(one.spec));
  }
}

/// The same of the load_run() that loads vectors: how often each slice of a pixel is loaded.
bool loads_each_vector_once(const TensorCandidate& one) {
  const WgmmaTiling& t = one.tiling;
  const std::int64_t pixels = t.run_pixels(one.spec), items_of_phase = t.load_items(one.spec),
                     phases = WgmmaTiling::phases(one.spec), items = items_of_phase * phases;
  std::vector<int> counts(static_cast<std::size_t>(phases * t.slices * pixels), 0);
  for (int member = 0; member < t.team_warps; ++member)
    for (std::int64_t first = member; first < items; first += t.load_batch * t.team_warps)
      for (int i = 0; i < t.load_batch; ++i)
        for (std::int64_t lane = 0; lane < kWarpSize; ++lane) {
          const std::int64_t item = first + i * t.team_warps, phase = item / items_of_phase, slice = lane % t.slices,
                             pixel = (item - phase * items_of_phase) * (kWarpSize / t.slices) + lane / t.slices;
          if (item < items && pixel < pixels)
            ++counts[static_cast<std::size_t>((phase * t.slices + slice) * pixels + pixel)];
        }
  return std::all_of(counts.begin(), counts.end(), [](int count) { return count == 1; });
}

/// Restates the loop of load_run(): how often each pixel of a run is loaded.
bool loads_each_pixel_once(const TensorCandidate& one) {
  const WgmmaTiling& t = one.tiling;
  const std::int64_t pixels = t.run_pixels(one.spec), items_of_phase = t.load_items(one.spec),
                     phases = WgmmaTiling::phases(one.spec), items = items_of_phase * phases;
  const bool pairs = WgmmaTiling::loads_pairs(one.spec);
  const std::int64_t pixels_of_item = pairs ? 2 * kWarpSize : kWarpSize;
  const std::int64_t before = pairs ? one.spec.padding.left % 2 : 0;  // pairs are words of x
  std::vector<int> counts(static_cast<std::size_t>(pixels * phases), 0);
  for (int member = 0; member < t.team_warps; ++member)
    for (std::int64_t first = member; first < items; first += t.load_batch * t.team_warps)
      for (int i = 0; i < t.load_batch; ++i) {
        const std::int64_t item = first + i * t.team_warps, phase = item / items_of_phase;
        const std::int64_t first_pixel = (item - phase * items_of_phase) * pixels_of_item - before;
        for (std::int64_t pixel = first_pixel; item < items && pixel < first_pixel + pixels_of_item; ++pixel)
          if (pixel >= 0 && pixel < pixels) ++counts[static_cast<std::size_t>(phase * pixels + pixel)];
      }
  return std::all_of(counts.begin(), counts.end(), [](int count) { return count == 1; });
}

RC_GTEST_PROP(TensorTilingProperty, LoadingWarpsShareARun, ()) {
  for (const TensorCandidate& one : some_tensor_candidates()) {
    const WgmmaTiling& t = one.tiling;
    RC_ASSERT(t.team_warps >= 1 && kLoadingWarps % t.team_warps == 0);
    RC_ASSERT((t.load_batch > 0) == t.loads_pixels() && (t.copies_ahead > 0) == t.copies_pixels());
    if (!t.loads_pixels()) {  // each warp has steps of its own, or slices of every step, or nothing to do
      RC_ASSERT(t.team_warps == 1);
      continue;
    }
    // What a thread has in flight stays in its registers.
    RC_ASSERT(t.load_batch * t.load_item_registers(one.spec) < t.loader_registers(one.spec));
    if (WgmmaTiling::loads_vectors(one.spec))
      RC_ASSERT(loads_each_vector_once(one));
    else
      RC_ASSERT(loads_each_pixel_once(one));
  }
}

// A pair of 16-bit pixels is one aligned word of x and one row of the grid, wherever a run starts.
RC_GTEST_PROP(TensorTilingProperty, PairsOfPixelsAreWords, ()) {
  for (const TensorCandidate& one : some_tensor_candidates()) {
    const ConvSpec& spec = one.spec;
    if (!WgmmaTiling::loads_pairs(spec)) continue;
    RC_ASSERT(element_bytes(spec.dtype) == 2 && spec.input_layout == Layout::nchw && spec.stride.w == 1);
    RC_ASSERT(spec.alignment >= 4);
    const std::int64_t pitch = output_shape(spec).w + WgmmaTiling::gap(spec);
    RC_ASSERT(spec.input.w % 2 == 0 && pitch % 2 == 0);
    // Behind an odd padding a pair may hold the end of one row of the grid and the start of the next: both are padding.
    if (spec.padding.left % 2 == 1) RC_ASSERT(pitch - 1 - spec.padding.left >= spec.input.w);
    RC_ASSERT(output_shape(spec).w % 2 == 0 && one.tiling.window % 2 == 0);
  }
}

/// A run of a plane, as the template's store has it.
struct Run {
  std::int64_t first, end;  ///< outputs it stores
};
Run run_of(const TensorCandidate& one, std::int64_t run_first, std::int64_t plane_number) {
  const TensorShape out = output_shape(one.spec);
  const std::int64_t plane = out.h * out.w, sector = WgmmaTiling::sector_elements(one.spec);
  const std::int64_t late = positive_modulo(-plane_number * plane, sector);
  return {run_first == 0 ? 0 : std::min(plane, run_first + late),
          std::min(plane, run_first + one.tiling.window + late)};
}

RC_GTEST_PROP(TensorTilingProperty, EachOutputOfAPlaneIsStoredByOneRun, ()) {
  for (const TensorCandidate& one : some_tensor_candidates()) {
    const WgmmaTiling& t = one.tiling;
    const TensorShape out = output_shape(one.spec);
    const std::int64_t plane = out.h * out.w, sector = WgmmaTiling::sector_elements(one.spec);
    if (t.images > 0 || t.stores_boxes()) continue;
    RC_ASSERT(t.window > 0 && t.window % sector == 0);
    // Where planes start within a sector repeats after as many planes as a sector has elements.
    for (std::int64_t number = 0; number < std::min(sector, out.n * out.c); ++number) {
      std::int64_t stored = 0;
      for (std::int64_t run = 0; run < t.tiles_of_plane(one.spec) * t.runs(); ++run) {
        const Run outputs = run_of(one, run * t.window, number);
        if (outputs.first >= outputs.end) continue;
        RC_ASSERT(outputs.first == stored);
        stored = outputs.end;
        // Every run but the one at the plane's start begins with a sector of y.
        if (run > 0) RC_ASSERT((number * plane + outputs.first) % sector == 0);
      }
      RC_ASSERT(stored == plane);
    }
  }
}

RC_GTEST_PROP(TensorTilingProperty, ColumnsHoldWhatARunStores, ()) {
  for (const TensorCandidate& one : some_tensor_candidates()) {
    const WgmmaTiling& t = one.tiling;
    const TensorShape out = output_shape(one.spec);
    const std::int64_t plane = out.h * out.w, sector = WgmmaTiling::sector_elements(one.spec);
    RC_ASSERT(t.columns % 8 == 0 && t.columns >= 8 && t.columns <= 256);
    RC_ASSERT(t.runs() * t.block_k == 64 * t.tile_consumers());
    RC_ASSERT(t.lead(one.spec) % sector == 0);
    if (one.spec.output_layout == Layout::nhwc)
      RC_ASSERT(t.lead(one.spec) == 0 && WgmmaTiling::slack(one.spec) == 0);
    else
      RC_ASSERT(t.staging_pitch(one.spec) >= t.columns + t.lead(one.spec));
    if (t.images > 0) {
      // The last output's place is one of the run's.
      RC_ASSERT(t.window == t.images * plane && t.images <= one.spec.input.n);
      RC_ASSERT(WgmmaTiling::pitch(one.spec) == out.w + WgmmaTiling::gap(one.spec));
      RC_ASSERT(t.image_positions(one.spec) == t.image_rows(one.spec) * WgmmaTiling::pitch(one.spec));
      const std::int64_t last =
          (t.images - 1) * t.image_positions(one.spec) + (out.h - 1) * WgmmaTiling::pitch(one.spec) + out.w - 1;
      RC_ASSERT(last < t.columns);
      // A lane's outputs are neighbours in y and among the positions, and start at a multiple in both.
      const int width = t.store_width(one.spec);
      RC_ASSERT(width == 1 || WgmmaTiling::gap(one.spec) == 0);
      RC_ASSERT(width >= 1 && plane % width == 0);
      for (std::int64_t image = 0; image < t.images; ++image)
        RC_ASSERT(image * t.image_positions(one.spec) % width == 0);
      RC_ASSERT(last + (t.filter_rows - 1) * one.spec.dilation.h * WgmmaTiling::pitch(one.spec) +
                    WgmmaTiling::row_reach(one.spec) <
                t.run_pixels(one.spec));
      continue;
    }
    if (t.stores_boxes()) continue;  // tensor_store_boxes_test.cpp
    for (std::int64_t number = 0; number < std::min(sector, out.n * out.c); ++number) {
      const std::int64_t late = positive_modulo(-number * plane, sector);
      RC_ASSERT(late <= WgmmaTiling::slack(one.spec));
      RC_ASSERT(late == 0 || late < t.lead(one.spec));
      for (std::int64_t run_first = 0; run_first < plane; run_first += t.window) {
        const Run outputs = run_of(one, run_first, number);
        if (outputs.first >= outputs.end) continue;
        const std::int64_t last = outputs.end - 1, ends = last / out.w - run_first / out.w;
        if (WgmmaTiling::gap(one.spec) > 0) RC_ASSERT(ends <= t.row_ends(one.spec));
        RC_ASSERT(last - run_first + ends * WgmmaTiling::gap(one.spec) < t.columns);
      }
    }
  }
}

RC_GTEST_PROP(TensorTilingProperty, SplitsShareAllSteps, ()) {
  for (const TensorCandidate& one : some_tensor_candidates()) {
    const WgmmaTiling& t = one.tiling;
    const ConvSpec& spec = one.spec;
    const TensorShape out = output_shape(spec);
    RC_ASSERT(t.splits >= 1);
    std::int64_t done = 0;
    for (int split = 0; split < t.splits; ++split) {
      const std::int64_t first = split * t.steps_of_split(spec);
      RC_ASSERT(first == done);
      done = std::min(t.steps(spec), first + t.steps_of_split(spec));
      RC_ASSERT(done > first);
    }
    RC_ASSERT(done == t.steps(spec));
    RC_ASSERT(one.plan.workspace.partial_sums == t.partial_sum_bytes(spec));
    RC_ASSERT((t.splits == 1) == (one.plan.workspace.partial_sums == 0));
    if (t.splits == 1) continue;
    RC_ASSERT(t.partial_sum_stride(spec) >= out.n * out.c * out.h * out.w);
    RC_ASSERT(t.partial_sum_stride(spec) % 8 == 0);  // a sector of floats
    RC_ASSERT(t.partial_sum_bytes(spec) >= 4 * t.splits * t.partial_sum_stride(spec));
  }
}

}  // namespace
}  // namespace jitconv::codegen
