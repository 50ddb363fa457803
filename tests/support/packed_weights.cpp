// See packed_weights.h.
#include "support/packed_weights.h"

#include "codegen/heuristics.h"
#include "support/runner.h"
#include "tools/reduce.h"

namespace jitconv::test {
namespace {

using codegen::ConvPlan;

/// The tensor plan that executes least of those that split their reduction, or of those that do not.
std::optional<ConvPlan> smallest_plan(const ConvSpec& spec, const Target& target, bool split) {
  std::optional<ConvPlan> smallest;
  for (ConvPlan& plan : codegen::enumerate_plans(spec, target, SIZE_MAX)) {
    const auto* tiling = std::get_if<codegen::TensorTiling>(&plan.tiling);
    if (tiling == nullptr || (tiling->splits > 1) != split) continue;
    if (!smallest || tools::executed_multiply_adds(plan) < tools::executed_multiply_adds(*smallest))
      smallest = std::move(plan);
  }
  return smallest;
}

}  // namespace

std::vector<PackingCase> packing_cases(const Target& target) {
  constexpr const char* kShape = "input=2,72,9,30 weight=72,72,3,3 padding=1,1,2,1 bias residual activation=relu ";
  constexpr struct {
    const char *name, *fields;
    bool split;
  } kCases[] = {{"tf32", "math=tf32", false},  {"tf32, split", "math=tf32", true},
                {"fp16", "dtype=f16", false},  {"fp16, split", "dtype=f16", true},
                {"bf16", "dtype=bf16", false}, {"bf16, split", "dtype=bf16", true}};
  std::vector<PackingCase> cases;
  for (const auto& [name, fields, split] : kCases) {
    if (std::optional<ConvPlan> plan = smallest_plan(parse_spec(std::string(kShape) + fields), target, split))
      cases.push_back({name, *std::move(plan)});
  }
  return cases;
}

std::string packing_fault(tools::Device& device, const Kernel& kernel, Report::Category& counts) {
  const ConvSpec& spec = kernel.spec();
  const Reference reference = make_reference(spec, check::DataKind::random, /*seed=*/11, {});
  Arena arena(device);
  const auto run = [&](const LaunchArgs& tensors, const LaunchArgs& launched, std::int64_t workspace_bytes) {
    fill_tensors(device, spec, reference.data, tensors, workspace_bytes);
    kernel.launch(nullptr, launched);
    return judge(device, spec, reference, tensors, arena, counts);
  };

  ++counts.kernels;
  LaunchArgs tensors = place_tensors(arena, spec, kernel.workspace_bytes());
  if (const std::string wrong = run(tensors, tensors, kernel.workspace_bytes()); !wrong.empty())
    return "with w: " + wrong;
  const std::vector<std::byte> expected = output_bytes(device, spec, tensors.y);

  const std::int64_t workspace_bytes = kernel.workspace_bytes_with_packed_weights();
  tensors = place_tensors(arena, spec, workspace_bytes, kernel.packed_weight_bytes());
  fill_tensors(device, spec, reference.data, tensors, workspace_bytes);
  device.set_bytes(const_cast<void*>(tensors.packed_w), kNanByte, kernel.packed_weight_bytes());
  kernel.pack_weights(nullptr, tensors.w, const_cast<void*>(tensors.packed_w));
  LaunchArgs launched = tensors;
  launched.w = nullptr;
  for (const char* const which : {"first", "second"}) {
    const std::string prefix = std::string(which) + " launch with packed_w: ";
    if (const std::string wrong = run(tensors, launched, workspace_bytes); !wrong.empty()) return prefix + wrong;
    if (output_bytes(device, spec, tensors.y) != expected) return prefix + "not the bits of the launch with w";
  }
  return {};
}

}  // namespace jitconv::test
