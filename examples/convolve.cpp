#include <cstdio>
#include <jitconv/jitconv.hpp>
#include <string_view>
#include <vector>

#include "support.h"  // beside this file: DeviceBuffer, device_start() and device_stop(), random data, the check

// y = relu(conv(x, w) + b) in TF32: compiled for the GPU of this machine, run, checked and timed.
// `convolve host` does the same on the CPU with a smaller image.
int main(int argc, char** argv) try {
  const bool on_host = argc > 1 && std::string_view(argv[1]) == "host";
  jitconv::ConvSpec spec;
  spec.input = {8, 32, 512, 512};  // N, C, H, W
  if (on_host) spec.input = {1, 32, 8, 32};
  spec.weight = {64, 32, 5, 9};  // K, C/groups, R, S
  spec.padding = {4, 12};        // vertical, horizontal: y is as large as x
  spec.dilation = {2, 3};
  spec.math = jitconv::MathMode::tf32;  // operands are rounded to TF32; the default, fp32, is as accurate as FMA
  spec.epilogue = {.bias = true, .activation = jitconv::Activation::relu};

  const jitconv::Kernel kernel = on_host ? jitconv::compile(spec, jitconv::Target::host()) : jitconv::compile(spec);

  if (!on_host) device_open();
  const jitconv::TensorShape output = jitconv::output_shape(spec);
  const std::vector<float> x = random_values(spec.input.n * spec.input.c * spec.input.h * spec.input.w);
  const std::vector<float> w = random_values(spec.weight.k * spec.weight.c * spec.weight.r * spec.weight.s);
  const std::vector<float> b = random_values(spec.weight.k);
  std::vector<float> y(output.n * output.c * output.h * output.w);
  const DeviceBuffer device_x(x), device_w(w), device_b(b), device_y(y), workspace(kernel.workspace_bytes());
  const jitconv::LaunchArgs args{.x = device_x.data(),
                                 .w = device_w.data(),
                                 .bias = device_b.data(),
                                 .y = device_y.data(),
                                 .workspace = workspace.data()};

  kernel.launch(nullptr, args);  // asynchronous, on the default stream
  device_y.download(y);
  const int wrong = wrong_outputs(spec, x, w, b, y, 1000);

  const int launches = on_host ? 1 : 20;
  device_start();
  for (int i = 0; i < launches; ++i) kernel.launch(nullptr, args);
  const double ms = device_stop() / launches;
  const auto flop = static_cast<double>(2 * y.size() * spec.weight.c * spec.weight.r * spec.weight.s);
  std::printf("%s%.3f ms, %.4g TFLOP/s, %d of 1000 sampled outputs wrong\n", kernel.explain().c_str(), ms,
              flop / ms * 1e-9, wrong);
  return wrong == 0 ? 0 : 1;
} catch (const jitconv::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return static_cast<int>(error.code());
}
