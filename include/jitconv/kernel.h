// compile(), which turns a ConvSpec into a Kernel, and what a Kernel can do. To read how it works, start with
// runtime/compile.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "jitconv/error.h"
#include "jitconv/export.h"
#include "jitconv/spec.h"
#include "jitconv/target.h"

namespace jitconv {

/// The pointers of one launch: to device memory, or for Execution::host to ordinary memory. Tensors are dense, have the
/// shapes, layouts and type of the spec, and start at multiples of spec.alignment bytes. A result overlaps nothing,
/// with one exception: residual may be y itself (dx, dw), for y += convolution, because one thread reads and writes
/// each element of y. Tensors that the operation has no part for are null, and so are x, dy and saved without images.
struct LaunchArgs {
  const void* x = nullptr;         ///< N, C, H, W in spec.input_layout
  const void* w = nullptr;         ///< K, C/groups, R, S; null if packed_w is given
  const void* bias = nullptr;      ///< K elements (C of a data_gradient); required if and only if epilogue.bias
  const void* residual = nullptr;  ///< as the result; required if and only if epilogue.residual
  void* y = nullptr;               ///< N, K, P, Q in spec.output_layout; every element is written
  /// Kernel::workspace_bytes() bytes at a multiple of 256; ignored if that is 0. The launch overwrites it. Launches
  /// that may run at the same time, on different streams, need a workspace each.
  void* workspace = nullptr;
  /// What Kernel::pack_weights() wrote, at a multiple of 256. w is then null, and the workspace has
  /// Kernel::workspace_bytes_with_packed_weights() bytes.
  const void* packed_w = nullptr;

  // Tensors of gradients: Operation::data_gradient reads dy and w and writes dx; weight_gradient reads x and dy and
  // writes dw and, if epilogue.bias, db. Every element of a result is written.
  const void* dy = nullptr;  ///< N, K, P, Q in spec.output_layout
  void* dx = nullptr;        ///< N, C, H, W in spec.input_layout
  void* dw = nullptr;        ///< K, C/groups, R, S, of the output type
  void* db = nullptr;        ///< K elements of the output type
  /// As dy: what ConvSpec::dy_activation's derivative is computed from, y or z; required if and only if it is not none.
  const void* saved = nullptr;
};

/// What one GPU kernel uses, according to the driver or the compiler's log. On the host registers and local_bytes are
/// 0, and the rest is what the launch asks for.
struct Resources {
  int registers = 0;              ///< per thread
  std::int64_t local_bytes = 0;   ///< stack and spills per thread
  std::int64_t shared_bytes = 0;  ///< static + dynamic, per block
  int threads = 0;                ///< per block
  bool operator==(const Resources&) const = default;
};

/// Options that change neither the plan nor the results.
struct CompileOptions {
  bool line_info = false;  ///< pass -lineinfo, for profilers; on the host lines are always known
  /// Count memory requests and FMAs while the kernel runs, as jitconv-run --counters prints them; the kernel then takes
  /// several times as long. For Execution::host only: for a GPU compile() throws SpecError (unsupported).
  bool counters = false;
  bool operator==(const CompileOptions&) const = default;
};

namespace detail {
struct KernelState;
struct KernelAccess;
}  // namespace detail

/// A compiled convolution. compile() and prepare() make it. Copies share one loaded image. All members are const and
/// may be called from any thread. References that a member returns are valid as long as any copy of the kernel.
class JITCONV_API Kernel {
 public:
  /// Enqueues the convolution on `stream` (a CUstream or cudaStream_t; null is the default stream) of the current
  /// context, and returns without waiting for it. A thread without a context gets the primary context of device 0.
  /// Allocates nothing, so a launch may be captured into a CUDA graph once the kernel is loaded on the device:
  /// compile() for the current device loads it, and so does the first launch on another device. A convolution without
  /// outputs enqueues nothing and looks at no pointer. Keep a copy of the Kernel until the launch is complete, and as
  /// long as a CUDA graph contains it.
  ///
  /// Throws SpecError (invalid_argument) for a missing, superfluous, misaligned or overlapping pointer; CudaError
  /// (no_driver) if there is no driver, CudaError (unsupported) on a device that the kernel was not compiled for, and
  /// CudaError if the driver refuses.
  ///
  /// For Execution::host it runs the convolution on the CPU and returns when y is complete. `stream` must be null
  /// (SpecError), and launches of several threads take turns. Throws KernelFault if the kernel breaks a rule.
  void launch(void* stream, const LaunchArgs& args) const;

