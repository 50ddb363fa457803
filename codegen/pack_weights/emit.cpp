// Prints templates/pack_weights/kernel.cu.in.
#include <algorithm>

#include "codegen/arithmetic.h"
#include "codegen/pack_weights/pass.h"
#include "codegen/text/phases_text.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

constexpr std::int64_t kMostInFlight = 16;  // words of a thread on their way from w

/// Whether w is that of a data gradient: channels are exchanged, and taps run from last to first.
bool reads_backwards(const Problem& problem) { return problem.weight.stride.w < 0; }

/// Whether two elements of w are read at a time: pieces start and end between words of four bytes.
bool reads_pairs(const Problem& problem) {
  return !reads_backwards(problem) && problem.weight.element_bytes() == 2 && problem.c * problem.taps() % 2 == 0;
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

/// Which tap of the slice its row `row` is, and where the row lies: this is the order of steps and units.
std::string place_of_row(const Problem& problem, const PackWeightsTiling& tiling) {
  const std::vector<int> order = order_of_taps(problem, tiling);
  const auto [count, tap] = tap_names(tiling);
  const bool in_order = std::is_sorted(order.begin(), order.end());
  if (tiling.filter_rows > 1)
    return fmt::format(
        "const int {};\n"
        "const int step = (first_slice + slice) / kSlices;\n"
        "const int unit = row * kSlices + (first_slice + slice) % kSlices;\n",
        in_order ? fmt::format("r = row / {0}, {1} = row % {0}", count, tap)
                 : fmt::format("tap = kTapOrder[row], r = tap / {0}, {1} = tap % {0}", count, tap));
  return fmt::format(
      "const int r = row / kUnitsOfSlice, tap = row % kUnitsOfSlice, {} = {};\n"
      "const int step = (first_slice + slice) / kSlices * kR + r;\n"
      "const int unit = tap * kSlices + (first_slice + slice) % kSlices;\n",
      tap, in_order ? "tap" : "kTapOrder[tap]");
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

/// The weight of channel `c`, zero where the row is that of a unit without a tap.
std::string element(const Problem& problem, const PackWeightsTiling& tiling) {
  const std::string weight = "first_channel[c * (kR * kS)]";
  if (!tiling.has_empty_unit(problem)) return weight;
  return fmt::format("{} ? from_float(0.0f) : {}", tiling.filter_rows > 1 ? "r == kR" : "s == kS", weight);
}

std::string_view block_rows(const PackWeightsTiling& tiling) {
  return tiling.folded_columns > 1 ? "kBlockRows" : "kBlockK";
}

/// Rows of a tile's step.
std::string step_rows(const PackWeightsTiling& tiling) {
  return fmt::format("{}kUnits * {}", tiling.parts > 1 ? "kParts * " : "", block_rows(tiling));
}

/// The line that writes four channels of a tap.
std::string store_row(const PackWeightsTiling& tiling) {
  const std::string_view column = tiling.folded_columns > 1 ? " + column * kWarpK" : "";
  if (tiling.parts == 1)
    return fmt::format("rows[(step * kUnits + unit) * {}{}] = operand_row(channel);", block_rows(tiling), column);
  return fmt::format("store_split_row<kUnits * {0}>(rows + (step * kParts * kUnits + unit) * {0}{1}, channel);",
                     block_rows(tiling), column);
}

/// Lines that write rows of packed weights.
std::string write_rows(const Problem& problem, const PackWeightsTiling& tiling) {
  if (tiling.folded_columns == 1)
    return fill_template(embedded_text("pack_weights/rows.cu.in"), {{"place_of_row", place_of_row(problem, tiling)},
                                                                    {"element", element(problem, tiling)},
                                                                    {"step_rows", step_rows(tiling)},
                                                                    {"store_row", store_row(tiling)}});
  const std::string_view exists = !tiling.has_empty_unit(problem) ? ""
                                  : tiling.filter_rows > 1        ? " && r < kR"
                                                                  : " && t < kRowTaps";
  return fill_template(embedded_text("pack_weights/rows_folded.cu.in"),
                       {{"place_of_row", place_of_row(problem, tiling)},
                        {"step_rows", step_rows(tiling)},
                        {"store_row", store_row(tiling)},
                        {"has_weight", fmt::format("s < kS{}", exists)},
                        {"share_columns", tiling.fold(problem).shared_columns() > 0
                                              ? std::string(embedded_text("pack_weights/share_columns.cu.in"))
                                              : ""}});
}

/// Where the block's first output channel begins.
std::string filter(const Problem& problem) {
  if (problem.is_sub_pixel())
    return "const Element* filter = w + static_cast<long long>(tile / kTilesK) * kWeightStrideGroup +\n"
           "                        static_cast<long long>(c_first) * kWeightStrideC;\n";
  if (!reads_backwards(problem))
    return "const Element* filter =\n"
           "    w + (static_cast<long long>(tile / kTilesK * kGroupK + k_first) * kChannels + c_first) * (kR * kS);\n";
  return "// In w, output channels of the gradient are neighbours, and their taps run from last to first.\n"
         "const Element* filter = w + (kR * kS - 1) + static_cast<long long>(tile / kTilesK) * kWeightStrideGroup +\n"
         "                        (static_cast<long long>(c_first) * kWeightStrideC + k_first * (kR * kS));\n";
}

/// Which output channel and which place of its piece a thread's load `i` brings: lanes run along what is contiguous.
std::string item(const Problem& problem) {
  if (!reads_backwards(problem))
    return "const int k = (first + i * kThreads) / kPieceWords;\n"
           "const int place = (first + i * kThreads - k * kPieceWords) * kWordElements;\n";
  return "const int item = first + i * kThreads;\n"
         "const int k = item / (kR * kS) % kPackK;\n"
         "const int place = item / (kPackK * kR * kS) * (kR * kS) + item % (kR * kS);\n";
}

/// A line that finds the tap in w that a load brings.
std::string filter_tap(const Problem& problem) {
  if (!problem.is_sub_pixel()) return {};
  return "const int tap = k_first + k < kGroupK ? filter_tap(k_first + k, item % (kR * kS)) : -1;\n";
}

std::string_view inside(const Problem& problem) {
  return reads_backwards(problem) ? "place < kPieceWords" : "k < kPackK";
}

std::string valid(const Problem& problem) {
  return fmt::format("{} && {} && place < length", inside(problem),
                     problem.is_sub_pixel() ? "tap >= 0" : "k_first + k < kGroupK");
}

std::string source_place(const Problem& problem) {
  if (problem.is_sub_pixel())
    return fmt::format("place / (kR * kS) * static_cast<long long>(kWeightStrideC) + {} * (kFilterR * kFilterS) + tap",
                       channel_of_phase(problem.phases, "(k_first + k)"));
  if (!reads_backwards(problem)) return "k * (static_cast<long long>(kChannels) * (kR * kS)) + place";
  return "place / (kR * kS) * static_cast<long long>(kWeightStrideC) + k * (kR * kS) - place % (kR * kS)";
}

std::string constants(const Problem& problem, const PackWeightsTiling& tiling) {
  const std::int64_t in_word = 4 / problem.weight.element_bytes(), read = reads_pairs(problem) ? 2 : 1;
  const std::int64_t loads = tiling.piece_words(problem) * in_word / read;
  const std::int64_t of_thread = ceil_div(tiling.block_channels * loads, PackWeightsTiling::kThreads);
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
  if (reads_backwards(problem))
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
  c.add("kSlices", tiling.slices).add("kSteps", tiling.steps(problem)).add("kUnits", tiling.units, "of a step");
  if (tiling.parts > 1) c.add("kParts", tiling.parts, "TF32 numbers of a weight, the larger one first");
  c.add("kPackedSlices", tiling.packed_slices(problem), "in all");

  c.group("A block packs kPackSlices slices of kPackK output channels, of each a piece of w");
  c.add("kThreads", PackWeightsTiling::kThreads);
  c.add("kPackK", tiling.block_channels).add("kPackSlices", tiling.block_slices);
  c.add("kPackBlocksOfK", ceil_div(tiling.packed_slices(problem), tiling.block_slices), "that share output channels");
  c.add("kWordElements", read, "that one load reads").add("kPieceWords", loads);
  c.add("kPackBatch", ceil_div(of_thread, ceil_div(of_thread, kMostInFlight)), "words of a thread in flight");
  c.add("kPiecePitch", tiling.piece_pitch(problem) * in_word, "elements, an odd number of banks");
  if (tiling.filter_rows == 1) c.add("kUnitsOfSlice", units, "in a step");
  c.add("kRowsOfSlice", units * (problem.rows.taps / tiling.filter_rows), "of an output channel");
  std::string text = c.text();
  text.pop_back();
  return text;
}

}  // namespace

KernelText pack_weights::emit(const KernelPlan& kernel, std::string_view name) {
  const auto& tiling = std::get<PackWeightsTiling>(kernel.tiling);
  const Problem& problem = kernel.problem;
  const bool pairs = reads_pairs(problem), floats = problem.weight.type == DataType::f32;
  KernelText text;
  text.arguments = {{problem.weight.tensor, "const Element* __restrict__", "w"},
                    {tiling.packed, "uint4* __restrict__", "packed_w"}};
  text.files = {{element_header(problem.weight.type)},
                {"device/dependent_launch.cuh"},
                {floats ? "device/load_32bit.cuh" : "device/load_16bit.cuh"},
                {floats ? "device/operand_tf32.cuh" : "device/operand_16bit.cuh"}};
  if (tiling.parts > 1) text.files.push_back({"device/split_tf32.cuh"});
  text.text = fill_template(embedded_text("pack_weights/kernel.cu.in"),
                            {{"constants", constants(problem, tiling)},
                             {"tables", tables(problem, tiling)},
                             {"kernel", std::string(name)},
                             {"parameters", parameter_list(text.arguments)},
                             {"word", pairs ? "unsigned" : "Element"},
                             {"load_word", pairs ? "load_pair_if" : "load_if"},
                             {"store_word", pairs ? "*reinterpret_cast<unsigned*>(pieces + k * kPiecePitch + place)"
                                                  : "pieces[k * kPiecePitch + place]"},
                             {"filter", filter(problem)},
                             {"item", item(problem)},
                             {"filter_tap", filter_tap(problem)},
                             {"valid", valid(problem)},
                             {"inside", std::string(inside(problem))},
                             {"source_place", source_place(problem)},
                             {"part", tiling.parts > 1 ? "[part]" : ""},
                             {"row", tiling.folded_columns > 1 ? "row of a tile" : "k of the tile"},
                             {"write_rows", write_rows(problem, tiling)}});
  return text;
}

}  // namespace jitconv::codegen
