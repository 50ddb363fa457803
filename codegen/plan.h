// ConvPlan: every number the generator prints, decided before a line of CUDA is written. Plain values with == and a
// printer; no CUDA, no I/O. Plans come from make_plan(), which prices candidates with the cost model of heuristics.h.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "codegen/tensor_tiling.h"
#include "codegen/tiling.h"
#include "jitconv/spec.h"
#include "jitconv/target.h"

namespace jitconv::codegen {

enum class Family : std::uint8_t { none, pointwise, tensor, direct, depthwise, fallback };
std::string_view to_string(Family family);
/// Whether the family multiplies on tensor cores, which a compiler may spoil.
constexpr bool uses_tensor_cores(Family family) { return family == Family::pointwise || family == Family::tensor; }

/// Why a family, or a property of the chosen plan, is as it is; for explain().
struct Note {
  std::string topic;  ///< a family name, "math", "store", ...
  std::string text;
  bool operator==(const Note&) const = default;
};

/// Sizes of the workspace's parts in bytes, each a multiple of 256, in the order in which they lie in it.
struct Workspace {
  std::int64_t packed_weights = 0, partial_sums = 0, packed_pixels = 0;
  std::int64_t bytes() const { return packed_weights + bytes_with_packed_weights(); }
  std::int64_t bytes_with_packed_weights() const { return partial_sums + packed_pixels; }  ///< the caller's
  bool operator==(const Workspace&) const = default;
};

using Tiling =
    std::variant<std::monostate, PointwiseTiling, TensorTiling, DirectTiling, DepthwiseTiling, FallbackTiling>;
Workspace workspace_of(const Tiling& tiling, const ConvSpec& spec);

struct ConvPlan {
  ConvSpec spec;  ///< canonical: see canonical()
  Target target;
  Family family = Family::none;
  Tiling tiling;
  std::uint32_t blocks = 0;   ///< grid size; flattened into x
  std::uint32_t threads = 0;  ///< per block
  std::uint32_t shared_bytes = 0;
  int min_blocks_per_sm = 1;  ///< second argument of __launch_bounds__
  bool wide_index = false;    ///< element offsets need 64 bits; proved per candidate
  Workspace workspace;
  std::int64_t cost = 0;  ///< modelled time in picoseconds; only its order matters
  std::vector<Note> notes;
  bool operator==(const ConvPlan&) const = default;
};

/// The spec with fields that cannot matter set to one value (dilation of a 1-tap axis, slope without leaky ReLU ...),
/// so that specs that need the same kernel share one.
ConvSpec canonical(const ConvSpec& spec);

/// Validates, canonicalises and chooses. Throws SpecError.
ConvPlan make_plan(const ConvSpec& spec, const Target& target);

/// All candidates the model looked at, its choice and then the others, cheapest first, at most `limit`: what tuning
/// measures.
std::vector<ConvPlan> enumerate_plans(const ConvSpec& spec, const Target& target, std::size_t limit);

/// Several lines, `name: value`.
std::string to_string(const ConvPlan& plan);

/// FLOP = 2 * N*K*P*Q * (C/groups)*R*S, and the bytes of x, w, bias, residual and y, each counted once.
struct Work {
  double flop = 0, bytes = 0;
};
Work work(const ConvSpec& spec);

}  // namespace jitconv::codegen
