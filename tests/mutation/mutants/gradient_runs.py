"""Mutants of weight gradients whose operands are runs of planes that start at different places within 16 bytes."""
from mutants.mutant import File

tensor_map = File("codegen/tensor_map.h", "plane_period")
tiling = File("codegen/wgrad_wgmma/tiling.h", "wgrad_periods")
geometry = File("codegen/wgrad_wgmma/tiling.cpp", "wgrad_period_pitch")
maps = File("codegen/wgrad_wgmma/emit.cpp", "wgrad_period_maps")
multiply = File("codegen/wgrad_wgmma/emit_multiply.cpp", "emit_wgrad_periods")
copy_dy = File("templates/wgrad_wgmma/copy_dy_periods.cu.in", "wgrad_dy_periods")
copy_x = File("templates/wgrad_wgmma/copy_x_periods.cu.in", "wgrad_x_periods")
item = File("templates/wgrad_wgmma/item_of_periods.cu.in", "wgrad_item_of_periods")

MUTANTS = [
    tensor_map("of_one_plane", "return TensorMapShape::kUnit / std::gcd(TensorMapShape::kUnit, bytes);",
               "return TensorMapShape::kUnit / std::gcd(TensorMapShape::kUnit, bytes) > 0;",
               "planes are rows of a tensor map that start between its vectors"),
    tiling("pairs_never_cut", "return tiling_.orders() && !is_fp32() && problem_.columns.output % 2 != 0;",
           "return false && tiling_.orders();", "odd rows: pairs are read from between two words"),
    geometry("no_room_for_later_starts", "unit_pixels() * static_cast<int>(dy_period())", "unit_pixels()",
             "the last pixels of boxes behind the first are those of the next channel"),
    maps("planes_of_first_start", "map.strides = {1, period * view.stride.c, view.stride.n};",
         "map.strides = {1, view.stride.c, view.stride.n};", "a box has the planes of neighbouring channels"),
    multiply("row_of_channel", '"(dy_row + i % 2 * (kHalfRows / kDyPeriod))"', '"(k_lane + i % 2 * kHalfRows)"',
             "output channels have the pixels of others"),
    multiply("half_rows_of_channels", '"(dy_row + i % 2 * (kHalfRows / kDyPeriod))"', '"(dy_row + i % 2 * kHalfRows)"',
             "every second eight output channels have the pixels of others"),
    multiply("start_of_first_plane", "((dy_start * kOutputStrideC + p * kQ", "((p * kQ",
             "dy of channels whose planes start elsewhere is shifted"),
    multiply("half_of_a_last_pair", '"if (pixel + 1 == pixels_left) pair &= 0xffff;"', '""',
             "odd rows: behind the last pixel, the next row's first counts, too"),
    copy_dy("group_of_first", "(group * kGroupK + k_block) / kDyPeriod", "k_block / kDyPeriod",
            "all groups have the first one's dy"),
    copy_dy("rows_of_first_plane", "((start * kOutputStrideC + p * kQ", "((p * kQ",
            "dy of all channels of a period is the first one's"),
    copy_x("channels_of_first_tile", "(group * kChannels + c_block) / kXPeriod", "group * kChannels / kXPeriod",
           "input channels behind the first tile have its pixels"),
    copy_x("rows_of_first_plane", "(start * kInputStrideC + h * kW", "(h * kW",
           "x of all channels of a period is the first one's"),
    item("box_of_first_start", "raw_row + start * kRawBoxElements +", "raw_row +",
         "channels of a period are put in order from the first one's box"),
    item("start_of_first_plane", "((start * kInputStrideC + h * kW + first_column)", "((h * kW + first_column)",
         "x of channels whose planes start elsewhere is shifted"),
]
