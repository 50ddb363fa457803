// compile() and what it returns. runtime/compile.cpp is the place to start reading how a spec becomes a kernel.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "jitconv/error.h"
#include "jitconv/spec.h"
#include "jitconv/target.h"

namespace jitconv {

/// Device pointers of one launch. Shapes, layouts and type are those of the spec; every pointer satisfies
/// spec.alignment, and y overlaps none of the inputs.
struct LaunchArgs {
  const void* x = nullptr;         ///< N, C, H, W in spec.input_layout
  const void* w = nullptr;         ///< K, C/groups, R, S
  const void* bias = nullptr;      ///< K elements; required if and only if epilogue.bias
  const void* residual = nullptr;  ///< as y; required if and only if epilogue.residual
  void* y = nullptr;               ///< N, K, P, Q in spec.output_layout; every element is written
  void* workspace = nullptr;       ///< workspace_bytes() bytes, or null if that is 0
};

/// What the driver, or the compiler's log, says of the compiled kernel.
struct Resources {
  int registers = 0;            ///< per thread
  std::int64_t local_bytes = 0;  ///< stack and spills per thread
  std::int64_t shared_bytes = 0;  ///< static + dynamic, per block
  int threads = 0;               ///< per block
  bool operator==(const Resources&) const = default;
};

struct CompileOptions {
  bool line_info = false;  ///< pass -lineinfo, for profilers
  bool operator==(const CompileOptions&) const = default;
};

namespace detail {
struct KernelState;
}

/// A compiled convolution. Copies share one loaded library; all members are const and safe to call from any thread.
class Kernel {
 public:
  /// Enqueues the convolution on `stream` (a CUstream or cudaStream_t; null is the default stream) of the current
  /// context. Asynchronous; allocates nothing, so it may be captured into a CUDA graph. A convolution without outputs
  /// enqueues nothing. Throws SpecError (invalid_argument) for a missing, superfluous, misaligned or overlapping
  /// pointer, CudaError if the driver refuses, and CudaError (no_driver) if there is none.
  void launch(void* stream, const LaunchArgs& args) const;

  /// Bytes of device memory launch() needs in LaunchArgs::workspace.
  std::int64_t workspace_bytes() const;

  const ConvSpec& spec() const;
  const Target& target() const;
  const std::string& source() const;  ///< the CUDA source, complete
  std::string plan() const;           ///< every number that was decided, readable
  std::string explain() const;        ///< which family and why, what was rejected, where it is slow
  /// The cubin that is (or would be) loaded; empty for a convolution without outputs.
  const std::string& image() const;
  const std::string& compile_log() const;  ///< what ptxas said; empty if the image came from the cache of an old log
  std::string cache_key() const;           ///< 64 hex digits
  bool from_cache() const;                 ///< the image came from the disk cache
  /// One entry per GPU kernel of the launch, in order.
  std::vector<Resources> resources() const;

  explicit Kernel(std::shared_ptr<const detail::KernelState> state) : state_(std::move(state)) {}
  const detail::KernelState& state() const { return *state_; }

 private:
  std::shared_ptr<const detail::KernelState> state_;
};

/// Compiles for the current device and loads the result, so that the first launch is as cheap as any. The same spec
/// again returns the same kernel; threads that ask for one spec at a time share one compilation.
/// Throws SpecError, CompileError, CudaError. Trouble with the disk cache never throws.
Kernel compile(const ConvSpec& spec, const CompileOptions& options = {});

/// Compiles for `target` without touching a GPU or the driver; launch() loads the image at first use.
Kernel compile(const ConvSpec& spec, const Target& target, const CompileOptions& options = {});

/// Counters of this process, for tests and logs.
struct Statistics {
  std::uint64_t memory_hits = 0, disk_hits = 0, disk_misses = 0, compilations = 0, disk_errors = 0;
};
Statistics statistics();

/// "0.1.0".
const char* version();

}  // namespace jitconv
