// tools/device_kernels.cu, compiled as C++ and run by one thread: the data a device makes are those the host makes.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "tools/check/data.h"
#include "tools/check/number.h"

namespace jitconv::test {
namespace {

#include "unit/tools/cli_device_kernels_on_host.h"

constexpr std::int64_t kCount = 100'000;

std::vector<std::byte> made_by_kernel(const check::Fill& fill) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(kCount * element_bytes(fill.type)));
  const int kind = static_cast<int>(fill.kind);
  if (fill.type == DataType::f32) {
    fill_f32(reinterpret_cast<float*>(bytes.data()), kCount, fill.seed, kind, fill.range, fill.keep, fill.scale,
             fill.offset);
  } else {
    const auto kernel = fill.type == DataType::f16 ? fill_f16 : fill_bf16;
    kernel(reinterpret_cast<u16*>(bytes.data()), kCount, fill.seed, kind, fill.range, fill.keep, fill.scale,
           fill.offset);
  }
  return bytes;
}

TEST(DeviceData, KernelsMakeTheHostsData) {
  // Long and short reductions: thinned and dense integers, small and large scales of the weights.
  for (const char* text : {"input=1,64,32,32 weight=64,64,31,31", "input=1,1,32,32 weight=1,1,1,1"}) {
    for (const DataType type : {DataType::f32, DataType::f16, DataType::bf16}) {
      ConvSpec spec = parse_spec(text);
      spec.dtype = type;
      for (const auto kind : {check::DataKind::exact, check::DataKind::random, check::DataKind::positive}) {
        const check::Data data = check::make_data(spec, kind, 5);
        for (const check::Fill& fill : {data.x, data.w, data.bias}) {
          std::vector<std::byte> expected(static_cast<std::size_t>(kCount * element_bytes(type)));
          check::fill_elements(fill, 0, expected);
          EXPECT_TRUE(made_by_kernel(fill) == expected)
              << text << " " << to_string(type) << " " << check::to_string(kind) << " scale " << fill.scale;
        }
      }
    }
  }
}

TEST(DeviceData, OfActivationGradientsIsTheHosts) {
  for (const char* activation : {"relu", "leaky_relu", "clamp", "silu"}) {
    for (const DataType type : {DataType::f32, DataType::f16, DataType::bf16}) {
      ConvSpec spec = parse_spec(
          "input=1,4,9,9 weight=4,4,3,3 operation=weight_gradient slope=0.125 clamp_min=-3 "
          "clamp_max=20 dy_activation=" +
          std::string(activation));
      spec.dtype = type;
      for (const auto kind : {check::DataKind::exact, check::DataKind::random, check::DataKind::positive}) {
        const check::Data data = check::make_data(spec, kind, 5);
        for (const check::Fill& fill : {data.saved, data.dy}) {
          std::vector<std::byte> expected(static_cast<std::size_t>(kCount * element_bytes(type)));
          check::fill_elements(fill, 0, expected);
          EXPECT_TRUE(made_by_kernel(fill) == expected)
              << activation << " " << to_string(type) << " " << check::to_string(kind) << " offset " << fill.offset;
        }
      }
    }
  }
}

TEST(DeviceData, F16IsRoundedLikeOnTheHost) {
  // Every f16 value below infinity, both its neighbours among floats, and the ties between it and the next.
  for (std::uint16_t bits = 0; bits < 0x7bff; ++bits) {
    const float value = check::from_f16(bits), next = check::from_f16(static_cast<std::uint16_t>(bits + 1));
    const float tie = value + (next - value) / 2;
    for (const float one :
         {value, std::nextafter(value, next), tie, std::nextafter(tie, value), std::nextafter(tie, next)}) {
      ASSERT_EQ(f16_bits(one), check::to_f16(static_cast<double>(one))) << one;
      ASSERT_EQ(f16_bits(-one), check::to_f16(static_cast<double>(-one))) << -one;
    }
  }
}

TEST(DeviceData, CountsNansOfEveryType) {
  const std::vector<float> values = {0, std::numeric_limits<float>::infinity(), std::nanf(""), -std::nanf("1"), -3};
  std::vector<u32> wide(values.size());
  std::memcpy(wide.data(), values.data(), values.size() * sizeof(float));
  u64 found = 0;
  count_nan_32(wide.data(), static_cast<i64>(wide.size()), 0x7f800000u, &found);
  EXPECT_EQ(found, 2u);
  for (const auto& [type, infinity] : {std::pair(DataType::f16, 0x7c00u), std::pair(DataType::bf16, 0x7f80u)}) {
    const std::vector<std::byte> bytes = check::encode(type, values);
    found = 0;
    count_nan_16(reinterpret_cast<const u16*>(bytes.data()), static_cast<i64>(values.size()), infinity, &found);
    EXPECT_EQ(found, 2u) << to_string(type);
  }
}

TEST(DeviceData, GathersAndCompares) {
  const std::vector<u32> wide = {10, 11, 12, 13};
  const std::vector<u16> narrow = {20, 21, 22, 23};
  const std::vector<i64> indices = {3, 0, 3};
  std::vector<u32> out(3);
  gather_32(wide.data(), indices.data(), out.data(), 3);
  EXPECT_EQ(out, (std::vector<u32>{13, 10, 13}));
  gather_16(narrow.data(), indices.data(), out.data(), 3);
  EXPECT_EQ(out, (std::vector<u32>{23, 20, 23}));
  const std::vector<unsigned char> bytes = {255, 255, 0, 255, 254};
  u64 other = 0;
  count_other_bytes(bytes.data(), 5, 255, &other);
  EXPECT_EQ(other, 2u);
}

}  // namespace
}  // namespace jitconv::test
