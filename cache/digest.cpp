// SHA-256 by LLVM's Support library. This file decides how fields are framed; it knows nothing of keys or files.
#include "cache/digest.h"

#include <llvm/ADT/StringRef.h>
#include <llvm/Support/SHA256.h>

#include <algorithm>
#include <limits>

#include "cache/bytes.h"

namespace jitconv::cache {

namespace {

void update(llvm::SHA256& hasher, std::string_view bytes) {
  hasher.update(llvm::StringRef(bytes.data(), bytes.size()));
}

void update(llvm::SHA256& hasher, std::uint64_t number) {
  const std::array<char, 8> bytes = little_endian(number);
  update(hasher, std::string_view(bytes.data(), bytes.size()));
}

// result() is a StringRef in LLVM 14 and an array from 15 on.
Sha256 result(llvm::SHA256& hasher) {
  const auto raw = hasher.result();
  Sha256 digest{};
  std::transform(raw.begin(), raw.end(), digest.begin(), [](auto byte) { return static_cast<std::uint8_t>(byte); });
  return digest;
}

}  // namespace

Sha256 sha256(std::string_view bytes) {
  llvm::SHA256 hasher;
  update(hasher, bytes);
  return result(hasher);
}

std::string to_hex(const Sha256& digest) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * digest.size());
  for (const std::uint8_t byte : digest) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

struct Digest::State {
  llvm::SHA256 hasher;
};

Digest::Digest() : state_(std::make_unique<State>()) {}
Digest::~Digest() = default;
Digest::Digest(Digest&&) noexcept = default;
Digest& Digest::operator=(Digest&&) noexcept = default;

Digest& Digest::add(std::string_view field) {
  update(state_->hasher, std::uint64_t{field.size()});
  update(state_->hasher, field);
  return *this;
}

Digest& Digest::add(std::uint64_t number) {
  update(state_->hasher, std::numeric_limits<std::uint64_t>::max());
  update(state_->hasher, number);
  return *this;
}

Sha256 Digest::finish() { return result(state_->hasher); }

}  // namespace jitconv::cache
