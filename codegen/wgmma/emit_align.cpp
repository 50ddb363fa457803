// The producer's text where threads align planes that TMA brings as they lie in x, for emit_load.cpp.
#include <algorithm>

#include "codegen/arithmetic.h"
#include "codegen/wgmma/emit_load.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

// More items in flight took longer.
constexpr std::int64_t kMostAlignBatch = 5;

std::int64_t run_vectors(const WgmmaGeometry& geometry) {
  return geometry.tiling().tile.columns * geometry.problem().input.element_bytes() / PixelGrid::kRowBytes;
}

std::int64_t box_channels(const WgmmaGeometry& geometry) {
  return geometry.chunk_channels() / WgmmaPixels::plane_period(geometry.problem());
}

/// Of a box: 32 vectors, one of each lane.
std::int64_t align_items(const WgmmaGeometry& geometry) {
  return ceil_div(box_channels(geometry) * run_vectors(geometry), kWarpSize);
}

/// As few batches as kMostAlignBatch allows, all of about one size.
std::int64_t align_batch(const WgmmaGeometry& geometry) {
  const std::int64_t items = align_items(geometry);
  return ceil_div(items, ceil_div(items, kMostAlignBatch));
}

}  // namespace

void add_box_constants(Constants& c, const WgmmaGeometry& geometry) {
  const WgmmaPixels& pixels = geometry.pixels();
  const std::int64_t channels = box_channels(geometry), images = std::max(geometry.tiling().tile.images, 1);
  c.add("kPeriod", WgmmaPixels::plane_period(geometry.problem()),
        "channels from a plane to the next that starts at the same place of a vector")
      .add("kBoxChannels", channels)
      .add("kBoxBytes", images * channels * pixels.raw_pitch() * geometry.problem().input.element_bytes())
      .add("kBoxElements", pixels.box_elements(), "from a box to the next");
}

void add_align_constants(Constants& c, const WgmmaGeometry& geometry) {
  c.add("kRunVectors", run_vectors(geometry), "of a channel")
      .add("kRowVectors", WgmmaPixels::kPartBytes / PixelGrid::kRowBytes, "of a part of it")
      .add("kAlignItems", align_items(geometry), "32 vectors of a box")
      .add("kAlignBatch", align_batch(geometry), "items of a warp in flight");
}

std::string copy_periods(const WgmmaGeometry& geometry) {
  const StepText text = step_text(geometry);
  const bool images = geometry.tiling().tile.images > 0;
  return fill_template(embedded_text("wgmma/copy_periods.cu.in"),
                       {{"tile_number", text.tile_number},
                        {"chunk", text.chunk},
                        {"of_image", geometry.tiling().tile.images > 1 ? "[image]" : ""},
                        {"pixel", images ? "" : text.run_first + " + "},
                        {"image", images ? text.run_first : "tile.n"}});
}

std::string align_planes(const WgmmaGeometry& geometry) {
  const std::int64_t vectors = box_channels(geometry) * run_vectors(geometry), batch = align_batch(geometry);
  const std::int64_t reached = round_up(align_items(geometry), batch) * kWarpSize;
  const bool images = geometry.tiling().tile.images > 1;
  return (images ? std::string(embedded_text("wgmma/align_images.cu.in")) : "") +
         fill_template(embedded_text("wgmma/align_planes.cu.in"),
                       {{"unroll_starts", images ? "#pragma unroll 1" : "#pragma unroll"},
                        {"leave", vectors == reached ? "" : "if (index >= kBoxChannels * kRunVectors) break;"},
                        {"load", std::string(embedded_text(images ? "wgmma/load_aligned_images.cu.in"
                                                                  : "wgmma/load_aligned.cu.in"))}});
}

}  // namespace jitconv::codegen
