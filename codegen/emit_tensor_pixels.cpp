// Prints templates/tensor_pack_pixels.cu.in, the kernel that makes operand rows of all pixels before a convolution of
// the tensor family, and how its steps ask for them.
#include "codegen/arithmetic.h"
#include "codegen/emit_tensor.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

constexpr int kPixelThreads = 256;

std::string pixel_kernel_name(std::string_view kernel) { return fmt::format("{}_pixels", kernel); }

std::vector<Argument> pixel_arguments() {
  return {{ArgumentRole::x, "const Element* __restrict__", "x"},
          {ArgumentRole::packed_x, "uint4* __restrict__", "packed_x"}};
}

}  // namespace

KernelEntry tensor_pixel_entry(std::string_view kernel, const ConvSpec& spec, const TensorTiling& tiling) {
  const std::int64_t blocks = ceil_div(tiling.packed_pixels(spec), kPixelThreads);
  return {pixel_kernel_name(kernel),
          {static_cast<std::uint32_t>(blocks), 1, 1},
          kPixelThreads,
          0,
          pixel_arguments(),
          /*packs_weights=*/false,
          /*starts_early=*/tiling.packs_weights()};
}

void add_tensor_pixel_constants(Constants& c, const ConvSpec& spec, const TensorTiling& tiling) {
  c.group("Packing pixels: a thread makes one of a slice");
  c.add("kPixelThreads", kPixelThreads);
  if (tiling.images == 0) c.add("kN", spec.input.n);
  c.add("kRowPhases", TensorTiling::row_phases(spec), "residues of rows modulo the stride, kept apart");
  c.add("kPackedImage", TensorTiling::packed_image(spec), "pixels of an image, of one slice and two residues");
  c.add("kPackedH", TensorTiling::packed_image(spec) / TensorTiling::pitch(spec));
  c.add("kSlicesOfGroup", tiling.packed_slices(spec));
  c.add("kPackedTail", tiling.packed_tail(spec), "pixels").add("kPackedPixels", tiling.packed_pixels(spec));
}

std::string emit_tensor_pixels(std::string_view kernel, const ConvSpec& spec, const TensorTiling& tiling) {
  const bool whole = spec.filter.c % tiling.chunk_channels(spec) == 0;
  std::string text = fill_template(embedded_text("tensor_pack_pixels.cu.in"),
                                   {{"pixel_kernel", pixel_kernel_name(kernel)},
                                    {"pixel_parameters", parameter_list(pixel_arguments())},
                                    {"channel", channel_at(spec, tiling, "place_first + i")},
                                    {"channel_exists", whole ? "" : " && c < kChannels"},
                                    // What has packed weights has finished when this has.
                                    {"await_weights", tiling.packs_weights() ? "wait_for_previous_kernel();" : ""}});
  text.pop_back();
  return text;
}

std::string copy_packed_pixels(const TensorTiling& tiling) {
  const bool images = tiling.images > 0;
  return fill_template(
      embedded_text("tensor_copy_packed.cu.in"),
      {{"pixel", images ? "0" : "run_first / kQ * kPitch + run_first % kQ"},
       {"image", images ? "run_first" : "tile.n"},
       {"copy", !images
                    ? "bulk_copy_to_shared(destination, source, kRunPixels * 16, arrival);"
                    : "#pragma unroll\n"
                      "for (int image = 0; image < kImages; ++image)\n"
                      "  bulk_copy_to_shared(destination + image * kImagePositions, source + image * kPackedImage,\n"
                      "                      (image + 1 < kImages ? kImagePositions : kRunPixels - image * "
                      "kImagePositions) * 16,\n"
                      "                      arrival);\n"}});
}

}  // namespace jitconv::codegen
