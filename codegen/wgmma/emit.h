// Parts of the wgmma family's text, which emit.cpp puts together: the parameters (arguments.cpp), the producer
// (emit_load.cpp), the consumers (emit_multiply.cpp), and the store (emit_store_nchw.cpp, ..._nhwc.cpp, ..._boxes.cpp,
// ...), from accumulators to y, or to partial sums.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "codegen/text/emitter.h"
#include "codegen/text/epilogue.h"
#include "codegen/wgmma/family.h"
#include "codegen/wgmma/geometry.h"

namespace jitconv::codegen {

/// The kernel's parameters: as in other families, but with packed weights, tensor maps, and possibly partial sums.
std::vector<Argument> wgmma_arguments(const WgmmaGeometry& geometry);

/// The map of shared memory and the list of barriers, as a comment. Of `releases` arrivals a stage is free.
std::string layout_comment(const WgmmaGeometry& geometry, std::string_view releases);
/// Constants of arrivals: at the barrier of a stage, of those who load pixels and of who copies weights.
void add_arrival_constants(Constants& constants, const WgmmaGeometry& geometry);

/// Where a stage has its weights, as an expression: bytes from its start.
std::string_view weight_offset_constant(const WgmmaGeometry& geometry);

/// Tables of the taps whose weights a stage gets, by phases: of geometries where it gets those only that a phase meets.
std::string met_tap_tables(const WgmmaGeometry& geometry);

/// Words for a tile's place and its steps, which several parts use.
struct StepText {
  std::string tile_number;           ///< what makes a block's number a tile's
  std::string steps;                 ///< lines that find the first step and the end of a split
  std::string first_step, end_step;  ///< of a tile
  std::string chunk, filter_row;     ///< of a step: its chunk of channels, its first filter row
  std::string run_first;             ///< where a run starts: an output, a position or an image
  std::string run_row;               ///< what it counts of a row
};
StepText step_text(const WgmmaGeometry& geometry);

/// Holes of kernel.cu.in that concern the consumers.
Holes multiply_holes(const WgmmaGeometry& geometry);

/// How weights come to registers as they lie in w, and which channels meet there.
std::string unpacked_weights_text(const WgmmaGeometry& geometry);

/// Holes of kernel.cu.in that concern the producer, and constants.
Holes load_holes(const WgmmaGeometry& geometry);
void add_load_constants(Constants& constants, const WgmmaGeometry& geometry);

/// Arrivals at the barrier of a step that comes as it lies in x.
std::string_view copied_arrivals(const WgmmaGeometry& geometry);

/// A line for stores that read what no position has staged.
inline constexpr std::string_view kClearStaging =
    "for (int i = threadIdx.x; i < kConsumerWarps * kStagingElements; i += kThreads) staging[i] = Staged{};";

/// Holes of kernel.cu.in that concern the store.
Holes store_holes(const WgmmaGeometry& geometry);

/// The same for NHWC output; `channel_values` loads what a thread needs of its channels.
Holes store_nhwc_holes(const WgmmaGeometry& geometry, const std::string& channel_values);

/// The same for NHWC output of folded columns.
Holes store_folded_nhwc_holes(const WgmmaGeometry& geometry, const std::string& channel_values);

/// A line of a loop over k, where a tile may have fewer channels than it takes.
std::string end_of_channels(const WgmmaGeometry& geometry);

/// Where a lane's first position lies, counted from the start of a row of the grid; `before` it if columns are folded.
std::string column_first(const WgmmaGeometry& geometry, std::string_view before);

/// The store of folded columns: lines that find where a lane stages the first column's sums, and that write what is
/// staged.
struct FoldedStore {
  std::string staged_row, store;
};
std::string store_folded(const WgmmaGeometry& geometry, const FoldedStore& where);

/// Lines that say where a run starts and how many outputs it has, counted image by image.
std::string outputs_of_run(const WgmmaGeometry& geometry);

/// Where pixels of dx are stored: constants, lines that find the first element of output channel `k` of a group and its
/// phase, and lines that find the pixel of the run's staged position `position`.
void add_pixel_constants(Constants& constants, const WgmmaGeometry& geometry);
std::string first_pixel_of_channels(const WgmmaGeometry& geometry, std::string_view k);
std::string place_of_pixel(const WgmmaGeometry& geometry, std::string_view position);
/// Lines that write zeros behind a pixel that was written, where pixels meet no tap; none elsewhere. Neighbouring
/// pixels of an NHWC dx are `pixel_channels` apart.
std::string zero_pixels(const WgmmaGeometry& geometry, std::string_view pixel_channels);

/// The same if TMA stores boxes of y.
Holes store_boxes_holes(const WgmmaGeometry& geometry, const std::string& channel_values);

/// Lines that stage 16-bit outputs of a consumer, [position][channel]: a lane writes 16 bytes at `place`.
std::string stage_transposed(const WgmmaGeometry& geometry, const std::string& place);

/// The line that waits until a warp's part of the staging can be written again, if TMA reads there.
std::string await_staging(const WgmmaGeometry& geometry);

/// Where a tile's outputs go: y, or the sums of its split.
std::string where_stored(const WgmmaGeometry& geometry);

/// Where a kernel computes its epilogue; a split has none, as sums of splits get theirs when they are added.
StagedEpilogue epilogue_parts(const WgmmaGeometry& geometry);

/// Lines of the epilogue of a sum on its way to where it is staged. What a residual is added to is not activated yet.
std::string epilogue_of_staged(const WgmmaGeometry& geometry);

/// Lines that divide a position of a run of whole images: `image`, `row` and `column`.
std::string place_in_images(std::string_view position);

/// Constants of the store, part of the block's.
void add_store_constants(Constants& constants, const WgmmaGeometry& geometry);
void add_store_nhwc_constants(Constants& constants, const WgmmaGeometry& geometry);
void add_store_boxes_constants(Constants& constants, const WgmmaGeometry& geometry);

}  // namespace jitconv::codegen
