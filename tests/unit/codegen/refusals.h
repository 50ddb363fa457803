// Why a family computes no plan of a convolution, in its own words, for tests that compare them.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "codegen/plan.h"
#include "codegen/problem.h"

namespace jitconv::test {

/// A change of a convolution that a family could compute, and what stands in the way then.
struct Obstacle {
  const char *change, *words;
};

/// What the plan's notes say of `topic`; empty if nothing.
inline std::string note_of(std::string_view topic, const std::string& spec, const char* arch = "sm_90a") {
  std::string text;
  for (const codegen::Note& note : codegen::make_plan(parse_spec(spec), parse_target(arch)).notes)
    if (note.topic == topic) text += note.text;
  return text;
}

/// Why a family has no candidates on sm_90a. It must have none.
inline std::string why_not(codegen::Family family, const std::string& spec) {
  std::string why;
  const codegen::Problem problem = codegen::lower(codegen::canonical(parse_spec(spec)));
  EXPECT_TRUE(codegen::candidates_of(family, problem, parse_target("sm_90a"), why).empty()) << spec;
  return why;
}

}  // namespace jitconv::test
