// What wgmma and wgmma_rows share of a store of runs: a warp's rows of sums are channels, which it stages in shared
// memory and, to NCHW, reads again as vectors of neighbouring outputs.
#pragma once

#include <string>
#include <string_view>

#include "codegen/text/epilogue.h"

namespace jitconv::codegen {

/// Lines that load the bias of a thread's two channels, long before it is needed. `first_channel` is the first of a
/// warpgroup's in its group: empty or ending in " + ". `bias_index` is that of channel k of the group.
std::string bias_of_rows(std::string_view first_channel, std::string_view bias_index);
/// The same where a warp's rows are kWarpK channels at several filter columns.
std::string bias_of_folded_rows(std::string_view group_first);

/// Where a lane's sums of a filter column are staged, if not as far apart as they are in the product.
struct FoldedPlaces {
  std::string find_output = "const int output = column;";
  std::string stored;  ///< a condition; empty: all of them are
};
/// Lines that stage a lane's sums of a filter column.
std::string stage_folded_sums(const Epilogue& before, const FoldedPlaces& places);

/// Functions that read staged floats; `adds_rows`: several rows of the staging are sums of one channel.
std::string read_staged_functions(bool adds_rows);
/// Lines that read a vector of staged outputs from `source` into `value`.
std::string read_staged_vector(bool adds_rows);

/// Lines that apply an epilogue to a vector `value` of outputs, of which output e is in y, and in the residual, at
/// `offset`, if `condition`.
std::string vector_epilogue(const Epilogue& after, std::string_view condition, std::string_view offset);

}  // namespace jitconv::codegen
