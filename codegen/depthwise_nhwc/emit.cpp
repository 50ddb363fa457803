// Prints the depthwise_nhwc family: templates/depthwise_nhwc/.
#include <algorithm>
#include <vector>

#include "codegen/arithmetic.h"
#include "codegen/depthwise_nhwc/family.h"
#include "codegen/text/epilogue.h"
#include "codegen/text/layout_comment.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

using Copy = DepthwiseNhwcTiling::Copy;

constexpr std::int64_t kMostFirstSteps = 8;  ///< vectors of weights that a thread keeps in registers

constexpr const char* kArrivals = "1";  ///< at the barrier of a box

std::string layout_comment(const DepthwiseNhwcTiling& tiling) {
  LayoutComment comment;
  comment.memory("0", "pixels as they lie in x").memory("kWeightsFirstByte", "weights as floats");
  if (tiling.copy == Copy::box)
    comment.memory("kBarrierFirstByte", "a barrier")
        .barrier("arrival", kArrivals, "TMA, by bytes", "all threads, for the pixels");
  return comment.text();
}

/// x as TMA sees it: a box is the pixels that a tile meets.
TensorMapShape box_of_x(const Problem& problem, const DepthwiseNhwcTiling& tiling) {
  const View::Strides& x = problem.input.stride;
  return {.rank = 4,
          .element_bytes = static_cast<int>(problem.input.element_bytes()),
          .extents = {problem.input_channels(), problem.columns.input, problem.rows.input, problem.n},
          .strides = {1, x.w, x.h, x.n},
          .box = {tiling.block_c(problem), static_cast<int>(tiling.input_columns(problem)),
                  static_cast<int>(tiling.input_rows(problem)), 1}};
}

void add_tile_constants(Constants& c, const KernelPlan& kernel, const DepthwiseNhwcTiling& tiling) {
  const Problem& problem = kernel.problem;
  const DepthwiseAxis rows(problem.rows), columns(problem.columns);
  c.group("Outputs of a thread and of a block");
  c.add("kVector", tiling.vector, "channels of a thread");
  c.add("kThreadP", tiling.thread_p).add("kThreadQ", tiling.thread_q);
  c.add("kThreadsC", tiling.threads_c).add("kThreadsP", tiling.threads_p).add("kThreadsQ", tiling.threads_q);
  c.add("kThreads", tiling.threads()).add("kMinBlocksPerSm", kernel.launch.min_blocks_per_sm);
  c.add("kBlockK", tiling.block_k(), "channels").add("kTileP", tiling.tile_p()).add("kTileQ", tiling.tile_q());
  c.add("kTilesC", tiling.tiles_c(problem)).add("kTilesP", tiling.tiles_p(problem));
  c.add("kTilesQ", tiling.tiles_q(problem));
  c.add("kRowStep", rows.residues, "from a row of a tile to the next").add("kColumnStep", columns.residues);
}

void add_shared_constants(Constants& c, const Problem& problem, const DepthwiseNhwcTiling& tiling) {
  const DepthwiseAxis rows(problem.rows), columns(problem.columns);
  c.group("Shared memory: pixels [h][w][channel], kDilationH and kDilationW apart in x; weights [tap][channel]");
  c.add("kInputRows", tiling.input_rows(problem)).add("kInputColumns", tiling.input_columns(problem));
  c.add("kPixelPitch", tiling.pixel_pitch, "elements from a pixel to the next");
  c.add("kRowPitch", tiling.input_columns(problem) * tiling.pixel_pitch);
  c.add("kTileStrideH", rows.stride).add("kTileStrideW", columns.stride);
  c.add("kPatchRows", tiling.thread_p * rows.stride / rows.upsampling, "from a thread's patch to the next");
  c.add("kPatchColumns", tiling.thread_q * columns.stride / columns.upsampling);
  if (problem.is_upsampled()) {
    c.add("kUpsamplingH", rows.upsampling).add("kUpsamplingW", columns.upsampling);
    c.add("kFirstH", rows.first, "first row of x that output row 0 meets").add("kFirstW", columns.first);
    c.add("kPhaseW", columns.phase, "output column q meets tap s where kUpsamplingW divides q + s + kPhaseW");
  }
  if (tiling.copy == Copy::box) {
    c.add("kBoxBytes", box_of_x(problem, tiling).box_bytes());
    c.add("kBarrierFirstByte", tiling.barrier_first_byte(problem));
  } else {
    c.add("kCopyVector", tiling.copy_vector, "elements of one copy");
    c.add("kPixelVectors", tiling.block_c(problem) / tiling.copy_vector, "copies of one pixel");
  }
  c.add("kReadVector", tiling.read_vector(problem), "input channels of a thread");
  c.add("kWindow", tiling.window(problem), "pixels of a row that one thread reads");
  c.add("kWeightsFirstByte", tiling.weights_first_byte(problem));
  c.add("kWeightPitch", tiling.weight_pitch(), "floats from a tap to the next");
  c.add("kWeightVector", tiling.weight_vector(problem), "elements of w that a thread loads at a time");
  c.add("kFirstWeightSteps", std::min(kMostFirstSteps, tiling.weight_steps(problem)));
}

