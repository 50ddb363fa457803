// Tensors of small integers for launches on the host: every type holds them and their sums exactly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tools/check/number.h"

namespace jitconv::test {

/// Integers from -most to most.
inline std::vector<float> small_integers(std::int64_t count, std::uint32_t seed, int most) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) {
    seed = seed * 1664525U + 1013904223U;
    value = static_cast<float>(static_cast<int>(seed >> 16) % (2 * most + 1) - most);
  }
  return values;
}

/// Memory of a tensor in the spec's type.
class Memory {
 public:
  Memory(DataType type, const std::vector<float>& values) : type_(type), bytes_(check::encode(type, values)) {}
  void* data() { return bytes_.data(); }
  std::vector<float> values() const { return check::decode(type_, bytes_); }

 private:
  DataType type_;
  std::vector<std::byte> bytes_;
};

}  // namespace jitconv::test
