// Where the wgmma family stores the pixels of a strided data gradient, whose phases are output channels of their own
// (see phases.h): what stores to NHWC and to NCHW have in common. Not how sums are staged.
#include <algorithm>

#include "codegen/text/phases_text.h"
#include "codegen/wgmma/emit.h"
#include "codegen/wgmma/store.h"
#include "fmt/format.h"

namespace jitconv::codegen {

void add_pixel_constants(Constants& c, const WgmmaGeometry& geometry) {
  const Problem& problem = geometry.problem();
  const Phases& phases = problem.phases;
  c.group("dx, whose pixels that are equal modulo the strides are a phase: channels of their own");
  c.add("kPhaseChannels", problem.pixel_channels()).add("kColumnPhases", phases.columns.count(), "of a row");
  if (geometry.skips_zero_taps())
    c.add("kTilesOfPhase", geometry.tile_phase_channels() / geometry.tiling().tile.channels,
          phases.columns_innermost ? "of rows" : "");
  c.add("kRowStride", phases.rows.stride).add("kColumnStride", phases.columns.stride);
  c.add("kPixelsH", phases.rows.pixels).add("kPixelsW", phases.columns.pixels);
  if (!phases.columns_innermost) return;
  const int pixels = WgmmaStore(geometry).pixels_of_store();
  c.add("kStorePixels", pixels, "of a row, that a lane writes at a time");
  c.add("kPositionStores", std::max<std::int64_t>(phases.columns.count() / pixels, 1), "of the pixels of a position");
}

std::string first_pixel_of_channels(const WgmmaGeometry& geometry, std::string_view k) {
  const Problem& problem = geometry.problem();
  const Phases& phases = problem.phases;
  const bool images = geometry.tiling().tile.images > 0;
  const bool whole = problem.k % geometry.tiling().tile.channels == 0;
  const std::string of_rows =
      fmt::format("{}{}", images ? "" : "run_first / kQ * kRowStride + ", first_pixel(phases.rows, "Row", "row_phase"));
  const std::string image = images ? "image_first" : "tile.n";
  // Tables have no phase for channels behind the last.
  const auto guarded = [&](const std::string& phase) {
    return whole || !(phases.rows.is_shifted() || phases.columns.is_shifted())
               ? phase
               : fmt::format("{} < kGroupK ? {} : 0", k, phase);
  };
  if (phases.columns_innermost)
    return fill_template(embedded_text("wgmma/first_channel_of_pixels.cu.in"),
                         {{"row_phase", guarded(fmt::format("{} / (kPhaseChannels * kColumnPhases)", k))},
                          {"first_h", of_rows},
                          {"image", image},
                          {"channel", channel_of_phase(phases, k)}});
  return fill_template(embedded_text("wgmma/first_pixel_of_channels.cu.in"),
                       {{"phase", guarded(fmt::format("{} / kPhaseChannels", k))},
                        {"first_h", of_rows},
                        {"first_w", first_pixel(phases.columns, "Column", "column_phase")},
                        {"image", image},
                        {"channel", channel_of_phase(phases, k)}});
}

std::string zero_pixels(const WgmmaGeometry& geometry, std::string_view pixel_channels) {
  const Phases& phases = geometry.problem().phases;
  if (!geometry.tiling().stores_pixels || phases.pixels_of_output() == 1) return {};
  const bool rows = phases.rows.has_zeros(), columns = phases.columns.has_zeros();
  if (phases.columns_innermost) return rows ? std::string(embedded_text("wgmma/zero_rows.cu.in")) : "";
  Holes holes = {{"pixels", "kColumnStride"}, {"below", "0"}, {"right", "around"}};
  if (rows) holes = {{"pixels", "kRowStride"}, {"below", "around"}, {"right", "0"}};
  if (rows && columns)
    holes = {{"pixels", "kRowStride * kColumnStride"},
             {"below", "around / kColumnStride"},
             {"right", "around % kColumnStride"}};
  holes.emplace("pixel_channels", pixel_channels);
  return fill_template(embedded_text("wgmma/zero_pixels.cu.in"), holes);
}

std::string place_of_pixel(const WgmmaGeometry& geometry, std::string_view position) {
  const Phases& phases = geometry.problem().phases;
  const bool images = geometry.tiling().tile.images > 0;
  const std::string before =
      images ? fmt::format("const int position = {};\n", position) + place_in_images("position")
             : fmt::format(
                   "const int position = column_first + {};  // from the start of the run's first row\n"
                   "const int row = position / kPitch, column = position - row * kPitch;\n",
                   position);
  const std::string_view row_of_pixels =
      !images                    ? "h"
      : phases.columns_innermost ? "(image * static_cast<long long>(kGroups * kPhaseChannels) * kPixelsH + h)"
                                 : "(image * kPixelsH + h)";
  const std::string_view output_of_run =
      images ? "row < kP && (image * kP + row) * kQ + column" : "position - column_first - row * kRowPadding";
  return before + fmt::format(
                      "const int h = row * kRowStride + first_h, w = column * kColumnStride + first_w;\n"
                      "const {} output = {} * kPixelsW + w;\n"
                      "const bool stored = {}column < kQ && {} < outputs && {}h < kPixelsH && {}w < kPixelsW;\n",
                      images && phases.columns_innermost ? "long long" : "int", row_of_pixels,
                      phases.columns_innermost ? "k_first < kGroupK && " : "k_vector < kGroupK && ", output_of_run,
                      phases.rows.is_shifted() ? "h >= 0 && " : "", phases.columns.is_shifted() ? "w >= 0 && " : "");
}

}  // namespace jitconv::codegen
