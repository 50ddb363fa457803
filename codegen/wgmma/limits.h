// What a wgmma kernel can do with a problem: limits of TMA and of shared memory's layout that rule tilings out. The
// search in candidates.cpp asks for them; launches and texts take for granted that they hold.
#pragma once

#include <string>

#include "codegen/wgmma/geometry.h"
#include "codegen/wgmma/store.h"
#include "jitconv/target.h"

namespace jitconv::codegen {

/// Which rule keeps the family from computing the problem; empty if none does.
std::string obstacle_of_wgmma(const Problem& problem, const Target& target);

/// Whether TMA can bring pixels in im2col mode: its limits, and no channels of another group come along.
bool can_use_im2col(const WgmmaGeometry& geometry);

/// Whether TMA can bring pixels as boxes of planes: pixels of one tap, which lie as outputs do, whole vectors of 16
/// bytes.
bool can_use_planes(const WgmmaGeometry& geometry);

/// Whether threads can make the same operand of planes that start between multiples of 16 bytes, by shifting them: of
/// groups whose channels are whole periods (WgmmaPixels::plane_period()), in runs that start at whole vectors.
bool can_align_planes(const WgmmaGeometry& geometry);

/// Whether TMA can bring a step's pixels as they lie in x, for threads to convert: what it copies are whole vectors of
/// 16 bytes, or planes of floats of groups whose channels are whole periods.
bool can_copy_pixels(const WgmmaGeometry& geometry);

/// Groups to join so that their output channels, of a pixel, fill the 64 rows of a multiplication: 1 for none. The same
/// number of multiplications gives the outputs of all of them. Not where sums have to come out as without: an infinity
/// or a NaN makes a NaN of the zeros between groups. Nor of one channel a group, where 63 of 64 products would be zero.
std::int64_t groups_to_join(const Problem& problem);

/// Whether the store can write pixels of dx, of the problem whose phases they are: not if vectors of a phase's channels
/// would be under 8 bytes (NHWC), nor if eight channels, which a warp stages, are not whole pixels of one phase of
/// rows, or rows with zeros not whole vectors (NCHW).
bool can_write_phases(const Problem& sub_pixel);

/// Whether a step's weights are a box of w, whose rows are output channels, and they are an operand as they lie there
/// or what a lane reads of a row are vectors.
bool can_take_unpacked_weights(const WgmmaGeometry& geometry);
/// Those of a data gradient that has no stride.
bool can_take_transposed_weights(const WgmmaGeometry& geometry);

/// Whether the tile may fold its columns: threads store runs, in NHWC of the input's type, and all channels have rows.
bool can_fold_columns(const WgmmaGeometry& geometry);

/// Whether consumers can add their sums where outputs are staged, and each has a step of every tile.
bool can_slice_k(const WgmmaGeometry& geometry, const WgmmaStore& store);

/// Whether TMA can store boxes of y (NHWC): it adds no residual, and a box that lies in y but for its end is written
/// up to there, but none begins before y, as the part of a run behind a row's end would.
bool can_store_boxes(const WgmmaGeometry& geometry, const WgmmaStore& store);

}  // namespace jitconv::codegen
