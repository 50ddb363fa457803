// Tensors around and beyond 2^31 elements, where 32-bit offsets end: which kernels use which offsets is a proof in the
// planner, and this is its test. Sampled outputs, every output at least written, redzones.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "gpu/gpu.h"
#include "support/case_lists.h"
#include "tools/check/tensors.h"

namespace jitconv::test {
namespace {

using Boundary = GpuTest;

struct Large {
  const char* name;
  const char* spec;
  bool wide;      ///< some offset needs more than 32 bits
  bool fallback;  ///< run with the fallback family too
};

// Outputs, unless the name says otherwise.
constexpr Large kLarge[] = {
    {"just below 2^31", "input=31,1,4096,4224 weight=4,1,1,1 dtype=f16", false, true},
    {"2^31 - 1", "input=1,1,1,2147483647 weight=1,1,1,1 dtype=f16", true, true},
    {"2^31, f32", "input=16,4,1024,1024 weight=128,4,1,1", true, false},
    {"2^31, bf16 with bias and residual",
     "input=16,4,1024,1024 weight=128,4,1,1 dtype=bf16 bias residual activation=relu", true, false},
    {"2^31 and an image more", "input=17,4,1024,1024 weight=128,4,1,1 dtype=f16", true, true},
    {"2^31 and an image more, nhwc",
     "input=17,4,1024,1024 weight=128,4,1,1 dtype=f16 input_layout=nhwc output_layout=nhwc", true, true},
    {"2^31 and a bit, 3x3 padded", "input=9,3,1369,1367 weight=128,3,3,3 padding=1 dtype=bf16", true, false},
    {"input beyond 2^31, few outputs", "input=33,64,1024,1024 weight=8,64,3,3 stride=8 padding=1 dtype=f16", true,
     true},
    {"input beyond 2^31, nhwc", "input=33,64,1024,1024 weight=8,64,3,3 stride=8 padding=1 dtype=f16 input_layout=nhwc",
     true, false},
    {"depthwise, 2^31 and a channel", "input=1,2049,1024,1024 weight=2049,1,3,3 groups=2049 padding=1 dtype=f16", true,
     false},
    {"depthwise, 2^32", "input=64,64,1024,1024 weight=64,1,3,3 groups=64 padding=1 dtype=f16", true, false},
    {"depthwise, odd rows", "input=65,32,1025,1023 weight=32,1,3,3 groups=32 dtype=f16", true, false},
    {"depthwise, multiplier", "input=17,8,1024,1024 weight=128,1,3,3 groups=8 padding=1 dtype=f16", true, false},
    {"filter of 2^31 elements", "input=1,32768,2,4 weight=65536,32768,1,1 dtype=f16", true, false},
    {"one row as long as a row may be", "input=1,1,1,2147483640 weight=1,1,1,8 stride=1,8 dtype=f16", true, true},
};

TEST_F(Boundary, BeyondTwoToThe31) {
  std::vector<Case> cases;
  for (const Large& large : kLarge) {
    const ConvSpec spec = parse_spec(large.spec);
    const codegen::ConvPlan plan = codegen::make_plan(spec, target());
    // The planner may be more careful than it must, never less.
    EXPECT_TRUE(plan.convolution().wide_index || !large.wide) << large.name;
    cases.push_back({large.name, spec, plan, false, {}});
    cases.back().kinds = {check::DataKind::exact, check::DataKind::random};
    if (!large.fallback) continue;
    FamilyCase fallback{large.name, spec, codegen::Family::fallback, {}};
    cases.push_back({fmt::format("{}, fallback", large.name),
                     spec,
                     plan_for(fallback, spec, target()),
                     false,
                     {check::DataKind::exact}});
  }
  std::int64_t largest = 0;
  for (const Case& one : cases) largest = std::max(largest, check::tensor_bytes(one.spec));
  const std::int64_t free = device().free_bytes();
  if (largest + (std::int64_t{1} << 30) > free)
    GTEST_SKIP() << "needs " << (largest >> 20) << " MiB of device memory, " << (free >> 20) << " MiB are free";
  const Report::Category counts = run_cases(device(), "2^31 boundary", cases);
  EXPECT_EQ(counts.kernels, static_cast<std::int64_t>(cases.size()));
  EXPECT_EQ(counts.failed, 0);
}

}  // namespace
}  // namespace jitconv::test
