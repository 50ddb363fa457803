// For convolve.cpp: device memory that frees itself, random data, and the check of y = relu(conv(x, w) + b) against
// sums in double. Not part of jitconv.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <jitconv/jitconv.hpp>
#include <random>
#include <vector>

#include "device.h"

/// Device memory, in bytes or as a copy of a vector.
class DeviceBuffer {
 public:
  explicit DeviceBuffer(std::size_t bytes) : data_(device_allocate(bytes)) {}
  explicit DeviceBuffer(const std::vector<float>& values) : DeviceBuffer(values.size() * sizeof(float)) {
    device_upload(data_, values.data(), values.size() * sizeof(float));
  }
  ~DeviceBuffer() { device_free(data_); }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  void* data() const { return data_; }
  /// Waits for what the default stream still does.
  void download(std::vector<float>& values) const {
    device_download(values.data(), data_, values.size() * sizeof(float));
  }

 private:
  void* data_;
};

inline std::vector<float> random_values(std::int64_t count) {
  static std::mt19937 generator(1);
  std::uniform_real_distribution<float> between(-1, 1);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = between(generator);
  return values;
}

/// How many of `samples` random outputs of relu(conv(x, w) + b), computed in TF32, are wrong: further from the same sum
/// in double than TF32 can explain. docs/accuracy.md derives the bound. Of a spec with stride 1, groups 1 and NCHW.
inline int wrong_outputs(const jitconv::ConvSpec& spec, const std::vector<float>& x, const std::vector<float>& w,
                         const std::vector<float>& b, const std::vector<float>& y, int samples) {
  const auto [input_n, input_c, input_h, input_w] = spec.input;
  const jitconv::TensorShape out = jitconv::output_shape(spec);
  const double length = static_cast<double>(input_c * spec.weight.r * spec.weight.s);
  const double relative_bound = 1.01 * (0x1p-10 + (length + 2) * 0x1p-22);  // operands, then sums on tensor cores
  std::mt19937_64 generator(2);
  int wrong = 0;
  for (int sample = 0; sample < samples; ++sample) {
    const auto at = static_cast<std::int64_t>(generator() % y.size());
    const std::int64_t q = at % out.w, p = at / out.w % out.h, k = at / (out.w * out.h) % out.c,
                       n = at / (out.w * out.h * out.c);
    double sum = b[k], magnitude = std::fabs(sum);
    for (std::int64_t c = 0; c < input_c; ++c) {
      for (std::int64_t r = 0; r < spec.weight.r; ++r) {
        for (std::int64_t s = 0; s < spec.weight.s; ++s) {
          const std::int64_t row = p - spec.padding.top + r * spec.dilation.h;
          const std::int64_t column = q - spec.padding.left + s * spec.dilation.w;
          if (row < 0 || row >= input_h || column < 0 || column >= input_w) continue;
          const double product = double{x[((n * input_c + c) * input_h + row) * input_w + column]} *
                                 double{w[((k * input_c + c) * spec.weight.r + r) * spec.weight.s + s]};
          sum += product;
          magnitude += std::fabs(product);
        }
      }
    }
    const double error = std::fabs(std::max(sum, 0.0) - double{y[at]});
    if (!(error <= relative_bound * magnitude)) ++wrong;  // a NaN is wrong, too
  }
  return wrong;
}
