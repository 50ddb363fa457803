// Candidates of the depthwise_nhwc family: channels, rows and columns of a thread and of a block.
#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "codegen/arithmetic.h"
#include "codegen/bank_conflicts.h"
#include "codegen/costs/costs.h"
#include "codegen/depthwise_nhwc/family.h"
#include "codegen/tensor_map.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

using Copy = DepthwiseNhwcTiling::Copy;

constexpr std::int64_t kUnrollBudget = 2800;  ///< FMA instructions in the body
constexpr int kMostRegisters = 232;
constexpr int kMostSums = 64;         ///< of a thread
constexpr std::int64_t kSector = 32;  ///< bytes

class Search {
 public:
  Search(const Problem& problem, const Target& target, CandidateList& into)
      : into_(into),
        costs_(into.costs().depthwise_nhwc),
        problem_(problem),
        target_(target),
        element_(problem.input.element_bytes()),
        of_(problem),
        rows_(of_.rows),
        columns_(of_.columns),
        tensor_bytes_(static_cast<std::int64_t>(work(problem).bytes)) {}

  void run() {
    const std::int64_t stored = problem_.output.element_bytes();
    for (const int vector : {1, 2, 4, 8}) {
      const std::int64_t bytes = vector * std::max(element_, stored);
      if (vector > 1 &&
          (problem_.k > 1 || problem_.output_channels() % vector != 0 || bytes > 16 || bytes > problem_.alignment))
        break;
      DepthwiseNhwcTiling tiling;
      tiling.vector = vector;
      tiling.store_pairs =
          vector > 1 && stored == 2 && problem_.input.type != DataType::f32 && target_.compute_capability() >= 80;
      for (const int threads_c : channel_threads(vector)) {
        tiling.threads_c = threads_c;
        choose_copies(tiling);
        pitches_.clear();
        patches(tiling);
      }
    }
  }

 private:
  /// Powers of two, and equal parts of all channels, of whole groups.
  std::vector<int> channel_threads(int vector) const {
    const std::int64_t all = problem_.output_channels() / vector, multiplier = problem_.k;
    std::vector<int> result;
    const auto add = [&](std::int64_t threads) {
      threads = round_up(threads, multiplier);
      if (threads > 256 || std::find(result.begin(), result.end(), threads) != result.end()) return;
      result.push_back(static_cast<int>(threads));
    };
    if (all <= 64) add(all);
    for (const int threads : {4, 8, 16, 24, 32, 48, 64}) {
      // A part of the channels must be whole sectors.
      if (threads < all && threads * vector / multiplier * element_ % kSector == 0) add(threads);
    }
    if (result.empty()) add(std::min<std::int64_t>(all, 32));
    return result;
  }

  /// A copy has channels of one pixel alone, all or none, and starts at a multiple of its size.
  void choose_copies(DepthwiseNhwcTiling& tiling) const {
    int copy = static_cast<int>(std::min<std::int64_t>(16, problem_.alignment) / element_);
    while (problem_.input_channels() % copy != 0 || tiling.block_c(problem_) % copy != 0) copy /= 2;
    tiling.copy_vector = copy;
    tiling.copy = target_.compute_capability() >= 80 && copy * element_ >= 4 ? Copy::async : Copy::registers;
  }

  /// TMA takes pixels that are multiples of 16 bytes, and neighbours.
  bool takes_boxes(const DepthwiseNhwcTiling& tiling) const {
    return target_.compute_capability() >= 90 && target_.compute_capability() < 100 &&
           tiling.copy_vector * element_ == TensorMapShape::kUnit && rows_.residues * columns_.residues == 1 &&
           problem_.rows.dilation * problem_.columns.dilation == 1 &&
           std::max({std::int64_t{tiling.block_c(problem_)}, tiling.input_rows(of_), tiling.input_columns(of_)}) <=
               TensorMapShape::kMostBox &&
           std::max({problem_.input_channels(), problem_.columns.input, problem_.rows.input, problem_.n}) <
               TensorMapShape::kMostExtent &&
           problem_.input.stride.n * element_ < TensorMapShape::kMostStride;
  }

