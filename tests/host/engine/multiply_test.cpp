// Warpgroup multiplications as a kernel writes them, against sums computed one by one: every type, the smallest and the
// largest numbers of columns, operands whose halves lie anywhere, swizzled ones.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <chrono>
#include <cstdio>
#include <random>
#include <tuple>

#include "host/compiler.h"
#include "host/engine.h"
#include "host/module.h"
#include "support/multiply_text.h"

namespace jitconv::test {
namespace {

struct Case {
  const char* type;
  int columns;
  std::uint32_t a_right, b_right;    // distance of the right half, in bytes; of a swizzled operand, its first piece
  int a_row = 0, b_row = 0;          // bytes of a row if swizzled, else 0
  int a_skipped = 0, b_skipped = 0;  // of swizzled rows: how many are before the operand
};

std::uint32_t bits_of(const std::string& type, int value) {
  const auto single = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  if (type == "tf32") return single | 0x1234u >> 1;  // what lies below the last place is not looked at
  if (type == "bf16") return single >> 16;
  if (value == 0) return 0;
  return (single >> 16 & 0x8000u) | (((single >> 23 & 0xffu) - 112) << 10) | (single >> 13 & 0x3ffu);
}

// Rows of 32 bytes in global memory become two halves of 16 bytes in shared memory. Of swizzled rows, nothing but what
// is an operand's is written.
const char kKernel[] = R"(
template <int kRowBytes>
__device__ __forceinline__ int place(int first, int right, int row, int half) {
  if (kRowBytes == 0) return first + row * 16 + half * right;
  const int at = first + row * kRowBytes + (right + half) * 16;
  return at ^ (at >> 7 & (kRowBytes == 128 ? 7 : kRowBytes == 64 ? 3 : 1)) << 4;
}
template <int kRowBytes>
__device__ __forceinline__ MatrixOperand operand(const unsigned char* first, int right) {
  return kRowBytes != 0 ? swizzled_operand<kRowBytes>(first) + right : matrix_operand(first, right);
}
extern "C" __global__ void probe(const uint4* a, const uint4* b, float* y) {
  extern __shared__ __align__(1024) unsigned char shared[];
  const int thread = static_cast<int>(threadIdx.x);
  for (int i = thread; i < 2 * 64; i += 128)
    *reinterpret_cast<uint4*>(shared + place<kARow>(kA, kARight, i / 2, i % 2)) = a[i];
  for (int i = thread; i < 2 * kColumns; i += 128)
    *reinterpret_cast<uint4*>(shared + place<kBRow>(kB, kBRight, i / 2, i % 2)) = b[i];
  fence_async_proxy();
  __syncthreads();
  float sum[kColumns / 2];
#pragma unroll
  for (int i = 0; i < kColumns / 2; ++i) sum[i] = 1000.0f;
  const MatrixOperand left = operand<kARow>(shared + kA, kARight), right = operand<kBRow>(shared + kB, kBRight);
  multiply_begin();
  multiply(sum, left, right, 0);
  for (int i = 1; i < kRepeats; ++i) multiply(sum, left, right, 1);
  multiply_commit();
  multiply_wait<0>();
  for (int j = 0; j < kColumns / 8; ++j)
    for (int i = 0; i < 4; ++i)
      y[(16 * (thread / 32) + thread % 32 / 4 + 8 * (i / 2)) * kColumns + 8 * j + 2 * (thread % 4) + i % 2] =
          sum[4 * j + i];
}
)";

class Multiply : public testing::TestWithParam<Case> {};

struct Prepared {
  std::vector<std::uint32_t> a, b;  // rows of eight words
  std::vector<float> expected, y;
  std::string text;
  std::uint32_t shared_bytes = 0;
};

Prepared prepare(const Case& one, int repeats) {
  const bool words = std::string(one.type) == "tf32";
  const int depth = words ? 8 : 16;
  std::mt19937 random(static_cast<unsigned>(one.columns));
  const auto matrix = [&](int rows, std::vector<std::uint32_t>& bits) {
    std::vector<int> values(static_cast<std::size_t>(rows * depth));
    bits.resize(static_cast<std::size_t>(rows) * 8);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<int>(random() % 9) - 4;
      const std::uint32_t element = bits_of(one.type, values[i]);
      if (words)
        bits[i] = element;
      else
        bits[i / 2] |= element << (i % 2 * 16);
    }
    return values;
  };
  Prepared made;
  const std::vector<int> a = matrix(64, made.a), b = matrix(one.columns, made.b);
  for (int row = 0; row < 64; ++row) {
    for (int column = 0; column < one.columns; ++column) {
      int sum = 0;
      for (int k = 0; k < depth; ++k)
        sum += a[static_cast<std::size_t>(row * depth + k)] * b[static_cast<std::size_t>(column * depth + k)];
      made.expected.push_back(static_cast<float>(sum * repeats));
    }
  }
  made.y.resize(made.expected.size());
  const auto columns = static_cast<std::uint32_t>(one.columns);
  const auto first_row = [](int row_bytes, int skipped) { return static_cast<std::uint32_t>(row_bytes * skipped); };
  const std::uint32_t a_at = one.a_row != 0 ? 1024 + first_row(one.a_row, one.a_skipped) : 48;
  const std::uint32_t a_end =
      a_at + (one.a_row != 0 ? first_row(one.a_row, 64) : std::max(one.a_right, 64u * 16) + 64 * 16);
  const std::uint32_t b_at =
      one.b_row != 0 ? (a_end + 1023) / 1024 * 1024 + first_row(one.b_row, one.b_skipped) : a_end;
  made.shared_bytes = b_at + (one.b_row != 0 ? first_row(one.b_row, one.columns) : one.b_right + columns * 16);
  made.text = "// A multiplication.\n" + std::string(codegen::embedded_text("device/warpgroup.cuh")) +
              std::string(codegen::embedded_text("device/swizzled_operand.cuh")) +
              test::multiply_text(fmt::format("device/multiply_{}.cuh", one.type), one.columns) +
              fmt::format(
                  "constexpr int kColumns = {}, kRepeats = {}, kA = {}, kB = {}, kARight = {}, kBRight = {};\n"
                  "constexpr int kARow = {}, kBRow = {};\n",
                  one.columns, repeats, a_at, b_at, one.a_right, one.b_right, one.a_row, one.b_row) +
              kKernel;
  return made;
}

