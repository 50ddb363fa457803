// See multiply_probes.h. Most multiplications are of small integers, or of numbers of as few bits, whose sums are exact
// in any order. What hardware drops when it adds is part of the model of TF32, and of no other.
#include "conformance/multiply_probes.h"

#include <fmt/format.h>

#include <array>
#include <bit>

#include "conformance/tensor_probes.h"

namespace jitconv::test {
namespace {

/// A float from -most to most.
std::uint32_t random_integer(std::mt19937_64& random, int most) {
  return std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<int>(random() % (2 * most + 1)) - most));
}

std::uint32_t bits_of(const std::string& type, int value) {
  const auto single = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  if (type == "tf32") return single;
  if (type == "bf16") return single >> 16;
  if (value == 0) return 0;
  return (single >> 16 & 0x8000u) | (((single >> 23 & 0xffu) - 112) << 10) | (single >> 13 & 0x3ffu);
}

std::string_view multiply_file(const std::string& type) {
  if (type == "tf32") return "device/multiply_tf32.cuh";
  return type == "f16" ? "device/multiply_f16.cuh" : "device/multiply_bf16.cuh";
}

/// Inputs of four blocks: each item has words of operands, and the sums it starts from.
void add_operands_and_sums(Probe& probe, const std::string& type, std::size_t words, std::size_t sums) {
  std::mt19937_64 random = random_of_probe(probe.name);
  const auto element = [&] { return bits_of(type, static_cast<int>(random() % 17) - 8); };
  for (std::size_t item = 0; item < 4 * kProbeThreads; ++item) {
    for (std::size_t i = 0; i < words; ++i) {
      const std::uint32_t low = element();
      probe.inputs.push_back(type == "tf32" ? low : low | element() << 16);
    }
    for (std::size_t i = 0; i < sums; ++i) probe.inputs.push_back(random_integer(random, 1000));
  }
}

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

/// Of an operand as TMA brings it, rounded and swizzled, in rows of four times what an instruction takes;
/// the other one, whose columns are as many as there are rows, lies as stored. The first box is multiplied and then the
/// second, of which the last rows and of both the last elements lie outside the tensor. A thread's item: a row of the
/// tensor, a part of the other operand, the sums it starts from.
Probe swizzled_multiplications(bool swizzled_b) {
  constexpr std::size_t kRow = 32, kOther = 16, kSums = 32;
  Probe probe;
  probe.name = fmt::format("multiply tf32 swizzled {}", swizzled_b ? "b" : "a");
  probe.device_files = {"device/barrier.cuh",   "device/tensor_map.cuh",       "device/tensor_copy.cuh",
                        "device/warpgroup.cuh", "device/swizzled_operand.cuh", "device/multiply_tf32.cuh"};
  probe.functions = {"swizzled_operand.cuh: swizzled_operand"};
  probe.columns = 64;
  probe.maps = {{.rank = 2,
                 .extents = {30, 120},
                 .strides = {1, kRow + kOther + kSums},
                 .box = {32, 64},
                 .swizzle_bytes = 128,
                 .rounds_to_tf32 = true}};
  probe.body = fmt::format(
      "  constexpr int kRow = {}, kOther = {}, kSums = {}, kBox = 64 * kRow * 4, kStep = kBox / 4;\n"
      "  float* const boxes = shared + (1024 - __cvta_generic_to_shared(shared) % 1024) % 1024 / 4;\n"
      "  unsigned char* const bytes = reinterpret_cast<unsigned char*>(boxes);\n"
      "  Barrier* const full = reinterpret_cast<Barrier*>(bytes + 3 * kBox);\n"
      "  const int thread = static_cast<int>(threadIdx.x);\n"
      "  if (thread == 0) {{\n"
      "    barrier_init(full, 1);\n"
      "    barrier_init_visible();\n"
      "    barrier_arrive_expecting(full, 2 * kBox);\n"
      "    tensor_copy_to_shared(bytes, &map0, 0, 0, full);\n"
      "    tensor_copy_to_shared(bytes + kBox, &map0, 0, 64, full);\n"
      "  }}\n"
      "  unsigned char* const stored = bytes + 2 * kBox;\n"
      "  for (int i = 0; i < kOther; ++i) {{\n"
      "    const int index = thread * kOther + i, row = index / kRow, k = index % kRow;\n"
      "    *reinterpret_cast<unsigned*>(stored + k / 8 * kStep + k / 4 % 2 * (kStep / 2) + row * 16 + k % 4 * 4) =\n"
      "        in[kRow + i];\n"
      "  }}\n"
      "  fence_async_proxy();\n"
      "  __syncthreads();\n"
      "  barrier_wait(full, 0);\n"
      "  float sum[kSums];\n"
      "#pragma unroll\n"
      "  for (int i = 0; i < kSums; ++i) sum[i] = __uint_as_float(in[kRow + kOther + i]);\n"
      "  multiply_begin();\n"
      "#pragma unroll\n"
      "  for (int box = 0; box < 2; ++box) {{\n"
      "    const MatrixOperand rows = swizzled_operand<128>(bytes + box * kBox);\n"
      "#pragma unroll\n"
      "    for (int i = 0; i < 4; ++i) {{\n"
      "      const MatrixOperand other = matrix_operand(stored + i * kStep, kStep / 2);\n"
      "      multiply(sum, {}, 1);\n"
      "    }}\n"
      "    multiply_commit();\n"
      "  }}\n"
      "  multiply_wait<0>();\n"
      "#pragma unroll\n"
      "  for (int i = 0; i < kSums; ++i) out[i] = __float_as_uint(sum[i]);\n",
      kRow, kOther, kSums, swizzled_b ? "other, rows + 2 * i" : "rows + 2 * i, other");
  probe.in_words = kRow + kOther + kSums;
  probe.out_words = kSums;
  probe.shared_bytes = 1024 + 3 * 64 * kRow * 4 + 8;
  probe.compute_capability = kHopper;
  std::mt19937_64 random = random_of_probe(probe.name);
  for (std::size_t thread = 0; thread < kProbeThreads; ++thread) {
    // From 1 to 2 of either sign, a quarter of them half way between two TF32 numbers.
    for (std::size_t i = 0; i < kRow; ++i) {
      const std::uint32_t bits = 0x3f800000u | (static_cast<std::uint32_t>(random() >> 32) & 0x807fffffu);
      probe.inputs.push_back(random() % 4 == 0 ? (bits & ~0x1fffu) | 0x1000u : bits);
    }
    for (std::size_t i = 0; i < kOther; ++i) probe.inputs.push_back(random_integer(random, 8));
    for (std::size_t i = 0; i < kSums; ++i) probe.inputs.push_back(random_integer(random, 1000));
  }
  return probe;
}

