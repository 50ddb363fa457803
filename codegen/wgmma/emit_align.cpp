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

void add_align_constants(Constants& c, const WgmmaGeometry& geometry) {
  c.add("kRunVectors", run_vectors(geometry), "of a channel")
      .add("kRowVectors", WgmmaPixels::kPartBytes / PixelGrid::kRowBytes, "of a part of it")
      .add("kAlignItems", align_items(geometry), "32 vectors of a box")
      .add("kAlignBatch", align_batch(geometry), "items of a warp in flight");
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