host::Module module_of(const Prepared& made, const char* operand = "const uint4*") {
  codegen::KernelSource source;
  source.text = made.text;
  codegen::KernelEntry entry;
  entry.name = "probe";
  entry.arguments = {
      {codegen::Tensor::x, operand, "a"}, {codegen::Tensor::w, operand, "b"}, {codegen::Tensor::y, "float*", "y"}};
  source.entries.push_back(entry);
  const host::Compiler compiler = host::find_compiler();
  return host::Module(
      host::compile_module(compiler, source, host::compile_options(compiler, host::Purpose::check)).image);
}

host::Report run(const host::Module& module, Prepared& made, const host::Settings& settings) {
  host::Launch launch;
  launch.entry = "probe";
  launch.threads = 128;
  launch.shared_bytes = made.shared_bytes;
  const auto bytes = [](const auto& of) { return static_cast<std::int64_t>(of.size() * 4); };
  launch.buffers = {{"a", made.a.data(), bytes(made.a), false},
                    {"b", made.b.data(), bytes(made.b), false},
                    {"y", made.y.data(), bytes(made.y), true}};
  return host::execute(module, launch, settings);
}

TEST_P(Multiply, SumsUpSmallIntegersExactly) {
  Prepared made = prepare(GetParam(), 3);
  const host::Module module = module_of(made);
  for (const host::Landing landing : {host::Landing::early, host::Landing::late, host::Landing::random}) {
    std::fill(made.y.begin(), made.y.end(), -1.0f);
    const host::Report report = run(module, made, {.seed = 7, .landing = landing});
    for (const host::Finding& finding : report.findings) ADD_FAILURE() << to_string(finding);
    ASSERT_EQ(made.y, made.expected);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Cases, Multiply,
    testing::Values(Case{"tf32", 8, 1024, 128}, Case{"tf32", 64, 1040, 1072}, Case{"tf32", 248, 4112, 12304},
                    Case{"tf32", 256, 1024, 4096}, Case{"f16", 8, 1040, 144}, Case{"f16", 64, 1024, 1024},
                    Case{"f16", 248, 20016, 4000}, Case{"f16", 256, 1136, 70000}, Case{"bf16", 8, 1024, 128},
                    Case{"bf16", 64, 1232, 100016}, Case{"bf16", 248, 1024, 3984}, Case{"bf16", 256, 5008, 4112},
                    Case{"tf32", 64, 0, 1072, 128}, Case{"tf32", 128, 6, 2048, 128}, Case{"tf32", 8, 1024, 4, 0, 128},
                    Case{"tf32", 256, 2, 6, 128, 128}, Case{"f16", 64, 4, 0, 128, 128}, Case{"bf16", 248, 2, 3984, 128},
                    Case{"tf32", 64, 2, 4, 128, 128, 5, 3}, Case{"f16", 248, 1024, 2, 0, 64, 0, 13},
                    Case{"bf16", 128, 0, 0, 32, 32, 3, 13}, Case{"tf32", 8, 2, 0, 64, 32, 9, 1},
                    Case{"bf16", 256, 1024, 6, 0, 128, 0, 13}),
    [](const auto& instance) {
      const Case& one = instance.param;
      const auto of = [](const char* name, int row, int skipped) {
        return row == 0 ? "" : fmt::format("_{}_in_{}_from_{}", name, row, skipped);
      };
      return fmt::format("{}x{}{}{}", one.type, one.columns, of("a", one.a_row, one.a_skipped),
                         of("b", one.b_row, one.b_skipped));
    });

// Both operands swizzled, with pixels, over which is summed, as rows: a[pixel][64] and, of each tap, b[pixel][c].
// Pixels of a tap are every third row from the tap's first on.
const char kPixelKernel[] = R"(
extern "C" __global__ void probe(const unsigned short* a, const unsigned short* b, float* y) {
  extern __shared__ __align__(1024) unsigned char shared[];
  const auto stored = [](int row, int c, int bytes, int at) {
    const int place = at + row * bytes + c * 2;
    return place ^ (place >> 7 & (bytes / 16 - 1)) << 4;
  };
  const int thread = static_cast<int>(threadIdx.x);
  for (int i = thread; i < kRows * 64; i += 128)
    *reinterpret_cast<unsigned short*>(shared + stored(i / 64, i % 64, 128, 0)) = a[i];
  for (int i = thread; i < kRows * kC; i += 128)
    *reinterpret_cast<unsigned short*>(shared + stored(i / kC, i % kC, kC * 2, kRows * 128)) = b[i];
  fence_async_proxy();
  __syncthreads();
  float sum[kTaps * kC / 2];
  const MatrixOperand left = pixel_operand<128>(shared + 2 * 128, 0, 10 * 128);
  const MatrixOperand right = pixel_operand<kC * 2>(shared + kRows * 128 + 5 * kC * 2, 3 * kC * 2, 9 * kC * 2);
  multiply_begin();
  multiply_pixels(sum, left, right, 0);
  multiply_commit();
  multiply_wait<0>();
  for (int j = 0; j < kTaps * kC / 8; ++j)
    for (int i = 0; i < 4; ++i)
      y[(16 * (thread / 32) + thread % 32 / 4 + 8 * (i / 2)) * (kTaps * kC) + 8 * j + 2 * (thread % 4) + i % 2] =
          sum[4 * j + i];
}
)";

