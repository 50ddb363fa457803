// Candidates of the pointwise family: how many pixels and channels a block multiplies, how many channels a step brings,
// and over how many blocks a reduction is split.
#include <algorithm>

#include "codegen/arithmetic.h"
#include "codegen/cost.h"
#include "codegen/costs/costs.h"
#include "codegen/pointwise/family.h"
#include "codegen/tensor_map.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

constexpr int kMostStages = 8;
constexpr int kMostSplits = 16;
constexpr int kMostAccumulators = 128;  // of a thread
constexpr int kMostPixels = 256;        // of a tile
constexpr int kFewestStreamed = 80;     // channels; of fewer, weights take little of a block's memory

/// Whether pixels are one line, of which each channel has whole vectors of 16 bytes.
bool has_line(const Problem& problem) {
  return problem.rows.stride == 1 && problem.columns.stride == 1 && problem.input_plane() % 4 == 0;
}

/// Whether a box has the rows that a stride meets, which are whole vectors of 16 bytes.
bool has_rows(const Problem& problem) {
  return problem.rows.stride > 1 && problem.columns.input % 4 == 0 &&
         problem.columns.input <= TensorMapShape::kMostBox && problem.columns.output <= kMostPixels &&
         problem.n * problem.input_channels() <= INT32_MAX;
}

/// Which rule keeps the family from computing the problem; empty if none does.
std::string obstacle(const Problem& problem, const Target& target) {
  if (const std::string_view rule = beyond_dense_forward(problem); !rule.empty()) return std::string(rule);
  if (target.compute_capability() != 90 || !target.arch_specific)
    return fmt::format("warpgroup multiplications need sm_90a, the target is {}", target.arch());
  if (problem.rows.taps != 1 || problem.columns.taps != 1)
    return fmt::format("the filter is {}x{}", problem.rows.taps, problem.columns.taps);
  for (const Axis* axis : {&problem.rows, &problem.columns})
    if (axis->pad != 0 || (axis->output - 1) * axis->stride >= axis->input) return "the input is padded";
  if (problem.input.type != DataType::f32) return fmt::format("the tensors are {}", to_string(problem.input.type));
  if (problem.arithmetic != Arithmetic::tf32) return "fp32 tensors take tensor cores only with math=tf32";
  if (problem.input.layout() != Layout::nchw) return "the input is nhwc";
  if (problem.output.layout() != Layout::nchw) return "the output is nhwc";
  if (problem.c % 8 != 0 || problem.c < 16)
    return fmt::format("groups of {} channels, it takes a multiple of 8 and at least 16", problem.c);
  if (problem.alignment < 16) return fmt::format("alignment is {}, copies and stores need 16", problem.alignment);
  const std::int64_t plane = problem.input_plane();
  if (!has_line(problem)) {
    if (problem.epilogue.residual) return "a residual, which is added to pixels of a line only";
    if (problem.output_plane() > kMostPixels && !has_rows(problem))
      return fmt::format(
          "planes of {} pixels with a stride of ({},{}), neither of whose rows are whole vectors of 16 bytes", plane,
          problem.rows.stride, problem.columns.stride);
  }
  if (problem.n * plane > INT32_MAX - 512)
    return fmt::format("{} pixels, which are counted with 32 bits", problem.n * plane);
  if (problem.output_channels() * problem.c > INT32_MAX)
    return fmt::format("{} weights, which are counted with 32 bits", problem.output_channels() * problem.c);
  return {};
}

class Search {
 public:
  Search(const Problem& problem, const Target& target, CandidateList& into)
      : into_(into),
        costs_(into.costs().pointwise),
        problem_(problem),
        target_(target),
        bytes_(static_cast<std::int64_t>(work(problem).bytes)) {}

  void run() {
    for (const int lane_pixels : {4, 2})
      for (const int consumers_k : {1, 2}) pixels(lane_pixels, consumers_k);
  }

 private:
  void pixels(int lane_pixels, int consumers_k) {
    using Pixels = PointwiseTiling::Pixels;
    PointwiseTiling tiling;
    tiling.lane_pixels = lane_pixels;
    tiling.consumers_k = consumers_k;
    const std::int64_t pixels = tiling.block_pixels();
    if (has_line(problem_)) columns(tiling);
    if (problem_.epilogue.residual) return;
    if (const std::int64_t plane = problem_.output_plane(); plane <= pixels) {
      tiling.tile = Pixels::images;
      tiling.extent = static_cast<int>(std::min(pixels / plane, problem_.n));
      columns(tiling);
    }
    if (const std::int64_t row = problem_.columns.output; has_rows(problem_) && row <= pixels) {
      // As few tiles of an image as there can be, all of about one size.
      const std::int64_t tiles = ceil_div(problem_.rows.output, pixels / row);
      tiling.tile = Pixels::rows;
      tiling.extent = static_cast<int>(ceil_div(problem_.rows.output, tiles));
      columns(tiling);
    }
  }

