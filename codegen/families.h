// The table of kernel families: families that convolve, and passes before and behind them. families.cpp alone names
// what each one can do; Family, the variant and that table are what a new one is added to.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "codegen/activation_gradient/tiling.h"
#include "codegen/bias_gradient/tiling.h"
#include "codegen/cost.h"
#include "codegen/depthwise/tiling.h"
#include "codegen/depthwise_nhwc/tiling.h"
#include "codegen/depthwise_planes/tiling.h"
#include "codegen/direct/tiling.h"
#include "codegen/fallback/tiling.h"
#include "codegen/find_range/tiling.h"
#include "codegen/gather_patches/tiling.h"
#include "codegen/output_tiles.h"
#include "codegen/pack_pixels/tiling.h"
#include "codegen/pack_weights/tiling.h"
#include "codegen/pointwise/tiling.h"
#include "codegen/problem.h"
#include "codegen/reduce/tiling.h"
#include "codegen/transpose_input/tiling.h"
#include "codegen/transpose_weights/tiling.h"
#include "codegen/wgmma/tiling.h"
#include "codegen/wgmma_rows/tiling.h"
#include "codegen/wgrad/tiling.h"
#include "codegen/wgrad_depthwise/tiling.h"
#include "codegen/wgrad_wgmma/tiling.h"
#include "jitconv/target.h"

namespace jitconv::codegen {

struct ConvPlan;
struct Costs;
struct KernelPlan;
struct KernelText;

enum class Family : std::uint8_t {
  none,
  pointwise,
  wgmma,
  wgmma_rows,
  depthwise,
  depthwise_nhwc,
  depthwise_planes,
  direct,
  wgrad_wgmma,
  wgrad_depthwise,
  wgrad,
  fallback,
  activation_gradient,
  bias_gradient,
  find_weight_range,
  pack_weights,
  transpose_weights,
  find_input_range,
  transpose_input,
  gather_patches,
  pack_pixels,
  reduce,
};
std::string_view to_string(Family family);

/// What a kernel of a family decides. A tiling's place in the variant is its family.
using Tiling =
    std::variant<std::monostate, PointwiseTiling, WgmmaTiling, WgmmaRowsTiling, DepthwiseTiling, DepthwiseNhwcTiling,
                 DepthwisePlanesTiling, DirectTiling, WgradWgmmaTiling, WgradDepthwiseTiling, WgradTiling,
                 FallbackTiling, ActivationGradientTiling, BiasGradientTiling, FindWeightRangeTiling, PackWeightsTiling,
                 TransposeWeightsTiling, FindInputRangeTiling, TransposeInputTiling, GatherPatchesTiling,
                 PackPixelsTiling, ReduceTiling>;
inline Family family_of(const Tiling& tiling) { return static_cast<Family>(tiling.index()); }

/// A way to compute a problem and its price. Thousands are looked at for one plan, so it holds no more than that.
struct Candidate {
  Tiling tiling;
  Launch launch;
  std::int64_t cost = 0;  ///< picoseconds
};

/// What a family enumerates to: all of its candidates, or only the cheapest, the first of those that cost the same.
class CandidateList {
 public:
  enum class Keep : std::uint8_t { all, cheapest };
  CandidateList(Keep keep, const Costs& costs) : keep_(keep), costs_(costs) {}
  Keep keep() const { return keep_; }
  /// What candidates are priced with.
  const Costs& costs() const { return costs_; }
  template <typename FamilyTiling>
  void add(const FamilyTiling& tiling, const Launch& launch, std::int64_t cost) {
    if (keep_ == Keep::cheapest && !candidates_.empty()) {
      if (cost < candidates_.front().cost) candidates_.front() = {tiling, launch, cost};
      return;
    }
    candidates_.push_back({tiling, launch, cost});
  }
  /// The same of what a block does, priced by the model of cost.h and `more`; nothing if no SM has room for a block.
  template <typename FamilyTiling>
  void add(const FamilyTiling& tiling, const BlockWork& work, const Target& target, std::int64_t more = 0) {
    if (work.blocks > INT32_MAX || resident_blocks(work, target) == 0) return;
    add(tiling, launch_of(work, target), price_of(work, target) + more);
  }
  bool empty() const { return candidates_.empty(); }
  std::vector<Candidate>& candidates() { return candidates_; }

 private:
  std::int64_t price_of(const BlockWork& work, const Target& target) const;

