// The CPU as a Device, apart from launches: the data it makes and counts are those of tools/check.
#include "tools/host_device.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "tools/check/number.h"

namespace jitconv::tools {
namespace {

HostDevice& device() {
  static HostDevice one(Target::host());
  return one;
}

TEST(HostDeviceTest, SaysWhatItIs) {
  EXPECT_EQ(device().properties().target.arch(), "sm_90a");
  EXPECT_FALSE(device().properties().name.empty());
  EXPECT_FALSE(device().properties().driver.empty()) << "which compiler";
  EXPECT_GT(device().free_bytes(), 1 << 20);
}

TEST(HostDeviceTest, MemoryIsAlignedAsAGpusIs) {
  for (const std::int64_t bytes : {1, 100, 5000}) {
    const Buffer buffer(device(), bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 256, 0u);
  }
  EXPECT_THROW(Buffer(device(), std::int64_t{1} << 60), CudaError);
}

TEST(HostDeviceTest, MakesTheDataOfTheChecks) {
  for (const DataType type : {DataType::f32, DataType::f16, DataType::bf16}) {
    ConvSpec spec = parse_spec("input=1,4,8,8 weight=4,4,3,3");
    spec.dtype = type;
    const check::Fill fill = check::make_data(spec, check::DataKind::random, 3).x;
    constexpr std::int64_t kCount = 1000;
    std::vector<std::byte> expected(static_cast<std::size_t>(kCount * element_bytes(type))), made(expected.size());
    check::fill_elements(fill, 0, expected);
    const Buffer buffer(device(), static_cast<std::int64_t>(made.size()));
    device().generate(buffer.data(), kCount, fill);
    device().download(made.data(), buffer.data(), buffer.bytes());
    EXPECT_EQ(made, expected) << to_string(type);
  }
}

TEST(HostDeviceTest, GathersBitsAndCountsNans) {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> values = {0, infinity, std::nanf(""), -std::nanf("1"), -3, -infinity};
  for (const DataType type : {DataType::f32, DataType::f16, DataType::bf16}) {
    const std::vector<std::byte> bytes = check::encode(type, values);
    const Buffer buffer(device(), static_cast<std::int64_t>(bytes.size()));
    device().upload(buffer.data(), bytes.data(), buffer.bytes());
    EXPECT_EQ(device().count_nan(buffer.data(), type, 6), 2) << to_string(type);
    const std::vector<std::int64_t> indices = {4, 0, 4};
    std::vector<std::uint32_t> bits(3);
    device().gather(buffer.data(), type, indices, bits);
    EXPECT_EQ(bits[0], bits[2]);
    EXPECT_EQ(bits[1], 0u);
    const std::uint32_t minus_three = type == DataType::f32 ? 0xc0400000u : type == DataType::f16 ? 0xc200u : 0xc040u;
    EXPECT_EQ(bits[0], minus_three) << to_string(type);
  }
}

TEST(HostDeviceTest, CountsBytesThatDiffer) {
  const Buffer buffer(device(), 100);
  device().set_bytes(buffer.data(), 0xff, 100);
  EXPECT_EQ(device().count_other_bytes(buffer.data(), 0xff, 100), 0);
  static_cast<char*>(buffer.data())[99] = 0;
  EXPECT_EQ(device().count_other_bytes(buffer.data(), 0xff, 100), 1);
  EXPECT_EQ(device().count_other_bytes(buffer.data(), 0xff, 99), 0);
}

TEST(HostDeviceTest, TimesOnlyTheWork) {
  int before = 0, work = 0;
  const std::vector<double> ms = device().time_ms([&] { ++before; }, [&] { ++work; }, 3);
  EXPECT_EQ(ms.size(), 3u);
  EXPECT_EQ(before, 3);
  EXPECT_EQ(work, 3);
}

}  // namespace
}  // namespace jitconv::tools
