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
      return "lane == 0";
    case Pixels::im2col:
      if (tiling.splits_operands()) return "lane == 0";  // of the first warp
      [[fallthrough]];
    case Pixels::planes:
      return "warp == 1";  // so pixels wait for no packed weights, unless they are made behind these
  }
  return {};
}

/// The copy of a step's packed weights to its stage.
std::string copy_packed(const WgmmaGeometry& geometry) {
  const std::string_view offset = weight_offset_constant(geometry);
  if (!geometry.copies_met_taps())
    return fmt::format(
        "  barrier_arrive_expecting(full + stage, kWeightBytes);\n"
        "  bulk_copy_to_shared(input + {}, w_tile + static_cast<long long>(step) * kWeightBytes, kWeightBytes,\n"
        "                      full + stage);\n",
        offset);
  return fmt::format(
      "  const int phase = tile.k_tile / kTilesOfPhase;\n"
      "  const char* w_step = w_tile + static_cast<long long>(step) * kWeightBytes;\n"
      "  barrier_arrive_expecting(full + stage, kPhaseTaps[phase] * kTapBytes);\n"
      "#pragma unroll\n"
      "  for (int tap = 0; tap < kWeightBytes / kTapBytes; ++tap)\n"
      "    if (kMeetsTap[phase] >> tap & 1)\n"
      "      bulk_copy_to_shared(input + {} + tap * kTapBytes, w_step + tap * kTapBytes, kTapBytes, full + stage);\n",
      offset);
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
  return tiling.packs_weights() && !tiling.splits_operands() ? "kInputBytes" : "kWeightOffset";
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
    case Pixels::planes:
      break;
    case Pixels::im2col:
      if (!tiling.splits_operands()) break;
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
  if (tiling.splits_im2col())
    return geometry.reads_transposed() || !tiling.keeps_weights() ? "if (warp == 0) wait_for_previous_kernel();" : "";
  if (geometry.reads_transposed())
    return are_made ? "wait_for_previous_kernel();" : "if (warp == 0) wait_for_previous_kernel();";
  if (!are_made || tiling.keeps_weights()) return {};
  return fmt::format("if ({}) wait_for_previous_kernel();", copies_weights(geometry));
}

Holes weight_holes(const WgmmaGeometry& geometry) {
  const WgmmaTiling& tiling = geometry.tiling();
  if (!tiling.keeps_weights()) {
    const std::string copy =
        tiling.takes_weights_transposed()
            ? fmt::format(
                  "  barrier_arrive_expecting(full + stage, kWeightBytes);\n"
                  "#pragma unroll\n"
                  "  for (int k = 0; k < kBlockK; k += kInstructionRows)\n"
                  "    tensor_copy_3d_to_shared(input + kWeightOffset + k * (kChunkChannels * 2), &w_map,\n"
                  "                             tile.k_tile * kBlockK + k, {} * kChunkChannels, tile.group, full + "
                  "stage);\n",
                  step_text(geometry).chunk)
        : tiling.packs_weights()
            ? copy_packed(geometry)
            : fmt::format(
                  "  barrier_arrive_expecting(full + stage, kWeightBytes);\n"
                  "  tensor_copy_2d_to_shared(input + kWeightOffset, &w_map, {} * (kChunkChannels * kTaps),\n"
                  "                           tile.group * kGroupK + tile.k_tile * kBlockK, full + stage);\n",
                  step_text(geometry).chunk);
    return {{"load_weights", ""},
            {"weights_of_tile",
             tiling.packs_weights()
                 ? "const char* w_tile = reinterpret_cast<const char*>(packed_w) +\n"
                   "                     static_cast<long long>(tile.group * kTilesK + tile.k_tile) * kSteps * "
                   "kWeightBytes;\n"
                 : ""},
            {"load_weights_of_step", fmt::format("if ({}) {{\n", copies_weights(geometry)) + copy + "}\n"},
            {"await_weights", ""}};
  }
  return {{"load_weights", fmt::format("if (threadIdx.x == {}) {{  // all of them, for all tiles\n",
                                       tiling.copies_operands() ? 32 : 0) +
                               "  wait_for_previous_kernel();\n"
                               "  barrier_arrive_expecting(weights_arrival, kSteps * kWeightBytes);\n"
                               "  for (int step = 0; step < kSteps; ++step)\n"
                               "    bulk_copy_to_shared(shared + kWeightsFirstByte + step * kWeightBytes,\n"
                               "                        reinterpret_cast<const char*>(packed_w) + step * kWeightBytes, "
                               "kWeightBytes,\n"
                               "                        weights_arrival);\n"
                               "}\n"},
          {"weights_of_tile", ""},
          {"load_weights_of_step", ""},
          {"await_weights", "barrier_wait(weights_arrival, 0);"}};
}

}  // namespace jitconv::codegen
