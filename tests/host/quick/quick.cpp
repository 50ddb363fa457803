// See quick.h.
#include "host/quick/quick.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "codegen/plan.h"
#include "host/suite/launcher.h"
#include "support/family_cases.h"
#include "support/fresh_cache.h"
#include "tools/reduce.h"

namespace jitconv::test {
namespace {

using codegen::ConvPlan;

std::vector<ConvPlan> plans_of(const Quick& quick) {
  const ConvSpec spec = parse_spec(quick.spec);
  const Target target = Target::host(parse_target(quick.arch));
  std::vector<ConvPlan> all, some;
  if (quick.wanted == nullptr) return {fallback_plan(spec, target)};
  std::int64_t least = INT64_MAX;
  for (ConvPlan& plan : codegen::enumerate_plans(spec, target, SIZE_MAX)) {
    if (!quick.wanted(plan)) continue;
    least = std::min(least, tools::executed_multiply_adds(plan));
    all.push_back(std::move(plan));
  }
  // Tiles much larger than a small convolution compute mostly what is thrown away.
  const std::int64_t most = std::max<std::int64_t>(2 * least, 3'000'000);
  std::erase_if(all, [most](const ConvPlan& plan) { return tools::executed_multiply_adds(plan) > most; });
  for (std::size_t i = 0; i < quick.plans && i < all.size(); ++i)
    some.push_back(all[i * all.size() / std::min(quick.plans, all.size())]);
  return some;
}

/// By their kinds.
std::map<std::string, ConvPlan> plans_of(const ConvSpec& spec, const Kinds& wanted, std::size_t turn) {
  std::map<std::string, ConvPlan> chosen, others;
  for (ConvPlan& plan : codegen::enumerate_plans(spec, Target::host(parse_target("sm_90a")), SIZE_MAX)) {
    const std::string kind = wanted.kind(plan);
    if (kind.empty() || chosen.contains(kind)) continue;
    (chosen.empty() ? chosen : others).try_emplace(kind, std::move(plan));
  }
  for (std::size_t i = 0; i < wanted.others && !others.empty(); ++i)
    chosen.insert(others.extract(std::next(others.begin(), static_cast<long>(turn % others.size()))));
  return chosen;
}

}  // namespace

Case case_of(std::string what, ConvPlan plan) {
  Case one{std::move(what), plan.spec, std::move(plan), false, {}};
  one.kinds = {check::DataKind::exact, check::DataKind::random};
  return one;
}

Wanted family(codegen::Family wanted) {
  return [wanted](const ConvPlan& plan) { return plan.family() == wanted; };
}

Wanted wgmma(std::function<bool(const codegen::WgmmaGeometry&)> wanted) {
  return [wanted = std::move(wanted)](const ConvPlan& plan) {
    const auto* tiling = plan.tiling<codegen::WgmmaTiling>();
    return tiling != nullptr && !tiling->transposes_input() &&
           wanted(codegen::WgmmaGeometry(plan.convolution().problem, *tiling));
  };
}

Wanted transposed(std::function<bool(const codegen::WgmmaTiling&)> wanted) {
  return [wanted = std::move(wanted)](const ConvPlan& plan) {
    const auto* tiling = plan.tiling<codegen::WgmmaTiling>();
    return tiling != nullptr && tiling->transposes_input() && wanted(*tiling);
  };
}

Wanted wgmma(std::function<bool(const codegen::WgmmaTiling&)> wanted) {
  return wgmma(
      [wanted = std::move(wanted)](const codegen::WgmmaGeometry& geometry) { return wanted(geometry.tiling()); });
}

void run(const std::string& name, const std::vector<Quick>& list) {
  std::vector<Case> cases;
  for (const Quick& quick : list) {
    const std::vector<ConvPlan> plans = plans_of(quick);
    EXPECT_GE(plans.size(), quick.plans) << name << ", " << quick.what << ": too few plans of this kind";
    for (const ConvPlan& plan : plans) {
      cases.push_back(case_of(fmt::format("{} for {}, plan {}", quick.what, quick.arch, cases.size()), plan));
      if (quick.blocks != 0) cases.back().plan->convolution().launch.blocks = quick.blocks;
    }
  }
  run(name, cases);
}

void run(const std::string& name, const Kinds& wanted) {
  std::vector<Case> cases;
  std::set<std::string> kinds;
  std::size_t turn = 0;
  for (const std::string& text : wanted.specs) {
    const std::map<std::string, ConvPlan> plans = plans_of(parse_spec(text), wanted, turn += 3);
    EXPECT_FALSE(plans.empty()) << text;
    for (const auto& [kind, plan] : plans) {
      cases.push_back(case_of(fmt::format("{}: {}", text, kind), plan));
      kinds.insert(kind);
    }
  }
  for (const char* part : wanted.parts)
    EXPECT_TRUE(std::ranges::any_of(kinds, [part](const std::string& one) { return one.find(part) != one.npos; }))
        << "no plan has " << part;
  run(name, cases);
}

void run(const std::string& name, const std::vector<Case>& cases) {
  const FreshCache cache("host-quick");
  tools::HostDevice device{Target::host()};
  HostLauncher launcher(device);
  RunOptions options;
  options.limits.multiplications = 6'000'000;
  options.launch = [&launcher](const Case& wanted, const Kernel& kernel, const LaunchArgs& args) {
    return launcher.launch(wanted, kernel, args);
  };
  const Report::Category counts = run_cases(device, name, cases, options);
  std::printf("quick, %s: %zu kernels, %.3g multiply-adds\n", name.c_str(), cases.size(),
              static_cast<double>(launcher.totals().multiply_adds));
  EXPECT_EQ(counts.kernels, static_cast<std::int64_t>(cases.size()));
  EXPECT_EQ(counts.launches, 2 * counts.kernels);
  EXPECT_EQ(launcher.totals().late, launcher.totals().early);
  EXPECT_EQ(launcher.totals().findings, 0);
}

}  // namespace jitconv::test
