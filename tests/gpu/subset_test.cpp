// Small kernels of every family, store, type and layout for compute-sanitizer (sanitize.sh), with one allocation per
// tensor because the tool sees the ends of allocations only; and one planted bug per tool, to show that it looks.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "gpu/gpu.h"
#include "gpu/planted.h"
#include "gpu/raw_kernel.h"
#include "support/case_lists.h"

namespace jitconv::test {
namespace {

using SanitizerSubset = GpuTest;

TEST_F(SanitizerSubset, Kernels) {
  std::vector<Case> cases;
  std::size_t turn = 0;
  for (const FamilyCase& family : family_cases(target())) {
    std::vector<DataType> types = {DataType::f32, turn++ % 2 == 0 ? DataType::f16 : DataType::bf16};
    if (types_of(family).size() < 3) types = types_of(family);
    for (const DataType type : types) {
      ConvSpec spec = family.spec;
      spec.dtype = type;
      spec.epilogue.bias = true;
      spec.epilogue.residual = family.adds_residual && turn % 2 == 0;
      std::optional<codegen::ConvPlan> plan = plan_for(family, spec, target());
      ASSERT_TRUE(plan) << family.name;
      cases.push_back(
          {fmt::format("{} {}", family.name, to_string(type)), spec, std::move(plan), false, {check::DataKind::exact}});
    }
  }
  ASSERT_GE(cases.size(), 20u);
  RunOptions options;
  options.memory = Arena::Mode::exact_allocations;
  const Report::Category counts = run_cases(device(), "sanitizer subset", cases, options);
  EXPECT_EQ(counts.kernels, static_cast<std::int64_t>(cases.size()));
  EXPECT_GE(counts.families.size(), 3u);
}

struct Bug {
  const char* tool;
  const char* body;  // of a kernel with 64 threads, y[64] and x[64]
};

constexpr Bug kBugs[] = {
    {"memcheck", "y[threadIdx.x == 63 ? 64 : threadIdx.x] = 1.0f;"},
    {"racecheck", "shared[threadIdx.x] = y[threadIdx.x]; y[threadIdx.x] = shared[threadIdx.x ^ 32];"},
    // Lane 16 takes part in a barrier whose mask leaves it out. (A __syncthreads() that some threads skip is not
    // reported on this generation.)
    {"synccheck",
     "if (threadIdx.x % 32 <= 16) { shared[threadIdx.x] = 1.0f; __syncwarp(0xffffu); y[threadIdx.x] = shared[0]; }"},
    {"initcheck", "y[threadIdx.x] = x[threadIdx.x] + 1.0f;"},
};

}  // namespace

bool run_planted_bug(const std::string& tool) {
  for (const Bug& bug : kBugs) {
    if (tool != bug.tool) continue;
    tools::Device& device = *gpu();
    const RawKernel kernel = RawKernel::compiled(
        fmt::format("extern \"C\" __global__ void planted(const float* x, float* y) {{\n"
                    "  __shared__ volatile float shared[64];\n  shared[threadIdx.x] = 0.0f;\n  {}\n}}\n",
                    bug.body),
        "planted", device.properties().target);
    constexpr std::int64_t kBytes = 64 * 4;
    const tools::Buffer x(device, kBytes), y(device, kBytes);  // x is never written
    device.set_bytes(y.data(), 0, kBytes);
    kernel.launch(1, 64, x.data(), y.data());
    device.synchronize();
    return true;
  }
  return false;
}

}  // namespace jitconv::test
