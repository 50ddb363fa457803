// The 16-bit formats: every value, every midpoint, and the edges.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "tools/check/number.h"

namespace jitconv::check {
namespace {

struct Format {
  const char* name;
  DataType type;
  std::uint16_t (*encode)(double);
  float (*decode)(std::uint16_t);
  std::uint16_t infinity;
  double largest, smallest;
};

const Format kFormats[] = {
    {"f16", DataType::f16, to_f16, from_f16, 0x7c00, 65504, 0x1p-24},
    {"bf16", DataType::bf16, to_bf16, from_bf16, 0x7f80, 0x1.fep127, 0x1p-133},
};

class Number : public testing::TestWithParam<Format> {};
INSTANTIATE_TEST_SUITE_P(Check, Number, testing::ValuesIn(kFormats),
                         [](const auto& test) { return std::string(test.param.name); });

TEST_P(Number, All65536PatternsComeBack) {
  const Format& format = GetParam();
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const std::uint16_t pattern = static_cast<std::uint16_t>(bits);
    const float value = format.decode(pattern);
    const bool is_nan = (pattern & 0x7fff) > format.infinity;
    ASSERT_EQ(std::isnan(value), is_nan) << bits;
    if (is_nan) {
      EXPECT_TRUE(std::isnan(format.decode(format.encode(static_cast<double>(value)))));
    } else {
      ASSERT_EQ(format.encode(static_cast<double>(value)), pattern) << bits;
    }
  }
}

TEST_P(Number, MidpointsGoToEvenAndTheirNeighboursToTheNearest) {
  const Format& format = GetParam();
  // The value after the largest would be one spacing up; halfway to it is where infinity begins.
  for (std::uint16_t lower = 0; lower < format.infinity; ++lower) {
    const std::uint16_t upper = static_cast<std::uint16_t>(lower + 1);
    const double below = static_cast<double>(format.decode(lower));
    const double above = upper == format.infinity
                             ? 2 * below - static_cast<double>(format.decode(static_cast<std::uint16_t>(lower - 1)))
                             : static_cast<double>(format.decode(upper));
    const double middle = (below + above) / 2;
    const std::uint16_t even = lower % 2 == 0 ? lower : upper;
    ASSERT_EQ(format.encode(middle), even) << lower;
    ASSERT_EQ(format.encode(-middle), even | 0x8000) << lower;
    ASSERT_EQ(format.encode(std::nextafter(middle, 0.0)), lower) << lower;
    ASSERT_EQ(format.encode(std::nextafter(middle, HUGE_VAL)), upper) << lower;
  }
}

TEST_P(Number, Edges) {
  const Format& format = GetParam();
  EXPECT_EQ(static_cast<double>(format.decode(static_cast<std::uint16_t>(format.infinity - 1))), format.largest);
  EXPECT_EQ(static_cast<double>(format.decode(1)), format.smallest);
  EXPECT_EQ(format.encode(HUGE_VAL), format.infinity);
  EXPECT_EQ(format.encode(1e300), format.infinity);
  EXPECT_EQ(format.encode(-1e300), format.infinity | 0x8000);
  EXPECT_EQ(format.encode(std::numeric_limits<double>::denorm_min()), 0);
  EXPECT_EQ(format.encode(-0.0), 0x8000);
  EXPECT_TRUE(std::signbit(format.decode(0x8000)));
}

TEST_P(Number, RoundoffsAreHalfSpacings) {
  const Format& format = GetParam();
  const double one_up = static_cast<double>(format.decode(static_cast<std::uint16_t>(format.encode(1.0) + 1)));
  EXPECT_EQ(unit_roundoff(format.type), (one_up - 1) / 2);
  EXPECT_EQ(subnormal_roundoff(format.type), format.smallest / 2);
}

TEST(NumberFp32, RoundsOnceFromDouble) {
  EXPECT_EQ(round_to(DataType::f32, 1 + 0x1p-24), 1);
  EXPECT_EQ(round_to(DataType::f32, 1 + 0x1p-24 + 0x1p-50), 1 + 0x1p-23);
  EXPECT_EQ(unit_roundoff(DataType::f32), 0x1p-24);
  EXPECT_EQ(subnormal_roundoff(DataType::f32), 0x1p-150);
}

TEST(Number16, RoundingThroughFp32WouldDiffer) {
  // Just above a midpoint of f16 by less than fp32 can tell: rounding twice goes down to even.
  const double value = 1 + 0x1p-11 + 0x1p-40;
  EXPECT_EQ(round_to(DataType::f16, value), 1 + 0x1p-10);
  EXPECT_EQ(round_to(DataType::f16, static_cast<double>(static_cast<float>(value))), 1);
}

TEST(NumberBytes, EncodeAndDecode) {
  const std::vector<float> values = {0, 1, -2.5f, 0.1f, 65504, 3e38f};
  for (const DataType type : {DataType::f32, DataType::f16, DataType::bf16}) {
    const std::vector<std::byte> bytes = encode(type, values);
    ASSERT_EQ(bytes.size(), values.size() * static_cast<std::size_t>(element_bytes(type)));
    const std::vector<float> back = decode(type, bytes);
    ASSERT_EQ(back.size(), values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(static_cast<double>(back[i]), round_to(type, static_cast<double>(values[i])));
    }
  }
  const std::uint16_t half = 0xc100;  // -2.5
  EXPECT_EQ(std::memcmp(encode(DataType::f16, values).data() + 4, &half, 2), 0);
}

}  // namespace
}  // namespace jitconv::check
