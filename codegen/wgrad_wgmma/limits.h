// What the wgrad_wgmma family cannot compute, and by which other problem it computes groups of few output channels.
#pragma once

#include <string>

#include "codegen/problem.h"
#include "codegen/wgrad_wgmma/tiling.h"
#include "jitconv/target.h"

namespace jitconv::codegen::wgrad_wgmma {

constexpr int kMostColumns = 256;  // of an instruction
/// Output channels of a group, with fewer of which the rows of an instruction are mostly empty.
constexpr int kFewestRows = 16;

/// Whether channels are so few that filter columns fill up an instruction.
inline bool gathers(const Problem& problem) { return problem.c < 8; }
/// Whether they do. Of one gathered filter row there is one instruction, whose operands in registers ptxas serialises
/// if they are 16-bit pairs (C7513). Its channels are loaded as if there were more.
inline bool joins_columns(const Problem& problem) {
  return gathers(problem) && (problem.rows.taps > 1 || problem.input.type == DataType::f32);
}

/// Why the family does not compute what is asked for; empty if it may.
std::string obstacle(const Problem& asked, const Target& target);

/// The same of the kernel's problem, which has other channels and pixels where operands are exchanged or groups joined.
std::string obstacle_of_tiles(const Problem& problem);

/// As many groups as fill the rows of an instruction, if their sums take no more memory than is reasonable; else 1.
/// Depthwise convolutions of less than four outputs for an input are left to their own family.
int groups_to_join(const Problem& asked);

}  // namespace jitconv::codegen::wgrad_wgmma