class MultiplyPixels : public testing::TestWithParam<std::tuple<const char*, int, int>> {};

TEST_P(MultiplyPixels, SumsUpSmallIntegersExactly) {
  constexpr int kRows = 32;
  const char* const type = std::get<0>(GetParam());
  const int channels = std::get<1>(GetParam()), taps = std::get<2>(GetParam());
  std::mt19937 random(11);
  Prepared made;
  const auto matrix = [&](int columns, std::vector<std::uint32_t>& bits) {
    std::vector<int> values(static_cast<std::size_t>(kRows * columns));
    bits.resize(values.size() / 2);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<int>(random() % 9) - 4;
      bits[i / 2] |= bits_of(type, values[i]) << (i % 2 * 16);
    }
    return values;
  };
  const std::vector<int> a = matrix(64, made.a), b = matrix(channels, made.b);
  for (int row = 0; row < 64; ++row)
    for (int tap = 0; tap < taps; ++tap)
      for (int c = 0; c < channels; ++c) {
        int sum = 0;
        for (int pixel = 0; pixel < 16; ++pixel) {
          const int of_a = 2 + pixel / 8 * 10 + pixel % 8, of_b = 5 + tap * 3 + pixel / 8 * 9 + pixel % 8;
          sum += a[static_cast<std::size_t>(of_a * 64 + row)] * b[static_cast<std::size_t>(of_b * channels + c)];
        }
        made.expected.push_back(static_cast<float>(sum));
      }
  made.y.resize(made.expected.size());
  made.shared_bytes = static_cast<std::uint32_t>(kRows * (128 + channels * 2));
  made.text = "// A multiplication.\n" + std::string(codegen::embedded_text("device/warpgroup.cuh")) +
              std::string(codegen::embedded_text("device/pixel_operand.cuh")) +
              test::multiply_text(fmt::format("device/multiply_pixels_{}.cuh", type), taps * channels) +
              fmt::format("constexpr int kRows = {}, kC = {}, kTaps = {};\n", kRows, channels, taps) + kPixelKernel;
  const host::Module module = module_of(made, "const unsigned short*");
  for (const host::Landing landing : {host::Landing::early, host::Landing::late}) {
    std::fill(made.y.begin(), made.y.end(), -1.0f);
    const host::Report report = run(module, made, {.seed = 7, .landing = landing});
    for (const host::Finding& finding : report.findings) ADD_FAILURE() << to_string(finding);
    ASSERT_EQ(made.y, made.expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, MultiplyPixels,
                         testing::Values(std::tuple{"f16", 64, 1}, std::tuple{"bf16", 64, 4}, std::tuple{"f16", 32, 4},
                                         std::tuple{"bf16", 32, 1}, std::tuple{"f16", 16, 4},
                                         std::tuple{"bf16", 16, 3}),
                         [](const auto& instance) {
                           return fmt::format("{}_{}_channels_{}_taps", std::get<0>(instance.param),
                                              std::get<1>(instance.param), std::get<2>(instance.param));
                         });

TEST(MultiplySpeed, IsPrinted) {
  Prepared made = prepare({"tf32", 128, 1024, 2048}, 4000);
  const host::Module module = module_of(made);
  for (const host::Landing landing : {host::Landing::early, host::Landing::late}) {
    const auto start = std::chrono::steady_clock::now();
    EXPECT_TRUE(run(module, made, {.landing = landing}).findings.empty());
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    EXPECT_EQ(made.y, made.expected);
    std::printf("%.0f million multiply-adds a second\n", 4000.0 * 64 * 128 * 8 / seconds / 1e6);
  }
}

}  // namespace
}  // namespace jitconv::test
