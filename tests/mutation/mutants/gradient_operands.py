"""Mutants of how gradients get their operands: dz of the activation pass, boxes of NHWC tensors, and few channels that
are gathered."""
from mutants.mutant import File

activation = File("codegen/activation_gradient/emit.cpp", "emit_activation_gradient")
activation_pass = File("codegen/activation_gradient/pass.cpp", "activation_gradient_pass")
activation_kernel = File("templates/activation_gradient/kernel.cu.in", "activation_gradient")
boxes = File("codegen/wgrad_wgmma/emit_boxes.cpp", "emit_wgrad_boxes")
box_steps = File("templates/wgrad_wgmma/steps_boxes.cu.in", "wgrad_boxes")
box_bias = File("templates/wgrad_wgmma/bias_of_boxes.cu.in", "wgrad_bias_of_boxes")
gather = File("templates/wgrad_wgmma/gather_x.cu.in", "wgrad_gather")
columns = File("templates/wgrad_wgmma/add_columns.cu.in", "wgrad_add_columns")

MUTANTS = [
    # dz = dy * f'(saved).
    activation("zero_passes", "return y <= 0.0f ? 0.0f : dy;", "return y < 0.0f ? 0.0f : dy;",
               "relu: pixels that are 0 have a gradient"),
    activation("nan_stopped", "return y <= 0.0f ? 0.0f : dy;", "return y > 0.0f ? dy : 0.0f;",
               "relu: a NaN that was saved hides the gradient"),
    activation("slope_of_zero", "return y > 0.0f ? dy : dy *", "return y >= 0.0f ? dy : dy *",
               "leaky_relu: the derivative at 0 is not PyTorch's"),
    activation("density_without_z", "return dy * (cdf + z * pdf);", "return dy * (cdf + pdf);",
               "gelu: gradients are those of another function"),
    activation("cube_not_derived", "literal(3 * kappa));", "literal(kappa));", "gelu_tanh: gradients are off by per cents"),
    activation("silu_without_z", "(s * (1.0f + z * (1.0f - s)))", "(s * (1.0f + (1.0f - s)))",
               "silu: gradients are those of another function"),
    activation("limit_passes", "return y <= {} || y >= {} ? 0.0f : dy;", "return y < {} || y > {} ? 0.0f : dy;",
               "clamp: pixels at its limits have a gradient"),
    activation_kernel("last_vector_dropped", "i < kDyElements; ++i)", "i + 1 < kDyElements; ++i)",
                      "a last element that fills no vector is what was there before"),
    activation_kernel("tail_in_vectors", "if (kDyElements % kVector != 0 && kDyElements - first < kVector) {",
                      "if (false) {", "a last vector is read and written behind its tensor"),
    activation_pass("overlapped", "  reader->starts_early = false;\n", "", "the gradient reads dz before it is written",
                    host_blind="kernels of a launch run one after the other on the host"),
    activation_pass("before_what_packs", "return !packs_weights(kernel.family());", "return true;",
                    "a launch with packed weights leaves dz out"),
    # Boxes of 16-bit NHWC tensors, multiplied as they lie.
    boxes("phase_of_first", "phase * geometry.problem().input_channels() +", "0 * phase +",
          "strided: taps meet the columns of another phase"),
    boxes("parts_of_one", "box % geometry.parts() * std::int64_t{geometry.row_channels()}", "std::int64_t{0}",
          "channels behind the first 64 are the first again"),
    boxes("place_without_phase", "operand.phase * geometry.parts() * geometry.box_bytes()", "0 * geometry.box_bytes()",
          "strided: all taps read the first phase's box"),
    boxes("taps_in_place_of_parts", 'joins_taps ? "kDilationW * kRowBytes" : "kBoxBytes"',
          'joins_taps ? "kRowBytes" : "kBoxBytes"', "dilated: joined taps read pixels that lie too near"),
    boxes("image_of_rows", "map.strides = {1, stride * x.w, x.h, x.n};", "map.strides = {1, stride * x.w, x.h, x.h};",
          "images behind the first are others' rows"),
    boxes("steps_of_dy_in_elements", "dy_pixels + block * kDyOperandStep", "dy_pixels + block",
          "blocks of pixels behind the first multiply others' dy"),
    boxes("sum_begins_with_every_block", "const int accumulate = block == 0 ? accumulate_first : 1;",
          "const int accumulate = block == 0 ? 0 : 1;", "only the last row of a strip counts"),
    box_steps("slots_not_awaited", "barrier_wait(x_empty + slot, x_row / kXRows % 2 ^ 1);\n", "\n",
              "rows of x are overwritten while they are multiplied"),
    box_steps("rows_of_first_filter_row", "(r_first + r) * kDilationH", "r * kDilationH",
              "filter rows in several blocks have the first ones' sums"),
    box_steps("channels_of_first_tile", "group * kChannels + c_block,", "group * kChannels,",
              "input channels behind the first tile have its sums"),
    box_steps("filters_of_first_box", "k_first + k,", "k_first,", "output channels behind the first 64 have their sums"),
    box_bias("pair_exchanged", "bias_sum[1] += to_float(Element{static_cast<unsigned short>(pair >> 16)});",
             "bias_sum[1] += to_float(Element{static_cast<unsigned short>(pair)});", "odd channels have db of even ones"),
    box_bias("not_swizzled", "^ pixel % 8 * 16", "^ 0", "db has the sums of other channels"),
    # Few channels: a column of the product for each channel and filter column.
    gather("taps_apart_by_one", "- kPadLeft + s * kDilationW;", "- kPadLeft + s;", "dilated: taps meet columns too near"),
    gather("channels_behind_the_last", "const bool valid = c < kChannels && row_inside;",
           "const bool valid = row_inside;", "what lies behind the last channel is read"),
    gather("row_border", "c < kChannels && row_inside", "c < kChannels", "rows outside of the image are read"),
    gather("column_border", "valid && static_cast<unsigned>(column + j * kStrideW) < kW", "valid",
           "padding is what lies beside the row"),
    gather("not_awaited", "    if (first == 0) barrier_wait(empty, parity);\n", "",
           "rows of x are overwritten while they are multiplied"),
    columns("taps_exchanged", "const int c = column / kS, s = column % kS;",
            "const int s = column / kChannels, c = column % kChannels;", "sums of taps are those of other channels"),
    columns("behind_the_last_channel", "k_of_sum >= kGroupK || c >= kChannels", "k_of_sum >= kGroupK",
            "zeros behind the last channel overwrite other sums"),
]
