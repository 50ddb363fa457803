// Times the start of a program whose kernels are in the disk cache: compile() of the 53 convolutions of a ResNet-50
// (batch 32), in TF32 and bf16, NCHW and NHWC, for sm_90a and without a CUDA context, in one thread. Fills the cache in
// a first pass, which is not timed, and times a second process, so that nothing is in memory.
//
//   JITCONV_CACHE_DIR=/tmp/warm build/release/bench/warm_start
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "jitconv/error.h"
#include "jitconv/kernel.h"
#include "tools/stopwatch.h"

namespace {

using jitconv::ConvSpec;

constexpr std::int64_t kBatch = 32;

struct Arithmetic {
  const char* name;
  jitconv::DataType dtype;
  jitconv::MathMode math;
};
constexpr Arithmetic kArithmetics[] = {{"TF32", jitconv::DataType::f32, jitconv::MathMode::tf32},
                                       {"bf16", jitconv::DataType::bf16, jitconv::MathMode::fp32}};

ConvSpec layer(std::int64_t c, std::int64_t extent, std::int64_t k, std::int64_t taps, std::int64_t stride) {
  ConvSpec spec;
  spec.input = {kBatch, c, extent, extent};
  spec.weight = {k, c, taps, taps};
  spec.stride = stride;
  spec.padding = taps / 2;
  return spec;
}

/// He et al., "Deep Residual Learning for Image Recognition", table 1; the stride is the 3x3's, as in torchvision.
std::vector<ConvSpec> resnet50() {
  std::vector<ConvSpec> layers = {layer(3, 224, 64, 7, 2)};
  std::int64_t extent = 56, c = 64;
  const int blocks[] = {3, 4, 6, 3};
  for (int stage = 0; stage < 4; ++stage) {
    const std::int64_t width = std::int64_t{64} << stage;
    for (int block = 0; block < blocks[stage]; ++block) {
      const std::int64_t stride = stage > 0 && block == 0 ? 2 : 1;
      layers.push_back(layer(c, extent, width, 1, 1));
      layers.push_back(layer(width, extent, width, 3, stride));
      layers.push_back(layer(width, extent / stride, 4 * width, 1, 1));
      if (block == 0) layers.push_back(layer(c, extent, 4 * width, 1, stride));
      c = 4 * width;
      extent /= stride;
    }
  }
  return layers;
}

std::vector<ConvSpec> specs_of(const Arithmetic& arithmetic, jitconv::Layout layout) {
  std::vector<ConvSpec> specs = resnet50();
  for (ConvSpec& spec : specs) {
    spec.dtype = arithmetic.dtype;
    spec.math = arithmetic.math;
    spec.input_layout = spec.output_layout = layout;
  }
  return specs;
}

void fill_cache(const std::vector<ConvSpec>& specs, const jitconv::Target& target) {
  std::atomic<std::size_t> next{0};
  std::vector<std::jthread> workers;
  for (unsigned i = 0; i < std::max(1U, std::thread::hardware_concurrency()); ++i)
    workers.emplace_back([&] {
      for (std::size_t at = next++; at < specs.size(); at = next++) jitconv::compile(specs[at], target);
    });
}

void time_all(const jitconv::Target& target) {
  fmt::print("| | layers | ms | ms of a core | compiled |\n|---|---|---|---|---|\n");
  for (const Arithmetic& arithmetic : kArithmetics)
    for (const jitconv::Layout layout : {jitconv::Layout::nchw, jitconv::Layout::nhwc}) {
      const std::vector<ConvSpec> specs = specs_of(arithmetic, layout);
      const std::uint64_t before = jitconv::statistics().compilations;
      const jitconv::tools::Stopwatch wall;
      const jitconv::tools::CpuStopwatch core;
      for (const ConvSpec& spec : specs) jitconv::compile(spec, target);
      const double wall_ms = wall.ms(), core_ms = core.ms();
      fmt::print("| {} {} | {} | {:.0f} | {:.0f} | {} |\n", arithmetic.name, to_string(layout), specs.size(), wall_ms,
                 core_ms, jitconv::statistics().compilations - before);
    }
}

}  // namespace

int main(int argc, char** argv) try {
  const jitconv::Target target = jitconv::parse_target("sm_90a");
  if (argc > 1 && std::string(argv[1]) == "--timed") {
    time_all(target);
    return 0;
  }
  for (const Arithmetic& arithmetic : kArithmetics)
    for (const jitconv::Layout layout : {jitconv::Layout::nchw, jitconv::Layout::nhwc})
      fill_cache(specs_of(arithmetic, layout), target);
  execl(argv[0], argv[0], "--timed", nullptr);
  fmt::print(stderr, "cannot start {} again\n", argv[0]);
  return 1;
} catch (const jitconv::Error& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
