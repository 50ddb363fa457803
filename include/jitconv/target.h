// The GPU that a kernel is generated for, as plain data, so that kernels for any GPU can be planned and compiled
// without one. Also says who runs the kernel: that GPU, or this machine's CPU in its place.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "jitconv/export.h"

namespace jitconv {

/// Who runs the generated code. `host` is for checking: this machine's C++ compiler compiles the plan's CUDA source,
/// unchanged, and the CPU runs it thread by thread and checks every memory access. It needs no GPU, driver or NVRTC,
/// and is some thousand times slower. docs/host.md says what it proves. In one case plans differ: if NVRTC serialises
/// or spills the first plan of a tensor-core kernel, compile() takes another one for a GPU and the first for the host.
enum class Execution : std::uint8_t { gpu, host };

/// A GPU's architecture and limits; by default an H200's. The limits are those of the CUDA programming guide's table
/// "Technical Specifications per Compute Capability". Counts are at least 1, sizes in bytes at least 0.
struct JITCONV_API Target {
  int major = 9, minor = 0;                      ///< compute capability
  bool arch_specific = true;                     ///< sm_90a, code for exactly this architecture, rather than sm_90
  int sm_count = 132;                            ///< multiprocessors (SMs)
  std::int64_t shared_bytes_per_block = 232448;  ///< opt-in maximum of one block
  std::int64_t shared_bytes_per_sm = 233472;
  int registers_per_sm = 65536;  ///< of 32 bits
  int threads_per_sm = 2048;
  int blocks_per_sm = 32;
  std::int64_t l2_bytes = 62914560;
  Execution execution = Execution::gpu;  ///< changes neither plan nor source

  /// An H200 whose code this machine's CPU runs.
  static Target host();
  /// The GPU `like`, whose code this machine's CPU runs.
  static Target host(const Target& like);

  /// The compute capability as one number: 75, 80, 90, 100, 120.
  int compute_capability() const { return major * 10 + minor; }
  /// "sm_90a", in the form that NVRTC's --gpu-architecture takes.
  std::string arch() const;

  bool operator==(const Target&) const = default;
};

/// Throws SpecError (invalid_spec) if a limit breaks its rule; field() names the first, as "target.sm_count". compile()
/// calls it.
JITCONV_API void validate(const Target& target);

/// The limits of a common GPU of the architecture: `sm_75`, `sm_80`, `sm_86`, `sm_87`, `sm_89`, `sm_90`, `sm_90a`,
/// `sm_100`, `sm_100a`, `sm_103`, `sm_103a`, `sm_110`, `sm_110a`, `sm_120`, `sm_120a`, `sm_121` or `sm_121a`. Throws
/// SpecError (unsupported, field "arch") for any other name. The message lists the known names and, for architectures
/// below sm_75, the last toolkit that supported them.
JITCONV_API Target parse_target(std::string_view arch);

/// The GPU of the calling thread's current context, or device 0 if the thread has none. Throws CudaError if there is no
/// driver or no GPU.
JITCONV_API Target current_target();

/// One line: arch(), " on the host" for Execution::host, and every limit by name.
JITCONV_API std::string to_string(const Target& target);

}  // namespace jitconv
