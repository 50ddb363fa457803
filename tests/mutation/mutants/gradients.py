"""Mutants of the gradients: the phases of a stride, transposed weights, the families that sum over pixels, and the pass
that adds and interleaves their sums."""
from mutants.mutant import File

phases = File("codegen/phases.cpp", "phases")
phases_text = File("codegen/text/phases_text.cpp", "emit_phases")
problem = File("codegen/problem.cpp", "gradient_problem")
axis = File("codegen/problem.h", "gradient_axis")
transpose = File("codegen/transpose_weights/emit.cpp", "emit_transpose_weights")
transpose_kernel = File("templates/transpose_weights/kernel.cu.in", "transpose_weights")
reduce_pass = File("codegen/reduce/pass.cpp", "reduce_pass")
reduce_emit = File("codegen/reduce/emit.cpp", "emit_reduce")
interleaving = File("codegen/reduce/emit_interleaving.cpp", "emit_interleaving")
reduce_filters = File("codegen/reduce/emit_filters.cpp", "emit_filters")
reduce_taps = File("templates/reduce/filters.cu.in", "reduce_filters")
reduce_kernel = File("templates/reduce/kernel.cu.in", "reduce")
interleaved_sums = File("templates/reduce/add_sums.cu.in", "reduce_add_sums")
wgrad = File("templates/wgrad/kernel.cu.in", "wgrad")
wgrad_dy = File("templates/wgrad/copy_dy_nchw.cu.in", "wgrad_dy_nchw")
wgrad_x = File("templates/wgrad/copy_x_nchw.cu.in", "wgrad_x_nchw")
wgrad_x_nhwc = File("templates/wgrad/copy_x_nhwc.cu.in", "wgrad_x_nhwc")
wgrad_emit = File("codegen/wgrad/emit.cpp", "emit_wgrad")
wgrad_add_bias = File("templates/wgrad/add_bias.cu.in", "emit_wgrad")
wgrad_store_bias = File("templates/wgrad/store_bias.cu.in", "emit_wgrad")
depthwise = File("templates/wgrad_depthwise/kernel.cu.in", "wgrad_depthwise")
depthwise_nchw = File("templates/wgrad_depthwise/copy_nchw.cu.in", "wgrad_depthwise_nchw")
depthwise_nhwc = File("templates/wgrad_depthwise/copy_nhwc.cu.in", "wgrad_depthwise_nhwc")
depthwise_warps = File("templates/wgrad_depthwise/add_warps.cu.in", "wgrad_depthwise_warps")
depthwise_channels = File("templates/wgrad_depthwise/add_channels.cu.in", "wgrad_depthwise_channels")
depthwise_emit = File("codegen/wgrad_depthwise/emit.cpp", "emit_wgrad_depthwise")
wgmma = File("templates/wgrad_wgmma/kernel.cu.in", "wgrad_wgmma")
consumer = File("templates/wgrad_wgmma/consumer.cu.in", "wgrad_wgmma_consumer")
sums = File("templates/wgrad_wgmma/add_sums.cu.in", "wgrad_wgmma_sums")
load_x = File("templates/wgrad_wgmma/load_x.cu.in", "wgrad_wgmma_load_x")
loaded = File("templates/wgrad_wgmma/steps_loaded.cu.in", "wgrad_wgmma_loaded")
copied = File("templates/wgrad_wgmma/steps_copied.cu.in", "wgrad_wgmma_copied")
geometry = File("codegen/wgrad_wgmma/tiling.cpp", "wgrad_wgmma_geometry")
store_bias = File("templates/wgrad_wgmma/store_bias.cu.in", "wgrad_wgmma_store_bias")
multiply = File("codegen/wgrad_wgmma/emit_multiply.cpp", "emit_wgrad_wgmma_multiply")
end_step = File("templates/wgrad_wgmma/end_step.cu.in", "emit_wgrad_wgmma_multiply")
load = File("codegen/wgrad_wgmma/emit_load.cpp", "emit_wgrad_wgmma_load")

