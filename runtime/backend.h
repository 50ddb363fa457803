// Backend: the one thing the runtime knows of where kernels run. A backend makes images from sources, loads them and
// launches their kernels; plans, keys, the cache, the registry and the rules of a launch are the runtime's own and the
// same for all. A pure interface: whoever implements it links nothing of runtime/.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cache/entry.h"
#include "codegen/source.h"
#include "jitconv/error.h"
#include "jitconv/kernel.h"
#include "jitconv/target.h"
#include "runtime/image.h"

namespace jitconv::runtime {

/// What a backend's images are called.
struct ImageFormat {
  cache::EntryKind kind = cache::EntryKind::cubin;
  std::string_view key_prefix;  ///< before the target's arch() in cache keys: "" or "host-"
  std::string_view suffix;      ///< of the files in JITCONV_DUMP_DIR: ".cubin"
};

/// What the pointer in one kernel parameter leads to; the same for every launch of a kernel.
struct ParameterExtent {
  std::int64_t bytes = 0;
  bool writable = false;
};

/// Everything about one launch of one kernel but its stream and pointers: made once, when the kernel is loaded.
struct LaunchStep {
  static constexpr std::size_t kMostParameters = 8, kMostTensorMaps = 3;

  const codegen::KernelEntry* entry = nullptr;  ///< name, grid, threads, dynamic shared memory, parameters' names
  DeviceKernel kernel;
  DeviceKernelInfo info;
  std::size_t parameters = 0;   ///< entry->arguments.size()
  std::size_t tensor_maps = 0;  ///< of them
  /// In the order of entry->arguments. The pointers of a launch are neither null nor misaligned, and what they lead to
  /// does not overlap, with one exception: residual, which is not writable, may be y, which is.
  std::array<ParameterExtent, kMostParameters> extents{};
};

/// Stateless to its users: every member is const and may be called from any thread. Lives as long as the process.
class Backend {
 public:
  // Making images.

  virtual ImageFormat format() const = 0;
  /// Which compiler compile() would use. Throws CompileError (compiler_missing). Cheap after the first success.
  virtual CompilerIdentity compiler() const = 0;
  /// Identifies the code that prepares sources for the compiler; empty if nothing prepares them. Part of every key.
  virtual std::string_view fingerprint() const = 0;
  /// What compile() will be given: all that decides the image besides source and compiler. Part of every key.
  virtual std::vector<std::string> options(const codegen::KernelSource& source, const CompileOptions& wanted) const = 0;
  /// Throws CompileError. Calls for different sources run in parallel.
  virtual Binary compile(const codegen::KernelSource& source, const std::vector<std::string>& options) const = 0;

  // Running them.

  /// The calling thread's device, given one if it has none. Where there is only one it is 0. On every launch's path.
  virtual int ensure_context() const = 0;
  /// Throws CudaError (unsupported) if code made for `compiled_for` does not run on `device`.
  virtual void require_fitting_device(const Target& compiled_for, int device) const = 0;

  /// These three throw Errors; refuses_image() tells those that are the image's fault, which compiling again may mend,
  /// from those of the device, the memory or the context.
  virtual std::shared_ptr<LoadedImage> load(const std::string& image) const = 0;
  virtual DeviceKernel kernel(const LoadedImage& image, const std::string& name) const = 0;
  /// Makes the first launch on `device`, the one ensure_context() named, as cheap as any.
  virtual DeviceKernelInfo prepare(DeviceKernel kernel, int device, std::uint32_t shared_bytes) const = 0;
  virtual bool refuses_image(const Error& error) const = 0;

  /// Whether `stream` records work for later, so that nothing may be loaded for it now.
  virtual bool is_capturing(void* stream) const = 0;
  /// Element i of `parameters` is the address of the pointer that parameter i gets, as cuLaunchKernel takes it; there
  /// are step.parameters of them. A parameter whose argument has a map gets a tensor map of what is there instead,
  /// which the backend makes. `overlap`: the kernel may start before the one launched before it has finished. Takes no
  /// lock and no memory unless the backend says so.
  virtual void launch(const LaunchStep& step, void* stream, void** parameters, bool overlap) const = 0;

 protected:
  ~Backend() = default;  // nobody deletes one, so that kernels may be launched while static objects are destroyed
};

/// The backend for a target's execution. Defined in backend.cpp, the only file that names them all.
const Backend& backend_for(const Target& target);

}  // namespace jitconv::runtime
