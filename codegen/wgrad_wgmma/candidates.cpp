// Candidates of the wgrad_wgmma family: how dw is cut into tiles, how long the steps are, and over how many blocks the
// pixels are split.
#include <algorithm>
#include <array>

#include "codegen/reduce/tiling.h"
#include "codegen/wgrad_wgmma/family.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

// Estimates, of an SM of an H200: cycles, and picoseconds where they say so.
constexpr std::int64_t kPicosecondsPerCycle = 570;  // 1.755 GHz
constexpr std::int64_t kStart = 6'600'000;          // picoseconds: the launch, the first loads
constexpr std::int64_t kStep = 160;                 // barriers, the first operands
constexpr std::int64_t kL2BytesPerCycle = 28;
constexpr std::int64_t kLoadLatency = 800;         // of a batch of a loading thread
constexpr std::int64_t kLoadIssue = 14;            // of a loading warp, for a pixel, whatever comes with it
constexpr std::int64_t kReduceLaunch = 2'000'000;  // picoseconds of the kernel behind it
constexpr std::int64_t kReduceBytesPerPicosecond = 3;
constexpr std::int64_t kDramBytesPerMicrosecond = 3'830'000;
constexpr std::int64_t kMostPartialSumBytes = std::int64_t{1} << 30;
/// Products that an accumulator sums up before it is added to memory: see docs/accuracy.md.
constexpr std::int64_t kSummedPixels = 8192;

std::string obstacle(const Problem& problem, const Target& target) {
  if (problem.reduction != Reduction::pixels) return "the sums run over taps";
  if (target.compute_capability() != 90 || !target.arch_specific)
    return fmt::format("warpgroup multiplications need sm_90a, the target is {}", target.arch());
  if (problem.arithmetic == Arithmetic::fp32)
    return problem.input.type == DataType::f32 ? "fp32 tensors take tensor cores only with math=tf32"
                                               : "math=ieee takes FMA";
  if (problem.c < 8 || problem.k < 16)
    return fmt::format("groups of {} input and {} output channels, it takes at least 8 and 16", problem.c, problem.k);
  if (problem.n == 0) return "there are no images";
  if (problem.columns.stride > 4) return fmt::format("the stride is {}", problem.columns.stride);
  if (problem.n * problem.output_plane() > INT32_MAX / 2)
    return "more than 2^30 pixels, which are counted with 32 bits";
  if (problem.output_channels() * problem.c > INT32_MAX) return "more than 2^31 - 1 weights of a tap";
  return {};
}

class Search {
 public:
  Search(const Problem& problem, const Target& target, CandidateList& into)
      : into_(into), problem_(problem), target_(target), bytes_(static_cast<std::int64_t>(work(problem).bytes)) {}

  void run() {
    const bool one_tap = problem_.taps() == 1;
    for (const int consumers_k : {1, 2}) {
      if (consumers_k == 2 && problem_.k <= 64 && !one_tap) continue;
      for (const int block_c : {256, 192, 128, 96, 64, 48, 32, 16, 8}) {
        if (block_c >= 2 * problem_.c && block_c > 8) continue;
        taps(consumers_k, block_c);
      }
    }
  }

 private:
  /// Whether the copy engine can bring runs of the planes of both tensors.
  bool can_copy() const {
    const std::int64_t x_plane = problem_.input_plane(), dy_plane = problem_.output_plane(), unit = unit_pixels();
    // Pairs of 16-bit pixels must lie in one word, whichever row they are of.
    const bool whole_pairs = problem_.input.type == DataType::f32 || problem_.columns.output % 2 == 0;
    return problem_.alignment >= 16 && problem_.input.layout() == Layout::nchw &&
           problem_.output.layout() == Layout::nchw && problem_.columns.stride == 1 && x_plane % unit == 0 &&
           dy_plane % unit == 0 && whole_pairs && std::max(x_plane, dy_plane) < INT32_MAX / 2;
  }

  std::int64_t unit_pixels() const { return 16 / problem_.input.element_bytes(); }

