// Prints templates/pack_weights/joined.cu.in: which weights of w a row has where groups are joined, zeros among them.
// How the rows lie is in emit.cpp.
#include "codegen/pack_weights/emit.h"
#include "codegen/phases.h"
#include "codegen/text/phases_text.h"
#include "fmt/format.h"

namespace jitconv::codegen {

void add_joined_block(Constants& c, const Problem& problem, const PackWeightsTiling& tiling) {
  const View& weight = PackWeightsTiling::source(problem);
  c.group("A group is made of kJoinedGroups of w, which have channels of their own");
  c.add("kJoinedGroups", problem.joined_groups);
  c.add("kJoinedC", problem.c / problem.joined_groups)
      .add("kJoinedK", problem.pixel_channels() / problem.joined_groups);
  c.add("kWeightStrideGroup", weight.group).add("kWeightStrideK", weight.stride.n);
  c.add("kWeightStrideC", weight.stride.c);
  c.group("A block packs kPackSlices slices of kPackK output channels");
  c.add("kThreads", PackWeightsTiling::kThreads);
  c.add("kPackK", tiling.block_channels).add("kPackSlices", tiling.block_slices);
}

RowText joined_row(const Problem& problem, const PackWeightsTiling& tiling) {
  const std::string of_phase = problem.is_sub_pixel() ? filter_tap(problem.phases, "k", "r * kS + s") : "";
  return {tap_of_w(problem, tiling, of_phase) +
              "const int first_c = (first_slice + slice) * kOperandChannels - joined * kJoinedC;\n"
              "const Element* first_channel = filter + first_c * kWeightStrideC + tap_of_w;\n",
          "first_channel[c * kWeightStrideC]"};
}

std::string fill_joined(const Problem& problem, const PackWeightsTiling& tiling, std::string_view write_rows,
                        Holes holes) {
  holes.emplace(
      "k", problem.k % tiling.tile_channels == 0
               ? "const int k = tile % kTilesK * kBlockK + k_of_tile;  // within the group"
               : "// Within the group. Rows behind its last channel's, which nobody stores sums of, are like those.\n"
                 "const int k = min(tile % kTilesK * kBlockK + k_of_tile, kGroupK - 1);");
  holes.emplace("output_channel", fmt::format("const int output_channel = {};{}",
                                              problem.is_sub_pixel() ? channel_of_phase(problem.phases, "k") : "k",
                                              problem.is_sub_pixel() ? "  // of dx" : ""));
  holes.emplace("write_rows", std::string(write_rows));
  return fill_template(embedded_text("pack_weights/joined.cu.in"), holes);
}

}  // namespace jitconv::codegen
