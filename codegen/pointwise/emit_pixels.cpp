// The pixels of a pointwise kernel. Those of a line come a channel at a time, and a lane has neighbours. Where a stride
// leaves some out, or planes are small or no whole vectors, whole images or rows come, and a lane reads the pixels of
// its outputs.
#include <utility>

#include "codegen/arithmetic.h"
#include "codegen/pointwise/emit.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

using Pixels = PointwiseTiling::Pixels;

std::string first_of_consumer(const PointwiseTiling& tiling) {
  return tiling.consumers_k == 1 ? "consumer * (32 * kLanePixels) + " : "";
}

/// How the channels of a tile are copied: a run of one image, of two, or of any number.
struct ChannelCopies {
  std::string function, tile_start, text;
};

ChannelCopies channel_copies(const Problem& problem, const PointwiseTiling& tiling) {
  const std::string start =
      "const int image = tile * kPixels / kPlane;\nconst int pixel = tile * kPixels - image * kPlane;";
  if (tiling.runs(problem) == 2)
    return {"", start + "\n" + std::string(embedded_text("pointwise/two_images.cu.in")),
            std::string(embedded_text("pointwise/copy_two_images.cu.in"))};
  const char* const function = tiling.runs(problem) == 1 ? "pointwise/copy_row.cu.in" : "pointwise/copy_images.cu.in";
  return {std::string(embedded_text(function)), start, std::string(embedded_text("pointwise/copy_channels.cu.in"))};
}

Holes line_holes(const Problem& problem, const PointwiseTiling& tiling) {
  ChannelCopies copies = channel_copies(problem, tiling);
  return {{"pixels_of_lane", "using Pixels = ElementVector<kLanePixels>;"},
          {"copy_row", std::move(copies.function)},
          {"load_pixels_function", std::string(embedded_text("pointwise/load_pixels.cu.in"))},
          {"loaders", "kProducerWarps"},
          {"issuing_threads", std::string(embedded_text("pointwise/issue_channels.cu.in"))},
          {"tile_start", std::move(copies.tile_start)},
          {"pixel_bytes", "kChunkChannels / kProducerWarps * kPixels * 4"},
          {"copy_pixels", std::move(copies.text)},
          {"lane_pixels", fmt::format("const int pixel_lane = {}warp % kWarpgroupWarps * (kHalfRows * kLanePixels) + "
                                      "lane_row(lane) * kLanePixels;",
                                      first_of_consumer(tiling))},
          {"pixels_of_step", "stages + stage * kStageFloats + operand_word(lane) * kPixelPitch + pixel_lane"}};
}

/// Of images or rows: a lane's pixels are those of the rows that it has of each instruction.
Holes gathered_holes(const PointwiseTiling& tiling) {
  const bool images = tiling.tile == Pixels::images;
  return {
      {"pixels_of_lane", ""},
      {"copy_row", ""},
      {"load_pixels_function", std::string(embedded_text("pointwise/gather_pixels.cu.in"))},
      {"loaders", images ? "kProducerWarps" : "1"},
      {"issuing_threads", images
                              ? "// A thread of each producer warp copies every fourth image, as they lie in memory.\n"
                                "if (lane != 0) return;\n"
                                "const Element* x_group = x + static_cast<long long>(group * kChannels) * kPlane;"
                              : "// One thread copies rows.\nif (lane != 0 || warp != kConsumerWarps) return;"},
      {"tile_start", images ? ""
                            : "const int image = tile / kTilesOfImage;\n"
                              "const int row = (tile - image * kTilesOfImage) * kTileRows;"},
      {"pixel_bytes", images ? "(kTileImages + kProducerWarps - 1 - (warp - kConsumerWarps)) / kProducerWarps * "
                               "(kChunkChannels * kPlane * 4)"
                             : "kChunkChannels * kPixelPitch * 4"},
      {"copy_pixels",
       images
           ? std::string(embedded_text("pointwise/copy_planes.cu.in"))
           : "tensor_copy_3d_to_shared(stages + stage * kStageFloats, &x_map, 0, row,\n"
             "                         (image * kGroups + group) * kChannels + step * kChunkChannels, full + stage);"},
      {"lane_pixels",
       fill_template(embedded_text("pointwise/pixels_of_lane.cu.in"),
                     {{"consumer", first_of_consumer(tiling)},
                      {"image", images ? "const int image = pixel / kOutputs, output = pixel - image * kOutputs;"
                                       : "const int output = pixel;"},
                      {"image_offset", images ? "image * (kChunkChannels * kPlane) + " : ""},
                      {"row_pitch", images ? "kStrideH * kW" : "kW"}})},
      {"pixels_of_step", "stages + stage * kStageFloats + operand_word(lane) * kPixelPitch"}};
}

}  // namespace

Holes pointwise_pixel_holes(const Problem& problem, const PointwiseTiling& tiling) {
  return tiling.gathers() ? gathered_holes(tiling) : line_holes(problem, tiling);
}

void add_pointwise_pixel_constants(Constants& c, const Problem& problem, const PointwiseTiling& tiling) {
  if (!tiling.gathers()) return;
  const bool images = tiling.tile == Pixels::images;
  c.group("Pixels of a tile, each with a place of its own");
  c.add("kW", problem.columns.input).add("kQ", problem.columns.output);
  c.add("kOutputs", problem.output_plane(), "P * Q").add("kTilePixels", tiling.tile_pixels(problem));
  if (images) c.add("kStrideH", problem.rows.stride);
  c.add("kStrideW", problem.columns.stride);
  if (images)
    c.add("kTileImages", tiling.extent);
  else
    c.add("kTileRows", tiling.extent, "of outputs").add("kTilesOfImage", ceil_div(problem.rows.output, tiling.extent));
}

TensorMapShape pointwise_pixel_map(const Problem& problem, const PointwiseTiling& tiling) {
  const std::int64_t row = problem.columns.input, stride = problem.rows.stride;
  return {.rank = 3,
          .extents = {row, ceil_div(problem.rows.input, stride), problem.n * problem.input_channels()},
          .strides = {1, stride * row, problem.input_plane()},
          .box = {static_cast<int>(row), tiling.extent, tiling.chunk_channels}};
}

}  // namespace jitconv::codegen
