// Runs a probe through a Backend, so that a GPU and the CPU are given the same text in the same way.
#pragma once

#include <memory>

#include "conformance/probes.h"
#include "runtime/backend.h"
#include "tools/device.h"

namespace jitconv::test {

/// A probe, compiled and loaded. Everything throws what the backend throws.
class LoadedProbe {
 public:
  /// `backend` is that of `device`; both and the probe outlive this.
  LoadedProbe(const runtime::Backend& backend, tools::Device& device, const Probe& probe);

  /// What comes out for `inputs`, which are whole blocks. Words that no thread writes are 0.
  Words run(const Words& inputs) const;

 private:
  const runtime::Backend& backend_;
  tools::Device& device_;
  const Probe& probe_;
  std::shared_ptr<runtime::LoadedImage> image_;
  runtime::DeviceKernel kernel_;
};

}  // namespace jitconv::test
