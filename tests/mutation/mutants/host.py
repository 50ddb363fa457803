"""Mutants of host execution itself: models that differ from the GPU, checks that do not look, and their words."""
from mutants.mutant import File

f16 = File("host/models/element_f16.h", "model_f16")
copies = File("host/models/copy_async.h", "model_copy_async")
vectors = File("host/models/vector.h", "model_vector")
math = File("host/models/math.h", "model_math")
builtins = File("host/models/builtins.h", "model_builtins")
prelude = File("host/models/prelude.h", "model_prelude")
translation = File("host/translation.cpp", "translation")
asynchronous = File("host/async_copy.cpp", "async_copy")
clocks = File("host/clocks.cpp", "clocks")
shared = File("host/shared_memory.cpp", "shared_memory")
shared_fast = File("host/shared_memory.h", "shared_memory")
global_memory = File("host/global_memory.cpp", "global_memory")
global_fast = File("host/global_memory.h", "global_memory")
requests = File("host/warp_requests.cpp", "warp_requests")
block = File("host/block.cpp", "block")
phases = File("host/phase_barriers.cpp", "phase_barriers")
tiles = File("host/tile_multiply.cpp", "tile_multiply")
warpgroups = File("host/warpgroups.cpp", "warpgroups")
launch = File("host/launch_async.cpp", "launch_async")
bulk_stores = File("host/bulk_stores.cpp", "bulk_stores")
operand_runs = File("host/operand_place.h", "operand_place")
operand_place = File("host/operand_place.cpp", "operand_place")
boxes = File("host/tensor_box.cpp", "tensor_box")
box_runs = File("host/tensor_box.h", "tensor_box")
swizzle = File("host/swizzle.h", "swizzle")
tf32 = File("host/models/operand_tf32.h", "model_operand_tf32")

UNSEEN = "a kernel with this bug passes on a CPU: "

