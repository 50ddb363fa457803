// When a wgmma kernel's weights come, and who waits for whom: with each step, or once for all tiles.
#include <bit>

#include "codegen/wgmma/emit_load.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

using Pixels = WgmmaTiling::Pixels;

/// Which of the threads that load a step copies its weights.
std::string_view copies_weights(const WgmmaGeometry& geometry) {
  const WgmmaTiling& tiling = geometry.tiling();
  switch (tiling.producer.pixels) {
    case Pixels::loaded:
      return "member == 0 && lane == 0";
    case Pixels::converted:
    case Pixels::aligned:
      return "lane == 0";
    case Pixels::im2col:
      if (tiling.splits_im2col()) return "lane == 0";  // of the first warp
      [[fallthrough]];
    case Pixels::planes:
      return "warp == 1";  // so pixels wait for no packed weights, unless they are made behind these
  }
  return {};
}

/// The copy of a step's weights to its stage.
std::string copy_weights(const WgmmaGeometry& geometry) {
  const WgmmaTiling& tiling = geometry.tiling();
  if (tiling.packs_weights() && !tiling.takes_weights_transposed())
    return fill_template(
        embedded_text(geometry.copies_met_taps() ? "wgmma/copy_met_taps.cu.in" : "wgmma/copy_packed_weights.cu.in"),
        {{"weight_offset", std::string(weight_offset_constant(geometry))}});
  return fill_template(embedded_text(tiling.takes_weights_transposed() ? "wgmma/copy_transposed_weights.cu.in"
                                                                       : "wgmma/copy_raw_weights.cu.in"),
                       {{"chunk", step_text(geometry).chunk}});
}

}  // namespace

std::string met_tap_tables(const WgmmaGeometry& geometry) {
  std::string counts, bits;
  for (std::int64_t phase = 0; phase < geometry.tile_phases(); ++phase) {
    std::uint64_t met = 0;
    std::size_t place = 0;
    for (const int tap : geometry.tap_order()) {
      const std::int64_t taps = geometry.fold().taps();
      if (geometry.meets_tap(phase, tap / taps, geometry.fold().first_column(tap % taps)))
        met |= std::uint64_t{1} << place;
      ++place;
    }
    const std::string_view comma = phase == 0 ? "" : ", ";
    counts += fmt::format("{}{}", comma, std::popcount(met));
    bits += fmt::format("{}{:#x}", comma, met);
  }
  return fmt::format(
      "// Of the taps of a step in the order of their weights: how many a phase meets, and a bit for each of them.\n"
      "__constant__ int kPhaseTaps[] = {{{}}};\n"
      "__constant__ unsigned long long kMeetsTap[] = {{{}}};\n",
      counts, bits);
}

std::string_view weight_offset_constant(const WgmmaGeometry& geometry) {
  const WgmmaTiling& tiling = geometry.tiling();
  return tiling.packs_weights() && tiling.operand_parts() == 1 ? "kInputBytes" : "kWeightOffset";
}

void add_arrival_constants(Constants& c, const WgmmaGeometry& geometry) {
  const WgmmaTiling& tiling = geometry.tiling();
  int arrivals = 1;
  std::string who = "the thread that copies pixels";
  switch (tiling.producer.pixels) {
    case Pixels::loaded:
      arrivals = tiling.producer.team_warps;
      who = "each warp of a team";
      break;
    case Pixels::converted:
      who = "the warp that converts pixels";
      break;
    case Pixels::aligned:
      who = "the warp that aligns planes";
      break;
    case Pixels::planes:
      break;
    case Pixels::im2col:
      if (!tiling.splits_im2col()) break;
      arrivals = 3;
      who = "each warp that splits pixels";
      break;
  }
  if (!tiling.keeps_weights()) {
    ++arrivals;
    who += ", and the thread that copies weights";
  }
  c.add("kFullArrivals", arrivals, "for a stage: " + who);
  if (tiling.schedule == WgmmaTiling::Schedule::sliced_k)
    c.add("kPairArrivals", 2 * kWarpSize, "all lanes of two warps that add their sums");
}

std::string await_packing(const WgmmaGeometry& geometry) {
  const WgmmaTiling& tiling = geometry.tiling();
  // By a kernel before: packed, or transposed.
  const bool are_made = tiling.packs_weights() || is_scratch(geometry.problem().weight.tensor);
  // All threads need the scale of pixels, or copy what was split.
  if (tiling.f16_pairs) return "wait_for_previous_kernel();";
  if (tiling.splits_im2col())
    return geometry.reads_operand_rows() || !tiling.keeps_weights() ? "if (warp == 0) wait_for_previous_kernel();" : "";
  if (geometry.reads_operand_rows())
    return are_made ? "wait_for_previous_kernel();" : "if (warp == 0) wait_for_previous_kernel();";
  if (!are_made || tiling.keeps_weights()) return {};
  return fmt::format("if ({}) wait_for_previous_kernel();", copies_weights(geometry));
}

Holes weight_holes(const WgmmaGeometry& geometry) {
  const WgmmaTiling& tiling = geometry.tiling();
  if (!tiling.keeps_weights())
    return {{"load_weights", ""},
            {"weights_of_tile",
             tiling.packs_weights()
                 ? "const char* w_tile = reinterpret_cast<const char*>(packed_w) +\n"
                   "                     static_cast<long long>(tile.group * kTilesK + tile.k_tile) * kSteps * "
                   "kWeightBytes;\n"
                 : ""},
            {"load_weights_of_step",
             fmt::format("if ({}) {{\n{}}}\n", copies_weights(geometry), indented(copy_weights(geometry)))},
            {"await_weights", ""}};
  return {{"load_weights", fill_template(embedded_text("wgmma/load_weights.cu.in"),
                                         {{"thread", tiling.copies_operands() ? "32" : "0"}})},
          {"weights_of_tile", ""},
          {"load_weights_of_step", ""},
          {"await_weights", "barrier_wait(weights_arrival, 0);"}};
}

}  // namespace jitconv::codegen
