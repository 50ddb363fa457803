// Candidates of the direct family: register tiles, how lanes and warps cover pixels and channels, pipeline depth.
#include <algorithm>
#include <array>
#include <numeric>

#include "codegen/arithmetic.h"
#include "codegen/costs/costs.h"
#include "codegen/direct/family.h"

namespace jitconv::codegen {
namespace {

/// FMA instructions in one copy of the loop body: above this, rows are rolled (NVRTC's time grows faster than
/// linearly).
constexpr std::int64_t kUnrollBudget = 2400;
/// Below this, rolling rows does not pay.
constexpr std::int64_t kRollFrom = 1200;
/// FMAs of a thread between two barriers.
constexpr std::int64_t kChunkBudget = 4700;
constexpr std::int64_t kMaxRegisters = 250;
/// Columns below which a warp's runs of y are too short, where the image is wider.
constexpr std::int64_t kNarrowTile = 32;

/// Wavefronts of one 16-byte window load of a warp: per quarter-warp, the largest number of different 16-byte words
/// that meet in one group of four banks. The quarters repeat one pattern.
std::int64_t window_wavefronts(const DirectTiling& tiling, const Problem& problem) {
  std::array<std::array<std::int64_t, 8>, 8> words{};
  std::array<int, 8> count{};
  int worst = 1;
  for (int lane = 0; lane < 8; ++lane) {
    const std::int64_t word = (lane / tiling.lanes_q * problem.rows.stride * tiling.input_pitch +
                               lane % tiling.lanes_q * tiling.thread_q * problem.columns.stride) /
                              4;
    auto& group = words[word % 8];
    int& used = count[word % 8];
    if (std::find(group.begin(), group.begin() + used, word) != group.begin() + used) continue;
    group[used++] = word;
    worst = std::max(worst, used);
  }
  return 4 * worst;
}

void choose_copies(DirectTiling& tiling, const Problem& problem, const Target& target) {
  tiling.async_copy = problem.input.type == DataType::f32 && target.compute_capability() >= 80;
  const bool aligned = problem.input.layout() == Layout::nchw && problem.columns.input % 4 == 0 &&
                       problem.alignment >= 4 * problem.input.element_bytes();
  tiling.copy_vector = aligned ? 4 : 1;
  tiling.column_shift = static_cast<int>(positive_modulo(-problem.columns.pad, tiling.copy_vector));
}

/// Sets the pitches; returns the wavefronts of a window load.
std::int64_t choose_pitches(DirectTiling& tiling, const Problem& problem) {
  const std::int64_t columns = (tiling.block_q() - tiling.thread_q) * problem.columns.stride + tiling.window(problem);
  tiling.weight_pitch = tiling.block_k() < 32 ? static_cast<int>(round_up(tiling.block_k(), 4)) : tiling.block_k() + 4;
  tiling.input_pitch = static_cast<int>(round_up(columns, 4));
  std::int64_t wavefronts = window_wavefronts(tiling, problem);
  if (tiling.lanes_q >= 8) return wavefronts;  // a quarter-warp stays in one row, whatever the pitch
  DirectTiling wider = tiling;
  for (int extra = 4; extra < 32 && wavefronts > 4; extra += 4) {
    wider.input_pitch += 4;
    const std::int64_t fewer = window_wavefronts(wider, problem);
    if (fewer >= wavefronts) continue;
    wavefronts = fewer;
    tiling.input_pitch = wider.input_pitch;
  }
  return wavefronts;
}

/// Input rows a thread loads for one channel: unrolled rows that several of its output rows use are loaded once.
std::int64_t loaded_rows(const DirectTiling& tiling, const Problem& problem) {
  const std::int64_t step = tiling.lanes_p * problem.rows.stride, dilation = problem.rows.dilation,
                     taps = problem.rows.taps;
  std::int64_t count = taps;  // those of output row 0
  for (std::int64_t p = 1; p < tiling.thread_p; ++p) {
    if (!tiling.unroll_rows || step % dilation != 0)
      count += taps;
    else
      count += std::min(taps, step / dilation);  // the rest was loaded for row p - 1
  }
  return count;
}

int estimate_registers(const DirectTiling& tiling, const Problem& problem) {
  const int accumulators = tiling.thread_k * tiling.thread_p * tiling.thread_q;
  // Long windows are consumed from left to right: the columns of one tap and the 16 bytes that come next are live.
  const int live = static_cast<int>((tiling.thread_q - 1) * problem.columns.stride) + 9;
  const int window = std::min(tiling.window(problem), live) * tiling.thread_p;
  return accumulators + window + 2 * tiling.thread_k + 24;
}

/// Groups of one channel: a block waits for all of its input before it multiplies. In NHWC, lanes copy and store
/// elements that are a pixel apart, so that each is a transaction of the L1 cache.
void add_single_copies(BlockWork& work, const DirectTiling& tiling, const Problem& problem,
                       const DirectCosts::Single& costs) {
  const bool nchw = problem.input.layout() == Layout::nchw;
  const std::int64_t rows =
      ceil_div(std::min<std::int64_t>(tiling.input_rows(problem), problem.rows.input), tiling.warps());
  // What the loops of templates/direct/copy_*.cu.in have under way: two rows, or four copies of a row.
  const std::int64_t batches = nchw ? ceil_div(rows, 2) : rows * ceil_div(tiling.input_pitch, 4 * kWarpSize);
  if (!tiling.async_copy) work.latency_cycles += batches * costs.register_wait;
  if (tiling.async_copy && tiling.copy_vector == 1) work.latency_cycles += batches * costs.async_wait;
  if (nchw) return;
  const std::int64_t copied = rows * tiling.input_pitch;
  const std::int64_t stored = std::int64_t{kWarpSize} * tiling.thread_k * tiling.thread_p * tiling.thread_q;
  work.shared_per_warp += (copied + stored) * costs.wavefront_percent / 100;
}

BlockWork block_work(const DirectTiling& tiling, const Problem& problem, std::int64_t tensor_bytes,
                     std::int64_t wavefronts, const DirectCosts& costs) {
  const std::int64_t taps = problem.taps();
  const std::int64_t chunks = ceil_div(problem.c, tiling.chunk_c), channels = chunks * tiling.chunk_c;
  const bool nchw_out = problem.output.layout() == Layout::nchw;

  BlockWork work;
  work.blocks = tiling.blocks(problem);
  work.threads = tiling.threads();
  work.warps = tiling.warps();
  work.fma_per_warp = channels * taps * tiling.thread_k * tiling.thread_p * tiling.thread_q;

  const std::int64_t window_loads = loaded_rows(tiling, problem) * (tiling.window(problem) / 4);
  const std::int64_t weight_loads = taps * ceil_div(tiling.thread_k, 4);
  const std::int64_t iterations = tiling.unroll_rows ? ceil_div(1, tiling.unroll_c) : problem.rows.taps;
  const std::int64_t input_rows = std::int64_t{tiling.chunk_c} * tiling.input_rows(problem);
  const std::int64_t input_copies =
      problem.input.layout() == Layout::nchw
          ? ceil_div(input_rows, tiling.warps()) *
                (ceil_div(tiling.input_pitch, kWarpSize * tiling.copy_vector) * costs.copies.nchw +
                 costs.copies.nchw_row)
          : ceil_div(tiling.input_rows(problem), tiling.warps()) *
                ceil_div(std::int64_t{tiling.input_pitch} * tiling.chunk_c, kWarpSize) * costs.copies.nhwc;
  const std::int64_t weight_copies =
      ceil_div(tiling.chunk_c * taps * tiling.block_k(), tiling.threads()) * costs.copies.weight;
  const std::int64_t copies =
      (input_copies + weight_copies) * (tiling.async_copy ? 100 : costs.copies.registers_percent) / 100;
  const std::int64_t stores =
      nchw_out ? tiling.thread_k * (tiling.warp_p() * (ceil_div(tiling.warp_q() + 7, kWarpSize) * costs.store.nchw +
                                                       costs.store.nchw_row) +
                                    tiling.thread_p * tiling.thread_q)
               : tiling.thread_k * tiling.thread_p * tiling.thread_q * costs.store.nhwc;
  work.other_per_warp = channels * (window_loads + weight_loads + costs.loop.iteration * iterations) +
                        chunks * (copies + costs.loop.chunk) + stores + costs.loop.block;
  work.shared_per_warp =
      channels * (window_loads * (4 + (wavefronts - 4) * costs.replay_percent / 100) + weight_loads) +
      chunks * ceil_div(tiling.input_stage_floats(problem) + tiling.weight_stage_floats(problem), tiling.threads());
  work.latency_cycles = costs.latency + chunks * costs.chunk_latency;
  if (problem.c == 1 && problem.groups > 1) add_single_copies(work, tiling, problem, costs.single);
  // Runs of y end inside sectors that two blocks share.
  const std::int64_t row_ends = nchw_out && problem.columns.output % 8 != 0
                                    ? problem.n * problem.output_channels() * problem.rows.output *
                                          ceil_div(problem.columns.output, tiling.warp_q())
                                    : 0;
  work.dram_bytes = tensor_bytes + row_ends * costs.row_end_bytes;
  work.registers = estimate_registers(tiling, problem);
  work.shared_bytes = tiling.shared_bytes(problem);
  work.wanted_warps = costs.wanted_warps;
  // Registers beyond the estimate are used well; blocks beyond 16 warps gain nothing.
  work.launch_blocks = 16 / tiling.warps();
  return work;
}

class Search {
 public:
  Search(const Problem& problem, const Target& target, CandidateList& into)
      : into_(into),
        problem_(problem),
        target_(target),
        tensor_bytes_(static_cast<std::int64_t>(work(problem).bytes)) {}

