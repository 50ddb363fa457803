// Prints templates/pack_pixels/kernel.cu.in.
#include "codegen/pack_pixels/pass.h"
#include "codegen/text/layout_comment.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

/// A function that packs one of the tensors.
std::string function_of(const PackedPixels& tensor) {
  constexpr int kThreads = PackPixelsTiling::kThreads, kTile = PackedPixels::kTile;
  const View::Strides& source = tensor.source.stride;
  Constants c;
  c.add("kRowsAtOnce", kThreads / kTile, "of the tile");
  c.add("kPixelTiles", tensor.pixel_tiles());
  if (tensor.transposes()) c.add("kTilePitch", tensor.tile_pitch(), "elements from a row to the next");
  c.add("kW", tensor.columns);
  const bool phases = tensor.column_phases > 1, pads = tensor.pads();
  if (pads) c.add("kPackedW", tensor.packed_columns, "with columns of zeros");
  if (phases) {
    c.add("kPhases", tensor.column_phases, "columns modulo this are kept apart");
    c.add("kPhaseW", tensor.packed_columns / tensor.column_phases).add("kPitchPhase", tensor.phase_pitch);
  }
  c.add("kPixels", tensor.rows * tensor.packed_columns, "of an image");
  c.add("kAllPixels", tensor.pixels()).add("kChannels", tensor.channels);
  c.add("kFirst", tensor.source.first, "element that is packed");
  c.add("kStrideN", source.n).add("kStrideC", source.c).add("kStrideH", source.h).add("kStrideW", source.w);
  c.add("kPitchN", tensor.pitch.n, "of the result").add("kPitchC", tensor.pitch.c);
  c.add("kPitchH", tensor.pitch.h).add("kPitchW", tensor.pitch.w);
  std::string constants = c.text();
  constants.pop_back();
  const std::string packed_column = fmt::format("place % {}{}", pads ? "kPackedW" : "kW", phases ? " % kPhaseW" : "");
  // Lanes have neighbouring pixels or channels, and rows at once the others.
  const auto pixel = [](bool channels) {
    return std::string(channels ? "first_pixel + row + i * kRowsAtOnce" : "first_pixel + lane");
  };
  const auto channel = [](bool channels) {
    return std::string(channels ? "first_channel + lane" : "first_channel + row + i * kRowsAtOnce");
  };
  const bool reads = tensor.reads_channels(), writes = tensor.writes_channels();
  return fill_template(
      embedded_text("pack_pixels/tensor.cu.in"),
      {{"tensor", tensor.name()},
       {"constants", constants},
       {"packed_w", pads ? "kPackedW" : "kW"},
       {"phase_pitch", phases ? " + place % kPackedW / kPhaseW * static_cast<long long>(kPitchPhase)" : ""},
       {"packed_column", packed_column},
       {"column", phases ? packed_column + " * kPhases + place % kPackedW / kPhaseW" : packed_column},
       {"in_row", pads ? " && column < kW" : ""},
       {"read_pixel", pixel(reads)},
       {"read_channel", channel(reads)},
       {"exchange", tensor.transposes() ? std::string(embedded_text("pack_pixels/exchange.cu.in")) : ""},
       {"write_pixel", pixel(writes)},
       {"write_channel", channel(writes)},
       {"value", tensor.transposes() ? "tile[(row + i * kRowsAtOnce) * kTilePitch + lane]" : "value[i]"}});
}

}  // namespace

KernelText pack_pixels::emit(const KernelPlan& kernel, std::string_view name) {
  const auto& tiling = std::get<PackPixelsTiling>(kernel.tiling);
  const DataType type = tiling.tensor.front().source.type;
  KernelText text;
  text.files = {{element_header(type)}, {"device/dependent_launch.cuh"}, {load_header(type)}};
  std::string functions, calls;
  std::int64_t blocks = 0;
  std::string layout;
  if (kernel.launch.shared_bytes > 0)
    layout =
        LayoutComment("element").memory("0", "kTile rows of a tile, kTilePitch from one to the next").text() + "\n";
  for (const PackedPixels& tensor : tiling.tensors()) {
    text.arguments.push_back({tensor.source.tensor, "const Element* __restrict__", tensor.name()});
    text.arguments.push_back({tensor.packed, "Element* __restrict__", fmt::format("packed_{}", tensor.name())});
    functions += function_of(tensor) + "\n";
    const bool is_first = blocks == 0;
    if (tiling.count > 1) calls += is_first ? fmt::format("if (block < {})\n  ", tensor.blocks()) : "else\n  ";
    calls += fmt::format("pack_{0}({0}, packed_{0}, block{1}, tile);\n", tensor.name(),
                         is_first ? "" : fmt::format(" - {}", blocks));
    blocks += tensor.blocks();
  }
  text.text =
      fill_template(embedded_text("pack_pixels/kernel.cu.in"), {{"threads", std::to_string(PackPixelsTiling::kThreads)},
                                                                {"tile", std::to_string(PackedPixels::kTile)},
                                                                {"layout", layout},
                                                                {"functions", functions},
                                                                {"kernel", std::string(name)},
                                                                {"parameters", parameter_list(text.arguments)},
                                                                {"calls", calls}});
  return text;
}

}  // namespace jitconv::codegen
