"""Mutants of the tensor family: weights that threads fetch, and pixels that a kernel before packs."""
from mutants.mutant import File

tiling = File("codegen/tensor_tiling.cpp", "tensor_tiling")
emit_pixels = File("codegen/emit_tensor_pixels.cpp", "emit_tensor_pixels")
fetch = File("templates/tensor_fetch_weights.cu.in", "tensor_fetch")
fetch_step = File("templates/tensor_fetch_step.cu.in", "tensor_fetch_step")
pack_pixels = File("templates/tensor_pack_pixels.cu.in", "tensor_pack_pixels")
copy_packed = File("templates/tensor_copy_packed.cu.in", "tensor_copy_packed")
emit_load = File("codegen/emit_tensor_load.cpp", "emit_tensor_load")

MUTANTS = [
    # Weights that the multiplying threads fetch.
    tiling("channels_in_order", "place / 16 * 16 + place % 4 * 4 + place / 4 % 4;", "place;",
           "weights of a matrix are multiplied with other channels' pixels"),
    tiling("a_slot_too_few", ": weight_slots * slot_bytes(spec);", ": (weight_slots - 1) * slot_bytes(spec);",
           "the last step's weights are overwritten by what is staged"),
    tiling("fetches_part_of_a_chunk", "slices == 8 && spec.filter.c % chunk_channels(spec) == 0;", "slices == 8;",
           "channels of the next output channel are added, and reads go past the end of w"),
    fetch("other_row", "i % 2 * (8 * kChannels)", "i % 2 * (4 * kChannels)",
          "half of the output channels have others' weights"),
    fetch("rows_of_next_group", "i % 2 * 8 < k_left", "true", "reads past the end of w"),
    fetch_step("other_slot", "fetched % kWeightSlots", "(fetched + 1) % kWeightSlots",
               "each step is multiplied with another step's weights"),
    fetch_step("not_awaited", "copy_wait<kWeightSlots - 1>();\n", "", "weights are multiplied before they arrive"),
    fetch_step("awaits_one_step_less", "copy_wait<kWeightSlots - 1>();", "copy_wait<kWeightSlots>();",
               "weights are multiplied before they arrive"),
    # Pixels that a kernel before the convolution packs.
    tiling("packed_tail_missing", "* packed_image(spec) +\n         packed_tail(spec);", "* packed_image(spec);",
           "the last runs read past the end of the workspace"),
    tiling("row_residues_of_columns", "residues(spec.filter.r, spec.dilation.h, spec.stride.h)",
           "residues(spec.filter.r, spec.dilation.w, spec.stride.h)",
           "filters that are dilated along one axis read other slices' pixels"),
    pack_pixels("row_of_column_residue", "residues / kPhases - kPadTop", "residues % kPhases - kPadTop",
                "strided filters read the wrong rows"),
    pack_pixels("first_group_only", "group * kChannels * static_cast<long long>(kInputStrideC)", "0",
                "all groups are computed of the first one's channels"),
    copy_packed("rows_not_divided_by_stride", "row / kStrideH * kPitch", "row * kPitch",
                "strided filters read the wrong rows"),
    copy_packed("residue_of_first_row", "row % kStrideH * kPhases + phase", "phase",
                "strided filters read the wrong rows"),
    emit_load("pixels_not_awaited", 'if (tiling.packs_pixels) return "wait_for_previous_kernel();";', "",
              "pixels are read before they are packed"),
    emit_pixels("weights_not_awaited", 'tiling.packs_weights() ? "wait_for_previous_kernel();" : ""', '""',
                "weights are read before they are packed"),
]
