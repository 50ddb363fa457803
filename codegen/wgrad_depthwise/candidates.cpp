// Candidates of the wgrad_depthwise family: columns and channels of a block, lengths of strips, and how many a block
// walks.
#include <algorithm>

#include "codegen/costs/costs.h"
#include "codegen/wgrad_depthwise/family.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

constexpr std::int64_t kMostTaps = 72;        ///< of a thread, which has a register for each
constexpr std::int64_t kUnrollBudget = 2400;  ///< FMA instructions of a period
constexpr int kMostRegisters = 224;
constexpr std::int64_t kMostSplits = 1024;  ///< that one thread of the pass behind adds
constexpr std::int64_t kMostPartialSumBytes = std::int64_t{1} << 30;
constexpr std::int64_t kLine = 128;
/// Registers of a thread with which 16 warps fit an SM; more are kept for sums, not for places of copies.
constexpr int kFewRegisters = 128;

class Search {
 public:
  Search(const Problem& problem, const Target& target, CandidateList& into)
      : into_(into),
        costs_(into.costs().wgrad_depthwise),
        problem_(problem),
        target_(target),
        nhwc_(problem.input.layout() == Layout::nhwc),
        element_(problem.input.element_bytes()),
        tensor_bytes_(static_cast<std::int64_t>(work(problem).bytes)) {}

  void run() {
    for (const int thread_q : {4, 8}) {
      if (thread_q > 4 && thread_q >= 2 * problem_.columns.output) continue;
      WgradDepthwiseTiling tiling;
      tiling.thread_q = thread_q;
      if (!fit_filter_rows(tiling)) continue;
      if (nhwc_)
        channels(tiling);
      else
        columns(tiling);
    }
  }

 private:
  /// As many filter rows as a thread has registers for; the tiles are alike.
  bool fit_filter_rows(WgradDepthwiseTiling& tiling) const {
    for (std::int64_t tiles = 1; tiles <= problem_.rows.taps; ++tiles) {
      tiling.tile_r = static_cast<int>(ceil_div(problem_.rows.taps, tiles));
      if (tiling.tile_r * problem_.columns.taps <= kMostTaps && period_fmas(tiling) <= kUnrollBudget &&
          registers(tiling) <= kMostRegisters)
        return true;
    }
    return false;
  }

  std::int64_t period_fmas(const WgradDepthwiseTiling& tiling) const {
    return std::int64_t{tiling.live_rows(problem_)} * tiling.tile_r * problem_.columns.taps * tiling.thread_q;
  }

  /// Columns of x that some tap of a thread meets, dilated windows have others.
  std::int64_t met_columns(const WgradDepthwiseTiling& tiling) const {
    return std::min((tiling.thread_q - 1) * problem_.columns.stride + problem_.columns.reach() + 1,
                    tiling.thread_q * problem_.columns.taps);
  }

  int registers(const WgradDepthwiseTiling& tiling) const {
    return static_cast<int>(tiling.sums(problem_) + tiling.live_rows(problem_) * tiling.thread_q + met_columns(tiling) +
                            (nhwc_ ? 4 : 8) + 36);
  }

  void columns(WgradDepthwiseTiling tiling) {
    const std::int64_t row_threads = ceil_div(problem_.columns.output, tiling.thread_q);
    for (const int threads : {64, 128, 256}) {
      if (row_threads <= threads) {
        tiling.threads_q = static_cast<int>(row_threads);
        tiling.slots = threads / tiling.threads_q;
        strips(tiling);
        continue;
      }
      for (const int threads_q : {32, 64, 128, 256}) {
        if (threads_q > threads || threads_q >= row_threads) continue;
        tiling.threads_q = threads_q;
        tiling.slots = threads / threads_q;
        strips(tiling);
      }
    }
  }

  void channels(WgradDepthwiseTiling tiling) {
    for (const int block_c : {8, 16, 32, 64}) {
      if (block_c > 8 && block_c >= 2 * problem_.input_channels()) continue;
      const std::int64_t block_k = block_c * problem_.k;
      if (block_k > 256) continue;
      tiling.block_c = block_c, tiling.block_k = static_cast<int>(block_k);
      const std::int64_t row_threads = ceil_div(problem_.columns.output, tiling.thread_q);
      for (const std::int64_t threads : {128, 256}) {
        const std::int64_t groups = std::max<std::int64_t>(1, threads / block_k);
        tiling.threads_q = static_cast<int>(std::min(row_threads, groups));
        tiling.slots = static_cast<int>(groups / tiling.threads_q);
        strips(tiling);
      }
    }
  }