  void taps(int consumers_k, int block_c) {
    WgradWgmmaTiling tiling;
    tiling.copied = can_copy();
    const int most = WgradWgmmaTiling::kMostAccumulators / (block_c / 2) * (consumers_k == 2 ? 1 : 2);
    const std::int64_t rows = problem_.rows.taps, columns = problem_.columns.taps;
    if (most == 0 || (consumers_k == 1 && rows * columns == 1)) return;
    tiling.consumers_k = consumers_k;
    tiling.block_c = block_c;
    tiling.block_s = static_cast<int>(ceil_div(columns, ceil_div(columns, most)));
    if (tiling.block_s < columns && problem_.columns.stride != 1) return;
    // Rows of x are shared by a block's filter rows where they are as far apart as the steps are.
    const bool shares_rows =
        problem_.rows.stride == 1 && problem_.rows.dilation <= problem_.rows.output && tiling.block_s == columns;
    tiling.block_r = 1;
    if (shares_rows) {
      const std::int64_t fit = std::max<std::int64_t>(1, std::min<std::int64_t>(rows, most / tiling.block_s));
      tiling.block_r = static_cast<int>(ceil_div(rows, ceil_div(rows, fit)));
    }
    if (consumers_k == 1 && tiling.taps() == 1) return;
    loads(tiling);
  }

  void loads(WgradWgmmaTiling tiling) {
    const bool aligned = problem_.alignment >= 16, floats = problem_.input.type == DataType::f32;
    const bool x_nchw = problem_.input.layout() == Layout::nchw, dy_nchw = problem_.output.layout() == Layout::nchw;
    tiling.x_vectors = aligned && x_nchw && problem_.columns.input % unit_pixels() == 0 &&
                       problem_.columns.stride == 1 && tiling.block_s == problem_.columns.taps &&
                       (floats || tiling.copied);
    const bool whole_vectors = dy_nchw ? problem_.columns.output % 4 == 0 : problem_.k % 4 == 0;
    tiling.copy_vector = aligned && floats && whole_vectors ? 4 : 1;
    int before = 0;
    for (const std::int64_t most : {128, 64, 48, 32, 16}) {
      if (most == 128 && floats) continue;
      const std::int64_t columns = problem_.columns.output;
      tiling.row_pixels = static_cast<int>(round_up(ceil_div(columns, ceil_div(columns, most)), 2 * unit_pixels()));
      if (tiling.row_pixels == before) continue;
      before = tiling.row_pixels;
      stages(tiling);
    }
  }

  /// As many rows of x and stages of dy as fit, some of each first.
  void stages(WgradWgmmaTiling tiling) {
    for (const auto& [extra, stages, raw_rows] :
         {std::array{3, 4, 4}, {2, 4, 4}, {2, 3, 4}, {2, 3, 3}, {1, 3, 3}, {1, 2, 3}, {1, 2, 2}}) {
      // Those of a strip's last step may still be multiplied when those of the next strip's first come.
      tiling.x_rows = std::max(tiling.block_r + extra, 2 * tiling.block_r);
      tiling.stages = stages;
      // Loading threads know that a step's copies have arrived when they ask for the next step's, and consumers give
      // back a step's stage in the next.
      if (!tiling.copied && problem_.input.type == DataType::f32 && stages < 3) continue;
      tiling.raw_rows = tiling.copied ? raw_rows : 0;
      if (WgradGeometry(problem_, tiling).shared_bytes() > target_.shared_bytes_per_block) continue;
      splits(tiling);
      return;
    }
  }

  void splits(WgradWgmmaTiling tiling) {
    const std::int64_t tiles = WgradGeometry(problem_, tiling).tiles();
    int before = 0;
    for (const std::int64_t waves : {1, 2}) {
      const std::int64_t most_splits =
          std::max<std::int64_t>(1, kMostPartialSumBytes / (4 * gradient_elements(problem_)));
      tiling.splits = static_cast<int>(std::clamp<std::int64_t>(waves * target_.sm_count / tiles, 1, most_splits));
      if (tiling.splits == before) continue;
      before = tiling.splits;
      strips(tiling);
    }
  }

  /// Strips as long as leaves all blocks about as many.
  void strips(WgradWgmmaTiling tiling) {
    const std::int64_t row_step = WgradGeometry(problem_, tiling).row_step(),
                       rows = ceil_div(problem_.rows.output, row_step);
    std::int64_t least = INT64_MAX;
    WgradWgmmaTiling best = tiling;
    for (std::int64_t strips = 1; strips <= std::min<std::int64_t>(rows, 64); ++strips) {
      tiling.strip_rows = static_cast<int>(ceil_div(rows, strips));
      // No strip is empty, also of those that have a row less.
      if (problem_.rows.output / row_step <= (strips - 1) * tiling.strip_rows) continue;
      const WgradGeometry geometry(problem_, tiling);
      // A strip's first step waits for all of its rows of x.
      const std::int64_t steps = ceil_div(geometry.strips(), tiling.splits) * (tiling.strip_rows + tiling.block_r);
      if (steps >= least) continue;
      least = steps;
      best = tiling;
    }
    const std::int64_t strips = WgradGeometry(problem_, best).strips();
    best.splits = static_cast<int>(std::min<std::int64_t>(best.splits, strips));
    const std::int64_t of_block = ceil_div(strips, best.splits),
                       strip_pixels = std::int64_t{best.row_pixels} * best.strip_rows;
    best.summed_strips = static_cast<int>(std::clamp<std::int64_t>(kSummedPixels / strip_pixels, 1, of_block));
    best.piece_rows = static_cast<int>(ceil_div(best.strip_rows, ceil_div(strip_pixels, kSummedPixels)));
    add(WgradGeometry(problem_, best));
  }