/// Of windows of the same swizzled rows, which begin at rows that are no multiples of eight: sums of 64 rows of a, as
/// stored, by 64 rows from the third of b on and from the 13th, each in parts of the 32 bytes that an instruction
/// takes. Rows are stored where TMA would bring them. A thread's item: four words of a, some of b, and the
/// sums.
Probe multiplications_of_windows(const std::string& type, int row_bytes) {
  constexpr int kColumns = 64, kRows = kColumns + 13;
  const std::size_t sums = kColumns / 2;
  const std::size_t b_words = (static_cast<std::size_t>(kRows * row_bytes / 4) + kProbeThreads - 1) / kProbeThreads;
  Probe probe;
  probe.name = fmt::format("multiply {} in windows of rows of {} bytes", type, row_bytes);
  probe.device_files = {"device/warpgroup.cuh", "device/swizzled_operand.cuh", multiply_file(type)};
  probe.functions = {"swizzled_operand.cuh: swizzled_operand"};
  probe.columns = kColumns;
  probe.body = fmt::format(
      "  constexpr int kRowBytes = {0}, kRows = {1}, kWordsOfB = {2}, kSums = {3};\n"
      "  constexpr int kExchanged = kRowBytes / 16 - 1, kA = (kRows * kRowBytes + 1023) / 1024 * 1024;\n"
      "  unsigned char* const bytes =\n"
      "      reinterpret_cast<unsigned char*>(shared) + (1024 - __cvta_generic_to_shared(shared) % 1024) % 1024;\n"
      "  const int thread = static_cast<int>(threadIdx.x);\n"
      "  for (int i = 0; i < 4; ++i) {{\n"
      "    const int index = thread * 4 + i;\n"
      "    *reinterpret_cast<unsigned*>(bytes + kA + index / 8 * 16 + index / 4 % 2 * 1024 + index % 4 * 4) = in[i];\n"
      "  }}\n"
      "  for (int i = 0; i < kWordsOfB; ++i) {{\n"
      "    const int at = (thread * kWordsOfB + i) * 4;\n"
      "    if (at < kRows * kRowBytes)\n"
      "      *reinterpret_cast<unsigned*>(bytes + (at ^ (at / 128 & kExchanged) * 16)) = in[4 + i];\n"
      "  }}\n"
      "  fence_async_proxy();\n"
      "  __syncthreads();\n"
      "  float sum[kSums];\n"
      "#pragma unroll\n"
      "  for (int i = 0; i < kSums; ++i) sum[i] = __uint_as_float(in[4 + kWordsOfB + i]);\n"
      "  const MatrixOperand a = matrix_operand(bytes + kA, 1024);\n"
      "  multiply_begin();\n"
      "#pragma unroll\n"
      "  for (int window = 0; window < 2; ++window) {{\n"
      "    const MatrixOperand rows = swizzled_operand<kRowBytes>(bytes + (window == 0 ? 3 : 13) * kRowBytes);\n"
      "#pragma unroll\n"
      "    for (int i = 0; i < kRowBytes / 32; ++i) multiply(sum, a, rows + 2 * i, 1);\n"
      "    multiply_commit();\n"
      "  }}\n"
      "  multiply_wait<0>();\n"
      "#pragma unroll\n"
      "  for (int i = 0; i < kSums; ++i) out[i] = __float_as_uint(sum[i]);\n",
      row_bytes, kRows, b_words, sums);
  probe.in_words = 4 + b_words + sums;
  probe.out_words = sums;
  probe.shared_bytes = 1024 + static_cast<std::size_t>((kRows * row_bytes + 1023) / 1024 * 1024) + 64 * 32;
  probe.compute_capability = kHopper;
  add_operands_and_sums(probe, type, 4 + b_words, sums);
  return probe;
}

