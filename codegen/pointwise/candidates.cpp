// Candidates of the pointwise family: how many pixels and channels a block multiplies, how many channels a step brings,
// and over how many blocks a reduction is split.
#include <algorithm>

#include "codegen/arithmetic.h"
#include "codegen/pointwise/family.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

// Fitted to 220 candidates of 19 convolutions, measured on an H200: cycles, and picoseconds where they say so.
constexpr std::int64_t kPicosecondsPerCycle = 570;  // 1.755 GHz
constexpr std::int64_t kStart = 6'600'000;          // picoseconds: the launch, the first loads, the last store
constexpr std::int64_t kCopy = 24;                  // of a run of pixels, whatever its length
constexpr std::int64_t kCopyBytesPerCycle = 94;
constexpr std::int64_t kWeightBytesPerCycle = 13;  // every block at once, through registers
constexpr std::int64_t kStep = 51;                 // a barrier, the step's first pixels on their way to registers
constexpr std::int64_t kStoreLatency = 500;        // the last multiplication, the first store
constexpr std::int64_t kStoreBytesPerCycle = 50;
constexpr std::int64_t kReduceLaunch = 2'000'000;  // picoseconds of the kernel behind it
constexpr std::int64_t kReduceBytesPerPicosecond = 6;
constexpr std::int64_t kDramBytesPerMicrosecond = 3'830'000;
constexpr int kMostStages = 8;
constexpr int kMostSplits = 16;
constexpr int kMostAccumulators = 128;  // of a thread

/// Which rule keeps the family from computing the problem; empty if none does.
std::string obstacle(const Problem& problem, const Target& target) {
  if (const std::string_view rule = beyond_dense_forward(problem); !rule.empty()) return std::string(rule);
  if (target.compute_capability() != 90 || !target.arch_specific)
    return fmt::format("warpgroup multiplications need sm_90a, the target is {}", target.arch());
  if (problem.rows.taps != 1 || problem.columns.taps != 1)
    return fmt::format("the filter is {}x{}", problem.rows.taps, problem.columns.taps);
  if (problem.rows.stride != 1 || problem.columns.stride != 1)
    return fmt::format("the stride is ({},{})", problem.rows.stride, problem.columns.stride);
  if (problem.rows.output != problem.rows.input || problem.columns.output != problem.columns.input ||
      problem.rows.pad != 0 || problem.columns.pad != 0)
    return "the input is padded";
  if (problem.input.type != DataType::f32) return fmt::format("the tensors are {}", to_string(problem.input.type));
  if (problem.arithmetic != Arithmetic::tf32) return "fp32 tensors take tensor cores only with math=tf32";
  if (problem.input.layout() != Layout::nchw) return "the input is nhwc";
  if (problem.output.layout() != Layout::nchw) return "the output is nhwc";
  if (problem.c % 8 != 0 || problem.c < 16)
    return fmt::format("groups of {} channels, it takes a multiple of 8 and at least 16", problem.c);
  if (problem.alignment < 16) return fmt::format("alignment is {}, copies and stores need 16", problem.alignment);
  const std::int64_t plane = problem.input_plane();
  if (plane % 4 != 0) return fmt::format("planes of {} pixels, which are no whole vectors of 16 bytes", plane);
  if (problem.n * plane > INT32_MAX - 512)
    return fmt::format("{} pixels, which are counted with 32 bits", problem.n * plane);
  if (problem.output_channels() * problem.c > INT32_MAX)
    return fmt::format("{} weights, which are counted with 32 bits", problem.output_channels() * problem.c);
  return {};
}

class Search {
 public:
  Search(const Problem& problem, const Target& target, CandidateList& into)
      : into_(into), problem_(problem), target_(target), bytes_(static_cast<std::int64_t>(work(problem).bytes)) {}

  void run() {
    for (const int lane_pixels : {4, 2})
      for (const int consumers_k : {1, 2}) columns(lane_pixels, consumers_k);
  }

 private:
  /// As few tiles of channels as registers allow, and up to as many as SMs might want.
  void columns(int lane_pixels, int consumers_k) {
    PointwiseTiling tiling;
    tiling.lane_pixels = lane_pixels;
    tiling.consumers_k = consumers_k;
    const std::int64_t group_k = problem_.k;
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
  }

  void splits(PointwiseTiling tiling) {
    const std::int64_t steps = tiling.steps(problem_);
    for (int splits = 1; splits <= std::min<std::int64_t>(kMostSplits, steps); ++splits) {
      const std::int64_t steps_of_split = ceil_div(steps, splits);
      if (ceil_div(steps, steps_of_split) != splits) continue;  // some would have nothing to do
      tiling.splits = splits;
      tiling.stages = 0;
      const std::int64_t fit =
          (target_.shared_bytes_per_block - tiling.shared_bytes(problem_) - kMostStages * 16) / tiling.stage_bytes();
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

  std::int64_t price(const PointwiseTiling& tiling, std::int64_t blocks) const {
    const std::int64_t steps = tiling.steps_of_split(problem_), plane = problem_.input_plane();
    const std::int64_t pixels = tiling.block_pixels();
    // Where tiles span images, a channel's pixels are several runs.
    const std::int64_t runs = tiling.chunk_channels * (plane % pixels == 0 ? plane : plane + pixels) / plane;
    const std::int64_t load = steps * (runs * kCopy + tiling.chunk_channels * pixels * 4 / kCopyBytesPerCycle);
    const std::int64_t multiply =
        tiling.chunk_channels / 8 * steps * tiling.instructions() * std::max(tiling.columns / 2, 16);
    const std::int64_t waiting = multiply + steps * (kStep + (tiling.batches() % 2 == 0 ? 0 : kStep));
    const std::int64_t store = kStoreLatency + 4 * pixels * tiling.block_k() / kStoreBytesPerCycle;
    std::int64_t tile = std::max(std::max(PointwiseTiling::kConsumers * multiply, waiting) + store, load);
    if (tiling.stages == 2) tile += tile / 4;  // loading waits for multiplying
    const std::int64_t weights = tiling.slab_slices(problem_) * tiling.weight_pitch() / kWeightBytesPerCycle;

    const std::int64_t waves = ceil_div(blocks, target_.sm_count);
    const std::int64_t tiles = ceil_div(tiling.tiles(problem_), blocks / tiling.slabs(problem_));
    std::int64_t compute = kStart + waves * (weights + tiles * tile) * kPicosecondsPerCycle;
    std::int64_t bytes = bytes_;
    if (tiling.splits > 1) {
      compute += kReduceLaunch + tiling.partial_sum_bytes(problem_) / kReduceBytesPerPicosecond;
      bytes += tiling.partial_sum_bytes(problem_);
    }
    const std::int64_t memory = bytes * 1000 / (kDramBytesPerMicrosecond / 1000);
    return std::max(compute, memory) + std::min(compute, memory) / 5;
  }

  CandidateList& into_;
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
