// A handful of small convolutions chosen so that they reach every part of every kernel family, and the plans that they
// are run with. No device here.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "codegen/plan.h"

namespace jitconv::test {

/// A small convolution and the plan that it is run with: between them every family, every store and both orders of
/// every layout.
struct FamilyCase {
  std::string name;  ///< "depthwise, flat store"
  ConvSpec spec;     ///< f32
  codegen::Family family = codegen::Family::none;
  /// The depthwise family's store; other families do not use it.
  codegen::DepthwiseTiling::Store store = codegen::DepthwiseTiling::Store::flat;
  bool split = false;  ///< of the wgmma and the pointwise family: the reduction is split over several blocks
  /// wgmma: weights come as they lie in w.
  bool unpacked_weights = false;
  /// wgmma: TMA brings pixels of NHWC tensors, or of NCHW tensors transposed before, in im2col mode.
  bool im2col = false;
  bool planes = false;  ///< TMA brings boxes of NCHW planes, an MN-major operand
  /// wgmma: TMA brings pixels as boxes of x.
  bool boxes = false;
  bool folded = false;  ///< of the wgmma and the wgmma_rows family: rows are groups of channels, one for each of some
                        ///< filter columns
  bool adds_residual = true;                                                              ///< the kernel can
  codegen::WgmmaTiling::Schedule schedule = codegen::WgmmaTiling::Schedule::cooperative;  ///< of the wgmma family
};

/// Whether `target` has the family of tensor cores.
bool has_wgmma_family(const Target& target);

/// Those that `target` has a family for: all but those of tensor cores, which come last, on most.
std::vector<FamilyCase> family_cases(const Target& target);

/// Types of tensors that the case's family takes.
std::vector<DataType> types_of(const FamilyCase& family);

/// The fallback's plan, which the planner makes only where no other family can.
codegen::ConvPlan fallback_plan(const ConvSpec& spec, const Target& target);

/// The cheapest plan of the case's family and store for `spec`, which is the case's spec with other types, alignment or
/// epilogue; empty if that family has none.
std::optional<codegen::ConvPlan> plan_for(const FamilyCase& wanted, const ConvSpec& spec, const Target& target);

/// The same where there must be one: throws std::logic_error if there is none.
codegen::ConvPlan require_plan_for(const FamilyCase& wanted, const ConvSpec& spec, const Target& target);

}  // namespace jitconv::test