  Keep keep_;
  const Costs& costs_;
  std::vector<Candidate> candidates_;
};

struct FamilyFunctions {
  std::string_view name;
  /// Multiplies on tensor cores, which a compiler may spoil.
  bool uses_tensor_cores = false;
  /// Reads weights in whatever order and of whatever strides, so that no pass needs to make them dense.
  bool reads_any_weight = false;
  /// The same of data gradients with a stride, which it computes as they are and not as one dense convolution.
  bool takes_strided_gradients = false;
  /// Packs weights in whatever order they are, or can, and its prices have that pass. To the prices of others that need
  /// dense weights, the planner adds the pass that makes them dense.
  bool prices_packing = false;
  /// Whether a kernel of this tiling reads the weights as they were asked for: Problem::asked_weight. May be null:
  /// none.
  bool (*reads_asked_weight)(const Tiling& tiling) = nullptr;
  /// Whether a kernel of this tiling stores the pixels of a strided data gradient (pixel_storing_problem()), and does
  /// not leave them to the pass that interleaves sums. The family is asked for candidates of either kind, unless null:
  /// none.
  bool (*stores_pixels)(const Tiling& tiling) = nullptr;
  /// Groups of what is asked for that a group of a kernel of this tiling is made of (join_groups()). May be null: each
  /// is one.
  std::int64_t (*joins_groups)(const Tiling& tiling) = nullptr;
  /// Whether a kernel of this tiling waits for the kernel before it where it first reads weights that one makes. May be
  /// null: none.
  bool (*awaits_weights)(const Tiling& tiling) = nullptr;
  /// What kernels' names say of a tiling that multiplies floats as sums of two numbers, "tf32x3" or "f16x3"; empty of
  /// others. May be null: none does.
  std::string_view (*split_products)(const Tiling& tiling) = nullptr;
  /// What becomes of a price of its own where a family of tensor cores computes the problem, too; null: nothing.
  std::int64_t (*price_beside_tensor_cores)(const Problem& problem, const Costs& costs, std::int64_t price) = nullptr;
  /// Adds candidates in a fixed order; none if the family cannot compute the problem, and then the result says which
  /// limit. Null for passes.
  std::string (*enumerate)(const Problem& problem, const Target& target, CandidateList& into) = nullptr;
  /// Adds the kernels before and behind the only one of the plan, and scratch; may be null.
  void (*add_passes)(ConvPlan& plan) = nullptr;
  /// Whether some element offset that the kernel forms does not fit 32 bits; null if those inside the tensors decide.
  bool (*needs_wide_index)(const Problem& problem, const Tiling& tiling) = nullptr;
  /// The kernel's text and parameters.
  KernelText (*emit)(const KernelPlan& kernel, std::string_view name) = nullptr;
  /// Lines `name: value` for people.
  std::string (*describe)(const KernelPlan& kernel) = nullptr;
  /// Kernels with equal bodies are the same machine code but for sizes: the compiler treats them alike. Null where
  /// nobody asks: for passes and kernels without tensor cores.
  std::vector<int> (*body)(const KernelPlan& kernel) = nullptr;
  /// Multiply-adds that a launch executes, those of outputs beyond the edge included; null for passes.
  std::int64_t (*multiply_adds)(const KernelPlan& kernel) = nullptr;
  /// How the kernel's outputs are cut into tiles; null for passes and where sums run over pixels (SumsPixels).
  OutputTiles (*output_tiles)(const KernelPlan& kernel) = nullptr;
  /// Whether kernels of one tiling for a problem and for fewer rows of it are the same text, sizes apart. May be null:
  /// they are.
  bool (*keeps_kernel)(const KernelPlan& full, const KernelPlan& fewer_rows) = nullptr;
  /// Makes tiles shorter that are only as long as lets SMs share the work, where the kernel stays the same. May be
  /// null.
  void (*shorten_tiles)(KernelPlan& kernel) = nullptr;
};

const FamilyFunctions& functions_of(Family family);
inline bool uses_tensor_cores(Family family) { return functions_of(family).uses_tensor_cores; }
/// Computes `asked` as it is, whatever the weight's strides; others get a dense convolution in its place.
inline bool computes_as_asked(Family family, const Problem& asked) {
  const FamilyFunctions& functions = functions_of(family);
  return functions.reads_any_weight || (functions.takes_strided_gradients && asked.is_upsampled());
}
/// Makes packed weights, which a caller may bring in its place.
inline bool packs_weights(Family family) {
  return family == Family::find_weight_range || family == Family::pack_weights || family == Family::transpose_weights;
}

/// All candidates of a family; `why` says which limit leaves none.
std::vector<Candidate> candidates_of(Family family, const Problem& problem, const Target& target, std::string& why);

/// Computes what none of the competing families can.
inline constexpr Family kLastResort = Family::fallback;

/// The families whose candidates compete, in the order in which equal costs are decided.
std::span<const Family> competing_families();

}  // namespace jitconv::codegen