  void patches(DepthwiseNhwcTiling& tiling) {
    const std::int64_t up_p = rows_.upsampling, up_q = columns_.upsampling;
    for (const int p : {1, 2, 4, 7, 8}) {
      const std::int64_t thread_p = p * up_p;
      if (p > 1 && thread_p - thread_p / 4 > rows_.outputs) continue;
      for (const int q : {1, 2, 4, 7, 8, 14}) {
        const std::int64_t thread_q = q * up_q;
        if (q > 1 && thread_q - thread_q / 4 > columns_.outputs) continue;
        if (thread_p * thread_q * tiling.vector > kMostSums) continue;
        tiling.thread_p = static_cast<int>(thread_p), tiling.thread_q = static_cast<int>(thread_q);
        const std::int64_t row_fmas = thread_p * thread_q * tiling.vector * columns_.taps / up_q;
        if (row_fmas > kUnrollBudget) continue;
        tiling.unroll_rows = up_p > 1 || row_fmas * rows_.taps <= kUnrollBudget;
        if (row_fmas * rows_.taps / up_p > kUnrollBudget && (up_p > 1 || tiling.unroll_rows)) continue;
        if (registers(tiling) <= kMostRegisters) blocks(tiling);
      }
    }
  }

  void blocks(DepthwiseNhwcTiling& tiling) {
    const std::int64_t row_threads = ceil_div(columns_.outputs, tiling.thread_q),
                       column_threads = ceil_div(rows_.outputs, tiling.thread_p);
    for (const int threads : {128, 256, 512}) {
      const std::int64_t groups = std::max(1, threads / tiling.threads_c);
      std::int64_t last = 0;
      for (const std::int64_t wanted : {std::int64_t{1}, std::int64_t{2}, std::int64_t{4}, std::int64_t{8},
                                        std::int64_t{16}, std::min<std::int64_t>(row_threads, 32)}) {
        const std::int64_t threads_q = std::min({wanted, row_threads, groups});
        if (threads_q <= last) continue;
        last = threads_q;
        tiling.threads_q = static_cast<int>(threads_q);
        // Bands of rows that are alike.
        const std::int64_t bands = ceil_div(column_threads, groups / threads_q);
        tiling.threads_p = static_cast<int>(ceil_div(column_threads, bands));
        if (tiling.threads() < 32 && threads > 128) continue;
        fit_pitch(tiling);
      }
    }
  }

  void fit_pitch(DepthwiseNhwcTiling tiling) {
    const Pitches& pitches = pitches_of(tiling);
    tiling.pixel_pitch = pitches.best.elements;
    fit(tiling, pitches.best.wavefronts);
    if (!takes_boxes(tiling)) return;
    tiling.pixel_pitch = pitches.dense.elements;  // a box has no gaps
    tiling.copy = Copy::box;
    fit(tiling, pitches.dense.wavefronts);
  }

  void fit(const DepthwiseNhwcTiling& tiling, std::int64_t read_wavefronts) {
    if (tiling.input_pixels(of_) <= 65536 && tiling.shared_bytes(of_) <= target_.shared_bytes_per_block)
      add(tiling, read_wavefronts);
  }

  /// Elements from a pixel to the next, and the wavefronts in which the first warp reads the first pixel of its
  /// patches.
  struct Pitch {
    int elements = 0;
    std::int64_t wavefronts = INT64_MAX;
  };
  struct Pitches {
    Pitch dense, best;
  };

  /// What the pitches depend on besides vector and threads_c. Lanes run along channels, then along columns, so the
  /// first warp may see neither rows nor columns of threads.
  static std::array<int, 4> pitch_key(const DepthwiseNhwcTiling& tiling, int lanes) {
    if (tiling.threads_c >= lanes) return {lanes, 0, 0, 0};
    if (tiling.threads_c * tiling.threads_q >= lanes) return {lanes, tiling.thread_q, 0, 0};
    return {lanes, tiling.thread_q, tiling.threads_q, tiling.thread_p};
  }

  const Pitches& pitches_of(const DepthwiseNhwcTiling& tiling) {
    const int lanes = std::min(kWarpSize, tiling.threads());
    const auto [place, is_new] = pitches_.try_emplace(pitch_key(tiling, lanes));
    if (is_new) place->second = find_pitches(tiling, lanes);
    return place->second;
  }

