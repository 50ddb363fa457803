// prepare(), which compiles many convolutions at once, on all cores.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "jitconv/export.h"
#include "jitconv/kernel.h"
#include "jitconv/spec.h"
#include "jitconv/target.h"

namespace jitconv {

/// Where a kernel came from.
enum class Origin : std::uint8_t {
  memory,    ///< it was in memory, or an equal spec was being compiled
  disk,      ///< its image was in the disk cache
  compiler,  ///< it was generated and compiled now
  failed,    ///< there is none: prepare() will throw
};

/// What prepare() says each time it is done with a spec.
struct Progress {
  std::size_t done = 0;            ///< specs that are finished, this one included
  std::size_t total = 0;           ///< specs of the call
  std::size_t index = 0;           ///< of this spec, from 0
  Origin origin = Origin::failed;  ///< of this spec's kernel
  bool operator==(const Progress&) const = default;
};

/// How prepare() works.
struct PrepareOptions {
  CompileOptions compile;  ///< of every spec
  int threads = 0;         ///< specs that are compiled at a time; 0: as many as there are cores
  /// Called once for each spec, in the order in which they are finished, by the thread that called prepare().
  /// If it throws, prepare() begins no further spec, waits for those it has begun, and throws the same.
  std::function<void(const Progress&)> progress;
};

/// compile() of every spec, in threads of its own: `kernels[i]` is the kernel that compile(specs[i], target) returns.
/// Equal specs share a kernel and are compiled once.
///
/// An error of one spec does not keep the others from being compiled. When all are finished, the error of the first
/// spec in the order of `specs` that has one is thrown: SpecError, CompileError or CudaError as by compile(). What
/// was compiled is then in memory and in the disk cache, as far as these keep it, and compile() of it returns soon.
/// Throws SpecError (invalid_argument, field "threads") if threads is negative, and after fork() CudaError (no_driver).
JITCONV_API std::vector<Kernel> prepare(std::span<const ConvSpec> specs, const Target& target,
                                        const PrepareOptions& options = {});

/// The same for the current device, on which the kernels are then loaded, each as soon as it is compiled. Throws also
/// CudaError if there is no driver or no device.
JITCONV_API std::vector<Kernel> prepare(std::span<const ConvSpec> specs, const PrepareOptions& options = {});

}  // namespace jitconv
