"""Mutants of the fallback family and of the device functions that all families share."""
from mutants.mutant import File

skeleton = File("templates/fallback/kernel.cu.in", "fallback")
emit = File("codegen/fallback/emit.cpp", "emit_fallback")
pixel = File("templates/fallback/pixel.cu.in", "emit_fallback")
weight = File("templates/fallback/weight.cu.in", "emit_fallback")
plan = File("codegen/fallback/candidates.cpp", "fallback_plan")
tiling = File("codegen/fallback/tiling.cpp", "fallback_tiling")
bf16 = File("templates/device/element_bf16.cuh", "device_bf16")
f16 = File("templates/device/element_f16.cuh", "device_f16")
registers = File("templates/device/copy_registers.cuh", "device_copy_registers")
asynchronous = File("templates/device/copy_async.cuh", "device_copy_async")
vector = File("templates/device/vector.cuh", "device_vector")

ASM = "the instruction itself runs on a GPU only: golden text and the conformance suite hold it"

MUTANTS = [
    pixel("padding_top", "int h = p[i] * kStrideH - kPadTop + r", "int h = p[i] * kStrideH - kPadTop + 1 + r", "every image is convolved one row too low"),
    pixel("padding_left", "int w_column = q[i] * kStrideW - kPadLeft", "int w_column = q[i] * kStrideW - kPadTop", "asymmetric padding is wrong"),
    pixel("stride_h", "int h = p[i] * kStrideH", "int h = p[i] * kStrideW", "strides that differ along the axes are wrong"),
    pixel("dilation_w", "int w_column = q[i] * kStrideW - kPadLeft + s * kDilationW;", "int w_column = q[i] * kStrideW - kPadLeft + s * kDilationH;", "dilation that differs along the axes is wrong"),
    weight("r_and_s_swapped", "w[(filter * kR + r) * kS + s]", "w[(filter * kS + s) * kR + r]",
             "filters are applied transposed"),
    weight("filter_channel", "static_cast<Index>(group * kGroupK + k_group) * kChannels + c;",
             "static_cast<Index>(group * kGroupK + k_group) * kChannels;", "only the first channel's filter is used"),
    skeleton("group_ignored", "static_cast<Index>(group * kChannels + c) * kInputStrideC",
             "static_cast<Index>(c) * kInputStrideC", "all groups read the first one's channels"),
    skeleton("no_pixel_limit", "inside[i] = pixel < kPixels && k_first", "inside[i] = k_first",
             "the last block reads and writes past the ends of x and y"),
    skeleton("no_filter_limit", "k_first + k < kGroupK ? k_first + k : kGroupK - 1;", "k_first + k;",
             "the last group reads past the end of w"),
    skeleton("no_store_limit", "if (!inside[i] || k_first + k >= kGroupK) continue;", "if (!inside[i]) continue;",
             "the last channels write over the next image or past the end of y"),
    pixel("no_left_edge", "h < kH && w_column >= 0 && w_column < kW;", "h < kH && w_column < kW;",
             "padding on the left repeats the previous row"),
    pixel("no_bottom_edge", "h >= 0 && h < kH &&", "h >= 0 &&", "padding at the bottom repeats the next channel"),
    skeleton("image_divisor_narrow", "pixel / (static_cast<Index>(kP) * kQ)", "pixel / static_cast<Index>(kP)",
             "images of a batch are mixed up"),
    emit("index_always_narrow", '{"index", kernel.wide_index ? "long long" : "int"}', '{"index", "int"}',
         "tensors of more than 2^31 elements: faults or garbage"),
    emit("bias_without_group", 'channel_values(problem.epilogue, "channel")',
         'channel_values(problem.epilogue, "k_first + k")', "all groups get the first one's bias"),
    emit("group_of_block", "blockIdx.x % (kGroups * kTilesK) / kTilesK;", "blockIdx.x % kGroups;",
         "groups of many filters are mixed up"),
    emit("nhwc_group_of_item", "const int group = k_item / kTilesK;", "const int group = k_item % kGroups;",
         "NHWC: groups of several filters are mixed up"),
    emit("pixel_step", "tiling.lanes_over_channels ? 1 :", "tiling.lanes_over_channels ? 2 :",
         "NHWC: some pixels are never computed"),
    tiling("grid_rounded_down", ": ceil_div(pixels, std::int64_t{kThreads} * thread_pixels) * tiles;",
           ": (pixels / (kThreads * thread_pixels) + 1 - 1 / ((pixels + kThreads - 1) / kThreads)) * tiles;",
           "the only block of a small image is not launched"),
    tiling("nhwc_grid_without_pixels", "ceil_div(ceil_div(pixels, thread_pixels) * tiles, kThreads)",
           "ceil_div(pixels / thread_pixels * tiles, kThreads)", "NHWC: the last pixels are not computed"),
    # Device functions.
    bf16("rounds_ties_up", "bits + 0x7fffu + ((bits >> 16) & 1u)", "bits + 0x8000u",
         "bf16 results are biased: ties are rounded away from zero"),
    bf16("truncates", "bits + 0x7fffu + ((bits >> 16) & 1u)", "bits", "bf16 results are truncated, twice the error"),
    bf16("loses_nan", "is_nan ? 0x7fffu : rounded >> 16", "rounded >> 16", "some NaNs become infinities or zeros"),
    bf16("reads_low_half", "static_cast<unsigned>(value.bits) << 16", "static_cast<unsigned>(value.bits)",
         "bf16 inputs are read as denormals"),
    f16("rounds_to_zero", "cvt.rn.f16.f32", "cvt.rz.f16.f32", "fp16 results are truncated, twice the error",
        host_blind=ASM),
    registers("no_zero_fill", "destination[i] = 0.0f;", "destination[i] = to_float(source[0]);",
              "padding is whatever lies beside the image, or a fault"),
    registers("one_element_short", "for (int i = 0; i < kElements; ++i) destination[i] = to_float(values.at[i]);",
              "for (int i = 0; i < (kElements > 1 ? kElements - 1 : 1); ++i) destination[i] = to_float(values.at[i]);",
              "every fourth column is what was in shared memory before"),
    asynchronous("no_zero_fill", "const int bytes = valid ? 4 * kElements : 0;", "const int bytes = 4 * kElements;",
                 "padding is whatever lies beside the image, or a fault", host_blind=ASM),
    asynchronous("vector_of_8_bytes", "[%0], [%1], 16, %2;", "[%0], [%1], 8, %2;",
                 "nothing compiles: cp.async.cg copies 16 bytes only", host_blind=ASM),
    asynchronous("waits_for_all_but_more", "cp.async.wait_group %0;", "cp.async.wait_group %0 + 1;",
                 "tiles are used before they have arrived", host_blind=ASM),
    vector("unaligned", "struct alignas(kElements * sizeof(Element)) ElementVector", "struct ElementVector",
           "right results, four times as many instructions to load and store",
           host_blind="on a CPU a model takes the place of this text"),
]
