// The GPU a kernel is generated for, as plain data: a plan for any GPU can be made and tested without one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "jitconv/export.h"

namespace jitconv {

/// Limits are those of the CUDA programming guide's table "Technical Specifications per Compute Capability".
struct JITCONV_API Target {
  int major = 9, minor = 0;
  bool arch_specific = true;  ///< sm_90a rather than sm_90: code for exactly this chip
  int sm_count = 132;
  std::int64_t shared_bytes_per_block = 232448;  ///< opt-in maximum of one block
  std::int64_t shared_bytes_per_sm = 233472;
  int registers_per_sm = 65536;
  int threads_per_sm = 2048;
  int blocks_per_sm = 32;
  std::int64_t l2_bytes = 62914560;

  /// Compute capability as one number: 75, 80, 90, 100, 120.
  int compute_capability() const { return major * 10 + minor; }
  /// "sm_90a", as NVRTC's --gpu-architecture takes it.
  std::string arch() const;

  bool operator==(const Target&) const = default;
};

/// The usual limits of `sm_75`, `sm_80`, `sm_86`, `sm_87`, `sm_89`, `sm_90`, `sm_90a`, `sm_100`, `sm_100a`, `sm_103`,
/// `sm_103a`, `sm_110`, `sm_110a`, `sm_120`, `sm_120a`, `sm_121`, `sm_121a`. Throws SpecError (unsupported, field
/// "arch") for any other name, saying which are known and, below sm_75, which toolkit last supported them.
JITCONV_API Target parse_target(std::string_view arch);

/// The target of the calling thread's current context, or of device 0 if it has none. Throws CudaError.
JITCONV_API Target current_target();

JITCONV_API std::string to_string(const Target& target);

}  // namespace jitconv