std::string constants(const KernelPlan& kernel, const DepthwiseNhwcTiling& tiling) {
  const Problem& problem = kernel.problem;
  Constants c;
  add_problem_constants(c, problem);
  c.add("kChannels", problem.input_channels()).add("kOutputChannels", problem.output_channels());
  c.add("kMultiplier", problem.k, "output channels per input channel");
  c.add("kTaps", problem.taps());
  add_tile_constants(c, kernel, tiling);
  add_shared_constants(c, problem, tiling);
  std::string text = c.text();
  text.pop_back();
  return text;
}

std::string asserts(const KernelPlan& kernel, const DepthwiseNhwcTiling& tiling) {
  Lines lines;
  lines.add("// The numbers above are redundant; they must agree.");
  lines.add("static_assert(kThreads == kThreadsC * kThreadsP * kThreadsQ && kBlockK == kThreadsC * kVector);");
  lines.add("static_assert(kTileP == kThreadP * kThreadsP && kTileQ == kThreadQ * kThreadsQ);");
  lines.add("static_assert(kBlockK % kMultiplier == 0 && (kMultiplier == 1 || kVector == 1));");
  lines.add("static_assert(kOutputChannels % kVector == 0, \"a vector has channels of y alone\");");
  lines.add("static_assert(kInputRows >= (kThreadsP - 1) * kPatchRows + 1);");
  lines.add("static_assert(kInputColumns >= (kThreadsQ - 1) * kPatchColumns + kWindow);");
  if (tiling.copy == Copy::box)
    lines.add("static_assert(kBoxBytes == kInputRows * kRowPitch * sizeof(Element));");
  else
    lines.add("static_assert(kChannels % kCopyVector == 0 && kPixelPitch % kCopyVector == 0);");
  lines.add("static_assert(kPixelPitch % kReadVector == 0 && kWeightPitch % kVector == 0);");
  lines.add(fmt::format("static_assert(kWeightsFirstByte + sizeof(float) * kTaps * kWeightPitch <= {});",
                        kernel.launch.shared_bytes));
  return lines.text();
}

/// `// begin rows` ... `// end rows`: every row of pixels is read once, and every filter row before its first use.
/// Where a row lies is opaque: else the compiler reads rows long before their use, into registers that it does not
/// have.
std::string rows(const Problem& problem, const DepthwiseNhwcTiling& tiling) {
  Lines lines;
  lines.add("// begin rows");
  if (!tiling.unroll_rows) {
    std::string text = lines.text();
    return text.append(embedded_text("depthwise_nhwc/rows_rolled.cu.in")).append("// end rows\n");
  }
  const DepthwiseAxis axis(problem.rows);
  std::vector<bool> is_read(static_cast<std::size_t>(axis.taps), false);
  for (std::int64_t h = 0; h < axis.inputs(tiling.thread_p); ++h) {
    bool is_loaded = false;
    for (std::int64_t p = 0; p < tiling.thread_p; ++p) {
      const std::int64_t r = h * axis.upsampling - p * axis.stride - axis.phase;
      if (r < 0 || r >= axis.taps) continue;
      if (!is_loaded) lines.add(fmt::format("const Row in_h{0}(window + opaque({0} * kRowPitch));", h));
      is_loaded = true;
      if (!is_read[static_cast<std::size_t>(r)])
        lines.add(fmt::format("const FilterRow w_r{0}(filter + {0} * (kS * kWeightPitch));", r));
      is_read[static_cast<std::size_t>(r)] = true;
      lines.add(fmt::format("add_products(acc[{}], w_r{}, in_h{});", p, r, h));
    }
  }
  lines.add("// end rows");
  return lines.text();
}

std::string copies(const Problem& problem, const DepthwiseNhwcTiling& tiling) {
  if (tiling.copy == Copy::box) return {};
  const std::int64_t copies =
      ceil_div(tiling.input_pixels(problem) * tiling.block_c(problem) / tiling.copy_vector, tiling.threads());
  const bool whole_blocks = problem.output_channels() % tiling.block_k() == 0;
  return fill_template(embedded_text("depthwise_nhwc/copy_vectors.cu.in"),
                       {{"copy_unroll", std::to_string(std::min<std::int64_t>(copies, 8))},
                        {"channel_valid", whole_blocks ? "" : " && c_block + c < kChannels"}});
}

