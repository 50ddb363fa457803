// Prints the depthwise_nhwc family: templates/depthwise_nhwc/.
#include <algorithm>

#include "codegen/arithmetic.h"
#include "codegen/depthwise_nhwc/family.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

std::string constants(const KernelPlan& kernel, const DepthwiseNhwcTiling& tiling) {
  const Problem& problem = kernel.problem;
  Constants c;
  add_problem_constants(c, problem);
  c.add("kChannels", problem.input_channels()).add("kOutputChannels", problem.output_channels());
  c.add("kMultiplier", problem.k, "output channels per input channel");
  c.add("kTaps", problem.taps());

  c.group("Outputs of a thread and of a block");
  c.add("kVector", tiling.vector, "channels of a thread");
  c.add("kThreadP", tiling.thread_p).add("kThreadQ", tiling.thread_q);
  c.add("kThreadsC", tiling.threads_c).add("kThreadsP", tiling.threads_p).add("kThreadsQ", tiling.threads_q);
  c.add("kThreads", tiling.threads()).add("kMinBlocksPerSm", kernel.launch.min_blocks_per_sm);
  c.add("kBlockK", tiling.block_k(), "channels").add("kTileP", tiling.tile_p()).add("kTileQ", tiling.tile_q());
  c.add("kTilesC", tiling.tiles_c(problem)).add("kTilesP", tiling.tiles_p(problem));
  c.add("kTilesQ", tiling.tiles_q(problem));
  c.add("kRowStep", problem.rows.dilation_residues(), "from a row of a tile to the next");
  c.add("kColumnStep", problem.columns.dilation_residues());

  c.group("Shared memory: pixels [h][w][channel], kDilationH and kDilationW apart in x; weights [tap][channel]");
  c.add("kInputRows", tiling.input_rows(problem)).add("kInputColumns", tiling.input_columns(problem));
  c.add("kPixelPitch", tiling.pixel_pitch, "elements from a pixel to the next");
  c.add("kRowPitch", tiling.input_columns(problem) * tiling.pixel_pitch);
  c.add("kTileStrideH", problem.rows.undilated_stride()).add("kTileStrideW", problem.columns.undilated_stride());
  c.add("kCopyVector", tiling.copy_vector, "elements of one copy");
  c.add("kPixelVectors", tiling.block_c(problem) / tiling.copy_vector, "copies of one pixel");
  c.add("kReadVector", problem.k == 1 ? tiling.vector : 1, "input channels of a thread");
  c.add("kWindow", tiling.window(problem), "pixels of a row that one thread reads");
  c.add("kWeightsFirst", tiling.input_elements(problem) * problem.input.element_bytes() / 4, "float");
  c.add("kWeightPitch", tiling.weight_pitch(), "floats from a tap to the next");
  std::string text = c.text();
  text.pop_back();
  return text;
}

std::string asserts(const KernelPlan& kernel) {
  Lines lines;
  lines.add("// The numbers above are redundant; they must agree.");
  lines.add("static_assert(kThreads == kThreadsC * kThreadsP * kThreadsQ && kBlockK == kThreadsC * kVector);");
  lines.add("static_assert(kTileP == kThreadP * kThreadsP && kTileQ == kThreadQ * kThreadsQ);");
  lines.add("static_assert(kBlockK % kMultiplier == 0 && (kMultiplier == 1 || kVector == 1));");
  lines.add("static_assert(kOutputChannels % kVector == 0, \"a vector has channels of y alone\");");
  lines.add("static_assert(kInputRows == (kTileP - 1) * kTileStrideH + kR);");
  lines.add("static_assert(kInputColumns == (kTileQ - 1) * kTileStrideW + kS && kInputColumns >= kWindow);");
  lines.add("static_assert(kChannels % kCopyVector == 0 && kPixelPitch % kCopyVector == 0);");
  lines.add("static_assert(kPixelPitch % kReadVector == 0 && kWeightPitch % kVector == 0);");
  lines.add(fmt::format("static_assert(sizeof(float) * (kWeightsFirst + kTaps * kWeightPitch) <= {});",
                        kernel.launch.shared_bytes));
  return lines.text();
}

