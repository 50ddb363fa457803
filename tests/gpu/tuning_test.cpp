// tune() on a device: it measures, its kernel is right, and the second call measures nothing.
#include "runtime/tuning.h"

#include <gtest/gtest.h>

#include "gpu/gpu.h"
#include "gpu/launchable.h"
#include "jitconv/tune.h"
#include "runtime/kernel_timer.h"

namespace jitconv::test {
namespace {

using Tuning = GpuTest;

TEST_F(Tuning, MeasuresOnceAndIsRight) {
  const ConvSpec specs[] = {
      parse_spec("input=4,32,40,72 weight=48,32,3,3 padding=1 bias activation=relu math=tf32"),
      parse_spec("input=4,32,40,72 weight=48,32,3,3 padding=1 layout=nhwc dtype=bf16 residual"),
      parse_spec("input=4,32,40,72 weight=48,32,3,3 padding=1 math=tf32 operation=data_gradient"),
      parse_spec("input=4,32,40,72 weight=48,32,3,3 padding=1 math=tf32 operation=weight_gradient bias"),
  };
  for (const ConvSpec& spec : specs) {
    SCOPED_TRACE(to_string(spec));
    Launchable one(device(), spec, tune(spec, {.candidates = 4, .launches = 3, .again = true}), 1);
    one.kernel.launch(nullptr, one.args);
    device().synchronize();
    EXPECT_EQ(one.verdict(), "");
    const std::uint64_t compilations = statistics().compilations;
    EXPECT_EQ(tune(spec).plan(), one.kernel.plan());
    EXPECT_LE(statistics().compilations, compilations + 1);
    EXPECT_NE(runtime::remembered_choice(spec, target()), std::nullopt);
  }
}

TEST_F(Tuning, TimesAreThoseOfKernels) {
  const ConvSpec small = parse_spec("input=1,8,16,16 weight=8,8,3,3 padding=1");
  const ConvSpec large = parse_spec("input=16,64,128,128 weight=64,64,3,3 padding=1 math=ieee");
  const auto ms = [](const ConvSpec& spec) {
    const std::vector<Kernel> kernels = {compile(spec)};
    return runtime::time_on_current_device(kernels, 5).at(0).value();
  };
  const double of_small = ms(small), of_large = ms(large);
  // 19 GFLOP of FMA take more than 0.2 ms on any GPU of 2026, 300 KFLOP do not.
  EXPECT_GT(of_large, 0.2);
  EXPECT_LT(of_small, of_large);
  EXPECT_GT(of_small, 0.0);
}

}  // namespace
}  // namespace jitconv::test