  void add(const WgradGeometry& geometry) {
    const std::int64_t blocks = geometry.tiles() * geometry.tiling().splits;
    if (blocks > INT32_MAX) return;
    const Launch launch = {static_cast<std::uint32_t>(blocks), static_cast<std::uint32_t>(geometry.tiling().threads()),
                           static_cast<std::uint32_t>(geometry.shared_bytes())};
    into_.add(geometry.tiling(), launch, price(geometry, blocks));
  }

  std::int64_t price(const WgradGeometry& geometry, std::int64_t blocks) const {
    const WgradWgmmaTiling& tiling = geometry.tiling();
    const std::int64_t instruction = std::max(tiling.block_c / 2, 16);
    const std::int64_t taps = tiling.consumers_k == 2 ? 2 * tiling.taps() : tiling.taps();
    const std::int64_t multiply = tiling.row_pixels / geometry.depth() * taps * instruction + kStep;
    const std::int64_t alone = tiling.row_pixels / geometry.depth() * tiling.consumer_taps() * instruction + 3 * kStep;
    const std::int64_t bytes = problem_.input.element_bytes() * tiling.block_k() * geometry.dy_pitch() +
                               std::int64_t{16} * geometry.phases() * geometry.units() * tiling.block_c;
    const std::int64_t load = tiling.copied ? order(geometry) : load_of_step(geometry);
    const std::int64_t step = std::max({multiply, alone, bytes / kL2BytesPerCycle, load});
    const std::int64_t strips = ceil_div(geometry.strips(), tiling.splits);
    const std::int64_t flushes = geometry.sums();
    const std::int64_t flush = 1000 + tiling.accumulators() * 24;
    const std::int64_t block =
        strips * (tiling.strip_rows * step + tiling.block_r * std::max(load, kStep)) + flushes * flush;
    const std::int64_t waves = ceil_div(blocks, target_.sm_count);
    const std::int64_t sums = 4 * tiling.splits * gradient_elements(problem_);
    const std::int64_t compute =
        kStart + waves * block * kPicosecondsPerCycle + kReduceLaunch + sums / kReduceBytesPerPicosecond;
    const std::int64_t memory = (bytes_ + sums) * 1000 / (kDramBytesPerMicrosecond / 1000);
    return std::max(compute, memory) + std::min(compute, memory) / 5;
  }

  /// Cycles in which warps put a row of x in order.
  static std::int64_t order(const WgradGeometry& geometry) {
    const WgradWgmmaTiling& tiling = geometry.tiling();
    const std::int64_t of_thread = ceil_div(geometry.loads(), 32 * tiling.order_warps());
    return kStep + of_thread * (tiling.x_vectors ? 90 : 180);
  }

  /// Cycles in which threads load a step.
  static std::int64_t load_of_step(const WgradGeometry& geometry) {
    const WgradWgmmaTiling& tiling = geometry.tiling();
    const std::int64_t loads = ceil_div(geometry.loads(), 128);
    return ceil_div(loads, geometry.load_batch()) * kLoadLatency +
           loads * (tiling.x_vectors ? 4 : geometry.unit_pixels() * 2) * kLoadIssue +
           std::int64_t{tiling.block_k()} * tiling.row_pixels / 128 / tiling.copy_vector * kLoadIssue;
  }

  CandidateList& into_;
  const Problem& problem_;
  const Target& target_;
  std::int64_t bytes_;
};

}  // namespace

std::string wgrad_wgmma::enumerate(const Problem& problem, const Target& target, CandidateList& into) {
  if (std::string why = obstacle(problem, target); !why.empty()) return why;
  Search(problem, target, into).run();
  return into.empty() ? no_tile_fits(problem, target) : "";
}

}  // namespace jitconv::codegen
