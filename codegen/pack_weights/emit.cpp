// Prints templates/pack_weights/kernel.cu.in: how packed weights lie. What a block reads of a gradient's w is in
// emit_gradient.cpp.
#include "codegen/pack_weights/emit.h"

#include <algorithm>

#include "codegen/arithmetic.h"
#include "codegen/f16_pairs.h"
#include "codegen/pack_weights/pass.h"
#include "codegen/text/layout_comment.h"
#include "codegen/text/phases_text.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

constexpr std::int64_t kMostInFlight = 16;  // words of a thread on their way from w

bool is_gradient(const Problem& problem) { return PackWeightsTiling::reads_gradient(problem); }
bool joins_groups(const Problem& problem) { return PackWeightsTiling::joins_groups(problem); }

/// Whether two elements of w are read at a time: pieces start and end between words of four bytes.
bool reads_pairs(const Problem& problem) {
  return !is_gradient(problem) && problem.weight.element_bytes() == 2 && problem.c * problem.taps() % 2 == 0;
}

/// What counts the taps of a filter row, and the name of one.
struct TapNames {
  std::string_view count, tap;
};
TapNames tap_names(const PackWeightsTiling& tiling) {
  return tiling.folded_columns > 1 ? TapNames{"kRowTaps", "t"} : TapNames{"kS", "s"};
}

/// Taps in the order of their pixels' places.
std::vector<int> order_of_taps(const Problem& problem, const PackWeightsTiling& tiling) {
  return tap_order(problem, tiling.filter_rows, tiling.row_pitch, tiling.folded_columns);
}

/// The unit of a tap and of the slice that is packed, of its larger part where weights are pairs.
std::string unit_of_tap(const PackWeightsTiling& tiling, std::string_view tap) {
  constexpr std::string_view kSlice = "(first_slice + slice) % kSlices";
  if (!tiling.f16_pairs) return fmt::format("{} * kSlices + {}", tap, kSlice);
  return fmt::format("({0} * kSlices + {1}) / 2 * 4 + (first_slice + slice) % 2", tap, kSlice);
}

/// Which tap of the slice its row `row` is, and where the row lies: this is the order of steps and units.
std::string place_of_row(const Problem& problem, const PackWeightsTiling& tiling) {
  const std::vector<int> order = order_of_taps(problem, tiling);
  const auto [count, tap] = tap_names(tiling);
  const bool in_order = std::is_sorted(order.begin(), order.end());
  if (tiling.filter_rows > 1)
    return fmt::format(
        "const int {};\n"
        "const int step = (first_slice + slice) / kSlices;\n"
        "const int unit = {};\n",
        in_order ? fmt::format("r = row / {0}, {1} = row % {0}", count, tap)
                 : fmt::format("tap = kTapOrder[row], r = tap / {0}, {1} = tap % {0}", count, tap),
        unit_of_tap(tiling, "row"));
  return fmt::format(
      "const int r = row / kUnitsOfSlice, tap = row % kUnitsOfSlice, {} = {};\n"
      "const int step = (first_slice + slice) / kSlices * kR + r;\n"
      "const int unit = {};\n",
      tap, in_order ? "tap" : "kTapOrder[tap]", unit_of_tap(tiling, "tap"));
}

/// Taps in the order of their pixels' places, if that is not the filter's.
std::string tap_order_table(const Problem& problem, const PackWeightsTiling& tiling) {
  const std::vector<int> order = order_of_taps(problem, tiling);
  if (std::is_sorted(order.begin(), order.end())) return {};
  const bool columns = tiling.filter_rows == 1;
  const std::string_view count = tap_names(tiling).count;
  const std::string none = columns ? std::string(count) : fmt::format("kR * {}", count);
  std::string list;
  for (const int tap : order) list += fmt::format("{}{}", list.empty() ? "" : ", ", tap);
  if (tiling.has_empty_unit(problem)) list += fmt::format(", {}", none);
  return fmt::format(
      "// {} in the order of their pixels in a run; {} stands for none.\n__constant__ int kTapOrder[] = {{{}}};\n",
      columns ? "Filter columns" : fmt::format("Taps, r * {} + {},", count, tap_names(tiling).tap), none, list);
}