  /// As few tiles of channels as registers allow, and up to as many as SMs might want.
  void columns(PointwiseTiling tiling) {
    const std::int64_t group_k = problem_.k;
    const int consumers_k = tiling.consumers_k;
    int before = 0;
    for (std::int64_t tiles = 1; tiles <= 32; ++tiles) {
      tiling.columns = static_cast<int>(round_up(ceil_div(group_k, tiles * consumers_k), 8));
      if (tiling.columns == before || tiling.accumulators() > kMostAccumulators) continue;
      before = tiling.columns;
      chunks(tiling);
      if (tiling.columns == 8) break;
    }
  }

  void chunks(PointwiseTiling tiling) {
    // Best first: fewer channels wait more often, more of them leave fewer stages. Two that divide a group will do.
    int tried = 0;
    for (const int channels : {32, 16, 48, 24, 40, 56, 8}) {
      if (problem_.c % channels != 0 || tried == 2) continue;
      ++tried;
      tiling.chunk_channels = channels;
      tiling.batch_steps = channels % 32 == 0 ? 2 : 1;
      splits(tiling);
    }
    // Weights that come with every step leave their channels to the size of a swizzled row: as many as there can be,
    // or, of whole images, of which few fit, half as many.
    tiling.streams_weights = true;
    if (problem_.c < kFewestStreamed || tiling.block_k() > TensorMapShape::kMostBox) return;
    for (const int channels : {32, 16}) {
      if (problem_.c % channels != 0) continue;
      tiling.chunk_channels = channels;
      tiling.batch_steps = channels / 16;
      splits(tiling);
      if (tiling.tile != PointwiseTiling::Pixels::images) break;
    }
  }

  void splits(PointwiseTiling tiling) {
    const std::int64_t steps = tiling.steps(problem_);
    // Where a stride leaves pixels out, partial sums cost more than further blocks save.
    const std::int64_t most = problem_.rows.stride > 1 || problem_.columns.stride > 1 ? 1 : kMostSplits;
    for (int splits = 1; splits <= std::min(most, steps); ++splits) {
      const std::int64_t steps_of_split = ceil_div(steps, splits);
      if (ceil_div(steps, steps_of_split) != splits) continue;  // some would have nothing to do
      tiling.splits = splits;
      tiling.stages = 0;
      const std::int64_t fit = (target_.shared_bytes_per_block - tiling.shared_bytes(problem_) - kMostStages * 16 -
                                (tiling.streams_weights ? 1024 : 0)) /
                               (tiling.stage_bytes(problem_) + tiling.weight_stage_bytes());
      tiling.stages = static_cast<int>(std::min<std::int64_t>(fit, kMostStages));
      if (fit < 2) continue;
      add(tiling);
    }
  }

  void add(const PointwiseTiling& tiling) {
    const std::int64_t slabs = tiling.slabs(problem_), tiles = tiling.tiles(problem_);
    const std::int64_t blocks_of_slab = std::min(tiles, std::max<std::int64_t>(1, target_.sm_count / slabs));
    if (slabs * tiles > INT32_MAX || slabs * blocks_of_slab > INT32_MAX) return;
    const std::int64_t shared_bytes = tiling.shared_bytes(problem_), blocks = slabs * blocks_of_slab;
    if (shared_bytes > target_.shared_bytes_per_block) return;
    const Launch launch = {static_cast<std::uint32_t>(blocks), PointwiseTiling::kThreads,
                           static_cast<std::uint32_t>(shared_bytes)};
    into_.add(tiling, launch, price(tiling, blocks));
  }

  /// That bring a step's pixels.
  std::int64_t copies(const PointwiseTiling& tiling) const {
    const std::int64_t plane = problem_.input_plane(), pixels = tiling.block_pixels();
    switch (tiling.tile) {
      case PointwiseTiling::Pixels::line:  // where tiles span images, a channel's pixels are several runs
        return tiling.chunk_channels * (plane % pixels == 0 ? plane : plane + pixels) / plane;
      case PointwiseTiling::Pixels::images:
        return tiling.extent;
      case PointwiseTiling::Pixels::rows:
        return 1;
    }
    return 0;
  }

  /// Cycles in which TMA brings a step.
  std::int64_t load_of_step(const PointwiseTiling& tiling) const {
    const std::int64_t bytes = pixel_bytes(tiling) + tiling.weight_stage_bytes();
    // A box costs TMA time for each of its rows.
    const std::int64_t rows =
        tiling.tile == PointwiseTiling::Pixels::rows ? std::int64_t{tiling.chunk_channels} * tiling.extent : 0;
    // Runs of any number of images are copied by a loop.
    const std::int64_t looped =
        tiling.streams_weights && !tiling.gathers() && tiling.runs(problem_) > 2 ? costs_.copies.looped : 1;
    const std::int64_t load =
        copies(tiling) * looped * costs_.copies.copy + rows * costs_.copies.box_row + bytes / costs_.copies.bytes;
    if (!tiling.streams_weights) return load;
    return std::max(load, bytes / (tiling.gathers() ? costs_.copies.gathered_bytes : costs_.copies.streamed_bytes));
  }

