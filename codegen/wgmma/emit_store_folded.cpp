// The wgmma family's store of folded columns: see templates/wgmma/store_folded.cu.in. How the sums of filter columns
// are added where they are staged, and how the channels of an NHWC position are written; NCHW runs are
// emit_store_nchw.cpp's.
#include "codegen/text/epilogue.h"
#include "codegen/text/staging.h"
#include "codegen/wgmma/emit.h"
#include "codegen/wgmma/store.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

/// Lines that stage a lane's sums of a filter column, where `row_ends` rows of outputs end among them.
std::string stage_sums(const WgmmaGeometry& geometry, int row_ends) {
  FoldedPlaces places;
  if (row_ends == 1) {
    places = {"const int output = column < kQ - column_first ? column : column - kRowPadding;",
              "column < kQ - column_first || column >= kPitch - column_first"};
  } else if (row_ends > 1) {
    places = {"const int rows = (column_first + column) / kPitch, output = column - rows * kRowPadding;",
              "column_first + column - rows * kPitch < kQ"};
  }
  return stage_folded_sums(epilogue_parts(geometry).before, places);
}

/// The same, with fewer questions where all of a run lies in one row.
std::string stage_folded(const WgmmaGeometry& geometry) {
  const int ends = geometry.row_ends();
  if (ends == 0 || geometry.problem().columns.output < geometry.tiling().tile.columns)
    return stage_sums(geometry, ends);
  return "if (run_first % kQ + kColumns <= kQ) {\n" + indented(stage_sums(geometry, 0)) + "} else {\n" +
         indented(stage_sums(geometry, ends)) + "}\n";
}

/// What a lane writes of a position: its channels, each the sum of several rows where there are more than two columns.
std::string store_positions(const WgmmaGeometry& geometry) {
  return fill_template(
      embedded_text("wgmma/store_folded_positions.cu.in"),
      {{"end_of_channels", end_of_channels(geometry)},
       {"epilogue", epilogue_lines(epilogue_parts(geometry).after,
                                   {.residual = residual_at("y_run - y + output * (kGroups * kGroupK) + k + e")})}});
}

}  // namespace

std::string store_folded(const WgmmaGeometry& geometry, const FoldedStore& where) {
  const bool zeros = geometry.fold().groups() < geometry.tiling().tile.folded_columns;
  return fill_template(embedded_text("wgmma/store_folded.cu.in"),
                       {{"staged_row", where.staged_row},
                        {"column_first", column_first(geometry, " - filter_column * kDilationW")},
                        {"skip_zeros", zeros ? "if (filter_column >= kS) continue;  // has no weights" : ""},
                        {"stage_sums", stage_folded(geometry)},
                        {"store", where.store}});
}

Holes store_folded_nhwc_holes(const WgmmaGeometry& geometry, const std::string& channel_values) {
  return {
      {"staged", "float"},
      {"boxes", ""},
      {"store_functions", ""},
      {"clear_staging", "// Sums beside a run are added to what no column has written.\n" + std::string(kClearStaging)},
      {"read_staged", ""},
      {"channel_values", channel_values},
      {"await_stores", ""},
      {"store", store_folded(geometry, {.staged_row = "Staged* const staged_row = staged + (lane_row(lane) * "
                                                      "kStagingPitch + accumulator_column(lane));",
                                        .store = store_positions(geometry)})}};
}

}  // namespace jitconv::codegen
