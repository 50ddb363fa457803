// generate(): picks the family's emitter and adds what a launch needs.
#include "codegen/source.h"

#include "codegen/emit.h"
#include "codegen/emitter.h"
#include "codegen/line_wrap.h"
#include "fmt/format.h"
#include "jitconv/error.h"

namespace jitconv::codegen {
namespace {

std::string emit(const ConvPlan& plan) {
  switch (plan.family) {
    case Family::none:
      return {};
    case Family::pointwise:
      return emit_pointwise(plan);
    case Family::tensor:
      return emit_tensor(plan);
    case Family::direct:
      return emit_direct(plan);
    case Family::depthwise:
      return emit_depthwise(plan);
    case Family::fallback:
      return emit_fallback(plan);
  }
  throw InternalError("unknown family");
}

}  // namespace

KernelSource generate(const ConvPlan& plan) {
  KernelSource source;
  constexpr std::size_t kColumns = 120;
  source.text = wrap_lines(emit(plan), kColumns);
  source.workspace = plan.workspace;
  if (plan.family == Family::none) return source;
  // No fast-math flags: denormals, division and contraction are as IEEE and the text say.
  source.options = {fmt::format("--gpu-architecture={}", plan.target.arch()), "--std=c++17"};
  if (plan.family == Family::pointwise) {
    source.entries = pointwise_entries(plan);
  } else if (plan.family == Family::tensor) {
    source.entries = tensor_entries(plan);
  } else {
    source.entries.push_back(
        {kernel_name(plan), {plan.blocks, 1, 1}, plan.threads, plan.shared_bytes, arguments(plan.spec)});
  }
  return source;
}

}  // namespace jitconv::codegen
