// What follows from a tiling of the pointwise family and the problem.
#include "codegen/pointwise/tiling.h"

#include <algorithm>

#include "codegen/arithmetic.h"

namespace jitconv::codegen {
namespace {

constexpr std::int64_t kRowBytes = 16;  // of a matrix operand: four channels
constexpr std::int64_t kBarrierBytes = 8;
constexpr std::int64_t kBoxAlignment = 128, kSwizzledBoxAlignment = 1024;

}  // namespace

std::int64_t PointwiseTiling::steps(const Problem& problem) const { return problem.c / chunk_channels; }

std::int64_t PointwiseTiling::steps_of_split(const Problem& problem) const { return ceil_div(steps(problem), splits); }

std::int64_t PointwiseTiling::tiles_k(const Problem& problem) const { return ceil_div(problem.k, block_k()); }

std::int64_t PointwiseTiling::slabs(const Problem& problem) const { return problem.groups * tiles_k(problem) * splits; }

std::int64_t PointwiseTiling::slab_slices(const Problem& problem) const {
  return steps_of_split(problem) * chunk_channels / 4;
}

std::int64_t PointwiseTiling::pixels(const Problem& problem) { return problem.n * problem.output_plane(); }

std::int64_t PointwiseTiling::tile_pixels(const Problem& problem) const {
  switch (tile) {
    case Pixels::line:
      return block_pixels();
    case Pixels::images:
      return extent * problem.output_plane();
    case Pixels::rows:
      return extent * problem.columns.output;
  }
  return 0;
}

int PointwiseTiling::runs(const Problem& problem) const {
  const std::int64_t plane = problem.input_plane();
  return plane % block_pixels() == 0 ? 1 : plane >= block_pixels() ? 2 : 3;
}

std::int64_t PointwiseTiling::pixel_pitch(const Problem& problem) const {
  switch (tile) {
    case Pixels::line:
      return block_pixels() + 8;
    case Pixels::images:
      return problem.input_plane();
    case Pixels::rows:
      return extent * problem.columns.input;
  }
  return 0;
}

std::int64_t PointwiseTiling::stage_bytes(const Problem& problem) const {
  const std::int64_t bytes = 4 * chunk_channels * pixel_pitch(problem) * (tile == Pixels::images ? extent : 1);
  return tile == Pixels::rows ? round_up(bytes, kBoxAlignment) : bytes;
}

std::int64_t PointwiseTiling::tiles(const Problem& problem) const {
  switch (tile) {
    case Pixels::line:
      return ceil_div(pixels(problem), block_pixels());
    case Pixels::images:
      return ceil_div(problem.n, extent);
    case Pixels::rows:
      return problem.n * ceil_div(problem.rows.output, extent);
  }
  return 0;
}

int PointwiseTiling::weight_pitch() const { return static_cast<int>((block_k() + 1) * kRowBytes); }

std::int64_t PointwiseTiling::weight_stage_bytes() const {
  return streams_weights ? round_up(std::int64_t{block_k()} * weight_row_bytes(), kSwizzledBoxAlignment) : 0;
}

std::int64_t PointwiseTiling::weights_first_byte(const Problem& problem) const {
  const std::int64_t end = stages * stage_bytes(problem);
  return streams_weights ? round_up(end, kSwizzledBoxAlignment) : end;
}

std::int64_t PointwiseTiling::bias_first_byte(const Problem& problem) const {
  return weights_first_byte(problem) +
         (streams_weights ? stages * weight_stage_bytes() : slab_slices(problem) * weight_pitch());
}

std::int64_t PointwiseTiling::barriers_first_byte(const Problem& problem) const {
  return bias_first_byte(problem) + (keeps_bias(problem) ? 4 * block_k() : 0);
}

std::int64_t PointwiseTiling::shared_bytes(const Problem& problem) const {
  return barriers_first_byte(problem) + (2 * stages + 1) * kBarrierBytes;
}

std::int64_t PointwiseTiling::partial_sum_stride(const Problem& problem) const {
  return round_up(pixels(problem) * problem.output_channels(), 64);
}

std::int64_t PointwiseTiling::partial_sum_bytes(const Problem& problem) const {
  return splits == 1 ? 0 : 4 * splits * partial_sum_stride(problem);
}

}  // namespace jitconv::codegen
