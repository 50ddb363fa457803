// The table of kernel families. Nothing else names what a family can do.
#include "codegen/families.h"

#include <array>
#include <utility>

#include "codegen/activation_gradient/pass.h"
#include "codegen/bias_gradient/pass.h"
#include "codegen/costs/costs.h"
#include "codegen/depthwise/family.h"
#include "codegen/depthwise_nhwc/family.h"
#include "codegen/depthwise_planes/family.h"
#include "codegen/direct/family.h"
#include "codegen/fallback/family.h"
#include "codegen/find_range/pass.h"
#include "codegen/gather_patches/pass.h"
#include "codegen/pack_pixels/pass.h"
#include "codegen/pack_weights/pass.h"
#include "codegen/pointwise/family.h"
#include "codegen/reduce/pass.h"
#include "codegen/transpose_input/pass.h"
#include "codegen/transpose_weights/pass.h"
#include "codegen/wgmma/family.h"
#include "codegen/wgmma_rows/family.h"
#include "codegen/wgrad/family.h"
#include "codegen/wgrad_depthwise/family.h"
#include "codegen/wgrad_wgmma/family.h"

namespace jitconv::codegen {
namespace {

const auto& table() {
  // By the values of Family, as tilings are in the variant.
  static const std::array<FamilyFunctions, std::variant_size_v<Tiling>> rows = {{
      {.name = "none"},
      pointwise_family(),
      wgmma_family(),
      wgmma_rows_family(),
      depthwise_family(),
      depthwise_nhwc_family(),
      depthwise_planes_family(),
      direct_family(),
      wgrad_wgmma_family(),
      wgrad_depthwise_family(),
      wgrad_family(),
      fallback_family(),
      activation_gradient_pass(),
      bias_gradient_pass(),
      find_weight_range_pass(),
      pack_weights_pass(),
      transpose_weights_pass(),
      find_input_range_pass(),
      transpose_input_pass(),
      gather_patches_pass(),
      pack_pixels_pass(),
      reduce_pass(),
  }};
  return rows;
}

static_assert(std::variant_size_v<Tiling> == static_cast<std::size_t>(Family::reduce) + 1,
              "a tiling's place in the variant is its family");

}  // namespace

std::string_view to_string(Family family) { return functions_of(family).name; }

std::int64_t CandidateList::price_of(const BlockWork& work, const Target& target) const {
  return price(work, target, costs_.fma);
}

const FamilyFunctions& functions_of(Family family) { return table().at(static_cast<std::size_t>(family)); }

std::vector<Candidate> candidates_of(Family family, const Problem& problem, const Target& target, std::string& why) {
  CandidateList list(CandidateList::Keep::all, costs_of(target));
  why = functions_of(family).enumerate(problem, target, list);
  return std::move(list.candidates());
}

std::span<const Family> competing_families() {
  // Never destroyed: objects that are may compile.
  static constexpr std::array families = {
      Family::pointwise,        Family::wgmma,  Family::wgmma_rows,  Family::depthwise,       Family::depthwise_nhwc,
      Family::depthwise_planes, Family::direct, Family::wgrad_wgmma, Family::wgrad_depthwise, Family::wgrad};
  return families;
}

}  // namespace jitconv::codegen
