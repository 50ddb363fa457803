// SHA-256 over length-prefixed fields: joining fields with a separator is not injective, prefixing each with its length is.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace jitconv::cache {

using Sha256 = std::array<std::uint8_t, 32>;

/// SHA-256 of the bytes as they are.
Sha256 sha256(std::string_view bytes);

/// Lower-case hex.
std::string to_hex(const Sha256& digest);

class Digest {
 public:
  Digest();
  ~Digest();
  Digest& add(std::string_view field);  ///< 8-byte little-endian length, then the bytes
  Digest& add(std::uint64_t number);
  Sha256 finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace jitconv::cache
