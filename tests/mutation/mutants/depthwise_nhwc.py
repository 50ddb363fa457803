"""Mutants of the depthwise_nhwc family: its templates, its emitter, its plan."""
from mutants.mutant import File

skeleton = File("templates/depthwise_nhwc/kernel.cu.in", "depthwise_nhwc")
vectors = File("templates/depthwise_nhwc/copy_vectors.cu.in", "depthwise_nhwc_copy")
box = File("templates/depthwise_nhwc/copy_box.cu.in", "depthwise_nhwc_box")
rolled = File("templates/depthwise_nhwc/rows_rolled.cu.in", "depthwise_nhwc_rolled")
store = File("templates/depthwise_nhwc/store.cu.in", "depthwise_nhwc_store")
emit = File("codegen/depthwise_nhwc/emit.cpp", "emit_depthwise_nhwc")
plan = File("codegen/depthwise_nhwc/candidates.cpp", "depthwise_nhwc_plan")
tiling = File("codegen/depthwise_nhwc/tiling.h", "tiling_depthwise_nhwc")

MUTANTS = [
    # Where the tile lies and what is read.
    emit("padding_top", "- kPadTop\"", "- kPadTop - 1\"", "every image is convolved one row too high"),
    emit("padding_left", "- kPadLeft\"", "- kPadLeft - 1\"", "every image is convolved one column too far left"),
    skeleton("tile_ignores_row_step", "p_tile * (kTileP * kRowStep)", "p_tile * kTileP",
             "dilated filters: tiles of a residue overlap and rows are missing"),
    skeleton("tile_ignores_column_step", "q_tile * (kTileQ * kColumnStep)", "q_tile * kTileQ",
             "dilated filters: tiles of a residue overlap and columns are missing"),
    vectors("rows_without_dilation", "pixel / kInputColumns * kDilationH", "pixel / kInputColumns",
             "dilated filters read neighbouring rows"),
    vectors("columns_without_dilation", "pixel % kInputColumns * kDilationW", "pixel % kInputColumns",
             "dilated filters read neighbouring columns"),
    emit("stride_of_taps", '"q * kTileStrideW + s"', '"q + s"',
             "strided convolutions read the wrong columns"),
    skeleton("patch_of_columns_in_rows", "p_patch * (kPatchRows * kInputColumns)", "p_patch * kPatchRows",
             "rows of a block are read from its first"),
    skeleton("columns_of_patches_overlap", "q_patch * kPatchColumns)", "q_patch)", "columns of a block overlap"),
    skeleton("multiplier_of_thread", "kPixelPitch + k_thread / kMultiplier;", "kPixelPitch + k_thread % kBlockK;",
             "several outputs per channel read the pixels of other channels"),
    skeleton("multiplier_of_block", "c_block = k_block / kMultiplier;", "c_block = k_block;",
             "several outputs per channel: blocks after the first read other channels"),
    vectors("no_row_limit", "static_cast<unsigned>(h) < kH &&", "h < kH &&", "padding on top reads the image before"),
    vectors("no_column_limit", "static_cast<unsigned>(w_column) < kW@", "w_column < kW@",
             "padding on the left repeats the row before"),
    emit("taps_forwards", '"(kTaps - 1 - tap)"', '"tap"', "gradients multiply by the filter's mirror image"),
    emit("no_wait", '"copy_wait<0>();\\n__syncthreads();\\n"', '"__syncthreads();\\n"',
         "tiles are used before they have arrived"),
    emit("no_wait_for_box", '"barrier_wait(arrival, 0);\\n"', '""', "tiles are used before they have arrived"),
    emit("no_barrier_before_box", '"__syncthreads();  // the barrier and the weights are there\\n"', '""',
         "threads wait at a barrier that is not there yet, and weights are used before they are"),
    emit("phase_ignored", '"if ((q + s + kPhaseW) % kUpsamplingW != 0) continue;\\n"',
         '"if ((q + s) % kUpsamplingW != 0) continue;\\n"', "gradients with a stride and padding meet other taps"),
    emit("rows_phase_ignored", "- p * axis.stride - axis.phase;", "- p * axis.stride;",
         "gradients with a stride and padding meet other filter rows"),
    box("box_of_first_image", "h_block, n, arrival", "h_block, 0, arrival", "every image is the first"),
    box("rows_and_columns_swapped", "w_block, h_block,", "h_block, w_block,", "tiles are read from elsewhere"),
    vectors("no_commit", "copy_commit();\n", "", "tiles are used before they have arrived"),
    emit("no_barrier", '"copy_wait<0>();\\n__syncthreads();\\n"', '"copy_wait<0>();\\n"',
         "sums of half-loaded tiles, now and then"),
    vectors("wide_offset_computed_narrow", "static_cast<Index>(n) * (static_cast<Index>(kH) * kW * kChannels)",
             "static_cast<Index>(n * (kH * kW * kChannels))", "tensors of more than 2^31 elements: faults or garbage"),
    # The loop over filter rows.
    rolled("first_row_too_late", "(above + kDilationH - 1) / kDilationH", "above / kDilationH + 1",
           "large filters miss a row at the top of the image"),
    rolled("end_too_early", "(below + kDilationH - 1) / kDilationH", "below / kDilationH",
           "large filters miss a row at the bottom of the image"),
    rolled("first_row_of_one", "-h_patch - kPatchReach,", "-h_patch,",
           "large filters: later rows of a patch miss filter rows at the top of the image"),
    rolled("rows_without_stride", "p * (kTileStrideH * kRowPitch)", "p * kRowPitch",
           "large filters with a stride: rows of a patch are wrong"),
    # The store.
    store("no_row_limit", "  if (p_first + i * kRowStep >= kP) break;\n", "", "tiles that reach past P write over the next image"),
    store("no_column_limit", "    if (q_first + j * kColumnStep >= kQ) break;\n", "", "tiles that reach past Q write over the next row"),
    store("row_step_ignored", "(i * kRowStep) * kQ", "(i) * kQ", "dilated filters: rows are stored elsewhere"),
    store("column_step_ignored", "+ j * kColumnStep) * kOutputChannels", "+ j) * kOutputChannels",
          "dilated filters: columns are stored elsewhere"),
    # What the emitter prints.
    emit("stride_ignored", "h * axis.upsampling - p * axis.stride", "h * axis.upsampling - p",
         "strided convolutions: rows of a thread are wrong"),
    emit("last_filter_row_skipped", "if (r < 0 || r >= axis.taps) continue;",
         "if (r < 0 || (r >= axis.taps - 1 && axis.taps > 1)) continue;", "the last filter row is ignored"),
    emit("no_channel_limit", '"if (k >= kOutputChannels) return;\\n"', '""',
         "the last block writes channels past those of a pixel"),
    emit("copies_without_channel_limit", '" && c_block + c < kChannels"', '""',
         "the last pixel's last block reads behind the end of x"),
    emit("weights_without_limit", '" && i < kTaps * (kOutputChannels - k_block)"', '""',
         "the last block reads behind the end of w"),
    skeleton("weights_of_first_channel", "if (++tap == kTaps) tap = 0, ++k;", "if (++tap == kTaps) tap = 0;",
             "runs of weights that span channels are kept as the first channel's"),
    emit("more_weights_start_late", "int step = kFirstWeightSteps; step <", "int step = kFirstWeightSteps + 1; step <",
         "large filters lack some weights"),
    emit("bias_of_first_channel", '"to_float(bias[k + c]);\\n"', '"to_float(bias[k]);\\n"',
         "channels of a vector get the bias of its first"),
    emit("residual_of_first_channel", "to_float(added.at[c])", "to_float(added.at[0])",
         "channels of a vector add the residual of its first"),
    emit("pairs_swapped", "element_pair(acc[i][j][c], acc[i][j][c + 1])",
         "element_pair(acc[i][j][c + 1], acc[i][j][c])", "neighbouring channels are exchanged"),
    # What the plan decides.
    plan("vector_of_any_channels", "problem_.output_channels() % vector != 0 || ", "",
         "channels that fill no vector: a fault, or the next pixel overwritten"),
    plan("vector_of_any_alignment", "bytes > 16 || bytes > problem_.alignment)", "bytes > 16)",
         "tensors that are not aligned to 16 bytes: a fault"),
    plan("copy_of_any_alignment", "static_cast<int>(std::min<std::int64_t>(16, problem_.alignment) / element_);",
         "static_cast<int>(16 / element_);", "tensors that are not aligned to 16 bytes: a fault"),
    plan("copy_of_any_channels", "problem_.input_channels() % copy != 0 || ", "",
         "channels that fill no copy: a misaligned access"),
    # Sizes.
    tiling("inputs_of_all_outputs_but_one", "return met(count - 1, taps - 1) + 1;", "return met(count - 1, taps - 1);",
           "tiles lack their last row and column"),
    tiling("no_room_for_weights", "round_up(4 * of.problem.taps() * weight_pitch(), 8);", "8;",
           "weights lie outside the block's shared memory"),
]
