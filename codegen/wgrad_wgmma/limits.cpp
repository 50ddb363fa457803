// See wgrad_wgmma/limits.h.
#include "codegen/wgrad_wgmma/limits.h"

#include <algorithm>

#include "codegen/split_operands.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

/// A step is two multiplications or more, which shorter sums must not take before they are promoted.
constexpr std::int64_t kFewestSplitPixels = 96;
static_assert(longest_promotion_interval(kFewestSplitPixels) == 2 &&
              longest_promotion_interval(kFewestSplitPixels - 1) == 1);

}  // namespace

std::string wgrad_wgmma::obstacle(const Problem& problem, const Target& target) {
  if (problem.reduction != Reduction::pixels) return "the sums run over taps";
  if (target.compute_capability() != 90 || !target.arch_specific)
    return fmt::format("warpgroup multiplications need sm_90a, the target is {}", target.arch());
  if (problem.arithmetic == Arithmetic::fp32) return "math=ieee takes FMA";
  // At most as many products as either tensor has pixels meet in a tap.
  const std::int64_t pixels = problem.n * std::min(problem.input_plane(), problem.output_plane());
  if (splits_floats(problem.arithmetic) && pixels < kFewestSplitPixels)
    return fmt::format("sums of {} products, at least {} are needed so that split operands are as accurate as fp32 FMA",
                       pixels, kFewestSplitPixels);
  if (problem.n == 0) return "there are no images";
  if (problem.taps() > kMostTaps) return fmt::format("filters of {} taps, at most {}", problem.taps(), kMostTaps);
  return {};
}

std::string wgrad_wgmma::obstacle_of_tiles(const Problem& problem) {
  if (joins_columns(problem) && problem.c * problem.columns.taps > kMostColumns)
    return fmt::format("{} channels at {} filter columns, more than an instruction's {} columns", problem.c,
                       problem.columns.taps, kMostColumns);
  if (problem.columns.stride > 4 && !joins_columns(problem))
    return fmt::format("the stride is {}", problem.columns.stride);
  if (problem.n * std::max(problem.input_plane(), problem.output_plane()) > INT32_MAX / 2)
    return "more than 2^30 pixels, which are counted with 32 bits";
  if (problem.output_channels() * problem.c > INT32_MAX) return "more than 2^31 - 1 weights of a tap";
  return {};
}

int wgrad_wgmma::groups_to_join(const Problem& problem) {
  constexpr std::int64_t kRows = 64, kFewestMultiples = 4, kMostSumBytes = std::int64_t{1} << 26;
  if (problem.c == 1 && problem.k < kFewestMultiples) return 1;
  for (std::int64_t count = std::min(problem.groups, kRows / problem.k); count > 1; --count)
    if (problem.groups % count == 0 && count * problem.k >= kFewestRows && count * problem.c <= kMostColumns &&
        4 * count * problem.weight_elements() <= kMostSumBytes)
      return static_cast<int>(count);
  return 1;
}

}  // namespace jitconv::codegen
