// The fallback family: fp32 FMA, operands from global memory; computes every forward convolution.
#include "codegen/fallback/family.h"

#include "codegen/arithmetic.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

bool wide_index(const Problem& problem, const Tiling&) { return needs_wide_index(problem, {}); }

std::string describe(const KernelPlan& kernel) {
  const auto& t = std::get<FallbackTiling>(kernel.tiling);
  return fmt::format("outputs of a thread: {} channels, {} pixels\nlanes over: {}\n", t.thread_k, t.thread_pixels,
                     t.lanes_over_channels ? "channels" : "pixels");
}

std::int64_t multiply_adds(const KernelPlan& kernel) {
  const auto& tiling = std::get<FallbackTiling>(kernel.tiling);
  return std::int64_t{kernel.launch.blocks} * kernel.launch.threads * tiling.thread_k * tiling.thread_pixels *
         kernel.problem.c * kernel.problem.taps();
}

OutputTiles output_tiles(const KernelPlan& kernel) {
  const auto& tiling = std::get<FallbackTiling>(kernel.tiling);
  OutputTiles result;
  result.line_outputs = std::int64_t{FallbackTiling::kThreads} * tiling.thread_pixels;
  result.tiles = tiling.blocks(kernel.problem);
  return result;
}

}  // namespace

FamilyFunctions fallback_family() {
  return {
      .name = "fallback",
      .reads_any_weight = true,
      .enumerate = fallback::enumerate,
      .needs_wide_index = wide_index,
      .emit = fallback::emit,
      .describe = describe,
      .multiply_adds = multiply_adds,
      .output_tiles = output_tiles,
  };
}

}  // namespace jitconv::codegen
