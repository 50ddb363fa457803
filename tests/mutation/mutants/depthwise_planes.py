"""Mutants of the depthwise_planes family: its templates, its emitter, its plan."""
from mutants.mutant import File

skeleton = File("templates/depthwise_planes/kernel.cu.in", "depthwise_planes")
own = File("templates/depthwise_planes/own_weights.cu.in", "depthwise_planes_own")
share = File("templates/depthwise_planes/share_weights.cu.in", "depthwise_planes_share")
shared = File("templates/depthwise_planes/shared_weights.cu.in", "depthwise_planes_shared")
store = File("templates/depthwise_planes/store.cu.in", "depthwise_planes_store")
emit = File("codegen/depthwise_planes/emit.cpp", "emit_depthwise_planes")
plan = File("codegen/depthwise_planes/candidates.cpp", "depthwise_planes_plan")

MUTANTS = [
    emit("padding_left_ignored", "s * kDilationW - kPadLeft;", "s * kDilationW;",
             "every image is convolved too far right"),
    emit("padding_top_ignored", '"p_thread * kStrideH - kPadTop"', '"p_thread * kStrideH"',
             "every image is convolved too far down"),
    emit("stride_of_threads", '"p_thread * kStrideH - kPadTop"', '"p_thread - kPadTop"',
             "strided convolutions: threads but the first of a plane read other rows"),
    skeleton("no_left_limit", "if (column >= 0 && column < kW)", "if (column < kW)",
             "padding on the left is read from in front of the row's registers"),
    skeleton("no_right_limit", "if (column >= 0 && column < kW)", "if (column >= 0)",
             "padding on the right is read from behind the row's registers"),
    skeleton("rows_always_inside", "if (inside) values", "values", "padding rows repeat neighbouring planes"),
    skeleton("planes_of_one_thread", "thread / kThreadsP, p_thread", "thread, p_thread",
             "threads of a plane compute other planes"),
    own("channel_of_first_plane", "(plane_first + plane) % kChannels", "plane_first % kChannels",
             "all planes of a block are multiplied by one filter"),
    own("channel_of_block", "(plane_first + plane) % kChannels", "plane % kChannels",
             "blocks but the first are multiplied by filters of the first channels"),
    skeleton("too_few_planes", "kAllPlanes - plane_first < kPlanes ?", "kAllPlanes - plane_first > kPlanes ?",
             "all blocks copy planes behind the last, or none"),
    skeleton("no_wait", "  copy_wait<0>();\n", "", "planes are used before they have arrived"),
    skeleton("no_barrier", "  copy_wait<0>();\n  __syncthreads();\n", "  copy_wait<0>();\n",
             "planes are used before other threads' copies have arrived"),
    store("no_barrier_before", "__syncthreads();  // outputs take the place of inputs that others may still read\n", "",
          "outputs overwrite rows that are still read"),
    store("no_barrier_behind", "}\n__syncthreads();\nfor", "}\nfor",
          "planes leave before all outputs are in them"),
    store("rows_of_y_as_of_x", "plane * kP + p_thread + i", "plane * kH + p_thread + i",
          "outputs of planes after the first lie elsewhere if P is not H"),
    store("one_block_leaves", "y_run + i", "y + i", "all blocks write the first planes"),
    emit("taps_forwards", '"kTaps - 1 - tap"', '"tap"', "gradients multiply by the filter's mirror image"),
    emit("short_block_reads_all", 'add("plane < planes");', "", "rows of planes that were not copied are read"),
    emit("no_lower_rows", 'if (last >= problem.rows.input)', "if (false)", "padding below repeats the next plane"),
    emit("no_upper_rows", "if (first < 0)", "if (false)", "padding above repeats the plane before"),
    emit("dilated_rows", "offset % axis.dilation != 0 || ", "", "dilated filters meet rows between their taps"),
    emit("residual_behind_the_last", 'row_limit += "if (plane >= planes) break;\\n";', "",
         "the last block reads behind the residual"),
    emit("row_limit_dropped", 'row_limit += "if (p_thread + i >= kP) break;\\n";', "",
         "the last thread of a plane writes into the next one"),
    # Gradients with a stride.
    emit("phases_ignored", '         "if (place % kUpsamplingW != 0) continue;\\n";', '         "";',
         "outputs meet the taps of other phases, too"),
    emit("rows_of_other_phases", "h * axis.upsampling + axis.lead() - p", "h * axis.upsampling - p",
         "rows meet the taps of the next phase"),
    emit("first_row_of_dy", '"p_thread / kUpsamplingH + kFirstH"', '"p_thread / kUpsamplingH"',
         "padding above moves the gradient"),
    emit("bias_of_first_plane", '"(plane_first + plane) % kChannels" : "channel"', '"plane_first % kChannels" : "channel"',
         "gradients with a stride: planes after a block's first get its bias"),
    share("run_without_end", ") % (kChannels * kTaps)]", ")]", "images after the first: weights from behind w"),
    share("run_of_first_block", "plane_first % kChannels * kTaps + i", "i",
          "blocks after the first multiply by its weights"),
    shared("weights_of_first_plane", "weights[plane * kTaps + ", "weights[",
           "planes after a block's first are multiplied by its weights"),
    plan("threads_of_some_phases", "round_up(ceil_div(problem_.rows.output, parts), problem_.rows.upsampling)",
         "ceil_div(problem_.rows.output, parts)", "threads but the first of a plane begin with another phase"),
    plan("planes_of_no_whole_vectors", "tiling.planes = static_cast<int>(planes);",
         "tiling.planes = static_cast<int>(planes) + 1;", "runs do not start at multiples of 16 bytes"),
    plan("ends_of_no_whole_vectors",
         "if (planes * problem.input_plane() * problem.input.element_bytes() % kCopyBytes != 0 ||",
         "if (false ||", "tensors that end inside of 16 bytes: the last copy reads behind x"),
]
