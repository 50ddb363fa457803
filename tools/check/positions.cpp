// See positions.h.
#include "tools/check/positions.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "fmt/format.h"
#include "tools/check/data.h"

namespace jitconv::check {
namespace {

TensorShape locate(const TensorShape& shape, Layout layout, std::int64_t position) {
  const auto take = [&position](std::int64_t extent) {
    const std::int64_t index = position % extent;
    position /= extent;
    return index;
  };
  TensorShape at;
  if (layout == Layout::nhwc) {
    at.c = take(shape.c);
    at.w = take(shape.w);
    at.h = take(shape.h);
  } else {
    at.w = take(shape.w);
    at.h = take(shape.h);
    at.c = take(shape.c);
  }
  at.n = position;
  return at;
}

/// Indices at random, and more of them on borders.
class RandomIndices {
 public:
  explicit RandomIndices(std::uint64_t seed) {
    random_.kind = DataKind::positive;
    random_.seed = seed;
  }
  std::int64_t any(std::int64_t extent) {
    // Two draws of 24 bits reach every index below 2^48.
    const double high = static_cast<double>(random_(draws_++)), low = static_cast<double>(random_(draws_++));
    const double fraction = high + std::ldexp(low, -24);
    return std::min(extent - 1, static_cast<std::int64_t>(fraction * static_cast<double>(extent)));
  }
  /// Every other sample on a border of its plane, where padding, row ends and tile ends are.
  std::int64_t of_axis(std::int64_t extent) {
    const std::int64_t choice = any(8);
    return choice == 0 ? 0 : choice == 1 ? extent - 1 : any(extent);
  }

 private:
  Fill random_;
  std::int64_t draws_ = 0;
};

void sample_result(const TensorShape& shape, const Strides& strides, std::int64_t count, RandomIndices& random,
                   std::vector<std::int64_t>& positions) {
  for (std::int64_t n : {std::int64_t{0}, shape.n - 1}) {
    for (std::int64_t k : {std::int64_t{0}, shape.c - 1}) {
      for (std::int64_t p : {std::int64_t{0}, shape.h / 2, shape.h - 1}) {
        for (std::int64_t q : {std::int64_t{0}, shape.w / 2, shape.w - 1}) {
          positions.push_back(strides.offset(n, k, p, q));
        }
      }
    }
  }
  for (std::int64_t i = static_cast<std::int64_t>(positions.size()); i < count; ++i) {
    const std::int64_t n = random.any(shape.n), k = random.any(shape.c);
    const std::int64_t p = random.of_axis(shape.h), q = random.of_axis(shape.w);
    positions.push_back(strides.offset(n, k, p, q));
  }
}

}  // namespace

bool has_channel_sums(const ConvSpec& spec) {
  return spec.operation == Operation::weight_gradient && spec.epilogue.bias;
}

std::int64_t position_count(const ConvSpec& spec) {
  return element_count(result_shape(spec)) + (has_channel_sums(spec) ? spec.weight.k : 0);
}

Strides strides_of(const TensorShape& shape, Layout layout) {
  if (layout == Layout::nhwc) return {shape.h * shape.w * shape.c, 1, shape.w * shape.c, shape.c};
  return {shape.c * shape.h * shape.w, shape.h * shape.w, shape.w, 1};
}

TensorShape coordinates(const ConvSpec& spec, std::int64_t position) {
  return locate(result_shape(spec), result_layout(spec), position);
}

std::string element_name(const ConvSpec& spec, std::int64_t position) {
  const std::int64_t elements = element_count(result_shape(spec));
  if (position >= elements) return fmt::format("db[k={}]", position - elements);
  const TensorShape at = coordinates(spec, position);
  constexpr const char* kNames[] = {"y[n={}, k={}, p={}, q={}]", "dx[n={}, c={}, h={}, w={}]",
                                    "dw[k={}, c={}, r={}, s={}]"};
  return fmt::format(fmt::runtime(kNames[static_cast<std::size_t>(spec.operation)]), at.n, at.c, at.h, at.w);
}

std::vector<std::int64_t> sample_positions(const ConvSpec& spec, std::int64_t count, std::uint64_t seed) {
  const std::int64_t total = position_count(spec);
  std::vector<std::int64_t> positions;
  if (total <= count) {
    positions.resize(static_cast<std::size_t>(total));
    std::iota(positions.begin(), positions.end(), std::int64_t{0});
    return positions;
  }
  RandomIndices random(seed);
  const TensorShape shape = result_shape(spec);
  const std::int64_t elements = element_count(shape), sums = total - elements;
  const std::int64_t sampled_sums = std::min(sums, std::max<std::int64_t>(2, count / 8));
  sample_result(shape, strides_of(shape, result_layout(spec)), count - sampled_sums, random, positions);
  for (std::int64_t i = 0; i < sampled_sums; ++i)
    positions.push_back(elements + (i == 0 ? 0 : i == 1 ? sums - 1 : random.any(sums)));
  std::sort(positions.begin(), positions.end());
  positions.erase(std::unique(positions.begin(), positions.end()), positions.end());
  return positions;
}

}  // namespace jitconv::check
