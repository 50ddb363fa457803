// Test data: reproducible, of the type's values, spread as promised, and exact where they say so.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <set>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <vector>

#include "support/no_threads.h"
#include "tools/check/data.h"
#include "tools/check/number.h"
#include "tools/check/parallel.h"
#include "tools/check/reference.h"

namespace jitconv::check {
namespace {

ConvSpec with_reduction(DataType type, std::int64_t channels, std::int64_t taps) {
  ConvSpec spec;
  spec.dtype = type;
  spec.input = {1, channels, 2 * taps, taps};
  spec.weight = {8, channels, taps, taps};
  spec.epilogue.bias = spec.epilogue.residual = true;
  return spec;
}

constexpr DataType kTypes[] = {DataType::f32, DataType::f16, DataType::bf16};

TEST(ParallelFor, CoversEveryIndexOnce) {
  for (const std::int64_t count : {0, 1, 2, 3, 7, 64, 1001}) {
    for (const std::int64_t grain : {0, 1, 3, 5000}) {
      std::vector<std::atomic<int>> visits(static_cast<std::size_t>(count));
      parallel_for(count, grain, [&visits](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) ++visits[static_cast<std::size_t>(i)];
      });
      for (const std::atomic<int>& visit : visits) ASSERT_EQ(visit, 1) << count << " " << grain;
    }
  }
}

TEST(ParallelFor, ThrowsWhatTheBodyThrew) {
  const auto body = [](std::int64_t, std::int64_t) { throw std::out_of_range("here"); };
  EXPECT_THROW(parallel_for(100, 1, body), std::out_of_range);
  EXPECT_THROW(parallel_for(1, 1, body), std::out_of_range);
}

TEST(ParallelFor, WithoutThreadsTheCallerDoesTheWork) {
  const test::NoThreads none;
  EXPECT_THROW(std::thread([] {}).join(), std::system_error);
  std::vector<int> visits(1001);
  parallel_for(1001, 1, [&visits](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) ++visits[static_cast<std::size_t>(i)];
  });
  EXPECT_EQ(visits, std::vector<int>(1001, 1));
}

TEST(CheckData, BulkAndSingleElementsAgree) {
  for (const DataType type : kTypes) {
    for (const DataKind kind : {DataKind::exact, DataKind::random, DataKind::positive}) {
      const Fill fill = make_data(with_reduction(type, 16, 3), kind, 42).x;
      constexpr std::int64_t count = 200'001, first = (std::int64_t{1} << 33) + 5;
      std::vector<std::byte> bytes(static_cast<std::size_t>(count * element_bytes(type)));
      fill_elements(fill, first, bytes);
      const std::vector<float> values = decode(type, bytes);
      for (std::int64_t i = 0; i < count; i += 997) ASSERT_EQ(values[static_cast<std::size_t>(i)], fill(first + i));
      const std::vector<float> start = values_of(fill, count);
      for (std::int64_t i = 0; i < count; i += 991) ASSERT_EQ(start[static_cast<std::size_t>(i)], fill(i));
    }
  }
}

TEST(CheckData, SeedsAndTensorsDiffer) {
  const ConvSpec spec = with_reduction(DataType::f32, 16, 3);
  const Data one = make_data(spec, DataKind::random, 1), two = make_data(spec, DataKind::random, 2);
  EXPECT_EQ(one.x, make_data(spec, DataKind::random, 1).x);
  std::set<float> first;
  for (const Fill& fill : {one.x, one.w, one.bias, one.residual, two.x, two.w, two.bias, two.residual}) {
    first.insert(fill(0) / fill.scale);
  }
  EXPECT_EQ(first.size(), 8u);
}

TEST(CheckData, RealsAreUniformInTheirRange) {
  for (const DataType type : kTypes) {
    Fill fill;
    fill.type = type;
    fill.scale = 0.25f;
    fill.seed = 3;
    constexpr int count = 100'000;
    for (const bool positive : {false, true}) {
      fill.kind = positive ? DataKind::positive : DataKind::random;
      double sum = 0, squares = 0, least = 1, most = -1;
      for (int i = 0; i < count; ++i) {
        const double value = static_cast<double>(fill(i));
        ASSERT_EQ(round_to(type, value), value);
        sum += value;
        squares += value * value;
        least = std::min(least, value);
        most = std::max(most, value);
      }
      EXPECT_NEAR(sum / count, positive ? 0.125 : 0, 0.002);
      EXPECT_NEAR(squares / count, 0.0625 / 3, 0.0005);
      EXPECT_GE(least, positive ? 0 : -0.25);
      EXPECT_LE(most, 0.25);
    }
  }
}

TEST(CheckData, ExactValuesAreNonzeroIntegersOfBothSigns) {
  Fill fill;
  fill.kind = DataKind::exact;
  fill.range = 3;
  std::set<float> seen;
  for (int i = 0; i < 10'000; ++i) seen.insert(fill(i));
  EXPECT_EQ(seen, (std::set<float>{-3, -2, -1, 1, 2, 3}));
  fill.keep = 1u << 29;
  int kept = 0;
  for (int i = 0; i < 10'000; ++i) kept += fill(i) != 0 ? 1 : 0;
  EXPECT_NEAR(kept, 2'500, 200);
}

TEST(CheckData, ExactDataOfF32CannotLeaveTheExactRange) {
  for (const std::int64_t channels : {1, 3, 64, 1000, 20'000, 800'000}) {
    const ConvSpec spec = with_reduction(DataType::f32, channels, 3);
    const Data data = make_data(spec, DataKind::exact, 5);
    ASSERT_EQ(data.x.keep, 1u << 31);
    const double worst = static_cast<double>(reduction_length(spec)) * data.x.range * data.w.range + data.bias.range +
                         data.residual.range;
    EXPECT_LE(worst, 0x1p24) << channels;
    EXPECT_GE(data.x.range * data.w.range, channels <= 1000 ? 500u : 1u) << channels;
  }
}

TEST(CheckData, ExactDataOfLongReductionsIsThinnedIntoRange) {
  for (const DataType type : kTypes) {
    for (const std::int64_t channels : {4, 400, 40'000}) {
      const ConvSpec spec = with_reduction(type, channels, 5);
      const Data data = make_data(spec, DataKind::exact, 6);
      const double limit = type == DataType::f16 ? 65504 : 0x1p24;
      int zeros = 0;
      const std::vector<Expected> results = reference(spec, data);
      for (const Expected& result : results) {
        EXPECT_LE(result.magnitude + result.addends, limit);
        zeros += result.z == 0 ? 1 : 0;
      }
      EXPECT_LT(4 * zeros, static_cast<int>(results.size()));
    }
  }
}

TEST(CheckData, RandomOutputsAreAboutOne) {
  for (const std::int64_t channels : {1, 16, 512}) {
    const ConvSpec spec = with_reduction(DataType::f32, channels, 5);
    const std::vector<Expected> results = reference(spec, make_data(spec, DataKind::random, 8));
    double squares = 0;
    for (const Expected& result : results) squares += result.z * result.z;
    const double deviation = std::sqrt(squares / static_cast<double>(results.size()));
    EXPECT_GT(deviation, 0.5);
    EXPECT_LT(deviation, 3);
  }
}

}  // namespace
}  // namespace jitconv::check