  void strips(WgradDepthwiseTiling tiling) {
    if (!choose_copies(tiling)) return;
    const std::int64_t phases = WgradDepthwiseTiling::row_phases(problem_),
                       stride = WgradDepthwiseTiling::row_stride(problem_);
    const std::int64_t rows = ceil_div(problem_.rows.output, phases);
    for (const int stage_rows : {3, 6}) {
      tiling.periods = static_cast<int>(ceil_div(stage_rows, tiling.period_rows(problem_)));
      std::int64_t last = 0;
      for (std::int64_t bands = 1; bands <= 64 && bands <= rows; bands *= 2) {
        // Whole stages of rows, if that does not make it fewer strips.
        const std::int64_t wanted = ceil_div(rows, bands);
        const std::int64_t steps = ceil_div((wanted - 1) * stride + tiling.tile_r, tiling.stage_x_rows(problem_));
        tiling.strip_rows =
            static_cast<int>(std::min(rows, (steps * tiling.stage_x_rows(problem_) - tiling.tile_r) / stride + 1));
        if (tiling.strip_rows == last) continue;
        last = tiling.strip_rows;
        stages(tiling);
      }
      if (tiling.period_rows(problem_) >= 6) break;
    }
  }

  /// A copy must lie wholly inside or outside of a row, or of a pixel's channels, and start at a multiple of its size.
  bool choose_copies(WgradDepthwiseTiling& tiling) const {
    const int most = static_cast<int>(std::min<std::int64_t>(16, problem_.alignment) / element_);
    tiling.x_vector = tiling.dy_vector = most;
    const auto misfits = [](std::int64_t extent, std::int64_t step, int vector) {
      return extent % vector != 0 || step % vector != 0;
    };
    const std::int64_t x_extent = nhwc_ ? problem_.input_channels() : problem_.columns.input;
    const std::int64_t dy_extent = nhwc_ ? problem_.output_channels() : problem_.columns.output;
    const std::int64_t x_step = nhwc_ ? tiling.block_c : tiling.tile_q() * problem_.columns.stride;
    const std::int64_t dy_step = nhwc_ ? tiling.block_k : tiling.tile_q();
    while (misfits(x_extent, tiling.tiles_q(problem_) == 1 && !nhwc_ ? 0 : x_step, tiling.x_vector))
      tiling.x_vector /= 2;
    while (misfits(dy_extent, dy_step, tiling.dy_vector)) tiling.dy_vector /= 2;
    tiling.column_shift = nhwc_ ? 0 : static_cast<int>(positive_modulo(-problem_.columns.pad, tiling.x_vector));
    tiling.async_copy =
        target_.compute_capability() >= 80 && std::min(tiling.x_vector, tiling.dy_vector) * element_ >= 4;
    return tiling.x_columns(problem_) <= 65536;
  }

  void stages(WgradDepthwiseTiling tiling) {
    tiling.slots = static_cast<int>(std::min<std::int64_t>(tiling.slots, tiling.strips(problem_)));
    tiling.unroll_copies = registers(tiling) + copy_registers(tiling) <= kFewRegisters;
    for (const int count : {2, 3, 4}) {
      tiling.stages = count;
      if (tiling.shared_bytes(problem_) <= target_.shared_bytes_per_block) turns(tiling);
      if (!tiling.async_copy) break;  // copies do not wait for the multiplications of a stage anyway
    }
  }

  void turns(WgradDepthwiseTiling tiling) {
    const std::int64_t shares = ceil_div(tiling.strips(problem_), tiling.slots);
    const std::int64_t most =
        std::min(kMostSplits, std::max<std::int64_t>(1, kMostPartialSumBytes / (4 * gradient_elements(problem_))));
    for (std::int64_t turns = 1; turns < 2 * shares && turns <= 4096; turns *= 2) {
      tiling.turns = static_cast<int>(std::min(turns, shares));
      if (tiling.splits(problem_) <= most) add(tiling);
    }
  }

  int copy_registers(const WgradDepthwiseTiling& tiling) const {
    return static_cast<int>(3 * (tiling.x_copies(problem_) + tiling.dy_copies(problem_)));
  }

  /// Bank conflicts of a warp's accesses to shared memory: of vectors that are some vectors apart, eight lanes at a
  /// time; of channels that are fewer than lanes.
  std::int64_t conflicts(const WgradDepthwiseTiling& tiling) const {
    if (nhwc_) return std::max(1, kWarpSize / tiling.block_k);
    const std::int64_t apart = tiling.thread_q * problem_.columns.stride / tiling.read_vector(problem_);
    return std::gcd(apart, std::int64_t{8});
  }

