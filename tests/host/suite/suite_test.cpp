// The host suite: every kernel family on the CPU, through thousands of convolutions of every type, layout, epilogue,
// alignment and architecture, checked while they run and judged as on a GPU: integer data bit for bit, real data within
// the derived bound, redzones, no finding. See cases.h for what runs, and share.h for what of it runs always.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <set>

#include "host/suite/cases.h"
#include "host/suite/launcher.h"
#include "host/suite/share.h"
#include "support/fresh_cache.h"
#include "support/full_run.h"
#include "tools/documented.h"

namespace jitconv::test {
namespace {

/// Different convolutions (shape, type, layout, epilogue) that the suite promises to run, whatever the plans.
constexpr std::size_t kPromised = 2000, kPromisedShare = 400;

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define JITCONV_SANITIZED
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define JITCONV_SANITIZED
#endif
/// Sanitizers make execution ten times slower and look at the engine, not at the kernels: a part of the cases will do.
#if defined(JITCONV_SANITIZED)
constexpr std::size_t kEveryOfShare = 3, kEveryOfRest = 10;
#else
constexpr std::size_t kEveryOfShare = 1, kEveryOfRest = 1;
#endif

struct Shards {
  const char* list;
  std::size_t fewest;       ///< cases of the whole list
  std::size_t every;        ///< see split()
  std::size_t share, rest;  ///< tests that each part is cut into: about a minute each
};

constexpr Shards kShards[] = {{"documented", 130, 40, 2, 1},  {"documented gradients", 75, 40, 2, 1},
                              {"shapes f32", 850, 24, 1, 5},  {"shapes 16 bits", 580, 24, 1, 4},
                              {"shapes nhwc", 580, 24, 1, 4}, {"epilogues", 230, 40, 1, 5},
                              {"alignments", 240, 40, 1, 4},  {"candidates", 280, 40, 1, 4},
                              {"random", 390, 12, 1, 2},      {"wgmma", 1000, 24, 2, 8},
                              {"gradients", 80, 6, 1, 1},     {"activation gradients", 72, 6, 1, 1}};

struct Shard {
  Shards list;
  bool rest = false;
  std::size_t index = 0, count = 1;
};

std::vector<Shard> shards(bool rest) {
  std::vector<Shard> all;
  for (const Shards& list : kShards) {
    const std::size_t count = rest ? list.rest : list.share;
    for (std::size_t i = 0; i < count; ++i) all.push_back({list, rest, i, count});
  }
  return all;
}

void PrintTo(const Shard& shard, std::ostream* stream) {
  *stream << shard.list.list << (shard.rest ? ", rest " : ", share ") << shard.index + 1 << "/" << shard.count;
}

std::string test_name(const ::testing::TestParamInfo<Shard>& info) {
  std::string name = info.param.list.list;
  std::replace(name.begin(), name.end(), ' ', '_');
  return fmt::format("{}_{}_of_{}", name, info.param.index + 1, info.param.count);
}

class HostSuite : public ::testing::TestWithParam<Shard> {};

TEST_P(HostSuite, RunsAndIsRight) {
  const Shard& shard = GetParam();
  if (shard.rest && !is_full_run()) GTEST_SKIP() << "the rest of the host suite runs with ./dev test --full";
  HostList list = host_list(shard.list.list);
  ASSERT_GE(list.cases.size(), shard.list.fewest);
  const Parts parts = split(features_of(list), shard.list.every);
  const std::vector<std::size_t>& part = shard.rest ? parts.rest : parts.share;
  std::vector<Case> cases;
  for (std::size_t i = shard.index; i < part.size(); i += shard.count * (shard.rest ? kEveryOfRest : kEveryOfShare))
    cases.push_back(std::move(list.cases[part[i]]));
  std::printf("host suite, %s: %zu of %zu cases in the %s, %zu of them here%s\n", shard.list.list, part.size(),
              list.cases.size(), shard.rest ? "rest" : "share", cases.size(),
              is_full_run() ? "" : "; ./dev test --full runs all");

  static const FreshCache cache("host-suite");  // of the process, as the library's own cache is
  tools::HostDevice device{Target::host()};
  HostLauncher launcher(device);
  RunOptions options;
  options.limits.multiplications = 6'000'000;
  options.workers = 1;  // other shards have the other cores
  options.launch = [&launcher](const Case& wanted, const Kernel& kernel, const LaunchArgs& args) {
    return launcher.launch(wanted, kernel, args);
  };
  const auto begin = std::chrono::steady_clock::now();
  const Report::Category counts = run_cases(device, shard.list.list, cases, options);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();

  const HostLauncher::Totals& totals = launcher.totals();
  std::string families;
  for (const auto& [family, count] : counts.families)
    families += fmt::format("{}{} {}", families.empty() ? "" : ", ", count, family);
  const std::string summary = fmt::format(
      "host suite, {} {}/{}: {} cases ({}), {} launches ({} late, {} early), {} outputs compared, {:.3g} multiply-adds "
      "in {:.1f} s ({:.0f} M/s), {:.1f} s in all, {} mismatches, {} findings, worst error {:.2f} of the bound",
      shard.list.list, shard.index + 1, shard.count, counts.kernels, families, totals.launches, totals.late,
      totals.early, counts.outputs, static_cast<double>(totals.multiply_adds), totals.seconds,
      static_cast<double>(totals.multiply_adds) / totals.seconds * 1e-6, seconds, counts.failed, totals.findings,
      counts.worst_ratio);
  std::printf("%s\n", summary.c_str());
  RecordProperty("summary", summary);

  // Nothing passes by not having been run.
  EXPECT_EQ(counts.kernels, static_cast<std::int64_t>(cases.size()));
  EXPECT_EQ(counts.launches, static_cast<std::int64_t>(2 * cases.size()));
  EXPECT_EQ(totals.late, totals.early);
  EXPECT_GE(totals.blocks, totals.launches);
  EXPECT_GE(counts.outputs, counts.launches);
  EXPECT_EQ(counts.failed, 0);
  EXPECT_EQ(totals.findings, 0);
}

INSTANTIATE_TEST_SUITE_P(Share, HostSuite, ::testing::ValuesIn(shards(/*rest=*/false)), test_name);
INSTANTIATE_TEST_SUITE_P(Rest, HostSuite, ::testing::ValuesIn(shards(/*rest=*/true)), test_name);

/// Every case is in one part, and the share has all that the list has.
void expect_to_cover(const Parts& parts, const std::vector<Case>& cases,
                     const std::vector<std::set<std::uint64_t>>& features_of_cases) {
  std::set<std::size_t> indices(parts.share.begin(), parts.share.end());
  indices.insert(parts.rest.begin(), parts.rest.end());
  EXPECT_EQ(parts.share.size() + parts.rest.size(), cases.size());
  EXPECT_EQ(indices.size(), cases.size());
  EXPECT_LT(*indices.rbegin(), cases.size());
  std::set<std::uint64_t> features;
  for (const std::size_t i : parts.share) features.insert(features_of_cases[i].begin(), features_of_cases[i].end());
  for (const std::size_t i : parts.rest) {
    const std::set<std::uint64_t>& own = features_of_cases[i];
    EXPECT_TRUE(std::includes(features.begin(), features.end(), own.begin(), own.end())) << cases[i].name;
  }
}

// What the shards run, all together, is what was promised: each shard sees to it that all of its own is run.
TEST(HostSuiteLists, HoldWhatIsPromised) {
  std::set<std::string> convolutions, of_share;
  std::map<std::string, std::size_t> families, operations, types, architectures, activations;
  std::size_t cases = 0, share = 0;
  ASSERT_EQ(std::size(kShards), host_list_names().size());
  for (const Shards& one : kShards) {
    const HostList list = host_list(one.list);
    const std::vector<std::set<std::uint64_t>> features = features_of(list);
    const Parts parts = split(features, one.every);
    EXPECT_GE(list.cases.size(), one.fewest) << one.list;
    std::printf("host suite, %s: %zu given, %zu distinct when reduced, share of %zu\n", one.list, list.given,
                list.cases.size(), parts.share.size());
    expect_to_cover(parts, list.cases, features);
    if (list.name == "documented") {
      EXPECT_EQ(list.given, 3 * tools::documented_configurations().size());
    }
    if (list.has_documented) {
      std::set<std::string> names, names_of_share;
      for (const Case& next : list.cases) names.insert(documented_name(next));
      for (const std::size_t i : parts.share) names_of_share.insert(documented_name(list.cases[i]));
      EXPECT_EQ(names_of_share, names) << "a documented configuration is not in the share";
    }
    cases += list.cases.size();
    share += parts.share.size();
    for (const Case& next : list.cases) {
      convolutions.insert(to_string(next.plan->spec));
      EXPECT_EQ(next.plan->target.execution, Execution::host) << next.name;
    }
    for (const std::size_t i : parts.share) {
      const codegen::ConvPlan& plan = *list.cases[i].plan;
      of_share.insert(to_string(plan.spec));
      ++families[std::string(codegen::to_string(plan.family()))];
      ++operations[std::string(to_string(plan.spec.operation))];
      ++architectures[plan.target.arch()];
      ++types[fmt::format("{} {} {}", to_string(plan.spec.dtype), to_string(plan.spec.input_layout),
                          to_string(plan.spec.output_layout))];
      ++activations[std::string(to_string(plan.spec.epilogue.activation))];
    }
  }
  std::printf("host suite: %zu cases, %zu different convolutions; share of %zu cases, %zu different convolutions\n",
              cases, convolutions.size(), share, of_share.size());
  EXPECT_GE(convolutions.size(), kPromised);
  EXPECT_GE(of_share.size(), kPromisedShare);
  const auto expect_each = [](const std::map<std::string, std::size_t>& counts, std::size_t kinds, std::size_t least) {
    EXPECT_EQ(counts.size(), kinds);
    for (const auto& [name, count] : counts) EXPECT_GE(count, least) << name;
  };
  expect_each(families, codegen::competing_families().size() + 1, 10);  // and the fallback
  expect_each(operations, 3, 20);
  expect_each(types, 12, 10);
  expect_each(architectures, 3, 100);
  expect_each(activations, 10, 10);
}

TEST(WithFewerChannels, KeepsRemaindersAndSmallConvolutions) {
  const auto reduced = [](const char* text) { return to_string(with_fewer_channels(parse_spec(text))); };
  const auto same = [](const char* text) { return to_string(parse_spec(text)); };
  EXPECT_EQ(reduced("input=1,64,9,9 weight=64,64,1,1"), same("input=1,64,9,9 weight=64,64,1,1"));
  EXPECT_EQ(reduced("input=1,2048,7,7 weight=1000,2048,1,1"), same("input=1,64,7,7 weight=40,64,1,1"));
  EXPECT_EQ(reduced("input=1,515,7,7 weight=514,515,3,3"), same("input=1,3,7,7 weight=34,3,3,3"));
  EXPECT_EQ(reduced("input=1,513,7,7 weight=513,1,3,3 groups=513"), same("input=1,9,7,7 weight=9,1,3,3 groups=9"));
  EXPECT_EQ(reduced("input=1,1024,7,7 weight=2048,32,3,3 groups=32"),
            same("input=1,128,7,7 weight=256,32,3,3 groups=4"));
}

}  // namespace
}  // namespace jitconv::test
