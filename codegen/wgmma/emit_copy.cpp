// What TMA copies of x for a wgmma kernel, as functions that its producer calls: boxes or windows of planes, whole
// images, pixels in im2col mode. emit_load.cpp puts them together with what threads make of the copies.
#include <algorithm>

#include "codegen/wgmma/emit_load.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

/// What copies a box for each of the places within 16 bytes where planes start.
std::string copy_periods(const WgmmaGeometry& geometry) {
  const WgmmaTiling& tiling = geometry.tiling();
  const StepText text = step_text(geometry);
  const bool images = tiling.tile.images > 0, converts = tiling.converts_pixels();
  return fill_template(embedded_text("wgmma/copy_periods.cu.in"),
                       {{"first_element", converts ? std::string(embedded_text("wgmma/first_element.cu.in")) : ""},
                        {"tile_number", text.tile_number},
                        {"chunk", text.chunk},
                        {"of_image", tiling.tile.images > 1 ? "[image]" : ""},
                        {"pixel", images     ? ""
                                  : converts ? fmt::format("first_element({}, {}) + ", text.run_first, text.filter_row)
                                             : text.run_first + " + "},
                        {"image", images ? text.run_first : "tile.n"}});
}

}  // namespace

std::string copied_tensor(const WgmmaGeometry& geometry) { return geometry.pixels().copies_boxes() ? "&x_map" : "x"; }

std::int64_t box_channels(const WgmmaGeometry& geometry) {
  return geometry.chunk_channels() / WgmmaPixels::plane_period(geometry.problem());
}

void add_box_constants(Constants& c, const WgmmaGeometry& geometry) {
  const WgmmaPixels& pixels = geometry.pixels();
  const std::int64_t channels = box_channels(geometry), images = std::max(geometry.tiling().tile.images, 1);
  c.add("kPeriod", WgmmaPixels::plane_period(geometry.problem()),
        "channels from a plane to the next that starts at the same place of a vector")
      .add("kBoxChannels", channels)
      .add("kBoxBytes", images * channels * pixels.raw_pitch() * geometry.problem().input.element_bytes())
      .add("kBoxElements", pixels.box_elements(), "from a box to the next");
}

std::string copy_pixels(const WgmmaGeometry& geometry) {
  if (geometry.pixels().copies_periods()) return copy_periods(geometry);
  const WgmmaTiling& tiling = geometry.tiling();
  const StepText text = step_text(geometry);
  Holes holes = {{"tile_number", std::string(text.tile_number)}, {"chunk", std::string(text.chunk)}};
  if (tiling.tile.images > 0) return fill_template(embedded_text("wgmma/copy_images.cu.in"), holes);
  if (!geometry.pixels().copies_boxes()) {
    holes.merge(Holes{{"run_first", text.run_first}, {"filter_row", text.filter_row}});
    return fill_template(embedded_text("wgmma/copy_windows.cu.in"), holes);
  }
  const bool rows = geometry.pixels().copies_rows();
  holes.merge(Holes{{"axes", rows ? "3" : "2"},
                    {"first_element", rows ? "" : std::string(embedded_text("wgmma/first_element.cu.in"))},
                    {"first", rows ? fmt::format("0, ({}) / kQ - kPadTop / kStrideH", text.run_first)
                                   : fmt::format("first_element({}, {})", text.run_first, text.filter_row)}});
  return fill_template(embedded_text("wgmma/copy_boxes.cu.in"), holes);
}

std::string copy_im2col(const WgmmaGeometry& geometry) {
  const WgmmaTiling& tiling = geometry.tiling();
  const bool images = tiling.tile.images > 0;
  // A run without outputs starts anywhere.
  const std::string_view end = images ? "kN" : tiling.stores_boxes() ? "kP * kRunRow" : "kPlane";
  const std::string first = tiling.runs() > 1 ? fmt::format("run_first < {} ? run_first : 0", end) : "run_first";
  const std::string start = images ? fmt::format("const int image = {}, row = 0, column = 0;\n", first)
                                   : fmt::format(
                                         "const int first = {1};\n"
                                         "const int image = tile.n, row = first / {0}, column = first - row * {0};\n",
                                         step_text(geometry).run_row, first);
  return fill_template(embedded_text("wgmma/copy_im2col.cu.in"), {{"start", start}});
}

std::string copy_planes(const WgmmaGeometry& geometry) {
  // A run of several images has whole parts of each.
  const bool images = geometry.tiling().tile.images > 1, image = geometry.tiling().tile.images == 1;
  return fill_template(embedded_text("wgmma/copy_planes.cu.in"),
                       {{"pixel", images  ? "part * kPartPixels % kPlane"
                                  : image ? "part * kPartPixels"
                                          : "run_first + part * kPartPixels"},
                        {"image", images  ? "run_first + part * kPartPixels / kPlane"
                                  : image ? "run_first"
                                          : "tile.n"}});
}

std::string first_copies(const WgmmaGeometry& geometry) {
  const WgmmaTiling& tiling = geometry.tiling();
  if (!tiling.copies_pixels()) return {};
  return fill_template(embedded_text("wgmma/first_copies.cu.in"),
                       {{"arrivals", std::string(copied_arrivals(geometry))}, {"source", copied_tensor(geometry)}});
}

std::string_view copied_arrivals(const WgmmaGeometry& geometry) {
  return geometry.tiling().tile.images > 0 || geometry.pixels().copies_periods() ? "1" : "kRuns";
}

}  // namespace jitconv::codegen
