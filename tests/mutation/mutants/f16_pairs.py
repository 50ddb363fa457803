"""Mutants of floats that are multiplied as pairs of fp16 numbers."""
from mutants.mutant import File

split = File("templates/device/split_f16.cuh", "device_split_f16")
find_range = File("templates/find_range/kernel.cu.in", "find_range")
split_rows = File("templates/transpose_input/split_rows.cu.in", "split_rows")
split_pixels = File("templates/wgmma/split_pixels_f16.cu.in", "wgmma_split_pixels_f16")
undo_scales = File("templates/wgmma/undo_scales.cu.in", "wgmma_undo_scales")
emit_multiply = File("codegen/wgmma/emit_multiply.cpp", "emit_wgmma_multiply_f16_pairs")
arguments = File("codegen/wgmma/arguments.cpp", "wgmma_arguments_f16_pairs")
pack_emit = File("codegen/pack_weights/emit.cpp", "pack_weights_f16_pairs")
pack_tiling = File("codegen/pack_weights/tiling.cpp", "pack_weights_tiling_f16_pairs")
transpose_tiling = File("codegen/transpose_input/tiling.cpp", "transpose_tiling_f16_pairs")
candidates = File("codegen/wgmma/candidates.cpp", "wgmma_candidates_f16_pairs")

MUTANTS = [
    split("scale_too_large", "2 * 127 + 14", "2 * 127 + 18", "larger parts overflow"),
    split("scale_too_small", "2 * 127 + 14", "2 * 127 + 1", "smaller parts have fewer bits"),
    split("infinity_split_by_rounding", "  if (magnitude < kInfinity) return;\n", "  return;\n",
          "an infinity makes NaNs"),
    split("small_parts_are_zero", "magnitude != 0 && fabsf(scaled) < 0x1p-24f ? least : nearest", "nearest",
          "infinity times a number that is small beside the largest is NaN"),
    split("rounding_of_all", "smallest >= least - 1 && largest < infinity", "true",
          "infinities are split by rounding"),
    split("parts_beside_each_other", "(i / 2 * 4 + i % 2) * kPitch", "i * kPitch", "parts overwrite each other"),
    find_range("infinities_count", "magnitude < 0x7f800000u ? magnitude : 0", "magnitude",
               "an infinity makes all other numbers zero"),
    find_range("last_elements_not_read", "thread < kRest", "thread < 0",
               "the largest may be one of the last three elements"),
    find_range("one_warp_of_a_block", "  if (thread % 32 == 0) of_warp[thread / 32] = largest;",
               "  if (thread % 32 == 0) of_warp[thread / 32] = thread == 0 ? largest : 0;",
               "the largest of a few numbers only"),
    split_rows("channels_of_another_item", "own_item * kRowChannels", "own_item * kOperandChannels",
               "half of the channels come twice"),
    split_pixels("rows_not_swizzled", "kSlices == 8 ? pixel % 8 : pixel / 2 % 4", "0", "rows of other slices are split"),
    undo_scales("scale_of_weights_left", "sum[i] * first * second", "sum[i] * first", "sums keep a scale"),
    emit_multiply("smaller_parts_of_weights_left_out", "      add(weights.low, pixels.high, i != first, name);\n",
                  "      add(weights.high, pixels.low, i != first, name);\n", "weights have 11 bits"),
    arguments("channels_end_between_pairs",
              "tiling.splits_input() ? round_up(problem.input_channels(), kPairGroupChannels) : ", "",
              "pairs of the last channels are taken for zeros"),
    pack_emit("slices_in_order", "/ 2 * 4 + (first_slice + slice) % 2", "* 2", "parts are where others are read"),
    pack_tiling("range_over_weights", "         (f16_pairs ? kRangeBytes : 0);", "         0;",
                "what is known of the range lies behind the region"),
    pack_tiling("range_of_a_part_of_w", "  return problem.groups * channels * problem.c * filter_taps(problem);",
                "  return channels * problem.c * filter_taps(problem);", "the largest may be in another group"),
    transpose_tiling("pixels_end_between_pairs",
                     "problem.input.is_f16_pairs ? round_up(slices, kPairGroupRows) : slices", "slices",
                     "the last pairs of a pixel lie in the next"),
    candidates("two_slices_of_pairs", "tiling.f16_pairs && slices % kPairGroupRows != 0", "false",
               "a step has half of a pair"),
]
