"""Mutants of strided data gradients whose pixels the wgmma family stores itself, phase by phase."""
from mutants.mutant import File

phases = File("codegen/phases.cpp", "phases")
phases_text = File("codegen/text/phases_text.cpp", "emit_phases")
plan = File("codegen/plan.cpp", "plan")
limits = File("codegen/wgmma/limits.cpp", "wgmma_limits")
grid = File("codegen/wgmma/grid.cpp", "wgmma_grid")
geometry = File("codegen/wgmma/geometry.cpp", "wgmma_geometry")
store_plan = File("codegen/wgmma/store.cpp", "wgmma_store")
emit = File("codegen/wgmma/emit.cpp", "emit_wgmma")
emit_pixels = File("codegen/wgmma/emit_store_pixels.cpp", "emit_wgmma_store_pixels")
zero_pixels = File("templates/wgmma/zero_pixels.cu.in", "emit_wgmma_store_pixels")
zero_rows = File("templates/wgmma/zero_rows.cu.in", "emit_wgmma_store_pixels")
store_pixels = File("templates/wgmma/store_pixels.cu.in", "wgmma_store_pixels")

pack = File("codegen/pack_weights/emit_gradient.cpp", "emit_pack_gradient")
pack_plan = File("codegen/pack_weights/tiling.cpp", "pack_weights")
family = File("codegen/wgmma/family.cpp", "wgmma_family")
load_weights = File("codegen/wgmma/emit_load_weights.cpp", "emit_wgmma_load_weights")

