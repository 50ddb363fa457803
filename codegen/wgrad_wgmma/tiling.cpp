// See wgrad_wgmma/tiling.h.
#include "codegen/wgrad_wgmma/tiling.h"

#include <algorithm>

namespace jitconv::codegen {
namespace {

/// Of planes: pixels of all images are one row, where those of dy are neighbours already, or are made so.
bool joins_images(const WgradWgmmaTiling& tiling, const Problem& asked) {
  return tiling.packs_x && (tiling.packs_dy || asked.output.layout() == Layout::nhwc);
}

/// Whether x is a dense tensor, and not a view of one that leaves out what a stride skips. Such a view may be x, but
/// not dy, whose pixels are taken to be neighbours.
bool has_every_pixel(const Problem& problem) {
  const View& x = problem.input;
  const std::int64_t rows = problem.rows.input, columns = problem.columns.input;
  if (x.layout() == Layout::nchw) return rows == 1 || x.stride.h == columns;
  return x.stride.w == problem.input_channels() && (rows == 1 || x.stride.h == columns * x.stride.w) &&
         (problem.n == 1 || x.stride.n == rows * columns * x.stride.w);
}

/// A packed tensor of `channels` channels whose planes are whole operand rows.
View plane_view(const View& asked, std::int64_t pixels, std::int64_t channels, std::int64_t columns) {
  const std::int64_t plane = round_up(pixels, 16 / asked.element_bytes());
  return {Tensor::scratch, asked.type, {channels * plane, plane, columns, 1}};
}

/// The same as NHWC rows.
View row_view(const View& asked, std::int64_t channels, std::int64_t rows, std::int64_t columns) {
  return {Tensor::scratch, asked.type, dense_strides(Layout::nhwc, channels, rows, columns)};
}

/// Columns of x in rows of whole strides.
std::int64_t padded_columns(const Axis& columns) { return round_up(columns.input, columns.stride); }

}  // namespace

PixelSplits WgradWgmmaTiling::pixel_splits(const Problem& problem) const {
  const WgradGeometry geometry(problem, *this);
  const std::int64_t tiles_k = problem.groups * geometry.tiles_k();
  return {splits, tiles_k, geometry.tiles() / tiles_k, {.columns = true, .multiple = 8}};
}

void WgradWgmmaTiling::share_pixels(const Problem& problem, std::int64_t most_splits) {
  const std::int64_t step = WgradGeometry(problem, *this).row_step(), rows = problem.rows.output;
  const bool empty_strips = rows / step <= (ceil_div(ceil_div(rows, step), strip_rows) - 1) * strip_rows;
  if (empty_strips) strip_rows = static_cast<int>(ceil_div(rows, step));
  piece_rows = std::min(piece_rows, strip_rows);
  const std::int64_t strips = WgradGeometry(problem, *this).strips();
  splits = static_cast<int>(std::min(most_splits, strips));
  summed_strips = static_cast<int>(std::min<std::int64_t>(summed_strips, ceil_div(strips, splits)));
}

bool can_exchange_operands(const Problem& asked) {
  const auto can = [](const Axis& axis) { return axis.stride == 1 && axis.reach() >= axis.pad; };
  return asked.reduction == Reduction::pixels && can(asked.rows) && can(asked.columns) && has_every_pixel(asked);
}

Problem exchanged_operands(const Problem& asked) {
  const auto exchanged = [](Axis axis) {
    std::swap(axis.input, axis.output);
    axis.pad = axis.reach() - axis.pad;
    return axis;
  };
  Problem problem = asked;
  std::swap(problem.c, problem.k);
  std::swap(problem.input, problem.output);
  problem.rows = exchanged(asked.rows);
  problem.columns = exchanged(asked.columns);
  problem.epilogue.bias = false;
  return problem;
}

GradientSums WgradWgmmaTiling::sums_of(const Problem& asked) const {
  const Problem problem = problem_of(asked);
  return {exchanges ? GradientSums::Order::tap_c_k : GradientSums::Order::tap_k_c, joins_groups,
          problem.weight_elements(), sum_stride(problem)};
}

Problem WgradWgmmaTiling::unpacked_problem_of(const Problem& asked) const {
  return exchanges ? exchanged_operands(asked) : join_groups(asked, joins_groups);
}

Problem WgradWgmmaTiling::problem_of(const Problem& of_user) const {
  const Problem asked = unpacked_problem_of(of_user);
  if (!packs()) return asked;
  Problem problem = asked;
  if (takes_boxes()) {
    if (packs_x)
      problem.input = row_view(asked.input, asked.input_channels(), asked.rows.input, padded_columns(asked.columns));
    if (packs_dy)
      problem.output = row_view(asked.output, asked.output_channels(), asked.rows.output, asked.columns.output);
    return problem;
  }
  const bool joins = joins_images(*this, asked);
  problem.n = joins ? 1 : asked.n;
  problem.rows = {};
  problem.columns = {};
  problem.columns.input = problem.columns.output = asked.output_plane() * (joins ? asked.n : 1);
  const std::int64_t pixels = problem.columns.output, columns = asked.columns.output;
  if (packs_x) problem.input = plane_view(asked.input, pixels, asked.input_channels(), columns);
  if (packs_dy) problem.output = plane_view(asked.output, pixels, asked.output_channels(), columns);
  return problem;
}

PackPixelsTiling WgradWgmmaTiling::packing_of(const Problem& of_user) const {
  const Problem asked = unpacked_problem_of(of_user);
  const Problem problem = problem_of(of_user);
  const bool boxes = takes_boxes();
  PackPixelsTiling packing;
  const auto add = [&](const View& source, bool is_input, std::int64_t channels, std::int64_t rows,
                       std::int64_t columns) {
    PackedPixels tensor;
    tensor.source = source;
    tensor.is_input = is_input;
    tensor.n = asked.n;
    tensor.channels = channels;
    tensor.rows = rows;
    tensor.columns = tensor.packed_columns = columns;
    tensor.pitch = (is_input ? problem.input : problem.output).stride;
    if (!boxes && joins_images(*this, asked)) tensor.pitch.n = rows * columns;
    packing.add(tensor);
  };
  if (packs_x && boxes) {
    add(asked.input, /*is_input=*/true, asked.input_channels(), asked.rows.input, asked.columns.input);
    packing.tensor.front().packed_columns = padded_columns(asked.columns);
  } else if (packs_x) {
    View x = asked.input;
    x.stride.h *= asked.rows.stride;
    x.stride.w *= asked.columns.stride;
    add(x, /*is_input=*/true, asked.input_channels(), asked.rows.output, asked.columns.output);
  }
  if (packs_dy) add(asked.output, /*is_input=*/false, asked.output_channels(), asked.rows.output, asked.columns.output);
  return packing;
}

WgradGeometry::WgradGeometry(const Problem& problem, const WgradWgmmaTiling& tiling)
    : problem_(problem), tiling_(tiling) {
  std::int64_t least = shift_of(0), most = least;
  for (int s = 0; s < tiling_.block_s; ++s) {
    least = std::min(least, shift_of(s));
    most = std::max(most, shift_of(s));
    box_phases_.push_back(phase_of(s));
  }
  reach_ = most - least;
  std::sort(box_phases_.begin(), box_phases_.end());
  box_phases_.erase(std::unique(box_phases_.begin(), box_phases_.end()), box_phases_.end());
  // Vectors of x start at multiples of their size, rows of dy's pixels do so anyway.
  first_shift_ = tiling_.x_vectors ? least - positive_modulo(least, unit_pixels()) : least;
  for (int s = 0; s < tiling_.block_s; ++s)
    shifts_.push_back(static_cast<int>((shift_of(s) - first_shift_) % unit_pixels()));
  std::sort(shifts_.begin(), shifts_.end());
  shifts_.erase(std::unique(shifts_.begin(), shifts_.end()), shifts_.end());
  units_ = static_cast<int>(tiling_.row_pixels / unit_pixels());
  if (!tiling_.gathers()) units_ += static_cast<int>((most - first_shift_) / unit_pixels());
}

/// The column that tap `s` meets is (q + shift) * stride + phase.
std::int64_t WgradGeometry::shift_of(int s) const {
  const Axis& columns = problem_.columns;
  return (s * columns.dilation - columns.pad - phase_of(s)) / columns.stride;
}

int WgradGeometry::phase_of(int s) const {
  const Axis& columns = problem_.columns;
  return static_cast<int>(positive_modulo(s * columns.dilation - columns.pad, columns.stride));
}

TapOperand WgradGeometry::tap_operand(int s) const {
  const std::int64_t shift = shift_of(s) - first_shift_;
  if (tiling_.takes_boxes()) {
    const auto phase = std::find(box_phases_.begin(), box_phases_.end(), phase_of(s));
    return {static_cast<int>(phase - box_phases_.begin()), 0, static_cast<int>(shift)};
  }
  const auto copy = std::find(shifts_.begin(), shifts_.end(), shift % unit_pixels());
  return {phase_of(s), static_cast<int>(copy - shifts_.begin()), static_cast<int>(shift / unit_pixels())};
}

std::int64_t WgradGeometry::x_part_bytes() const {
  if (tiling_.takes_boxes()) return boxes() * box_bytes();
  if (tiling_.takes_planes()) return std::int64_t{pixel_parts()} * kSwizzledRowBytes * tiling_.block_c;
  if (tiling_.gathers()) return round_up(std::int64_t{16} * units_ * unit_rows(), 128);
  return round_up(std::int64_t{16} * phases() * static_cast<std::int64_t>(shifts_.size()) * units_ * unit_rows(), 128);
}

int WgradGeometry::dy_pitch() const {
  // Lanes read 8 output channels of 4 neighbouring pixels: different banks, either way.
  return problem_.output.layout() == Layout::nchw ? tiling_.row_pixels + unit_pixels() : tiling_.block_k() + 8;
}

std::int64_t WgradGeometry::stage_bytes() const {
  if (takes_dy_as_it_lies()) return std::int64_t{2} * tiling_.block_k() * tiling_.row_pixels;
  const bool nchw = problem_.output.layout() == Layout::nchw;
  return round_up(problem_.output.element_bytes() * (nchw ? tiling_.block_k() : tiling_.row_pixels) * dy_pitch(), 128);
}

}  // namespace jitconv::codegen
