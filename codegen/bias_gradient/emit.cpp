// Prints templates/bias_gradient/kernel.cu.in.
#include "codegen/bias_gradient/pass.h"
#include "codegen/text/layout_comment.h"

namespace jitconv::codegen {
namespace {

std::string constants(const Problem& problem, const BiasGradientTiling& tiling) {
  const View::Strides& dy = problem.output.stride;
  Constants c;
  c.group("dy, and the shares that its pixels are summed in");
  c.add("kThreads", BiasGradientTiling::kThreads).add("kOutputChannels", problem.output_channels());
  c.add("kPixels", problem.n * problem.output_plane(), "of all images").add("kPlane", problem.output_plane());
  c.add("kQ", problem.columns.output);
  c.add("kStrideN", dy.n).add("kStrideC", dy.c).add("kStrideH", dy.h).add("kStrideW", dy.w);
  c.add("kShares", tiling.shares).add("kPartialSumStride", tiling.stride, "floats from a share to the next");
  c.add("kBiasSums", problem.weight_elements(), "floats before those of db");
  return c.text();
}

}  // namespace

KernelText bias_gradient::emit(const KernelPlan& kernel, std::string_view name) {
  const auto& tiling = std::get<BiasGradientTiling>(kernel.tiling);
  const Problem& problem = kernel.problem;
  KernelText text;
  text.arguments = {{problem.output.tensor, "const Element* __restrict__", "dy"},
                    {tiling.partial_sums, "float* __restrict__", "partial_sums"}};
  text.files = {{element_header(problem.output.type)}};
  text.text =
      fill_template(embedded_text("bias_gradient/kernel.cu.in"),
                    {{"constants", constants(problem, tiling)},
                     {"layout", LayoutComment("float").memory("0", "kThreads / 32 sums, of a warp each").text()},
                     {"kernel", std::string(name)},
                     {"parameters", parameter_list(text.arguments)}});
  return text;
}

}  // namespace jitconv::codegen
