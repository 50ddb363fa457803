// The program of the GPU suite. Besides GoogleTest's options:
//   --plant=TOOL        no tests: launch a kernel with the bug that TOOL finds
//   --warm-start=SPEC   no tests: time the first compile() of a process that has a context
//   --require-gpu       fail, rather than skip, without a GPU
// A report goes to standard output and, as JSON, to the file that JITCONV_GPU_REPORT names. The disk cache is a fresh
// folder unless JITCONV_CACHE_DIR is set.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <string>
#include <string_view>

#include "gpu/gpu.h"
#include "gpu/planted.h"
#include "jitconv/kernel.h"
#include "support/fresh_cache.h"
#include "support/report.h"

namespace jitconv::test {
namespace {

int print_warm_start(const std::string& text) {
  const ConvSpec spec = parse_spec(text);
  gpu()->synchronize();  // the context and its memory are there
  const auto begin = std::chrono::steady_clock::now();
  const Kernel kernel = compile(spec);
  const std::chrono::duration<double, std::milli> ms = std::chrono::steady_clock::now() - begin;
  std::printf("%.4f ms, from cache %d\n", ms.count(), kernel.from_cache() ? 1 : 0);
  return 0;
}

int run_tests(bool require_gpu) {
  const FreshCache cache("gpu-test");
  const int result = RUN_ALL_TESTS();
  if (::testing::GTEST_FLAG(list_tests)) return result;
  const Report& report = Report::get();
  std::fputs(report.text("gpu suite", device_text()).c_str(), stdout);
  if (const char* file = std::getenv("JITCONV_GPU_REPORT")) {
    std::ofstream stream(file);
    if (!(stream << report.json(device_text()) << std::flush)) {
      std::fprintf(stderr, "gpu_test: cannot write %s\n", file);
      return 1;
    }
  }
  if (require_gpu && gpu() == nullptr) {
    std::fprintf(stderr, "gpu_test: %s\n", why_no_gpu().c_str());
    return 1;
  }
  return result;
}

int run(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  std::string plant, warm_start;
  bool require_gpu = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--require-gpu") {
      require_gpu = true;
    } else if (argument.starts_with("--plant=")) {
      plant = argument.substr(argument.find('=') + 1);
    } else if (argument.starts_with("--warm-start=")) {
      warm_start = argument.substr(argument.find('=') + 1);
    } else {
      std::fprintf(stderr, "gpu_test: unknown argument %s\n", argv[i]);
      return 2;
    }
  }
  if (plant.empty() && warm_start.empty()) return run_tests(require_gpu);
  if (gpu() == nullptr) {
    std::fprintf(stderr, "gpu_test: %s\n", why_no_gpu().c_str());
    return 5;
  }
  if (!warm_start.empty()) return print_warm_start(warm_start);
  return run_planted_bug(plant) ? 0 : 2;
}

}  // namespace
}  // namespace jitconv::test

int main(int argc, char** argv) {
  try {
    return jitconv::test::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gpu_test: %s\n", error.what());
    return 1;
  }
}