/// `// begin rows` ... `// end rows`: every row of pixels is read once, and every filter row before its first use.
std::string rows(const Problem& problem, const DepthwiseNhwcTiling& tiling) {
  Lines lines;
  lines.add("// begin rows");
  if (!tiling.unroll_rows) {
    std::string text = lines.text();
    return text.append(embedded_text("depthwise_nhwc/rows_rolled.cu.in")).append("// end rows\n");
  }
  const std::int64_t stride = problem.rows.undilated_stride(), taps = problem.rows.taps;
  std::vector<bool> is_read(static_cast<std::size_t>(taps), false);
  for (std::int64_t h = 0; h < (tiling.thread_p - 1) * stride + taps; ++h) {
    bool is_loaded = false;
    for (std::int64_t p = 0; p < tiling.thread_p; ++p) {
      const std::int64_t r = h - p * stride;
      if (r < 0 || r >= taps) continue;
      if (!is_loaded) lines.add(fmt::format("const Row in_h{0}(window + {0} * kRowPitch);", h));
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

/// Lines that turn `value`, the sum of channel k + c, into what is stored.
std::string vector_epilogue(const Epilogue& epilogue) {
  Lines lines;
  if (epilogue.bias) lines.add("value += channel_bias[c];");
  if (epilogue.residual) lines.add("value += to_float(added.at[c]);");
  if (epilogue.activation != Activation::none) lines.add("value = activate(value);");
  return lines.text();
}

std::string store(const KernelPlan& kernel, const DepthwiseNhwcTiling& tiling) {
  const Problem& problem = kernel.problem;
  const StoredText stored = stored_text(problem);
  const std::string vector = fmt::format("{}<kVector>", stored.vector);
  return fill_template(
      embedded_text("depthwise_nhwc/store.cu.in"),
      {{"channel_limit",
        problem.output_channels() % tiling.block_k() == 0 ? "" : "if (k >= kOutputChannels) return;\n"},
       {"channel_values", problem.epilogue.bias ? "float channel_bias[kVector];\n"
                                                  "#pragma unroll\n"
                                                  "for (int c = 0; c < kVector; ++c) channel_bias[c] = "
                                                  "to_float(bias[k + c]);\n"
                                                : ""},
       {"residual", problem.epilogue.residual
                        ? fmt::format("const auto added = *reinterpret_cast<const {}*>(residual + first);\n", vector)
                        : ""},
       {"vector", tiling.store_pairs ? "PairVector" : vector},
       {"epilogue", vector_epilogue(problem.epilogue)},
       {"keep_value",
        tiling.store_pairs ? "acc[i][j][c] = value;\n" : fmt::format("vector.at[c] = {};\n", stored.converted)},
       {"pairs", tiling.store_pairs ? "#pragma unroll\n"
                                      "for (int c = 0; c < kVector; c += 2)\n"
                                      "  vector.at[c / 2] = element_pair(acc[i][j][c], acc[i][j][c + 1]);\n"
                                    : ""}});
}

std::string_view pair_file(DataType type) {
  return type == DataType::f16 ? "device/pair_f16.cuh" : "device/pair_bf16.cuh";
}

}  // namespace

KernelText depthwise_nhwc::emit(const KernelPlan& kernel, std::string_view name) {
  const auto& tiling = std::get<DepthwiseNhwcTiling>(kernel.tiling);
  const Problem& problem = kernel.problem;
  const std::int64_t copies = ceil_div(
      tiling.input_rows(problem) * tiling.input_columns(problem) * tiling.block_c(problem) / tiling.copy_vector,
      tiling.threads());
  const bool whole_blocks = problem.output_channels() % tiling.block_k() == 0;
  KernelText text;
  text.arguments = arguments(problem);
  text.files = {{element_header(problem.input.type)},
                {"device/vector.cuh"},
                {"device/float_vector.cuh"},
                {tiling.async_copy ? "device/copy_elements_async.cuh" : "device/copy_elements.cuh"}};
  if (tiling.store_pairs) text.files.push_back({pair_file(problem.input.type)});
  text.text = fill_template(embedded_text("depthwise_nhwc/kernel.cu.in"),
                            {{"constants", constants(kernel, tiling)},
                             {"index", kernel.wide_index ? "long long" : "int"},
                             {"asserts", asserts(kernel)},
                             {"pair_vector", tiling.store_pairs ? "// Channels of a pixel of y, two in a word.\n"
                                                                  "struct alignas(2 * kVector) PairVector {\n"
                                                                  "  unsigned at[kVector / 2];\n"
                                                                  "};\n"
                                                                : ""},
                             {"read_channel", problem.k == 1 ? "c" : "0"},
                             {"activation", activation_function(problem.epilogue)},
                             {"kernel", std::string(name)},
                             {"parameters", parameter_list(text.arguments)},
                             {"copy_unroll", std::to_string(std::min<std::int64_t>(copies, 8))},
                             {"channel_valid", whole_blocks ? "" : " && c_block + c < kChannels"},
                             {"weight_valid", whole_blocks ? "" : "k_block + i / kTaps < kOutputChannels ? "},
                             {"weight_else", whole_blocks ? "" : " : 0.0f"},
                             {"rows", rows(problem, tiling)},
                             {"store", store(kernel, tiling)}});
  return text;
}

}  // namespace jitconv::codegen
