"""Mutants of convolutions and data gradients whose groups the wgmma family joins, of what packs their weights, and of
weight gradients whose rows are packed: phases of columns, and rows of all images."""
from mutants.mutant import File

problem = File("codegen/problem.cpp", "problem")
plan = File("codegen/plan.cpp", "plan")
limits = File("codegen/wgmma/limits.cpp", "wgmma_limits")
candidates = File("codegen/wgmma/candidates.cpp", "wgmma_candidates")
emit = File("codegen/pack_weights/emit_joined.cpp", "emit_pack_joined")
emit_rows = File("codegen/pack_weights/emit.cpp", "emit_pack_joined_rows")
pack = File("templates/pack_weights/joined.cu.in", "pack_joined")
pack_plan = File("codegen/pack_weights/tiling.cpp", "pack_joined_plan")

rows = File("codegen/wgrad_wgmma/tiling.cpp", "packed_rows")
emit_load = File("codegen/wgrad_wgmma/emit_load.cpp", "emit_packed_rows")
emit_wgrad = File("codegen/wgrad_wgmma/emit.cpp", "emit_packed_rows")
emit_pack = File("codegen/pack_pixels/emit.cpp", "emit_pack_pixels")

MUTANTS = [
    problem("joined_weights_of_one_group", "problem.asked_weight = asked.asked_weight.value_or(asked.weight);",
            "problem.asked_weight = asked.weight;", "dx: weights are read as if taps ran forwards"),
    plan("joined_after_weights_were_compared",
         "    kernel.problem = join_groups(kernel.problem, functions.joins_groups(kernel.tiling));\n",
         "    kernel.problem = join_groups(kernel.problem, 1);\n", "groups of a tile have the channels of one"),
    limits("joined_groups_beyond_a_tile", "kRows / problem.pixel_channels()", "2 * kRows / problem.pixel_channels()",
           "twice as many products as are needed"),
    limits("joined_groups_that_do_not_divide", "problem.groups % count == 0 && ", "", "the last groups are missing"),
    limits("joined_split_operands", "splits_floats(problem.arithmetic) || ", "",
           "fp32: an infinity makes NaNs in other groups"),
    limits("joined_sums_of_phases", " || (problem.is_sub_pixel() && !problem.phases.stores_pixels)", "",
           "sums are interleaved as if groups were apart"),
    candidates("joined_unpacked_weights", " || tiling.joins_groups > 1) return;", ") return;",
           "weights are read as if groups shared channels"),
    candidates("joined_problem_forgotten", "add_candidates(join_groups(problem, count), target, into);",
               "add_candidates(join_groups(problem, count / count), target, into);",
               "groups of few channels take FMA"),
    emit("channels_of_all_groups", '"const int first_c = (first_slice + slice) * kOperandChannels - joined * kJoinedC;\\n"',
         '"const int first_c = (first_slice + slice) * kOperandChannels;\\n"', "all groups read the first one's channels"),
    emit("taps_of_first_phase", 'filter_tap(problem.phases, "k",', 'filter_tap(problem.phases, "0",',
         "dx: all phases have the taps of the first"),
    emit("rows_beyond_w", "problem.k % tiling.tile_channels == 0\n", "problem.k > 0\n",
         "reads behind w for rows of a tile that no channel has"),
    emit("channels_of_a_phase", "channel_of_phase(problem.phases, \"k\") : \"k\"", "\"k\" : \"k\"",
         "phases have the weights of other channels"),
    emit_rows("weights_between_groups", 'also("first_c + c >= 0 && first_c + c < kJoinedC");', 'also("first_c + c >= 0");',
              "groups have weights for channels of the next"),
    emit_rows("weights_before_the_group", 'also("first_c + c >= 0 && first_c + c < kJoinedC");',
              'also("first_c + c < kJoinedC");', "groups have weights for channels of the one before"),
    pack("group_of_first_tile", "(tile / kTilesK * kJoinedGroups + joined) * kWeightStrideGroup",
         "joined * kWeightStrideGroup", "all tiles have the weights of the first groups"),
    pack("channel_of_all_groups", "output_channel % kJoinedK * kWeightStrideK", "output_channel * kWeightStrideK",
         "groups read output channels of others"),
    pack_plan("blocks_of_phases", "!problem.is_sub_pixel() || joins_groups(problem)", "!problem.is_sub_pixel()",
              "rows of the last phases are not packed"),
    rows("pads_before_only", "std::max({columns.pad, behind, std::int64_t{0}})",
         "std::max({columns.pad, 0 * behind, std::int64_t{0}})",
         "taps that reach behind an image meet the next one's pixels"),
    rows("pads_behind_only", "std::max({columns.pad, behind, std::int64_t{0}})", "std::max(behind, std::int64_t{0})",
         "taps that reach before an image meet the one before"),
    rows("columns_of_x_for_an_image", "x.packed_columns = stride * columns_of_image(asked.columns);",
         "x.packed_columns = columns_of_image(asked.columns);", "with a stride, the last columns of x are not packed"),
    rows("pitch_of_an_image_of_x", "x.pitch.n = x.packed_columns / x.column_phases * x.pitch.w;",
         "x.pitch.n = x.packed_columns * x.pitch.w;", "phases of images lie further apart than those of dy"),
    rows("phases_of_shorter_rows", "columns.stride * round_up(ceil_div(columns.input, columns.stride), 16 / asked.element_bytes())",
         "round_up(columns.input, 16 * columns.stride / asked.element_bytes())", "phases are no whole vectors"),
    emit_load("rows_of_phases", '" * kStrideW" : ""', '"" : ""', "x comes from rows further up"),
    emit_load("phase_of_channel", "c = line / kStrideW, phase = line % kStrideW", "c = line / kStrideW, phase = 0",
              "all taps meet the columns of one phase"),
    emit_load("packing_not_awaited", 'holes["await_previous"] = await_packing(geometry.tiling());',
              'holes["await_previous"] = "";', "rows are read before they are packed"),
    emit_wgrad("extent_of_all_phases", "ceil_div(problem.columns.input, phases), problem.rows.input * phases",
               "problem.columns.input, problem.rows.input * phases", "columns behind the last are those of the next phase"),
    emit_pack("phase_of_column", 'packed_column + " * kPhases + place % kPackedW / kPhaseW"',
              'packed_column + " * kPhases"', "the second phase has the columns of the first"),
]
