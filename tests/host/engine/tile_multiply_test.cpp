// The arithmetic of multiplications alone: which bits of an operand count, where its elements lie, how sums are
// rounded.
#include "host/tile_multiply.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <random>
#include <utility>
#include <vector>

namespace jitconv::host {
namespace {

class Tiles : public testing::Test {
 protected:
  Tiles() : a(64 * 32), b(256 * 32), tile(64 * 256) {}

  /// Element k of a row, of `bytes` bytes, rows of eight 128 bytes apart and the right half behind the left.
  template <typename T>
  static void put(std::vector<char>& matrix, std::size_t row, std::size_t k, T value) {
    const std::size_t half = 16 / sizeof(T);
    std::memcpy(matrix.data() + k / half * (matrix.size() / 2) + row * 16 + k % half * sizeof(T), &value, sizeof(T));
  }
  static float get(const std::vector<char>& matrix, std::size_t row, std::size_t k) {
    float value;
    std::memcpy(&value, matrix.data() + k / 4 * (matrix.size() / 2) + row * 16 + k % 4 * 4, 4);
    return value;
  }
  static TileOperand operand(const std::vector<char>& matrix) {
    return {{matrix.data(), matrix.data() + matrix.size() / 2}, 128};
  }
  /// The same elements in swizzled rows, from this row and piece on; all around them are NaNs.
  struct Swizzled {
    std::vector<char> bytes;
    TileOperand operand;
  };
  static Swizzled swizzled(const std::vector<char>& matrix, std::uint32_t row_bytes, std::uint32_t first_row,
                           std::uint32_t piece, std::uint32_t step) {
    const std::size_t rows = matrix.size() / 32, first = first_row * row_bytes + piece * 16;
    const std::size_t mask = row_bytes == 128 ? 7 : row_bytes == 64 ? 3 : 1;
    Swizzled made{std::vector<char>(first + rows / 8 * step + 1024, '\xff'), {}};
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t half = 0; half < 2; ++half) {
        const std::size_t at = first + row / 8 * step + row % 8 * row_bytes + half * 16;
        std::memcpy(made.bytes.data() + (at ^ (at >> 7 & mask) << 4),
                    matrix.data() + half * (matrix.size() / 2) + row * 16, 16);
      }
    }
    made.operand = {{made.bytes.data(), made.bytes.data()}, step, row_bytes, static_cast<std::uint32_t>(first)};
    return made;
  }
  /// a[0][0] * b[0][0], from bits.
  template <typename T>
  float product(MultiplyType type, T left, T right) {
    put(a, 0, 0, left);
    put(b, 0, 0, right);
    tile.assign(tile.size(), 0.0f);
    multiply_tile(type, tile.data(), 8, operand(a), operand(b));
    return tile[0];
  }

  std::vector<char> a, b;
  std::vector<float> tile;
};

TEST_F(Tiles, OfTf32IgnoreTheLowBits) {
  const auto one = std::bit_cast<std::uint32_t>(1.0f);
  EXPECT_EQ(product(MultiplyType::tf32, one | 0x1fffu, one), 1.0f);
  EXPECT_EQ(product(MultiplyType::tf32, one | 0x2000u, one | 0x2000u), (1 + 0x1p-10f) * (1 + 0x1p-10f));
}

TEST_F(Tiles, OfSixteenBitsHaveTheirValues) {
  for (const auto& [bits, value] : {std::pair{0x3c00, 1.0}, std::pair{0xc500, -5.0}, std::pair{0x0001, 0x1p-24},
                                    std::pair{0x03ff, 1023 * 0x1p-24}, std::pair{0x7bff, 65504.0}}) {
    EXPECT_EQ(product<std::uint16_t>(MultiplyType::f16, static_cast<std::uint16_t>(bits), 0x4000), 2 * value);
  }
  EXPECT_EQ(product<std::uint16_t>(MultiplyType::f16, 0x7c00, 0xbc00), -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(product<std::uint16_t>(MultiplyType::f16, 0x7e00, 0x3c00)));
  EXPECT_EQ(product<std::uint16_t>(MultiplyType::bf16, 0x4049, 0xbf80), -3.140625f);
}

TEST_F(Tiles, AddEveryElementOnceToItsSum) {
  for (const std::uint32_t columns : {8u, 24u, 248u, 256u}) {
    tile.assign(tile.size(), 100.0f);
    for (std::size_t k = 0; k < 8; ++k) {
      for (std::size_t row = 0; row < 64; ++row) put(a, row, k, static_cast<float>(row % 7) - static_cast<float>(k));
      for (std::size_t column = 0; column < columns; ++column)
        put(b, column, k, static_cast<float>(column % 5) + static_cast<float>(k % 3));
    }
    multiply_tile(MultiplyType::tf32, tile.data(), columns, operand(a), operand(b));
    for (std::size_t row = 0; row < 64; ++row) {
      for (std::size_t column = 0; column < columns; ++column) {
        float sum = 100.0f;
        for (std::size_t k = 0; k < 8; ++k)
          sum += (static_cast<float>(row % 7) - static_cast<float>(k)) *
                 (static_cast<float>(column % 5) + static_cast<float>(k % 3));
        ASSERT_EQ(tile[row * columns + column], sum) << row << " " << column;
      }
    }
  }
}