std::string store(const KernelPlan& kernel, const DepthwiseNhwcTiling& tiling) {
  const Problem& problem = kernel.problem;
  const bool residual = problem.epilogue.residual;
  return fill_template(
      embedded_text("depthwise_nhwc/store.cu.in"),
      {{"channel_limit",
        problem.output_channels() % tiling.block_k() == 0 ? "" : "if (k >= kOutputChannels) return;\n"},
       {"channel_values", problem.epilogue.bias ? "float channel_bias[kVector];\n"
                                                  "#pragma unroll\n"
                                                  "for (int c = 0; c < kVector; ++c) channel_bias[c] = "
                                                  "to_float(bias[k + c]);\n"
                                                : ""},
       {"residual_first", residual ? "const Element* const residual_patch = residual + first;\n" : ""},
       {"residual",
        residual ? "const auto added = *reinterpret_cast<const ElementVector<kVector>*>(residual_patch + offset);\n"
                 : ""},
       {"vector", tiling.store_pairs ? "PairVector" : "ElementVector<kVector>"},
       {"epilogue", epilogue_lines(problem.epilogue, {.bias = "channel_bias[c]", .residual = "to_float(added.at[c])"})},
       {"keep_value", tiling.store_pairs ? "acc[i][j][c] = value;\n" : "vector.at[c] = from_float(value);\n"},
       {"pairs", tiling.store_pairs ? "#pragma unroll\n"
                                      "for (int c = 0; c < kVector; c += 2)\n"
                                      "  vector.at[c / 2] = element_pair(acc[i][j][c], acc[i][j][c + 1]);\n"
                                    : ""}});
}

KernelText arguments_and_files(const Problem& problem, const DepthwiseNhwcTiling& tiling) {
  KernelText text;
  text.arguments = arguments(problem);
  text.files = {{element_header(problem.input.type)}, {"device/vector.cuh"}, {"device/float_vector.cuh"}};
  if (tiling.unroll_rows) text.files.push_back({"device/opaque.cuh"});
  if (tiling.store_pairs) text.files.push_back({pair_header(problem.input.type)});
  if (tiling.copy == Copy::box) {
    text.arguments.front() = tensor_map(problem.input.tensor, "x_map", box_of_x(problem, tiling));
    add_files(text.files, {{"device/barrier.cuh"}, {"device/tensor_map.cuh"}, {"device/tensor_copy.cuh"}});
  } else {
    text.files.push_back({tiling.copy == Copy::async ? "device/copy_elements_async.cuh" : "device/copy_elements.cuh"});
  }
  return text;
}

}  // namespace

KernelText depthwise_nhwc::emit(const KernelPlan& kernel, std::string_view name) {
  const auto& tiling = std::get<DepthwiseNhwcTiling>(kernel.tiling);
  const Problem& problem = kernel.problem;
  const bool upsampled_h = problem.rows.upsampling > 1, upsampled_w = problem.columns.upsampling > 1;
  const bool whole_blocks = problem.output_channels() % tiling.block_k() == 0;
  const bool runs_backwards = problem.weight.stride.h < 0;  // taps of a data gradient
  KernelText text = arguments_and_files(problem, tiling);
  text.text = fill_template(
      embedded_text("depthwise_nhwc/kernel.cu.in"),
      {{"constants", constants(kernel, tiling)},
       {"index", kernel.wide_index ? "long long" : "int"},
       {"asserts", asserts(kernel, tiling)},
       {"layout", layout_comment(tiling)},
       {"meets", upsampled_w ? "if ((q + s + kPhaseW) % kUpsamplingW != 0) continue;\n" : ""},
       {"column", upsampled_w ? "(q + s + kPhaseW) / kUpsamplingW" : "q * kTileStrideW + s"},
       {"read_channel", problem.k == 1 ? "c" : "0"},
       {"pair_vector", tiling.store_pairs ? pair_vector("kVector", "Channels of a pixel of y") : ""},
       {"activation", activation_function(problem.epilogue)},
       {"kernel", std::string(name)},
       {"parameters", parameter_list(text.arguments)},
       {"h_block", upsampled_h ? "p_block / kUpsamplingH + kFirstH" : "p_block * kStrideH - kPadTop"},
       {"w_block", upsampled_w ? "q_block / kUpsamplingW + kFirstW" : "q_block * kStrideW - kPadLeft"},
       {"box", tiling.copy == Copy::box
                   ? fill_template(embedded_text("depthwise_nhwc/copy_box.cu.in"), {{"arrivals", kArrivals}})
                   : ""},
       {"copies", copies(problem, tiling)},
       {"tap", runs_backwards ? "(kTaps - 1 - tap)" : "tap"},
       {"weight_valid", whole_blocks ? "" : " && i < kTaps * (kOutputChannels - k_block)"},
       {"more_weights", tiling.weight_steps(problem) <= kMostFirstSteps
                            ? ""
                            : fmt::format("#pragma unroll 4\n"
                                          "for (int step = kFirstWeightSteps; step < {}; ++step) "
                                          "keep_weights(step, load_weights(step));\n",
                                          tiling.weight_steps(problem))},
       {"arrival", tiling.copy == Copy::box ? "__syncthreads();  // the barrier and the weights are there\n"
                                              "barrier_wait(arrival, 0);\n"
                                            : "copy_wait<0>();\n__syncthreads();\n"},
       {"rows", rows(problem, tiling)},
       {"store", store(kernel, tiling)}});
  return text;
}

}  // namespace jitconv::codegen
