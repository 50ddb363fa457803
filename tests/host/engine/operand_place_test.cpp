// What a multiplication reads, by its descriptors, to the byte: each piece of 16 bytes is stored to while one is under
// way, and left unwritten before one; and descriptors that are none.
#include "host/operand_place.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "host/compiler.h"
#include "host/engine.h"
#include "host/module.h"
#include "support/multiply_text.h"

namespace jitconv::test {
namespace {

using host::Landing;
using host::OperandPlace;
using host::Rule;

constexpr int kWidth = 8;
constexpr std::uint32_t kSharedBytes = 12288, kPlainB = 8192;

// order[0], order[1]: the operands. order[2]: of the 16 bytes that nobody writes. order[3]: of the word that a thread
// stores while the multiplication is under way. Both -1 for none.
const char kPlacesKernel[] = R"(
extern "C" __global__ void probe(const long long* order, float* y) {
  extern __shared__ __align__(1024) unsigned char shared[];
  const int thread = static_cast<int>(threadIdx.x);
  for (int i = thread * 16; i < kSharedBytes; i += 128 * 16)
    if (i != order[2]) *reinterpret_cast<uint4*>(shared + i) = make_uint4(0, 0, 0, 0);
  fence_async_proxy();
  __syncthreads();
  float sum[kColumns / 2];
#pragma unroll
  for (int i = 0; i < kColumns / 2; ++i) sum[i] = 1.0f;
  multiply_begin();
  multiply(sum, static_cast<MatrixOperand>(order[0]), static_cast<MatrixOperand>(order[1]), 0);
  multiply_commit();
  if (thread == 77 && order[3] >= 0) *reinterpret_cast<unsigned*>(shared + order[3]) = 5;
  multiply_wait<0>();
#pragma unroll
  for (int i = 0; i < kColumns / 2; ++i) y[thread * kColumns / 2 + i] = sum[i];
}
)";

const host::Module& module() {
  static const host::Module made = [] {
    codegen::KernelSource source;
    source.text = std::string(codegen::embedded_text("device/warpgroup.cuh")) +
                  std::string(codegen::embedded_text("device/swizzled_operand.cuh")) +
                  test::multiply_text("device/multiply_tf32.cuh", kWidth) +
                  fmt::format("constexpr int kColumns = {}, kSharedBytes = {};\n", kWidth, kSharedBytes) +
                  kPlacesKernel;
    codegen::KernelEntry entry;
    entry.name = "probe";
    entry.arguments = {{codegen::Tensor::x, "const long long*", "order"}, {codegen::Tensor::y, "float*", "y"}};
    source.entries.push_back(entry);
    const host::Compiler compiler = host::find_compiler();
    return host::Module(
        host::compile_module(compiler, source, host::compile_options(compiler, host::Purpose::check)).image);
  }();
  return made;
}

struct PlaceOrder {
  std::uint64_t a, b;
  std::int64_t unwritten = -1, stored = -1;
};

std::vector<host::Finding> findings(const PlaceOrder& order, Landing landing = Landing::early) {
  PlaceOrder given = order;
  std::vector<float> y(128 * kWidth / 2);
  host::Launch launch;
  launch.entry = "probe";
  launch.threads = 128;
  launch.shared_bytes = kSharedBytes;
  launch.buffers = {{"order", &given, sizeof(given), false},
                    {"y", y.data(), static_cast<std::int64_t>(y.size() * sizeof(float)), true}};
  return host::execute(module(), launch, {.seed = 3, .landing = landing}).findings;
}

std::uint64_t plain(std::uint64_t first, std::uint64_t right_half) {
  return first / 16 | right_half / 16 << 16 | 8ull << 32;
}
/// `step` 0: eight rows follow eight rows.
std::uint64_t swizzled(std::uint64_t first, std::uint64_t step = 0, std::uint64_t row_bytes = 128) {
  const std::uint64_t layout = row_bytes == 128 ? 1 : row_bytes == 64 ? 2 : 3;
  return first / 16 | (step != 0 ? step : 8 * row_bytes) / 16 << 32 | layout << 62;
}

/// Where the 16-byte pieces of a swizzled operand are, straight from the rule of the hardware: the address without
/// swizzle, its bits from 4 on changed by its bits from 7 on: three, two or one.
std::set<std::int64_t> pieces(std::int64_t first, std::int64_t step, int rows, std::int64_t row_bytes = 128) {
  const std::int64_t mask = row_bytes == 128 ? 7 : row_bytes == 64 ? 3 : 1;
  std::set<std::int64_t> all;
  for (int row = 0; row < rows; ++row)
    for (int half = 0; half < 2; ++half) {
      const std::int64_t at = first + row / 8 * step + row % 8 * row_bytes + half * 16;
      all.insert(at ^ (at >> 7 & mask) << 4);
    }
  return all;
}

std::set<std::int64_t> visited(std::uint64_t descriptor, std::uint32_t rows) {
  std::set<std::int64_t> all;
  OperandPlace(descriptor).visit_runs(rows, [&all](std::uint32_t, std::uint32_t offset, std::uint32_t bytes) {
    for (std::uint32_t at = offset; at < offset + bytes; at += 16) EXPECT_TRUE(all.insert(at).second) << at;
    return true;
  });
  return all;
}

TEST(OperandPlaces, OfSwizzledOperandsAreThoseOfTheHardware) {
  for (const std::int64_t row_bytes : {32, 64, 128})
    for (const std::int64_t first_row : {0, 1, 3, 8, 13, 31})
      for (std::int64_t piece = 0; piece < row_bytes / 16; piece += 2)
        for (const std::int64_t step : {8 * row_bytes, 24 * row_bytes})
          for (const int rows : {8, 64, 256}) {
            const std::int64_t first = 5120 + first_row * row_bytes + piece * 16;
            const std::uint64_t descriptor =
                swizzled(static_cast<std::uint64_t>(first), static_cast<std::uint64_t>(step),
                         static_cast<std::uint64_t>(row_bytes));
            EXPECT_FALSE(OperandPlace(descriptor).refusal().has_value());
            EXPECT_EQ(visited(descriptor, static_cast<std::uint32_t>(rows)), pieces(first, step, rows, row_bytes));
          }
}

TEST(OperandPlaces, DoNotDependOnTheRightHalfIfSwizzled) {
  const std::uint64_t with_field = swizzled(1024 + 64) | 0x1235ull << 16;
  EXPECT_FALSE(OperandPlace(with_field).refusal().has_value());
  EXPECT_EQ(visited(with_field, 64), visited(swizzled(1024 + 64), 64));
}

// Every piece of some rows: a store to one that is read is found, one to its neighbour is not.
TEST(OperandPlaces, AreWhatMayNotBeStoredTo) {
  struct PlaceCase {
    std::int64_t first, row_bytes;
  };
  for (const auto& [first, row_bytes] :
       {PlaceCase{0, 128}, {6 * 16, 128}, {3 * 128 + 32, 128}, {13 * 64, 64}, {5 * 32, 32}}) {
    const PlaceOrder order{swizzled(static_cast<std::uint64_t>(first), 0, static_cast<std::uint64_t>(row_bytes)),
                           plain(kPlainB + 1024, 144)};
    const std::set<std::int64_t> read = pieces(first, 8 * row_bytes, 64, row_bytes);
    for (const Landing landing : {Landing::early, Landing::late}) {
      EXPECT_TRUE(findings(order, landing).empty());
      for (const std::int64_t row : {0, 13, 63}) {
        // All around the row, which is in the 128 bytes that begin here or in the next.
        const std::int64_t begin = (first + row * row_bytes) / 128 * 128;
        for (std::int64_t at = begin; at < begin + 256; at += 16) {
          PlaceOrder stored = order;
          stored.stored = at + 12;
          const std::vector<host::Finding> found = findings(stored, landing);
          ASSERT_EQ(found.size(), read.count(at)) << at;
          for (const host::Finding& one : found) EXPECT_EQ(one.rule, Rule::unfinished_multiplication) << to_string(one);
        }
      }
    }
  }
}

TEST(OperandPlaces, AreWhatMustHaveBeenWritten) {
  for (const std::int64_t row_bytes : {32, 64, 128}) {
    const std::int64_t first = 1024 + 11 * row_bytes + (row_bytes > 32 ? 32 : 0);
    const PlaceOrder order{plain(8192, 1024),
                           swizzled(static_cast<std::uint64_t>(first), 0, static_cast<std::uint64_t>(row_bytes))};
    const std::set<std::int64_t> read = pieces(first, 0, kWidth, row_bytes);
    for (std::int64_t at = 0; at < 4096; at += 16) {
      PlaceOrder unwritten = order;
      unwritten.unwritten = at;
      const std::vector<host::Finding> found = findings(unwritten);
      ASSERT_EQ(found.size(), read.count(at)) << at;
      for (const host::Finding& one : found) EXPECT_EQ(one.rule, Rule::uninitialised) << to_string(one);
    }
  }
}

TEST(OperandPlaces, LieInsideSharedMemory) {
  const std::uint64_t b = plain(kPlainB, 144);
  EXPECT_TRUE(findings({swizzled(kSharedBytes - 64 * 128 + 96), b}).empty());
  const std::vector<host::Finding> found = findings({swizzled(kSharedBytes - 56 * 128), b});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found.front().rule, Rule::out_of_bounds);
  EXPECT_NE(to_string(found.front()).find("rows of an operand from 56 on are at shared + 0x3000"), std::string::npos)
      << to_string(found.front());
}

