// Small kernels of every family, store, type and layout for compute-sanitizer (sanitize.sh), with one allocation per
// tensor because the tool sees the ends of allocations only; and one planted bug per tool, to show that it looks.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "gpu/gpu.h"
#include "gpu/planted.h"
#include "gpu/raw_kernel.h"
#include "support/case_lists.h"
#include "support/gradient_cases.h"

namespace jitconv::test {
namespace {

using SanitizerSubset = GpuTest;

Report::Category run_subset(const std::string& title, const std::vector<Case>& cases) {
  RunOptions options;
  options.memory = Arena::Mode::exact_allocations;
  return run_cases(*gpu(), title, cases, options);
}

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
  const Report::Category counts = run_subset("sanitizer subset", cases);
  EXPECT_EQ(counts.kernels, static_cast<std::int64_t>(cases.size()));
  EXPECT_GE(counts.families.size(), 3u);
}

/// Consumer threads load floats of dy that other warps wrote. One lane arrives at the mbarrier for its warp, behind
/// __syncwarp(): that orders what all its lanes wrote, by PTX's memory model, and racecheck reports it all the
/// same, also of a kernel that does nothing else. What wgmma and TMA read it does not look at. Host execution checks
/// the order of these kernels' accesses, with every arrival.
bool reads_behind_one_arrival(const Case& one) {
  const auto* const tiling = one.plan->tiling<codegen::WgradWgmmaTiling>();
  return tiling != nullptr && tiling->threads_load() && one.spec.dtype == DataType::f32;
}

std::vector<Case> gradients_that(bool read_behind_one_arrival, const Target& target) {
  std::vector<Case> cases = gradient_cases(target);
  for (Case& one : activation_gradient_cases(target)) cases.push_back(std::move(one));
  std::erase_if(cases, [=](const Case& one) { return reads_behind_one_arrival(one) != read_behind_one_arrival; });
  return cases;
}

TEST_F(SanitizerSubset, Gradients) {
  const std::vector<Case> cases = gradients_that(false, target());
  ASSERT_GE(cases.size(), 40u);
  EXPECT_EQ(run_subset("sanitizer subset, gradients", cases).kernels, static_cast<std::int64_t>(cases.size()));
}

TEST_F(SanitizerSubset, GradientsThatReadBehindOneArrival) {
  const std::vector<Case> cases = gradients_that(true, target());
  ASSERT_GE(cases.size(), has_wgmma_family(target()) ? 4u : 0u);
  EXPECT_EQ(run_subset("sanitizer subset, one arrival", cases).kernels, static_cast<std::int64_t>(cases.size()));
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
