// Prints templates/tensor_transpose.cu.in, the kernel that makes NHWC operand rows of NCHW pixels, over which the copy
// engine then walks as over an NHWC tensor.
#include "codegen/arithmetic.h"
#include "codegen/emit_tensor.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

constexpr int kTransposeThreads = 256;

std::string transpose_name(std::string_view kernel) { return fmt::format("{}_transpose", kernel); }

std::vector<Argument> transpose_arguments() {
  return {{ArgumentRole::x, "const Element* __restrict__", "x"},
          {ArgumentRole::packed_x, "uint4* __restrict__", "packed_x"}};
}

/// Tiles of an image, and of a pixel's slices.
std::int64_t pixel_tiles(const ConvSpec& spec) {
  return ceil_div(spec.input.h * spec.input.w, TensorTiling::transposition(spec).pixels);
}

std::int64_t slice_tiles(const ConvSpec& spec) {
  return ceil_div(TensorTiling::pixel_slices(spec), TensorTiling::transposition(spec).slices);
}

/// Rows from a pixel to the next in shared memory, so that lanes with neighbouring pixels have no bank conflicts.
int row_pitch(const TensorTiling::Transposition& tile) { return tile.slices + 1; }

}  // namespace

KernelEntry tensor_transpose_entry(std::string_view kernel, const ConvSpec& spec, const TensorTiling& tiling) {
  const TensorTiling::Transposition tile = TensorTiling::transposition(spec);
  const std::int64_t blocks = spec.input.n * pixel_tiles(spec) * slice_tiles(spec);
  return {transpose_name(kernel),
          {static_cast<std::uint32_t>(blocks), 1, 1},
          kTransposeThreads,
          static_cast<std::uint32_t>(tile.pixels * row_pitch(tile) * TensorTiling::kRowBytes),
          transpose_arguments(),
          /*packs_weights=*/false,
          /*starts_early=*/tiling.packs_weights()};
}

void add_tensor_transpose_constants(Constants& c, const ConvSpec& spec, const ConvSpec& source) {
  const TensorTiling::Transposition tile = TensorTiling::transposition(spec);
  const ElementStrides x = element_strides(source.input, source.input_layout);
  // Strides that the convolution does not have any more, 1 if it has them, and the first places that they leave.
  const std::int64_t step_h = source.stride.h / spec.stride.h, step_w = source.stride.w / spec.stride.w;
  const std::int64_t first_h = positive_modulo(-source.padding.top, step_h),
                     first_w = positive_modulo(-source.padding.left, step_w);
  c.group("Transposing pixels: a block makes kTileSlices slices of each of kTilePixels pixels of an image");
  c.add("kTransposeThreads", kTransposeThreads);
  c.add("kTilePixels", tile.pixels).add("kPixelTiles", pixel_tiles(spec), "of an image");
  c.add("kTileSlices", tile.slices).add("kSliceTiles", slice_tiles(spec), "of a pixel");
  c.add("kSlicesAtOnce", kTransposeThreads / tile.pixels, "a thread makes one of each");
  c.add("kTransposeBatch", tile.pixels * tile.slices / kTransposeThreads, "rows of a thread");
  c.add("kRowPitch", row_pitch(tile), "rows from a pixel to the next: an odd number");
  c.add("kPixels", spec.input.h * spec.input.w, "of an image").add("kPixelSlices", TensorTiling::pixel_slices(spec));
  c.add("kSourceChannels", source.input.c)
      .add("kSourceFirst", first_h * x.h + first_w * x.w, "element of a plane of x");
  c.add("kSourceStrideN", x.n).add("kSourceStrideC", x.c);
  c.add("kSourceStrideH", step_h * x.h, "from one of its rows that are met to the next")
      .add("kSourceStrideW", step_w * x.w);
}

std::string emit_tensor_transpose(std::string_view kernel, const TensorTiling& tiling) {
  std::string text = fill_template(embedded_text("tensor_transpose.cu.in"),
                                   {{"transpose_kernel", transpose_name(kernel)},
                                    {"transpose_parameters", parameter_list(transpose_arguments())},
                                    // What has packed weights has finished when this has.
                                    {"await_weights", tiling.packs_weights() ? "wait_for_previous_kernel();" : ""}});
  text.pop_back();
  return text;
}

}  // namespace jitconv::codegen
