// Parts of a wgrad_wgmma kernel's text: what its producer warps do, and what its consumers do. emit.cpp puts them
// together.
#pragma once

#include <string>
#include <vector>

#include "codegen/tensor_map.h"
#include "codegen/text/emitter.h"
#include "codegen/wgrad_wgmma/tiling.h"

namespace jitconv::codegen {

/// A tap of a block: filter row and column, counted from the block's first.
struct WgradTap {
  int r, s;
};

/// The steps of the producer warpgroups.
std::string wgrad_load_steps(const WgradGeometry& geometry);

/// The steps of the consumer warpgroups.
std::string wgrad_consume(const WgradGeometry& geometry);

/// Waits for the kernel that packs, where there is one.
std::string await_packing(const WgradWgmmaTiling& tiling);

// Of kernels whose operands are boxes.
void add_box_constants(Constants& c, const WgradGeometry& geometry);
TensorMapShape box_of_x(const WgradGeometry& geometry);
TensorMapShape box_of_dy(const WgradGeometry& geometry);
std::string box_steps(const WgradGeometry& geometry);
std::string box_operands(const WgradGeometry& geometry);
/// `products`: a consumer's, each of a tap or, if they are joined, of a filter row.
std::string box_multiplications(const WgradGeometry& geometry, const std::vector<WgradTap>& products);

// Of kernels whose operands are runs of planes.
void add_plane_constants(Constants& c, const WgradGeometry& geometry);
TensorMapShape plane_of_x(const WgradGeometry& geometry);
TensorMapShape plane_of_dy(const WgradGeometry& geometry);
std::string plane_steps(const WgradGeometry& geometry);
std::string plane_operand();
/// Of 16-bit elements, whose dy is an operand as it lies.
std::string plane_multiplications(const WgradGeometry& geometry);

}  // namespace jitconv::codegen
