// Prints templates/tensor_pack.cu.in, the kernel that packs the weights of a convolution of the tensor family.
#include <algorithm>

#include "codegen/arithmetic.h"
#include "codegen/emit_tensor.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

constexpr int kPackThreads = 256;
constexpr std::int64_t kMostInFlight = 16;  // words of a thread on their way from w

std::string pack_name(std::string_view kernel) { return fmt::format("{}_pack", kernel); }

std::vector<Argument> pack_arguments() {
  return {{ArgumentRole::w, "const Element* __restrict__", "w"},
          {ArgumentRole::packed_w, "uint4* __restrict__", "packed_w"}};
}

/// Whether two elements of w are read at a time: pieces start and end between words of four bytes.
bool reads_pairs(const ConvSpec& spec) {
  return element_bytes(spec.dtype) == 2 && spec.weight.c * spec.weight.r * spec.weight.s % 2 == 0;
}

/// Elements that one load reads.
std::int64_t word_elements(const ConvSpec& spec) { return reads_pairs(spec) ? 2 : 1; }

std::int64_t elements_of_word(const ConvSpec& spec) { return 4 / element_bytes(spec.dtype); }

/// Which tap of the slice its row `row` is, and where the row lies: this is the order of steps and units.
std::string place_of_row(const ConvSpec& spec, const TensorTiling& tiling) {
  const std::vector<int> order = tiling.tap_order(spec);
  const bool in_order = std::is_sorted(order.begin(), order.end());
  if (tiling.filter_rows > 1)
    return fmt::format(
        "const int {};\n"
        "const int step = (first_slice + slice) / kSlices;\n"
        "const int unit = row * kSlices + (first_slice + slice) % kSlices;\n",
        in_order ? "r = row / kS, s = row % kS" : "tap = kTapOrder[row], r = tap / kS, s = tap % kS");
  return fmt::format(
      "const int r = row / kUnitsOfSlice, tap = row % kUnitsOfSlice, s = {};\n"
      "const int step = (first_slice + slice) / kSlices * kR + r;\n"
      "const int unit = tap * kSlices + (first_slice + slice) % kSlices;\n",
      in_order ? "tap" : "kTapOrder[tap]");
}

/// The weight of channel `c`, zero where the row is that of a unit without a tap.
std::string element(const ConvSpec& spec, const TensorTiling& tiling) {
  const std::string weight = "first_channel[c * (kR * kS)]";
  if (!tiling.has_zeros(spec)) return weight;
  return fmt::format("{} ? from_float(0.0f) : {}", tiling.filter_rows > 1 ? "r == kR" : "s == kS", weight);
}

}  // namespace

KernelEntry tensor_pack_entry(std::string_view kernel, const ConvSpec& spec, const TensorTiling& tiling) {
  const TensorTiling::Packing packing = tiling.packing(spec);
  return {pack_name(kernel),     {static_cast<std::uint32_t>(tiling.packing_blocks(spec, packing)), 1, 1},
          kPackThreads,          static_cast<std::uint32_t>(TensorTiling::packing_bytes(spec, packing)),
          pack_arguments(),
          /*packs_weights=*/true};
}

void add_tensor_pack_constants(Constants& c, const ConvSpec& spec, const TensorTiling& tiling) {
  const TensorTiling::Packing packing = tiling.packing(spec);
  const std::int64_t in_word = elements_of_word(spec), words = TensorTiling::piece_words(spec, packing);
  const std::int64_t loads = words * in_word / word_elements(spec);
  const std::int64_t of_thread = ceil_div(packing.channels * loads, kPackThreads);
  c.group("Packing: kPackSlices slices of kPackK output channels, of each a piece of w");
  c.add("kPackThreads", kPackThreads).add("kPackK", packing.channels).add("kPackSlices", packing.slices);
  c.add("kPackedSlices", tiling.packed_slices(spec), "in all");
  c.add("kPackBlocksOfK", ceil_div(tiling.packed_slices(spec), packing.slices), "that share output channels");
  c.add("kWordElements", word_elements(spec), "that one load reads").add("kPieceWords", loads);
  c.add("kPackBatch", ceil_div(of_thread, ceil_div(of_thread, kMostInFlight)), "words of a thread in flight");
  c.add("kPiecePitch", TensorTiling::piece_pitch(spec, packing) * in_word, "elements, an odd number of banks");
  const std::int64_t units = tiling.units(spec) / tiling.slices;
  if (tiling.filter_rows == 1) c.add("kUnitsOfSlice", units, "in a step");
  c.add("kRowsOfSlice", units * (spec.weight.r / tiling.filter_rows), "of an output channel");
}

std::string emit_tensor_pack(std::string_view kernel, const ConvSpec& spec, const TensorTiling& tiling) {
  const bool pairs = reads_pairs(spec);
  std::string text =
      fill_template(embedded_text("tensor_pack.cu.in"),
                    {{"pack_kernel", pack_name(kernel)},
                     {"pack_parameters", parameter_list(pack_arguments())},
                     {"word", pairs ? "unsigned" : "Element"},
                     {"load_word", pairs ? "load_pair_if" : "load_if"},
                     {"store_word", pairs ? "*reinterpret_cast<unsigned*>(pieces + k * kPiecePitch + place)"
                                          : "pieces[k * kPiecePitch + place]"},
                     {"place_of_row", place_of_row(spec, tiling)},
                     {"element", element(spec, tiling)}});
  text.pop_back();
  return text;
}

}  // namespace jitconv::codegen
