// The identity of a compiled image: a digest of everything that went into it, and of nothing else.
#pragma once

#include <string>
#include <vector>

#include "cache/digest.h"

namespace jitconv::cache {

/// Raised whenever the entry format or the meaning of a key field changes.
inline constexpr std::uint64_t kSchema = 2;

/// Everything that decides which bytes a compilation produces.
struct KeyInputs {
  std::string target;                ///< "sm_90a"
  std::string compiler_version;      ///< NVRTC's version
  std::string compiler_identity;     ///< build id of the library that would compile
  std::vector<std::string> options;  ///< sorted by make_key
  std::string generator_fingerprint;
  std::string source;
};

struct Key {
  Sha256 digest{};
  /// 64 lower-case hex digits, the name of the entry's file.
  std::string hex() const { return to_hex(digest); }
  bool operator==(const Key&) const = default;
};

Key make_key(const KeyInputs& inputs);

}  // namespace jitconv::cache
