// SHA-256 over length-prefixed fields: joining fields with a separator is not injective, prefixing each with its length
// is.
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

/// Different sequences of fields give different inputs to SHA-256, texts and numbers included.
class Digest {
 public:
  Digest();
  ~Digest();
  Digest(Digest&&) noexcept;
  Digest& operator=(Digest&&) noexcept;

  Digest& add(std::string_view field);  ///< 8-byte little-endian length, then the bytes
  Digest& add(std::uint64_t number);    ///< 8 bytes of 0xff, which no length can be, then 8 bytes little-endian
  /// The digest of the fields so far; more may follow.
  Sha256 finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace jitconv::cache
