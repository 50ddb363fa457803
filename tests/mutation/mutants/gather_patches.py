"""Mutants of the pass that gathers patches, and of what remains to be convolved."""
from mutants.mutant import File

kernel = File("templates/gather_patches/kernel.cu.in", "patches")
elements = File("templates/gather_patches/load_elements.cu.in", "patches_elements")
vectors = File("templates/gather_patches/load_vectors.cu.in", "patches_vectors")
tiling = File("codegen/gather_patches/tiling.cpp", "patches_tiling")
emit = File("codegen/gather_patches/emit.cpp", "patches_emit")
gradient_family = File("codegen/wgrad_wgmma/family.cpp", "patches_gradient_family")
family = File("codegen/wgmma/family.cpp", "patches_family")

MUTANTS = [
    kernel("rows_behind_the_last", "if (number < kAllRows) {", "{", "the last block writes behind the workspace's region"),
    kernel("all_of_the_first_image", "patch / kPlane * static_cast<long long>(kSourceStrideN)",
           "patch / kPlane * 0LL", "every image's outputs are those of the first"),
    kernel("counted_over_images", "output = patch % kPlane;", "output = patch;", "images but the first are zero"),
    kernel("no_padding_above", "output / kQ * kStrideH - kPadH", "output / kQ * kStrideH", "padding above is ignored"),
    kernel("no_padding_on_the_left", "output % kQ * kStrideW - kPadW", "output % kQ * kStrideW",
           "padding on the left is ignored"),
    elements("zeros_of_the_patch_read", "place < kPatchElements && h >= 0", "h >= 0",
             "elements behind a patch are another channel's: NaN times zero is NaN"),
    elements("rows_and_columns_swapped",
             "h_first + place / kS % kR * kDilationH, w = w_first + place % kS * kDilationW",
             "h_first + place % kR * kDilationH, w = w_first + place / kR % kS * kDilationW",
             "filters are transposed"),
    elements("row_before_the_first", "h >= 0 && h < kH", "h < kH", "pixels before the tensor are read"),
    elements("column_behind_the_last", "w >= 0 && w < kW", "w >= 0", "pixels of the next row are padding"),
    vectors("channels_apart_by_taps", "place / (kR * kS) * kSourceStrideC", "place / kR * kSourceStrideC",
            "pixels are other channels'"),
    vectors("row_behind_the_last", "h >= 0 && h < kH", "h >= 0", "rows of the next channel are padding"),
    vectors("all_loads_of_the_first", "element[i + j] = vector.at[j];", "element[j] = vector.at[j];",
            "all but the first neighbours of a row are arbitrary"),
    tiling("vectors_across_filter_rows", "{columns.taps, columns.stride,", "{columns.stride,",
           "a load goes on behind a filter row"),
    tiling("vectors_across_padding", "columns.pad, columns.input,", "columns.input,",
           "a load begins in the padding and misses pixels, or is misaligned"),
    tiling("aligned_tensors", "std::min(kRowBytes, alignment) / source.element_bytes()",
           "kRowBytes / source.element_bytes()", "tensors that start at 4 bytes are read by misaligned vectors"),
    tiling("pixels_of_no_whole_rows", "tiling.patch_rows() * tiling.row_elements(), asked.rows.output",
           "patches.c, asked.rows.output", "patches lie elsewhere than they are read"),
    emit("split_pixels_rounded", 'operand_row(problem, "element")', '"operand_row(element)"',
         "pixels are rounded to TF32 before they are split"),
    tiling("of_gradients", " || asked.asked_weight || asked.is_upsampled()", "",
           "weights of data gradients are packed as if they lay in order"),
    tiling("of_groups", "if (asked.groups > 1 || asked.c > kMostChannels", "if (asked.c > kMostChannels",
           "groups have each other's pixels"),
    family("weights_of_the_filter",
           "if (tiling.gathers_patches()) plan.convolution().problem = patch_problem(asked);", "",
           "weights are packed for a filter with taps"),
    gradient_family("not_awaited", "plan.convolution().starts_early = false;", "",
                    "a weight gradient reads patches that are not there yet"),
]