  Pitches find_pitches(const DepthwiseNhwcTiling& tiling, int lanes) const {
    Pitches pitches;
    const std::int64_t unit = std::max(tiling.copy_vector, tiling.read_vector(problem_));
    const auto dense = static_cast<int>(round_up(tiling.block_c(problem_), unit));
    const std::array<Read, kWarpSize> reads = reads_of(tiling, lanes);
    for (int pad = 0; pad < 3; ++pad) {
      const int elements = dense + pad * static_cast<int>(unit);
      const std::int64_t wavefronts =
          bank_wavefronts(tiling.read_vector(problem_) * element_, lanes, [&](std::int64_t lane) {
            const Read& read = reads[static_cast<std::size_t>(lane)];
            return (read.pixel * elements + read.channel) * element_;
          });
      if (pad == 0) pitches.dense = {elements, wavefronts};
      if (wavefronts < pitches.best.wavefronts) pitches.best = {elements, wavefronts};
    }
    return pitches;
  }

  /// What a lane reads first of a block's pixels.
  struct Read {
    std::int64_t pixel = 0, channel = 0;
  };

  std::array<Read, kWarpSize> reads_of(const DepthwiseNhwcTiling& tiling, int lanes) const {
    std::array<Read, kWarpSize> reads;
    const std::int64_t columns = tiling.input_columns(of_);
    for (int lane = 0; lane < lanes; ++lane) {
      const int c = lane % tiling.threads_c * tiling.vector;
      const int q = lane / tiling.threads_c % tiling.threads_q;
      const int p = lane / (tiling.threads_c * tiling.threads_q);
      reads[static_cast<std::size_t>(lane)] = {
          rows_.met(p * tiling.thread_p, 0) * columns + columns_.met(q * tiling.thread_q, 0), c / problem_.k};
    }
    return reads;
  }

  int registers(const DepthwiseNhwcTiling& tiling) const {
    // Filter rows from one that the last row of a patch meets to one that the first does.
    const std::int64_t live_filter_rows =
        tiling.unroll_rows ? std::min(rows_.taps, (tiling.thread_p - 1) * rows_.stride + 1) : 1;
    return static_cast<int>(std::int64_t{tiling.thread_p} * tiling.thread_q * tiling.vector +
                            tiling.window(of_) * tiling.read_vector(problem_) +
                            live_filter_rows * columns_.taps * tiling.vector + 36);
  }

  BlockWork block_work(const DepthwiseNhwcTiling& tiling, std::int64_t read_wavefronts) const {
    BlockWork work;
    work.blocks = tiling.blocks(of_);
    work.threads = tiling.threads();
    work.warps = ceil_div(tiling.threads(), kWarpSize);
    const std::int64_t taps = problem_.taps(), vector = tiling.vector;
    const std::int64_t pixels = std::int64_t{tiling.thread_p} * tiling.thread_q;
    work.fma_per_warp = tiling.multiply_adds(problem_) / tiling.threads();
    const std::int64_t input_rows = tiling.unroll_rows ? rows_.inputs(tiling.thread_p) : tiling.thread_p * rows_.taps;
    const std::int64_t reads = input_rows * tiling.window(of_);
    const std::int64_t converted = element_ == 2 ? tiling.read_vector(problem_) : 0;
    const std::int64_t weight_reads = taps * ceil_div(vector, 4);
    const std::int64_t weight_copies = tiling.weight_steps(problem_) * tiling.weight_vector(problem_);
    const std::int64_t vectors = tiling.input_pixels(of_) * tiling.block_c(problem_) / tiling.copy_vector;
    const std::int64_t copies = ceil_div(vectors, tiling.threads());
    const std::array copy_instructions = {costs_.register_copy, costs_.async_copy, costs_.box_copy};
    const std::int64_t rounded = problem_.output.element_bytes() == 4 ? 0
                                 : tiling.store_pairs                 ? costs_.rounded_pair
                                                                      : costs_.rounded;
    work.other_per_warp = copies * copy_instructions.at(static_cast<std::size_t>(tiling.copy)) +
                          weight_copies * costs_.weight_copy + reads * (1 + converted) + weight_reads +
                          pixels * (costs_.pixel + vector * (costs_.output + rounded)) + costs_.block;
    const std::int64_t weight_wavefronts =
        std::max<std::int64_t>(1, std::min(kWarpSize, tiling.threads_c) * std::min<std::int64_t>(vector, 4) / kBanks);
    work.shared_per_warp = copies * std::max<std::int64_t>(1, tiling.copy_vector * element_ / kBankBytes) +
                           weight_copies * costs_.weight_wavefronts + reads * read_wavefronts +
                           weight_reads * weight_wavefronts;
    work.latency_cycles = costs_.latency;
    work.wanted_warps = costs_.wanted_warps;
    work.registers = registers(tiling);
    work.shared_bytes = tiling.shared_bytes(of_);
    work.dram_bytes = tensor_bytes_ / 100 * memory_percent(tiling, resident_blocks(work, target_));
    return work;
  }

