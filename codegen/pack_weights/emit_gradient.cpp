// Prints templates/pack_weights/gradient.cu.in: what a block reads of a data gradient's w, and for which rows. How the
// rows lie is in emit.cpp.
#include "codegen/arithmetic.h"
#include "codegen/pack_weights/emit.h"
#include "codegen/phases.h"
#include "codegen/text/phases_text.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

/// Whether there are phases, and a tile has rows behind the last one's.
bool has_rows_behind(const Problem& problem, const PackWeightsTiling& tiling) {
  return problem.is_sub_pixel() && tiling.packed_phases(problem) > outer_phases(problem.phases);
}

/// How many rows of a unit, in order, threads go through: those that blocks have of each phase.
std::string unit_rows(const Problem& problem, const PackWeightsTiling& tiling) {
  if (!has_rows_behind(problem, tiling)) return "kPhases * kPackK";
  return tiling.has_whole_phases(problem) ? "kTilesK * kBlockK" : "kPackPhases * kPackK";
}

/// The line that leaves out what is no row of the phase, or of a tile; empty if there is none.
std::string skip(const Problem& problem, const PackWeightsTiling& tiling) {
  if (tiling.has_whole_phases(problem)) return {};
  const std::int64_t phase_rows = problem.k / outer_phases(problem.phases);
  const bool of_phase = phase_rows % tiling.block_rows(problem) != 0;
  const bool of_tiles =
      tiling.packed_phases(problem) * phase_rows > tiling.tiles_k(problem) * std::int64_t{tiling.tile_channels};
  if (!of_phase && !of_tiles) return {};
  return fmt::format("if ({}{}{}) continue;", of_phase ? "k_of_phase >= kPhaseK" : "",
                     of_phase && of_tiles ? " || " : "", of_tiles ? "k >= kTilesK * kBlockK" : "");
}

/// Where element `place` of a piece lies in it.
std::string skewed(const Problem& problem, std::string_view place) {
  if (!PackWeightsTiling::skews_pieces(problem)) return std::string(place);
  return fmt::format("{0} + {0} / kSkewElements * kSkew", place);
}

}  // namespace

void add_gradient_block(Constants& c, const Problem& problem, const PackWeightsTiling& tiling) {
  const std::int64_t elements = 4 / problem.weight.element_bytes();
  c.group("A block packs kPackSlices slices of kPackChannels channels of dx, of each channel of dy a piece of w");
  c.add("kThreads", PackWeightsTiling::kThreads);
  c.add("kPackChannels", tiling.block_channels).add("kPackSlices", tiling.block_slices);
  c.add("kPackC", tiling.pieces(problem), "channels of dy");
  c.add("kPackK", tiling.block_rows(problem), problem.is_sub_pixel() ? "output channels of each phase" : "");
  c.add("kBlocksOfGroup", tiling.blocks_of_group(problem), "that have other channels of dx");
  if (problem.is_sub_pixel()) {
    const std::int64_t phases = outer_phases(problem.phases);
    c.add("kPhases", phases, problem.phases.columns_innermost ? "of rows" : "");
    c.add("kPhaseK", problem.k / phases, "output channels of each");
    if (has_rows_behind(problem, tiling) && !tiling.has_whole_phases(problem))
      c.add("kPackPhases", tiling.packed_phases(problem), "up to a tile's end");
    if (!tiling.lanes_are_all_threads(problem))
      c.add("kPackLanes", tiling.lanes(problem), "threads that write along the output channels");
  }
  if (PackWeightsTiling::skews_pieces(problem))
    c.add("kSkewElements", 32 * elements)
        .add("kSkew", 4 * elements, "left free behind so many, against bank conflicts");
}

std::string tap_of_w(const Problem& problem, const PackWeightsTiling& tiling, std::string_view of_phase) {
  const bool backwards = PackWeightsTiling::source(problem).stride.w < 0;
  return fmt::format("const int tap_of_w = {};\n{}",
                     problem.is_sub_pixel() ? of_phase
                     : backwards            ? "kR * kS - 1 - (r * kS + s)"
                                            : "r * kS + s",
                     tiling.leaves_zero_taps ? "if (tap_of_w < 0) continue;  // not multiplied in this phase\n" : "");
}

std::string gradient_first_channel(const Problem& problem, const PackWeightsTiling& tiling) {
  const bool phases = problem.is_sub_pixel(), behind = has_rows_behind(problem, tiling);
  const std::string of_phase = fmt::format("{}filter_tap(row_phase, column_phase, r * kS + s){}",
                                           behind ? "phase < kPhases ? " : "", behind ? " : -1" : "");
  return fmt::format(
      "{}"
      "const int place = dx_channel * {} + tap_of_w;\n"
      "const Element* first_channel = pieces + slice * (kOperandChannels * kPiecePitch) + {};\n",
      tap_of_w(problem, tiling, of_phase), phases ? "(kFilterR * kFilterS)" : "(kR * kS)", skewed(problem, "place"));
}

std::string fill_gradient(const Problem& problem, const PackWeightsTiling& tiling, std::string_view write_rows,
                          Holes holes) {
  const bool phases = problem.is_sub_pixel(), innermost = problem.phases.columns_innermost;
  holes.emplace("filter", phases ? "(kFilterR * kFilterS)" : "(kR * kS)");
  holes.emplace("channels", phases ? "kPhaseChannels" : "kGroupK");
  holes.emplace("place", skewed(problem, "place"));
  if (!phases) {
    holes.emplace("write_rows", fmt::format("const int dx_channel = static_cast<int>(threadIdx.x) % kPackK;\n"
                                            "const int k = first_channel_of_dx + dx_channel;\n"
                                            "const int tile = group * kTilesK + k / kBlockK, k_of_tile = k % kBlockK;\n"
                                            "{}",
                                            write_rows));
  } else {
    const bool all_threads = tiling.lanes_are_all_threads(problem);
    holes.emplace(
        "write_rows",
        fill_template(embedded_text("pack_weights/phases.cu.in"),
                      {{"first_k", innermost ? "first_channel_of_dx * kColumnPhases" : "first_channel_of_dx"},
                       {"row_phase", innermost ? "phase" : "phase / kColumnPhases"},
                       {"column_phase", innermost ? "lane % kColumnPhases" : "phase % kColumnPhases"},
                       {"channel", innermost ? "lane / kColumnPhases" : "lane"},
                       {"first_lane", all_threads ? "threadIdx.x" : "static_cast<int>(threadIdx.x % kPackLanes)"},
                       {"lanes", all_threads ? "kThreads" : "kPackLanes"},
                       {"unit_rows", unit_rows(problem, tiling)},
                       {"rows_behind", has_rows_behind(problem, tiling)
                                           ? "// Rows behind the last phase's, up to the end of a tile, are "
                                             "zero: those of more phases, which meet no tap."
                                           : ""},
                       {"skip", skip(problem, tiling)},
                       {"write_rows", std::string(write_rows)}}));
  }
  return fill_template(embedded_text("pack_weights/gradient.cu.in"), holes);
}

}  // namespace jitconv::codegen
