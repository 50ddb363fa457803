// See backend.h. Translates the runtime's words to compiler.h, module.h and engine.h.
#include "host/backend.h"

#include <fmt/format.h>

#include <deque>
#include <mutex>

#include "host/compiler.h"
#include "host/translation.h"
#include "jitconv/error.h"

namespace jitconv::host {
namespace {

/// What a DeviceKernel points to.
struct HostKernel {
  const Module* module;
  std::string entry;
};

class HostImage final : public runtime::LoadedImage {
 public:
  explicit HostImage(const std::string& image) : module_(image) {}

  /// Valid as long as the image.
  const HostKernel* kernel(const std::string& name) const {
    if (module_.entry(name) == nullptr) {
      throw CudaError(ErrorCode::cuda, Module::kInvalidImage, "kernel", "the module has no kernel " + name);
    }
    const std::lock_guard lock(mutex_);
    return &kernels_.emplace_back(HostKernel{&module_, name});
  }

 private:
  Module module_;
  mutable std::mutex mutex_;
  mutable std::deque<HostKernel> kernels_;
};

Launch launch_of(const runtime::LaunchStep& step, void** parameters) {
  const codegen::KernelEntry& entry = *step.entry;
  Launch launch{entry.name, entry.grid, entry.threads, entry.shared_bytes, {}};
  for (std::size_t i = 0; i < entry.arguments.size(); ++i) {
    const codegen::Argument& argument = entry.arguments[i];
    const runtime::ParameterExtent& extent = step.extents[i];
    launch.buffers.push_back(
        {argument.name, *static_cast<void**>(parameters[i]), extent.bytes, extent.writable, argument.map});
  }
  return launch;
}

std::string fault_text(const std::string& kernel, const std::vector<Finding>& findings) {
  std::string text = fmt::format("host execution of {} found {} fault(s)", kernel, findings.size());
  for (const Finding& finding : findings) text += "\n  " + to_string(finding);
  return text;
}

class HostBackend final : public runtime::Backend {
 public:
  runtime::ImageFormat format() const override { return {cache::EntryKind::host, "host-", ".so"}; }

  runtime::CompilerIdentity compiler() const override {
    const Compiler found = find_compiler();
    return {found.path, found.version, found.identity};
  }
  std::string_view fingerprint() const override { return host::fingerprint(); }
  std::vector<std::string> options(const codegen::KernelSource&, const CompileOptions& wanted) const override {
    return compile_options(find_compiler(), wanted.counters ? Purpose::count : Purpose::check);
  }
  runtime::Binary compile(const codegen::KernelSource& source, const std::vector<std::string>& options) const override {
    CompiledModule module = compile_module(find_compiler(), source, options);
    return {std::move(module.image), std::move(module.log), /*from_cache=*/false};
  }

  int ensure_context() const override { return 0; }
  void require_fitting_device(const Target&, int) const override {}

  std::shared_ptr<runtime::LoadedImage> load(const std::string& image) const override {
    return std::make_shared<HostImage>(image);
  }
  runtime::DeviceKernel kernel(const runtime::LoadedImage& image, const std::string& name) const override {
    return {const_cast<HostKernel*>(static_cast<const HostImage&>(image).kernel(name))};
  }
  runtime::DeviceKernelInfo prepare(runtime::DeviceKernel, int, std::uint32_t) const override { return {}; }
  bool refuses_image(const Error& error) const override {
    const auto* refused = dynamic_cast<const CudaError*>(&error);
    return refused != nullptr && refused->result() == Module::kInvalidImage;
  }

  bool is_capturing(void*) const override { return false; }
  /// Takes the engine's lock, and memory. Nothing overlaps: a kernel has ended when its launch returns.
  void launch(const runtime::LaunchStep& step, void* stream, void** parameters, bool /*overlap*/) const override {
    if (stream != nullptr) {
      throw SpecError(ErrorCode::invalid_argument, "stream",
                      fmt::format("stream is {}, must be null: host execution has no streams", stream));
    }
    const auto& kernel = *static_cast<const HostKernel*>(step.kernel.handle);
    Session* const session = Session::current();
    Report report =
        execute(*kernel.module, launch_of(step, parameters), session != nullptr ? session->settings() : Settings{});
    if (session != nullptr) {
      session->add(std::move(report));
    } else if (!report.findings.empty()) {
      throw KernelFault(fault_text(kernel.entry, report.findings));
    }
  }
};

thread_local Session* current_session = nullptr;

}  // namespace

const runtime::Backend& backend() {
  static const HostBackend the_backend;
  return the_backend;
}

Session::Session(Settings settings) : settings_(settings), outer_(current_session) { current_session = this; }
Session::~Session() { current_session = outer_; }
Session* Session::current() { return current_session; }

}  // namespace jitconv::host
