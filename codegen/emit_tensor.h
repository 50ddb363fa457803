// Parts of the tensor family's text, which emit_tensor.cpp puts together: kernels that pack weights
// (emit_tensor_pack.cpp) or transpose pixels (emit_tensor_transpose.cpp); the loading warps (emit_tensor_load.cpp); the
// multiplying warpgroups (emit_tensor_multiply.cpp); and the store (emit_tensor_store.cpp, ..._nhwc.cpp,
// ..._boxes.cpp), from accumulators to y, or to partial sums and on to y.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "codegen/emitter.h"
#include "codegen/plan.h"
#include "codegen/source.h"
#include "codegen/template_text.h"

namespace jitconv::codegen {

/// A device file of a multiplication, "device/multiply_tf32.cuh" or its like, of `columns` columns.
std::string multiply_text(std::string_view file, int columns);

/// Words for a tile's place and its steps, which several parts use.
struct StepText {
  std::string tile_number;           ///< what makes a block's number a tile's
  std::string steps;                 ///< lines that find the first step and the end of a split
  std::string first_step, end_step;  ///< of a tile
  std::string chunk, filter_row;     ///< of a step: its chunk of channels, its first filter row
  std::string run_first;             ///< where a run starts: an output, a position or an image
  std::string run_row;               ///< what it counts of a row
};
StepText step_text(const TensorTiling& tiling);

/// The line that gives a warpgroup `wanted` registers, if it has not.
std::string move_registers(int wanted, std::string_view name);

/// Holes of tensor.cu.in that concern the multiplying warpgroups.
Holes tensor_multiply_holes(const ConvPlan& plan, const TensorTiling& tiling);

/// How weights come to registers as they lie in w, and which channels meet there.
std::string emit_tensor_raw_weights(const ConvSpec& spec, const TensorTiling& tiling);

/// Holes of tensor.cu.in that concern the loading warps, and constants.
Holes tensor_load_holes(const ConvPlan& plan, const TensorTiling& tiling);
void add_tensor_load_constants(Constants& constants, const ConvPlan& plan, const TensorTiling& tiling);

/// The kernel that packs the weights: its launch, its constants and its text. `kernel` is the convolution's name.
KernelEntry tensor_pack_entry(std::string_view kernel, const ConvSpec& spec, const TensorTiling& tiling);
void add_tensor_pack_constants(Constants& constants, const ConvSpec& spec, const TensorTiling& tiling);
std::string emit_tensor_pack(std::string_view kernel, const ConvSpec& spec, const TensorTiling& tiling);

/// The kernel that transposes pixels of `source`, the convolution that was asked for; `spec` is what is convolved.
KernelEntry tensor_transpose_entry(std::string_view kernel, const ConvSpec& spec, const TensorTiling& tiling);
void add_tensor_transpose_constants(Constants& constants, const ConvSpec& spec, const ConvSpec& source);
std::string emit_tensor_transpose(std::string_view kernel, const TensorTiling& tiling);

/// Holes of tensor.cu.in that concern the store.
Holes tensor_store_holes(const ConvPlan& plan, const TensorTiling& tiling);

/// The same for NHWC output; `channel_values` loads what a thread needs of its channels.
Holes tensor_store_nhwc_holes(const ConvPlan& plan, const TensorTiling& tiling, const std::string& channel_values);

/// The same if the copy engine stores boxes of y, and y as it sees it.
Holes tensor_store_boxes_holes(const ConvSpec& spec, const TensorTiling& tiling, const std::string& channel_values);
TensorMapShape output_map(const ConvSpec& spec, const TensorTiling& tiling);

/// Lines that stage 16-bit outputs of a consumer, [position][channel]: a lane writes 16 bytes at `place`.
std::string tensor_stage_transposed(const ConvSpec& spec, const TensorTiling& tiling, const std::string& place);

/// The line that waits until a warp's part of the staging can be written again, if the copy engine reads there.
std::string await_staging(const ConvSpec& spec, const TensorTiling& tiling);

/// Where a tile's outputs go: y, or the sums of its split.
std::string where_stored(const TensorTiling& tiling);

/// Lines of the epilogue of a sum on its way to where it is staged. What a residual is added to is not activated yet,
/// and sums of splits get theirs when they are added.
std::string epilogue_of_staged(const ConvSpec& spec, const TensorTiling& tiling);

/// Lines that divide a position of a run of whole images: `image`, `row` and `column`.
std::string place_in_images(std::string_view position);

/// Constants of the store, part of the block's.
void add_tensor_store_constants(Constants& constants, const ConvPlan& plan, const TensorTiling& tiling);
void add_tensor_store_nhwc_constants(Constants& constants, const ConvPlan& plan, const TensorTiling& tiling);
void add_tensor_store_boxes_constants(Constants& constants, const ConvSpec& spec, const TensorTiling& tiling);

}  // namespace jitconv::codegen
