"""Mistakes in weight gradients of few output channels: exchanged operands, joined groups, the order of sums, and db."""
from mutants.mutant import File

tiling = File("codegen/wgrad_wgmma/tiling.cpp", "exchanged_operands")
family = File("codegen/wgrad_wgmma/family.cpp", "exchanged_passes")
limits = File("codegen/wgrad_wgmma/limits.cpp", "joined_limits")
problem = File("codegen/problem.cpp", "exchanged_operands")
header = File("codegen/wgrad_wgmma/tiling.h", "exchanged_sums")
filters = File("codegen/reduce/emit_filters.cpp", "exchanged_filters")
bias = File("templates/bias_gradient/kernel.cu.in", "bias_gradient")
emit_bias = File("codegen/bias_gradient/emit.cpp", "emit_bias_gradient")
bias_pass = File("codegen/bias_gradient/pass.cpp", "bias_gradient_pass")

MUTANTS = [
    tiling("padding_kept", "axis.pad = axis.reach() - axis.pad;", "", "dw is of pixels beside those it should be"),
    tiling("dilation_forgotten", "axis.pad = axis.reach() - axis.pad;", "axis.pad = axis.taps - 1 - axis.pad;",
           "dilated filters: dw is of pixels beside those it should be"),
    tiling("strides_exchanged", "return axis.stride == 1 && axis.reach() >= axis.pad;",
           "return axis.reach() >= axis.pad;", "with a stride, dw is of other pixels"),
    tiling("crops_exchanged", "return axis.stride == 1 && axis.reach() >= axis.pad;", "return axis.stride == 1;",
           "more padding than the filter reaches becomes a crop"),
    tiling("packed_tensor_is_read_as_other", "  dy.is_input = false;\n", "",
           "packed pixels of x take the place of those of dy"),
    tiling("view_with_gaps_as_dy", " && has_every_pixel(asked);", " && (has_every_pixel(asked) || true);",
           "strided 1x1 filters: pixels that the stride skips are multiplied"),
    tiling("packs_as_asked", "PackPixelsTiling WgradWgmmaTiling::packing_of(const Problem& of_user) const {\n"
           "  const Problem asked = unpacked_problem_of(of_user);",
           "PackPixelsTiling WgradWgmmaTiling::packing_of(const Problem& of_user) const {\n"
           "  const Problem asked = of_user;", "the tensor that needs no packing is packed"),
    problem("joined_channels", "  problem.c *= count;\n", "", "joined groups have the first one's input channels"),
    tiling("sums_of_db_as_asked", "problem.weight_elements(), sum_stride(problem)};",
           "asked.weight_elements(), sum_stride(problem)};", "of joined groups, db is a part of dw's sums"),
    header("no_place_for_db", "round_up(problem.weight_elements() + problem.input_channels(), 64)",
           "round_up(problem.weight_elements(), 64)", "sums of db lie where the next split's are"),
    limits("groups_that_do_not_divide", "problem.groups % count == 0 && count", "count",
               "the last groups have no gradient"),
    limits("depthwise_joined", "problem.k < kFewestMultiples) return 1;", "problem.k < 0 * kFewestMultiples) return 1;",
           "depthwise gradients become matrix products"),
    limits("sums_of_any_size", "problem.weight_elements() <= kMostSumBytes",
           "problem.weight_elements() / kMostSumBytes < 64",
           "some thousand groups take gigabytes of workspace"),
    limits("products_of_one_tensor", "std::min(problem.input_plane(), problem.output_plane())",
           "problem.output_plane()",
           "split operands serve sums too short for them"),
    family("db_forgotten", "if (tiling.exchanges && asked.epilogue.bias)", "if (false)", "db is what was in memory"),
    tiling("sums_as_asked", "exchanges ? GradientSums::Order::tap_c_k : GradientSums::Order::tap_k_c",
           "GradientSums::Order::tap_k_c", "dw has other channels' values"),
    filters("taps_forwards", "(((kTaps - 1 - tap) *", "((tap *", "dw is upside down"),
    filters("groups_alike", " + k / kGroupK) * static_cast<long long>(kChannels)",
            ") * static_cast<long long>(kChannels)", "all groups have the first one's gradient"),
    filters("groups_of_taps", "(kOutputChannels / kGroupK) + k", "1 + k",
            "of several groups, taps but the last are others'"),
    filters("products_of_other_groups", "k / kGroupK % kJoinedGroups", "0",
            "of joined groups, all but the first have products of two groups"),
    filters("joined_beyond_the_group", "k / kGroupK % kJoinedGroups", "k / kGroupK",
            "of several joined groups, the second reads behind its sums"),
    filters("db_behind_dw", "tiling.sums.bias_first", "problem.output_elements()",
            "of joined groups, db is a part of dw's sums"),
    filters("channels_in_order_of_dw", "(first_filter + filter) % kChannels", "(first_filter + filter) / kGroupK",
            "dw has other channels' values"),
    bias("channels_alike", "k * static_cast<long long>(kStrideC)", "static_cast<long long>(kStrideC)",
         "all of db is the sum of one channel"),
    bias("shares_alike", "i = share * kThreads + static_cast<int>(threadIdx.x)", "i = static_cast<int>(threadIdx.x)",
         "the first share's pixels are summed again and again"),
    bias("rows_alike", "pixel / kQ * static_cast<long long>(kStrideH)", "0LL", "the first row is summed for every row"),
    bias("first_image_only", "dy[n * kStrideN", "dy[0 * n * kStrideN", "db is of the first image"),
    bias("without_barrier", "  __syncthreads();\n", "", "warps' sums are added before they are there"),
    bias("last_warp_lost", "i < kThreads / 32; ++i) all", "i < kThreads / 32 - 1; ++i) all", "an eighth of db is lost"),
    emit_bias("sums_over_dw", "problem.weight_elements(), \"floats before those of db\"",
              "0, \"floats before those of db\"", "sums of db lie on those of dw"),
    bias_pass("a_share_less", "tiling.shares * asked.output_channels()",
              "(tiling.shares - 1) * asked.output_channels()",
              "the last share is what was in memory"),
]
