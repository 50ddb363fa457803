// A hand-written kernel on the device: for planted errors, and to launch a generated kernel with nothing in between.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "jitconv/target.h"
#include "runtime/driver.h"
#include "runtime/nvrtc.h"

namespace jitconv::test {

class RawKernel {
 public:
  /// Loads the kernel `name` of a cubin into the current context.
  RawKernel(const std::string& cubin, const std::string& name, std::uint32_t shared_bytes = 0)
      : shared_bytes_(shared_bytes) {
    const runtime::Driver& driver = runtime::Driver::get();
    const int device = driver.ensure_context();
    image_ = driver.load(cubin);
    kernel_ = driver.kernel(*image_, name);
    driver.prepare(kernel_, device, shared_bytes);
  }

  /// Compiles `source`, which has one kernel called `name`.
  static RawKernel compiled(const std::string& source, const std::string& name, const Target& target) {
    return RawKernel(runtime::compile_source(source, name + ".cu", {"--gpu-architecture=" + target.arch()}).cubin,
                     name);
  }

  /// On the default stream. The arguments' types are the kernel's.
  template <typename... Arguments>
  void launch(std::uint32_t blocks, std::uint32_t threads, Arguments... arguments) const {
    void* pointers[] = {const_cast<void*>(static_cast<const void*>(&arguments))...};
    const std::array<std::uint32_t, 3> grid{blocks, 1, 1};
    runtime::Driver::get().launch(kernel_, grid, threads, shared_bytes_, nullptr, pointers);
  }

  void* handle() const { return kernel_.handle; }

 private:
  std::shared_ptr<runtime::LoadedImage> image_;
  runtime::DeviceKernel kernel_;
  std::uint32_t shared_bytes_;
};

}  // namespace jitconv::test
