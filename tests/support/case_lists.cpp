// See case_lists.h.
#include "support/case_lists.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "codegen/plan.h"
#include "support/documented_gradients.h"
#include "support/shape_lists.h"
#include "tools/check/tensors.h"
#include "tools/documented.h"

namespace jitconv::test {
namespace {

using codegen::DepthwiseTiling;
using codegen::Family;

std::string layouts_of(const ConvSpec& spec) {
  return fmt::format("{} to {}", to_string(spec.input_layout), to_string(spec.output_layout));
}

/// Vectors are stored to aligned addresses only; with less another store or family has the same shape.
std::int64_t least_alignment(const FamilyCase& family) {
  const bool vectors = family.family == Family::depthwise && family.store == DepthwiseTiling::Store::vector;
  const bool planes = family.family == Family::depthwise_planes;
  return vectors || planes || codegen::uses_tensor_cores(family.family) ? 16 : 1;
}

constexpr DataType kTypes[] = {DataType::f32, DataType::f16, DataType::bf16};

/// The case with another spec and a plan of its family.
void add_case(std::vector<Case>& cases, const FamilyCase& family, const ConvSpec& spec, const std::string& what,
              const Target& target) {
  cases.push_back({family.name + ", " + what, spec, require_plan_for(family, spec, target), false, {}});
  cases.back().kinds = {check::DataKind::exact, check::DataKind::random};
}

std::vector<codegen::ConvPlan> some_plans(const ConvSpec& spec, const Target& target, std::size_t first,
                                          std::size_t spread) {
  std::vector<codegen::ConvPlan> all = codegen::enumerate_plans(spec, target, SIZE_MAX), some;
  const std::size_t others = all.size() > first ? all.size() - first : 0;
  const std::size_t step = std::max<std::size_t>(1, others / std::max<std::size_t>(1, spread));
  std::set<Family> families;  // a family of few candidates is not to be missed
  for (std::size_t i = 0; i < all.size(); ++i)
    if (families.insert(all[i].family()).second || i < first || (spread > 0 && (i - first) % step == 0))
      some.push_back(std::move(all[i]));
  return some;
}

}  // namespace

std::vector<Case> documented_cases() {
  std::vector<Case> cases;
  for (const tools::DocumentedConfiguration& one : tools::documented_configurations()) {
    Case next{one.name, one.spec, {}, false, {}};
    next.kinds = {check::DataKind::exact, check::DataKind::random, check::DataKind::positive};
    cases.push_back(next);
  }
  return cases;
}

std::vector<Case> documented_gradient_cases(Operation operation) {
  std::vector<Case> cases;
  const auto add = [&](const std::string& name, ConvSpec spec) {
    spec.operation = operation;
    cases.push_back({name, spec, {}, false, {}});
    cases.back().kinds = {check::DataKind::exact, check::DataKind::random};
  };
  for (const tools::DocumentedConfiguration& one : documented_gradients())
    if (one.spec.operation == operation) add(one.name, one.spec);
  for (const tools::DocumentedConfiguration& one : tools::tensor_core_configurations())
    add(fmt::format("{} {}", one.name, to_string(operation)), one.spec);
  return cases;
}

std::vector<Case> shape_cases(std::int64_t most_bytes) {
  std::vector<Case> cases;
  std::set<std::string> seen;
  for (const ShapeRow& row : forward_shapes(JITCONV_TEST_DATA "/shapes")) {
    Case next;
    next.name = fmt::format("{}:{} {}", row.list, row.line, row.name);
    next.spec = row.spec;
    while (next.spec.input.n > 1 && check::tensor_bytes(next.spec) > most_bytes) {
      next.spec.input.n /= 2;
      next.reduced = true;
    }
    if (seen.insert(to_string(next.spec)).second) cases.push_back(std::move(next));
  }
  return cases;
}

std::vector<Case> with_16_bit_types(std::vector<Case> cases) {
  for (std::size_t i = 0; i < cases.size(); ++i) {
    cases[i].spec.dtype = i % 2 == 0 ? DataType::f16 : DataType::bf16;
    cases[i].name += fmt::format(" {}", to_string(cases[i].spec.dtype));
  }
  return cases;
}

std::vector<Case> with_nhwc_layouts(std::vector<Case> cases) {
  for (std::size_t i = 0; i < cases.size(); ++i) {
    ConvSpec& spec = cases[i].spec;
    spec.dtype = static_cast<DataType>(i % 3);
    const std::size_t layouts = 1 + i / 3 % 3;
    spec.input_layout = static_cast<Layout>(layouts & 1);
    spec.output_layout = static_cast<Layout>(layouts >> 1);
    cases[i].name += fmt::format(" {} {}", to_string(spec.dtype), layouts_of(spec));
  }
  return cases;
}

std::vector<Case> epilogue_cases(const Target& target) {
  std::vector<Case> cases;
  for (const FamilyCase& family : family_cases(target)) {
    for (const DataType type : types_of(family)) {
      ConvSpec spec = family.spec;
      spec.dtype = type;
      spec.epilogue.slope = 0.25f;  // exact in every type, so that integer data stay exact
      spec.epilogue.clamp_min = -2.0f;
      spec.epilogue.clamp_max = 5.0f;
      for (const auto& [bias, residual] : {std::pair(false, false), std::pair(true, false), std::pair(false, true)}) {
        if (residual && !family.adds_residual) continue;
        spec.epilogue.bias = bias, spec.epilogue.residual = residual;
        add_case(cases, family, spec, fmt::format("{} bias {} residual {}", to_string(type), bias, residual), target);
      }
      spec.epilogue.bias = true;
      for (int activation = 0; activation <= static_cast<int>(Activation::clamp); ++activation) {
        // Each with a residual in some types and without in others: their stores differ.
        spec.epilogue.residual = family.adds_residual && (activation + static_cast<int>(type)) % 2 == 0;
        spec.epilogue.activation = static_cast<Activation>(activation);
        add_case(cases, family, spec, fmt::format("{} {}", to_string(type), to_string(spec.epilogue.activation)),
                 target);
      }
    }
  }
  return cases;
}

std::vector<Case> alignment_cases(const Target& target) {
  std::vector<Case> cases;
  for (const FamilyCase& family : family_cases(target)) {
    for (const DataType type : types_of(family)) {
      for (std::int64_t alignment = element_bytes(type); alignment <= 256; alignment *= 2) {
        if (alignment < least_alignment(family)) continue;
        ConvSpec spec = family.spec;
        spec.dtype = type;
        spec.alignment = alignment;
        spec.epilogue.bias = true;
        spec.epilogue.residual = family.adds_residual;
        add_case(cases, family, spec, fmt::format("{} at multiples of {}", to_string(type), alignment), target);
      }
    }
  }
  // The shape of the vector store, planned freely.
  for (const FamilyCase& family : family_cases(target)) {
    for (const DataType type : kTypes) {
      Case next{family.name + ", planned, misaligned by one element", family.spec, {}, false, {}};
      next.spec.dtype = type;
      next.spec.alignment = element_bytes(type);
      next.plan = codegen::make_plan(next.spec, target);
      next.kinds = {check::DataKind::exact, check::DataKind::random};
      cases.push_back(next);
    }
  }
  return cases;
}

std::vector<Case> candidate_cases(const Target& target, std::size_t first, std::size_t spread) {
  std::vector<Case> cases;
  std::set<std::string> shapes;
  for (const FamilyCase& family : family_cases(target)) {
    if (!shapes.insert(to_string(family.spec)).second) continue;
    std::vector<codegen::ConvPlan> plans = some_plans(family.spec, target, first, spread);
    FamilyCase fallback = family;
    fallback.family = Family::fallback;
    plans.push_back(require_plan_for(fallback, family.spec, target));
    for (std::size_t i = 0; i < plans.size(); ++i)
      cases.push_back({fmt::format("{}, candidate {}", family.name, i),
                       family.spec,
                       std::move(plans[i]),
                       false,
                       {check::DataKind::exact}});
  }
  return cases;
}

}  // namespace jitconv::test