  void run() {
    search({4, 8});
    if (into_.empty()) search({1, 2});  // so few outputs that four warps would idle
  }

 private:
  void search(const std::array<int, 2>& warp_counts) {
    warp_counts_ = warp_counts;
    const int vector = static_cast<int>(4 / std::gcd(std::int64_t{4}, problem_.columns.stride));
    for (const int thread_q : {vector, 2 * vector})
      for (const int thread_p : {1, 2, 4, 8})
        for (const int thread_k : {16, 8, 4, 2, 1}) thread_tiles(thread_k, thread_p, thread_q);
  }

  void thread_tiles(int thread_k, int thread_p, int thread_q) {
    const int accumulators = thread_k * thread_p * thread_q;
    const std::int64_t group_k = problem_.k;
    if (accumulators > 128 || (accumulators < 32 && thread_k < group_k && thread_k < 8)) return;
    if (thread_k > 1 && thread_k / 2 >= group_k) return;
    if (thread_p > 1 && thread_p / 2 >= problem_.rows.output) return;
    for (const int lanes_q : {1, 2, 4, 8, 16, 32}) {
      if (lanes_q > 1 && lanes_q / 2 * thread_q >= problem_.columns.output) continue;
      if (lanes_q * thread_q < kNarrowTile && problem_.columns.output >= 2 * kNarrowTile) continue;
      const int lanes_p = kWarpSize / lanes_q;
      if (lanes_p > 1 && lanes_p / 2 * thread_p >= problem_.rows.output && lanes_q * thread_q < problem_.columns.output)
        continue;
      for (const int warps_k : {1, 2, 4, 8})
        for (const int warps_p : {1, 2})
          for (const int warps_q : {1, 2, 4}) {
            const int warps = warps_k * warps_p * warps_q;
            if (warps != warp_counts_[0] && warps != warp_counts_[1]) continue;
            if (warps_k > 1 && warps_k / 2 * thread_k >= group_k) continue;
            DirectTiling tiling;
            tiling.thread_k = thread_k, tiling.thread_p = thread_p, tiling.thread_q = thread_q;
            tiling.lanes_p = lanes_p, tiling.lanes_q = lanes_q;
            tiling.warps_k = warps_k, tiling.warps_p = warps_p, tiling.warps_q = warps_q;
            tiling.store_channels = std::min(2, thread_k);
            if (warps_p > 1 && tiling.block_p() / 2 >= problem_.rows.output) continue;
            if (warps_q > 1 && tiling.block_q() / 2 >= problem_.columns.output) continue;
            chunks(tiling);
          }
    }
  }

