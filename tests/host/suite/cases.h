// What the host suite runs: every convolution small enough for a CPU, with the plan of the full-size one wherever its
// tiling fits. Lists are cut into shards, each a test of its own, so that ctest runs them on all cores.
#pragma once

#include <string>
#include <vector>

#include "support/runner.h"

namespace jitconv::test {

/// Convolutions of one origin.
struct HostList {
  std::string name;
  std::vector<Case> cases;      ///< distinct; each with a plan, which says for which architecture
  std::size_t given = 0;        ///< before convolutions that became the same were dropped
  bool has_documented = false;  ///< cases are documented configurations, each of which the share has
};

/// The name of the documented configuration that the case is made of.
std::string documented_name(const Case& of_documented);

/// The names of all lists, in order.
const std::vector<std::string>& host_list_names();

/// Makes one list. Takes a second or two for the longest.
HostList host_list(const std::string& name);

/// The spec with fewer channels and groups if it has many: what is left has the same remainders by 32, and groups by 8
/// or 2, so channel tiles stay as ragged and vectors as aligned as they were.
ConvSpec with_fewer_channels(const ConvSpec& spec);

}  // namespace jitconv::test
