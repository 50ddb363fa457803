// Candidates of the depthwise family: bands of rows of one plane, or whole small planes, per block.
#include <algorithm>
#include <numeric>
#include <vector>

#include "codegen/arithmetic.h"
#include "codegen/costs/costs.h"
#include "codegen/depthwise/family.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

constexpr std::int64_t kUnrollBudget = 2400;  ///< FMA instructions in the body
constexpr std::int64_t kManyTaps = 64;        ///< of a gradient with a stride: the compiler would read ahead, and spill
constexpr int kReadAhead = 40;                ///< registers that it takes all the same
constexpr int kMostSumsOfManyTaps = 32;       ///< of a thread
constexpr int kMostPatch = 16;                ///< rows, and columns, of a thread that has all phases of a stride

class Search {
 public:
  Search(const Problem& problem, const Target& target, CandidateList& into)
      : into_(into),
        costs_(into.costs().depthwise),
        problem_(problem),
        target_(target),
        multiplier_(problem.k),
        tensor_bytes_(work(problem).bytes),
        input_bytes_(static_cast<double>(problem.input_elements() * problem.input.element_bytes())) {}

  void run() {
    if (!problem_.is_upsampled()) {
      patches({1, 2, 4, 8}, static_cast<int>(4 / std::gcd(std::int64_t{4}, problem_.columns.stride)));
      return;
    }
    for (const int thread_q : phases(problem_.columns)) patches(phases(problem_.rows), thread_q);
  }

 private:
  /// Outputs of a thread along an axis of a gradient with a stride: all phases, so that the taps that they meet are
  /// known, or some times as many.
  static std::vector<int> phases(const Axis& axis) {
    std::vector<int> outputs;
    for (const std::int64_t times : {1, 2, 4, 8})
      if (times * axis.upsampling <= kMostPatch) outputs.push_back(static_cast<int>(times * axis.upsampling));
    return outputs;
  }

  void patches(const std::vector<int>& rows, int thread_q) {
    const std::int64_t columns = ceil_div(problem_.columns.output, thread_q);  // threads that cover a row
    for (const int thread_p : rows) {
      if (thread_p > problem_.rows.upsampling && thread_p / 2 >= problem_.rows.output) continue;
      const std::int64_t bands = ceil_div(problem_.rows.output, thread_p);
      for (const int threads : {128, 256, 512}) {
        if (columns * bands <= threads) shape(thread_p, thread_q, bands, columns, threads / (columns * bands));
        for (const int threads_q : {32, 64, 128})
          if (threads_q / 2 < columns)
            shape(thread_p, thread_q, std::min<std::int64_t>(bands, threads / threads_q), threads_q, 1);
      }
    }
  }

  void shape(int thread_p, int thread_q, std::int64_t threads_p, std::int64_t threads_q, std::int64_t planes) {
    if (planes > problem_.n * problem_.input_channels()) planes = problem_.n * problem_.input_channels();
    if (planes > 1 && multiplier_ > 1) return;
    DepthwiseTiling tiling;
    tiling.thread_p = thread_p, tiling.thread_q = thread_q;
    tiling.threads_p = static_cast<int>(threads_p), tiling.threads_q = static_cast<int>(threads_q);
    tiling.planes = static_cast<int>(planes);
    if (tiling.threads() > 1024 || tiling.threads() < 32) return;
    if (tiling.tile_p() * problem_.rows.stride + (problem_.rows.taps - 1) * problem_.rows.dilation > 8192 ||
        std::int64_t{tiling.tile_q()} * problem_.columns.stride +
                (problem_.columns.taps - 1) * problem_.columns.dilation >
            32768)
      return;
    const bool whole_rows = tiling.tile_q() >= problem_.columns.output;

    // A copy must lie wholly inside or outside a row and start at a multiple of its size.
    const std::int64_t element = problem_.input.element_bytes();
    const Axis& axis = problem_.columns;
    const std::int64_t tile_step = tiling.tile_q() * axis.stride / axis.upsampling;
    int vector = static_cast<int>(std::min<std::int64_t>(16, problem_.alignment) / element);
    while (problem_.columns.input % vector != 0 || (!whole_rows && tile_step % vector != 0)) vector /= 2;
    tiling.copy_vector = vector;
    tiling.async_copy = problem_.input.type == DataType::f32 && target_.compute_capability() >= 80;
    tiling.column_shift = static_cast<int>(positive_modulo(axis.first_input(), vector));
    // From a thread's first input to the next thread's.
    tiling.read_vector = static_cast<int>(std::gcd(4, thread_q * axis.stride / axis.upsampling));
    tiling.input_pitch = static_cast<int>(round_up(
        (tiling.tile_q() - thread_q) * axis.stride / axis.upsampling + tiling.window(problem_), std::max(4, vector)));

    // The loop over filter rows would have to know a row's phase.
    const std::int64_t row_fmas = std::int64_t{thread_p} * thread_q * axis.taps / axis.upsampling;
    tiling.unroll_rows = row_fmas * problem_.rows.taps / problem_.rows.upsampling <= kUnrollBudget;
    if (row_fmas > kUnrollBudget || (problem_.rows.upsampling > 1 && !tiling.unroll_rows)) return;
    tiling.weights_in_registers = tiling.unroll_rows && problem_.taps() <= 32;
    tiling.hide_places = has_many_taps() && tiling.unroll_rows;
    if (tiling.hide_places && thread_p * thread_q > kMostSumsOfManyTaps) return;

    using Store = DepthwiseTiling::Store;
    const std::int64_t store_bytes = thread_q * problem_.output.element_bytes();
    const bool aligned = problem_.columns.output % thread_q == 0 && store_bytes <= 16 &&
                         problem_.alignment >= store_bytes && 16 % store_bytes == 0;
    const bool whole_warps = tiling.threads() % kWarpSize == 0;
    if (aligned && thread_q > 1)
      tiling.store = Store::vector;
    else if (planes == 1 && whole_warps)
      tiling.store = Store::rows;
    else if (whole_rows)
      tiling.store = Store::flat;
    else
      return;
    if (tiling.shared_bytes(problem_) > target_.shared_bytes_per_block) return;
    add(tiling);
  }

