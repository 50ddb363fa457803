// Which cases of a list the host suite always runs: every documented configuration, and of the others those that show
// something new. The rest differs from them in numbers only and waits for `./dev test --full`. Chooses cases; runs
// nothing.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "host/suite/cases.h"
#include "support/runner.h"

namespace jitconv::test {

/// What a case executes, each thing hashed: every statement of its kernels, whatever the numbers in it; every line of
/// its plan, whatever the numbers, with the type; the family with the architecture and the type, with the type and the
/// layouts, with the epilogue, and with the type and the alignment.
std::set<std::uint64_t> features_of(const Case& wanted);

/// A list in two parts.
struct Parts {
  std::vector<std::size_t> share, rest;  ///< indices into the list, ascending
};

/// The share has every feature that a case of the list has (greedily, the case with most new ones first), and
/// spread over the list at least one case in `every`. The same in every run.
Parts split(const std::vector<std::set<std::uint64_t>>& features, std::size_t every);

/// features_of() each case; and the name of the documented configuration, where the list is of these.
std::vector<std::set<std::uint64_t>> features_of(const HostList& list);

}  // namespace jitconv::test
