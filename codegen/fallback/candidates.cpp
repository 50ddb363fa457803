// The one candidate of the fallback family, valid for every problem that sums over taps.
#include <algorithm>

#include "codegen/arithmetic.h"
#include "codegen/costs/costs.h"
#include "codegen/fallback/family.h"
#include "fmt/format.h"
#include "jitconv/error.h"

namespace jitconv::codegen {

std::string fallback::enumerate(const Problem& problem, const Target& target, CandidateList& into) {
  if (problem.reduction != Reduction::taps) return "the sums run over pixels";
  FallbackTiling tiling;
  tiling.lanes_over_channels = problem.output.layout() == Layout::nhwc;
  tiling.thread_k = 1;
  tiling.thread_pixels = tiling.lanes_over_channels ? 4 : 1;
  if (!tiling.lanes_over_channels)
    while (tiling.thread_k < 8 && tiling.thread_k < problem.k) tiling.thread_k *= 2;

  const std::int64_t blocks = tiling.blocks(problem);
  if (blocks > INT32_MAX)
    throw SpecError(
        ErrorCode::unsupported, "input",
        fmt::format("input makes {}x{}x{}x{} outputs, which take {} thread blocks, must be at most 2^31 - 1", problem.n,
                    problem.output_channels(), problem.rows.output, problem.columns.output, blocks));

  const std::int64_t outputs = std::int64_t{tiling.thread_k} * tiling.thread_pixels;
  const FallbackCosts& costs = into.costs().fallback;
  BlockWork work;
  work.blocks = blocks;
  work.threads = FallbackTiling::kThreads;
  work.warps = FallbackTiling::kThreads / kWarpSize;
  work.fma_per_warp = outputs * problem.c * problem.taps();
  // A tap computes addresses and predicates anew and reads every operand from the L1 cache.
  work.other_per_warp =
      problem.c * problem.taps() * (costs.pixel * tiling.thread_pixels + costs.channel * tiling.thread_k);
  work.latency_cycles = costs.latency;
  work.dram_bytes = static_cast<std::int64_t>(codegen::work(problem).bytes);
  work.registers = 64;
  work.launch_blocks = 1;

  into.add(tiling, work, target);
  return {};
}

}  // namespace jitconv::codegen
