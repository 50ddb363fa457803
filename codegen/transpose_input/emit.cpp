// Prints templates/transpose_input/kernel.cu.in.
#include "codegen/arithmetic.h"
#include "codegen/text/layout_comment.h"
#include "codegen/transpose_input/pass.h"

namespace jitconv::codegen {
namespace {

/// Pixels that a thread loads at a time: two of 16 bits, if both always are a word of x.
int thread_pixels(const Problem& problem, const TransposeInputTiling& tiling) {
  const View::Strides& x = tiling.source.stride;
  const auto even = [](std::int64_t elements) { return elements % 2 == 0; };
  const bool pairs = problem.input.element_bytes() == 2 && x.w == 1 && even(problem.columns.input) && even(x.h) &&
                     even(x.c) && even(x.n) && even(tiling.source.first);
  return pairs ? 2 : 1;
}

std::string constants(const Problem& problem, const TransposeInputTiling& tiling, int thread_pixels) {
  constexpr int kThreads = TransposeInputTiling::kThreads;
  const View::Strides& source = tiling.source.stride;
  Constants c;
  c.group("A block makes kTileSlices slices of each of kTilePixels pixels");
  c.add("kThreads", kThreads).add("kThreadPixels", thread_pixels, "that a thread loads at a time");
  c.add("kTilePixels", tiling.pixels);
  c.add("kTileSlices", tiling.slices).add("kSliceTiles", tiling.slice_tiles(problem), "of a pixel");
  c.add("kTileRows", tiling.pixels * tiling.slices);
  c.add("kSlicesAtOnce", kThreads * thread_pixels / tiling.pixels, "a thread makes one of each");
  c.add("kBatch", tiling.pixels * tiling.slices / kThreads / thread_pixels,
        "loads of a thread, each of rows of kThreadPixels pixels");
  c.add("kRowPitch", tiling.row_pitch(), "rows from a pixel to the next: an odd number");

  c.group("The tensor that is made, and x");
  c.add("kW", problem.columns.input).add("kPixels", problem.input_plane(), "of an image");
  c.add("kAllPixels", problem.n * problem.input_plane());
  c.add("kPixelSlices", TransposeInputTiling::pixel_slices(problem));
  c.add("kSourceChannels", problem.input_channels());
  c.add("kSourceFirst", tiling.source.first, "element of a plane of x");
  c.add("kSourceStrideN", source.n).add("kSourceStrideC", source.c);
  c.add("kSourceStrideH", source.h, "from one of its rows that are met to the next").add("kSourceStrideW", source.w);
  std::string text = c.text();
  text.pop_back();
  return text;
}

}  // namespace

KernelText transpose_input::emit(const KernelPlan& kernel, std::string_view name) {
  const auto& tiling = std::get<TransposeInputTiling>(kernel.tiling);
  const Problem& problem = kernel.problem;
  KernelText text;
  text.arguments = {{tiling.source.tensor, "const Element* __restrict__", "x"},
                    {problem.input.tensor, "uint4* __restrict__", "transposed_x"}};
  text.files = {{element_header(problem.input.type)},
                {"device/dependent_launch.cuh"},
                {load_header(problem.input.type)},
                {operand_header(problem.input.type)}};
  const int pixels = thread_pixels(problem, tiling);
  const std::string rows = pixels == 2 ? std::string(embedded_text("transpose_input/load_pairs.cu.in"))
                                       : fill_template(embedded_text("transpose_input/load_pixels.cu.in"),
                                                       {{"operand", operand_row(problem, "channel[i]")}});
  text.text = fill_template(
      embedded_text("transpose_input/kernel.cu.in"),
      {{"constants", constants(problem, tiling, pixels)},
       {"layout", LayoutComment("row of 16 bytes")
                      .memory("0", "kTilePixels pixels, kRowPitch from one to the next, of kTileSlices rows each")
                      .text()},
       {"kernel", std::string(name)},
       {"parameters", parameter_list(text.arguments)},
       {"load_rows", rows},
       // What the kernel before makes is finished when this is: see KernelPlan::starts_early.
       {"await_previous", kernel.starts_early ? "wait_for_previous_kernel();" : ""}});
  return text;
}

}  // namespace jitconv::codegen
