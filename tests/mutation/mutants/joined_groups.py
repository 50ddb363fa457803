"""Mutants of convolutions and data gradients whose groups the wgmma family joins, and of what packs their weights."""
from mutants.mutant import File

problem = File("codegen/problem.cpp", "problem")
plan = File("codegen/plan.cpp", "plan")
limits = File("codegen/wgmma/limits.cpp", "wgmma_limits")
candidates = File("codegen/wgmma/candidates.cpp", "wgmma_candidates")
emit = File("codegen/pack_weights/emit_joined.cpp", "emit_pack_joined")
emit_rows = File("codegen/pack_weights/emit.cpp", "emit_pack_joined_rows")
pack = File("templates/pack_weights/joined.cu.in", "pack_joined")
pack_plan = File("codegen/pack_weights/tiling.cpp", "pack_joined_plan")

MUTANTS = [
    problem("joined_weights_of_one_group", "problem.asked_weight = asked.asked_weight.value_or(asked.weight);",
            "problem.asked_weight = asked.weight;", "dx: weights are read as if taps ran forwards"),
    plan("joined_after_weights_were_compared",
         "    kernel.problem = join_groups(kernel.problem, functions.joins_groups(kernel.tiling));\n",
         "    kernel.problem = join_groups(kernel.problem, 1);\n", "groups of a tile have the channels of one"),
    limits("joined_groups_beyond_a_tile", "kRows / problem.pixel_channels()", "2 * kRows / problem.pixel_channels()",
           "twice as many products as are needed"),
    limits("joined_groups_that_do_not_divide", "problem.groups % count == 0 && ", "", "the last groups are missing"),
    limits("joined_split_operands", "problem.arithmetic == Arithmetic::tf32x3 || ", "",
           "fp32: an infinity makes NaNs in other groups"),
    limits("joined_sums_of_phases", " || (problem.is_sub_pixel() && !problem.phases.stores_pixels)", "",
           "sums are interleaved as if groups were apart"),
    limits("joined_unpacked_weights", "  if (problem.joined_groups > 1) return false;\n", "",
           "weights are read as if groups shared channels"),
    candidates("joined_problem_forgotten", "add_candidates(join_groups(problem, count), target, into);", ";",
               "groups of few channels take FMA"),
    emit("channels_of_all_groups", '"const int first_c = (first_slice + slice) * kOperandChannels - joined * kJoinedC;\\n"',
         '"const int first_c = (first_slice + slice) * kOperandChannels;\\n"', "all groups read the first one's channels"),
    emit("taps_forwards", '"kR * kS - 1 - (r * kS + s)"', '"r * kS + s"', "dx: taps run forwards"),
    emit("rows_beyond_w", "problem.k % tiling.tile_channels == 0\n", "true\n",
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
]
