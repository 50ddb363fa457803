// What the CPU models compute, each against a second way to say the same: the PTX ISA's pseudo code of shuffles, fp16
// by its definition in double.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "host/module_fixture.h"

namespace jitconv::test {
namespace {

class ModelsTest : public ModuleTest {};

/// The lane whose value shfl.sync gives, as the PTX ISA's pseudo code has it.
unsigned ptx_source_lane(const std::string& mode, unsigned lane, unsigned operand, unsigned width) {
  const unsigned segment_mask = (32 - width) & 31;
  const unsigned clamp = mode == "up" ? 0 : 31;
  const unsigned low = lane & segment_mask, high = low | (clamp & ~segment_mask);
  const int b = static_cast<int>(operand & 31), l = static_cast<int>(lane);
  int j = 0;
  bool inside = true;
  if (mode == "up") j = l - b, inside = j >= static_cast<int>(high);
  if (mode == "down") j = l + b, inside = j <= static_cast<int>(high);
  if (mode == "xor") j = l ^ b, inside = j <= static_cast<int>(high);
  if (mode == "index") j = static_cast<int>(low | (operand & ~segment_mask & 31));
  return inside ? static_cast<unsigned>(j) : lane;
}

TEST_P(ModelsTest, ShufflesReadTheLaneThatPtxSays) {
  for (unsigned lane = 0; lane < 32; ++lane) engine_.lanes[lane] = 1000 + lane;
  std::vector<int> parameters(2), out(4);
  const std::string text =
      "extern \"C\" __global__ void probe(const int* in, int* out) {\n"
      "  const int mine = 1000 + threadIdx.x;\n"
      "  out[0] = __shfl_sync(0xffffffffu, mine, in[0], in[1]);\n"
      "  out[1] = __shfl_up_sync(0xffffffffu, mine, in[0], in[1]);\n"
      "  out[2] = __shfl_down_sync(0xffffffffu, mine, in[0], in[1]);\n"
      "  out[3] = __shfl_xor_sync(0xffffffffu, mine, in[0], in[1]);\n}\n";
  run(small_kernel(text, {input("const int*", "in"), input("int*", "out")}), {parameters.data(), out.data()});
  for (int width = 1; width <= 32; width *= 2) {
    for (int operand = 0; operand < 32; ++operand) {
      for (unsigned lane = 0; lane < 32; ++lane) {
        parameters = {operand, width};
        engine_.thread.thread_index.x = lane;
        engine_.run(*module_, "probe", {parameters.data(), out.data()});
        int at = 0;
        for (const char* mode : {"index", "up", "down", "xor"}) {
          const unsigned source =
              ptx_source_lane(mode, lane, static_cast<unsigned>(operand), static_cast<unsigned>(width));
          ASSERT_EQ(out[at++], static_cast<int>(1000 + source))
              << mode << " lane " << lane << " " << operand << "/" << width;
        }
      }
    }
  }
  EXPECT_EQ(module_->line_of(engine_.of(Kind::exchange).at(1).pc), 4);
}

TEST_P(ModelsTest, ShufflesOfEveryTypeAndVotes) {
  engine_.lanes[7] = std::bit_cast<std::uint64_t>(2.5);
  engine_.lanes[9] = std::bit_cast<std::uint32_t>(1.25f);
  const std::string text =
      "extern \"C\" __global__ void probe(double* d, float* f, unsigned* u) {\n"
      "  *d = __shfl_sync(0xffffffffu, 0.0, 7);\n"
      "  *f = __shfl_sync(0x201u, 0.0f, 9);\n"
      "  u[0] = __ballot_sync(0x3ffu, threadIdx.x == 0);\n"
      "  u[1] = __any_sync(0x1u, 0) + 10 * __all_sync(0x1u, 5);\n"
      "  u[2] = __shfl_sync(0x1u, 77u, 3);\n"
      "  __syncwarp(0x3u);\n}\n";
  double d = 0;
  float f = 0;
  unsigned u[3] = {};
  run(small_kernel(text, {input("double*", "d"), input("float*", "f"), input("unsigned*", "u")}), {&d, &f, u});
  EXPECT_EQ(d, 2.5);
  EXPECT_EQ(f, 1.25f);
  EXPECT_EQ(u[0], 0x201u) << "lanes 0 and 9 vote yes; of lane 7 the low half counts, which is 0";
  EXPECT_EQ(u[1], 10u);
  ASSERT_EQ(engine_.of(Kind::undefined).size(), 1u);
  EXPECT_EQ(engine_.of(Kind::undefined)[0].text, "shuffle from a lane that is not in the mask");
  EXPECT_EQ(module_->line_of(engine_.of(Kind::undefined)[0].pc), 6);
  EXPECT_EQ(engine_.of(Kind::exchange).back().address, 0u) << "no bytes: a __syncwarp";
  EXPECT_EQ(engine_.of(Kind::exchange).back().bytes, 3u);
  EXPECT_EQ(module_->line_of(engine_.of(Kind::exchange).back().pc), 7);
}

TEST_P(ModelsTest, MinimumAndMaximumAreThoseOfPtx) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  const struct {
    float a, b;
    std::uint32_t low, high;
  } cases[] = {{1, 2, 0x3f800000, 0x40000000},     {-0.0f, 0.0f, 0x80000000, 0},     {0.0f, -0.0f, 0x80000000, 0},
               {nan, 3, 0x40400000, 0x40400000},   {3, nan, 0x40400000, 0x40400000}, {nan, nan, 0x7fffffff, 0x7fffffff},
               {-inf, inf, 0xff800000, 0x7f800000}};
  const auto source = on_floats("  y[0] = fminf(x[0], x[1]);\n  y[1] = fmaxf(x[0], x[1]);\n");
  module_ = std::make_unique<host::Module>(image(source));
  for (const auto& one : cases) {
    x_[0] = one.a, x_[1] = one.b;
    engine_.run(*module_, "probe", {x_, y_});
    EXPECT_EQ(std::bit_cast<std::uint32_t>(y_[0]), one.low) << one.a << " " << one.b;
    EXPECT_EQ(std::bit_cast<std::uint32_t>(y_[1]), one.high) << one.a << " " << one.b;
  }
}

TEST_P(ModelsTest, FusedMultiplyAddRoundsOnceAndProductsAreNotFused) {
  x_[0] = 1.0f + 0x1p-12f, x_[1] = 1.0f + 0x1p-12f, x_[2] = -1.0f - 0x1p-11f;
  run(on_floats("  y[0] = fmaf(x[0], x[1], x[2]);\n  y[1] = x[0] * x[1] + x[2];\n"), {x_, y_});
  EXPECT_EQ(y_[0], 0x1p-24f);
  EXPECT_EQ(y_[1], 0.0f);
}

/// fp16 by its definition, in double: nothing in common with the model's integers.
double half_value(unsigned bits) {
  const unsigned exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double magnitude = exponent == 0    ? std::ldexp(fraction, -24)
                           : exponent == 31 ? (fraction != 0 ? NAN : INFINITY)
                                            : std::ldexp(1024 + fraction, static_cast<int>(exponent) - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

/// The nearest fp16, of two the even one.
unsigned nearest_half(float value) {
  if (std::isnan(value)) return 0x7fff;
  const unsigned sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::fabs(static_cast<double>(value));
  unsigned low = 0, high = 0x7c00;  // low <= magnitude, and high is above it, with 65536 in place of infinity
  const auto at = [](unsigned bits) { return bits == 0x7c00 ? 65536.0 : half_value(bits); };
  if (magnitude >= 65536.0) return sign | 0x7c00;
  while (high - low > 1) {
    const unsigned middle = (low + high) / 2;
    (at(middle) <= magnitude ? low : high) = middle;
  }
  const double below = magnitude - at(low), above = at(high) - magnitude;
  if (below == above) return sign | (low % 2 == 0 ? low : high);
  return sign | (below < above ? low : high);
}

TEST_P(ModelsTest, EveryHalfBecomesTheFloatOfItsValue) {
  const std::string text = device("device/element_f16.cuh") +
                           "extern \"C\" __global__ void probe(const Element* x, float* y) {\n"
                           "  for (int i = 0; i < 65536; ++i) y[i] = to_float(x[i]);\n}\n";
  std::vector<std::uint16_t> halves(65536);
  for (std::size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<std::uint16_t>(i);
  std::vector<float> floats(halves.size());
  run(small_kernel(text, {input("const Element*", "x"), input("float*", "y")}), {halves.data(), floats.data()});
  for (unsigned i = 0; i < 65536; ++i) {
    const auto value = static_cast<float>(half_value(i));
    const std::uint32_t expected = std::isnan(value) ? 0x7fffffffu : std::bit_cast<std::uint32_t>(value);
    ASSERT_EQ(std::bit_cast<std::uint32_t>(floats[i]), expected) << i;
  }
}

TEST_P(ModelsTest, EveryFloatBecomesTheNearestHalf) {
  const std::string text = device("device/element_f16.cuh") +
                           "extern \"C\" __global__ void probe(const float* x, Element* y, const int* count) {\n"
                           "  for (int i = 0; i < *count; ++i) y[i] = from_float(x[i]);\n}\n";
  std::vector<float> floats;
  const auto add = [&](double value) {  // with its neighbours, which a wrong tie would confuse
    const auto middle = static_cast<float>(value);
    for (const float one : {middle, std::nextafter(middle, INFINITY), std::nextafter(middle, -INFINITY)})
      floats.insert(floats.end(), {one, -one});
  };
  for (unsigned i = 0; i < 0x7c00; ++i) {
    const double next = i == 0x7bff ? 65536.0 : half_value(i + 1);
    add(half_value(i));
    add((half_value(i) + next) / 2);
  }
  std::mt19937 random(3);
  for (int i = 0; i < 200000; ++i) floats.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
  for (const float one : {INFINITY, -INFINITY, NAN, -NAN, 0x1p-149f, -0x1p-149f, 3.4e38f}) floats.push_back(one);
  floats.push_back(std::bit_cast<float>(0x7f800001u));  // a signalling NaN
  std::vector<std::uint16_t> halves(floats.size());
  int count = static_cast<int>(floats.size());
  run(small_kernel(text, {input("const float*", "x"), input("Element*", "y"), input("const int*", "count")}),
      {floats.data(), halves.data(), &count});
  for (std::size_t i = 0; i < floats.size(); ++i) ASSERT_EQ(halves[i], nearest_half(floats[i])) << floats[i];
}

/// The nearest number of 11 significant bits, of two the even one.
float nearest_tf32(float value) {
  if (value == 0.0f || std::isinf(value)) return value;
  int exponent = 0;
  std::frexp(value, &exponent);
  const int last = std::max(exponent - 11, -136);  // of the last place
  const double places = std::ldexp(static_cast<double>(value), -last);
  return static_cast<float>(std::ldexp(std::nearbyint(places), last));
}

TEST_P(ModelsTest, OperandsAreTheNearestTf32) {
  const std::string text = device("device/element_f32.cuh") + device("device/operand_tf32.cuh") +
                           "extern \"C\" __global__ void probe(const float* x, uint4* y, const int* count) {\n"
                           "  for (int i = 0; i < *count; i += 4) y[i / 4] = operand_row(x + i);\n}\n";
  std::vector<float> floats;
  std::mt19937 random(9);
  for (int i = 0; i < 100000; ++i) {
    const auto bits = static_cast<std::uint32_t>(random());
    for (const std::uint32_t near :
         {bits, (bits & ~0x1fffu) | 0x1000u, (bits & ~0x1fffu) | 0x0fffu, bits & 0x807fffffu})
      floats.push_back(std::bit_cast<float>(near));
  }
  for (const float one : {3.4e38f, -3.4e38f, INFINITY, 0.0f}) floats.push_back(one);
  std::vector<std::uint32_t> rows(floats.size());
  int count = static_cast<int>(floats.size());
  run(small_kernel(text, {input("const float*", "x"), input("uint4*", "y"), input("const int*", "count")}),
      {floats.data(), rows.data(), &count});
  for (std::size_t i = 0; i < floats.size(); ++i) {
    if (std::isnan(floats[i])) {
      // As recorded from an H200: every NaN becomes this one.
      ASSERT_EQ(rows[i], 0x7fffe000u);
    } else {
      ASSERT_EQ(rows[i], std::bit_cast<std::uint32_t>(nearest_tf32(floats[i]))) << floats[i];
    }
  }
}

TEST_P(ModelsTest, LoadsThatAreOffReadNothing) {
  const std::string text = device("device/element_f32.cuh") + device("device/load_32bit.cuh") +
                           "extern \"C\" __global__ void probe(const float* x, float* y) {\n"
                           "  y[0] = load_if<3>(x, true);\n"
                           "  y[1] = load_if<-1>(x + 1, true);\n"
                           "  y[2] = load_if<0>(x + (1 << 20), false);\n}\n";
  x_[0] = 5.0f, x_[3] = 7.0f, y_[2] = 1.0f;
  run(small_kernel(text, {input("const float*", "x"), input("float*", "y")}), {x_, y_});
  EXPECT_EQ(y_[0], 7.0f);
  EXPECT_EQ(y_[1], 5.0f);
  EXPECT_EQ(y_[2], 0.0f);
  const std::string loads = accesses(Kind::load, x_);
  EXPECT_NE(loads.find("4@12"), std::string::npos) << loads;
  EXPECT_EQ(std::count(loads.begin(), loads.end(), '@'), 2) << loads;
}

TEST_P(ModelsTest, StoresOfAllElementsAreOneAccess) {
  for (const bool half : {false, true}) {
    const std::string element = half ? "f16" : "f32", width = half ? "16" : "32";
    const std::string text = device(("device/element_" + element + ".cuh").c_str()) +
                             (half ? device("device/pair_f16.cuh") : "") +
                             device(("device/store_" + width + "bit.cuh").c_str()) +
                             "extern \"C\" __global__ void probe(const float* x, Element* y) {\n"
                             "  float value[kStoreElements];\n"
                             "  for (int i = 0; i < kStoreElements; ++i) value[i] = x[i];\n"
                             "  store_elements(y, value, (1u << kStoreElements) - 1);\n"
                             "  store_elements(y + kStoreElements, value, 5u);\n}\n";
    for (int i = 0; i < 8; ++i) x_[i] = static_cast<float>(i + 1);
    std::fill(std::begin(y_), std::end(y_), 0.0f);
    engine_ = RecordingEngine();
    run(small_kernel(text, {input("const float*", "x"), input("Element*", "y")}), {x_, y_});
    std::string stores;
    for (const Event& event : engine_.of(Kind::store))
      if (const std::uintptr_t at = event.address - reinterpret_cast<std::uintptr_t>(y_); at < sizeof(y_))
        stores += fmt::format("{}@{} ", event.bytes, at);
    EXPECT_EQ(stores, half ? "16@0 2@16 2@20 " : "16@0 4@16 4@24 ");
    const auto* const halves = reinterpret_cast<const std::uint16_t*>(y_);
    const auto expect = [&](int at, float value) {
      if (half) {
        EXPECT_EQ(halves[at], nearest_half(value)) << at;
      } else {
        EXPECT_EQ(y_[at], value) << at;
      }
    };
    const int elements = half ? 8 : 4;
    for (int i = 0; i < elements; ++i) {
      expect(i, static_cast<float>(i + 1));
      expect(elements + i, i == 0 || i == 2 ? static_cast<float>(i + 1) : 0.0f);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Found, ModelsTest, ::testing::ValuesIn(compilers()),
                         [](const auto& one) { return kind_name(one.param); });

}  // namespace
}  // namespace jitconv::test
