// The lists of convolutions that the GPU suite and the host suite run: the documented configurations, the rows of
// tests/shapes in every type and layout, and the small ones of family_cases.h with every epilogue, alignment and many
// plans. No device here.
#pragma once

#include <string>
#include <vector>

#include "support/family_cases.h"
#include "support/runner.h"

namespace jitconv::test {

/// The documented configurations at full size.
std::vector<Case> documented_cases();

/// Their gradients, of one operation, at full size; and those of the headline cases on tensor cores.
std::vector<Case> documented_gradient_cases(Operation operation);

/// The distinct forward rows of tests/shapes, f32 and NCHW. A row whose tensors exceed `most_bytes` loses images until
/// they do not.
std::vector<Case> shape_cases(std::int64_t most_bytes);

/// The same rows in f16 and bf16, by turns.
std::vector<Case> with_16_bit_types(std::vector<Case> cases);

/// The same rows with NHWC input, output or both, in all three types: nine combinations, by turns.
std::vector<Case> with_nhwc_layouts(std::vector<Case> cases);

/// The family cases in every type with every epilogue: with bias, residual or neither, and with both before each
/// activation. These lists throw std::logic_error if a family has no plan for one of its cases.
std::vector<Case> epilogue_cases(const Target& target);

/// The family cases in every type at every alignment from one element to 256 bytes; and planned freely at one element.
std::vector<Case> alignment_cases(const Target& target);

/// The wgmma, the wgmma_rows and the pointwise family on convolutions that reach every path of them, in every type they
/// take: each with its cheapest plan and about `spread` of the others, every second one on so few blocks that each
/// walks over several tiles. Empty where `target` has no such families.
std::vector<Case> wgmma_cases(const Target& target, std::size_t spread);

/// The shapes of the family cases with the cheapest `first` plans, about `spread` of the others, and the fallback's:
/// what a tuner may run, and what another GPU's model might choose.
std::vector<Case> candidate_cases(const Target& target, std::size_t first, std::size_t spread);

}  // namespace jitconv::test
