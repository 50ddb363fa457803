// See grid.h.
#include "codegen/wgmma/grid.h"

#include <algorithm>
#include <numeric>

#include "codegen/arithmetic.h"

namespace jitconv::codegen {
namespace {

/// The number of residues modulo the stride, from 0 to the largest that an offset of the filter has.
int residues(const Axis& axis) {
  std::int64_t largest = 0;
  for (std::int64_t tap = 0; tap < axis.taps; ++tap) largest = std::max(largest, tap * axis.dilation % axis.stride);
  return static_cast<int>(largest + 1);
}

}  // namespace

std::int64_t shared_padding_pitch(std::int64_t outputs, std::int64_t extent, std::int64_t before, std::int64_t span,
                                  std::int64_t stride) {
  const std::int64_t behind = (outputs - 1) * stride + span - before - (extent - 1);
  return std::min(outputs + span / stride, std::max(outputs, ceil_div(extent + std::max(before, behind), stride)));
}

PixelGrid::PixelGrid(const Problem& problem) : problem_(&problem) {
  const Axis& columns = problem.columns;
  const bool nchw = problem.input.layout() == Layout::nchw;
  slice_channels_ = static_cast<int>(kRowBytes / element_bytes(problem.input.type));
  pixel_slices_ = ceil_div(problem.input_channels(), slice_channels_);
  plane_ = problem.output_plane();
  row_reach_ = columns.reach() / columns.stride;
  phases_ = residues(columns);
  row_phases_ = residues(problem.rows);
  loads_pairs_ = element_bytes(problem.input.type) == 2 && nchw && columns.stride == 1 && columns.input % 2 == 0 &&
                 columns.output % 2 == 0 && row_reach_ % 2 == 0;
  loads_vectors_ = !nchw && problem.c % slice_channels_ == 0;
  const std::int64_t shared =
      shared_padding_pitch(columns.output, columns.input, columns.pad, columns.reach(), columns.stride);
  pitch_ = loads_pairs_ ? round_up(shared, 2) : shared;
  sector_elements_ =
      problem.output.layout() == Layout::nhwc ? 1 : static_cast<int>(32 / element_bytes(problem.output.type));
  slack_ = static_cast<int>(sector_elements_ - std::gcd(plane_, std::int64_t{sector_elements_}));
}

int PixelGrid::phase_of(std::int64_t s) const {
  return static_cast<int>(s * problem_->columns.dilation % problem_->columns.stride);
}

std::int64_t PixelGrid::tap_place(int tap) const {
  const Axis& columns = problem_->columns;
  const std::int64_t r = tap / columns.taps, s = tap % columns.taps;
  return r * problem_->rows.dilation * pitch_ + s * columns.dilation / columns.stride;
}

}  // namespace jitconv::codegen