  /// The size of LaunchArgs::workspace in bytes, for a launch with w. May be 0.
  std::int64_t workspace_bytes() const;
  /// The size of LaunchArgs::workspace in bytes, for a launch with packed_w. May be 0.
  std::int64_t workspace_bytes_with_packed_weights() const;

  /// The size of the packed weights in bytes; 0 if this kernel reads w in PyTorch's order.
  std::int64_t packed_weight_bytes() const;
  /// Enqueues the packing of w, which a launch with w repeats every time. Use it for weights that many launches share.
  /// packed_w has packed_weight_bytes() bytes, starts at a multiple of 256 and does not overlap w. Only this kernel can
  /// read the result: another version of jitconv, another target or another compilation of the spec may pack
  /// differently, so do not store it. Asynchronous as launch(), and throws as launch() does; SpecError (unsupported) if
  /// packed_weight_bytes() is 0.
  void pack_weights(void* stream, const void* w, void* packed_w) const;

  /// The spec in canonical form: fields that cannot matter have their defaults.
  const ConvSpec& spec() const;
  /// The target that the kernel was compiled for.
  const Target& target() const;
  const std::string& source() const;  ///< The complete CUDA source.
  std::string plan() const;           ///< The numbers of the plan, for people: lines of `name: value`.
  std::string explain() const;        ///< Which kernel family was chosen and why, what was rejected, what is slow.
  /// The cubin, or for the host the shared object. Empty for a convolution without outputs.
  const std::string& image() const;
  const std::string& compile_log() const;  ///< The compiler's log when it made the image, possibly long ago.
  std::string cache_key() const;           ///< 64 hex digits. Empty for a convolution without outputs.
  bool from_cache() const;                 ///< Whether the image came from the disk cache.
  /// What each GPU kernel of a launch uses, in order: from the driver once the kernel is loaded, before from the log.
  std::vector<Resources> resources() const;

 private:
  friend struct detail::KernelAccess;
  explicit Kernel(std::shared_ptr<const detail::KernelState> state) : state_(std::move(state)) {}

  std::shared_ptr<const detail::KernelState> state_;
};

/// Compiles for the current device and loads the kernel there, so that the first launch costs no more than later ones.
/// The same spec again returns the same kernel; threads that ask for one spec at the same time share one compilation.
/// While a thread compiles, fork() and exit() in other threads wait for it, a minute at most.
///
/// There is one image per cache key, which all processes that share the cache use. Compiling one source again with the
/// same compiler and options may give different machine code that computes the same, as NVRTC 13.0 does occasionally.
///
/// Throws SpecError, which is unsupported if this version has no kernel for a valid spec, CompileError or CudaError.
/// Trouble with the disk cache never throws. A compilation that begins during exit() throws CompileError. In the child
/// of a process that had used jitconv before fork(), it throws CudaError (no_driver), for the host as well: neither
/// CUDA nor NVRTC survives a fork, and locks that other threads held stay locked.
JITCONV_API Kernel compile(const ConvSpec& spec, const CompileOptions& options = {});

/// Compiles for `target` without using a GPU or the driver; the first launch loads the image. For Execution::host the
/// compiler is a C++ compiler of this machine: JITCONV_HOST_CXX, or c++, g++ or clang++ on the PATH. Throws SpecError,
/// CompileError, and after fork() CudaError (no_driver).
JITCONV_API Kernel compile(const ConvSpec& spec, const Target& target, const CompileOptions& options = {});

/// Drops every kernel that no Kernel refers to, together with the GPU memory of its code. Returns their number. The
/// next compile() of such a convolution finds its image in the disk cache. jitconv itself drops kernels when more than
/// JITCONV_MAX_KERNELS (512) are in memory, those first that have been unused longest, and never one that a Kernel
/// refers to. So keep the Kernel while its launches are in flight, and while a CUDA graph contains them. Throws
/// CudaError (no_driver) in the child of a process that had used jitconv before fork().
JITCONV_API std::size_t release_unused_kernels();

/// Counters of this process, for tests and logs.
struct Statistics {
  std::uint64_t memory_hits = 0;   ///< calls of compile() that found the kernel in memory or waited for another thread
  std::uint64_t disk_hits = 0;     ///< images read from the disk cache
  std::uint64_t disk_misses = 0;   ///< look-ups in the disk cache without a result
  std::uint64_t compilations = 0;  ///< calls of NVRTC or the C++ compiler, including those that failed
  std::uint64_t disk_errors = 0;   ///< cache files that were damaged, or could not be read or written
  std::uint64_t kernels = 0;       ///< kernels in memory now
};
/// The counters' present values.
JITCONV_API Statistics statistics();

/// The library's version, "0.1.0".
JITCONV_API const char* version();

}  // namespace jitconv