/// Of operands whose rows are pixels, swizzled: a has 64 channels of two runs of eight rows, b has row_bytes of `taps`
/// windows of rows, each `dilation` rows behind the one before, again in two runs, 11 rows apart. Rows are stored where
/// TMA would bring them. A thread's item: words of a, words of b, and the sums.
Probe multiplications_of_pixels(const std::string& type, int row_bytes, int taps, int dilation) {
  constexpr int kRows = 64;
  const int columns = taps * row_bytes / 2;
  const std::size_t sums = static_cast<std::size_t>(columns) / 2, a_words = 16;
  const std::size_t b_words = static_cast<std::size_t>(kRows * row_bytes / 4) / kProbeThreads;
  Probe probe;
  probe.name = fmt::format("multiply pixels {} of rows of {} bytes, {} taps", type, row_bytes, taps);
  probe.device_files = {"device/warpgroup.cuh", "device/pixel_operand.cuh",
                        type == "f16" ? "device/multiply_pixels_f16.cuh" : "device/multiply_pixels_bf16.cuh"};
  probe.functions = {fmt::format("multiply_pixels_{}.cuh: multiply_pixels", type), "pixel_operand.cuh: pixel_operand"};
  probe.columns = columns;
  probe.body = fmt::format(
      "  constexpr int kRowBytes = {0}, kRows = {1}, kWordsOfB = {2}, kSums = {3}, kDilation = {4};\n"
      "  constexpr int kExchanged = kRowBytes / 16 - 1, kA = kRows * kRowBytes;\n"
      "  unsigned char* const bytes =\n"
      "      reinterpret_cast<unsigned char*>(shared) + (1024 - __cvta_generic_to_shared(shared) % 1024) % 1024;\n"
      "  const int thread = static_cast<int>(threadIdx.x);\n"
      "  for (int i = 0; i < 16; ++i) {{\n"
      "    const int at = kA + (thread * 16 + i) * 4;\n"
      "    *reinterpret_cast<unsigned*>(bytes + (at ^ (at / 128 & 7) * 16)) = in[i];\n"
      "  }}\n"
      "  for (int i = 0; i < kWordsOfB; ++i) {{\n"
      "    const int at = (thread * kWordsOfB + i) * 4;\n"
      "    *reinterpret_cast<unsigned*>(bytes + (at ^ (at / 128 & kExchanged) * 16)) = in[16 + i];\n"
      "  }}\n"
      "  fence_async_proxy();\n"
      "  __syncthreads();\n"
      "  float sum[kSums];\n"
      "#pragma unroll\n"
      "  for (int i = 0; i < kSums; ++i) sum[i] = __uint_as_float(in[16 + kWordsOfB + i]);\n"
      "  multiply_begin();\n"
      "#pragma unroll\n"
      "  for (int window = 0; window < 2; ++window) {{\n"
      "    const MatrixOperand a = pixel_operand<128>(bytes + kA + (window == 0 ? 0 : 5) * 128, 0, 11 * 128);\n"
      "    const MatrixOperand b = pixel_operand<kRowBytes>(bytes + (window == 0 ? 3 : 14) * kRowBytes,\n"
      "                                                     kDilation * kRowBytes, 11 * kRowBytes);\n"
      "    multiply_pixels(sum, a, b, window);\n"
      "    multiply_commit();\n"
      "  }}\n"
      "  multiply_wait<0>();\n"
      "#pragma unroll\n"
      "  for (int i = 0; i < kSums; ++i) out[i] = __float_as_uint(sum[i]);\n",
      row_bytes, kRows, b_words, sums, dilation);
  probe.in_words = a_words + b_words + sums;
  probe.out_words = sums;
  probe.shared_bytes = 1024 + static_cast<std::size_t>(kRows * (row_bytes + 128));
  probe.compute_capability = kHopper;
  add_operands_and_sums(probe, type, a_words + b_words, sums);
  return probe;
}

