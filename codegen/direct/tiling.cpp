// What follows from a tiling of the direct family and the problem.
#include "codegen/direct/tiling.h"

#include <algorithm>

#include "codegen/arithmetic.h"

namespace jitconv::codegen {

std::int64_t DirectTiling::blocks(const Problem& problem) const {
  return problem.n * problem.groups * ceil_div(problem.k, block_k()) * ceil_div(problem.rows.output, block_p()) *
         ceil_div(problem.columns.output, block_q());
}

int DirectTiling::input_rows(const Problem& problem) const {
  return static_cast<int>((block_p() - 1) * problem.rows.stride + (problem.rows.taps - 1) * problem.rows.dilation + 1);
}

int DirectTiling::window(const Problem& problem) const {
  return static_cast<int>(round_up(column_shift + (thread_q - 1) * problem.columns.stride +
                                       (problem.columns.taps - 1) * problem.columns.dilation + 1,
                                   4));
}

std::int64_t DirectTiling::input_stage_floats(const Problem& problem) const {
  return round_up(std::int64_t{chunk_c} * input_rows(problem) * input_pitch, 32);
}

std::int64_t DirectTiling::weight_stage_floats(const Problem& problem) const {
  return round_up(chunk_c * problem.taps() * weight_pitch, 32);
}

std::int64_t DirectTiling::store_stage_floats() const {
  return std::int64_t{store_channels} * warp_p() * (warp_q() + 4);
}

int DirectTiling::store_vector(const Problem& problem) const {
  // fp32 sums of 16-bit tensors, which go to scratch, may be wider than the alignment of the caller's tensors.
  const std::int64_t bytes = problem.output.element_bytes();
  const std::int64_t limit = std::clamp<std::int64_t>(problem.alignment, bytes, 16) / bytes;
  const std::int64_t group_k = problem.k;
  std::int64_t vector = limit;
  while (thread_k % vector != 0 || group_k % vector != 0) vector /= 2;
  return static_cast<int>(vector);
}

std::int64_t DirectTiling::shared_bytes(const Problem& problem) const {
  const std::int64_t pipeline = stages * (input_stage_floats(problem) + weight_stage_floats(problem));
  const std::int64_t store =
      problem.output.layout() == Layout::nchw ? warps() * store_stage_floats() : std::int64_t{threads()} * thread_k;
  return 4 * std::max(pipeline, store);
}

}  // namespace jitconv::codegen
