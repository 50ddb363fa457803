// Compiles the kernels of this folder and runs them on small buffers: what the tests of planted bugs and of counters
// share.
#pragma once

#include <string>
#include <vector>

#include "codegen/source.h"
#include "host/compiler.h"
#include "host/engine.h"
#include "host/module.h"

namespace jitconv::test {

/// Text of kernels/<name>.cu. `#include "device/..."` is replaced by the device file, as generated kernels hold it.
std::string kernel_text(const std::string& name);

/// Text of templates/<name>; of multiplications, for 8 columns.
std::string device_text(const std::string& name);

/// Number of the line that contains `text`, which must be exactly one.
int line_with(const std::string& kernel, const std::string& text);

/// A compiled text with entries of the parameters (const float* x, float* y). If `y_map` has a rank, y is such a map.
class TestKernel {
 public:
  TestKernel(const std::string& text, const std::vector<std::string>& entries, host::Purpose purpose,
             const codegen::TensorMapShape& y_map = {});

  struct Shape {
    std::uint32_t blocks = 1, threads = 64, shared_bytes = 256, blocks_y = 1, blocks_z = 1;
  };
  /// Runs an entry on x, 250 floats with x[i] = i, and y, 256 floats.
  host::Report run(const std::string& entry, const Shape& shape, const host::Settings& settings);
  const float* y() const { return memory_.y; }

 private:
  // Neither buffer begins where another ends.
  struct alignas(256) Memory {
    float before[64];
    float x[256];
    float between[64];
    float y[256];
    float after[64];
  };
  host::Module module_;
  codegen::TensorMapShape y_map_;
  Memory memory_{};
};

}  // namespace jitconv::test