/// Of b whose rows are channels of a plane, 64 pixels of each in parts one behind the other, as TMA brings
/// them; of the last part as many pixels as are left. A thread's item: four words of a, some of b, and the sums.
Probe multiplications_of_planes(const std::string& type, int columns) {
  const int parts = (columns + 63) / 64;
  const std::size_t sums = static_cast<std::size_t>(columns) / 2, b_words = static_cast<std::size_t>(parts) * 8;
  Probe probe;
  probe.name = fmt::format("multiply planes {} of {} pixels", type, columns);
  probe.device_files = {"device/warpgroup.cuh", "device/pixel_operand.cuh",
                        type == "f16" ? "device/multiply_planes_f16.cuh" : "device/multiply_planes_bf16.cuh"};
  probe.functions = {fmt::format("multiply_planes_{}.cuh: multiply", type), "pixel_operand.cuh: pixel_operand"};
  probe.columns = columns;
  // A part has 32 channels, of which two instructions take 16 each.
  probe.body = fmt::format(
      "  constexpr int kParts = {0}, kWordsOfB = {1}, kSums = {2}, kPartBytes = 32 * 128, kA = kParts * kPartBytes;\n"
      "  unsigned char* const bytes =\n"
      "      reinterpret_cast<unsigned char*>(shared) + (1024 - __cvta_generic_to_shared(shared) % 1024) % 1024;\n"
      "  const int thread = static_cast<int>(threadIdx.x);\n"
      "  for (int i = 0; i < 4; ++i) {{\n"
      "    const int index = thread * 4 + i;\n"
      "    *reinterpret_cast<unsigned*>(bytes + kA + index / 8 * 16 + index / 4 % 2 * 1024 + index % 4 * 4) = in[i];\n"
      "  }}\n"
      "  for (int i = 0; i < kWordsOfB; ++i) {{\n"
      "    const int at = (thread * kWordsOfB + i) * 4;\n"
      "    *reinterpret_cast<unsigned*>(bytes + (at ^ (at / 128 & 7) * 16)) = in[4 + i];\n"
      "  }}\n"
      "  fence_async_proxy();\n"
      "  __syncthreads();\n"
      "  float sum[kSums];\n"
      "#pragma unroll\n"
      "  for (int i = 0; i < kSums; ++i) sum[i] = __uint_as_float(in[4 + kWordsOfB + i]);\n"
      "  const MatrixOperand a = matrix_operand(bytes + kA, 1024);\n"
      "  const MatrixOperand b = pixel_operand<128>(bytes, kPartBytes, 8 * 128);\n"
      "  multiply_begin();\n"
      "  multiply(sum, a, b, 1);\n"
      "  multiply(sum, a, b + 128, 1);\n"
      "  multiply_commit();\n"
      "  multiply_wait<0>();\n"
      "#pragma unroll\n"
      "  for (int i = 0; i < kSums; ++i) out[i] = __float_as_uint(sum[i]);\n",
      parts, b_words, sums);
  probe.in_words = 4 + b_words + sums;
  probe.out_words = sums;
  probe.shared_bytes = 1024 + static_cast<std::size_t>(parts) * 32 * 128 + 64 * 32;
  probe.compute_capability = kHopper;
  add_operands_and_sums(probe, type, 4 + b_words, sums);
  return probe;
}

}  // namespace

std::vector<Probe> multiply_probes() {
  std::vector<Probe> all{swizzled_multiplications(false), swizzled_multiplications(true),
                         truncating_multiplications(64), truncating_multiplications(248),
                         multiplications_at_the_ends_of_the_range()};
  for (const std::string type : {"tf32", "f16", "bf16"}) {
    for (const int columns : {8, 64, 248, 256}) all.push_back(multiplications(type, columns, true));
    all.push_back(multiplications(type, 128, false));
    for (const int row_bytes : {32, 64, 128}) all.push_back(multiplications_of_windows(type, row_bytes));
  }
  for (const int columns : {8, 64, 128, 256}) all.push_back(multiplications_of_registers("tf32", columns, true));
  all.push_back(multiplications_of_registers("tf32", 104, false));
  for (const std::string type : {"f16", "bf16"}) {
    for (const int columns : {8, 64, 256}) all.push_back(multiplications_of_registers(type, columns, true));
    all.push_back(multiplications_of_registers(type, 104, false));
    for (const int columns : {8, 64, 104, 256}) all.push_back(multiplications_of_planes(type, columns));
    for (const auto& [row_bytes, taps, dilation] :
         {std::array{128, 1, 1}, {128, 3, 1}, {128, 4, 5}, {64, 8, 3}, {64, 2, 1}, {32, 3, 2}, {32, 16, 1}})
      all.push_back(multiplications_of_pixels(type, row_bytes, taps, dilation));
  }
  return all;
}

}  // namespace jitconv::test
