// See multiply_probes.h. Most multiplications are of small integers, or of numbers of as few bits, whose sums are exact
// in any order. What hardware drops when it adds is part of the model of TF32, and of no other.
#include "conformance/multiply_probes.h"

#include <fmt/format.h>

#include <bit>

#include "conformance/multiply_inputs.h"
#include "conformance/tensor_probes.h"

namespace jitconv::test {
namespace {

/// Two multiplications of 64 rows by `columns`, of operands whose right halves lie 16 and 48 bytes further away than
/// they have to. A thread's item: four words of a, some of b, and the sums it starts from.
Probe multiplications(const std::string& type, int columns, bool accumulate) {
  const std::size_t sums = static_cast<std::size_t>(columns) / 2;
  const std::size_t b_words = (static_cast<std::size_t>(columns) * 8 + kProbeThreads - 1) / kProbeThreads;
  Probe probe;
  probe.name = fmt::format("multiply {} x{}{}", type, columns, accumulate ? "" : " from zero");
  probe.device_files = {"device/warpgroup.cuh", multiply_file(type)};
  for (const char* function :
       {"matrix_operand", "fence_async_proxy", "multiply_begin", "multiply_commit", "multiply_wait"})
    probe.functions.push_back(std::string("warpgroup.cuh: ") + function);
  probe.functions.push_back(fmt::format("multiply_{}.cuh: multiply", type));
  probe.columns = columns;
  probe.body = fmt::format(
      "  constexpr int kColumns = {}, kWordsOfB = {};\n"
      "  constexpr int kRightOfA = 64 * 16 + 16, kRightOfB = kColumns * 16 + 48, kB = kRightOfA + 64 * 16;\n"
      "  unsigned char* const bytes = reinterpret_cast<unsigned char*>(shared);\n"
      "  const auto put = [bytes](int first, int right, int index, unsigned value) {{\n"
      "    *reinterpret_cast<unsigned*>(bytes + first + index / 8 * 16 + index / 4 % 2 * right + index % 4 * 4) =\n"
      "        value;\n"
      "  }};\n"
      "  const int thread = static_cast<int>(threadIdx.x);\n"
      "  for (int i = 0; i < 4; ++i) put(0, kRightOfA, thread * 4 + i, in[i]);\n"
      "  for (int i = 0; i < kWordsOfB; ++i)\n"
      "    if (thread * kWordsOfB + i < kColumns * 8) put(kB, kRightOfB, thread * kWordsOfB + i, in[4 + i]);\n"
      "  fence_async_proxy();\n"
      "  __syncthreads();\n"
      "  float sum[kColumns / 2];\n"
      "#pragma unroll\n"
      "  for (int i = 0; i < kColumns / 2; ++i) sum[i] = __uint_as_float(in[4 + kWordsOfB + i]);\n"
      "  const MatrixOperand a = matrix_operand(bytes, kRightOfA), b = matrix_operand(bytes + kB, kRightOfB);\n"
      "  multiply_begin();\n"
      "  multiply(sum, a, b, {});\n"
      "  multiply_commit();\n"
      "  multiply(sum, a, b, 1);\n"
      "  multiply_commit();\n"
      "  multiply_wait<1>();\n"
      "  multiply_wait<0>();\n"
      "#pragma unroll\n"
      "  for (int i = 0; i < kColumns / 2; ++i) out[i] = __float_as_uint(sum[i]);\n",
      columns, b_words, accumulate ? 1 : 0);
  probe.in_words = 4 + b_words + sums;
  probe.out_words = sums;
  probe.shared_bytes = static_cast<std::size_t>(2 * 64 * 16 + 16 + 2 * columns * 16 + 48);
  probe.compute_capability = kHopper;
  add_operands_and_sums(probe, type, 4 + b_words, sums);
  return probe;
}

/// The same of TF32 numbers of any size, whose sums are truncated.
Probe truncating_multiplications(int columns) {
  Probe probe = multiplications("tf32", columns, /*accumulate=*/true);
  probe.name = fmt::format("multiply tf32 x{} truncates", columns);
  std::mt19937_64 random = random_of_probe(probe.name);
  const std::size_t operands = probe.in_words - probe.out_words;
  for (std::size_t i = 0; i < probe.inputs.size(); ++i) {
    const bool is_sum = i % probe.in_words >= operands;
    const std::uint64_t exponent = is_sum ? 107 + random() % 41 : 119 + random() % 17;
    const std::uint32_t mantissa = static_cast<std::uint32_t>(random() >> 32) & (is_sum ? 0x807fffffu : 0x807fe000u);
    probe.inputs[i] = static_cast<std::uint32_t>(exponent) << 23 | mantissa;
  }
  return probe;
}

/// The same of numbers at the ends of the range, one or two of a row: sums that overflow, sums of subnormal numbers,
/// infinities and NaNs.
Probe multiplications_at_the_ends_of_the_range() {
  Probe probe = multiplications("tf32", 8, /*accumulate=*/true);
  probe.name = "multiply tf32 x8 at the ends of the range";
  constexpr std::uint32_t kOperands[] = {0x71800000u, 0x7f400000u, 0x7f7fe000u, 0x5f800000u, 0x3f800000u, 0x3fffe000u,
                                         0x1f800000u, 0x00800000u, 0x00402000u, 0x00002000u, 0x34000000u, 0x3fc00000u};
  constexpr std::uint32_t kInfinity = 0x7f800000u, kNaN = 0x7fc00000u;
  constexpr std::uint32_t kSums[] = {0u,          0x3f800000u, 0x7f7fffffu, 0x7f000000u, 0x7f7fe000u, 0x00800000u,
                                     0x00000001u, 0x00012345u, 0x007fffffu, 0x0c000000u, 0x80000000u, kInfinity};
  std::mt19937_64 random = random_of_probe(probe.name);
  const auto one_of = [&random](const auto& values) {
    return values[random() % std::size(values)] | static_cast<std::uint32_t>(random() % 2) << 31;
  };
  for (std::size_t thread = 0; thread < probe.items(); ++thread) {
    std::uint32_t* const in = probe.inputs.data() + thread * probe.in_words;
    // Half a row of a, of which one or none is not zero, and one number of b.
    for (std::size_t i = 0; i < 4; ++i) in[i] = 0;
    if (random() % 4 != 0) in[random() % 4] = random() % 16 == 0 ? kInfinity : one_of(kOperands);
    in[4] = random() % 64 == 0 ? kNaN : random() % 32 == 0 ? kInfinity : one_of(kOperands);
    for (std::size_t i = 5; i < probe.in_words; ++i) in[i] = random() % 3 == 0 ? 0 : one_of(kSums);
  }
  return probe;
}

/// The same of an operand in registers, four words of a thread, and its like of the next thread's words.
Probe multiplications_of_registers(const std::string& type, int columns, bool accumulate) {
  const std::size_t sums = static_cast<std::size_t>(columns) / 2;
  const std::size_t b_words = (static_cast<std::size_t>(columns) * 8 + kProbeThreads - 1) / kProbeThreads;
  Probe probe;
  probe.name = fmt::format("multiply registers {} x{}{}", type, columns, accumulate ? "" : " from zero");
  probe.device_files = {"device/warpgroup.cuh", type == "tf32"  ? "device/multiply_registers_tf32.cuh"
                                                : type == "f16" ? "device/multiply_registers_f16.cuh"
                                                                : "device/multiply_registers_bf16.cuh"};
  probe.functions = {fmt::format("multiply_registers_{}.cuh: multiply", type)};
  probe.columns = columns;
  probe.body = fmt::format(
      "  constexpr int kColumns = {}, kWordsOfB = {}, kRightOfB = kColumns * 16 + 48;\n"
      "  unsigned char* const bytes = reinterpret_cast<unsigned char*>(shared);\n"
      "  const int thread = static_cast<int>(threadIdx.x);\n"
      "  for (int i = 0; i < kWordsOfB; ++i) {{\n"
      "    const int index = thread * kWordsOfB + i;\n"
      "    if (index < kColumns * 8)\n"
      "      *reinterpret_cast<unsigned*>(bytes + index / 8 * 16 + index / 4 % 2 * kRightOfB + index % 4 * 4) = in[4 + "
      "i];\n"
      "  }}\n"
      "  fence_async_proxy();\n"
      "  __syncthreads();\n"
      "  float sum[kColumns / 2];\n"
      "#pragma unroll\n"
      "  for (int i = 0; i < kColumns / 2; ++i) sum[i] = __uint_as_float(in[4 + kWordsOfB + i]);\n"
      "  const unsigned a[2][4] = {{{{in[0], in[1], in[2], in[3]}}, {{in[3], in[0], in[1], in[2]}}}};\n"
      "  const MatrixOperand b = matrix_operand(bytes, kRightOfB);\n"
      "  multiply_begin();\n"
      "  multiply(sum, a[0], b, {});\n"
      "  multiply_commit();\n"
      "  multiply(sum, a[1], b, 1);\n"
      "  multiply_commit();\n"
      "  multiply_wait<1>();\n"
      "  multiply_wait<0>();\n"
      "#pragma unroll\n"
      "  for (int i = 0; i < kColumns / 2; ++i) out[i] = __float_as_uint(sum[i]);\n",
      columns, b_words, accumulate ? 1 : 0);
  probe.in_words = 4 + b_words + sums;
  probe.out_words = sums;
  probe.shared_bytes = static_cast<std::size_t>(2 * columns * 16 + 48);
  probe.compute_capability = kHopper;
  if (type != "tf32") {
    add_operands_and_sums(probe, type, 4 + b_words, sums);
    return probe;
  }
  std::mt19937_64 random = random_of_probe(probe.name);
  for (std::size_t item = 0; item < 4 * kProbeThreads; ++item) {
    for (std::size_t i = 0; i < 4 + b_words; ++i) probe.inputs.push_back(random_integer(random, 8));
    for (std::size_t i = 0; i < sums; ++i) probe.inputs.push_back(random_integer(random, 1000));
  }
  return probe;
}

}  // namespace

std::vector<Probe> multiply_probes() {
  std::vector<Probe> all{truncating_multiplications(64), truncating_multiplications(248),
                         multiplications_at_the_ends_of_the_range()};
  for (const std::string type : {"tf32", "f16", "bf16"}) {
    for (const int columns : {8, 64, 248, 256}) all.push_back(multiplications(type, columns, true));
    all.push_back(multiplications(type, 128, false));
  }
  for (const int columns : {8, 64, 128, 256}) all.push_back(multiplications_of_registers("tf32", columns, true));
  all.push_back(multiplications_of_registers("tf32", 104, false));
  for (const std::string type : {"f16", "bf16"}) {
    for (const int columns : {8, 64, 256}) all.push_back(multiplications_of_registers(type, columns, true));
    all.push_back(multiplications_of_registers(type, 104, false));
  }
  return all;
}

}  // namespace jitconv::test
