// Translates the Backend interface to nvrtc.h and driver.h, one call each; decides nothing but which devices an image
// fits.
#include "runtime/cuda_backend.h"

#include <fmt/format.h>

#include "runtime/driver.h"
#include "runtime/nvrtc.h"

namespace jitconv::runtime {
namespace {

/// Cubins run on the minor version they were compiled for and later ones of the same major; arch-specific ones only on
/// exactly their own.
bool runs_on(const Target& compiled_for, const Target& device) {
  if (compiled_for.major != device.major) return false;
  return compiled_for.arch_specific && compiled_for.major >= 9 ? compiled_for.minor == device.minor
                                                               : compiled_for.minor <= device.minor;
}

class CudaBackend final : public Backend {
 public:
  ImageFormat format() const override { return {cache::EntryKind::cubin, "", ".cubin"}; }
  CompilerIdentity compiler() const override { return find_compiler(); }
  std::string_view fingerprint() const override { return {}; }

  std::vector<std::string> options(const codegen::KernelSource& source, const CompileOptions& wanted) const override {
    std::vector<std::string> all = source.options;
    if (wanted.line_info) all.push_back("-lineinfo");
    return all;
  }

  Binary compile(const codegen::KernelSource& source, const std::vector<std::string>& options) const override {
    CompiledImage image = compile_source(source.text, std::string(source.name()) + ".cu", options);
    return {std::move(image.cubin), std::move(image.log), /*from_cache=*/false};
  }

  int ensure_context() const override { return Driver::get().ensure_context(); }

  void require_fitting_device(const Target& compiled_for, int device) const override {
    const Target target = Driver::get().target_of(device);
    if (runs_on(compiled_for, target)) return;
    throw CudaError(ErrorCode::unsupported, 0, "launch",
                    fmt::format("the kernel was compiled for {}, which device {}, an {}, cannot run",
                                compiled_for.arch(), device, target.arch()));
  }

  std::shared_ptr<LoadedImage> load(const std::string& image) const override { return Driver::get().load(image); }
  DeviceKernel kernel(const LoadedImage& image, const std::string& name) const override {
    return Driver::get().kernel(image, name);
  }
  DeviceKernelInfo prepare(DeviceKernel kernel, int device, std::uint32_t shared_bytes) const override {
    return Driver::get().prepare(kernel, device, shared_bytes);
  }
  bool refuses_image(const Error& error) const override {
    const auto* from_driver = dynamic_cast<const CudaError*>(&error);
    return from_driver != nullptr && Driver::refuses_image(from_driver->result());
  }

  bool is_capturing(void* stream) const override { return Driver::get().is_capturing(stream); }
  void launch(const LaunchStep& step, void* stream, void** parameters, bool overlap) const override {
    if (step.tensor_maps != 0) return launch_with_maps(step, stream, parameters, overlap);
    launch_as_given(step, stream, parameters, overlap);
  }

 private:
  static void launch_as_given(const LaunchStep& step, void* stream, void** parameters, bool overlap) {
    Driver::get().launch(step.kernel, step.entry->grid, step.entry->threads, step.entry->shared_bytes, stream,
                         parameters, overlap);
  }

  /// Maps hold the address, so each launch makes its own; the driver copies them with the other parameters.
  static void launch_with_maps(const LaunchStep& step, void* stream, void** parameters, bool overlap) {
    std::array<TensorMap, LaunchStep::kMostTensorMaps> maps;
    std::array<void*, LaunchStep::kMostParameters> all;
    std::size_t made = 0;
    for (std::size_t i = 0; i < step.parameters; ++i) {
      const codegen::TensorMapShape& shape = step.entry->arguments[i].map;
      all[i] = parameters[i];
      if (shape.rank == 0) continue;
      Driver::get().encode_tensor_map(shape, *static_cast<void**>(parameters[i]), maps[made]);
      all[i] = &maps[made++];
    }
    launch_as_given(step, stream, all.data(), overlap);
  }
};

}  // namespace

const Backend& cuda_backend() {
  static const CudaBackend backend;
  return backend;
}

}  // namespace jitconv::runtime
