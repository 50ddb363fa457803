// The arithmetic of multiplications alone: which bits of an operand count, where its elements lie, how sums are
// rounded.
#include "host/tile_multiply.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
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

// The order that docs/host.md states: k by k, each sum rounded to nearest.
TEST_F(Tiles, RoundSumsInTheOrderOfK) {
  put(a, 0, 0, 0x1p24f);
  put(a, 0, 1, 1.0f);
  put(a, 0, 2, 1.0f);
  for (std::size_t k = 0; k < 3; ++k) put(b, 0, k, 1.0f);
  multiply_tile(MultiplyType::tf32, tile.data(), 8, operand(a), operand(b));
  EXPECT_EQ(tile[0], 0x1p24f);
  put(a, 0, 0, 1.0f);
  put(a, 0, 2, 0x1p24f);
  tile.assign(tile.size(), 0.0f);
  multiply_tile(MultiplyType::tf32, tile.data(), 8, operand(a), operand(b));
  EXPECT_EQ(tile[0], 0x1p24f + 2.0f);
}

}  // namespace
}  // namespace jitconv::host
