// Candidates of the depthwise_planes family: planes of a block, and rows of a thread.
#include <algorithm>
#include <numeric>

#include "codegen/arithmetic.h"
#include "codegen/bank_conflicts.h"
#include "codegen/costs/costs.h"
#include "codegen/depthwise_planes/family.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

constexpr std::int64_t kCopyBytes = DepthwisePlanesTiling::kCopyBytes;
constexpr std::int64_t kMostColumns = 32;     ///< of a row of y, which a thread has in registers
constexpr std::int64_t kUnrollBudget = 1800;  ///< FMA instructions in the body
constexpr std::int64_t kMostRegisters = 224;
class Search {
 public:
  Search(const Problem& problem, const Target& target, CandidateList& into)
      : into_(into),
        costs_(into.costs().depthwise_planes),
        problem_(problem),
        target_(target),
        all_planes_(problem.n * problem.input_channels()),
        tensor_bytes_(static_cast<std::int64_t>(work(problem).bytes)) {}

  void run() {
    // So many planes are whole vectors, of x and of y.
    const auto vectors = [](std::int64_t bytes) { return kCopyBytes / std::gcd(kCopyBytes, bytes); };
    const std::int64_t unit = std::lcm(vectors(problem_.input_plane() * problem_.input.element_bytes()),
                                       vectors(problem_.output_plane() * problem_.output.element_bytes()));
    for (std::int64_t parts = 1; parts <= problem_.rows.output; ++parts) {
      DepthwisePlanesTiling tiling;
      tiling.thread_p = static_cast<int>(round_up(ceil_div(problem_.rows.output, parts), problem_.rows.upsampling));
      if (tiling.threads_p(problem_) != parts || !fits(tiling)) continue;
      choose_moves(tiling);
      for (const int threads : {64, 128, 192, 256}) {
        const std::int64_t planes = threads / parts / unit * unit;
        if (planes < unit || (planes > all_planes_ && planes > unit)) continue;
        tiling.planes = static_cast<int>(planes);
        if (tiling.shared_bytes(problem_) <= target_.shared_bytes_per_block)
          into_.add(tiling, block_work(tiling), target_);
      }
    }
  }

 private:
  int registers(const DepthwisePlanesTiling& tiling) const {
    return static_cast<int>(tiling.thread_p * problem_.columns.output + problem_.columns.input + problem_.taps() + 28);
  }

  /// Multiply-adds of a thread: of a gradient with a stride, an output meets the taps of its phase.
  std::int64_t multiply_adds(const DepthwisePlanesTiling& tiling) const {
    return tiling.thread_p * problem_.columns.output * problem_.taps() / problem_.phases_of_stride();
  }

  bool fits(const DepthwisePlanesTiling& tiling) const {
    return multiply_adds(tiling) <= kUnrollBudget && registers(tiling) <= kMostRegisters;
  }

  /// How a thread moves a row: elements at a time, and the wavefronts of a warp that take.
  struct RowMoves {
    int vector = 1;
    std::int64_t wavefronts = 0;
  };

  /// The vector that moves a row in the fewest wavefronts, of those that divide rows. In a plane, a lane's rows are
  /// `step` after those of the lane before.
  static RowMoves row_moves(std::int64_t row, std::int64_t plane_rows, std::int64_t step, std::int64_t parts,
                            std::int64_t element_bytes) {
    RowMoves best{1, INT64_MAX};
    for (int vector = 1; vector * element_bytes <= kCopyBytes && row % vector == 0; vector *= 2) {
      const std::int64_t once = bank_wavefronts(vector * element_bytes, kWarpSize, [&](std::int64_t lane) {
        return (lane / parts * plane_rows + lane % parts * step) * row * element_bytes;
      });
      if (row / vector * once <= best.wavefronts) best = {vector, row / vector * once};
    }
    return best;
  }

