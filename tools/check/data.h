// Seeded test data. Element i of a tensor is a pure function of the seed and i, so one value can be had alone: a
// sampled check of a tensor of gigabytes needs no copy of it on the host, and any number of threads fill one alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "jitconv/spec.h"

namespace jitconv::check {

enum class DataKind : std::uint8_t {
  exact,    ///< small integers: every partial sum, in any order, is exact in fp32, so results are compared for equality
  random,   ///< reals of both signs
  positive  ///< reals above zero: shows an accumulation that is biased, which signs would average away
};
std::string_view to_string(DataKind kind);

/// Generator of one tensor's elements.
struct Fill {
  std::uint64_t seed = 0;
  DataKind kind = DataKind::random;
  DataType type = DataType::f32;
  std::uint32_t range = 1;        ///< exact: magnitudes are 1..range
  std::uint32_t keep = 1u << 31;  ///< exact: of 2^31 elements this many are not zero
  /// A power of two. Exact: of it all values are multiples; otherwise they lie in [-scale, scale) or [0, scale).
  float scale = 1.0f;
  float offset = 0.0f;  ///< added to all values; exact: an integer

  /// Element `index`, in the tensor's memory order; always a value of `type`.
  float operator()(std::int64_t index) const;
  bool operator==(const Fill&) const = default;
};

/// The inputs of one operation, which reads some of them.
struct Data {
  Fill x, w, bias, residual, dy, saved;
};

/// Data of `kind` for `spec`. Exact data keep the sums of f16 far from overflow and make typical sums of 16-bit types
/// representable, so that rounding the output hides little. Reals are scaled to give outputs around 1 (`positive`:
/// sqrt(reduction length)), where every activation has its bend. What a dy_activation's derivative is computed from
/// lies on both sides of its bends, whatever the kind, and exact data also on them.
Data make_data(const ConvSpec& spec, DataKind kind, std::uint64_t seed);

/// Exact data stay exact when dy is multiplied by the derivative of dy_activation: there is none, or it is 0, 1 or a
/// power of two that make_data() reckons with.
bool has_exact_dz(const ConvSpec& spec);

/// The most products that an element of the result is a sum of: C/groups * R * S of y. Of dx, K/groups times the taps
/// that the stride lets meet one pixel. Of dw, N * P * Q, which may be 0; db is a sum of as many dy.
std::int64_t reduction_length(const ConvSpec& spec);

/// Elements of a tensor.
std::int64_t element_count(const TensorShape& shape);
std::int64_t element_count(const WeightShape& shape);

/// Elements first, first + 1, ... as they lie in memory, in as many threads as the machine has; out.size() is a
/// multiple of the element size.
void fill_elements(const Fill& fill, std::int64_t first, std::span<std::byte> out);

/// The first `count` elements as floats.
std::vector<float> values_of(const Fill& fill, std::int64_t count);

}  // namespace jitconv::check
