// The formula of FMA kernels. Its data are in codegen/costs/.
#include "codegen/cost.h"

#include <algorithm>

#include "codegen/arithmetic.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

constexpr std::int64_t kSchedulers = 4;  // of an SM

std::int64_t dram_time(std::int64_t bytes, const FmaCosts& costs) {
  return bytes * 1000 / (costs.dram_bytes_per_microsecond / 1000);
}

}  // namespace

int resident_blocks(const BlockWork& work, const Target& target) {
  const std::int64_t threads = work.warps * kWarpSize;
  const std::int64_t by_registers = target.registers_per_sm / (round_up(work.registers, 8) * threads);
  const std::int64_t by_shared = target.shared_bytes_per_sm / (work.shared_bytes + 1024);
  const std::int64_t by_threads = target.threads_per_sm / threads;
  return static_cast<int>(
      std::min({by_registers, by_shared, by_threads, static_cast<std::int64_t>(target.blocks_per_sm)}));
}

Launch launch_of(const BlockWork& work, const Target& target) {
  return {static_cast<std::uint32_t>(work.blocks), static_cast<std::uint32_t>(work.threads),
          static_cast<std::uint32_t>(work.shared_bytes), std::min(resident_blocks(work, target), work.launch_blocks)};
}

std::int64_t overlapped(std::int64_t a, std::int64_t b, std::int64_t unhidden_permille) {
  return std::max(a, b) + std::min(a, b) * unhidden_permille / 1000;
}

std::int64_t price(const BlockWork& work, const Target& target, const FmaCosts& costs) {
  const std::int64_t resident = std::max(resident_blocks(work, target), 1);
  const std::int64_t issue =
      work.warps * (work.fma_per_warp * costs.fma_issue_percent / 100 + work.other_per_warp) / kSchedulers;
  const std::int64_t shared = work.warps * work.shared_per_warp;
  std::int64_t block_cycles = overlapped(issue, shared, 10 * costs.unhidden_percent);
  const std::int64_t warps = resident * work.warps;
  if (warps < work.wanted_warps)
    block_cycles += block_cycles * (work.wanted_warps - warps) * costs.no_warps_percent / (100 * work.wanted_warps);
  block_cycles +=
      block_cycles * std::max<std::int64_t>(0, work.wanted_blocks - resident) * costs.no_block_percent / 100;

  // Blocks of one SM share it, so a wave of `resident` blocks takes their sum, or the latency of one if that is longer.
  const std::int64_t wave_cycles = std::max(resident * block_cycles, block_cycles + work.latency_cycles);
  const std::int64_t per_wave = resident * target.sm_count;
  const std::int64_t full_waves = work.blocks / per_wave, rest = work.blocks % per_wave;
  const std::int64_t rest_per_sm = ceil_div(rest, target.sm_count);
  std::int64_t cycles = full_waves * wave_cycles;
  if (rest > 0) cycles += std::max(rest_per_sm * block_cycles, block_cycles + work.latency_cycles);

  const std::int64_t compute = cycles * costs.picoseconds_per_cycle;
  return overlapped(compute, dram_time(work.dram_bytes, costs), costs.unhidden_memory_permille);
}

std::int64_t pass_price(std::int64_t dram_bytes, const FmaCosts& costs) {
  return costs.pass_launch + dram_time(dram_bytes, costs);
}

std::string no_tile_fits(const Problem& problem, const Target& target) {
  return fmt::format(
      "no tile of a {}x{} filter with dilation ({},{}) and stride ({},{}) fits {} bytes of shared memory",
      problem.rows.taps, problem.columns.taps, problem.rows.dilation, problem.columns.dilation, problem.rows.stride,
      problem.columns.stride, target.shared_bytes_per_block);
}

bool needs_wide_index(const Problem& problem, const Overhang& overhang) {
  // From a view's first element to behind its last: views may skip some.
  const View::Strides& x = problem.input.stride;
  const std::int64_t input =
      std::max(problem.input_elements(), (problem.n - 1) * x.n + (problem.input_channels() - 1) * x.c +
                                             (problem.rows.input - 1) * x.h + (problem.columns.input - 1) * x.w + 1);
  const std::int64_t filter = problem.output_channels() * problem.c * problem.taps();
  const std::int64_t output = problem.n * problem.output_channels() * problem.output_plane();
  constexpr std::int64_t kOutputOverhang = 4096;  // tiles are cut off at P and K, and reach past Q by less than this
  return std::max({input + overhang.input, filter + overhang.weight, output + kOutputOverhang}) > INT32_MAX;
}

}  // namespace jitconv::codegen
