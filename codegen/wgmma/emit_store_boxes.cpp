// The wgmma family's store of boxes of y (NHWC) by TMA: see templates/wgmma/store_boxes.cu.in.
#include "codegen/wgmma/emit.h"
#include "codegen/wgmma/store.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

/// Lines that issue the copy of a staged box. Behind the last row is another image.
std::string copy_box(const WgmmaGeometry& geometry) {
  const WgmmaTiling& tiling = geometry.tiling();
  const bool may_be_empty = tiling.runs() > 1;
  if (geometry.boxes_cross_rows())
    return "tensor_copy_to_global(&y_map, 0, row_of_channels, run_first + first, tile.n, staged);\n";
  const std::string copy =
      "tensor_copy_to_global(&y_map, 0, row_of_channels, column_first + first, image_row, staged);\n";
  return may_be_empty ? "if (row < kP)\n  " + copy : copy;
}

/// Lines that find where a run's boxes go, but for the channels.
std::string place(const WgmmaGeometry& geometry) {
  if (geometry.boxes_cross_rows()) return {};
  return "const int row = run_first / kRunRow, column_first = run_first - row * kRunRow, image_row = tile.n * kP + "
         "row;\n";
}

}  // namespace

void add_store_boxes_constants(Constants& c, const WgmmaGeometry& geometry) {
  const Problem& problem = geometry.problem();
  const WgmmaTiling& tiling = geometry.tiling();
  const WgmmaStore store(geometry);
  c.add("kStoreColumns", store.store_columns(), "positions of a box");
  c.add("kRowChannels", geometry.box_row_channels(), "128 bytes").add("kBoxRows", geometry.box_rows(), "of a position");
  c.add("kPieceChannels", 16 / problem.input.element_bytes(), "16 bytes");
  c.add("kStagedBoxes", tiling.staged_boxes, "of a consumer")
      .add("kBoxElements", store.box_bytes() / problem.input.element_bytes());
}

Holes store_boxes_holes(const WgmmaGeometry& geometry, const std::string& channel_values) {
  const std::string stage =
      WgmmaStore(geometry).staged_bytes() == 2
          ? stage_transposed(
                geometry,
                "staged + box_place(i + transposed_column(lane), warp_first_row(warp) + transposed_first_row(lane))")
          : fill_template(embedded_text("wgmma/stage_box.cu.in"), {{"epilogue", epilogue_of_staged(geometry)}});
  return {{"staged", "Element"},
          {"boxes",
           "const bool issues_stores = threadIdx.x % kWarpgroupThreads == 0;  // by TMA\n"
           "int box = 0;  // that is staged next"},
          {"store_functions", std::string(embedded_text("wgmma/box_place.cu.in"))},
          {"clear_staging", ""},
          {"read_staged", ""},
          {"channel_values", channel_values},
          {"await_stores", "if (issues_stores) bulk_stores_wait_read<0>();  // before the block ends"},
          {"store", fill_template(embedded_text("wgmma/store_boxes.cu.in"),
                                  {{"stage", stage}, {"copy", copy_box(geometry)}, {"place", place(geometry)}})}};
}

}  // namespace jitconv::codegen