TEST_F(Tiles, OfSwizzledRowsAreThoseOfPlainOnes) {
  for (std::size_t row = 0; row < 256; ++row) {
    for (std::size_t k = 0; k < 8; ++k) {
      if (row < 64) put(a, row, k, static_cast<float>(row * 3 + k * k) - 90.0f);
      put(b, row, k, static_cast<float>(row % 17) - static_cast<float>(k * 2));
    }
  }
  struct Place {
    std::uint32_t row_bytes, row, piece, step;
  };
  const Place places[] = {{128, 0, 0, 1024}, {128, 0, 6, 2048}, {128, 3, 4, 1024}, {128, 13, 2, 3072},
                          {64, 0, 2, 512},   {64, 3, 0, 1536},  {64, 13, 2, 512},  {32, 0, 0, 256},
                          {32, 3, 0, 256},   {32, 13, 0, 768}};
  for (const MultiplyType type : {MultiplyType::tf32, MultiplyType::bf16}) {
    for (const std::uint32_t columns : {8u, 248u, 256u}) {
      std::vector<float> expected(tile.size(), 5.0f);
      multiply_tile(type, expected.data(), columns, operand(a), operand(b));
      for (std::size_t i = 0; i < std::size(places); ++i) {
        const Place &of_a = places[i], &of_b = places[std::size(places) - 1 - i];
        const Swizzled other_a = swizzled(a, of_a.row_bytes, of_a.row, of_a.piece, of_a.step);
        const Swizzled other_b = swizzled(b, of_b.row_bytes, of_b.row, of_b.piece, of_b.step);
        for (const bool swizzle_a : {false, true}) {
          for (const bool swizzle_b : {false, true}) {
            tile.assign(tile.size(), 5.0f);
            multiply_tile(type, tile.data(), columns, swizzle_a ? other_a.operand : operand(a),
                          swizzle_b ? other_b.operand : operand(b));
            ASSERT_EQ(tile, expected) << columns << " columns, place " << i;
          }
        }
      }
    }
  }
}

// As hardware adds: all addends of an instruction are cut off at the same last place, two bits behind the last of the
// largest, and the sum at its own.
TEST_F(Tiles, OfTf32TruncateTheirSums) {
  const auto sum_of = [&](float first, std::initializer_list<float> products) {
    std::fill(a.begin(), a.end(), '\0');
    std::fill(b.begin(), b.end(), '\0');
    std::size_t k = 0;
    for (const float product : products) put(a, 0, k, product), put(b, 0, k++, 1.0f);
    tile.assign(tile.size(), 0.0f);
    tile[0] = first;
    multiply_tile(MultiplyType::tf32, tile.data(), 8, operand(a), operand(b));
    return tile[0];
  };
  EXPECT_EQ(sum_of(0x1p24f, {1.5f}), 0x1p24f);            // rounded it would be two more
  EXPECT_EQ(sum_of(0x1p24f, {1.0f, 1.0f}), 0x1p24f + 2);  // both count until the sum is cut off
  EXPECT_EQ(sum_of(0x1p24f, {0.5f, 0.5f, 0.5f, 0.5f}), 0x1p24f + 2);
  EXPECT_EQ(sum_of(0x1p24f, {0.25f, 0.25f, 0.25f, 0.25f, 0.25f, 0.25f, 0.25f, 0.25f}), 0x1p24f);
  EXPECT_EQ(sum_of(0x1p24f, {-0.25f, 0.25f}), 0x1p24f);
  EXPECT_EQ(sum_of(-0x1p24f, {-1.5f}), -0x1p24f);  // towards zero
  EXPECT_EQ(sum_of(1.0f, {-0x1p-24f}), 1.0f - 0x1p-24f);
  EXPECT_EQ(sum_of(0.0f, {0x1p-60f, 0x1.8p-80f}), 0x1p-60f + 0x1.8p-80f);
  // The last place of a TF32 subnormal is 2^-136.
  EXPECT_EQ(sum_of(0.0f, {0x1p-130f, 0x1p-136f}), 0x1p-130f + 0x1p-136f);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(sum_of(-0.0f, {-0.0f})), 0u);
  EXPECT_EQ(sum_of(0.0f, {-0x1p-149f}), 0.0f);  // an operand of fewer bits than TF32 has
}