/// Tables, and what reads them or makes parts of weights.
std::string tables(const Problem& problem, const PackWeightsTiling& tiling) {
  return tap_order_table(problem, tiling) + (problem.is_sub_pixel() ? filter_tap_function(problem) : "") +
         (tiling.fold(problem).shared_columns() > 0 ? std::string(embedded_text("pack_weights/part_of_weight.cu.in"))
                                                    : "");
}

RowText row_text(const Problem& problem, const PackWeightsTiling& tiling) {
  if (joins_groups(problem)) return joined_row(problem, tiling);
  if (is_gradient(problem)) return {gradient_first_channel(problem, tiling), "first_channel[c * kPiecePitch]"};
  return {
      "const Element* first_channel = pieces + k * kPiecePitch + slice * (kOperandChannels * kR * kS) + r * kS + s;\n",
      "first_channel[c * (kR * kS)]"};
}

/// When the row has weights; empty if it always has.
std::string has_weights(const Problem& problem, const PackWeightsTiling& tiling) {
  const bool folded = tiling.folded_columns > 1;
  std::string text = folded ? "s < kS" : "";
  const auto also = [&](std::string_view condition) { text += (text.empty() ? "" : " && ") + std::string(condition); };
  if (tiling.has_empty_unit(problem)) also(tiling.filter_rows > 1 ? "r < kR" : folded ? "t < kRowTaps" : "s < kS");
  if (problem.is_sub_pixel() && !tiling.leaves_zero_taps) also("tap_of_w >= 0");
  if (joins_groups(problem)) also("first_c + c >= 0 && first_c + c < kJoinedC");
  return text;
}

std::string_view block_rows(const PackWeightsTiling& tiling) {
  return tiling.folded_columns > 1 ? "kBlockRows" : "kBlockK";
}

/// Rows of a tile's step.
std::string step_rows(const PackWeightsTiling& tiling) {
  return fmt::format("{}kUnits * {}", tiling.parts > 1 ? "kParts * " : "", block_rows(tiling));
}

/// The line that writes the channels of a slice of a tap.
std::string store_row(const PackWeightsTiling& tiling) {
  const std::string_view column = tiling.folded_columns > 1 ? " + column * kWarpK" : "";
  if (tiling.f16_pairs) return "store_f16_rows<2 * kBlockK>(rows + (step * kUnits + unit) * kBlockK, channel, scale);";
  if (tiling.parts == 1)
    return fmt::format("rows[(step * kUnits + unit) * {}{}] = operand_row(channel);", block_rows(tiling), column);
  return fmt::format("store_split_row<kUnits * {0}>(rows + (step * kParts * kUnits + unit) * {0}{1}, channel);",
                     block_rows(tiling), column);
}

/// Which row of a unit of its tile channel `k` has first.
std::string row_of_tile(const PackWeightsTiling& tiling, std::string_view k) {
  if (tiling.folded_columns == 1) return std::string(k);
  return fmt::format("({0} / kWarpK * 16 + {0} % kWarpK)", k);
}

/// The rows that a thread writes.
std::string rows(const Problem& problem, const PackWeightsTiling& tiling) {
  if (is_gradient(problem) || joins_groups(problem))
    return fmt::format("uint4* rows = packed_w + tile * (kSteps * {}) + {};\n", step_rows(tiling),
                       row_of_tile(tiling, "k_of_tile"));
  const bool folded = tiling.folded_columns > 1;
  return fmt::format(
      "const int k = static_cast<int>(threadIdx.x) % kPackK;\n"
      "uint4* rows = packed_w + tile * (kSteps * {}) + {};\n",
      step_rows(tiling), folded ? row_of_tile(tiling, "(k_of_tile + k)") : "k_of_tile + k");
}

