// See swizzled_multiply_probes.h. Multiplications are of small integers, or of numbers of as few bits, whose sums are
// exact in any order.
#include "conformance/swizzled_multiply_probes.h"

#include <fmt/format.h>

#include <array>

#include "conformance/multiply_inputs.h"
#include "conformance/tensor_probes.h"

namespace jitconv::test {
namespace {

/// Multiplies an operand as TMA brings it, rounded and swizzled, in rows of four times what an instruction takes;
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
      "    tensor_copy_2d_to_shared(bytes, &map0, 0, 0, full);\n"
      "    tensor_copy_2d_to_shared(bytes + kBox, &map0, 0, 64, full);\n"
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

/// Multiplies windows of the same swizzled rows, which begin at rows that are no multiples of eight: sums of 64 rows of
/// a, as stored, by 64 rows from the third of b on and from the 13th, each in parts of the 32 bytes that an instruction
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

/// Multiplies operands whose rows are pixels, swizzled: a has 64 channels of two runs of eight rows, b has row_bytes of
/// `taps` windows of rows, each `dilation` rows behind the one before, again in two runs, 11 rows apart. Rows are
/// stored where TMA would bring them. A thread's item: words of a, words of b, and the sums.
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

/// Multiplies a b whose rows are channels of a plane, 64 pixels of each in parts one behind the other, as TMA brings
/// them; the last part has the pixels that are left. A thread's item: four words of a, some of b, and the sums.
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

/// Multiplies an a whose rows are channels, over which is summed, as TMA brings them of w. A thread's item: eight words
/// of a, some of b, and the sums.
Probe multiplications_of_transposed(const std::string& type, int columns) {
  const std::size_t sums = static_cast<std::size_t>(columns) / 2, b_words = static_cast<std::size_t>(columns) / 8;
  Probe probe;
  probe.name = fmt::format("multiply transposed {} by {} columns", type, columns);
  probe.device_files = {"device/warpgroup.cuh", "device/pixel_operand.cuh",
                        type == "f16" ? "device/multiply_transposed_f16.cuh" : "device/multiply_transposed_bf16.cuh"};
  probe.functions = {fmt::format("multiply_transposed_{}.cuh: multiply_transposed", type),
                     "pixel_operand.cuh: pixel_operand"};
  probe.columns = columns;
  // 32 channels, of which two instructions take 16 each.
  probe.body = fmt::format(
      "  constexpr int kColumns = {0}, kWordsOfB = {1}, kSums = {2}, kB = 32 * 128;\n"
      "  unsigned char* const bytes =\n"
      "      reinterpret_cast<unsigned char*>(shared) + (1024 - __cvta_generic_to_shared(shared) % 1024) % 1024;\n"
      "  const int thread = static_cast<int>(threadIdx.x);\n"
      "  for (int i = 0; i < 8; ++i) {{\n"
      "    const int at = (thread * 8 + i) * 4;\n"
      "    *reinterpret_cast<unsigned*>(bytes + (at ^ (at / 128 & 7) * 16)) = in[i];\n"
      "  }}\n"
      "  for (int i = 0; i < kWordsOfB; ++i)\n"
      "    *reinterpret_cast<unsigned*>(bytes + kB + (thread * kWordsOfB + i) * 4) = in[8 + i];\n"
      "  fence_async_proxy();\n"
      "  __syncthreads();\n"
      "  float sum[kSums];\n"
      "#pragma unroll\n"
      "  for (int i = 0; i < kSums; ++i) sum[i] = __uint_as_float(in[8 + kWordsOfB + i]);\n"
      "  const MatrixOperand a = pixel_operand<128>(bytes, 0, 8 * 128);\n"
      "  const MatrixOperand b = matrix_operand(bytes + kB, kColumns * 16);\n"
      "  multiply_begin();\n"
      "  multiply_transposed(sum, a, b, 1);\n"
      "  multiply_transposed(sum, a + 16 * 128 / 16, b + 2 * kColumns, 1);\n"
      "  multiply_commit();\n"
      "  multiply_wait<0>();\n"
      "#pragma unroll\n"
      "  for (int i = 0; i < kSums; ++i) out[i] = __float_as_uint(sum[i]);\n",
      columns, b_words, sums);
  probe.in_words = 8 + b_words + sums;
  probe.out_words = sums;
  probe.shared_bytes = 1024 + 32 * 128 + static_cast<std::size_t>(columns) * 64;
  probe.compute_capability = kHopper;
  add_operands_and_sums(probe, type, 8 + b_words, sums);
  return probe;
}

}  // namespace

std::vector<Probe> swizzled_multiply_probes() {
  std::vector<Probe> all{swizzled_multiplications(false), swizzled_multiplications(true)};
  for (const std::string type : {"tf32", "f16", "bf16"})
    for (const int row_bytes : {32, 64, 128}) all.push_back(multiplications_of_windows(type, row_bytes));
  for (const std::string type : {"f16", "bf16"}) {
    for (const int columns : {8, 64, 104, 256}) all.push_back(multiplications_of_planes(type, columns));
    for (const int columns : {8, 64, 256}) all.push_back(multiplications_of_transposed(type, columns));
    for (const auto& [row_bytes, taps, dilation] :
         {std::array{128, 1, 1}, {128, 3, 1}, {128, 4, 5}, {64, 8, 3}, {64, 2, 1}, {32, 3, 2}, {32, 16, 1}})
      all.push_back(multiplications_of_pixels(type, row_bytes, taps, dilation));
  }
  return all;
}

}  // namespace jitconv::test
