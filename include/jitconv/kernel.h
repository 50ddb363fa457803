// compile() and what it returns. runtime/compile.cpp is the place to start reading how a spec becomes a kernel.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "jitconv/error.h"
#include "jitconv/export.h"
#include "jitconv/spec.h"
#include "jitconv/target.h"

namespace jitconv {

/// Device pointers of one launch; ordinary memory of the process for Execution::host. Shapes, layouts and type are
/// those of the spec; every pointer satisfies spec.alignment. y overlaps none of the inputs, with one exception:
/// residual may be y itself, for y += convolution, because each element of y is read and written by one thread.
struct LaunchArgs {
  const void* x = nullptr;         ///< N, C, H, W in spec.input_layout
  const void* w = nullptr;         ///< K, C/groups, R, S
  const void* bias = nullptr;      ///< K elements; required if and only if epilogue.bias
  const void* residual = nullptr;  ///< as y; required if and only if epilogue.residual
  void* y = nullptr;               ///< N, K, P, Q in spec.output_layout; every element is written
  /// workspace_bytes() bytes, a multiple of 256; ignored if that is 0. Its contents need not be set and are not kept.
  /// Launches that may run at the same time, on other streams, need one each: every launch writes to it.
  void* workspace = nullptr;
  /// What Kernel::pack_weights() wrote, a multiple of 256; then w is null, and the workspace needs no more than
  /// workspace_bytes_with_packed_weights().
  const void* packed_w = nullptr;
};

/// What the driver, or the compiler's log, says of the compiled kernel. On the host, where a thread is a stack of its
/// own on the CPU, registers and local_bytes are 0, and the rest is what the launch asks for.
struct Resources {
  int registers = 0;              ///< per thread
  std::int64_t local_bytes = 0;   ///< stack and spills per thread
  std::int64_t shared_bytes = 0;  ///< static + dynamic, per block
  int threads = 0;                ///< per block
  bool operator==(const Resources&) const = default;
};

struct CompileOptions {
  bool line_info = false;  ///< pass -lineinfo, for profilers; on the host lines are always known
  /// Count memory requests and FMAs while the kernel runs, which then takes several times as long: what jitconv-run
  /// --counters prints. For Execution::host only: compile() throws SpecError (unsupported) for a GPU.
  bool counters = false;
  bool operator==(const CompileOptions&) const = default;
};

namespace detail {
struct KernelState;
}

/// A compiled convolution. Copies share one loaded library; all members are const and safe to call from any thread.
class JITCONV_API Kernel {
 public:
  /// Enqueues the convolution on `stream` (a CUstream or cudaStream_t; null is the default stream) of the current
  /// context; a thread without one gets the primary context of device 0. Asynchronous; allocates nothing, so it may be
  /// captured into a CUDA graph once the kernel is loaded on the device, which compile() for the current device, or the
  /// first launch on another one, does. A convolution without outputs enqueues nothing and looks at no pointer.
  /// Throws SpecError (invalid_argument) for a missing, superfluous, misaligned or overlapping pointer, CudaError if
  /// the driver refuses, CudaError (no_driver) if there is none, and CudaError (unsupported) on a device the kernel was
  /// not compiled for.
  /// For Execution::host: runs the convolution on the CPU and returns when it is done. There are no streams, so
  /// `stream` has to be null (SpecError); launches of several threads take turns. Throws KernelFault if the kernel
  /// breaks a rule.
  void launch(void* stream, const LaunchArgs& args) const;

  /// Bytes of device memory launch() needs in LaunchArgs::workspace: for weights as PyTorch stores them, or packed.
  std::int64_t workspace_bytes() const;
  std::int64_t workspace_bytes_with_packed_weights() const;

  /// Bytes of the weights in the order this kernel reads them; 0 if it takes them as they are.
  std::int64_t packed_weight_bytes() const;
  /// Enqueues packing of w, which launch() otherwise does every time: for weights that many launches share. The format
  /// is this kernel's own: the same spec, another version or another target may pack differently, so it is nothing to
  /// keep on disk. w and packed_w (packed_weight_bytes() bytes, a multiple of 256) do not overlap. Asynchronous, and
  /// throws as launch() does; SpecError (unsupported) if packed_weight_bytes() is 0.
  void pack_weights(void* stream, const void* w, void* packed_w) const;

  /// The spec in canonical form: fields that cannot matter have their defaults.
  const ConvSpec& spec() const;
  const Target& target() const;
  const std::string& source() const;  ///< the CUDA source, complete
  std::string plan() const;           ///< every number that was decided, readable
  std::string explain() const;        ///< which family and why, what was rejected, where it is slow
  /// The cubin that is (or would be) loaded, on the host a shared object; empty for a convolution without outputs. Like
  /// every reference this class returns, it is valid as long as any copy of the kernel.
  const std::string& image() const;
  const std::string& compile_log() const;  ///< what the compiler said when it made the image, maybe long ago
  std::string cache_key() const;           ///< 64 hex digits; empty for a convolution without outputs
  bool from_cache() const;                 ///< the image came from the disk cache
  /// One entry per GPU kernel of the launch, in order: from the driver once the kernel is loaded, else from the log.
  std::vector<Resources> resources() const;

  explicit Kernel(std::shared_ptr<const detail::KernelState> state) : state_(std::move(state)) {}
  const detail::KernelState& state() const { return *state_; }

 private:
  std::shared_ptr<const detail::KernelState> state_;
};

/// Compiles for the current device and loads the result, so that the first launch is as cheap as any. The same spec
/// again returns the same kernel; threads that ask for one spec at a time share one compilation.
/// Throws SpecError, CompileError, CudaError. Trouble with the disk cache never throws. In a child that fork() made of
/// a process that had used jitconv, throws CudaError (no_driver): neither CUDA nor NVRTC survives that, nor do locks
/// that other threads held, so the same goes for host execution.
JITCONV_API Kernel compile(const ConvSpec& spec, const CompileOptions& options = {});

/// Compiles for `target` without touching a GPU or the driver; launch() loads the image at first use. For
/// Execution::host the compiler is the machine's C++ compiler (JITCONV_HOST_CXX, or c++, g++, clang++ on the PATH).
JITCONV_API Kernel compile(const ConvSpec& spec, const Target& target, const CompileOptions& options = {});

/// Counters of this process, for tests and logs.
struct Statistics {
  std::uint64_t memory_hits = 0;   ///< compile() returned a kernel of this process, or waited for another thread's
  std::uint64_t disk_hits = 0;     ///< images read from the disk cache
  std::uint64_t disk_misses = 0;   ///< look-ups in the disk cache without a result
  std::uint64_t compilations = 0;  ///< calls of NVRTC or the C++ compiler, failed ones included
  std::uint64_t disk_errors = 0;   ///< cache files that were damaged or could not be read or written
};
JITCONV_API Statistics statistics();

/// "0.1.0".
JITCONV_API const char* version();

}  // namespace jitconv
