// What follows from a tiling of the depthwise family and the problem.
#include "codegen/depthwise/tiling.h"

#include <algorithm>

#include "codegen/arithmetic.h"

namespace jitconv::codegen {

std::int64_t DepthwiseTiling::blocks(const Problem& problem) const {
  return ceil_div(problem.n * problem.input_channels(), planes) * ceil_div(problem.rows.output, tile_p()) *
         ceil_div(problem.columns.output, tile_q());
}

int DepthwiseTiling::input_rows(const Problem& problem) const {
  return static_cast<int>(problem.rows.inputs_met(tile_p()));
}

int DepthwiseTiling::window(const Problem& problem) const {
  return static_cast<int>(round_up(column_shift + problem.columns.inputs_met(thread_q), read_vector));
}

std::int64_t DepthwiseTiling::input_floats(const Problem& problem) const {
  return std::int64_t{planes} * input_rows(problem) * input_pitch;
}

int DepthwiseTiling::store_vector(const Problem& problem) const {
  return static_cast<int>(std::min<std::int64_t>(16, problem.alignment) / problem.output.element_bytes());
}

std::int64_t DepthwiseTiling::store_first_float(const Problem& problem) const {
  const std::int64_t multiplier = problem.k;
  if (multiplier == 1) return 0;
  return round_up(input_floats(problem) + planes * multiplier * problem.taps(), 4);
}

std::int64_t DepthwiseTiling::shared_bytes(const Problem& problem) const {
  const std::int64_t multiplier = problem.k;
  const std::int64_t loaded = input_floats(problem) + planes * multiplier * problem.taps();
  std::int64_t staged = 0;
  if (store == Store::flat)
    staged = (planes > 1 ? planes * problem.rows.output : tile_p()) * problem.columns.output +
             16 / problem.output.element_bytes();
  if (store == Store::rows) staged = std::int64_t{tile_p()} * tile_q();
  return 4 * std::max(loaded, store_first_float(problem) + staged);
}

}  // namespace jitconv::codegen
