// See wgrad_wgmma/tiling.h.
#include "codegen/wgrad_wgmma/tiling.h"

#include <algorithm>

#include "codegen/gather_patches/tiling.h"

namespace jitconv::codegen {
namespace {

/// Whether pixels of all images are one row, where operands are planes. x must be packed for that; pixels of dy are
/// neighbours already, or are packed, too.
bool joins_images(const WgradWgmmaTiling& tiling, const Problem& asked) {
  return tiling.packs_x && (tiling.packs_dy || asked.output.layout() == Layout::nhwc);
}

/// Whether x is a dense tensor, and neither a view of one that leaves out what a stride skips nor patches that end
/// inside 16 bytes. Such a view may be x, but not dy, whose pixels are taken to be neighbours.
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

/// The same whose rows are phases of columns, each of whole operand rows.
View phase_view(const View& asked, std::int64_t channels, std::int64_t rows, const Axis& columns) {
  const std::int64_t row =
      columns.stride * round_up(ceil_div(columns.input, columns.stride), 16 / asked.element_bytes());
  return {Tensor::scratch, asked.type, {channels * rows * row, rows * row, row, 1}};
}

/// The same as NHWC rows.
View row_view(const View& asked, std::int64_t channels, std::int64_t rows, std::int64_t columns) {
  return {Tensor::scratch, asked.type, dense_strides(Layout::nhwc, channels, rows, columns)};
}

/// Columns of dy from an image to the next in a row of all: as many as keep taps out of other images' pixels of x,
/// which are `stride` times as far apart.
std::int64_t columns_of_image(const Axis& columns) {
  const std::int64_t behind = (columns.output - 1) * columns.stride + columns.reach() - columns.pad - columns.input + 1;
  return std::max(columns.output,
                  ceil_div(columns.input + std::max({columns.pad, behind, std::int64_t{0}}), columns.stride));
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

Problem WgradWgmmaTiling::asked_of(const Problem& given) const {
  return gathers_patches ? patch_problem(given) : given;
}

Problem WgradWgmmaTiling::problem_of(const Problem& of_user) const {
  const Problem asked = unpacked_problem_of(of_user);
  if (!packs()) return asked;
  Problem problem = asked;
  Axis& columns = problem.columns;
  if (joins_rows) {
    problem.n = 1;
    columns.output = asked.n * columns_of_image(asked.columns);
    columns.input = columns.output * columns.stride;
  }
  if (takes_boxes()) {
    if (packs_x)
      problem.input = row_view(asked.input, asked.input_channels(), asked.rows.input, padded_columns(columns));
    if (packs_dy) problem.output = row_view(asked.output, asked.output_channels(), asked.rows.output, columns.output);
    return problem;
  }
  if (orders()) {
    if (packs_x) problem.input = phase_view(asked.input, asked.input_channels(), asked.rows.input, columns);
    if (packs_dy)
      problem.output = plane_view(asked.output, problem.output_plane(), asked.output_channels(), columns.output);
    return problem;
  }
  const std::int64_t dy_columns = asked.columns.output, dy_pixels = asked.output_plane();
  const bool joins = joins_images(*this, asked);
  problem.n = joins ? 1 : asked.n;
  problem.rows = {};
  problem.columns = {};
  problem.columns.input = problem.columns.output = dy_pixels * (joins ? asked.n : 1);
  const std::int64_t pixels = problem.columns.output;
  if (packs_x) problem.input = plane_view(asked.input, pixels, asked.input_channels(), dy_columns);
  if (packs_dy) problem.output = plane_view(asked.output, pixels, asked.output_channels(), dy_columns);
  return problem;
}

PackedPixels WgradWgmmaTiling::packed_x(const Problem& asked, const Problem& problem) const {
  PackedPixels x;
  x.source = asked.input;
  x.n = asked.n;
  x.channels = asked.input_channels();
  x.pitch = problem.input.stride;
  const std::int64_t stride = asked.columns.stride;
  if (takes_planes()) {  // but for what the stride skips
    x.source.stride.h *= asked.rows.stride;
    x.source.stride.w *= stride;
    x.rows = asked.rows.output;
    x.columns = x.packed_columns = asked.columns.output;
    if (joins_images(*this, asked)) x.pitch.n = asked.output_plane();
    return x;
  }
  x.rows = asked.rows.input;
  x.columns = asked.columns.input;
  x.packed_columns = takes_boxes() ? padded_columns(asked.columns) : x.pitch.h;
  if (orders()) {
    x.column_phases = stride;
    x.phase_pitch = x.pitch.h / stride;
  }
  if (joins_rows) {
    x.packed_columns = stride * columns_of_image(asked.columns);
    x.pitch.n = x.packed_columns / x.column_phases * x.pitch.w;
  }
  return x;
}

PackedPixels WgradWgmmaTiling::packed_dy(const Problem& asked, const Problem& problem) const {
  PackedPixels dy;
  dy.source = asked.output;
  dy.is_input = false;
  dy.n = asked.n;
  dy.channels = asked.output_channels();
  dy.rows = asked.rows.output;
  dy.columns = asked.columns.output;
  dy.packed_columns = joins_rows ? columns_of_image(asked.columns) : dy.columns;
  dy.pitch = problem.output.stride;
  if (joins_rows) dy.pitch.n = dy.packed_columns * dy.pitch.w;
  if (takes_planes() && joins_images(*this, asked)) dy.pitch.n = asked.output_plane();
  return dy;
}

PackPixelsTiling WgradWgmmaTiling::packing_of(const Problem& of_user) const {
  const Problem asked = unpacked_problem_of(of_user);
  const Problem problem = problem_of(of_user);
  PackPixelsTiling packing;
  if (packs_x) packing.add(packed_x(asked, problem));
  if (packs_dy) packing.add(packed_dy(asked, problem));
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
  // Lanes read 8 output channels of 4 neighbouring pixels: different banks, either way. The boxes of a period all begin
  // at bank 0, so each brings a unit more in front of its pixels than the one before, and rows have room for that.
  return problem_.output.layout() == Layout::nchw ? tiling_.row_pixels + unit_pixels() * static_cast<int>(dy_period())
                                                  : tiling_.block_k() + 8;
}

std::int64_t WgradGeometry::stage_bytes() const {
  if (takes_dy_as_it_lies()) return std::int64_t{2} * tiling_.block_k() * tiling_.row_pixels;
  const bool nchw = problem_.output.layout() == Layout::nchw;
  return round_up(problem_.output.element_bytes() * (nchw ? tiling_.block_k() : tiling_.row_pixels) * dy_pitch(), 128);
}

}  // namespace jitconv::codegen
