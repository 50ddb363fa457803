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

#include "codegen/emit_tensor.h"
#include "host/compiler.h"
#include "host/engine.h"
#include "host/module.h"

namespace jitconv::test {
namespace {

using host::Landing;
using host::OperandPlace;
using host::Rule;

constexpr int kColumns = 8;
constexpr std::uint32_t kSharedBytes = 12288, kPlainB = 8192;

// order[0], order[1]: the operands. order[2]: of the 16 bytes that nobody writes. order[3]: of the word that a thread
// stores while the multiplication is under way. Both -1 for none.
const char kKernel[] = R"(
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
                  codegen::multiply_text("device/multiply_tf32.cuh", kColumns) +
                  fmt::format("constexpr int kColumns = {}, kSharedBytes = {};\n", kColumns, kSharedBytes) + kKernel;
    codegen::KernelEntry entry;
    entry.name = "probe";
    entry.arguments = {{codegen::ArgumentRole::x, "const long long*", "order"},
                       {codegen::ArgumentRole::y, "float*", "y"}};
    source.entries.push_back(entry);
    const host::Compiler compiler = host::find_compiler();
    return host::Module(
        host::compile_module(compiler, source, host::compile_options(compiler, host::Purpose::check)).image);
  }();
  return made;
}

struct Order {
  std::uint64_t a, b;
  std::int64_t unwritten = -1, stored = -1;
};

std::vector<host::Finding> findings(const Order& order, Landing landing = Landing::early) {
  Order given = order;
  std::vector<float> y(128 * kColumns / 2);
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
std::uint64_t swizzled(std::uint64_t first, std::uint64_t step = 1024) {
  return first / 16 | step / 16 << 32 | std::uint64_t{1} << 62;
}

/// Where the 16-byte pieces of a swizzled operand are, straight from the rule of the hardware: the address without
/// swizzle, its bits 4 to 6 changed by its bits 7 to 9.
std::set<std::int64_t> pieces(std::int64_t first, std::int64_t step, int rows) {
  std::set<std::int64_t> all;
  for (int row = 0; row < rows; ++row)
    for (int half = 0; half < 2; ++half) {
      const std::int64_t at = first + row / 8 * step + row % 8 * 128 + half * 16;
      all.insert(at ^ (at >> 7 & 7) << 4);
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
  for (const int piece : {0, 2, 4, 6})
    for (const int step : {1024, 3072})
      for (const int rows : {8, 64, 256})
        EXPECT_EQ(visited(swizzled(5120 + static_cast<std::uint64_t>(piece) * 16, static_cast<std::uint64_t>(step)),
                          static_cast<std::uint32_t>(rows)),
                  pieces(5120 + piece * 16, step, rows));
}

TEST(OperandPlaces, DoNotDependOnTheRightHalfIfSwizzled) {
  const std::uint64_t with_field = swizzled(1024 + 64) | 0x1235ull << 16;
  EXPECT_FALSE(OperandPlace(with_field).refusal().has_value());
  EXPECT_EQ(visited(with_field, 64), visited(swizzled(1024 + 64), 64));
}

// Of some rows, every piece: a store to one that is read is found, one to its neighbour is not.
TEST(OperandPlaces, AreWhatMayNotBeStoredTo) {
  for (const int piece : {0, 6}) {
    const Order order{swizzled(static_cast<std::uint64_t>(piece) * 16), plain(kPlainB, 144)};
    const std::set<std::int64_t> read = pieces(piece * 16, 1024, 64);
    for (const Landing landing : {Landing::early, Landing::late}) {
      EXPECT_TRUE(findings(order, landing).empty());
      for (const std::int64_t row : {0, 13, 63}) {
        for (std::int64_t at = row * 128; at < row * 128 + 128; at += 16) {
          Order stored = order;
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
  const Order order{plain(8192, 1024), swizzled(1024 + 32)};
  const std::set<std::int64_t> read = pieces(1024 + 32, 1024, kColumns);
  for (std::int64_t at = 0; at < 3072; at += 16) {
    Order unwritten = order;
    unwritten.unwritten = at;
    const std::vector<host::Finding> found = findings(unwritten);
    ASSERT_EQ(found.size(), read.count(at)) << at;
    for (const host::Finding& one : found) EXPECT_EQ(one.rule, Rule::uninitialised) << to_string(one);
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
  struct Case {
    std::uint64_t descriptor;
    Rule rule;
    std::string words;
  };
  const std::uint64_t good = swizzled(1024);
  std::vector<Case> cases = {
      {good + 8, Rule::misaligned, "begin at shared + 0x480, and the next eight 1024 bytes behind them"},
      {swizzled(1024, 512), Rule::misaligned, "begin at shared + 0x400, and the next eight 512 bytes"},
      {swizzled(1024, 1040), Rule::misaligned, "the next eight 1040 bytes"},
      {good + 1, Rule::misaligned, "begins 16 bytes into its rows"},
      {good + 7, Rule::misaligned, "begins 112 bytes into its rows"},
  };
  // What lies between the fields, the base's offset (bits 49 to 51), the other layouts.
  for (const unsigned bit : {14u, 15u, 30u, 31u, 46u, 47u, 48u, 49u, 50u, 51u, 52u, 61u, 63u}) {
    cases.push_back({good | std::uint64_t{1} << bit, Rule::out_of_bounds, "is none without swizzle and none with one"});
    cases.push_back({plain(1024, 1024) | std::uint64_t{1} << bit, Rule::out_of_bounds, "is none without swizzle"});
  }
  for (const Case& one : cases) {
    const auto refusal = OperandPlace(one.descriptor).refusal();
    ASSERT_TRUE(refusal.has_value()) << fmt::format("{:#x}", one.descriptor);
    EXPECT_EQ(refusal->rule, one.rule) << refusal->text;
    EXPECT_NE(refusal->text.find(one.words), std::string::npos) << refusal->text;
  }
  EXPECT_FALSE(OperandPlace(plain(16, 48)).refusal().has_value());
  const std::vector<host::Finding> found = findings({plain(0, 1024), good + 8});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found.front().rule, Rule::misaligned);
}

}  // namespace
}  // namespace jitconv::test
