// The host suite: every kernel family on the CPU, through thousands of convolutions of every type, layout, epilogue,
// alignment and architecture, checked while they run and judged as on a GPU: integer data bit for bit, real data within
// the derived bound, redzones, no finding. See cases.h for what runs.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <set>

#include "host/suite/cases.h"
#include "host/suite/launcher.h"
#include "support/fresh_cache.h"
#include "tools/documented.h"

namespace jitconv::test {
namespace {

/// Different convolutions (shape, type, layout, epilogue) that the suite promises to run, whatever the plans.
constexpr std::size_t kPromised = 2000;

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define JITCONV_SANITIZED
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define JITCONV_SANITIZED
#endif
/// Sanitizers make execution ten times slower and look at the engine, not at the kernels: one case in ten will do.
#if defined(JITCONV_SANITIZED)
constexpr std::size_t kEvery = 10;
#else
constexpr std::size_t kEvery = 1;
#endif

struct Shards {
  const char* list;
  std::size_t count;   ///< tests it is cut into: one to three minutes each
  std::size_t fewest;  ///< cases of the whole list
};

constexpr Shards kShards[] = {{"documented", 2, 80},   {"shapes f32", 4, 850}, {"shapes 16 bits", 3, 580},
                              {"shapes nhwc", 3, 580}, {"epilogues", 2, 230},  {"alignments", 2, 240},
                              {"candidates", 2, 280},  {"random", 1, 390},     {"tensor", 4, 1000}};

struct Shard {
  std::string list;
  std::size_t index = 0, count = 1, fewest = 0;
};

std::vector<Shard> all_shards() {
  std::vector<Shard> shards;
  for (const Shards& one : kShards)
    for (std::size_t i = 0; i < one.count; ++i) shards.push_back({one.list, i, one.count, one.fewest});
  return shards;
}

void PrintTo(const Shard& shard, std::ostream* stream) {
  *stream << shard.list << " " << shard.index + 1 << "/" << shard.count;
}

std::string test_name(const ::testing::TestParamInfo<Shard>& info) {
  std::string name = info.param.list;
  std::replace(name.begin(), name.end(), ' ', '_');
  return fmt::format("{}_{}_of_{}", name, info.param.index + 1, info.param.count);
}

class HostSuite : public ::testing::TestWithParam<Shard> {};

TEST_P(HostSuite, RunsAndIsRight) {
  const Shard& shard = GetParam();
  HostList list = host_list(shard.list);
  ASSERT_GE(list.cases.size(), shard.fewest);
  std::vector<Case> cases;
  for (std::size_t i = shard.index; i < list.cases.size(); i += shard.count * kEvery)
    cases.push_back(std::move(list.cases[i]));

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
  const Report::Category counts = run_cases(device, shard.list, cases, options);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();

  const HostLauncher::Totals& totals = launcher.totals();
  std::string families;
  for (const auto& [family, count] : counts.families)
    families += fmt::format("{}{} {}", families.empty() ? "" : ", ", count, family);
  const std::string summary = fmt::format(
      "host suite, {} {}/{}: {} cases ({}), {} launches ({} late, {} early), {} outputs compared, {:.3g} multiply-adds "
      "in {:.1f} s ({:.0f} M/s), {:.1f} s in all, {} mismatches, {} findings, worst error {:.2f} of the bound",
      shard.list, shard.index + 1, shard.count, counts.kernels, families, totals.launches, totals.late, totals.early,
      counts.outputs, static_cast<double>(totals.multiply_adds), totals.seconds,
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

INSTANTIATE_TEST_SUITE_P(Shards, HostSuite, ::testing::ValuesIn(all_shards()), test_name);

// What the shards run, all together, is what was promised: each shard sees to it that all of its own is run.
TEST(HostSuiteLists, HoldWhatIsPromised) {
  std::set<std::string> convolutions;
  std::map<std::string, std::size_t> families, types, architectures, activations;
  std::size_t cases = 0;
  ASSERT_EQ(std::size(kShards), host_list_names().size());
  for (const Shards& one : kShards) {
    const HostList list = host_list(one.list);
    EXPECT_GE(list.cases.size(), one.fewest) << one.list;
    std::printf("host suite, %s: %zu given, %zu distinct when reduced\n", one.list, list.given, list.cases.size());
    if (list.name == "documented") {
      EXPECT_EQ(list.given, 3 * tools::documented_configurations().size());
    }
    for (const Case& next : list.cases) {
      ++cases;
      const codegen::ConvPlan& plan = *next.plan;
      convolutions.insert(to_string(plan.spec));
      EXPECT_EQ(plan.target.execution, Execution::host) << next.name;
      ++families[std::string(codegen::to_string(plan.family))];
      ++architectures[plan.target.arch()];
      ++types[fmt::format("{} {} {}", to_string(plan.spec.dtype), to_string(plan.spec.input_layout),
                          to_string(plan.spec.output_layout))];
      ++activations[std::string(to_string(plan.spec.epilogue.activation))];
    }
  }
  std::printf("host suite: %zu cases, %zu different convolutions\n", cases, convolutions.size());
  EXPECT_GE(convolutions.size(), kPromised);
  const auto expect_each = [](const std::map<std::string, std::size_t>& counts, std::size_t kinds, std::size_t least) {
    EXPECT_EQ(counts.size(), kinds);
    for (const auto& [name, count] : counts) EXPECT_GE(count, least) << name;
  };
  expect_each(families, 5, 100);
  expect_each(types, 12, 40);
  expect_each(architectures, 3, 500);
  expect_each(activations, 10, 40);
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