  /// Chunks big enough to pay for a barrier, small enough for two blocks an SM.
  void chunks(DirectTiling tiling) {
    if (static_cast<std::int64_t>(tiling.block_q()) * problem_.columns.stride +
                (problem_.columns.taps - 1) * problem_.columns.dilation >
            4096 ||
        tiling.block_p() * problem_.rows.stride + (problem_.rows.taps - 1) * problem_.rows.dilation > 4096)
      return;
    choose_copies(tiling, problem_, target_);
    wavefronts_ = choose_pitches(tiling, problem_);
    constexpr std::int64_t kMaxSteps = 32;  // a lane keeps one bit per step
    if (ceil_div(tiling.input_pitch, kWarpSize * tiling.copy_vector) > kMaxSteps) return;
    const std::int64_t tile = tiling.thread_k * tiling.thread_p * tiling.thread_q;
    const std::int64_t row_fmas = tile * problem_.columns.taps, body = row_fmas * problem_.rows.taps;
    if (row_fmas > kUnrollBudget) return;
    for (const bool unroll_rows : {true, false}) {
      if (unroll_rows ? body > kUnrollBudget : (problem_.rows.taps == 1 || body < kRollFrom)) continue;
      tiling.unroll_rows = unroll_rows;
      depths(tiling, body);
    }
  }

  void depths(DirectTiling tiling, std::int64_t body) {
    for (const int chunk_c : {16, 8, 4, 2, 1}) {
      if (chunk_c > 1 && (chunk_c / 2 >= problem_.c || chunk_c * body > kChunkBudget)) continue;
      tiling.chunk_c = chunk_c;
      tiling.unroll_c = 1;
      while (tiling.unroll_rows && tiling.unroll_c < chunk_c && 2 * tiling.unroll_c * body <= 400) tiling.unroll_c *= 2;
      tiling.stages = 2;
      if (tiling.shared_bytes(problem_) > target_.shared_bytes_per_block) continue;
      add(tiling);
      if (chunk_c * body < 1500) break;
    }
  }

  void add(const DirectTiling& tiling) {
    BlockWork work = block_work(tiling, problem_, tensor_bytes_, wavefronts_, into_.costs().direct);
    if (wide_) work.registers += 8;  // pointers instead of offsets
    if (work.registers <= kMaxRegisters) into_.add(tiling, work, target_);
  }

  CandidateList& into_;
  const Problem& problem_;
  const Target& target_;
  std::int64_t tensor_bytes_;
  bool wide_ = needs_wide_index(problem_, {});
  std::array<int, 2> warp_counts_{};
  std::int64_t wavefronts_ = 4;  // of the tiling at hand
};

}  // namespace

std::string direct::enumerate(const Problem& problem, const Target& target, CandidateList& into) {
  if (const std::string_view rule = beyond_dense_forward(problem); !rule.empty()) return std::string(rule);
  Search(problem, target, into).run();
  return into.empty() ? no_tile_fits(problem, target) : "";
}

}  // namespace jitconv::codegen
