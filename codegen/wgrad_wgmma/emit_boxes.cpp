// Parts of a wgrad_wgmma kernel whose operands are boxes of NHWC tensors, MN-major: what TMA brings, and
// how it is multiplied and summed up for db.
#include <vector>

#include "codegen/arithmetic.h"
#include "codegen/wgrad_wgmma/emit.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

/// A row of x has a box for each phase and each part of the channels. Phases are channels of another pixel: kStrideW
/// neighbours are one pixel of the map.
std::string copy_x_boxes(const WgradGeometry& geometry) {
  Lines lines;
  for (int box = 0; box < geometry.boxes(); ++box) {
    const int phase = geometry.box_phases()[static_cast<std::size_t>(box / geometry.parts())];
    const std::int64_t channel =
        phase * geometry.problem().input_channels() + box % geometry.parts() * std::int64_t{geometry.row_channels()};
    lines.add(fmt::format(
        "tensor_copy_4d_to_shared(row{}, &x, c_first{}, first_column, h, strip.n, "
        "x_full + slot);",
        box == 0 ? "" : fmt::format(" + {} * kBoxBytes", box), channel == 0 ? "" : fmt::format(" + {}", channel)));
  }
  return lines.text();
}

/// Places of 16 bytes from the start of a row of x to the first pixel of a tap.
std::int64_t place(const WgradGeometry& geometry, int s) {
  const TapOperand operand = geometry.tap_operand(s);
  return (operand.phase * geometry.parts() * geometry.box_bytes() + operand.unit * std::int64_t{geometry.row_bytes()}) /
         16;
}

}  // namespace

void add_box_constants(Constants& c, const WgradGeometry& geometry) {
  const WgradWgmmaTiling& tiling = geometry.tiling();
  c.group("Shared memory: a ring of rows of x, [box][pixel][c], and stages of dy, [64 output channels][pixel][k]");
  c.add("kXRows", tiling.x_rows).add("kXRowBytes", geometry.x_row_bytes());
  c.add("kBoxes", geometry.boxes(), "of a row of x: phases of its columns, parts of the channels");
  c.add("kBoxPixels", geometry.box_pixels()).add("kBoxBytes", geometry.box_bytes(), "from a box to the next");
  c.add("kRowBytes", geometry.row_bytes(), "of a pixel");
  c.add("kFirstShift", geometry.first_shift(), "pixels from q to the first of a box");
  c.add("kColumns", tiling.columns(),
        tiling.joins_taps ? "of an instruction: input channels of all taps of a filter row"
                          : "of an instruction: input channels");
  c.add("kXOperandStep", geometry.row_bytes(), "of 16 bytes, that the pixels of a multiplication take")
      .add("kDyOperandStep", 128);
  c.add("kStages", tiling.stages).add("kStageElements", geometry.stage_bytes() / 2);
}

TensorMapShape box_of_x(const WgradGeometry& geometry) {
  const Problem& problem = geometry.problem();
  const View::Strides& x = problem.input.stride;
  const std::int64_t stride = problem.columns.stride;
  TensorMapShape map;
  map.rank = 4;
  map.element_bytes = 2;
  map.extents = {stride * problem.input_channels(), ceil_div(problem.columns.input, stride), problem.rows.input,
                 problem.n};
  map.strides = {1, stride * x.w, x.h, x.n};
  map.box = {geometry.row_channels(), geometry.box_pixels(), 1, 1};
  map.swizzle_bytes = geometry.row_bytes();
  return map;
}

TensorMapShape box_of_dy(const WgradGeometry& geometry) {
  const Problem& problem = geometry.problem();
  TensorMapShape map;
  map.rank = 3;
  map.element_bytes = 2;
  map.extents = {problem.output_channels(), problem.columns.output, problem.n * problem.rows.output};
  map.strides = {1, problem.output.stride.w, problem.output.stride.h};
  map.box = {64, geometry.tiling().row_pixels, 1};
  map.swizzle_bytes = 128;
  return map;
}

std::string box_steps(const WgradGeometry& geometry) {
  return fill_template(embedded_text("wgrad_wgmma/steps_boxes.cu.in"),
                       {{"await_previous", await_packing(geometry.tiling())},
                        {"copy_x", copy_x_boxes(geometry)},
                        {"s_offset", geometry.tiles_s() == 1 ? "" : " + s_first * kDilationW"}});
}

std::string box_operands(const WgradGeometry& geometry) {
  const WgradWgmmaTiling& tiling = geometry.tiling();
  // What follows the channels of a row: those of the next tap, or the next part of the channels.
  const std::string_view next = tiling.joins_taps ? "kDilationW * kRowBytes" : "kBoxBytes";
  Lines lines;
  lines.add("// Adding to an operand moves it by 16 bytes.");
  for (int r = 0; r < tiling.block_r; ++r)
    lines.add(
        fmt::format("const MatrixOperand x_r{0} = pixel_operand<kRowBytes>(x_rows + (x_row - kBlockR + {0}) % "
                    "kXRows * kXRowBytes, {1}, kCoreRows * kRowBytes);",
                    r, next));
  return lines.text();
}

std::string box_multiplications(const WgradGeometry& geometry, const std::vector<WgradTap>& products) {
  const bool joins = geometry.tiling().joins_taps;
  Lines lines;
  lines.add("// begin pixels");
  lines.add("const MatrixOperand dy_pixels = pixel_operand<kSwizzleBytes>(dy_stage, 0, kCoreRows * kSwizzleBytes);");
  lines.add("multiply_begin();");
  lines.add("#pragma unroll");
  lines.add("for (int block = 0; block < kRowPixels / kDepth; ++block) {");
  lines.add("  const int accumulate = block == 0 ? accumulate_first : 1;");
  for (std::size_t i = 0; i < products.size(); ++i) {
    const auto [r, s] = products[i];
    const std::int64_t at = place(geometry, s);
    lines.add(
        fmt::format("  multiply_pixels(sum[{}], dy_pixels + block * kDyOperandStep, x_r{} + {}block * kXOperandStep, "
                    "accumulate);{}",
                    i, r, at == 0 ? "" : fmt::format("{} + ", at), joins ? "" : fmt::format("  // s{}", s)));
  }
  lines.add("}");
  lines.add("multiply_commit();");
  if (geometry.problem().epilogue.bias) {
    std::string bias(embedded_text("wgrad_wgmma/bias_of_boxes.cu.in"));
    bias.pop_back();
    lines.add(bias);
  }
  lines.add("multiply_wait<1>();");
  lines.add("release_previous();");
  lines.add("// end pixels");
  return lines.text();
}

}  // namespace jitconv::codegen