/// What counts a block's slices, and the head of the loop over those of a thread's rows.
Holes item_loop(const Problem& problem, const PackWeightsTiling& tiling) {
  const bool phases = is_gradient(problem) && problem.is_sub_pixel();
  // Compilers unroll loops with constant ends.
  const bool all_alike = phases && tiling.packed_slices(problem) % tiling.block_slices == 0;
  const std::string end = fmt::format("{} * {}", all_alike ? "kPackSlices" : "slices",
                                      tiling.folded_columns > 1 ? "(kRowsOfSlice * kFoldedColumns)" : "kRowsOfSlice");
  const std::string_view first = phases ? "static_cast<int>(threadIdx.x / kPackLanes)"
                                        : "static_cast<int>(threadIdx.x) / kPackK",
                         lanes = phases ? "kPackLanes" : "kPackK";
  const std::string head =
      phases && tiling.lanes_are_all_threads(problem)
          ? fmt::format("for (int item = 0; item < {}; ++item) {{", end)
          : fmt::format("for (int item = {}; item < {};\n     item += kThreads / {}) {{", first, end, lanes);
  return {{"count_slices", all_alike ? ""
                                     : "const int slices = kPackedSlices - first_slice < kPackSlices ? kPackedSlices - "
                                       "first_slice : kPackSlices;"},
          {"for_each_item", head}};
}

/// Lines that write rows of packed weights.
std::string write_rows(const Problem& problem, const PackWeightsTiling& tiling) {
  const auto [first_channel, weight] = row_text(problem, tiling);
  const std::string exists = has_weights(problem, tiling);
  Holes holes = item_loop(problem, tiling);
  holes.insert({{"rows", rows(problem, tiling)},
                {"place_of_row", place_of_row(problem, tiling)},
                {"first_channel", first_channel},
                {"store_row", store_row(tiling)}});
  if (tiling.folded_columns == 1) {
    holes.emplace("element", exists.empty() ? weight : fmt::format("{} ? {} : from_float(0.0f)", exists, weight));
    return fill_template(embedded_text("pack_weights/rows.cu.in"), holes);
  }
  holes.emplace("weight", weight);
  holes.emplace("has_weight", exists);
  holes.emplace("share_columns", tiling.fold(problem).shared_columns() > 0
                                     ? std::string(embedded_text("pack_weights/share_columns.cu.in"))
                                     : "");
  return fill_template(embedded_text("pack_weights/rows_folded.cu.in"), holes);
}

std::string constants(const Problem& problem, const PackWeightsTiling& tiling) {
  const std::int64_t in_word = 4 / problem.weight.element_bytes();
  const std::int64_t read = is_gradient(problem) ? tiling.load_elements(problem) : reads_pairs(problem) ? 2 : 1;
  const std::int64_t loads = tiling.piece_words(problem) * in_word / read;
  const std::int64_t most = read * problem.weight.element_bytes() > 4 ? kMostInFlight / 4 : kMostInFlight;
  const std::int64_t of_thread = ceil_div(tiling.pieces(problem) * loads, PackWeightsTiling::kThreads);
  const std::int64_t units = tiling.units / tiling.slices;
  const std::string_view part = tiling.parts > 1 ? "[part]" : "";
  Constants c;
  c.group(tiling.folded_columns > 1
              ? fmt::format("Packed weights: [tile of k][step]{}[unit][warp][filter column][k of the warp], rows of 16 "
                            "bytes",
                            part)
              : fmt::format("Packed weights: [tile of k][step]{}[unit][k of the tile], rows of 16 bytes", part));
  c.add("kR", problem.rows.taps).add("kS", problem.columns.taps);
  c.add("kChannels", problem.c, "of a group").add("kGroupK", problem.k);
  if (is_gradient(problem))
    c.add("kWeightStrideGroup", problem.weight.group).add("kWeightStrideC", problem.weight.stride.c);
  if (problem.is_sub_pixel()) add_filter_constants(c, problem);
  c.add("kBlockK", tiling.tile_channels, "of a tile").add("kTilesK", tiling.tiles_k(problem));
  if (tiling.folded_columns > 1) {
    const ColumnFold fold = tiling.fold(problem);
    c.add("kFoldedColumns", tiling.folded_columns, "neighbouring filter columns of a tap, each with rows of its own");
    c.add("kRowTaps", fold.taps(), "of a filter row").add("kLastColumn", fold.last_column(), "the last tap's first");
    c.add("kBlockRows", tiling.tile_channels * tiling.folded_columns, "of a tile");
    c.add("kWarpK", 16 / tiling.folded_columns, "channels that a warp of the convolution multiplies");
  }
  c.add("kSlices", tiling.slices / tiling.item_rows(), tiling.f16_pairs ? "of kOperandChannels channels" : "");
  if (tiling.f16_pairs) c.add("kOperandChannels", 8, "of a row of either part");
  c.add("kSteps", tiling.steps(problem)).add("kUnits", tiling.units, "of a step");
  if (tiling.parts > 1) c.add("kParts", tiling.parts, "TF32 numbers of a weight, the larger one first");
  c.add("kPackedSlices", tiling.packed_slices(problem), "in all");

  if (tiling.f16_pairs) c.add("kRangeRow", tiling.range_row(problem), "behind all rows of 16 bytes");

  if (joins_groups(problem)) {
    add_joined_block(c, problem, tiling);
  } else if (is_gradient(problem)) {
    add_gradient_block(c, problem, tiling);
  } else {
    c.group("A block packs kPackSlices slices of kPackK output channels, of each a piece of w");
    c.add("kThreads", PackWeightsTiling::kThreads);
    c.add("kPackK", tiling.block_channels).add("kPackSlices", tiling.block_slices);
  }
  c.add("kPackBlocksOfK", ceil_div(tiling.packed_slices(problem), tiling.block_slices), "that share output channels");
  if (!joins_groups(problem)) {
    c.add("kWordElements", read, "that one load reads").add("kPieceWords", loads);
    c.add("kPackBatch", ceil_div(of_thread, ceil_div(of_thread, most)), "words of a thread in flight");
    c.add("kPiecePitch", tiling.piece_pitch(problem) * in_word,
          is_gradient(problem) ? "elements" : "elements, an odd number of banks");
  }
  if (tiling.filter_rows == 1) c.add("kUnitsOfSlice", units, "in a step");
  c.add("kRowsOfSlice", tiling.slice_rows(problem), "of an output channel");
  std::string text = c.text();
  text.pop_back();
  return text;
}

}  // namespace

