// The one text of an epilogue: bias, then residual, then activation, of fp32 sums. Kernels say where they have the
// terms; what they compute of them is written here alone.
#pragma once

#include <string>
#include <string_view>

#include "codegen/families.h"

namespace jitconv::codegen {

/// Definition of activate(), empty for Activation::none.
std::string activation_function(const Epilogue& epilogue, Relu relu = Relu::comparison);

/// Lines that load what the epilogue needs of one output channel.
std::string channel_values(const Epilogue& epilogue, std::string_view channel);

/// Element `offset` of the residual as a float.
std::string residual_at(std::string_view offset);

/// Where a kernel has what an epilogue computes with: expressions of floats.
struct EpilogueTerms {
  std::string value = "value";  ///< a sum, which becomes what is stored
  std::string bias = "channel_bias";
  std::string residual = {};
  std::string bias_condition = {}, residual_condition = {};  ///< whether there is the term; empty: always
};

/// Lines that apply an epilogue to a sum.
std::string epilogue_lines(const Epilogue& epilogue, const EpilogueTerms& terms = {});

/// The parts of an epilogue in a kernel that stages its outputs in shared memory: what is done before, where a thread
/// has sums of few channels, and after, where it has an output's neighbours and reads those of the residual.
struct StagedEpilogue {
  Epilogue before, after;
};
/// `sums_are_whole`: nothing more is added to what is staged, but a residual.
StagedEpilogue staged_epilogue(const Epilogue& epilogue, bool sums_are_whole);

}  // namespace jitconv::codegen
