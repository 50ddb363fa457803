// Every family and store with every epilogue, type and alignment, and with plans that the cost model would not choose:
// small convolutions, all outputs compared.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "gpu/case_lists.h"
#include "gpu/gpu.h"

namespace jitconv::test {
namespace {

using codegen::Family;

constexpr DataType kTypes[] = {DataType::f32, DataType::f16, DataType::bf16};

using Variants = GpuTest;

/// The case with another spec, run with a plan of its family; a failure if there is none.
void add_case(std::vector<Case>& cases, const FamilyCase& family, const ConvSpec& spec, const std::string& what,
              const Target& target) {
  std::optional<codegen::ConvPlan> plan = plan_for(family, spec, target);
  if (!plan) {
    ADD_FAILURE() << "no plan for " << family.name << ": " << to_string(spec);
    return;
  }
  cases.push_back({family.name + ", " + what, spec, std::move(plan), false, {check::DataKind::exact}});
  cases.back().kinds = {check::DataKind::exact, check::DataKind::random};
}

void expect_every_family(const Report::Category& counts) {
  EXPECT_EQ(counts.families.size(), 3u) << "direct, depthwise, fallback";
  EXPECT_EQ(counts.failed, 0);
}

TEST_F(Variants, EveryEpilogue) {
  std::vector<Case> cases;
  for (const FamilyCase& family : family_cases()) {
    for (const DataType type : kTypes) {
      ConvSpec spec = family.spec;
      spec.dtype = type;
      spec.epilogue.slope = 0.25f;  // exact in every type, so that integer data stay exact
      spec.epilogue.clamp_min = -2.0f;
      spec.epilogue.clamp_max = 5.0f;
      for (const auto& [bias, residual] : {std::pair(false, false), std::pair(true, false), std::pair(false, true)}) {
        spec.epilogue.bias = bias, spec.epilogue.residual = residual;
        add_case(cases, family, spec, fmt::format("{} bias {} residual {}", to_string(type), bias, residual), target());
      }
      spec.epilogue.bias = spec.epilogue.residual = true;
      for (int activation = 0; activation <= static_cast<int>(Activation::clamp); ++activation) {
        spec.epilogue.activation = static_cast<Activation>(activation);
        add_case(cases, family, spec, fmt::format("{} {}", to_string(type), to_string(spec.epilogue.activation)),
                 target());
      }
    }
  }
  ASSERT_EQ(cases.size(), family_cases().size() * 3 * 13);
  expect_every_family(run_cases(device(), "epilogues", cases));
}

TEST_F(Variants, EveryAlignment) {
  std::vector<Case> cases;
  for (const FamilyCase& family : family_cases()) {
    for (const DataType type : kTypes) {
      for (std::int64_t alignment = element_bytes(type); alignment <= 256; alignment *= 2) {
        // A vector store needs aligned vectors; with less the family has another store for the same shape.
        const bool vectors =
            family.family == Family::depthwise && family.store == codegen::DepthwiseTiling::Store::vector;
        if (vectors && alignment < 16) continue;
        ConvSpec spec = family.spec;
        spec.dtype = type;
        spec.alignment = alignment;
        spec.epilogue.bias = spec.epilogue.residual = true;
        add_case(cases, family, spec, fmt::format("{} at multiples of {}", to_string(type), alignment), target());
      }
    }
  }
  // The shape of the vector store, planned freely.
  for (const FamilyCase& family : family_cases()) {
    for (const DataType type : kTypes) {
      Case next{family.name + ", planned, misaligned by one element", family.spec, {}, false, {}};
      next.spec.dtype = type;
      next.spec.alignment = element_bytes(type);
      next.kinds = {check::DataKind::exact, check::DataKind::random};
      cases.push_back(next);
    }
  }
  expect_every_family(run_cases(device(), "alignments", cases));
}

/// The cheapest `first` plans and some spread over the rest: what a tuner may run, and what another GPU's model might
/// choose.
std::vector<codegen::ConvPlan> some_plans(const ConvSpec& spec, const Target& target, std::size_t first,
                                          std::size_t spread) {
  std::vector<codegen::ConvPlan> all = codegen::enumerate_plans(spec, target, SIZE_MAX), some;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool in_spread = i >= first && (i - first) % std::max<std::size_t>(1, (all.size() - first) / spread) == 0;
    if (i < first || in_spread) some.push_back(std::move(all[i]));
  }
  return some;
}

TEST_F(Variants, ManyCandidates) {
  std::vector<Case> cases;
  std::set<std::string> shapes;
  for (const FamilyCase& family : family_cases()) {
    if (!shapes.insert(to_string(family.spec)).second) continue;
    std::vector<codegen::ConvPlan> plans = some_plans(family.spec, target(), 25, 8);
    for (std::size_t i = 0; i < plans.size(); ++i)
      cases.push_back({fmt::format("{}, candidate {}", family.name, i),
                       family.spec,
                       std::move(plans[i]),
                       false,
                       {check::DataKind::exact}});
    FamilyCase fallback = family;
    fallback.family = Family::fallback;
    cases.push_back({family.name + ", fallback",
                     family.spec,
                     plan_for(fallback, family.spec, target()),
                     false,
                     {check::DataKind::exact}});
  }
  ASSERT_GE(shapes.size(), 12u);
  ASSERT_GE(cases.size(), 250u);
  expect_every_family(run_cases(device(), "candidates", cases));
}

}  // namespace
}  // namespace jitconv::test