  void choose_moves(DepthwisePlanesTiling& tiling) {
    const std::int64_t stored = problem_.output.element_bytes(), parts = tiling.threads_p(problem_);
    const std::int64_t read_step = tiling.thread_p * problem_.rows.stride / problem_.rows.upsampling;
    reads_ = row_moves(problem_.columns.input, problem_.rows.input, read_step, parts, problem_.input.element_bytes());
    stores_ = row_moves(problem_.columns.output, problem_.rows.output, tiling.thread_p, parts, stored);
    tiling.read_vector = reads_.vector, tiling.store_vector = stores_.vector;
    tiling.share_weights = problem_.is_upsampled();
    tiling.async_copy = target_.compute_capability() >= 80;
    tiling.store_pairs = stored == 2 && problem_.input.type != DataType::f32 && target_.compute_capability() >= 80;
  }

  BlockWork block_work(const DepthwisePlanesTiling& tiling) const {
    BlockWork work;
    work.blocks = tiling.blocks(problem_);
    work.threads = tiling.threads(problem_);
    work.warps = ceil_div(tiling.threads(problem_), kWarpSize);
    const std::int64_t element = problem_.input.element_bytes(), stored = problem_.output.element_bytes();
    const std::int64_t outputs = tiling.thread_p * problem_.columns.output;
    work.fma_per_warp = multiply_adds(tiling);
    const std::int64_t reads = tiling.read_rows(problem_) * (problem_.columns.input / tiling.read_vector);
    const std::int64_t stores = outputs / tiling.store_vector;
    const std::int64_t copies = ceil_div(tiling.planes * problem_.input_plane() * element, kCopyBytes * work.threads) +
                                ceil_div(tiling.planes * problem_.output_plane() * stored, kCopyBytes * work.threads);
    const std::int64_t weight_copies =
        tiling.share_weights ? ceil_div(tiling.planes * problem_.taps(), work.threads) : 0;
    const std::int64_t converted = element == 2 ? tiling.read_rows(problem_) * problem_.columns.input : 0;
    work.other_per_warp = (copies + weight_copies) * costs_.copy + reads * costs_.read + converted +
                          problem_.taps() * costs_.weight + stores * costs_.store +
                          outputs * (stored == 2 ? costs_.rounded_output : costs_.output) + costs_.block;
    work.shared_per_warp = copies * costs_.copy_wavefronts + tiling.read_rows(problem_) * reads_.wavefronts +
                           tiling.thread_p * stores_.wavefronts +
                           (tiling.share_weights ? weight_copies + problem_.taps() : 0);
    work.latency_cycles = costs_.latency;
    work.wanted_warps = costs_.wanted_warps;
    work.registers = registers(tiling);
    work.shared_bytes = tiling.shared_bytes(problem_);
    work.dram_bytes = tensor_bytes_;
    return work;
  }

  CandidateList& into_;
  const DepthwisePlanesCosts& costs_;
  const Problem& problem_;
  const Target& target_;
  std::int64_t all_planes_;
  std::int64_t tensor_bytes_;
  RowMoves reads_, stores_;  ///< of the tiling that is looked at
};

}  // namespace

std::string depthwise_planes::enumerate(const Problem& problem, const Target& target, CandidateList& into) {
  if (const std::string_view rule = beyond_dense_or_upsampled(problem); !rule.empty()) return std::string(rule);
  if (problem.c != 1) return fmt::format("{} input channels per group, not 1", problem.c);
  if (problem.k != 1) return fmt::format("{} output channels per group, not 1", problem.k);
  if (problem.input.layout() != Layout::nchw || problem.output.layout() != Layout::nchw) return "works on nchw tensors";
  if (problem.columns.output > kMostColumns || problem.columns.input > 2 * kMostColumns)
    return fmt::format("rows of more than {} outputs, or {} inputs", kMostColumns, 2 * kMostColumns);
  if (problem.alignment < kCopyBytes) return fmt::format("tensors do not start at multiples of {} bytes", kCopyBytes);
  const std::int64_t planes = problem.n * problem.input_channels();
  if (planes * problem.input_plane() * problem.input.element_bytes() % kCopyBytes != 0 ||
      planes * problem.output_plane() * problem.output.element_bytes() % kCopyBytes != 0)
    return fmt::format("tensors do not end at multiples of {} bytes", kCopyBytes);
  Search(problem, target, into).run();
  return into.empty() ? "no rows of a plane fit the registers of a thread" : "";
}

}  // namespace jitconv::codegen
