"""Mutants of the wgmma_rows family: strips, rows that consumers take in turn, and their stores."""
from mutants.mutant import File

tiling = File("codegen/wgmma_rows/tiling.cpp", "wgmma_rows_tiling")
header = File("codegen/wgmma_rows/tiling.h", "wgmma_rows_numbers")
candidates = File("codegen/wgmma_rows/candidates.cpp", "wgmma_rows_candidates")
emit = File("codegen/wgmma_rows/emit.cpp", "emit_wgmma_rows")
kernel = File("templates/wgmma_rows/kernel.cu.in", "wgmma_rows")
store = File("templates/wgmma_rows/store.cu.in", "wgmma_rows_store")
store_vectors = File("templates/wgmma_rows/store_vectors.cu.in", "wgmma_rows_store_vectors")
store_folded = File("templates/wgmma_rows/store_folded.cu.in", "wgmma_rows_store_folded")
store_channels = File("templates/wgmma_rows/store_channels.cu.in", "wgmma_rows_store_channels")

MUTANTS = [
    # Tiles and the rows of a residue.
    kernel("rows_of_other_residues", "first_row = residue + first * kDilationH;", "first_row = residue + first;",
           "of dilated filters, tiles compute rows of other tiles"),
    kernel("residue_too_long", "(kP - residue + kDilationH - 1) / kDilationH - first", "kTilesOfResidue * kTileRows - first",
           "rows behind the last are stored"),
    kernel("row_of_padding", "const int h = tile.first_row + row * kDilationH - kPadTop;",
           "const int h = tile.first_row + row * kDilationH;", "outputs are those of rows above"),
    kernel("rows_not_dilated", "const int h = tile.first_row + row * kDilationH - kPadTop;",
           "const int h = tile.first_row + row - kPadTop;", "dilated taps meet neighbouring rows"),
    kernel("rows_above_read", "static_cast<unsigned>(h) < kH, tile.first_column", "h < kH, tile.first_column",
           "rows above the first are read before x"),
    kernel("columns_before_read", "static_cast<unsigned>(w) < kW", "w < kW", "the end of a row is taken for padding"),
    tiling("rows_beyond_the_last", "ceil_div(problem_.rows.output, residues())", "problem_.rows.output / residues()",
           "the last rows are not computed"),
    # Who multiplies which row.
    kernel("consumers_begin_alike", "skip_rows(row);\n", "", "a consumer multiplies its rows with other rows' weights"),
    kernel("rows_behind_not_passed", "      skip_rows(tile.rows + kR - 1 - row);\n", "",
           "consumers multiply the next tile's pixels too early"),
    kernel("turn_not_kept", "first_consumer = (first_consumer + tile.rows) % kConsumers;", "first_consumer = 0;",
           "where a tile's rows do not come out even, two consumers wait for each other"),
    kernel("passed_by_one_warp", "        __syncwarp();\n        if (releases_stage) barrier_arrive(empty + stage);\n        next_stage();",
           "        next_stage();", "producer warps wait for a stage for ever"),
    kernel("given_back_early", "multiply_wait<1>();", "multiply_wait<2>();",
           "a stage is loaded again while it is being multiplied"),
    kernel("last_stage_kept", "        if (releases_stage) barrier_arrive(empty + previous_stage);\n        @store@",
           "        @store@", "producer warps wait for a stage for ever"),
    kernel("sums_not_awaited", "        multiply_wait<0>();\n        settle(sum);", "        settle(sum);",
           "sums are stored before they are complete"),
    emit("sums_not_cleared", 'unit == 0 ? "r + chunk != 0" : "1"', 'unit == 0 ? "r != 0" : "1"',
         "channels but those of the last chunk are left out of the first filter row"),
    emit("filter_rows_exchanged", '"    matrix_operand({} + r * kRowWeightBytes, kBlockRows * kOperandRowBytes);\\n"',
         '"    matrix_operand({} + (kR - 1 - r) * kRowWeightBytes, kBlockRows * kOperandRowBytes);\\n"', "filters are upside down"),
    emit("slices_of_columns", "slice * geometry.strip_pixels() + s *", "slice * geometry.tiling().columns + s *",
         "channels are those of other pixels"),
    emit("taps_not_dilated", "+ s * geometry.problem().columns.dilation,", "+ s,", "dilated taps meet neighbours"),
    emit("channels_behind_read", ' && c_first + {} < kChannels", c)', '", c - c)', "channels of the next image are read"),
    emit("weights_not_awaited", 'keeps ? "barrier_wait(weights_arrival, 0);" : ""', 'keeps ? "" : ""',
         "pixels are multiplied before there are weights"),
    emit("packing_not_awaited", ': "if (lane == 0) wait_for_previous_kernel();"', ': ""',
         "weights are copied before they are packed"),
    # Outputs.
    header("fold_not_computed", "(fold().groups() - 1) * problem_.columns.dilation", "0 * problem_.columns.dilation",
           "the last outputs of a strip lack filter columns"),
    header("slack_not_computed", "lead() == 0 ? 0 : sector_elements() - 1", "0", "late outputs of a strip are not computed"),
    tiling("lead_forgotten", "problem_.columns.output % sector == 0 ? 0 : sector", "0 * sector",
           "vectors are not aligned where rows begin amid sectors"),
    tiling("staging_too_short", "staged_before() + tiling_.columns + lead()", "tiling_.columns / 2",
           "channels are staged over each other"),
    store("turn_not_awaited", "             (own_stores + (consumer == 0 ? 1 : 0)) % 2);", "             1);",
          "outputs are staged over those of the row before"),
    store("row_of_another_image", "(static_cast<long long>(tile.n) * kGroupK * kP + p)", "(static_cast<long long>(tile.n) * kP + p)",
          "images are stored over each other"),
    store("late_of_first_channel", " + static_cast<unsigned>(k) * kPlane) %", ") %", "vectors of other channels are not aligned"),
    store_vectors("first_strip_late", "tile.first_column == 0 ? 0 : offset_k", "offset_k", "the first outputs of a row are missing"),
    store_vectors("strip_behind_the_row", "kQ - tile.first_column < kWindow + offset_k ? kQ - tile.first_column : kWindow + offset_k",
                  "kWindow + offset_k", "the last strip is stored over the next row"),
    store_vectors("channels_behind_stored", "if (k_first + k >= kGroupK) break;", "", "channels behind the last are stored"),
    store_folded("columns_not_shifted", "staged_row - filter_column * kDilationW", "staged_row - filter_column",
                 "of dilated filters, sums are added to other outputs"),
    store_folded("columns_side_by_side", "filter_column = lane_row(lane) / kWarpK + half * (kFoldedColumns / 2)",
                 "filter_column = lane_row(lane) / kWarpK + half", "sums are added to other outputs"),
    store_channels("halves_alike", "warp_first_row(warp) + half * kHalfRows;", "warp_first_row(warp);", "eight channels of sixteen are stored twice"),
    candidates("too_many_channels", "problem_.k * folded > WgmmaRowsTiling::kRows", "problem_.k > WgmmaRowsTiling::kRows",
               "channels that have no rows of a multiplication are not computed"),
    candidates("stride_ignored", "if (problem.rows.stride != 1 || problem.columns.stride != 1)",
               "if (problem.rows.stride < 1 || problem.columns.stride < 1)", "strided filters are computed with stride 1"),
    candidates("groups_ignored", "if (problem.groups > 1) return", "if (problem.groups < 1) return",
               "all groups have the first one's channels"),
    candidates("fewer_stages_than_warps", "kFewestStages = WgmmaRowsTiling::kProducerWarps;", "kFewestStages = 3;",
               "producer warps overtake each other at a stage and fill it before it is empty"),
]
