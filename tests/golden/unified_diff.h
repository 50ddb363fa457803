// A short unified diff of two texts, for test failures that a person reads. Not for patching.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace jitconv::test {

/// "" if the texts are equal; else hunks with three lines of context, cut off after `most_lines`.
std::string unified_diff(std::string_view before, std::string_view after, std::size_t most_lines);

}  // namespace jitconv::test
