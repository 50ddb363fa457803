// Launches of one copy by a tensor map, and what it has to bring: every element is found by its indices.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "codegen/source.h"
#include "host/compiler.h"
#include "host/engine.h"

namespace jitconv::test {

using Indices = std::array<int, 4>;

/// What one launch is told: where the box begins and lands, how many bytes to announce, the words to give back, the
/// offset of an im2col map.
struct Order {
  Indices first{};
  int place = 0, announced = 0, words = 0, waits = 1;
  std::array<int, 2> offset{};
};

class TensorCopies : public testing::Test {
 protected:
  static constexpr std::uint32_t kPoolBytes = 16384;  // of shared memory, before the barrier

  /// A tensor without an element too many, at a multiple of 256 bytes.
  void set(const codegen::TensorMapShape& shape);
  host::Report run(Order order, const host::Settings& settings = {}, host::Purpose purpose = host::Purpose::check);
  std::vector<unsigned char> expected(const Order& order);
  void expect_box(const Order& order, const host::Settings& settings);
  /// The one finding of a launch.
  void expect_finding(const Order& order, host::Rule rule, const std::string& words);

  codegen::TensorMapShape shape_;
  int rank_ = 0;                         // of the kernel's copy, if not the shape's
  std::int64_t bytes_ = 0, inside_ = 0;  // of the tensor; of it, that the box last expected has
  unsigned char* x_ = nullptr;
  std::vector<unsigned char> storage_;
  std::vector<std::uint32_t> y_;
};

inline std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

/// Im2col maps of all pixels of filters with padding, by strides, between borders that no filter has; of rows of each
/// swizzle.
std::vector<codegen::TensorMapShape> im2col_maps();

}  // namespace jitconv::test
