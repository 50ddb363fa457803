// See price.h.
#include "codegen/wgmma/price.h"

#include <algorithm>

#include "codegen/arithmetic.h"
#include "codegen/cost.h"
#include "codegen/f16_pairs.h"
#include "codegen/gather_patches/tiling.h"
#include "codegen/wgmma/store.h"

namespace jitconv::codegen {
namespace {

constexpr int kProducerWarps = WgmmaTiling::kProducerWarps;
constexpr std::int64_t kSectorBytes = 32;
constexpr std::int64_t kLineBytes = 128, kLongRunBytes = 1024;

}  // namespace

WgmmaPrice::WgmmaPrice(const Problem& problem, const Target& target, const WgmmaCosts& costs)
    : problem_(problem),
      target_(target),
      costs_(costs),
      grid_(problem),
      bytes_(static_cast<std::int64_t>(work(problem).bytes)),
      input_bytes_(problem.n * problem.input_channels() * problem.input_plane() / problem.rows.stride *
                   grid_.row_phases() * problem.input.element_bytes()) {}

std::int64_t WgmmaPrice::step_load(const WgmmaGeometry& geometry) const {
  const WgmmaTiling& tiling = geometry.tiling();
  using Pixels = WgmmaTiling::Pixels;
  switch (tiling.producer.pixels) {
    case Pixels::loaded:
      return load_by_lanes(geometry);
    case Pixels::converted:
    case Pixels::aligned:
      return load_copied(geometry);
    case Pixels::im2col:
    case Pixels::planes:
      return load_operands(geometry);
  }
  return 0;
}

std::int64_t WgmmaPrice::split_pixel(const WgmmaGeometry& geometry) const {
  const WgmmaTiling& tiling = geometry.tiling();
  if (!tiling.splits_operands()) return 0;
  return geometry.loads_vectors() ? costs_.loads.split_vector : tiling.pipeline.slices * costs_.loads.split_row;
}

// Pairs of fp16 numbers take about as many instructions as TF32 numbers, and have their prices.
std::int64_t WgmmaPrice::split_copied(const WgmmaGeometry& geometry) const {
  if (!geometry.tiling().splits_im2col()) return 0;
  const auto [batch, batches] = geometry.split_rows();
  return costs_.im2col.split_step + geometry.tiling().runs() * geometry.phases() * batches *
                                        (costs_.im2col.split_batch + batch * costs_.im2col.split_row);
}

std::int64_t WgmmaPrice::load_operands(const WgmmaGeometry& geometry) const {
  const WgmmaTiling& tiling = geometry.tiling();
  const bool planes = tiling.uses_planes();
  const std::int64_t requests = tiling.runs() * (planes ? geometry.pixels().parts() : geometry.phases());
  const std::int64_t rows = planes ? geometry.chunk_channels() : geometry.run_pixels();
  const std::int64_t bytes =
      (planes ? tiling.runs() * geometry.pixels().run_bytes() : geometry.pixels().im2col_bytes()) +
      geometry.copied_weight_bytes();
  const bool phases = tiling.stores_pixels;
  const std::int64_t pixel = phases ? costs_.phases.im2col_pixel_sixteenths : costs_.im2col.pixel_sixteenths;
  const std::int64_t rate = phases ? costs_.phases.im2col_l2_bytes_per_cycle : costs_.im2col.l2_bytes_per_cycle;
  return std::max({requests * (costs_.im2col.issue + rows * pixel / 16) + cut_weight_rows(geometry), bytes / rate,
                   split_copied(geometry)});
}

std::int64_t WgmmaPrice::cut_weight_rows(const WgmmaGeometry& geometry) const {
  if (!geometry.tiling().takes_weights_transposed() || problem_.k % kConsumerChannels == 0) return 0;
  // Rows of w end behind the last channel: those of one box, which one of so many tiles requests.
  return geometry.chunk_channels() * costs_.im2col.cut_weight_row / geometry.tiles_k();
}

std::int64_t WgmmaPrice::load_copied(const WgmmaGeometry& geometry) const {
  const WgmmaTiling& tiling = geometry.tiling();
  const std::int64_t runs = tiling.runs(), weight_bytes = geometry.copied_weight_bytes();
  const std::int64_t items = geometry.pixels().load_items();
  const std::int64_t convert =
      tiling.aligns_pixels() ? kProducerWarps * geometry.pixels().raw_bytes() / costs_.copies.aligned_bytes_per_cycle
                             : items * runs *
                                   (costs_.copies.convert_pixels +
                                    tiling.pipeline.slices * costs_.copies.convert_slice + split_pixel(geometry));
  const std::int64_t bytes = geometry.pixels().raw_bytes() + weight_bytes;
  if (geometry.pixels().copies_boxes()) {
    const std::int64_t warp =
        convert + (tiling.producer.copies_ahead == 1 ? costs_.copies.box_latency : costs_.copies.next_box_latency);
    return std::max(warp / kProducerWarps, bytes / costs_.copies.l2_box_bytes_per_cycle);
  }
  const std::int64_t channels = std::min<std::int64_t>(geometry.chunk_channels(), problem_.c);
  const std::int64_t copies = runs * (tiling.tile.images > 0 ? tiling.tile.images : channels);
  const std::int64_t warp = copies * costs_.copies.issue + convert +
                            (tiling.producer.copies_ahead == 1 ? costs_.copies.latency : costs_.copies.next_latency);
  const std::int64_t rate =
      tiling.stores_pixels ? costs_.phases.copies_l2_bytes_per_cycle : costs_.copies.l2_bytes_per_cycle;
  return std::max({warp / kProducerWarps, copies * costs_.copies.engine, bytes / rate});
}

std::int64_t WgmmaPrice::load_by_lanes(const WgmmaGeometry& geometry) const {
  const WgmmaTiling& tiling = geometry.tiling();
  const std::int64_t runs = tiling.runs(), weight_bytes = geometry.copied_weight_bytes();
  const std::int64_t items = geometry.pixels().load_items();
  const std::int64_t own = ceil_div(items, tiling.producer.team_warps);
  const std::int64_t loads = geometry.loads_vectors() ? 16 / geometry.load_bytes()
                                                      : std::min<std::int64_t>(geometry.chunk_channels(), problem_.c);
  // A chunk has a step per filter row; the first brings most of the pixels to L2.
  const bool few = ceil_div(geometry.tiles(), target_.sm_count) <= 2;
  const std::int64_t latency =
      costs_.loads.latency + (few ? costs_.loads.first_touch * tiling.pipeline.filter_rows / problem_.rows.taps : 0);
  // Less than 64 bytes at a time, of pixels that have many.
  const bool narrow =
      geometry.loads_vectors() && tiling.pipeline.slices < 4 && 4 * geometry.chunk_channels() <= problem_.c;
  // Lanes that are a stride apart ask for as many more sectors. Pairs of pixels have the same price, although lanes
  // load neighbouring words: modelled times are then 0.9 to 1.05 of those measured.
  const std::int64_t apart = geometry.loads_vectors() ? 1 : std::min<std::int64_t>(problem_.columns.stride, 8);
  const std::int64_t pixels = geometry.pixels().loads_phase_pairs() ? 2 : 1;
  const std::int64_t issue = loads * (costs_.loads.issue + (apart - 1) * costs_.loads.strided_issue) +
                             pixels * (costs_.loads.pixel_issue + split_pixel(geometry));
  const std::int64_t warp =
      (narrow ? costs_.loads.narrow : 1) * runs * (ceil_div(own, tiling.producer.load_batch) * latency + own * issue);
  // Teams that have a step to load, and stages to load it to.
  const std::int64_t steps = geometry.steps_of_split() * ceil_div(geometry.tiles(), target_.sm_count);
  const std::int64_t teams = std::min(
      {std::int64_t{kProducerWarps / tiling.producer.team_warps}, std::int64_t{tiling.pipeline.stages - 1}, steps});
  // Sectors also contain columns that no tap needs.
  const std::int64_t phases = geometry.phases();
  const std::int64_t width = phases < problem_.columns.stride
                                 ? std::min(problem_.columns.stride, kSectorBytes / problem_.input.element_bytes())
                                 : 1;
  const std::int64_t pixel_bytes = runs * phases * geometry.run_pixels() * width *
                                   std::min<std::int64_t>(geometry.chunk_channels(), problem_.c) *
                                   problem_.input.element_bytes();
  // No other tap has brought these pixels to the cache: they come from memory, a few of a plane at a time.
  const bool cold = problem_.taps() == 1 && !geometry.loads_vectors();
  const bool anywhere =
      problem_.input.layout() == Layout::nchw && !geometry.loads_pairs() && WgmmaPixels::plane_period(problem_) > 1;
  const std::int64_t percent =
      anywhere ? costs_.loads.cold_anywhere_percent * 4 / problem_.input.element_bytes() : costs_.loads.cold_percent;
  const std::int64_t bytes = pixel_bytes + (cold ? pixel_bytes * percent / 100 : 0) + weight_bytes;
  if (tiling.stores_pixels)
    return std::max(warp / teams * (geometry.loads_vectors() ? costs_.phases.vector_load_percent : 100) / 100,
                    bytes / costs_.phases.l2_bytes_per_cycle);
  return std::max(warp / teams, bytes / costs_.loads.l2_bytes_per_cycle);
}

std::int64_t WgmmaPrice::step_multiply(const WgmmaGeometry& geometry) const {
  const WgmmaTiling& tiling = geometry.tiling();
  const std::int64_t n = tiling.tile.columns, instruction = std::max(n / 2, costs_.multiply.instruction + n / 4);
  // An instruction multiplies two units; one consumer issues it, or both.
  const bool alone = tiling.tile_consumers() == 1;
  // Three of TF32 numbers, or half as many of fp16 numbers, of which an instruction takes twice as many.
  const int half_products = tiling.f16_pairs ? 3 : tiling.splits_operands() ? 6 : 2;
  // Blocks that have several tiles have some of every phase.
  const std::int64_t units =
      geometry.tiles() <= target_.sm_count ? geometry.most_multiplied_units() : geometry.multiplied_units();
  const std::int64_t pipe = half_products * units * instruction * tiling.tile_consumers() / 4;
  std::int64_t cycles = pipe;
  if (tiling.splits_operands())
    cycles += ceil_div(units / (tiling.f16_pairs ? kPairGroupRows : 2), tiling.promotion_interval) *
              (tiling.schedule == WgmmaTiling::Schedule::pingpong ? costs_.multiply.promotion_alone
                                                                  : costs_.multiply.promotion);
  if (!tiling.keeps_weights()) cycles += costs_.multiply.weights;
  if (alone) cycles += costs_.multiply.alone;
  if (geometry.multiplies_registers())
    cycles += (costs_.multiply.unpacked_weights + costs_.multiply.unpacked_weight * geometry.units()) *
              (alone ? costs_.multiply.alone_unpacked_percent : 100) / 100;
  if (tiling.schedule == WgmmaTiling::Schedule::sliced_k)
    cycles = std::max(pipe * costs_.multiply.sliced_k_pipe_percent, cycles * costs_.multiply.sliced_k_percent) / 100;
  if (tiling.copies_operands()) return cycles + costs_.multiply.im2col;
  if (tiling.copies_pixels()) return cycles + geometry.pixels().raw_bytes() / costs_.multiply.converted_bytes_per_cycle;
  const std::int64_t own = ceil_div(geometry.pixels().load_items(), tiling.producer.team_warps);
  return cycles + (ceil_div(own, tiling.producer.load_batch) - 1) * costs_.multiply.next_batch;
}

std::int64_t WgmmaPrice::store_columns(const WgmmaGeometry& geometry, const WgmmaStore& outputs,
                                       std::int64_t bytes_of_window) const {
  const WgmmaTiling& tiling = geometry.tiling();
  const std::int64_t n = tiling.tile.columns, rows = geometry.row_ends() > 1 ? costs_.store.stage_rows * n : 0;
  const std::int64_t pixels_of_output = problem_.phases.pixels_of_output();
  if (tiling.stores_boxes()) return costs_.store.box_column * outputs.staged_bytes() * n / 4;
  // Half of the rows are added to the others, and these to each other.
  if (tiling.folds_columns()) return rows + costs_.store.fold_column * n + costs_.store.column * bytes_of_window / 8;
  if (problem_.output.layout() == Layout::nhwc) {
    const std::int64_t vectors = costs_.store.nhwc_channels * outputs.staged_bytes() * n / 8;
    return tiling.stores_pixels ? vectors * pixels_of_output * costs_.phases.nhwc_store_percent / 100 : vectors;
  }
  if (tiling.stores_pixels)
    return (rows + costs_.store.stage_column * n + costs_.store.column * bytes_of_window * pixels_of_output / 4) *
           costs_.phases.nchw_store_percent / 100;
  if (outputs.stores_planes()) return costs_.store.stage_column * n * outputs.staged_bytes() / 4;
  if (!outputs.stores_bulk()) return rows + costs_.store.stage_column * n + costs_.store.column * bytes_of_window / 4;
  return rows + costs_.store.stage_column * n * outputs.staged_bytes() / 4 +
         costs_.store.bulk_column * bytes_of_window / 4;
}

std::int64_t WgmmaPrice::tile_bytes(const WgmmaGeometry& geometry, const WgmmaStore& outputs) const {
  const WgmmaTiling& tiling = geometry.tiling();
  return tiling.tile.channels / tiling.tile.folded_columns * tiling.runs() * tiling.tile.window *
         outputs.written_bytes() * problem_.phases.pixels_of_output();
}

std::int64_t WgmmaPrice::awaited_boxes(const WgmmaGeometry& geometry, const WgmmaStore& outputs) const {
  const WgmmaTiling& tiling = geometry.tiling();
  // While a warpgroup that has its turn waits for boxes, the other multiplies.
  if (!tiling.stores_boxes() || tiling.schedule == WgmmaTiling::Schedule::pingpong) return 0;
  const std::int64_t boxes = tiling.tile.columns / outputs.store_columns(), more = boxes - tiling.staged_boxes;
  return more <= 0 ? 0
                   : tile_bytes(geometry, outputs) / costs_.store.box_bytes_per_cycle * more *
                         costs_.store.awaited_percent / (boxes * 100);
}

std::int64_t WgmmaPrice::of_operands(const WgmmaGeometry& geometry, const WgmmaStore& outputs,
                                     std::int64_t tiles) const {
  const WgmmaTiling& tiling = geometry.tiling();
  using Schedule = WgmmaTiling::Schedule;
  const std::int64_t steps = geometry.steps_of_split(), waves = ceil_div(tiles, target_.sm_count);
  const std::int64_t multiply = steps * step_multiply(geometry), load = steps * step_load(geometry);
  const std::int64_t window_bytes = tiling.tile.window * outputs.written_bytes();
  const bool boxes = tiling.stores_boxes(), planes = outputs.stores_planes();
  const std::int64_t stored =
      tile_bytes(geometry, outputs) / (boxes ? costs_.store.box_bytes_per_cycle : costs_.store.bytes_per_cycle);
  std::int64_t store = boxes ? costs_.store.latency_boxes_im2col + store_columns(geometry, outputs, window_bytes) +
                                   awaited_boxes(geometry, outputs)
                             // TMA stores whole planes while the next tile is multiplied.
                             : costs_.store.latency_im2col +
                                   std::max(planes ? 0 : stored, store_columns(geometry, outputs, window_bytes));
  if (tiling.schedule == Schedule::sliced_k)
    store = store / 2 + costs_.tile.exchange + costs_.tile.exchange_column * tiling.tile.columns;
  const bool turns = tiling.schedule == Schedule::pingpong;
  const std::int64_t consume = turns ? std::max({multiply, (multiply + store) / 2, stored})
                                     : std::max(multiply + store, boxes || planes ? stored : 0);
  const std::int64_t engine =
      load + (boxes ? tile_bytes(geometry, outputs) / 128 * costs_.store.box_row_sixteenths / 16 : 0);
  std::int64_t tile = overlapped(consume, engine, costs_.tile.unhidden_permille);
  if (tiling.pipeline.stages <= 3)
    tile += tile * (tiling.pipeline.stages == 2 ? costs_.tile.two_stages_percent : costs_.tile.shallow_im2col_percent) /
            100;
  // The first step's pixels are waited for, and of the last tile the store.
  const std::int64_t ends =
      costs_.tile.start_im2col + load / steps + (turns ? store : 0) + (boxes ? costs_.store.box_end : 0);
  std::int64_t compute =
      (waves * tile + ends) * costs_.picoseconds_per_cycle + packing(geometry, costs_.launches.pack_weights_im2col);
  std::int64_t bytes = bytes_ + (geometry.tiles_k() - 1) * input_bytes() * costs_.memory.again_im2col_percent / 100;
  std::int64_t dram_bytes = bytes;
  if (turns && geometry.tiles_k() > 1) {
    bytes +=
        bytes * (boxes ? costs_.memory.pingpong_boxes_im2col_percent : costs_.memory.pingpong_im2col_percent) / 100;
    if (!boxes) dram_bytes = bytes;
  }
  if (tiling.split_k > 1) {
    compute += of_reduction(outputs);
    bytes += 2 * outputs.partial_sum_bytes();
  }
  const std::int64_t memory = bytes * 1000 / (costs_.memory.bytes_per_microsecond_im2col / 1000) *
                              (boxes ? costs_.memory.boxes_im2col_percent : 100) / 100;
  return launched(compute, memory, from_dram(geometry, dram_bytes));
}

std::int64_t WgmmaPrice::from_dram(const WgmmaGeometry& geometry, std::int64_t bytes) const {
  if (bytes_ <= target_.l2_bytes) return 0;
  const WgmmaTiling& tiling = geometry.tiling();
  std::int64_t moved = bytes * 1000 / (costs_.memory.dram_bytes_per_microsecond / 1000);
  if (tiling.loads_pixels()) {
    moved = moved * costs_.memory.dram_loaded_percent / 100;
    if (problem_.output.layout() == Layout::nhwc && !tiling.stores_boxes())
      moved = moved * costs_.memory.loaded_percent / costs_.memory.loaded_boxes_percent;
  }
  if (problem_.input.layout() == Layout::nchw) {
    const std::int64_t run = std::min(kLongRunBytes, tiling.tile.window * problem_.input.element_bytes());
    return moved + moved * costs_.memory.dram_short_run_percent * (kLongRunBytes - run) / (run * 100);
  }
  // A step brings a part of a pixel's channels. The line of memory is opened again for each part that comes later, the
  // more often where the stages hold no whole pixels.
  const std::int64_t line = std::min(kLineBytes, problem_.c * problem_.input.element_bytes());
  const std::int64_t part = std::min(line, tiling.pipeline.slices * PixelGrid::kRowBytes);
  const bool cut = line == kLineBytes && tiling.pipeline.stages * tiling.pipeline.slices % grid_.pixel_slices() != 0;
  return moved +
         moved * (costs_.memory.dram_parts_percent * (line / part - 1) + (cut ? costs_.memory.dram_cut_percent : 0)) /
             100;
}

std::int64_t WgmmaPrice::launched(std::int64_t compute, std::int64_t memory, std::int64_t dram) const {
  // The rate of `memory` is that of what the cache helps with. Where DRAM takes longest, its own rate decides.
  const std::int64_t moving = dram > compute ? std::max(memory, dram) : memory;
  return overlapped(compute, moving, 10 * costs_.memory.unhidden_percent) + costs_.launches.launch;
}

std::int64_t WgmmaPrice::packing(const WgmmaGeometry& geometry, std::int64_t launch) const {
  if (!geometry.tiling().packs_weights()) return 0;
  const std::int64_t read = problem_.weight_elements() * problem_.weight.element_bytes();
  const std::int64_t bytes = read + geometry.packed_rows() * PixelGrid::kRowBytes;
  const WgmmaCosts::Memory& rates = costs_.memory;
  const auto rate = bytes <= target_.l2_bytes ? rates.packed_per_microsecond : rates.dram_bytes_per_microsecond;
  return launch + (geometry.reads_operand_rows() ? costs_.launches.pack_and_transpose : 0) +
         bytes * 1000 / (rate / 1000);
}

std::int64_t WgmmaPrice::of_transposition(const Problem& source) const {
  const std::int64_t bytes = problem_.input.element_bytes(), pixels = problem_.n * problem_.input_plane();
  // Sectors also contain columns that no tap needs.
  const std::int64_t width = std::min(source.columns.input * bytes, problem_.columns.input * kSectorBytes);
  const std::int64_t read = problem_.n * problem_.input_channels() * problem_.rows.input * width;
  const std::int64_t written = pixels * grid_.pixel_slices() * PixelGrid::kRowBytes;
  return making_operand_rows(read + written);
}

std::int64_t WgmmaPrice::of_ranges() const {
  return making_operand_rows(problem_.input_elements() * problem_.input.element_bytes()) +
         making_operand_rows(PackWeightsTiling::source_elements(problem_) * problem_.weight.element_bytes());
}

std::int64_t WgmmaPrice::of_gathering(const Problem& source) const {
  return making_operand_rows(gather_patches_tiling(source).priced_bytes(source));
}

std::int64_t WgmmaPrice::making_operand_rows(std::int64_t bytes) const {
  return costs_.launches.transpose_input + bytes * 1000 / (costs_.memory.transposed_per_microsecond / 1000);
}

std::int64_t WgmmaPrice::of_reduction(const WgmmaStore& outputs) const {
  return std::min(
      costs_.launches.reduce,
      costs_.launches.reduce_few + outputs.partial_sum_bytes() * 1000 / (costs_.memory.reduced_per_microsecond / 1000));
}

std::int64_t WgmmaPrice::of(const WgmmaGeometry& geometry, const WgmmaStore& outputs, std::int64_t tiles) const {
  const WgmmaTiling& tiling = geometry.tiling();
  if (tiling.copies_operands()) return of_operands(geometry, outputs, tiles);
  const std::int64_t steps = geometry.steps_of_split(), n = tiling.tile.columns;
  const std::int64_t multiply = steps * step_multiply(geometry), load_of_step = step_load(geometry);
  const std::int64_t load = steps * load_of_step;
  const std::int64_t written_bytes = outputs.written_bytes(), bytes_of_window = tiling.tile.window * written_bytes;
  const bool nhwc = problem_.output.layout() == Layout::nhwc;
  std::int64_t store = (tiling.stores_boxes() ? costs_.store.latency_boxes : costs_.store.latency) +
                       store_columns(geometry, outputs, bytes_of_window) + awaited_boxes(geometry, outputs);

  if (tiling.schedule == WgmmaTiling::Schedule::sliced_k)
    store = store / 2 + costs_.tile.exchange + costs_.tile.exchange_column * n;
  // One warpgroup stores while the other multiplies, except at the end.
  const bool turns = tiling.schedule == WgmmaTiling::Schedule::pingpong;
  const std::int64_t consume = turns ? std::max(multiply, (multiply + store) / 2) : multiply + store;
  const std::int64_t last = turns ? store : 0;
  std::int64_t tile = overlapped(consume, load, costs_.tile.unhidden_permille);
  if (tiling.runs() == 2) tile += steps * costs_.tile.second_run;
  if (tiling.pipeline.filter_rows > 1) tile += steps * costs_.tile.all_rows * tiling.runs();
  // A warp that converts needs a stage besides the one that is multiplied.
  if (tiling.copies_pixels() && tiling.pipeline.stages < kProducerWarps + 2)
    tile += tile * costs_.tile.converted_percent / 100;
  if (tiling.aligns_pixels()) tile += tile * costs_.tile.aligned_percent / 100;
  // Producer warps that run few stages ahead of those they load now. A step of one slice is one long batch instead.
  if (tiling.loads_pixels() && tiling.pipeline.slices > 1) {
    const std::int64_t ahead = tiling.pipeline.stages - kProducerWarps / tiling.producer.team_warps;
    tile += tile * std::max<std::int64_t>(0, 3 - ahead) * costs_.tile.shallow_permille / 1000;
  }
  if (tiling.pipeline.stages <= 3)
    tile +=
        tile * (tiling.pipeline.stages == 2 ? costs_.tile.two_stages_percent : costs_.tile.three_stages_percent) / 100;
  const std::int64_t waves = ceil_div(tiles, target_.sm_count);
  const std::int64_t first =
      waves > 1 ? 0 : load_of_step * (tiling.copies_pixels() ? costs_.tile.first_converted_percent : 100) / 100;
  std::int64_t compute =
      (waves * tile + last + first + (tiling.packs_weights() ? costs_.tile.start : costs_.tile.start_unpacked)) *
          costs_.picoseconds_per_cycle +
      packing(geometry, costs_.launches.pack_weights);
  std::int64_t bytes = bytes_;
  if (tiling.split_k > 1) {
    compute += of_reduction(outputs);
    bytes += 2 * outputs.partial_sum_bytes();
  }
  const bool aligned = nhwc || (problem_.output_plane() * written_bytes % 256 == 0 && bytes_of_window % 256 == 0);
  // Runs of vectors that do not start at the same places within 64 bytes.
  const bool scattered = !nhwc && tiling.tile.images == 0 && !outputs.stores_bulk() && bytes_of_window % 64 != 0;
  // Where rows come again for the next filter row, more copies in flight only compete with stores.
  const bool competing = tiling.producer.copies_ahead > 1 && problem_.rows.taps > tiling.pipeline.filter_rows;
  bytes += (geometry.tiles_k() - 1) * input_bytes() * costs_.memory.again_percent / 100;
  bytes += bytes *
           ((scattered ? costs_.memory.scattered_percent : 0) + (competing ? costs_.memory.competing_percent : 0)) /
           100;
  // Warpgroups that take tiles in turn store the channels of a run at different times.
  if (turns && geometry.tiles_k() > 1) bytes += bytes * costs_.memory.pingpong_percent / 100;
  // Fitted where y is a large part of what moves. Where columns are folded it is a small one.
  const std::int64_t more_percent = costs_.memory.unaligned_percent - 100;
  const std::int64_t unaligned =
      tiling.folds_columns() ? more_percent * problem_.output_elements() * written_bytes / bytes : more_percent;
  const std::int64_t memory = bytes * 1000 / (costs_.memory.bytes_per_microsecond / 1000) *
                              (aligned ? 100 : 100 + unaligned) / 100 *
                              (tiling.copies_pixels()  ? 100
                               : tiling.stores_boxes() ? costs_.memory.loaded_boxes_percent
                                                       : costs_.memory.loaded_percent) /
                              100;
  return launched(compute, memory, from_dram(geometry, bytes));
}

}  // namespace jitconv::codegen