  BlockWork block_work(const WgradDepthwiseTiling& tiling) const {
    BlockWork work;
    work.blocks = tiling.splits(problem_) * tiling.tiles_k(problem_) * tiling.tiles_r(problem_);
    work.threads = tiling.threads();
    work.warps = tiling.threads() / kWarpSize;
    const std::int64_t steps = tiling.turns * tiling.strip_steps(problem_), periods = steps * tiling.periods;
    work.fma_per_warp = periods * period_fmas(tiling);
    const std::int64_t copies = tiling.x_copies(problem_) + tiling.dy_copies(problem_);
    const std::int64_t read = nhwc_ ? 1 : tiling.read_vector(problem_);
    const std::int64_t values = tiling.period_rows(problem_) * (nhwc_ ? met_columns(tiling) : tiling.window(problem_)) +
                                std::int64_t{tiling.live_rows(problem_)} * tiling.thread_q;
    const std::int64_t reads = values / read;
    const std::int64_t converted = element_ == 2 ? values : 0,
                       bias = problem_.epilogue.bias ? values / costs_.bias_values : 0;
    // A copy forms an address and a predicate, and finds its strip if there are several.
    const std::int64_t copy = (tiling.unroll_copies ? costs_.unrolled_copy : costs_.copy) +
                              (tiling.slots > 1 ? costs_.strip_copy : 0) +
                              (tiling.async_copy ? 0 : costs_.register_copy);
    work.other_per_warp = steps * (copies * copy + costs_.step) + periods * (reads + converted + bias + costs_.period) +
                          tiling.sums(problem_) * costs_.sum + costs_.block;
    const std::int64_t wavefronts = std::max<std::int64_t>(1, read * element_ / 4) * conflicts(tiling);
    work.shared_per_warp = periods * reads * wavefronts + steps * copies * (tiling.x_vector * element_ / 4);
    work.latency_cycles = costs_.latency;
    work.registers = registers(tiling) + (tiling.unroll_copies ? copy_registers(tiling) : 0);
    work.shared_bytes = tiling.shared_bytes(problem_);
    work.wanted_warps = costs_.wanted_warps;
    work.launch_blocks = 16;
    work.dram_bytes = memory_bytes(tiling, work);
    return work;
  }

  /// Rows and columns that several strips read, and tensors that several blocks do, meet in the L2 cache, mostly.
  std::int64_t memory_bytes(const WgradDepthwiseTiling& tiling, const BlockWork& work) const {
    const std::int64_t rows = tiling.strip_rows * WgradDepthwiseTiling::row_stride(problem_);
    const std::int64_t halo_percent = 100 * std::max<std::int64_t>(0, tiling.strip_x_rows(problem_) - rows) / rows;
    const std::int64_t repeats = tiling.tiles_r(problem_) * (nhwc_ ? 1 : problem_.k) - 1;
    const std::int64_t bytes =
        tensor_bytes_ / 100 * (100 + halo_percent * costs_.memory.halo / 100 + costs_.memory.again * repeats);
    return bytes / 100 * waste_percent(tiling, work) + 8 * tiling.splits(problem_) * gradient_elements(problem_);
  }

  /// What keeps memory from its full speed, as if there were more bytes: 100 if nothing does.
  std::int64_t waste_percent(const WgradDepthwiseTiling& tiling, const BlockWork& work) const {
    const std::int64_t resident = std::max(1, resident_blocks(work, target_));
    // The last blocks leave SMs idle, for half of a wave.
    std::int64_t percent = 100 + costs_.memory.last_wave * resident * target_.sm_count / work.blocks;
    const std::int64_t under_way =
        (tiling.stages - 1) * tiling.stage_elements(problem_) * element_ * resident / (tiling.async_copy ? 1 : 2);
    if (under_way < costs_.memory.bytes_under_way)
      percent += costs_.memory.too_few * costs_.memory.bytes_under_way / std::max<std::int64_t>(1, under_way) -
                 costs_.memory.too_few;
    // With two stages, nothing is under way from the end of a step's copies to the next step.
    percent += tiling.stages == 2 && tiling.async_copy ? costs_.memory.two_stages : 0;
    // Warps wait for each other before they ask for more.
    const std::int64_t warps = resident * work.warps;
    if (warps < costs_.wanted_warps) percent += costs_.memory.missing_warp * (costs_.wanted_warps - warps);
    // Less than a line of neighbouring channels.
    const std::int64_t run = tiling.block_c * element_;
    if (nhwc_ && run < kLine && tiling.block_c < problem_.input_channels())
      percent += costs_.memory.short_line * (kLine / run - 1);
    return percent;
  }

  void add(const WgradDepthwiseTiling& tiling) {
    into_.add(tiling, block_work(tiling), target_, costs_.split * tiling.splits(problem_));
  }

  CandidateList& into_;
  const WgradDepthwiseCosts& costs_;
  const Problem& problem_;
  const Target& target_;
  bool nhwc_;
  std::int64_t element_;
  std::int64_t tensor_bytes_;
};

}  // namespace

std::string wgrad_depthwise::enumerate(const Problem& problem, const Target& target, CandidateList& into) {
  constexpr std::int64_t kMaxExtent = std::int64_t{1} << 28;  // of rows and columns, which are counted in 32 bits
  if (problem.reduction != Reduction::pixels) return "the sums run over taps";
  if (problem.c != 1) return fmt::format("{} input channels per group, not 1", problem.c);
  if (problem.input.layout() != problem.output.layout()) return "x and dy differ in layout";
  if (problem.n * problem.output_plane() == 0) return "there are no pixels";
  for (const Axis* axis : {&problem.rows, &problem.columns})
    if (std::max(axis->input, axis->output * axis->stride) + axis->pad + axis->reach() > kMaxExtent)
      return "more than 2^28 rows or columns";
  if (problem.n * problem.output_plane() > INT32_MAX) return "more than 2^31 - 1 pixels";
  Search(problem, target, into).run();
  return into.empty() ? "no tile fits shared memory and registers" : "";
}

}  // namespace jitconv::codegen
