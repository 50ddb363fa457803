// What jitconv costs besides the kernel: a launch over a raw cuLaunchKernel, a second compile() of the same spec, and
// the way from a warm disk cache to a kernel that can be launched, in this process and in a fresh one. Limits are twice
// the goals, because machines differ; the figures themselves are in the report.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "gpu/gpu.h"
#include "gpu/raw_kernel.h"
#include "runtime/compile.h"
#include "support/case_lists.h"
#include "tools/documented.h"

namespace jitconv::test {
namespace {

using Clock = std::chrono::steady_clock;
using Overhead = GpuTest;

constexpr double kLaunchGoalUs = 0.3, kSecondCompileGoalUs = 1, kWarmStartGoalMs = 3;
constexpr double kSlack = 2;

double us_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double, std::micro>(end - begin).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

TEST_F(Overhead, OfALaunch) {
  const ConvSpec spec = parse_spec("input=1,4,8,8 weight=4,4,3,3 bias");
  const Kernel kernel = compile(spec);
  Arena arena(device());
  const LaunchArgs args = place_tensors(arena, spec, kernel.workspace_bytes());
  device().synchronize();
  const codegen::KernelEntry& entry = runtime::source_of(kernel).entries.front();
  const RawKernel raw(kernel.image(), entry.name, entry.shared_bytes);
  const void *x = args.x, *w = args.w, *bias = args.bias;
  void* y = args.y;
  void* parameters[] = {&x, &w, &bias, &y};
  ASSERT_EQ(entry.arguments.size(), std::size(parameters));
  const CudaCalls& calls = CudaCalls::get();
  const Stream stream;

  constexpr int kRounds = 40, kPerRound = 50;  // the queue never fills, which would stall a launch
  std::vector<double> raw_us, ours_us;
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < kPerRound; ++i) {
      const Clock::time_point a = Clock::now();
      const int result = calls.launch_kernel(raw.handle(), entry.grid[0], 1, 1, entry.threads, 1, 1, entry.shared_bytes,
                                             stream.get(), parameters, nullptr);
      const Clock::time_point b = Clock::now();
      kernel.launch(stream.get(), args);
      const Clock::time_point c = Clock::now();
      check_cuda(result, "cuLaunchKernel");
      raw_us.push_back(us_between(a, b));
      ours_us.push_back(us_between(b, c));
    }
    stream.synchronize();
  }
  ASSERT_EQ(ours_us.size(), 2000u);
  const double overhead = median(ours_us) - median(raw_us);
  Report::get().measured("launch, raw cuLaunchKernel, median", median(raw_us), "us");
  Report::get().measured("launch, overhead over it, median", overhead, "us");
  EXPECT_GT(median(raw_us), 0.1) << "no driver is that fast: nothing was launched";
  EXPECT_LE(overhead, kSlack * kLaunchGoalUs) << "us, of launches that take " << median(raw_us) << " us raw";
}

TEST_F(Overhead, OfASecondCompile) {
  const ConvSpec spec = parse_spec("input=1,4,8,8 weight=4,4,3,3 bias");
  const Kernel first = compile(spec);
  const std::uint64_t compilations = statistics().compilations;
  std::vector<double> us;
  for (int i = 0; i < 2000; ++i) {
    const Clock::time_point begin = Clock::now();
    const Kernel again = compile(spec);
    us.push_back(us_between(begin, Clock::now()));
    ASSERT_EQ(&again.source(), &first.source()) << "not the same kernel";
  }
  EXPECT_EQ(statistics().compilations, compilations);
  Report::get().measured("second compile(spec), median", median(us), "us");
  EXPECT_LE(median(us), kSlack * kSecondCompileGoalUs);
}

TEST_F(Overhead, FromTheDiskCacheToALoadedKernel) {
  std::vector<double> ms;
  for (const tools::DocumentedConfiguration& one : tools::documented_configurations()) {
    runtime::compile_plan(codegen::make_plan(one.spec, target()));
    for (int run = 0; run < 3; ++run) {
      const Clock::time_point begin = Clock::now();
      const Kernel kernel = runtime::compile_plan(codegen::make_plan(one.spec, target()));
      runtime::prepare(kernel);
      ms.push_back(us_between(begin, Clock::now()) * 1e-3);
      ASSERT_TRUE(kernel.from_cache()) << one.name << ": the disk cache does not work here";
    }
  }
  Report::get().measured("disk hit to loaded, same process, median", median(ms), "ms");
  Report::get().measured("disk hit to loaded, same process, slowest", *std::max_element(ms.begin(), ms.end()), "ms");
  EXPECT_LE(median(ms), kSlack * kWarmStartGoalMs);
}

/// Runs this program with --warm-start in a process of its own: milliseconds of the first compile(), or -1.
double warm_start_ms(const ConvSpec& spec) {
  std::string program(4096, '\0');
  const ssize_t length = readlink("/proc/self/exe", program.data(), program.size());
  if (length <= 0) return -1;
  program.resize(static_cast<std::size_t>(length));
  FILE* const pipe = popen(fmt::format("'{}' --warm-start='{}'", program, to_string(spec)).c_str(), "r");
  if (pipe == nullptr) return -1;
  double ms = -1;
  int from_cache = 0;
  const int read = std::fscanf(pipe, "%lf ms, from cache %d", &ms, &from_cache);
  const int status = pclose(pipe);
  return read == 2 && from_cache == 1 && status == 0 ? ms : -1;
}

TEST_F(Overhead, OfTheFirstCompileInAWarmProcess) {
  std::vector<double> ms;
  for (const char* name : {"A", "C_bias", "KB_L1_50", "KB_L1_82", "KB_L1_86_pw"}) {
    const ConvSpec& spec = tools::find_documented(name)->spec;
    compile(spec);
    for (int run = 0; run < 3; ++run) {
      ms.push_back(warm_start_ms(spec));
      ASSERT_GT(ms.back(), 0) << name << ": the other process failed, or missed the disk cache";
    }
  }
  Report::get().measured("disk hit to loaded, fresh process with a context, median", median(ms), "ms");
  EXPECT_LE(median(ms), kSlack * kWarmStartGoalMs);
}

}  // namespace
}  // namespace jitconv::test