TEST(OperandPlaces, AreRefusedByWhatNoGpuConfirmed) {
  struct PlaceCase {
    std::uint64_t descriptor;
    Rule rule;
    std::string words;
  };
  const std::uint64_t good = swizzled(1024);
  std::vector<PlaceCase> cases = {
      {swizzled(1024, 512), Rule::misaligned, "eight rows of 128 bytes of a swizzled operand begin 512 bytes behind"},
      {swizzled(1024, 1040), Rule::misaligned, "begin 1040 bytes behind the eight before them: no multiple of 1024"},
      {swizzled(1024, 256, 64), Rule::misaligned, "begin 256 bytes behind the eight before them: no multiple of 512"},
      {swizzled(1024, 128, 32), Rule::misaligned, "begin 128 bytes behind the eight before them: no multiple of 256"},
      {good + 1, Rule::misaligned, "begins 16 bytes into its rows"},
      {good + 7, Rule::misaligned, "begins 112 bytes into its rows"},
      {swizzled(1024, 0, 64) + 3, Rule::misaligned, "begins 48 bytes into its rows"},
      {swizzled(1024, 0, 32) + 1, Rule::misaligned, "begins 16 bytes into its rows: no multiple of 32"},
  };
  // What lies between the fields, and the base's offset (bits 49 to 51).
  for (const unsigned bit : {14u, 15u, 30u, 31u, 46u, 47u, 48u, 49u, 50u, 51u, 52u, 61u}) {
    for (const std::uint64_t descriptor : {good, plain(1024, 1024), swizzled(1024, 0, 64), swizzled(1024, 0, 32)})
      cases.push_back({descriptor | std::uint64_t{1} << bit, Rule::out_of_bounds,
                       "is none without swizzle and none with one that begins where its rows do"});
  }
  for (const PlaceCase& one : cases) {
    const auto refusal = OperandPlace(one.descriptor).refusal();
    ASSERT_TRUE(refusal.has_value()) << fmt::format("{:#x}", one.descriptor);
    EXPECT_EQ(refusal->rule, one.rule) << refusal->text;
    EXPECT_NE(refusal->text.find(one.words), std::string::npos) << refusal->text;
  }
  EXPECT_FALSE(OperandPlace(plain(16, 48)).refusal().has_value());
  const std::vector<host::Finding> found = findings({plain(0, 1024), good + 1});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found.front().rule, Rule::misaligned);
}

