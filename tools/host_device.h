// The Device that is this machine's CPU: tensors are ordinary memory, and kernels are the generated CUDA text, compiled
// by the C++ compiler and executed with every rule checked. What the checks found is kept with each launch.
#pragma once

#include <vector>

#include "host/engine.h"
#include "tools/device.h"

namespace jitconv::tools {

class HostDevice final : public Device {
 public:
  /// Executes code for `target`, which is one of Target::host().
  explicit HostDevice(const Target& target);

  /// Order of threads and landing of copies in the launches that follow.
  void set_settings(const host::Settings& settings) { settings_ = settings; }

  /// What the engine reported since the last call, one report per kernel that ran.
  std::vector<host::Report> take_reports();

  const DeviceProperties& properties() const override { return properties_; }
  /// What the kernel says may be used without swapping.
  std::int64_t free_bytes() const override;
  void* allocate(std::int64_t bytes) override;
  void release(void* data) noexcept override;
  void upload(void* to, const void* from, std::int64_t bytes) override;
  void download(void* to, const void* from, std::int64_t bytes) override;
  void set_bytes(void* to, std::uint8_t value, std::int64_t bytes) override;
  void generate(void* to, std::int64_t count, const check::Fill& fill) override;
  void gather(const void* from, DataType type, std::span<const std::int64_t> indices,
              std::span<std::uint32_t> out) override;
  std::int64_t count_nan(const void* from, DataType type, std::int64_t count) override;
  std::int64_t count_other_bytes(const void* from, std::uint8_t value, std::int64_t count) override;
  void prepare(const Kernel& kernel) override;
  /// Returns when the kernel has ended. Findings do not throw: take_reports() has them.
  void launch(const Kernel& kernel, const LaunchArgs& args) override;
  void synchronize() override {}
  std::vector<double> time_ms(const std::function<void()>& before, const std::function<void()>& work,
                              int repeat) override;

 private:
  DeviceProperties properties_;
  host::Settings settings_;
  std::vector<host::Report> reports_;
};

}  // namespace jitconv::tools
