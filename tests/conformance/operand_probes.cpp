// See operand_probes.h.
#include "conformance/operand_probes.h"

#include <algorithm>
#include <iterator>

#include "conformance/tensor_probes.h"

namespace jitconv::test {
namespace {

Probe operands_tf32() {
  Probe probe;
  probe.name = "operand tf32";
  probe.device_files = {kF32.element, "device/operand_tf32.cuh"};
  probe.functions = {"operand_tf32.cuh: round_to_tf32", "operand_tf32.cuh: operand_row"};
  probe.body =
      "  const uint4 row = operand_row(reinterpret_cast<const Element*>(in));\n"
      "  out[0] = row.x;\n  out[1] = row.y;\n  out[2] = row.z;\n  out[3] = row.w;\n";
  probe.in_words = probe.out_words = 4;
  probe.inputs = words_to_round(probe.name, kProbeItems * 8 * probe.in_words);
  probe.compute_capability = kHopper;
  return probe;
}

/// Two rows' larger and smaller parts. Every sixteenth number is infinite, NaN or at an end of fp32's range.
Probe split_operands() {
  Probe probe;
  probe.name = "split tf32";
  probe.device_files = {kF32.element, "device/operand_tf32.cuh", "device/split_tf32.cuh"};
  probe.functions = {"split_tf32.cuh: split_any",       "split_tf32.cuh: split_by_rounding",
                     "split_tf32.cuh: rounding_splits", "split_tf32.cuh: split_values",
                     "split_tf32.cuh: store_split_row", "split_tf32.cuh: store_split_rows"};
  probe.body =
      "  const float* const value = reinterpret_cast<const float*>(in);\n"
      "  uint4 rows[5];\n"
      "  store_split_rows<3, 2, 1>(rows, value, 2);\n"
      "  for (int i = 0; i < 8; ++i) {\n"
      "    out[i] = reinterpret_cast<const unsigned*>(rows)[i];\n"
      "    out[8 + i] = reinterpret_cast<const unsigned*>(rows + 3)[i];\n"
      "  }\n"
      "  split_values<8>(value, out + 16, out + 24);\n";
  probe.in_words = 8;
  probe.out_words = 32;
  probe.inputs = words_to_round(probe.name, kProbeItems * 8 * probe.in_words);
  constexpr std::uint32_t kEnds[] = {0x7f800000u, 0xff800000u, 0x7fffffffu, 0x7f7fffffu, 0xff7fffffu,
                                     0x7f7ff000u, 0x7f7fefffu, 0xff7ff000u, 0x80000000u, 0x00000001u,
                                     0x00800000u, 0x807fffffu, 0x00001000u, 0x80001fffu, 0x00002001u};
  // Half of the items have one, and are not split by rounding.
  for (std::size_t i = 0; i < probe.inputs.size(); i += 16) probe.inputs[i] = kEnds[i / 16 % std::size(kEnds)];
  probe.compute_capability = kHopper;
  return probe;
}

/// 16 channels' parts with a scale that follows from the first word. Every sixteenth number is infinite, NaN, or small
/// beside it.
Probe split_into_f16() {
  Probe probe;
  probe.name = "split f16";
  probe.device_files = {kF32.element, "device/operand_tf32.cuh", "device/pair_f16.cuh", "device/split_f16.cuh"};
  probe.functions = {"split_f16.cuh: scale_of",         "split_f16.cuh: inverse_of_scale",
                     "split_f16.cuh: split_any_to_f16", "split_f16.cuh: split_to_f16",
                     "split_f16.cuh: store_f16_rows",   "split_f16.cuh: store_f16_pixel"};
  probe.body =
      "  const float scale = scale_of(in[0] & 0x7f7fffffu);\n"
      "  const float* const value = reinterpret_cast<const float*>(in + 1);\n"
      "  uint4 rows[4];\n"
      "  store_f16_pixel<4, 1>(rows, value, scale);\n"
      "  for (int i = 0; i < 16; ++i) out[i] = reinterpret_cast<const unsigned*>(rows)[i];\n"
      "  out[16] = __float_as_uint(scale);\n"
      "  out[17] = __float_as_uint(inverse_of_scale(scale));\n";
  probe.in_words = 17;
  probe.out_words = 18;
  probe.inputs = words_to_round(probe.name, kProbeItems * probe.in_words);
  constexpr std::uint32_t kEnds[] = {0x7f800000u, 0xff800000u, 0x7fffffffu, 0x80000000u,
                                     0x00000001u, 0x80000001u, 0x00800000u, 0x00000000u};
  for (std::size_t i = 0; i < probe.inputs.size(); i += probe.in_words) {
    std::uint32_t largest = 0;
    for (std::size_t j = 1; j < probe.in_words; ++j) largest = std::max(largest, probe.inputs[i + j] & 0x7fffffffu);
    probe.inputs[i] = std::min(largest, 0x7f7fffffu);
    // Half of the items have one, and are not split by rounding alone.
    if (i / probe.in_words % 2 == 0)
      probe.inputs[i + 1 + i / probe.in_words % 16] = kEnds[i / probe.in_words / 2 % std::size(kEnds)];
  }
  probe.compute_capability = kHopper;
  return probe;
}

/// Each lane reads its item's words, and gets the largest of its warp's: every item has it, in one of four places, as
/// some items are run without the others.
Probe largest_of_parts() {
  Probe probe;
  probe.name = "largest of parts";
  probe.device_files = {kF32.element, "device/operand_tf32.cuh", "device/pair_f16.cuh", "device/split_f16.cuh"};
  probe.functions = {"split_f16.cuh: largest_of"};
  probe.body = "  out[0] = largest_of(reinterpret_cast<const uint4*>(in) - threadIdx.x % 32);\n";
  probe.in_words = 4;
  probe.out_words = 1;
  probe.inputs = random_words(probe.name, kProbeItems * probe.in_words);
  for (std::size_t i = 0; i < kProbeItems; ++i) probe.inputs[i * probe.in_words + i % probe.in_words] = 0xffffffffu;
  return probe;
}

Probe promotions() {
  Probe probe;
  probe.name = "promote";
  probe.device_files = {"device/promote.cuh"};
  probe.functions = {"promote.cuh: promote"};
  probe.body =
      "  float sum[2] = {__uint_as_float(in[0]), __uint_as_float(in[1])};\n"
      "  const float partial[2] = {__uint_as_float(in[2]), __uint_as_float(in[3])};\n"
      "  promote(sum, partial);\n"
      "  out[0] = __float_as_uint(sum[0]);\n  out[1] = __float_as_uint(sum[1]);\n";
  probe.in_words = 4;
  probe.out_words = 2;
  std::mt19937_64 random = random_of_probe(probe.name);
  for (std::size_t i = 0; i < kProbeItems * 4 * probe.in_words; ++i)
    probe.inputs.push_back((static_cast<std::uint32_t>(random() >> 32) & 0x807fffffu) |
                           static_cast<std::uint32_t>(117 + random() % 21) << 23);
  return probe;
}

Probe operands_16bit(const ElementType& type) {
  Probe probe;
  probe.name = type.name + " operand";
  probe.device_files = {type.element, "device/operand_16bit.cuh"};
  probe.functions = {"operand_16bit.cuh: operand_pair", "operand_16bit.cuh: operand_row",
                     "operand_16bit.cuh: operand_row_of_pairs"};
  probe.body =
      "  const Element* const channel = reinterpret_cast<const Element*>(in);\n"
      "  const uint4 row = operand_row(channel);\n"
      "  out[0] = row.x;\n  out[1] = row.y;\n  out[2] = row.z;\n  out[3] = row.w;\n"
      "  out[4] = operand_pair(channel[5], channel[0]);\n"
      "  const uint4 low = operand_row_of_pairs(in, false), high = operand_row_of_pairs(in, true);\n"
      "  out[5] = low.x;\n  out[6] = low.y;\n  out[7] = low.z;\n  out[8] = low.w;\n"
      "  out[9] = high.x;\n  out[10] = high.y;\n  out[11] = high.z;\n  out[12] = high.w;\n";
  probe.in_words = 8;
  probe.out_words = 13;
  probe.inputs = random_words(probe.name, kProbeItems * probe.in_words);
  return probe;
}

Probe pairs(const ElementType& type) {
  Probe probe;
  probe.name = type.name + " pair";
  const std::string file = "pair_" + type.name + ".cuh";
  probe.device_files = {type.element, type.name == "f16" ? "device/pair_f16.cuh" : "device/pair_bf16.cuh"};
  probe.functions = {file + ": element_pair"};
  probe.body = "  out[0] = element_pair(__uint_as_float(in[0]), __uint_as_float(in[1]));\n";
  probe.in_words = 2;
  probe.out_words = 1;
  probe.inputs = random_words(probe.name, kProbeItems * 8 * probe.in_words);
  probe.compute_capability = kHopper;
  return probe;
}

}  // namespace

std::vector<Probe> operand_probes() {
  std::vector<Probe> all{operands_tf32(), split_operands(), split_into_f16(), largest_of_parts(), promotions()};
  for (const ElementType& type : {kF16, kBf16}) {
    all.push_back(operands_16bit(type));
    all.push_back(pairs(type));
  }
  return all;
}

}  // namespace jitconv::test