MUTANTS = [
    # A stride's phases: which pixels and taps they have, and where their window lies.
    phases("padding_ignored", "positive_modulo(first * dilation - forward_pad(), stride)",
           "positive_modulo(first * dilation, stride)", "padded: phases have the pixels of others"),
    phases("place_of_first_tap", "(pixel + forward_pad() - first * dilation) / stride",
           "(pixel + forward_pad()) / stride", "phases that begin with a later tap meet pixels of dy beside theirs"),
    phases("last_tap_dropped", "ceil_div(phases_.taps - first, phases_.tap_step)", "phases_.taps / phases_.tap_step",
           "filters that the stride does not divide: the first phases lack their last tap"),
    phases("in_order_of_taps", "    std::ranges::sort(taps_, {}, &PhaseTaps::pixel);\n", "",
           "padded: residues belong to other phases"),
    phases("not_shifted", "window_start(taps, start) - start + cropped, taps.first", "cropped, taps.first",
           "phases whose window lies elsewhere are stored a pixel off"),
    phases("not_cropped", "std::max<std::int64_t>(0, start)", "std::min<std::int64_t>(0, start)",
           "much padding: the window begins at other pixels of dy"),
    phases("window_without_taps_before", "const std::int64_t last = taps.count - 1 + taps_before(taps, start);",
           "const std::int64_t last = taps.count - 1;", "phases with fewer taps meet them at a neighbour"),
    phases("common_divisor_ignored", "phases_.tap_step = stride / common;", "phases_.tap_step = stride;",
           "stride and dilation with a common divisor: phases lack taps"),
    phases("dilation_whole", "gradient.dilation / common", "gradient.dilation",
           "stride and dilation with a common divisor: taps meet pixels of dy too far apart"),
    # Kernels whose threads have outputs of all phases.
    axis("first_input_of_a_crop", "return (lead() - pad) / upsampling;", "return -pad / upsampling;",
         "gradients with a crop begin a pixel of dy too early"),
    axis("too_few_inputs", "((count - 1) * stride + reach() - lead()) / upsampling + 1",
         "((count - 1) * stride + reach() - lead()) / upsampling", "threads lack the last row of dy that they meet"),
    phases_text("row_of_window_column", "window_tap / kS * kRowStep", "window_tap % kS * kRowStep",
                "weights of a strided gradient are those of other filter rows"),
    phases_text("row_of_column_phase", 'problem.phases.rows, "row_phase"', 'problem.phases.rows, "column_phase"',
                "weights of a strided gradient are those of other phases"),
    phases_text("first_taps_always_a_sum", "  if (!is_sum)\n", "  if (!is_sum && step == 0)\n",
                "phases whose taps are not equally far apart have those of others"),
    phases_text("first_taps_forwards", 'step < 0 ? "-" : "+"', '"+"', "taps of later phases lie behind the first's"),
    phases_text("rows_behind_the_filter", "r >= 0 && r < kFilterR && s >= 0", "r >= 0 && s >= 0",
                "phases without their window's first row read the next filter"),
    phases_text("first_tap_for_none", "r * kFilterS + s : -1", "r * kFilterS + s : 0",
                "zeros of a window are the filter's first tap"),
    phases_text("pixels_without_taps", "result.may_miss = phases.count() < phases.stride;", "result.may_miss = false;",
                "pixels that no tap meets have sums of others"),
    phases_text("place_not_shifted", 'result.place += fmt::format(" + k{}Shift[{}]", axis, phase);',
                "result.place += phase.substr(0, 0);", "pixels have the sums of their neighbours"),
    # What a gradient of x is as a convolution.
    problem("padding_of_forward", "axis.pad = forward.reach() - forward.pad;", "axis.pad = forward.pad;",
            "dx is shifted unless the filter is as far as twice its padding"),
    problem("rows_not_flipped",
            "view.first = (rows.taps - 1) * forward.stride.h + (columns.taps - 1) * forward.stride.w;\n"
            "  view.stride.h = -forward.stride.h;",
            "view.first = (columns.taps - 1) * forward.stride.w + 0 * rows.taps;\n"
            "  view.stride.h = forward.stride.h;",
            "dx is computed with filters upside down"),
    problem("channels_not_exchanged", "  std::swap(view.stride.n, view.stride.c);\n", "",
            "weights of dx are those of other channels"),
    problem("dw_of_type_of_x", "problem.weight.type = output_type(spec);", "problem.weight.type = spec.dtype;",
            "fp32 gradients of 16-bit tensors are written as 16 bits"),
    transpose("taps_exchanged", "r * kStrideR + s * kStrideS", "s * kStrideR + r * kStrideS",
              "filters are transposed, or what lies beside w is read"),
    transpose("zero_taps_read", "tap < 0 ? from_float(0.0f)", "tap < -1 ? from_float(0.0f)",
              "zeros of a window are the weights before the filter"),
    transpose("group_of_phases_ignored", "source = group * kStrideGroup + {}", "source = 0 * group + {}",
              "groups of a strided gradient have the first one's weights"),
    transpose("channel_of_group_of_phases", 'channel_of_phase(problem.phases, "k")', '"k"',
              "phases behind the first have the next group's weights"),
    transpose_kernel("group_of_channels", "filter / (static_cast<long long>(kChannels) * kGroupK)",
                     "filter / kGroupK % 1", "all groups have the first one's weights"),
    # The pass that adds sums of dw and db, and interleaves those of dx.
    reduce_pass("db_forgotten", "tiling.bias_sums = gradient_elements(asked) - asked.weight_elements();",
                "tiling.bias_sums = 0;", "db is not written"),
    reduce_pass("stride_without_db", "tiling.sums = sums;",
                "tiling.sums = sums, tiling.sums.stride = round_up(asked.weight_elements(), 64);",
                "with db, splits are read where others' sums lie"),
    reduce_emit("first_of_db_behind_dw", "if (output >= kOutputs) {{", "if (output > kOutputs) {{",
                "the first sum of db is written behind dw"),
    reduce_emit("fp32_not_accumulated", 'floats ? "residual[output]"', 'floats ? "0.0f"',
                "fp32 gradients of weights are not added to what is there"),
    reduce_filters("first_of_db_missing", "if (k < kBiasSums) db[k]", "if (k > 0 && k < kBiasSums) db[k]",
                   "the first element of db is not written"),
    reduce_taps("order_of_tensor_cores", "filters[filter * kTaps + tap] =", "filters[filter + tap * kBlockFilters] =",
                "dw of several taps is in another order"),
    reduce_taps("filters_of_first_block", "const long long first_filter = static_cast<long long>(blockIdx.x)",
                "const long long first_filter = static_cast<long long>(0 * blockIdx.x)",
                "all blocks add the sums of the first one's filters"),
    reduce_taps("end_of_dw_ignored", "if (output >= kOutputs) break;", "if (output >= kOutputs + kTaps) break;",
                "the last block writes a filter behind dw"),
    reduce_pass("block_of_db_forgotten", "tiling.filter_blocks(problem) + blocks_of(tiling.bias_sums);",
                "tiling.filter_blocks(problem);", "db of filters of several taps is not written"),
    reduce_kernel("first_split_dropped", "for (int split = 0; split < kSplits", "for (int split = 1; split < kSplits",
                  "the first split's pixels are missing"),
    reduce_kernel("stride_of_outputs", "split * static_cast<long long>(kPartialSumStride)",
                  "split * static_cast<long long>(kOutputs)", "splits behind the first are read before they begin"),
    interleaved_sums("one_split_for_all", "first_sums + split * static_cast", "first_sums + 0 * split * static_cast",
                     "of a strided gradient with splits the first counts for all"),
    interleaved_sums("group_without_phases", "(channel / kGroupChannels * kPhases + @phase@)",
                     "(channel / kGroupChannels + @phase@)", "groups of a strided gradient have others' sums"),
    interleaving("phases_exchanged", "(row_phase * kColumnPhases + column_phase)",
                 "(column_phase * kColumnPhases + row_phase)", "rows and columns of phases are exchanged"),
    interleaving("columns_without_taps", '"row_phase >= 0 && column_phase >= 0"', '"row_phase >= 0"',
                 "columns that no tap meets have sums of others"),
    interleaving("channel_of_vector", "static_cast<int>(channels % (kOutputChannels / kChannels)) * kChannels",
                 "static_cast<int>(channels % (kOutputChannels / kChannels))",
                 "threads that store several channels store others'"),
    # Weight gradients by FMA.
    wgrad("split_one_short", "kPixels : pixel_begin + kSplitPixels;", "kPixels : pixel_begin + kSplitPixels - 1;",
          "the last pixel of each split but the last is missing"),
    wgrad("splits_overlap", "static_cast<Index>(split) * kSplitPixels", "static_cast<Index>(split) * (kSplitPixels - 1)",
          "pixels at the ends of splits count twice"),
    wgrad("no_barrier", "__syncthreads();  // chunk has arrived", "// chunk has arrived",
          "chunks are used before they have arrived, now and then"),
    wgrad("waits_for_too_few", "copy_wait<kStages - 2>();", "copy_wait<kStages - 1>();",
          "chunks are used before they have arrived; which, depends on the memory"),
    wgrad("last_channel_of_tile", "if (k < kGroupK && column < kColumns)", "if (k <= kGroupK && column < kColumns)",
          "a group's last tile overwrites the next group's first channel"),
    wgrad_dy("group_ignored", "(group * kGroupK + k_block + dy_row)", "(k_block + dy_row)",
             "all groups have the first one's gradients"),
    wgrad_dy("image_ignored", "static_cast<Index>(n) * kOutputStrideN + in_plane", "0 * n + in_plane",
             "every image has the first one's gradients"),
    wgrad_x("image_ignored", "static_cast<Index>(n) * kInputStrideN", "0 * static_cast<Index>(n)",
            "every image has the first one's pixels"),
    wgrad_x("padding_top", "tap / kS * kDilationH - kPadTop;", "tap / kS * kDilationH;",
            "padded: taps meet rows of x below theirs"),
    wgrad_x("strides_exchanged", "in_plane / kQ * kStrideH, w = in_plane % kQ * kStrideW",
            "in_plane / kQ * kStrideW, w = in_plane % kQ * kStrideH", "different strides of rows and columns are exchanged"),
    wgrad_x("no_right_edge", " && static_cast<unsigned>(w + column_w[i]) < kW", "",
            "padding on the right and left is the neighbouring row"),
    wgrad_x_nhwc("channel_of_group", "group * kChannels + c)", "c)", "all groups have the first one's channels"),
    wgrad_emit("columns_in_order_of_channels", '"column % kChannels * (kR * kS) + column / kChannels"', '"column"',
               "NHWC: dw is in the order of taps and channels"),
    wgrad_add_bias("db_misses_pixels", "int pixel = 0; pixel < kChunkPixels", "int pixel = 1; pixel < kChunkPixels",
                   "db lacks a pixel of sixteen"),
    wgrad_store_bias("db_of_no_group", "sums[kBiasSums + group * kGroupK + k_block + k]",
                     "sums[kBiasSums + k_block + k]", "db of all groups is written to the first one's"),
    # Depthwise weight gradients.
    depthwise("bands_of_one_phase", "band * (kStripRows * kPhases) + index % kPhases",
              "band * kStripRows + index % kPhases", "dilated: strips overlap and rows are missing"),
    depthwise("strips_past_turns", "block / kTilesK * (kTurns * kSlots)", "block / kTilesK * kSlots",
              "blocks with several turns sum over the same strips"),
    depthwise("multiplier_ignored", "c_block = k_block / kMultiplier;", "c_block = k_block / 1;",
              "several filters per channel: x of other channels, or behind x"),
    depthwise("no_barrier_at_the_end", "  __syncthreads();  // the stages are free\n", "",
              "sums are written over rows that others still read"),
    depthwise_nchw("rows_beside_each_other", "p = strip.p + row * kPhases, q = strip.q + column",
                   "p = strip.p + row, q = strip.q + column", "dilated: rows of dy meet others of x"),
    depthwise_nchw("strip_goes_on", "strip.n < kN && row < kStripRows && p < kP", "strip.n < kN && p < kP",
                   "rows behind a strip count twice"),
    depthwise_nchw("padding_left", "strip.q * kStrideW - kPadLeft - kColumnShift + column",
                   "strip.q * kStrideW - kColumnShift + column", "padded: taps meet columns of x beside theirs"),
    depthwise_nhwc("padding_top", "strip.p * kStrideH - kPadTop + (r_block", "strip.p * kStrideH + (r_block",
                   "padded: taps meet rows of x below theirs"),
    depthwise_nhwc("channels_behind_the_last", " && k < kOutputChannels", "",
                   "the last block reads the next pixel's first channels"),
    depthwise_warps("half_of_the_lanes", "lanes = 16", "lanes = 8", "half of the pixels are missing"),
    depthwise_channels("last_sharer_dropped", "sharer < kSharers; ++sharer", "sharer < kSharers - 1; ++sharer",
                       "the pixels of the last threads are missing"),
    depthwise_emit("row_of_first_tap", "positive_modulo(distance / stride, live)", "positive_modulo(h / stride, live)",
                   "all filter rows meet the newest row of dy"),
    depthwise_emit("rows_of_the_last_strip", "if (tiling.live_rows(problem) == 1) return {};",
                   "if (tiling.live_rows(problem) >= 1) return {};", "none: rows behind a strip are zeros of dy",
                   accepted="equivalent: of the rows that are left in registers behind a strip, all but the one that is"
                   " read anew at once lie behind its last and are zeros"),
    depthwise_emit("db_of_first_row", 'fmt::format("add_bias(dy_row[{}]);", p)', 'fmt::format("add_bias(dy_row[{}]);", 0 * p)',
                   "db has the first row of each period several times"),
    depthwise_emit("rows_behind_the_filter", ': "if (r < kR) " + store;', ": store;",
                   "the last tile of filter rows overwrites the next channel"),
    # Weight gradients on tensor cores.
    wgmma("strips_of_one_phase", "of_column / kRowStep * (kStripRows * kRowStep) + of_column % kRowStep",
          "of_column * kStripRows", "dilated: strips overlap and rows are missing"),
    wgmma("last_row_dropped", "p_first + kStripRows * kRowStep : kP;", "p_first + kStripRows * kRowStep : kP - 1;",
          "the last row of each image is missing"),
    wgmma("image_ignored", "n = number / (kStripsOfRow * kStripsOfColumn);", "n = 0 * number;",
          "every image counts as the first"),
    wgmma("tiles_of_rows_exchanged", "block % kTilesR * kBlockR", "block % kTilesR",
          "filter rows in several blocks are computed twice or not at all"),
    consumer("pieces_not_dilated", "sum_number % kPieces * (kPieceRows * kRowStep)", "sum_number % kPieces * kPieceRows",
             "dilated: pieces of a strip overlap"),
    consumer("piece_begins_anew", "const int new_rows = p == strip.p_first ? kBlockR : kNewRows;",
             "const int new_rows = p == p_first ? kBlockR : kNewRows;",
             "a piece waits for rows of x that do not come, or meets later ones"),
    consumer("parity_of_dy", "barrier_wait(dy_full + stage, step / kStages % 2);", "barrier_wait(dy_full + stage, 0);",
             "stages of dy are read before they are there, or waited for forever"),
    consumer("parity_of_x", "barrier_wait(x_full + x_row % kXRows, x_row / kXRows % 2);",
             "barrier_wait(x_full + x_row % kXRows, 0);", "rows of x are read before they are there, or waited for forever"),
    multiply("sums_go_on", "int accumulate_first = 0;", "int accumulate_first = sum_number > 0;",
             "sums are added again to memory with every later one"),
    consumer("sums_replaced", "  is_first = false;\n", "", "only the last sum of a block counts"),
    end_step("rows_not_given_back", "previous_rows = p + kRowStep >= strip.p_end ? kBlockR : kNewRows;", "previous_rows = kNewRows;",
             "rows of x are never given back at the end of a strip: the kernel hangs"),
    end_step("rows_given_back_early", "previous_rows = p + kRowStep >= strip.p_end ? kBlockR : kNewRows;",
             "previous_rows = kBlockR;", "rows of x are overwritten while the next step needs them"),
    consumer("last_strip_dropped", "kStrips - first_strip < kStripsOfSum ? kStrips :",
             "kStrips - first_strip < kStripsOfSum ? kStrips - 1 :", "the last strip is missing"),
    sums("group_ignored", "group * kGroupK + k) * kChannels", "k) * kChannels",
         "groups write their sums to the first one's"),
    sums("channels_behind_the_group", "valid = k + j % 2 * kHalfRows < kGroupK && c_lane", "valid = c_lane",
         "a group's last tile overwrites what lies behind its sums"),
    load_x("first_shift_ignored", "(strip.q_first + kFirstShift) * kStrideW", "strip.q_first * kStrideW",
           "taps meet columns of x beside theirs"),
    loaded("no_fence", "      fence_async_proxy();\n", "", "multiplications read rows of x that were there before"),
    copied("no_fence", "      fence_async_proxy();\n", "", "multiplications read rows of x that were there before"),
    copied("raw_rows_given_back_by_none", "        barrier_arrive(raw_empty + raw_slot);\n", "",
           "TMA waits for free rows forever"),
    copied("parity_of_raw_rows", "barrier_wait(raw_full + raw_slot, x_row / kRawRows % 2);",
           "barrier_wait(raw_full + raw_slot, 0);", "rows of x are put in order before they are there"),
    load("copies_of_one_place", "row[(copy * kUnits + unit) * kUnitRows + c]", "row[unit * kUnitRows + c]",
           "taps that need other shifts of x find none"),
    geometry("unit_of_tap", "static_cast<int>(shift / unit_pixels())};", "0 * static_cast<int>(shift / unit_pixels())};",
             "taps further than 16 bytes from the first meet its pixels"),
    geometry("phase_of_forward", "positive_modulo(s * columns.dilation - columns.pad, columns.stride)",
             "positive_modulo(s * columns.dilation, columns.stride)", "strided and padded: taps meet columns of other phases"),
    multiply("taps_of_sums_exchanged", "products[i].r, products[i].s + tap);", "products[i].s + tap, products[i].r);",
             "dw has the sums of (r, s) at (s, r)"),
    multiply("pixels_of_next_row", 'if (masks) lines.push_back("if (pixel >= pixels_left) value = 0.0f;");',
             "", "behind a row's end, pixels of the next row count, too"),
    multiply("pairs_of_next_row", 'if (masks) lines.push_back("if (pixel >= pixels_left) pair = 0;");', "",
             "16 bits: behind a row's end, pixels of the next row count, too"),
    multiply("operands_overwritten", '"  multiply_wait<1>();"', '"  multiply_wait<2>();"',
             "dy in registers is overwritten while it is multiplied"),
    multiply("odd_steps_not_awaited", "tiling.row_pixels / geometry.depth() % 2 != 0;", "tiling.row_pixels < 0;",
             "steps with an odd number of multiplications overwrite dy of the step before"),
    multiply("db_by_every_row", "k < kGroupK && c_block + r_first + s_first == 0", "k < kGroupK && c_block + s_first == 0",
             "filter rows in several blocks: db is added by each of them"),
    multiply("db_by_both_consumers", '? "" : " && consumer == 0"', '? "" : ""', "db is added by both consumers"),
    store_bias("not_begun_anew", "  bias_sum[i] = 0.0f;\n", "", "later sums of db contain the earlier ones"),
    store_bias("of_half_the_lanes", "value, @next_lane@);", "value, @next_lane@) * 0.0f;",
               "db lacks half of the pixels"),
    load("runs_from_their_start", '" + ((h * kW + first_column) & (kOperandChannels - 1))"', '""',
         "rows that start inside 16 bytes are shifted"),
    load("box_of_first_group", "strip.n * (kGroups * kChannels) + group * kChannels + c_block, raw_full",
         "strip.n * (kGroups * kChannels) + c_block, raw_full", "all groups have the first one's channels"),
]
