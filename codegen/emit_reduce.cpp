// See emit_reduce.h.
#include "codegen/emit_reduce.h"

#include "codegen/arithmetic.h"
#include "codegen/template_text.h"

namespace jitconv::codegen {
namespace {

constexpr int kReduceThreads = 256;

std::string reduce_name(const ConvPlan& plan) { return kernel_name(plan) + "_reduce"; }

std::int64_t outputs(const ConvSpec& spec) {
  const TensorShape out = output_shape(spec);
  return out.n * out.c * out.h * out.w;
}

std::vector<Argument> reduce_arguments(const ConvPlan& plan) {
  // Not __restrict__: the compiler would take loads through it for independent of the wait for the convolution.
  std::vector<Argument> result = {{ArgumentRole::partial_sums, "const float*", "partial_sums"}};
  for (Argument& argument : arguments(plan.spec))
    if (argument.role != ArgumentRole::x && argument.role != ArgumentRole::w) result.push_back(std::move(argument));
  return result;
}

}  // namespace

KernelEntry reduce_entry(const ConvPlan& plan) {
  return {reduce_name(plan),       {static_cast<std::uint32_t>(ceil_div(outputs(plan.spec), kReduceThreads)), 1, 1},
          kReduceThreads,          0,
          reduce_arguments(plan),
          /*packs_weights=*/false,
          /*starts_early=*/true};
}

void add_reduce_constants(Constants& c, const ConvSpec& spec, std::int64_t stride) {
  c.add("kReduceThreads", kReduceThreads).add("kPartialSumStride", stride);
  c.add("kOutputs", outputs(spec));
}

std::string emit_reduce(const ConvPlan& plan) {
  const Epilogue& epilogue = plan.spec.epilogue;
  return fill_template(embedded_text("reduce.cu.in"),
                       {{"kernel", reduce_name(plan)},
                        {"parameters", parameter_list(reduce_arguments(plan))},
                        {"channel_values", channel_values(epilogue, plan.spec.output_layout == Layout::nhwc
                                                                        ? "output % (kGroups * kGroupK)"
                                                                        : "output / kPlane % (kGroups * kGroupK)")},
                        {"epilogue", epilogue_lines(epilogue, "output")}});
}

}  // namespace jitconv::codegen
