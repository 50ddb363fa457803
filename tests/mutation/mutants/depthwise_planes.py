"""Mutants of the depthwise_planes family: its templates, its emitter, its plan."""
from mutants.mutant import File

skeleton = File("templates/depthwise_planes/kernel.cu.in", "depthwise_planes")
store = File("templates/depthwise_planes/store.cu.in", "depthwise_planes_store")
emit = File("codegen/depthwise_planes/emit.cpp", "emit_depthwise_planes")
plan = File("codegen/depthwise_planes/candidates.cpp", "depthwise_planes_plan")

MUTANTS = [
    skeleton("padding_left_ignored", "s * kDilationW - kPadLeft;", "s * kDilationW;",
             "every image is convolved too far right"),
    skeleton("padding_top_ignored", "p_thread * kStrideH - kPadTop;", "p_thread * kStrideH;",
             "every image is convolved too far down"),
    skeleton("stride_of_threads", "const int h_thread = p_thread * kStrideH", "const int h_thread = p_thread",
             "strided convolutions: threads but the first of a plane read other rows"),
    skeleton("no_left_limit", "if (column >= 0 && column < kW)", "if (column < kW)",
             "padding on the left is read from in front of the row's registers"),
    skeleton("no_right_limit", "if (column >= 0 && column < kW)", "if (column >= 0)",
             "padding on the right is read from behind the row's registers"),
    skeleton("rows_always_inside", "if (inside) values", "values", "padding rows repeat neighbouring planes"),
    skeleton("planes_of_one_thread", "thread / kThreadsP, p_thread", "thread, p_thread",
             "threads of a plane compute other planes"),
    skeleton("channel_of_first_plane", "(plane_first + plane) % kChannels", "plane_first % kChannels",
             "all planes of a block are multiplied by one filter"),
    skeleton("channel_of_block", "(plane_first + plane) % kChannels", "plane % kChannels",
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
    plan("planes_of_no_whole_vectors", "tiling.planes = static_cast<int>(planes);",
         "tiling.planes = static_cast<int>(planes) + 1;", "runs do not start at multiples of 16 bytes"),
    plan("ends_of_no_whole_vectors",
         "if (planes * problem.input_plane() * problem.input.element_bytes() % kCopyBytes != 0 ||",
         "if (false ||", "tensors that end inside of 16 bytes: the last copy reads behind x"),
]