TEST_F(Tiles, OfTf32OverflowOnlyWhenTheirSumsDo) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity(), kLargest = std::numeric_limits<float>::max();
  const auto sum_of = [&](float first, std::initializer_list<std::pair<float, float>> products) {
    std::fill(a.begin(), a.end(), '\0');
    std::fill(b.begin(), b.end(), '\0');
    std::size_t k = 0;
    for (const auto& [left, right] : products) put(a, 0, k, left), put(b, 0, k++, right);
    tile.assign(tile.size(), 0.0f);
    tile[0] = first;
    multiply_tile(MultiplyType::tf32, tile.data(), 8, operand(a), operand(b));
    return tile[0];
  };
  EXPECT_EQ(sum_of(kLargest, {{0x1p103f, 1.0f}}), kLargest);  // truncated
  EXPECT_EQ(sum_of(kLargest, {{0x1p104f, 1.0f}}), kInfinity);
  EXPECT_EQ(sum_of(0.0f, {{0x1p100f, -0x1p100f}}), -kInfinity);
  EXPECT_EQ(sum_of(0.0f, {{0x1p100f, 0x1p100f}, {0x1p100f, -0x1p100f}, {1.0f, 1.0f}}), 0.0f);
  EXPECT_EQ(sum_of(kLargest, {{0x1p100f, -0x1p100f}}), -kInfinity);
  EXPECT_EQ(sum_of(kInfinity, {{0x1p100f, -0x1p100f}}), kInfinity);
  EXPECT_EQ(sum_of(0.0f, {{kInfinity, 1.0f}, {0x1p100f, -0x1p100f}}), kInfinity);
  EXPECT_EQ(sum_of(0.0f, {{kInfinity, 0x1p-136f}}), kInfinity);
  for (const float nan : {sum_of(0.0f, {{kInfinity, 0.0f}}), sum_of(-kInfinity, {{kInfinity, 1.0f}}),
                          sum_of(1.5f, {{std::numeric_limits<float>::quiet_NaN(), 1.0f}})})
    EXPECT_EQ(std::bit_cast<std::uint32_t>(nan), 0x7fffffffu);
}

// A subnormal operand has no power of two to align to.
TEST_F(Tiles, OfTf32AlignSubnormalOperandsToTheSmallestPower) {
  put(a, 0, 0, 0x1p-136f), put(b, 0, 0, 0x1p120f);
  put(a, 0, 1, 0x1p-20f), put(b, 0, 1, 0x1p-20f);
  multiply_tile(MultiplyType::tf32, tile.data(), 8, operand(a), operand(b));
  EXPECT_EQ(tile[0], 0x1p-16f);
}

// Numbers whose sums might be rounded take another way than integers, and numbers of extreme exponents a third.
TEST_F(Tiles, OfTf32AddUpAlikeHoweverLargeTheirNumbersAre) {
  std::mt19937 random(3);
  const auto number = [&](float scale) {
    const auto bits = std::bit_cast<std::uint32_t>(scale * (1.0f + static_cast<float>(random() % 1024) / 1024.0f));
    return std::bit_cast<float>(bits | static_cast<std::uint32_t>(random() % 2) << 31);
  };
  for (int turn = 0; turn < 50; ++turn) {
    for (std::size_t k = 0; k < 8; ++k)
      for (std::size_t i = 0; i < 64; ++i) {
        put(a, i, k, number(std::ldexp(1.0f, static_cast<int>(random() % 13))));
        if (i < 8) put(b, i, k, number(std::ldexp(1.0f, static_cast<int>(random() % 13))));
      }
    for (std::size_t i = 0; i < 512; ++i) tile[i] = number(std::ldexp(1.0f, static_cast<int>(random() % 25)));
    std::vector<float> small = tile;
    const auto factor = [&](auto& matrix, float by) {
      for (std::size_t i = 0; i < 64; ++i)
        for (std::size_t k = 0; k < 8; ++k) put(matrix, i, k, get(matrix, i, k) * by);
    };
    multiply_tile(MultiplyType::tf32, tile.data(), 8, operand(a), operand(b));
    factor(a, 0x1p-80f);
    for (float& sum : small) sum *= 0x1p-80f;
    multiply_tile(MultiplyType::tf32, small.data(), 8, operand(a), operand(b));
    for (std::size_t i = 0; i < 512; ++i) ASSERT_EQ(small[i], tile[i] * 0x1p-80f) << i;
  }
}

// The order that docs/host.md states: k by k, each sum rounded to nearest.
TEST_F(Tiles, OfSixteenBitsRoundSumsInTheOrderOfK) {
  const std::uint16_t one = 0x3f80, large = 0x4b80;  // 2^24
  put(a, 0, 0, large);
  put(a, 0, 1, one);
  put(a, 0, 2, one);
  for (std::size_t k = 0; k < 3; ++k) put(b, 0, k, one);
  multiply_tile(MultiplyType::bf16, tile.data(), 8, operand(a), operand(b));
  EXPECT_EQ(tile[0], 0x1p24f);
  put(a, 0, 0, one);
  put(a, 0, 2, large);
  tile.assign(tile.size(), 0.0f);
  multiply_tile(MultiplyType::bf16, tile.data(), 8, operand(a), operand(b));
  EXPECT_EQ(tile[0], 0x1p24f + 2.0f);
}

}  // namespace
}  // namespace jitconv::host
