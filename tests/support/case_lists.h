// The lists of convolutions that the GPU suite and the host suite run: the documented configurations, the rows of
// tests/shapes in every type and layout, and a handful of small ones chosen so that they reach every part of every
// kernel family, with every epilogue, alignment and many plans. No device here.
#pragma once

#include <string>
#include <vector>

#include "support/runner.h"

namespace jitconv::test {

/// The documented configurations at full size.
std::vector<Case> documented_cases();

/// The distinct forward rows of tests/shapes, f32 and NCHW. A row whose tensors exceed `most_bytes` loses images until
/// they do not.
std::vector<Case> shape_cases(std::int64_t most_bytes);

/// The same rows in f16 and bf16, by turns.
std::vector<Case> with_16_bit_types(std::vector<Case> cases);

/// The same rows with NHWC input, output or both, in all three types: nine combinations, by turns.
std::vector<Case> with_nhwc_layouts(std::vector<Case> cases);

/// A small convolution and the plan that it is run with: between them every family, every store and both orders of
/// every layout.
struct FamilyCase {
  std::string name;  ///< "depthwise, flat store"
  ConvSpec spec;     ///< f32
  codegen::Family family = codegen::Family::none;
  /// Of the depthwise family: the store; otherwise unused.
  codegen::DepthwiseTiling::Store store = codegen::DepthwiseTiling::Store::flat;
  bool split = false;  ///< of the tensor and the pointwise family: the reduction is split over several blocks
  /// Of the tensor family: weights come as they lie in w; a kernel before packs pixels.
  bool raw_weights = false, packs_pixels = false;
  bool walks_pixels = false;  ///< of the tensor family: the copy engine walks over pixels of NHWC tensors
  /// Of the tensor family: the copy engine brings pixels as boxes of x.
  bool boxes = false;
  codegen::TensorTiling::Share share = codegen::TensorTiling::Share::tile;  ///< of the tensor family
};
/// Those that `target` has a family for: all but those of tensor cores, which come last, on most.
std::vector<FamilyCase> family_cases(const Target& target);

/// Of tensors that the case's family takes.
std::vector<DataType> types_of(const FamilyCase& family);

/// The cheapest plan of the case's family and store for `spec`, which is the case's spec with other types, alignment or
/// epilogue; empty if that family has none.
std::optional<codegen::ConvPlan> plan_for(const FamilyCase& wanted, const ConvSpec& spec, const Target& target);

/// The family cases in every type with every epilogue: with bias, residual or neither, and with both before each
/// activation. These lists throw std::logic_error if a family has no plan for one of its cases.
std::vector<Case> epilogue_cases(const Target& target);

/// The family cases in every type at every alignment from one element to 256 bytes; and planned freely at one element.
std::vector<Case> alignment_cases(const Target& target);

/// The tensor and the pointwise family on convolutions that reach every path of them, in every type they take: each
/// with its cheapest plan and about `spread` of the others, every second one on so few blocks that each walks over
/// several tiles. Empty where `target` has no such families.
std::vector<Case> tensor_cases(const Target& target, std::size_t spread);

/// The shapes of the family cases with the cheapest `first` plans, about `spread` of the others, and the fallback's:
/// what a tuner may run, and what another GPU's model might choose.
std::vector<Case> candidate_cases(const Target& target, std::size_t first, std::size_t spread);

}  // namespace jitconv::test
