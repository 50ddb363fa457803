// Prints the fallback family: templates/fallback.cu.in.
#include "codegen/arithmetic.h"
#include "codegen/emit.h"
#include "codegen/emitter.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

std::string constants(const ConvPlan& plan, const FallbackTiling& tiling) {
  const ConvSpec& spec = plan.spec;
  const TensorShape out = output_shape(spec);
  const ElementStrides in = element_strides(spec.input, spec.input_layout);
  const ElementStrides y = element_strides(out, spec.output_layout);
  Constants c;
  add_problem_constants(c, plan);
  c.add("kGroups", spec.groups).add("kChannels", spec.weight.c, "of a group");
  c.add("kGroupK", spec.weight.k / spec.groups).add("kPixels", out.n * out.h * out.w, "N * P * Q");
  c.add("kInputStrideN", in.n).add("kInputStrideC", in.c).add("kInputStrideH", in.h).add("kInputStrideW", in.w);
  c.add("kOutputStrideN", y.n).add("kOutputStrideC", y.c).add("kOutputStrideH", y.h).add("kOutputStrideW", y.w);

  c.group("Outputs of a thread and of a block");
  c.add("kThreadK", tiling.thread_k).add("kThreadPixels", tiling.thread_pixels);
  c.add("kThreads", plan.threads).add("kMinBlocksPerSm", plan.min_blocks_per_sm);
  c.add("kPixelStep", tiling.lanes_over_channels ? 1 : static_cast<std::int64_t>(plan.threads),
        "pixels between those of a thread");
  c.add("kTilesK", tiling.tiles_k(spec), "threads along the channels of a group");
  c.add("kUnrollS", spec.weight.s < 8 ? spec.weight.s : 8);
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

std::string emit_fallback(const ConvPlan& plan) {
  const auto& tiling = std::get<FallbackTiling>(plan.tiling);
  const ConvSpec& spec = plan.spec;
  return fill_template(embedded_text("fallback.cu.in"),
                       {{"banner", banner(plan, "fallback.cu.in")},
                        {"device", device_text({element_header(spec.dtype)})},
                        {"constants", constants(plan, tiling)},
                        {"index", plan.wide_index ? "long long" : "int"},
                        {"asserts", "static_assert(kThreadK >= 1 && kThreadPixels >= 1);\n"},
                        {"activation", activation_function(spec.epilogue)},
                        {"kernel", kernel_name(plan)},
                        {"parameters", parameter_list(arguments(spec))},
                        {"place", place(tiling)},
                        {"channel_values", channel_values(spec.epilogue, "channel")},
                        {"epilogue", epilogue_lines(spec.epilogue, "offset")}});
}

}  // namespace jitconv::codegen
