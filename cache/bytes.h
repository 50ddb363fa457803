// Fixed-width little-endian numbers in byte strings, spelled out so that files and digests are the same on every
// machine.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace jitconv::cache {

inline std::array<char, 8> little_endian(std::uint64_t number) {
  std::array<char, 8> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>((number >> (8 * i)) & 0xff);
  return bytes;
}

/// `bytes` holds at least offset + 8 bytes.
inline std::uint64_t read_little_endian(std::string_view bytes, std::size_t offset) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < 8; ++i) {
    number |= std::uint64_t{static_cast<unsigned char>(bytes[offset + i])} << (8 * i);
  }
  return number;
}

}  // namespace jitconv::cache