// An operand whose rows in memory are pixels: 16 of them, in two runs, for each part of its rows or columns.
TEST(OperandPlaces, OfPixelsAreWholeRows) {
  for (const std::int64_t row_bytes : {32, 64, 128}) {
    const std::int64_t next = 3 * row_bytes, step = 11 * row_bytes, first = 1024 + 5 * row_bytes;
    const std::uint64_t descriptor = swizzled(static_cast<std::uint64_t>(first), static_cast<std::uint64_t>(step),
                                              static_cast<std::uint64_t>(row_bytes)) |
                                     static_cast<std::uint64_t>(next / 16) << 16;
    const OperandPlace place(descriptor, host::OperandOrder::mn_major);
    EXPECT_FALSE(place.refusal().has_value());
    std::set<std::int64_t> read, expected;
    place.visit_runs(128, [&read](std::uint32_t, std::uint32_t offset, std::uint32_t bytes) {
      for (std::uint32_t at = offset; at < offset + bytes; at += 16) read.insert(at);
      return true;
    });
    for (std::int64_t part = 0; part < 256 / row_bytes; ++part)
      for (std::int64_t pixel = 0; pixel < 16; ++pixel)
        for (std::int64_t at = 0; at < row_bytes; at += 16)
          expected.insert(first + part * next + pixel / 8 * step + pixel % 8 * row_bytes + at);
    EXPECT_EQ(read, expected);
  }
}

TEST(OperandPlaces, OfPixelsThatNoGpuWasSeenToReadAreRefused) {
  const auto refusal = [](std::uint64_t descriptor) {
    const auto found = OperandPlace(descriptor, host::OperandOrder::mn_major).refusal();
    return found ? found->text : "";
  };
  EXPECT_NE(refusal(plain(1024, 1024)).find("is not swizzled"), std::string::npos);
  EXPECT_NE(refusal(swizzled(1024 + 64)).find("begins at 1088 bytes"), std::string::npos);
  EXPECT_NE(refusal(swizzled(1024, 1088)).find("next eight pixels at 1088 bytes"), std::string::npos);
  EXPECT_NE(refusal(swizzled(1024) | 4ull << 16).find("next channels at 64 bytes"), std::string::npos);
  EXPECT_EQ(refusal(swizzled(1024)), "");
}

}  // namespace
}  // namespace jitconv::test
