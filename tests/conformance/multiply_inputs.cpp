// See multiply_inputs.h.
#include "conformance/multiply_inputs.h"

#include <bit>

#include "conformance/tensor_probes.h"

namespace jitconv::test {

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

}  // namespace jitconv::test
