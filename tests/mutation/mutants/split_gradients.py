"""Mutants of weight gradients whose operands are split into two TF32 numbers."""
from mutants.mutant import File

step = File("templates/wgrad_wgmma/multiply_split.cu.in", "wgrad_split_step")
multiply = File("codegen/wgrad_wgmma/emit_multiply.cpp", "wgrad_split_multiply")
clear_sums = File("templates/wgrad_wgmma/clear_sums.cu.in", "wgrad_split_multiply")
load = File("templates/wgrad_wgmma/store_split_copies.cu.in", "wgrad_split_load")
emit = File("codegen/wgrad_wgmma/emit.cpp", "wgrad_split_emit")
limits = File("codegen/wgrad_wgmma/limits.cpp", "wgrad_split_limits")
candidates = File("codegen/wgrad_wgmma/candidates.cpp", "wgrad_split_candidates")
tiling = File("codegen/wgrad_wgmma/tiling.h", "wgrad_split_tiling")
interval = File("codegen/split_operands.h", "split_operands")

MUTANTS = [
    step("never_promoted",
         "  float partial[@columns@ / 2];\n"
         "  multiply_begin();\n"
         "#pragma unroll\n"
         "  for (int block = 0; block < kBlocks; ++block) {\n"
         "    multiply(partial, dy_low[block], x_high + block * 2 * kUnitRows, block != 0);\n",
         "  float (&partial)[@columns@ / 2] = sum_of_tap;\n"
         "  const auto promote = [](auto&, auto&) {};\n"
         "  multiply_begin();\n"
         "#pragma unroll\n"
         "  for (int block = 0; block < kBlocks; ++block) {\n"
         "    multiply(partial, dy_low[block], x_high + block * 2 * kUnitRows, 1);\n",
         "accumulators truncate the sums of thousands of pixels"),
    step("not_begun_with_zero", "x_high + block * 2 * kUnitRows, block != 0);", "x_high + block * 2 * kUnitRows, 1);",
         "a tap's sums have those of the tap before, too"),
    step("smaller_dy_not_multiplied", "multiply(partial, dy_low[block], x_high + block * 2 * kUnitRows, block != 0);",
         "multiply(partial, dy_high[block], x_low + block * 2 * kUnitRows, block != 0);", "dy is rounded to TF32"),
    step("smaller_pixels_not_multiplied", "multiply(partial, dy_high[block], x_low + block * 2 * kUnitRows, 1);",
         "multiply(partial, dy_low[block], x_high + block * 2 * kUnitRows, 1);", "pixels are rounded to TF32"),
    step("larger_parts_of_first_block", "  multiply(partial, dy_high[block], x_high + block * 2 * kUnitRows, 1);\n  m",
         "  multiply(partial, dy_high[block], x_high, 1);\n  m", "pixels behind the first eight of a step are the first"),
    step("not_awaited", "  multiply_wait<0>();\n", "", "accumulators are promoted before they are there"),
    step("row_not_given_back", "for (int i = 0; i < rows; ++i)", "for (int i = 1; i < rows; ++i)",
         "a row of x of each step is never given back: the kernel hangs"),
    step("stage_not_given_back", "  barrier_arrive(dy_empty + stage);\n", "",
         "stages of dy are never given back: the kernel hangs"),
    multiply("rows_given_back_early", "release(stage, x_row - kBlockR, p + kRowStep >= strip.p_end ? kBlockR : kNewRows);",
             "release(stage, x_row - kBlockR, kBlockR);", "rows of x are overwritten while the next step needs them"),
    clear_sums("sums_go_on", "sum[i][j] = 0.0f;", "sum[i][j] = sum_number > 0 ? sum[i][j] : 0.0f;",
             "sums are added again to memory with every later one"),
    load("parts_in_one_place", "place[kXPartRows] = words_from(low_part", "place[0] = words_from(low_part",
         "larger parts of pixels are overwritten"),
    load("copies_of_smaller_parts_not_shifted", "words_from(low_part, kShifts[copy]);", "words_from(low_part, 0);",
         "smaller parts are those of pixels beside"),
    load("last_pixel_not_split", "for (int j = 0; j < @pixels@; ++j) split_any", "for (int j = 0; j + 1 < @pixels@; ++j) split_any",
         "the last pixel of a shifted copy is arbitrary"),
    emit("rounded_before_they_are_split", "problem.arithmetic == Arithmetic::tf32;",
         "problem.arithmetic != Arithmetic::fp32;", "TMA rounds pixels, smaller parts are zero"),
    tiling("room_for_one_part", "return tiling_.operand_parts() * x_part_bytes(); }", "return x_part_bytes(); }",
           "smaller parts lie over the larger ones of the next row"),
    limits("any_number_of_pixels", "splits_floats(problem.arithmetic) && pixels < kFewestSplitPixels",
               "pixels < 0", "short sums have larger errors than an FMA loop's"),
    candidates("step_longer_than_interval", "tiling.promotion_interval() <= longest_promotion_interval(",
               "tiling.promotion_interval() <= 8 * longest_promotion_interval(",
               "accumulators truncate the sums of too many products"),
    interval("promoted_too_late", "std::clamp<std::int64_t>(products / 144, 3, 8)", "64",
             "accumulators truncate the sums of a whole step"),
    interval("short_sums_promoted_too_late", "std::max<std::int64_t>(products / 32 - 1, 1)", "3",
             "short sums have larger errors than an FMA loop's"),
]