  bool has_many_taps() const { return problem_.is_upsampled() && problem_.taps() > kManyTaps; }

  BlockWork block_work(const DepthwiseTiling& tiling) const {
    BlockWork work;
    work.blocks = tiling.blocks(problem_);
    work.threads = tiling.threads();
    work.warps = ceil_div(tiling.threads(), kWarpSize);
    const std::int64_t taps = problem_.taps();
    const std::int64_t outputs = std::int64_t{tiling.thread_p} * tiling.thread_q;
    work.fma_per_warp = multiplier_ * outputs * taps / problem_.phases_of_stride();
    const std::int64_t input_rows =
        tiling.unroll_rows ? std::min(problem_.rows.inputs_met(tiling.thread_p), tiling.thread_p * problem_.rows.taps)
                           : tiling.thread_p * problem_.rows.taps;
    const std::int64_t windows = input_rows * (tiling.window(problem_) / tiling.read_vector);
    const std::int64_t weights =
        tiling.weights_in_registers ? taps : taps * tiling.thread_p / problem_.rows.upsampling / 4;
    const std::int64_t copies = ceil_div(tiling.input_floats(problem_) / tiling.copy_vector, tiling.threads()) *
                                (tiling.async_copy ? costs_.async_copy : costs_.register_copy);
    const bool staged = tiling.store != DepthwiseTiling::Store::vector;
    const bool flat = tiling.store == DepthwiseTiling::Store::flat;
    work.other_per_warp = copies +
                          multiplier_ * (windows + weights +
                                         outputs * (flat     ? costs_.flat_output
                                                    : staged ? costs_.staged_output
                                                             : costs_.output)) +
                          costs_.block;
    work.shared_per_warp =
        copies / costs_.async_copy * tiling.copy_vector + multiplier_ * (windows * tiling.read_vector + weights +
                                                                         outputs * (flat     ? costs_.flat_wavefronts
                                                                                    : staged ? costs_.staged_wavefronts
                                                                                             : 0));
    work.latency_cycles = costs_.latency;
    work.wanted_warps = costs_.wanted_warps;
    if (!tiling.async_copy) work.wanted_blocks = costs_.wanted_blocks;
    // Halo rows come from L2 mostly; what the row ends of unflattened stores cost is in docs/families/depthwise.md.
    const double halo = static_cast<double>(tiling.input_rows(problem_) * problem_.rows.upsampling) /
                            static_cast<double>(tiling.tile_p() * problem_.rows.stride) -
                        1.0;
    const double again = std::max(0.0, halo) * (static_cast<double>(costs_.halo_percent) / 100);
    work.dram_bytes = static_cast<std::int64_t>(problem_.is_upsampled() ? tensor_bytes_ + input_bytes_ * again
                                                                        : tensor_bytes_ * (1.0 + again));
    if (tiling.store == DepthwiseTiling::Store::rows)
      work.dram_bytes += problem_.n * problem_.output_channels() * problem_.rows.output *
                         ceil_div(problem_.columns.output, tiling.tile_q()) * costs_.row_end_bytes;
    work.registers =
        static_cast<int>(outputs + 2 * tiling.window(problem_) + (tiling.weights_in_registers ? taps : 8) + 28) +
        (tiling.hide_places ? kReadAhead : 0);
    work.shared_bytes = tiling.shared_bytes(problem_);
    return work;
  }

  void add(const DepthwiseTiling& tiling) {
    const BlockWork work = block_work(tiling);
    if (work.registers <= 250) into_.add(tiling, work, target_);
  }

  CandidateList& into_;
  const DepthwiseCosts& costs_;
  const Problem& problem_;
  const Target& target_;
  std::int64_t multiplier_;
  double tensor_bytes_, input_bytes_;
};

}  // namespace

std::string depthwise::enumerate(const Problem& problem, const Target& target, CandidateList& into) {
  constexpr std::int64_t kMaxPlane = std::int64_t{1} << 30;  // offsets inside a plane are 32-bit
  const std::string_view rule =
      problem.is_upsampled() ? beyond_dense_or_upsampled(problem) : beyond_dense_forward(problem);
  if (!rule.empty()) return std::string(rule);
  if (problem.c != 1) return fmt::format("{} input channels per group, not 1", problem.c);
  if (problem.input.layout() != Layout::nchw || problem.output.layout() != Layout::nchw) return "works on nchw tensors";
  if (problem.input_plane() > kMaxPlane || problem.output_plane() > kMaxPlane)
    return "a plane has more than 2^30 elements";
  Search(problem, target, into).run();
  return into.empty() ? "no tile fits shared memory and registers" : "";
}

}  // namespace jitconv::codegen
