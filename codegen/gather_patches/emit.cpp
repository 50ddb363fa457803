// Prints templates/gather_patches/kernel.cu.in.
#include "codegen/gather_patches/pass.h"

namespace jitconv::codegen {
namespace {

std::string constants(const Problem& problem, const GatherPatchesTiling& tiling) {
  const View::Strides& source = tiling.source.stride;
  const Axis &rows = tiling.rows, &columns = tiling.columns;
  Constants c;
  c.group("The convolution, and x");
  c.add("kH", rows.input).add("kW", columns.input).add("kR", rows.taps).add("kS", columns.taps);
  c.add("kStrideH", rows.stride).add("kStrideW", columns.stride).add("kPadH", rows.pad).add("kPadW", columns.pad);
  c.add("kDilationH", rows.dilation).add("kDilationW", columns.dilation);
  c.add("kSourceStrideN", source.n).add("kSourceStrideC", source.c);
  c.add("kSourceStrideH", source.h).add("kSourceStrideW", source.w);

  c.group("Patches, one of each output: a thread makes 16 bytes of one");
  c.add("kThreads", GatherPatchesTiling::kThreads);
  c.add("kQ", columns.output).add("kPlane", problem.output_plane(), "P * Q");
  c.add("kPatchElements", tiling.patch_elements(), "C * R * S").add("kPatchRows", tiling.patch_rows());
  c.add("kAllRows", tiling.all_rows(problem), "of all images");
  if (tiling.load_elements() > 1) c.add("kLoad", tiling.load_elements(), "neighbours that a load brings");
  std::string text = c.text();
  text.pop_back();
  return text;
}

}  // namespace

KernelText gather_patches::emit(const KernelPlan& kernel, std::string_view name) {
  const auto& tiling = std::get<GatherPatchesTiling>(kernel.tiling);
  const Problem& problem = kernel.problem;
  const bool vectors = tiling.load_elements() > 1;
  KernelText text;
  text.arguments = {{tiling.source.tensor, "const Element* __restrict__", "x"},
                    {problem.input.tensor, "uint4* __restrict__", "patches"}};
  text.files = {{element_header(problem.input.type)}, {"device/dependent_launch.cuh"}};
  text.files.push_back({vectors ? "device/vector.cuh" : load_header(problem.input.type)});
  text.files.push_back({operand_header(problem.input.type)});
  text.text = fill_template(embedded_text("gather_patches/kernel.cu.in"),
                            {{"constants", constants(problem, tiling)},
                             {"kernel", std::string(name)},
                             {"parameters", parameter_list(text.arguments)},
                             {"load", std::string(embedded_text(vectors ? "gather_patches/load_vectors.cu.in"
                                                                        : "gather_patches/load_elements.cu.in"))},
                             {"row", operand_row(problem, "element")},
                             // What the kernel before makes is finished when this is: see KernelPlan::starts_early.
                             {"await_previous", kernel.starts_early ? "wait_for_previous_kernel();" : ""}});
  return text;
}

}  // namespace jitconv::codegen