MUTANTS = [
    # Models.
    f16("truncates", "magnitude + 0xfffu + (magnitude >> 13 & 1u)", "magnitude",
        "fp16 results are truncated on a CPU and rounded on a GPU"),
    f16("ties_up", "magnitude + 0xfffu + (magnitude >> 13 & 1u)", "magnitude + 0x1000u",
        "fp16 ties are rounded up on a CPU and to even on a GPU"),
    f16("overflows_late", "magnitude >= 0x477ff000u", "magnitude > 0x477ff000u", "65520 is another number on a CPU"),
    f16("no_denormals", "if (magnitude == 0x7c00u) return", "if (magnitude < 0x400u) return 0.0f;\n  if (magnitude == 0x7c00u) return",
        "small fp16 numbers are zeros on a CPU"),
    copies("ignores_valid", "4 * kElements, valid);", "4 * kElements, true);", "padding is read from where there is none"),
    copies("waits_for_all", "jitconv_copy_async_wait(kGroups);", "jitconv_copy_async_wait(0);",
           UNSEEN + "waiting for too few groups"),
    copies("half_copied", "destination, source, 4 * kElements,", "destination, source, 4 * (kElements > 1 ? kElements / 2 : 1),",
           "every other pair of columns is missing"),
    vectors("two_accesses", "  JITCONV_ONE_ACCESS(ElementVector, kElements * sizeof(Element))\n", "",
            "a vector counts as several accesses, and its alignment is not checked"),
    math("fma_rounds_twice", "return __builtin_fmaf(a, b, c);", "return a * b + c;",
         "sums differ from the GPU's in the last bit"),
    builtins("shuffle_of_own_lane", "  return all[source];\n", "  return mine;\n", "shuffles return what they were given"),
    builtins("ballot_of_whole_warp", "if ((mask >> lane & 1) != 0 && all[lane] != 0)", "if (all[lane] != 0)",
             "votes of half a warp count lanes that do not vote"),
    builtins("sync_warp_of_nobody", "JITCONV_HOOK void jitconv_sync_warp(unsigned mask) {",
             "JITCONV_HOOK void jitconv_sync_warp(unsigned mask) {\n  if (mask != 0) return;",
             "__syncwarp() orders nothing: right kernels are called racy"),
    prelude("stores_unseen", "__tsan_write##bytes(void* address) { jitconv_api->store(",
            "__tsan_write##bytes(void* address) { jitconv_api->load(", UNSEEN + "every race"),
    translation("asm_passes", 'if (token == "asm" || token == "__asm__" || token == "__asm") {', 'if (token == "__asm__") {',
                "an instruction without a model is given to this machine's assembler"),
    translation("lines_of_unit", "    unit += line_directive(line_at(text, at), file);\n", "",
                "findings name the wrong lines"),
    translation("static_shared_passes", 'if (token == "__shared__" && previous != "extern") {', "if (false) {",
                UNSEEN + "static shared memory is every thread's own"),
    # Asynchronous copies.
    asynchronous("not_poisoned", "    std::memset(memory_ + operation.destination, kPoison, operation.bytes);\n", "    static_cast<void>(kPoison);\n",
                 "reads of copies under way see the old data instead of NaN"),
    asynchronous("not_pending", "marks_.begin_write(operation.proxy, issuer, operation.destination, operation.bytes, operation.pc);",
                 "Conflict{};", UNSEEN + "reads of copies under way"),
    asynchronous("wait_one_less", "const std::uint32_t complete = issued.closed_groups - groups;",
                 "const std::uint32_t complete = issued.closed_groups - groups + 1;", UNSEEN + "a missing commit"),
    asynchronous("late_copies_lost", "    if (!end->landed) land(*end);\n", "", "copies that land late never do"),
    asynchronous("zeros_not_written", "    std::memset(memory_ + operation.destination, 0, operation.bytes);\n", "    ;\n",
                 "padding is what was in shared memory before"),
    asynchronous("copies_survive_block", "      issued.closed_groups = 0;\n", "", "the next block waits for copies of the last"),
    # Barrier objects, bulk copies, multiplications.
    phases("bytes_do_not_count", "if (barrier.pending != 0 || barrier.bytes != 0) return;", "if (barrier.pending != 0) return;",
           UNSEEN + "stages read before they are there"),
    phases("phases_tell_nothing", "  clocks_.merge(barrier.arriving, barrier.complete);\n", "", "right kernels are called racy"),
    phases("invisible_passes", "  if (!barrier.visible)\n", "  if (false)\n", UNSEEN + "barriers that copies do not know"),
    phases("order_of_init_unseen", "  if (!view.after(barrier.initialiser, barrier.tick))\n", "  if (view.now < 0)\n",
           UNSEEN + "barriers used before they are any"),
    asynchronous("unfinished_phases_complete", "return copy.landed && copy.group < phases;", "return copy.landed;",
                 UNSEEN + "a wait for the phase before"),
    shared("unfenced_reads_pass", "} else if ((writer_[cell] & kAsyncProxy) == 0 && written > view.fenced[found.thread]) {",
           "} else if (false) {", UNSEEN + "a missing fence before a multiplication"),
    shared("unfenced_copies_pass", "proxy == Proxy::async ? unfenced(view, first, last) : Conflict{};", "proxy == Proxy::async ? Conflict{} : Conflict{};",
           UNSEEN + "a bulk copy that overtakes stores"),
    shared_fast("operands_are_free", "if (reads.tick[unit] >= view.first && reads.tick[unit] > view.seen[reads.column]) return false;",
                "if (reads.tick[unit] > view.now) return false;", UNSEEN + "operands that are overwritten too early"),
    warpgroups("wait_for_all", "const std::uint32_t complete = group.closed_groups - in_flight;",
               "const std::uint32_t complete = group.closed_groups + 0 * in_flight;", UNSEEN + "a wait for too few groups"),
    warpgroups("operands_may_differ", "else if (call.a != first.a || call.b != first.b)", "else if (call.a != first.a)",
               UNSEEN + "threads that multiply other operands"),
    warpgroups("sums_of_other_rows", "(row + 8 * i) * columns", "(row + 4 * i) * columns", "sums belong to other outputs on a CPU"),
    warpgroups("sums_are_free", "if (one.in_flight != 0 && address >= first", "if (one.in_flight == 0 && address >= first",
               UNSEEN + "sums that are used before they are there"),
    warpgroups("registers_from_nowhere", "    if (needed > free_registers_) return false;\n", "", UNSEEN + "registers nobody gives back"),
    tiles("all_bits_of_tf32", "bits & ~0x1fffu", "bits", "products of TF32 are more exact on a CPU"),
    tiles("rounds_like_fp16", "magnitude << 13) * 0x1p112f", "magnitude << 13) * 0x1p111f", "fp16 operands are half as large on a CPU"),
    bulk_stores("late_is_early", "if (early) std::memcpy", "std::memcpy",
                UNSEEN + "a source that is overwritten before its copy has been waited for"),
    bulk_stores("never_moves_late", "if (!end->moved) std::memcpy", "if (end->moved) std::memcpy",
                "late copies bring nothing on a CPU"),
    bulk_stores("changes_go_unseen", "if (before != end->bytes.end()) finished", "if (finished.size() > 64) finished",
                UNSEEN + "a source that changes before the wait"),
    bulk_stores("newest_group_complete", "issued.closed_groups - groups;", "issued.closed_groups;",
                UNSEEN + "waiting for too few groups"),
    bulk_stores("forgets_the_unfinished", "if (in_flight_ == 0) return nullptr;", "return nullptr;",
                UNSEEN + "a block that ends before its copies have read"),
    launch("store_bulk_unfenced", "shared_.check_read(block_.view(), offset, read.bytes))", "Conflict{})",
           UNSEEN + "a bulk store without a fence"),
    launch("waiting_reads_nothing", "shared_.load_slow(block_.view(), offset, store.bytes, low_half(store.pc)))",
           "Conflict{})", UNSEEN + "staging again without knowing of the wait"),
    launch("copies_land_early", "if (lands_early(settings_.landing, random_)) land_on(barriers_.at(operation.object));",
           "if (lands_early(settings_.landing, random_) || !conflict) land_on(barriers_.at(operation.object));",
           "copies never land late: what needs it is not seen"),
    launch("copies_need_no_wait", "    block_.log({Rule::unfinished_copy, pc_near(near, copy->pc), copy->issuer,",
           "    if (false) block_.log({Rule::unfinished_copy, pc_near(near, copy->pc), copy->issuer,", UNSEEN + "copies into the next block's memory"),
    tiles("swizzles_by_row", "swizzled(at + half * kPiece, operand.row_bytes)",
          "operand.first + swizzled(at - operand.first + half * kPiece, operand.row_bytes)",
          "operands that begin at a row that is no multiple of eight are others on a CPU"),
    swizzle("half_of_128", "(row_bytes / kSwizzlePiece - 1)", "(row_bytes / kSwizzlePiece - 1) % 4",
            "copies in rows of 128 bytes are swizzled as those in rows of 64"),
    swizzle("of_128_everywhere", "(row_bytes / kSwizzlePiece - 1)", "(row_bytes > 0 ? 7 : 0)",
            "rows of 32 and 64 bytes are swizzled as those of 128"),
    swizzle("by_row_of_its_width", "at >> 7 &", "at / row_bytes &", "rows of 32 and 64 bytes are swizzled each for itself"),
    operand_runs("reads_whole_rows", "left / (2 * kPiece) * (2 * kPiece), 2 * kPiece)", "left / row_bytes_ * row_bytes_, row_bytes_)",
                 "right kernels are called racy: what lies beside an operand counts as read"),
    operand_runs("reads_as_not_swizzled",
                 "swizzled(first_ + row / kRows * step_ + row % kRows * row_bytes_, row_bytes_)",
                 "first_ + row / kRows * step_ + row % kRows * row_bytes_",
                 UNSEEN + "a swizzled operand that is overwritten too early"),
    operand_place("any_step", "step_ % (kRows * row_bytes_) != 0", "step_ % (2 * kPiece) != 0",
                  UNSEEN + "rows of a swizzled operand that no GPU was seen to read"),
    operand_place("odd_pieces", "first_ % (2 * kPiece) != 0", "first_ % kPiece != 0",
                  UNSEEN + "an operand whose halves are no neighbours"),
    operand_place("layouts_change_places", "{0, 128, 64, 32}", "{0, 128, 32, 64}", "rows of 64 bytes are read as of 32 on a CPU"),
    boxes("walk_begins_behind_it", "at < lower || at >= end", "at < lower", UNSEEN + "a copy that is an illegal instruction"),
    boxes("walk_begins_anywhere", "(at - lower) % walk.stride[i] != 0", "false",
          UNSEEN + "a copy from a pixel that its walk jumps over"),
    boxes("walk_at_any_offset", "offset < 0 || offset > kMostOffset", "offset < 0", UNSEEN + "an offset that does not fit"),
    boxes("walk_in_any_image", "place.first[kImages] < 0 || place.first[kImages] >= shape.extents[kImages]",
          "place.first[kImages] < 0", UNSEEN + "a copy from behind the last image"),
    boxes("walk_from_corner_of_tensor", "rows_[i + 1] = {shape.walk->lower[i], ", "rows_[i + 1] = {0, ",
          "walks leave out the padding but in their first row"),
    boxes("walk_of_neighbours", ", shape.walk->stride[i]};", "};", "walks take no strides on a CPU"),
    boxes("walk_ends_with_tensor", "extents_[i + 1] + shape.walk->upper[i]", "extents_[i + 1]",
          "walks go on behind their upper corner"),
    boxes("walk_without_offset", "offset_[i + 1] = (*place.offset)[i];", "offset_[i + 1] = 0;", "every tap is the first on a CPU"),
    box_runs("offset_behind_the_border", "inside = at >= 0 && at < extents_[axis];",
             "inside = index[axis] >= 0 && at < extents_[axis];", "pixels of padding are zeros at every offset"),
    box_runs("rows_end_unseen", "      if (index[axis] < rows_[axis].end) return;\n", "      return;\n",
             "boxes and walks are of one row of pixels"),
    launch("walks_by_any_map", "buffers_[map.parameter].map.walk.has_value() == place.offset.has_value();", "true;",
           UNSEEN + "a walk by the map of a box"),
    boxes("ties_away", "bits + 0xfffu + (bits >> 13 & 1u)", "bits + 0x1000u",
          "ties are rounded away from zero on a CPU and to even on a GPU"),
    boxes("swizzled_ones_not_rounded", "if (!rounds_to_tf32_) return;", "if (!rounds_to_tf32_ || swizzle_bytes_ != 0) return;",
          "products of boxes are of truncated numbers on a CPU and of rounded ones on a GPU"),
    tf32("truncates", "(bits + 0xfffu + (bits >> 13 & 1u)) & ~0x1fffu", "bits & ~0x1fffu", "operands are truncated on a CPU and rounded on a GPU"),
    # Order of threads.
    clocks("barrier_orders_nothing", "  ordered_ = counter_;\n  std::fill(now_.begin(), now_.end(), ++counter_);\n",
           "  std::fill(now_.begin(), now_.end(), ++counter_);\n", "right kernels are called racy"),
    clocks("warp_is_block", "void Clocks::meet(std::span<const std::uint32_t> threads) {",
           "void Clocks::meet(std::span<const std::uint32_t> threads) {\n  if (!threads.empty()) return meet_all();",
           UNSEEN + "__syncwarp() between warps"),
    clocks("warp_orders_nothing", "    scratch_seen_[t] = std::max(scratch_seen_[t], now_[t]);\n", "",
           "right kernels are called racy"),
    # Marks of shared memory.
    shared("uninitialised_unseen", "  if (written < view.first) {\n    conflict.hazard", "  if (false) {\n    conflict.hazard", UNSEEN + "reads of what nobody wrote"),
    shared("race_of_stores_unseen", "if (written == Clocks::kPending || !view.after(writer_[cell] & kThreadMask, written)) {",
           "if (written == Clocks::kPending) {", UNSEEN + "two threads that write one place"),
    shared("race_with_reader_unseen", "  } else if (read_tick_[cell] > view.ordered) {", "  } else if (false) {",
           UNSEEN + "a missing barrier before a store"),
    shared("race_with_writer_unseen", "} else if (!view.after(writer_[cell] & kThreadMask, written)) {\n    conflict.hazard = Hazard::written;",
           "} else if (false) {\n    conflict.hazard = Hazard::written;", UNSEEN + "a missing barrier after a store"),
    shared_fast("fast_path_ignores_writes", "slow |= (write_tick[i] < view.first) | (write_tick[i] > view.ordered);",
                "slow |= write_tick[i] < view.first;", UNSEEN + "a missing barrier after a store"),
    shared_fast("fast_path_ignores_reads", "slow |= (write_tick[i] > view.ordered) | (read_tick[i] > view.ordered);",
                "slow |= write_tick[i] > view.ordered;", UNSEEN + "a missing barrier before a store"),
    # Global memory.
    global_fast("bounds_by_start", "address >= begin_ && address <= end_ && bytes <= end_ - address;",
                "bytes != 0 && address >= begin_ && address < end_;", UNSEEN + "a vector that reaches past the end of a tensor"),
    global_memory("race_of_blocks_unseen", "return tick != 0 && (tick < view.first || !view.after(thread, tick));",
                  "return tick != 0 && tick >= view.first && !view.after(thread, tick);",
                  UNSEEN + "two blocks that write one output"),
    global_memory("read_race_unseen", "  region.was_read_ = true;\n", "", UNSEEN + "an output that another thread reads"),
    # Counters and scheduling.
    requests("sectors_of_64_bytes", "sector = std::max(starts[i] / 32, next_sector), sector_end = (last - 1) / 32 + 1;",
             "sector = std::max(starts[i] / 64, next_sector), sector_end = (last - 1) / 64 + 1;",
             "half-sector stores do not show"),
    requests("sixteen_banks", "++of_bank[*word % 32]", "++of_bank[*word % 16]", "conflicts are counted where there are none"),
    block("order_of_index", "random_.below(static_cast<std::uint32_t>(ready_.size()))", "0",
          "threads run in one order: bugs that need another are not seen"),
    block("different_lines_pass", "    if (thread.pc == reference.pc || log_.line(thread.pc) == log_.line(reference.pc)) continue;\n",
          "    if (thread.pc != nullptr) continue;\n", UNSEEN + "threads that meet at different barriers"),
    block("mask_without_caller_passes", "  if ((wanted >> (thread.index % 32) & 1u) == 0) {", "  if (wanted == 0) {",
          UNSEEN + "a lane that is not in its own mask"),
]
