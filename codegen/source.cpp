// generate(): picks the family's emitter and adds what a launch needs.
#include "codegen/source.h"

#include "codegen/emit.h"
#include "codegen/emitter.h"
#include "fmt/format.h"
#include "jitconv/error.h"

namespace jitconv::codegen {
namespace {

std::string emit(const ConvPlan& plan) {
  switch (plan.family) {
    case Family::none:
      return {};
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
  source.text = emit(plan);
  source.workspace_bytes = plan.workspace_bytes;
  if (plan.family == Family::none) return source;
  // No fast-math flags: denormals, division and contraction are as IEEE and the text say.
  source.options = {fmt::format("--gpu-architecture={}", plan.target.arch()), "--std=c++17"};
  KernelEntry entry;
  entry.name = kernel_name(plan);
  entry.grid = {plan.blocks, 1, 1};
  entry.threads = plan.threads;
  entry.shared_bytes = plan.shared_bytes;
  entry.arguments = arguments(plan.spec);
  source.entries.push_back(std::move(entry));
  return source;
}

}  // namespace jitconv::codegen