MUTANTS = [
    # Which gradients can be stored so.
    phases("pixels_without_taps_not_written", "if (!sub_pixel.is_sub_pixel() || !writes_all(rows) || ",
           "if (!sub_pixel.is_sub_pixel() || ", "rows of dx that meet no tap are not written"),
    phases("zeros_before_the_phase", "axis.list[0].pixel == 0 && ", "", "the first pixels meet no tap and are not written"),
    phases("zeros_without_epilogue", " && epilogue == Epilogue{}", "", "pixels that meet no tap lack the bias"),
    limits("phases_zeros_beyond_the_row", " && columns.pixels % columns.stride == 0", "",
           "NCHW: the zeros beside the last pixel lie in the next row"),
    zero_pixels("zeros_behind_the_last_row", "const bool exists = stored && h + below < kPixelsH && ",
                "const bool exists = stored && ", "zeros behind the last row lie in the next image"),
    zero_rows("zero_rows_missing", "int below = 1; below < kRowStride", "int below = 2; below < kRowStride",
                "NCHW: rows that meet no tap are not written"),
    limits("phases_staged_pixels_of_two_phases", "sub_pixel.k / rows.count() % WgmmaStore::kStagedChannels != 0", "false",
           "NCHW: channels that a warp stages are of two phases of rows"),
    phases("stored_without_epilogue", "  problem.epilogue = gradient.epilogue;\n", "",
           "dx lacks its bias and its activation"),
    plan("interleaved_and_stored", "interleaves = has_phases && !stores_pixels(kernel.tiling);",
         "interleaves = has_phases;", "what the kernel stored as pixels is read as sums"),
    # Which weights and taps the phases have.
    phases_text("channel_of_inner_columns", '" / kColumnPhases" : ""', '"" : ""',
                "NCHW: phases have the weights of other channels"),
    pack("column_of_outer_phases", 'innermost ? "lane % kColumnPhases" : "phase % kColumnPhases"',
         '"phase % kColumnPhases"', "NCHW: all phases of columns have the taps of one"),
    pack("row_of_all_phases", 'innermost ? "phase" : "phase / kColumnPhases"', '"phase / kColumnPhases"',
         "NCHW: phases of rows have the taps of the first"),
    pack("channel_of_inner_columns_packed", '"lane / kColumnPhases" : "lane"', '"lane" : "lane"',
         "NCHW: phases have the weights of channels behind theirs"),
    pack("first_channel_among_phases", '"first_channel_of_dx * kColumnPhases" : "first_channel_of_dx"',
         '"first_channel_of_dx" : "first_channel_of_dx"', "NCHW: blocks write the rows of other channels"),
    pack("rows_of_next_phase", "phase_rows % tiling.block_rows(problem) != 0", "false && tiling.parts",
         "channels that a phase does not have are written over those of the next"),
    pack("rows_of_next_tiles", "  const bool of_tiles =\n      ", "  const bool of_tiles = false &&\n      ",
         "rows behind the last phase's are written beyond the tile"),
    pack("taps_forwards", '"kR * kS - 1 - (r * kS + s)"', '"r * kS + s"', "taps run from first to last"),
    pack("skew_of_stores_only", '"(kR * kS)", skewed(problem, "place"));', '"(kR * kS)", "place");',
         "weights of even filters are read where they are not"),
    pack_plan("loads_across_groups", "problem.groups > 1 ? weight.group : 0", "0",
              "vectors start between those of the tensor in groups behind the first"),
    pack_plan("rows_behind_phases_left",
              "ceil_div(tiles_k(problem) * tile_channels, problem.k / outer_phases(problem.phases))",
              "outer_phases(problem.phases)", "rows up to the end of a tile are not written"),
    pack_plan("last_block_of_group_missing", "ceil_div(problem.k / problem.phases.count(), block_channels)",
              "(problem.k / problem.phases.count() / block_channels)", "no block writes the last channels of phases"),
    family("zero_taps_of_inner_columns_left", "geometry.copies_met_taps() && !geometry.problem().phases.columns_innermost",
           "geometry.copies_met_taps()", "NCHW: zeros that are multiplied are not written"),
    load_weights("taps_of_next_phase", "geometry.meets_tap(phase, tap / taps,",
                 "geometry.meets_tap((phase + 1) % geometry.tile_phases(), tap / taps,",
                 "a stage gets the taps of another phase"),
    load_weights("tap_bits_of_the_filter", "std::uint64_t{1} << place;", "std::uint64_t{1} << tap;",
                 "taps are copied in the order of the filter, not of the pixels"),
    grid("taps_of_first_column", "std::ranges::any_of(columns.list, column_meets)", "column_meets(columns.list[0])",
         "NCHW: taps are left out that only some phases of columns meet"),
    grid("taps_of_other_rows", "at(rows, tile_phase / columns.count())", "at(rows, tile_phase % columns.count())",
         "NHWC: phases lack the taps of their rows"),
    geometry("tiles_of_two_phases", "tile_phase_channels() % tiling_.tile.channels == 0 && ", "",
             "tiles with channels of two phases multiply the taps of one"),
    geometry("taps_of_one_row", "tiling_.pipeline.filter_rows == problem().rows.taps &&", "true &&",
             "steps of one filter row leave out what is not theirs"),
    emit("tiles_not_turned_back", "number / kTilesK * kTilesK / kBlocks) % kTilesK", "number) % kTilesK",
         "some tiles are computed twice and others not at all"),
    # Where pixels lie.
    emit_pixels("first_row_of_run", '"run_first / kQ * kRowStride + "', '"run_first / kQ + "',
                "rows behind the first are stored elsewhere"),
    emit_pixels("behind_last_row", "{}h < kPixelsH && ", "{}h < kPixelsH + 1 && ",
                "odd heights: the last phase is written behind the image"),
    emit_pixels("behind_last_column", "{}w < kPixelsW;", "{}w < kPixelsW + 1;",
                "odd widths: the last phase is written to the next row"),
    emit_pixels("before_first_row", 'phases.rows.is_shifted() ? "h >= 0 && " : ""', '""',
                "shifted phases are written before the image"),
    emit_pixels("gaps_counted", "position - column_first - row * kRowPadding", "position - column_first",
                "runs over gaps between rows end too early"),
    phases_text("stored_pixels_not_shifted", '? fmt::format("{1} - k{0}Shift[{1}] * k{0}Stride", axis, phase)',
                "? std::string(phase)", "shifted phases are stored a pixel off"),
    store_plan("vectors_between_words", "columns.is_shifted() || columns.pixels % columns.count() != 0", "columns.is_shifted()",
               "odd widths: vectors lie across their alignment"),
    store_plan("vectors_of_shifted_columns", "columns.is_shifted() || columns.pixels", "columns.pixels",
               "shifted phases of columns are stored as neighbours"),
    store_pixels("staged_before_read", "  __syncwarp();\n  @stage_values@", "  @stage_values@",
                 "lanes stage eight channels where others still read those before"),
    store_pixels("read_before_staged", "  @stage_values@\n  __syncwarp();", "  @stage_values@",
                 "lanes read what others have not staged yet"),
    store_pixels("phase_of_first_column", "column_phase * kStagingPitch + item", "0 * column_phase + item",
                 "odd widths: columns of all phases have the sums of the first"),
]