KernelText pack_weights::emit(const KernelPlan& kernel, std::string_view name) {
  const auto& tiling = std::get<PackWeightsTiling>(kernel.tiling);
  const Problem& problem = kernel.problem;
  const bool pairs = reads_pairs(problem);
  KernelText text;
  text.arguments = {{problem.weight.tensor, "const Element* __restrict__", "w"},
                    {tiling.packed, "uint4* __restrict__", "packed_w"}};
  text.files = {
      {element_header(problem.weight.type)}, {"device/dependent_launch.cuh"}, {operand_header(problem.weight.type)}};
  if (is_gradient(problem))
    text.files.push_back({"device/vector.cuh"});
  else if (!joins_groups(problem))
    text.files.push_back({load_header(problem.weight.type)});
  if (tiling.parts > 1) text.files.push_back({"device/split_tf32.cuh"});
  if (tiling.f16_pairs) text.files.insert(text.files.end(), {{"device/pair_f16.cuh"}, {"device/split_f16.cuh"}});
  Holes holes = {{"constants", constants(problem, tiling)},
                 {"tables", tables(problem, tiling)},
                 {"kernel", std::string(name)},
                 {"parameters", parameter_list(text.arguments)},
                 {"find_scale", tiling.f16_pairs ? "wait_for_previous_kernel();  // which finds the range of w\n" +
                                                       find_scale("packed_w + kRangeRow")
                                                 : ""},
                 {"part", tiling.parts > 1 ? "[part]" : ""},
                 {"row", tiling.folded_columns > 1 ? "row of a tile" : "k of the tile"}};
  if (joins_groups(problem)) {
    text.text = fill_joined(problem, tiling, write_rows(problem, tiling), std::move(holes));
    return text;
  }
  holes.emplace("layout", LayoutComment("element")
                              .memory("0", fmt::format("{} pieces of w, kPiecePitch from one to the next",
                                                       is_gradient(problem) ? "kPackC" : "kPackK"))
                              .text());
  if (is_gradient(problem)) {
    text.text = fill_gradient(problem, tiling, write_rows(problem, tiling), std::move(holes));
    return text;
  }
  holes.emplace("word", pairs ? "unsigned" : "Element");
  holes.emplace("load_word", pairs ? "load_pair_if" : "load_if");
  holes.emplace("store_word", pairs ? "*reinterpret_cast<unsigned*>(pieces + k * kPiecePitch + place)"
                                    : "pieces[k * kPiecePitch + place]");
  holes.emplace("write_rows", write_rows(problem, tiling));
  text.text = fill_template(embedded_text("pack_weights/kernel.cu.in"), holes);
  return text;
}

}  // namespace jitconv::codegen
