// Prints templates/transpose_input/kernel.cu.in.
#include <algorithm>
#include <initializer_list>

#include "codegen/arithmetic.h"
#include "codegen/f16_pairs.h"
#include "codegen/text/layout_comment.h"
#include "codegen/transpose_input/pass.h"

namespace jitconv::codegen {
namespace {

/// Whether rows, planes and images of x, and `others`, are multiples of so many elements.
bool is_cut_at(std::int64_t elements, const TransposeInputTiling& tiling, std::initializer_list<std::int64_t> others) {
  const View::Strides& x = tiling.source.stride;
  const auto is_whole = [elements](std::int64_t distance) { return distance % elements == 0; };
  return is_whole(x.h) && is_whole(x.n) && is_whole(tiling.source.first) && std::ranges::all_of(others, is_whole);
}

/// Pixels that a thread loads at a time: two of 16 bits, if both always are a word of x.
int thread_pixels(const Problem& problem, const TransposeInputTiling& tiling) {
  const View::Strides& x = tiling.source.stride;
  return problem.input.element_bytes() == 2 && x.w == 1 && is_cut_at(2, tiling, {problem.columns.input, x.c}) ? 2 : 1;
}

std::string constants(const Problem& problem, const TransposeInputTiling& tiling, int thread_pixels) {
  constexpr int kThreads = TransposeInputTiling::kThreads;
  const View::Strides& source = tiling.source.stride;
  Constants c;
  c.group("A block makes kTileSlices slices of each of kTilePixels pixels");
  c.add("kThreads", kThreads);
  if (!problem.input.is_f16_pairs) c.add("kThreadPixels", thread_pixels, "that a thread loads at a time");
  c.add("kTilePixels", tiling.pixels);
  c.add("kTileSlices", tiling.slices).add("kSliceTiles", tiling.slice_tiles(problem), "of a pixel");
  c.add("kTileRows", tiling.pixels * tiling.slices);
  if (problem.input.is_f16_pairs) {
    // A thread makes one row of each part.
    c.add("kRowChannels", 2 * TransposeInputTiling::slice_channels(problem));
    if (source.c == 1) c.add("kTileItems", tiling.slices / 2, "of a pixel");
  } else {
    c.add("kSlicesAtOnce", kThreads * thread_pixels / tiling.pixels, "a thread makes one of each");
    c.add("kBatch", tiling.pixels * tiling.slices / kThreads / thread_pixels,
          "loads of a thread, each of rows of kThreadPixels pixels");
  }
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

/// Whether a thread's eight channels are two vectors of x, or lie beyond its last channel.
bool loads_vectors(const Problem& problem, const TransposeInputTiling& tiling) {
  const View::Strides& x = tiling.source.stride;
  return x.c == 1 && is_cut_at(4, tiling, {problem.input_channels(), x.w});
}

/// What loads channels of a pixel and splits them.
std::string split_rows(const Problem& problem, const TransposeInputTiling& tiling) {
  return fill_template(embedded_text("transpose_input/split_rows.cu.in"),
                       {{"load_channels", std::string(embedded_text(loads_vectors(problem, tiling)
                                                                        ? "transpose_input/load_vectors.cu.in"
                                                                        : "transpose_input/load_channels.cu.in"))}});
}

}  // namespace

KernelText transpose_input::emit(const KernelPlan& kernel, std::string_view name) {
  const auto& tiling = std::get<TransposeInputTiling>(kernel.tiling);
  const Problem& problem = kernel.problem;
  const bool is_split = problem.input.is_f16_pairs;
  KernelText text;
  text.arguments = {{tiling.source.tensor, "const Element* __restrict__", "x"},
                    {problem.input.tensor, "uint4* __restrict__", is_split ? "split_x" : "transposed_x"}};
  text.files = {{element_header(problem.input.type)},
                {"device/dependent_launch.cuh"},
                {load_header(problem.input.type)},
                {operand_header(problem.input.type)}};
  if (is_split) text.arguments.push_back({*problem.input.range, "const uint4*", "x_range"});
  if (is_split) text.files.insert(text.files.end(), {{"device/pair_f16.cuh"}, {"device/split_f16.cuh"}});
  if (is_split && loads_vectors(problem, tiling)) text.files.push_back({"device/load_vector.cuh"});
  const int pixels = thread_pixels(problem, tiling);
  const std::string rows = is_split      ? split_rows(problem, tiling)
                           : pixels == 2 ? std::string(embedded_text("transpose_input/load_pairs.cu.in"))
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
       {"title", is_split ? "Pixels as an NHWC tensor of pairs of fp16 numbers, [image][pixel][slice]"
                          : "Pixels as an NHWC tensor of operand rows, [image][pixel][slice]"},
       {"made", is_split ? "split_x" : "transposed_x"},
       {"own_place", std::string(embedded_text(!is_split                     ? "transpose_input/own_place.cu.in"
                                               : tiling.source.stride.c == 1 ? "transpose_input/own_channels.cu.in"
                                                                             : "transpose_input/own_pixel.cu.in"))},
       {"find_scale",
        is_split ? "wait_for_previous_kernel();  // which finds the range of x\n" + find_scale("x_range") : ""},
       {"load_rows", rows},
       // What the kernel before makes is finished when this is: see KernelPlan::starts_early.
       {"await_previous", kernel.starts_early && !is_split ? "wait_for_previous_kernel();" : ""}});
  return text;
}

}  // namespace jitconv::codegen
