// What the files that print pack_weights kernels have of each other.
#pragma once

#include <string>

#include "codegen/pack_weights/tiling.h"
#include "codegen/text/emitter.h"

namespace jitconv::codegen {

/// What finds the weights of a row, and the weight of its channel `c`.
struct RowText {
  std::string first_channel, weight;
};

/// Lines that find a row's tap in w: `of_phase` where there are phases; rows that have none may be left out.
std::string tap_of_w(const Problem& problem, const PackWeightsTiling& tiling, std::string_view of_phase);

/// Constants of a block's share of a data gradient's w.
void add_gradient_block(Constants& constants, const Problem& problem, const PackWeightsTiling& tiling);

/// Lines that find the weights of a row in a block's pieces of a data gradient's w.
std::string gradient_first_channel(const Problem& problem, const PackWeightsTiling& tiling);

/// templates/pack_weights/gradient.cu.in; `write_rows` are the lines that write the rows of a channel of dx, and
/// `holes` those that it has in common with kernel.cu.in.
std::string fill_gradient(const Problem& problem, const PackWeightsTiling& tiling, std::string_view write_rows,
                          Holes holes);

/// The same three of weights whose groups are joined: templates/pack_weights/joined.cu.in.
void add_joined_block(Constants& constants, const Problem& problem, const PackWeightsTiling& tiling);
RowText joined_row(const Problem& problem, const PackWeightsTiling& tiling);
std::string fill_joined(const Problem& problem, const PackWeightsTiling& tiling, std::string_view write_rows,
                        Holes holes);

}  // namespace jitconv::codegen
