"""Mistakes in the gradients of 1x1 filters: pixels that are joined or packed, and weights that are not transposed."""
from mutants.mutant import File

problem = File("codegen/problem.cpp", "join_pixels")
tiling = File("codegen/wgrad_wgmma/tiling.cpp", "packed_pixels")
candidates = File("codegen/wgrad_wgmma/candidates.cpp", "pointwise_gradient_candidates")
pack = File("templates/pack_pixels/tensor.cu.in", "pack_pixels")
exchange = File("templates/pack_pixels/exchange.cu.in", "pack_pixels_exchange")
emit_pack = File("codegen/pack_pixels/emit.cpp", "emit_pack_pixels")
steps = File("templates/wgrad_wgmma/steps_planes.cu.in", "wgrad_planes_steps")
multiply = File("templates/wgrad_wgmma/multiply_planes.cu.in", "wgrad_planes_multiply")
bias = File("templates/wgrad_wgmma/bias_of_planes.cu.in", "wgrad_planes_bias")
emit_planes = File("codegen/wgrad_wgmma/emit_planes.cpp", "emit_wgrad_planes")
weights = File("codegen/wgmma/arguments.cpp", "transposed_weights_map")
emit_weights = File("templates/wgmma/copy_transposed_weights.cu.in", "emit_transposed_weights")
emit_multiply = File("codegen/wgmma/emit_multiply.cpp", "emit_multiply_transposed")
transpose = File("templates/transpose_weights/tile.cu.in", "transpose_weights_tile")

MUTANTS = [
    problem("stride_of_columns_dropped", "  x.w *= columns.stride;\n", "", "with a stride, dw is of other columns"),
    problem("stride_of_rows_dropped", "    x.h *= rows.stride;\n", "", "with a stride, dw is of other rows"),
    problem("images_joined_whatever_their_distance", "x.n == columns.output * x.w && dy.n", "dy.n",
            "pixels of other channels are summed where only one of the tensors is NHWC"),
    candidates("skipped_pixels_multiplied", "if (skips && !packs_x) continue;", "",
               "with a stride, x is multiplied as if it had none"),
    tiling("padded_columns", "return round_up(columns.input, columns.stride);", "return columns.input;",
           "rows of no whole strides are read askew"),
    tiling("image_pitch_of_joined", "if (joins_images(*this, asked)) x.pitch.n = asked.output_plane();", "",
           "images but the first are written behind the scratch"),
    tiling("row_stride_dropped", "    x.source.stride.h *= asked.rows.stride;\n", "", "other rows are packed"),
    pack("past_the_last_pixel", "pixel < kAllPixels && channel < kChannels@in_row@", "channel < kChannels@in_row@",
         "x is read behind its end"),
    pack("last_channel_lost", "if (pixel < kAllPixels && channel < kChannels) *element",
         "if (pixel < kAllPixels && channel + 1 < kChannels) *element", "a channel's weights are garbage"),
    exchange("without_barrier", "__syncthreads();\n", "", "other threads' pixels are read before they are there"),
    emit_pack("zeros_lost", '" && column < kW"', '""', "columns behind the last meet a tap"),
    emit_pack("first_block_of_second", 'fmt::format(" - {}", blocks)', 'fmt::format(" - {}", blocks - 1)',
              "a part of dy is not packed"),
    steps("stage_not_awaited", "    barrier_wait(dy_empty + stage, step / kStages % 2 ^ 1);\n", "",
          "dy is overwritten while it is multiplied"),
    steps("slot_not_awaited", "    barrier_wait(x_empty + slot, step / kXRows % 2 ^ 1);\n", "",
          "x is overwritten while it is multiplied"),
    steps("parts_of_x_alike", "strip.q_first + part * kPartPixels, c_first", "strip.q_first, c_first",
          "the first part of a run is multiplied for every part"),
    multiply("parts_of_dy_alike", "dy_rows + part * (kBlockK * kSwizzleBytes / 16) + within", "dy_rows + within",
             "the first part of a run is multiplied for every part"),
    multiply("always_accumulates", "block == 0 ? accumulate_first : 1", "1", "sums begin with what registers held"),
    bias("half_of_a_word", "to_float(Element{static_cast<unsigned short>(pair)}) + ", "0.0f + ",
         "db lacks every second pixel"),
    emit_planes("pixels_not_awaited", '"wait_for_previous_kernel();\\n" : ""', '"" : ""',
                "pixels are asked for while they are still being packed"),
    weights("groups_alike", ".strides = {1, problem.weight.stride.c, problem.weight.group},\n            .box = {64",
            ".strides = {1, problem.weight.stride.c, 8},\n            .box = {64",
            "groups but the first meet other weights"),
    emit_weights("second_half_is_first", "tile.k_tile * kBlockK + k, @chunk@ * kChunkChannels",
                 "tile.k_tile * kBlockK, @chunk@ * kChunkChannels", "half of the channels repeat the other half"),
    emit_multiply("weights_of_other_channels",
                  'fmt::format("{} * kSwizzleBytes / 16", channel)', 'fmt::format("{} * kSwizzleBytes / 16", channel ^ 16)',
                  "pixels meet other channels' weights"),
    transpose("last_channel_lost", "if (first_c + c < kChannels && first_k + k < kGroupK)\n        result",
              "if (first_c + c + 1 < kChannels && first_k + k < kGroupK)\n        result", "a channel's weights are garbage"),
    transpose("channels_exchanged", "value[k][c] = source", "value[c][k] = source", "weights are where they were"),
]
