// Statements about every tiling of the wgmma family: taps as distances between pixels, what the producer warps load,
// and that the columns of a run hold the outputs it stores.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>

#include "codegen/arithmetic.h"
#include "codegen/wgmma/registers.h"
#include "codegen/wgmma/store.h"
#include "unit/codegen/kernel_bodies.h"
#include "unit/codegen/wgmma_candidates.h"

namespace jitconv::codegen {
namespace {

using test::some_wgmma_candidates;
using test::WgmmaCandidate;

// Every run that TMA stores: from and to multiples of 16 bytes, inside its plane, where the one before
// ends; and there is one.
RC_GTEST_PROP(WgmmaTilingProperty, CopiedRunsAreWholeVectorsOfTheirPlane, ()) {
  for (const WgmmaCandidate& one : some_wgmma_candidates()) {
    const WgmmaTiling& t = one.tiling;
    const Problem& problem = one.problem;
    const WgmmaGeometry g = one.geometry();
    const WgmmaStore store(g);
    if (!store.stores_bulk()) continue;
    const std::int64_t plane = problem.output_plane(), bytes = store.staged_bytes(), sector = g.sector_elements();
    RC_ASSERT(bytes == store.written_bytes());  // nothing is converted on the way
    RC_ASSERT(t.tile.window * bytes % test::kRowBytes == 0 && store.lead() * bytes % test::kRowBytes == 0);
    RC_ASSERT(store.partial_sum_stride() * 4 % test::kRowBytes == 0);
    std::int64_t copied = 0;
    for (const std::int64_t channel : {0, 1, 2, 7}) {
      const std::int64_t late = positive_modulo(-channel * plane, sector);
      RC_ASSERT(late <= (store.lead() == 0 ? 0 : g.alignment_outputs()));
      for (std::int64_t first = 0; first < plane; first += t.tile.window) {
        const bool inside =
            store.lead() == 0 ? first + t.tile.window <= plane : first > 0 && first + t.tile.window + sector <= plane;
        if (!inside) continue;
        ++copied;
        RC_ASSERT((channel * plane + first + late) * bytes % test::kRowBytes == 0);
        RC_ASSERT(first + late + t.tile.window <= plane);
        // Staged are the outputs from the run's first to the copy's last.
        RC_ASSERT(late + t.tile.window + g.row_ends() * g.row_padding() <= t.tile.columns);
      }
    }
    RC_ASSERT(copied > 0);
  }
}

RC_GTEST_PROP(WgmmaTilingProperty, TapsAreOrderedByThePlacesOfTheirPixels, ()) {
  for (const WgmmaCandidate& one : some_wgmma_candidates()) {
    const Problem& problem = one.problem;
    const WgmmaGeometry g = one.geometry();
    const std::vector<int> order = g.tap_order();
    std::vector<int> sorted = order, all(static_cast<std::size_t>(g.taps()));
    std::iota(all.begin(), all.end(), 0);
    std::sort(sorted.begin(), sorted.end());
    RC_ASSERT(sorted == all);
    RC_ASSERT(g.phases() <= problem.columns.stride);
    std::int64_t previous = -1;
    for (const int tap : order) {
      const std::int64_t r = tap / g.fold().taps(), s = g.fold().first_column(tap % g.fold().taps());
      const int phase = g.phase_of(s);
      RC_ASSERT(phase >= 0 && phase < g.phases());
      // Tap s of the position in column q reads input column q * stride + s * dilation, in the same grid row.
      const std::int64_t shift = s * problem.columns.dilation / problem.columns.stride;
      RC_ASSERT(shift * problem.columns.stride + phase == s * problem.columns.dilation);
      RC_ASSERT(shift <= g.row_reach());
      const std::int64_t place = shift + r * problem.rows.dilation * g.pitch();
      RC_ASSERT(place == g.tap_place(tap));
      RC_ASSERT(one.tiling.tile.columns + place <= g.run_pixels());
      // A matrix operand's right half lies nowhere before its left half.
      const std::int64_t row = phase * one.tiling.pipeline.slices * g.pixels().slice_pitch() + place;
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

RC_GTEST_PROP(WgmmaTilingProperty, PaddingBehindARowIsThatOfTheNext, ()) {
  for (const WgmmaCandidate& one : some_wgmma_candidates()) {
    const Problem& problem = one.problem;
    const WgmmaGeometry g = one.geometry();
    const std::int64_t pitch = g.pitch();
    RC_ASSERT(pitch >= problem.columns.output && pitch <= problem.columns.output + g.row_reach());
    RC_ASSERT(taps_find_pixels(problem.columns.output, pitch, problem.columns.taps, problem.columns.dilation,
                               problem.columns.stride, problem.columns.pad, problem.columns.input));
    RC_ASSERT(!g.loads_pairs() || pitch % 2 == 0);  // two pixels of a word lie in one row
    const std::int64_t rows = g.image_rows(), filter_rows = one.tiling.pipeline.filter_rows;
    RC_ASSERT(rows >= problem.rows.output && rows <= problem.rows.output + (filter_rows - 1) * problem.rows.dilation);
    if (filter_rows == 1) continue;  // a step's rows are those of one filter row
    RC_ASSERT(taps_find_pixels(problem.rows.output, rows, filter_rows, problem.rows.dilation, 1, problem.rows.pad,
                               problem.rows.input));
  }
}

TEST(WgmmaTiling, SharesPaddingBetweenRowsAndImages) {
  const auto pitch = [](const std::string& text) {
    const Problem problem = lower(parse_spec(text));
    return PixelGrid(problem).pitch();
  };
  EXPECT_EQ(pitch("input=2,64,14,14 weight=64,64,3,3 padding=1 math=tf32"), 15);
  EXPECT_EQ(pitch("input=2,64,14,14 weight=64,64,3,3 padding=0,0,0,2 math=tf32"), 16);
  EXPECT_EQ(pitch("input=2,64,14,14 weight=64,64,3,3 math=tf32"), 14);
  EXPECT_EQ(pitch("input=2,64,14,14 weight=64,64,5,5 padding=2 dilation=2 math=tf32"), 16);
  EXPECT_EQ(pitch("input=2,64,14,14 weight=64,64,3,3 padding=1 stride=2 math=tf32"), 8);
  EXPECT_EQ(pitch("input=2,64,14,14 weight=64,64,1,1 padding=2 math=tf32"), 18);
  // Two pixels of 16 bits at a time.
  EXPECT_EQ(pitch("input=2,64,14,14 weight=64,64,3,3 padding=1 dtype=bf16"), 16);
  EXPECT_EQ(pitch("input=2,64,14,15 weight=64,64,3,3 padding=1 dtype=bf16"), 16);
  WgmmaTiling tiling;
  tiling.tile.images = 2, tiling.pipeline.filter_rows = 3;
  const Problem problem = lower(parse_spec("input=2,64,7,7 weight=64,64,3,3 padding=1 math=tf32"));
  EXPECT_EQ(WgmmaGeometry(problem, tiling).image_positions(), 8 * 8);
  tiling.pipeline.filter_rows = 1;
  EXPECT_EQ(WgmmaGeometry(problem, tiling).image_positions(), 7 * 8);
}

RC_GTEST_PROP(WgmmaTilingProperty, UnitsComeInPairs, ()) {
  for (const WgmmaCandidate& one : some_wgmma_candidates()) {
    const WgmmaTiling& t = one.tiling;
    const WgmmaGeometry g = one.geometry();
    RC_ASSERT(t.pipeline.filter_rows == 1 || t.pipeline.filter_rows == one.problem.rows.taps);
    const std::int64_t taps = t.pipeline.filter_rows * g.fold().taps() * t.pipeline.slices;
    RC_ASSERT(g.units() % 2 == 0);
    RC_ASSERT(g.units() >= taps && g.units() < taps + 2);
    RC_ASSERT(t.pipeline.slices == 1 || t.pipeline.slices % 2 == 0);
    RC_ASSERT(g.has_zeros() == (g.units() != taps));
    RC_ASSERT(g.slice_channels() * element_bytes(one.problem.input.type) == test::kRowBytes);
    RC_ASSERT(g.chunk_channels() == t.pipeline.slices * g.slice_channels());
  }
}

/// The same of the load_run() that loads vectors: how often each slice of a pixel is loaded.
bool loads_each_vector_once(const WgmmaCandidate& one) {
  const WgmmaTiling& t = one.tiling;
  const WgmmaGeometry g = one.geometry();
  const std::int64_t pixels = g.run_pixels(), items_of_phase = g.pixels().load_items_of_phase(), phases = g.phases(),
                     items = items_of_phase * phases;
  std::vector<int> counts(static_cast<std::size_t>(phases * t.pipeline.slices * pixels), 0);
  for (int member = 0; member < t.producer.team_warps; ++member)
    for (std::int64_t first = member; first < items; first += t.producer.load_batch * t.producer.team_warps)
      for (int i = 0; i < t.producer.load_batch; ++i)
        for (std::int64_t lane = 0; lane < kWarpSize; ++lane) {
          const std::int64_t item = first + i * t.producer.team_warps, phase = item / items_of_phase,
                             slice = lane % t.pipeline.slices,
                             pixel = (item - phase * items_of_phase) * (kWarpSize / t.pipeline.slices) +
                                     lane / t.pipeline.slices;
          if (item < items && pixel < pixels)
            ++counts[static_cast<std::size_t>((phase * t.pipeline.slices + slice) * pixels + pixel)];
        }
  return std::all_of(counts.begin(), counts.end(), [](int count) { return count == 1; });
}

/// Restates the loop of load_run(): how often each pixel of a run is loaded.
bool loads_each_pixel_once(const WgmmaCandidate& one) {
  const WgmmaTiling& t = one.tiling;
  const WgmmaGeometry g = one.geometry();
  const std::int64_t pixels = g.run_pixels(), items_of_phase = g.pixels().load_items_of_phase(), phases = g.phases(),
                     items = items_of_phase * phases;
  const bool pairs = g.loads_pairs();
  const std::int64_t pixels_of_item = pairs ? 2 * kWarpSize : kWarpSize;
  const std::int64_t before = pairs ? one.problem.columns.pad % 2 : 0;  // pairs are words of x
  std::vector<int> counts(static_cast<std::size_t>(pixels * phases), 0);
  for (int member = 0; member < t.producer.team_warps; ++member)
    for (std::int64_t first = member; first < items; first += t.producer.load_batch * t.producer.team_warps)
      for (int i = 0; i < t.producer.load_batch; ++i) {
        const std::int64_t item = first + i * t.producer.team_warps, phase = item / items_of_phase;
        const std::int64_t first_pixel = (item - phase * items_of_phase) * pixels_of_item - before;
        for (std::int64_t pixel = first_pixel; item < items && pixel < first_pixel + pixels_of_item; ++pixel)
          if (pixel >= 0 && pixel < pixels) ++counts[static_cast<std::size_t>(phase * pixels + pixel)];
      }
  return std::all_of(counts.begin(), counts.end(), [](int count) { return count == 1; });
}

/// The same where lanes load a pixel of either phase at a time.
bool loads_each_pixel_of_pairs_once(const WgmmaCandidate& one) {
  const WgmmaTiling& t = one.tiling;
  const WgmmaGeometry g = one.geometry();
  const std::int64_t pixels = g.run_pixels(), items = g.pixels().load_items();
  // Behind an odd padding a pair starts with the second phase of a position, and ends with the first of the next.
  const std::int64_t odd = one.problem.columns.pad % 2;
  std::vector<int> counts(static_cast<std::size_t>(2 * pixels), 0);
  for (int member = 0; member < t.producer.team_warps; ++member)
    for (std::int64_t first = member; first < items; first += t.producer.load_batch * t.producer.team_warps)
      for (int i = 0; i < t.producer.load_batch; ++i)
        for (std::int64_t lane = 0; lane < kWarpSize; ++lane) {
          const std::int64_t pixel = (first + i * t.producer.team_warps) * kWarpSize + lane - odd;
          if (pixel >= 0 && pixel < pixels) ++counts[static_cast<std::size_t>(odd * pixels + pixel)];
          if (pixel + odd < pixels) ++counts[static_cast<std::size_t>((1 - odd) * pixels + pixel + odd)];
        }
  return std::all_of(counts.begin(), counts.end(), [](int count) { return count == 1; });
}

RC_GTEST_PROP(WgmmaTilingProperty, LoadingWarpsShareARun, ()) {
  for (const WgmmaCandidate& one : some_wgmma_candidates()) {
    const WgmmaTiling& t = one.tiling;
    const WgmmaGeometry g = one.geometry();
    RC_ASSERT(t.producer.team_warps >= 1 && test::kProducerWarps % t.producer.team_warps == 0);
    RC_ASSERT((t.producer.load_batch > 0) == t.loads_pixels() && (t.producer.copies_ahead > 0) == t.copies_pixels());
    if (!t.loads_pixels()) {  // each warp has steps of its own, or slices of every step, or nothing to do
      RC_ASSERT(t.producer.team_warps == 1);
      continue;
    }
    // What a thread has in flight stays in its registers.
    RC_ASSERT(t.producer.load_batch * WgmmaRegisters(g).per_load() < WgmmaRegisters(g).producer());
    if (g.loads_vectors())
      RC_ASSERT(loads_each_vector_once(one));
    else if (g.pixels().loads_phase_pairs())
      RC_ASSERT(loads_each_pixel_of_pairs_once(one));
    else
      RC_ASSERT(loads_each_pixel_once(one));
  }
}

// A pair of 16-bit pixels is one aligned word of x and one row of the grid, wherever a run starts.
RC_GTEST_PROP(WgmmaTilingProperty, PairsOfPixelsAreWords, ()) {
  for (const WgmmaCandidate& one : some_wgmma_candidates()) {
    const Problem& problem = one.problem;
    const WgmmaGeometry g = one.geometry();
    if (!g.loads_pairs()) continue;
    RC_ASSERT(element_bytes(problem.input.type) == 2 && problem.input.layout() == Layout::nchw &&
              problem.columns.stride == 1);
    RC_ASSERT(problem.alignment >= 4);
    const std::int64_t pitch = problem.columns.output + g.row_padding();
    RC_ASSERT(problem.columns.input % 2 == 0 && pitch % 2 == 0);
    // Behind an odd padding a pair may hold the end of one row of the grid and the start of the next: both are padding.
    if (problem.columns.pad % 2 == 1) RC_ASSERT(pitch - 1 - problem.columns.pad >= problem.columns.input);
    RC_ASSERT(problem.columns.output % 2 == 0 && one.tiling.tile.window % 2 == 0);
  }
}

// So is a pair of a pixel of either phase. Behind an odd padding its second pixel is loaded for the position behind its
// first: at the end of a row of the grid that is the first of the next, whose pixel lies before x, so it must be none.
RC_GTEST_PROP(WgmmaTilingProperty, PairsOfPhasesAreWords, ()) {
  for (const WgmmaCandidate& one : some_wgmma_candidates()) {
    const Axis& columns = one.problem.columns;
    const WgmmaGeometry g = one.geometry();
    if (!g.pixels().loads_phase_pairs()) continue;
    RC_ASSERT(one.tiling.loads_pixels() && one.problem.input.layout() == Layout::nchw);
    RC_ASSERT(columns.stride == 2 && g.phases() == 2 && columns.input % 2 == 0);
    RC_ASSERT(one.problem.alignment >= 2 * one.problem.input.element_bytes());
    if (columns.pad % 2 == 1) RC_ASSERT(2 * g.pitch() - columns.pad >= columns.input);
  }
}

/// A run of a plane, as the template's store has it.
struct CopiedRun {
  std::int64_t first, end;  ///< outputs it stores
};
CopiedRun run_of(const WgmmaCandidate& one, std::int64_t run_first, std::int64_t plane_number) {
  const std::int64_t plane = one.problem.output_plane(), sector = one.geometry().sector_elements();
  const std::int64_t late = positive_modulo(-plane_number * plane, sector);
  return {run_first == 0 ? 0 : std::min(plane, run_first + late),
          std::min(plane, run_first + one.tiling.tile.window + late)};
}

RC_GTEST_PROP(WgmmaTilingProperty, EachOutputOfAPlaneIsStoredByOneRun, ()) {
  for (const WgmmaCandidate& one : some_wgmma_candidates()) {
    const WgmmaTiling& t = one.tiling;
    const Problem& problem = one.problem;
    const WgmmaGeometry g = one.geometry();
    const std::int64_t plane = problem.output_plane(), sector = g.sector_elements();
    if (t.tile.images > 0 || t.stores_boxes()) continue;
    RC_ASSERT(t.tile.window > 0 && t.tile.window % sector == 0);
    // Where planes start within a sector repeats after as many planes as a sector has elements.
    for (std::int64_t number = 0; number < std::min(sector, problem.n * problem.output_channels()); ++number) {
      std::int64_t stored = 0;
      for (std::int64_t run = 0; run < g.tiles_of_plane() * t.runs(); ++run) {
        const CopiedRun outputs = run_of(one, run * t.tile.window, number);
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

RC_GTEST_PROP(WgmmaTilingProperty, ColumnsHoldWhatARunStores, ()) {
  for (const WgmmaCandidate& one : some_wgmma_candidates()) {
    const WgmmaTiling& t = one.tiling;
    const Problem& problem = one.problem;
    const WgmmaGeometry g = one.geometry();
    const WgmmaStore store(g);
    const std::int64_t plane = problem.output_plane(), sector = g.sector_elements();
    RC_ASSERT(t.tile.columns % 8 == 0 && t.tile.columns >= 8 && t.tile.columns <= 256);
    RC_ASSERT(t.runs() * t.tile.channels == 64 * t.tile_consumers());
    RC_ASSERT(store.lead() % sector == 0);
    if (one.problem.output.layout() == Layout::nhwc)
      RC_ASSERT(store.lead() == 0 && g.alignment_outputs() == 0);
    else if (store.stores_planes())
      RC_ASSERT(store.staging_pitch() == t.tile.window);  // positions without outputs are not staged
    else
      RC_ASSERT(store.staging_pitch() >= store.staged_before() + t.tile.columns + store.lead());
    if (t.tile.images > 0) {
      // The last output's place is one of the run's.
      RC_ASSERT(t.tile.window == t.tile.images * plane && t.tile.images <= one.problem.n);
      RC_ASSERT(g.pitch() == problem.columns.output + g.row_padding());
      RC_ASSERT(g.image_positions() == g.image_rows() * g.pitch());
      const std::int64_t last = (t.tile.images - 1) * g.image_positions() + (problem.rows.output - 1) * g.pitch() +
                                problem.columns.output - 1;
      RC_ASSERT(last < t.tile.columns);
      // A lane's outputs are neighbours in y and among the positions, and start at a multiple in both.
      const int width = store.store_width();
      RC_ASSERT(width == 1 || g.row_padding() == 0);
      RC_ASSERT(width >= 1 && plane % width == 0);
      for (std::int64_t image = 0; image < t.tile.images; ++image) RC_ASSERT(image * g.image_positions() % width == 0);
      RC_ASSERT(last + (t.pipeline.filter_rows - 1) * one.problem.rows.dilation * g.pitch() + g.row_reach() <
                g.run_pixels());
      continue;
    }
    if (t.stores_boxes()) continue;  // wgmma_store_boxes_test.cpp
    for (std::int64_t number = 0; number < std::min(sector, problem.n * problem.output_channels()); ++number) {
      const std::int64_t late = positive_modulo(-number * plane, sector);
      RC_ASSERT(late <= g.alignment_outputs());
      RC_ASSERT(late == 0 || late < store.lead());
      for (std::int64_t run_first = 0; run_first < plane; run_first += t.tile.window) {
        const CopiedRun outputs = run_of(one, run_first, number);
        if (outputs.first >= outputs.end) continue;
        const std::int64_t last = outputs.end - 1,
                           ends = last / problem.columns.output - run_first / problem.columns.output;
        if (g.row_padding() > 0) RC_ASSERT(ends <= g.row_ends());
        RC_ASSERT(last - run_first + ends * g.row_padding() < t.tile.columns - g.fold_reach());
      }
    }
  }
}

RC_GTEST_PROP(WgmmaTilingProperty, SplitsShareAllSteps, ()) {
  for (const WgmmaCandidate& one : some_wgmma_candidates()) {
    const WgmmaTiling& t = one.tiling;
    const Problem& problem = one.problem;
    const WgmmaGeometry g = one.geometry();
    const WgmmaStore store(g);
    RC_ASSERT(t.split_k >= 1);
    std::int64_t done = 0;
    for (int split = 0; split < t.split_k; ++split) {
      const std::int64_t first = split * g.steps_of_split();
      RC_ASSERT(first == done);
      done = std::min(g.steps(), first + g.steps_of_split());
      RC_ASSERT(done > first);
    }
    RC_ASSERT(done == g.steps());
    const std::int64_t partial_sums = test::scratch_bytes(one.plan.scratch, "partial_sums");
    RC_ASSERT(partial_sums == store.partial_sum_bytes());
    RC_ASSERT((t.split_k == 1) == (partial_sums == 0));
    if (t.split_k == 1) continue;
    RC_ASSERT(store.partial_sum_stride() >= problem.output_elements());
    RC_ASSERT(store.partial_sum_stride() % 8 == 0);  // a sector of floats
    RC_ASSERT(store.partial_sum_bytes() >= 4 * t.split_k * store.partial_sum_stride());
  }
}

}  // namespace
}  // namespace jitconv::codegen
