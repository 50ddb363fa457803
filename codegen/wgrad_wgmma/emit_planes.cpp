// Parts of a wgrad_wgmma kernel whose operands are runs of planes, K-major: what TMA brings, and how it is multiplied
// and summed up for db. Of 1x1 filters only.
#include "codegen/wgrad_wgmma/emit.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

/// Runs of as many pixels as a swizzled row has, of each of a block's channels.
TensorMapShape swizzled_planes(const WgradGeometry& geometry, const View& view, std::int64_t channels, int block) {
  const Problem& problem = geometry.problem();
  TensorMapShape map;
  map.rank = 3;
  map.element_bytes = static_cast<int>(view.element_bytes());
  map.extents = {problem.columns.output, channels, problem.n};
  map.strides = {1, view.stride.c, view.stride.n};
  map.box = {geometry.part_pixels(), block, 1};
  map.swizzle_bytes = geometry.part_pixels() * map.element_bytes;
  map.rounds_to_tf32 = view.type == DataType::f32;
  return map;
}

/// A step's copies of dy.
std::string copy_dy_planes(const WgradGeometry& geometry) {
  if (geometry.takes_dy_as_it_lies())
    return "#pragma unroll\n"
           "for (int part = 0; part < kParts; ++part)\n"
           "  tensor_copy_3d_to_shared(stage_of_dy + part * (kBlockK * kPartPixels), &dy, strip.q_first + part * "
           "kPartPixels,\n"
           "                           k_first, strip.n, dy_full + stage);\n";
  return fmt::format(
      "tensor_copy_3d_to_shared(stage_of_dy, &dy, {}, strip.n, dy_full + stage);\n",
      geometry.problem().output.layout() == Layout::nchw ? "strip.q_first, k_first" : "k_first, strip.q_first");
}

}  // namespace

std::string await_packing(const WgradWgmmaTiling& tiling) {
  return tiling.packs() ? "wait_for_previous_kernel();\n" : "";
}

void add_plane_constants(Constants& c, const WgradGeometry& geometry) {
  const WgradWgmmaTiling& tiling = geometry.tiling();
  const std::int64_t element = geometry.problem().input.element_bytes();
  const bool as_it_lies = geometry.takes_dy_as_it_lies();
  c.group(fmt::format("Shared memory: a ring of runs of x, [part][c][pixel], and stages of dy{}",
                      as_it_lies ? ", [part][k][pixel]" : ""));
  c.add("kXRows", tiling.x_rows).add("kXRowBytes", geometry.x_row_bytes());
  c.add("kParts", geometry.pixel_parts(), "of a run").add("kPartPixels", geometry.part_pixels(), "a swizzled row");
  c.add("kPartBlocks", geometry.part_pixels() / geometry.depth(), "multiplications of a part");
  c.add("kPartBytes", 128 * std::int64_t{tiling.block_c}, "of x");
  c.add("kStages", tiling.stages).add("kStageElements", geometry.stage_bytes() / element);
  if (as_it_lies) {
    c.add("kDyBytes", geometry.stage_bytes());
    return;
  }
  const bool nchw = geometry.problem().output.layout() == Layout::nchw;
  c.add("kDyPitch", geometry.dy_pitch(), "elements");
  c.add("kDyBytes", element * geometry.dy_pitch() * (nchw ? tiling.block_k() : tiling.row_pixels));
}

TensorMapShape plane_of_x(const WgradGeometry& geometry) {
  const Problem& problem = geometry.problem();
  return swizzled_planes(geometry, problem.input, problem.input_channels(), geometry.tiling().block_c);
}

TensorMapShape plane_of_dy(const WgradGeometry& geometry) {
  const Problem& problem = geometry.problem();
  const WgradWgmmaTiling& tiling = geometry.tiling();
  TensorMapShape map = swizzled_planes(geometry, problem.output, problem.output_channels(), tiling.block_k());
  if (geometry.takes_dy_as_it_lies()) return map;
  // Consumers round it, for db is the sum of what is not rounded.
  map.swizzle_bytes = 0;
  map.rounds_to_tf32 = false;
  map.box = {geometry.dy_pitch(), tiling.block_k(), 1};
  if (problem.output.layout() == Layout::nchw) return map;
  map.extents = {problem.output_channels(), problem.columns.output, problem.n};
  map.strides = {1, problem.output.stride.w, problem.output.stride.n};
  map.box = {geometry.dy_pitch(), tiling.row_pixels, 1};
  return map;
}

std::string plane_steps(const WgradGeometry& geometry) {
  return fill_template(embedded_text("wgrad_wgmma/steps_planes.cu.in"),
                       {{"await_previous", await_packing(geometry.tiling())}, {"copy_dy", copy_dy_planes(geometry)}});
}

std::string plane_operand() {
  return "const MatrixOperand x_r0 = swizzled_operand<kSwizzleBytes>(x_rows + (x_row - 1) % kXRows * kXRowBytes);\n";
}

std::string plane_multiplications(const WgradGeometry& geometry) {
  std::string text(embedded_text("wgrad_wgmma/multiply_planes.cu.in"));
  return fill_template(
      text, {{"sum_bias",
              geometry.problem().epilogue.bias ? std::string(embedded_text("wgrad_wgmma/bias_of_planes.cu.in")) : ""}});
}

}  // namespace jitconv::codegen
