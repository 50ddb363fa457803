// Prints the fallback family: templates/fallback/.
#include "codegen/arithmetic.h"
#include "codegen/fallback/family.h"
#include "codegen/text/epilogue.h"
#include "codegen/transpose_weights/tiling.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

/// The weights are no dense tensor: those of a data gradient.
bool reads_view(const Problem& problem) { return problem.weight != with_dense_weight(problem).weight; }

/// The weight of channel k of the thread.
std::string weight(const Problem& problem) {
  return std::string(embedded_text(reads_view(problem) ? "fallback/weight_of_view.cu.in" : "fallback/weight.cu.in"));
}

/// The pixel that a tap meets, and whether there is one.
std::string pixel(const Problem& problem) {
  return std::string(embedded_text(problem.is_upsampled() ? "fallback/pixel_upsampled.cu.in" : "fallback/pixel.cu.in"));
}

std::string constants(const KernelPlan& kernel, const FallbackTiling& tiling) {
  const Problem& problem = kernel.problem;
  const View::Strides& in = problem.input.stride;
  const View::Strides& y = problem.output.stride;
  Constants c;
  add_problem_constants(c, kernel.problem);
  c.add("kGroups", problem.groups).add("kChannels", problem.c, "of a group");
  c.add("kGroupK", problem.k).add("kPixels", problem.n * problem.output_plane(), "N * P * Q");
  c.add("kInputStrideN", in.n).add("kInputStrideC", in.c).add("kInputStrideH", in.h).add("kInputStrideW", in.w);
  c.add("kOutputStrideN", y.n).add("kOutputStrideC", y.c).add("kOutputStrideH", y.h).add("kOutputStrideW", y.w);
  if (reads_view(problem)) {
    const View& w = problem.weight;
    c.add("kWeightFirst", w.first).add("kWeightStrideGroup", w.group).add("kWeightStrideK", w.stride.n);
    c.add("kWeightStrideC", w.stride.c).add("kWeightStrideR", w.stride.h).add("kWeightStrideS", w.stride.w);
  }
  if (problem.is_upsampled())
    c.add("kUpsamplingH", problem.rows.upsampling).add("kUpsamplingW", problem.columns.upsampling);

  c.group("Outputs of a thread and of a block");
  c.add("kThreadK", tiling.thread_k).add("kThreadPixels", tiling.thread_pixels);
  c.add("kThreads", kernel.launch.threads).add("kMinBlocksPerSm", kernel.launch.min_blocks_per_sm);
  c.add("kPixelStep", tiling.lanes_over_channels ? 1 : static_cast<std::int64_t>(kernel.launch.threads),
        "pixels between those of a thread");
  c.add("kTilesK", tiling.tiles_k(problem), "threads along the channels of a group");
  c.add("kUnrollS", problem.columns.taps < 8 ? problem.columns.taps : 8);
  std::string text = c.text();
  text.pop_back();
  return text;
}

/// Which channels and pixels the thread computes.
std::string place(const FallbackTiling& tiling) {
  Lines lines;
  if (tiling.lanes_over_channels) {
    lines.add("// Lanes run over channels, which are contiguous in y.");
    lines.add("const Index item = static_cast<Index>(blockIdx.x) * kThreads + threadIdx.x;");
    lines.add("const int k_item = static_cast<int>(item % (kGroups * kTilesK));");
    lines.add("const int group = k_item / kTilesK;");
    lines.add("const int k_first = k_item % kTilesK * kThreadK;");
    lines.add("const Index pixel_first = item / (kGroups * kTilesK) * kThreadPixels;");
  } else {
    lines.add("// Lanes run over pixels, which are contiguous in y.");
    lines.add("const int group = blockIdx.x % (kGroups * kTilesK) / kTilesK;");
    lines.add("const int k_first = blockIdx.x % kTilesK * kThreadK;");
    lines.add("const Index pixel_first =");
    lines.add("    static_cast<Index>(blockIdx.x / (kGroups * kTilesK)) * (kThreads * kThreadPixels) + threadIdx.x;");
  }
  return lines.text();
}

}  // namespace

KernelText fallback::emit(const KernelPlan& kernel, std::string_view name) {
  const auto& tiling = std::get<FallbackTiling>(kernel.tiling);
  const Problem& problem = kernel.problem;
  KernelText text;
  text.arguments = arguments(problem);
  text.files = {{element_header(problem.input.type)}};
  text.text = fill_template(embedded_text("fallback/kernel.cu.in"),
                            {{"constants", constants(kernel, tiling)},
                             {"index", kernel.wide_index ? "long long" : "int"},
                             {"asserts", "static_assert(kThreadK >= 1 && kThreadPixels >= 1);\n"},
                             {"activation", activation_function(problem.epilogue)},
                             {"kernel", std::string(name)},
                             {"parameters", parameter_list(text.arguments)},
                             {"place", place(tiling)},
                             {"weight", weight(problem)},
                             {"pixel", pixel(problem)},
                             {"channel_values", channel_values(problem.epilogue, "channel")},
                             {"epilogue", epilogue_lines(problem.epilogue, {.residual = residual_at("offset")})}});
  return text;
}

}  // namespace jitconv::codegen
