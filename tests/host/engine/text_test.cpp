// Findings and counters as people read them.
#include <gtest/gtest.h>

#include <set>

#include "host/counters.h"
#include "host/finding.h"

namespace jitconv::host {
namespace {

TEST(FindingText, NamesKernelLineRuleBlockThreadAndAddress) {
  Finding finding{Rule::race, "conv", 12, {3, 0, 1}, 7, "shared + 0x10 (4 bytes)", "load of 4 bytes: thread 3 wrote"};
  EXPECT_EQ(to_string(finding),
            "conv:12: race: block (3, 0, 1) thread 7, shared + 0x10 (4 bytes): load of 4 bytes: thread 3 wrote");
  finding.address.clear();
  finding.line = 0;
  EXPECT_EQ(to_string(finding), "conv:?: race: block (3, 0, 1) thread 7: load of 4 bytes: thread 3 wrote");
}

TEST(FindingText, EveryRuleHasItsOwnName) {
  std::set<std::string> names;
  for (int rule = 0; rule <= static_cast<int>(Rule::overflow); ++rule) names.insert(to_string(static_cast<Rule>(rule)));
  EXPECT_EQ(names.size(), static_cast<std::size_t>(Rule::overflow) + 1);
  EXPECT_EQ(names.count("unknown rule"), 0u);
}

TEST(CounterText, HasALinePerKind) {
  Counters counters;
  counters.global_loads = {2, 10, 256};
  counters.global_stores = {0, 0, 0};
  counters.shared_loads = {3, 9, 4, 384};
  counters.fmas = 12;
  EXPECT_EQ(to_string(counters),
            "global loads: 2 requests, 10 sectors (5.00 a request), 256 bytes, efficiency 0.800\n"
            "global stores: 0 requests, 0 sectors (0.00 a request), 0 bytes, efficiency 1.000\n"
            "shared loads: 3 requests, 9 wavefronts, 5 of them bank conflicts, 384 bytes\n"
            "shared stores: 0 requests, 0 wavefronts, 0 of them bank conflicts, 0 bytes\n"
            "fmas: 12\n");
}

}  // namespace
}  // namespace jitconv::host
