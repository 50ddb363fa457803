#include <cstdio>
#include <jitconv/jitconv.hpp>

// Enqueues y = relu(conv(x, w) + b) on a CUDA stream; x, w, b and y are device pointers of your program.
void convolve(const jitconv::Kernel& kernel, void* stream, const float* x, const float* w, const float* b, float* y) {
  kernel.launch(stream, {.x = x, .w = w, .bias = b, .y = y});
}

int main(int argc, char** argv) try {
  jitconv::ConvSpec spec;
  spec.input = {8, 32, 512, 512};  // N, C, H, W
  spec.filter = {64, 32, 5, 9};    // K, C/groups, R, S
  spec.padding = {4, 12};          // keeps 512x512
  spec.dilation = {2, 3};
  spec.epilogue = {.bias = true, .activation = jitconv::Activation::relu};
  // The GPU of this machine, or the one named on the command line: compiling needs none.
  const jitconv::Target target = argc > 1 ? jitconv::parse_target(argv[1]) : jitconv::current_target();
  const jitconv::Kernel kernel = jitconv::compile(spec, target);
  std::printf("%s\n%s", kernel.source().c_str(), kernel.explain().c_str());
  return 0;
} catch (const jitconv::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return static_cast<int>(error.code());
}
