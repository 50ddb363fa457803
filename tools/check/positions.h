// Positions of results: one number for each element that a launch writes, which is its index in the memory of y, dx or
// dw. The elements of db, if there is one, follow behind those of dw.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "jitconv/spec.h"

namespace jitconv::check {

/// A weight gradient with bias: its second result is db.
bool has_channel_sums(const ConvSpec& spec);

/// Positions that there are: elements of the result and of db.
std::int64_t position_count(const ConvSpec& spec);

/// Distances in memory between neighbours along each axis.
struct Strides {
  std::int64_t n, c, h, w;
  std::int64_t offset(std::int64_t in, std::int64_t ic, std::int64_t ih, std::int64_t iw) const {
    return in * n + ic * c + ih * h + iw * w;
  }
};
Strides strides_of(const TensorShape& shape, Layout layout);

/// Where a position of the result is: its indices by the names of result_shape(). Not of db.
TensorShape coordinates(const ConvSpec& spec, std::int64_t position);

/// With the indices' names: "y[n=0, k=1, p=2, q=3]", "dx[n=, c=, h=, w=]", "dw[k=, c=, r=, s=]", "db[k=]".
std::string element_name(const ConvSpec& spec, std::int64_t position);

/// About `count` distinct positions in ascending order, or all if there are no more than that: the corners, edges and
/// centre of the result's first and last plane, and random ones; of db as of the result.
std::vector<std::int64_t> sample_positions(const ConvSpec& spec, std::int64_t count, std::uint64_t seed);

}  // namespace jitconv::check
