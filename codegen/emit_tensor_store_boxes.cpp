// The tensor family's store of boxes of y (NHWC) by the copy engine: see templates/tensor_store_boxes.cu.in.
#include "codegen/emit_tensor.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

/// Lines that ask for the copy of a staged box. Behind the last row is another image.
std::string copy_box(const ConvSpec& spec, const TensorTiling& tiling) {
  const bool may_be_empty = tiling.runs() > 1;
  if (TensorTiling::boxes_cross_rows(spec))
    return "tensor_copy_to_global(&y_map, 0, row_of_channels, run_first + first, tile.n, staged);\n";
  const std::string copy =
      "tensor_copy_to_global(&y_map, 0, row_of_channels, column_first + first, image_row, staged);\n";
  return may_be_empty ? "if (row < kP)\n  " + copy : copy;
}

/// Lines that find where a run's boxes go, but for the channels.
std::string place(const ConvSpec& spec) {
  if (TensorTiling::boxes_cross_rows(spec)) return {};
  return "const int row = run_first / kRunRow, column_first = run_first - row * kRunRow, image_row = tile.n * kP + "
         "row;\n";
}

}  // namespace

// Channels are two axes, so that a position's rows of 128 bytes, of which swizzled boxes are, follow each other: of
// floats, the copy engine then writes 256 bytes at a time (B in TF32 2.54 ms, 2.62 a row at a time).
TensorMapShape output_map(const ConvSpec& spec, const TensorTiling& tiling) {
  const TensorShape out = output_shape(spec);
  const std::int64_t row = TensorTiling::box_row_channels(spec), rows = spec.weight.k / row;
  const bool crosses = TensorTiling::boxes_cross_rows(spec);
  return {.rank = 4,
          .element_bytes = static_cast<int>(element_bytes(spec.dtype)),
          .extents = {row, rows, crosses ? out.h * out.w : out.w, crosses ? out.n : out.n * out.h},
          .strides = {1, row, spec.weight.k, spec.weight.k * out.w * (crosses ? out.h : 1)},
          .box = {static_cast<int>(row), TensorTiling::box_rows(spec), tiling.store_columns(spec), 1},
          .swizzle_bytes = 128};
}

void add_tensor_store_boxes_constants(Constants& c, const ConvSpec& spec, const TensorTiling& tiling) {
  c.add("kStoreColumns", tiling.store_columns(spec), "positions of a box");
  c.add("kRowChannels", TensorTiling::box_row_channels(spec), "128 bytes")
      .add("kBoxRows", TensorTiling::box_rows(spec), "of a position");
  c.add("kPieceChannels", 16 / element_bytes(spec.dtype), "16 bytes");
  c.add("kStagedBoxes", tiling.staged_boxes, "of a consumer")
      .add("kBoxElements", tiling.box_bytes(spec) / element_bytes(spec.dtype));
}

Holes tensor_store_boxes_holes(const ConvSpec& spec, const TensorTiling& tiling, const std::string& channel_values) {
  const std::string stage =
      tiling.staged_bytes(spec) == 2
          ? tensor_stage_transposed(
                spec, tiling, "staged + box_place(i + lane / 16 * 8 + lane % 8, warp % 4 * 16 + lane / 8 % 2 * 8)")
          : fill_template(embedded_text("tensor_stage_box.cu.in"), {{"epilogue", epilogue_of_staged(spec, tiling)}});
  return {{"staged", "Element"},
          {"boxes",
           "const bool asks = threadIdx.x % 128 == 0;  // the copy engine to store\n"
           "int box = 0;  // that is staged next"},
          {"store_functions", std::string(embedded_text("tensor_box_place.cu.in"))},
          {"clear_staging", ""},
          {"read_staged", ""},
          {"channel_values", channel_values},
          {"await_stores", "if (asks) bulk_stores_wait_read<0>();  // before the block ends"},
          {"store", fill_template(embedded_text("tensor_store_boxes.cu.in"),
                                  {{"stage", stage}, {"copy", copy_box(spec, tiling)}, {"place", place(spec)}})}};
}

}  // namespace jitconv::codegen