  /// What memory has to do, as if there were more bytes: 100 if it moves each once at full speed.
  std::int64_t memory_percent(const DepthwiseNhwcTiling& tiling, int resident) const {
    // Pixels that several tiles read meet in the L2 cache, mostly.
    const std::int64_t read = tiling.input_pixels(of_);
    const std::int64_t own = std::max<std::int64_t>(1, tiling.tile_p() * rows_.stride * tiling.tile_q() *
                                                           columns_.stride / (rows_.upsampling * columns_.upsampling));
    std::int64_t percent = 100 + costs_.memory.again * std::max<std::int64_t>(0, read - own) / own;
    const std::int64_t run = tiling.block_c(problem_) * element_;
    if (tiling.block_c(problem_) < problem_.input_channels()) {
      // Less than two sectors of neighbouring channels; runs that end inside of sectors.
      if (run < 2 * kSector) percent += costs_.memory.short_run * kSector / run;
      if (problem_.input_channels() * element_ % kSector != 0) percent += costs_.memory.cut_sector * kSector / run;
    }
    // Few blocks of an SM seldom load while others compute.
    const std::array<std::int64_t, 4> few_blocks = {0, costs_.memory.one_block, costs_.memory.two_blocks,
                                                    costs_.memory.three_blocks};
    if (resident < static_cast<int>(few_blocks.size())) percent += few_blocks.at(static_cast<std::size_t>(resident));
    if (tiling.copy != Copy::box) percent += costs_.memory.copied;
    return percent;
  }

  void add(const DepthwiseNhwcTiling& tiling, std::int64_t read_wavefronts) {
    into_.add(tiling, block_work(tiling, read_wavefronts), target_);
  }

  CandidateList& into_;
  const DepthwiseNhwcCosts& costs_;
  const Problem& problem_;
  const Target& target_;
  std::int64_t element_;
  DepthwiseNhwcProblem of_;
  const DepthwiseAxis &rows_, &columns_;
  std::int64_t tensor_bytes_;
  std::map<std::array<int, 4>, Pitches> pitches_;  ///< of the vector and threads_c that are looked at, by pitch_key()
};

}  // namespace

std::string depthwise_nhwc::enumerate(const Problem& problem, const Target& target, CandidateList& into) {
  constexpr std::int64_t kMaxExtent = std::int64_t{1} << 28;  // of rows and columns, which are counted in 32 bits
  if (problem.reduction != Reduction::taps) return "the sums run over pixels";
  if (problem.c != 1) return fmt::format("{} input channels per group, not 1", problem.c);
  if (problem.input.layout() != Layout::nhwc || problem.output.layout() != Layout::nhwc) return "works on nhwc tensors";
  for (const Axis* axis : {&problem.rows, &problem.columns}) {
    if (std::max(axis->input * axis->upsampling, axis->output * axis->stride) + std::abs(axis->pad) + axis->reach() >
        kMaxExtent)
      return "more than 2^28 rows or columns";
    if (axis->upsampling > 1 && axis->dilation > 1) return "the gradient has a stride and a dilation";
  }
  Search(problem, target, into).run();
  return into.empty() ? "no tile fits shared memory and registers" : "";
}

}  // namespace jitconv::codegen
