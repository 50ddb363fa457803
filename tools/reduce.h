// Makes a convolution small enough to run on a CPU in a moment and keeps its kernel: N, H and W shrink by whole tiles,
// everything else stays, and the tiling is the one chosen for the full size. Decides shapes; runs nothing.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "codegen/plan.h"

namespace jitconv::tools {

struct WorkLimits {
  std::int64_t as_given = 0;  ///< multiply-adds up to which a convolution is left alone
  std::int64_t most = 0;      ///< multiply-adds of a reduced one, unless its smallest shape needs more
};

struct Reduction {
  codegen::ConvPlan plan;  ///< of the smaller convolution, plan.spec
  bool reduced = false;    ///< plan.spec is smaller than what was asked for
  /// How many tiles the result has along N (planes if depthwise), rows and columns; dw has splits of the pixels, tiles
  /// along K and tiles along C/groups*R*S.
  std::array<std::int64_t, 3> tiles{};
  std::int64_t multiply_adds = 0;  ///< that its blocks execute
  std::string note;                ///< what of the full size the smaller one does not show; empty if nothing
};

/// The smaller convolution has at least two tiles along N, P and Q where the full one has, a tile that no padding
/// touches where it has one, and a last tile that is as ragged; as much of that as limits.most allows. The rows and
/// columns of a data gradient are those of dx. Of a weight gradient, which is cut into tiles of dw, pixels are taken
/// away, and what is left is summed in two splits. Throws SpecError as make_plan() does.
Reduction reduce(const ConvSpec& spec, const Target& target, const WorkLimits& limits);

/// Multiply-adds that a launch executes, those of outputs beyond the edge of y included: tiles are computed whole.
std::int64_t executed_multiply_adds(const codegen::ConvPlan& plan);

/// Multiply-adds of the operation itself, as codegen::Work counts them: N*K*P*Q * C/groups*R*S, or N*C*H*W *
/// K/groups*R*S for a data gradient with stride 1.
std::int64_t multiply_adds(const ConvSpec& spec);

}  // namespace jitconv::tools
