// A runtime::Backend that runs nothing and records what it is asked: for tests of what every backend may rely on,
// without a driver or a compiler. A test chooses what fails.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/backend.h"

namespace jitconv::runtime_test {

struct RecordedLaunch {
  std::string kernel;
  void* stream = nullptr;
  bool overlap = false;
  std::vector<const void*> pointers;
  std::vector<runtime::ParameterExtent> extents;
};

/// Like the host's, its images are its own.
class FakeBackend final : public runtime::Backend {
 public:
  runtime::ImageFormat format() const override { return {cache::EntryKind::host, prefix, ".fake"}; }
  runtime::CompilerIdentity compiler() const override { return identity; }
  std::string_view fingerprint() const override { return translation; }

  std::vector<std::string> options(const codegen::KernelSource& source, const CompileOptions& wanted) const override {
    std::vector<std::string> all = {"-fake", "-for=" + source.options.front()};
    if (wanted.counters) all.push_back("-count");
    return all;
  }
  runtime::Binary compile(const codegen::KernelSource& source, const std::vector<std::string>& given) const override {
    ++compilations;
    compiled_with = given;
    if (broken_compiler) throw CompileError(ErrorCode::compile_failed, "the fake compiler is broken", "its log");
    return {"fake image " + std::to_string(std::hash<std::string>()(source.text)), "fake log", /*from_cache=*/false};
  }

  int ensure_context() const override { return device; }
  void require_fitting_device(const Target& compiled_for, int on) const override {
    if (on != kOldDevice) return;
    throw CudaError(ErrorCode::unsupported, 0, "launch", compiled_for.arch() + " does not fit");
  }
  std::shared_ptr<runtime::LoadedImage> load(const std::string& image) const override {
    maybe_fail("load");
    EXPECT_EQ(image.substr(0, 11), "fake image ");
    return std::make_shared<Loaded>(live_images);
  }
  runtime::DeviceKernel kernel(const runtime::LoadedImage& image, const std::string& name) const override {
    maybe_fail("kernel");
    const auto& loaded = dynamic_cast<const Loaded&>(image);
    loaded.names.push_back(std::make_unique<std::string>(name));
    return {loaded.names.back()->data()};
  }
  runtime::DeviceKernelInfo prepare(runtime::DeviceKernel kernel, int on, std::uint32_t) const override {
    maybe_fail("prepare");
    EXPECT_NE(kernel.handle, nullptr);
    EXPECT_EQ(on, device);
    return {3, 5, 7};
  }
  bool refuses_image(const Error& error) const override { return std::string(error.what()) == kImagesFault; }

  bool is_capturing(void* stream) const override { return stream != nullptr && stream == capturing; }
  void launch(const runtime::LaunchStep& step, void* stream, void** parameters, bool overlap) const override {
    const std::lock_guard lock(mutex);
    if (fault) throw KernelFault("the fake kernel is at fault");
    RecordedLaunch& launch = launches.emplace_back();
    launch.kernel = step.entry->name;
    EXPECT_EQ(static_cast<const char*>(step.kernel.handle), step.entry->name) << "the handle kernel() gave";
    EXPECT_EQ(step.parameters, step.entry->arguments.size());
    launch.stream = stream;
    launch.overlap = overlap;
    for (std::size_t i = 0; i < step.parameters; ++i) {
      launch.pointers.push_back(*static_cast<void**>(parameters[i]));
      launch.extents.push_back(step.extents[i]);
    }
  }

  /// The next `times` calls of `call` fail: because of the image, or of something else.
  void fail(const std::string& call, bool images_fault, int times = 1) {
    failing = call;
    failures = times;
    reason = images_fault ? kImagesFault : "out of memory";
  }
  int count(const std::string& call) const {
    const std::lock_guard lock(mutex);
    return calls[call];
  }

  static constexpr int kOldDevice = 5;
  static constexpr const char* kImagesFault = "this is no image";

  std::string prefix = "fake-", translation = "translation 1";
  runtime::CompilerIdentity identity{"/usr/bin/fake", "1.0", "abc"};
  std::atomic<int> device{0};
  void* capturing = nullptr;
  bool broken_compiler = false, fault = false;
  mutable std::atomic<int> compilations{0}, live_images{0};
  mutable std::vector<std::string> compiled_with;
  mutable std::vector<RecordedLaunch> launches;

 private:
  struct Loaded final : runtime::LoadedImage {
    explicit Loaded(std::atomic<int>& count) : live(count) { ++live; }
    ~Loaded() override { --live; }
    mutable std::vector<std::unique_ptr<std::string>> names;
    std::atomic<int>& live;
  };

  void maybe_fail(const std::string& call) const {
    const std::lock_guard lock(mutex);
    ++calls[call];
    if (call != failing || failures == 0) return;
    --failures;
    throw CudaError(ErrorCode::cuda, 0, call, reason);
  }

  std::string failing, reason;
  mutable int failures = 0;
  mutable std::map<std::string, int> calls;
  mutable std::mutex mutex;
};

}  // namespace jitconv::runtime_test
