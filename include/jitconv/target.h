// The GPU a kernel is generated for, as plain data: a plan for any GPU can be made and tested without one. Also says
// whether that GPU runs the kernel or this machine's CPU does in its place.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "jitconv/export.h"

namespace jitconv {

/// Who runs the generated code. `host` is for checking: the CUDA source of the plan, unchanged, is compiled by this
/// machine's C++ compiler and run by its CPU, thread by thread, with every memory access checked. Needs no GPU, no
/// driver and no NVRTC; is some thousand times slower. docs/host.md says what it proves. Where NVRTC spoils the first
/// plan, compile() gives a GPU another one, as explain() says, and the host the first.
enum class Execution : std::uint8_t { gpu, host };

/// Limits are those of the CUDA programming guide's table "Technical Specifications per Compute Capability". Each count
/// is at least 1, each number of bytes at least 0.
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
  Execution execution = Execution::gpu;  ///< changes neither plan nor source

  /// Code for an H200 that this machine's CPU runs.
  static Target host();
  /// Code for `like` that this machine's CPU runs.
  static Target host(const Target& like);

  /// Compute capability as one number: 75, 80, 90, 100, 120.
  int compute_capability() const { return major * 10 + minor; }
  /// "sm_90a", as NVRTC's --gpu-architecture takes it.
  std::string arch() const;

  bool operator==(const Target&) const = default;
};

/// Throws SpecError (invalid_spec) with the first limit that breaks its rule, as "target.sm_count". compile() calls it.
JITCONV_API void validate(const Target& target);

/// The usual limits of `sm_75`, `sm_80`, `sm_86`, `sm_87`, `sm_89`, `sm_90`, `sm_90a`, `sm_100`, `sm_100a`, `sm_103`,
/// `sm_103a`, `sm_110`, `sm_110a`, `sm_120`, `sm_120a`, `sm_121`, `sm_121a`. Throws SpecError (unsupported, field
/// "arch") for any other name, saying which are known and, below sm_75, which toolkit last supported them.
JITCONV_API Target parse_target(std::string_view arch);

/// The target of the calling thread's current context, or of device 0 if it has none: always a GPU. Throws CudaError.
JITCONV_API Target current_target();

/// One line: arch, " on the host" for Execution::host, and every limit by name.
JITCONV_API std::string to_string(const Target& target);

}  // namespace jitconv
