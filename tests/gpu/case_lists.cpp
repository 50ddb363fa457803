// See case_lists.h.
#include "gpu/case_lists.h"

#include <fmt/format.h>

#include <set>

#include "codegen/heuristics.h"
#include "support/shape_lists.h"
#include "tools/documented.h"

namespace jitconv::test {
namespace {

using codegen::DepthwiseTiling;
using codegen::Family;

std::string layouts_of(const ConvSpec& spec) {
  return fmt::format("{} to {}", to_string(spec.input_layout), to_string(spec.output_layout));
}

std::vector<FamilyCase> make_family_cases() {
  using Store = DepthwiseTiling::Store;
  std::vector<FamilyCase> cases;
  const auto add = [&cases](const std::string& name, const std::string& text, Family family,
                            Store store = Store::flat) {
    cases.push_back({name, parse_spec(text), family, store});
  };
  // Channels and pixels that no tile divides, padding on all sides, several tiles each way.
  add("direct", "input=2,13,37,75 weight=37,13,3,3 padding=1,2,2,0", Family::direct);
  add("direct, strided", "input=2,5,41,67 weight=19,5,5,3 stride=2,3 padding=2,2,1,1 dilation=1,2", Family::direct);
  add("direct, grouped", "input=2,12,19,33 weight=30,4,3,5 groups=3 padding=1,2", Family::direct);
  // Tiles of more than 1024 columns, once by stride and once by dilation.
  add("direct, wide tile", "input=1,4,24,2001 weight=8,4,3,3 stride=1,17", Family::direct);
  add("direct, wide window", "input=1,4,24,2001 weight=8,4,3,5 dilation=1,200", Family::direct);
  add("direct, nhwc", "input=2,13,37,35 weight=37,13,3,3 padding=1 input_layout=nhwc output_layout=nhwc",
      Family::direct);
  add("direct, nhwc vectors", "input=2,16,17,35 weight=32,16,3,3 padding=1 input_layout=nhwc output_layout=nhwc",
      Family::direct);
  add("direct, nchw to nhwc", "input=2,9,21,35 weight=24,9,3,3 stride=2 padding=1 output_layout=nhwc", Family::direct);
  add("direct, nhwc to nchw", "input=2,9,21,35 weight=24,9,3,3 padding=1 input_layout=nhwc", Family::direct);
  add("depthwise, flat store", "input=3,7,29,37 weight=7,1,3,3 groups=7 padding=1,1,1,2", Family::depthwise,
      Store::flat);
  add("depthwise, small planes", "input=5,9,7,7 weight=9,1,3,3 groups=9 padding=1", Family::depthwise, Store::flat);
  add("depthwise, vector store", "input=2,6,33,64 weight=6,1,5,3 groups=6 padding=2,1", Family::depthwise,
      Store::vector);
  add("depthwise, row store", "input=2,3,19,2502 weight=3,1,3,3 groups=3 padding=1,1,0,1", Family::depthwise,
      Store::rows);
  add("depthwise, multiplier", "input=2,6,23,31 weight=12,1,3,5 groups=6 padding=1,2 dilation=1,2", Family::depthwise,
      Store::flat);
  add("depthwise, strided", "input=2,8,45,53 weight=8,1,7,7 groups=8 stride=2 padding=3", Family::depthwise,
      Store::flat);
  add("fallback", "input=2,6,23,31 weight=21,6,3,3 padding=1,2,0,1 stride=1,2", Family::fallback);
  add("fallback, nhwc", "input=2,6,23,31 weight=21,6,3,3 padding=1 input_layout=nhwc output_layout=nhwc",
      Family::fallback);
  add("fallback, far apart", "input=2,4,300,310 weight=10,4,3,3 dilation=130,140 padding=20", Family::fallback);
  return cases;
}

bool fits(const FamilyCase& wanted, const codegen::ConvPlan& plan) {
  if (plan.family != wanted.family) return false;
  const auto* depthwise = std::get_if<DepthwiseTiling>(&plan.tiling);
  return depthwise == nullptr || depthwise->store == wanted.store;
}

/// The fallback's plan, which the planner makes only where no other family can.
codegen::ConvPlan fallback_plan(const ConvSpec& spec, const Target& target) {
  const ConvSpec canonical = codegen::canonical(spec);
  return codegen::make_plan(codegen::fallback_candidates(canonical, target).front(), canonical, target);
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

std::vector<Case> shape_cases(std::int64_t most_bytes) {
  std::vector<Case> cases;
  std::set<std::string> seen;
  for (const ShapeRow& row : forward_shapes(JITCONV_TEST_DATA "/shapes")) {
    Case next;
    next.name = fmt::format("{}:{} {}", row.list, row.line, row.name);
    next.spec = row.spec;
    while (next.spec.input.n > 1 && tensor_bytes(next.spec) > most_bytes) {
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

const std::vector<FamilyCase>& family_cases() {
  static const std::vector<FamilyCase> cases = make_family_cases();
  return cases;
}

std::optional<codegen::ConvPlan> plan_for(const FamilyCase& wanted, const ConvSpec& spec, const Target& target) {
  if (wanted.family == Family::fallback) return fallback_plan(spec, target);
  for (const codegen::ConvPlan& plan : codegen::enumerate_plans(spec, target, SIZE_MAX))
    if (fits(wanted, plan)) return plan;
  return {};
}

}  // namespace jitconv::test