  /// Cycles in which a step passes through shared memory: pixels, which all lanes read that multiply them, and weights,
  /// an operand of every instruction.
  std::int64_t shared_of_step(const PointwiseTiling& tiling) const {
    if (!tiling.streams_weights && !tiling.gathers()) return 0;
    // Lanes that gather have a bank conflict for each column of a stride.
    const std::int64_t conflicts = tiling.gathers() ? std::min<std::int64_t>(problem_.columns.stride, 4) : 1;
    const std::int64_t read = tiling.block_pixels() * tiling.consumers_k * conflicts +
                              PointwiseTiling::kConsumers * tiling.instructions() * tiling.columns;
    return (4 * tiling.chunk_channels * read + pixel_bytes(tiling) + tiling.weight_stage_bytes()) /
           costs_.shared_bytes_per_cycle;
  }

  std::int64_t pixel_bytes(const PointwiseTiling& tiling) const {  // of a step, without what pads rows
    return tiling.gathers() ? tiling.stage_bytes(problem_)
                            : std::int64_t{4} * tiling.chunk_channels * tiling.block_pixels();
  }

  std::int64_t store_of_tile(const PointwiseTiling& tiling) const {
    if (!tiling.gathers())
      return costs_.store.latency +
             std::int64_t{4} * tiling.block_pixels() * tiling.block_k() / costs_.store.bytes_per_cycle;
    const std::int64_t plane = problem_.output_plane(), pixels = tiling.tile_pixels(problem_);
    const bool sectors = plane % 8 == 0 && (tiling.tile == PointwiseTiling::Pixels::images || pixels % 8 == 0);
    const std::int64_t word = sectors ? costs_.store.sector : plane % 4 == 0 ? costs_.store.halves : costs_.store.parts;
    return costs_.store.latency + pixels * tiling.block_k() * word / 100;
  }

  std::int64_t price(const PointwiseTiling& tiling, std::int64_t blocks) const {
    const std::int64_t steps = tiling.steps_of_split(problem_);
    const std::int64_t multiply =
        tiling.chunk_channels / 8 * steps * tiling.instructions() * std::max(tiling.columns / 2, 16);
    const std::int64_t waiting = multiply + steps * (costs_.step + (tiling.batches() % 2 == 0 ? 0 : costs_.step));
    const std::int64_t busy =
        std::max({PointwiseTiling::kConsumers * multiply, waiting, steps * shared_of_step(tiling)});
    std::int64_t tile = std::max(busy + store_of_tile(tiling), steps * load_of_step(tiling));
    if (tiling.stages == 2) tile += tile * costs_.two_stages_percent / 100;
    const std::int64_t weights =
        tiling.streams_weights ? 0 : tiling.slab_slices(problem_) * tiling.weight_pitch() / costs_.copies.weight_bytes;

    const std::int64_t waves = ceil_div(blocks, target_.sm_count);
    const std::int64_t tiles = ceil_div(tiling.tiles(problem_), blocks / tiling.slabs(problem_));
    std::int64_t compute = costs_.start + waves * (weights + tiles * tile) * costs_.picoseconds_per_cycle;
    std::int64_t bytes = bytes_;
    if (tiling.tile == PointwiseTiling::Pixels::rows)
      bytes -= 4 * problem_.input_elements() / problem_.rows.stride * (problem_.rows.stride - 1) *
               costs_.unread_percent / 100;
    if (tiling.splits > 1) {
      const std::int64_t sums = tiling.partial_sum_bytes(problem_);
      compute += costs_.reduce.launch + sums / costs_.reduce.bytes_per_picosecond +
                 std::max<std::int64_t>(sums - costs_.reduce.cached_bytes, 0) * costs_.reduce.memory_tenths / 10;
      bytes += sums;
    }
    const std::int64_t memory = bytes * 1000 / (costs_.dram_bytes_per_microsecond / 1000);
    return overlapped(compute, memory, 10 * costs_.unhidden_percent);
  }

  CandidateList& into_;
  const PointwiseCosts& costs_;
  const Problem& problem_;
  const Target& target_;
  std::int64_t bytes_;
};

}  // namespace

std::string pointwise::enumerate(const Problem& problem, const Target& target, CandidateList& into) {
  if (std::string why = obstacle(problem, target); !why.empty()) return why;
  Search(problem, target, into).run();
  return into.empty() ? no_tile_fits(problem, target) : "";
}

}  // namespace jitconv::codegen
