// Every documented configuration compiles for every supported architecture, without spills and within bounds for
// registers, time and size; architectures nobody can compile for are refused with words. No GPU.
#include <gtest/gtest.h>

#include <cstdio>

#include "codegen/arithmetic.h"
#include "codegen/wgmma/geometry.h"
#include "jitconv/error.h"
#include "jitconv/kernel.h"
#include "nvrtc/compile_all.h"
#include "tools/documented.h"

namespace jitconv::test {
namespace {

// Far above what is usual, so that they fail for an explosion and not for a slow machine; the figures of a run are in
// the summary it prints.
constexpr double kMostSeconds = 10;
constexpr std::int64_t kMostCubinBytes = 512 * 1024;
constexpr std::int64_t kMostRegisters = 255;

/// Blocks of an SM that the registers allow: the hardware gives them to warps in units of 256.
std::int64_t blocks_by_registers(const CompileResult& result) {
  const std::int64_t per_warp = codegen::round_up(std::int64_t{result.resources.registers} * 32, 256);
  return result.plan.target.registers_per_sm / (per_warp * codegen::ceil_div(result.resources.threads, 32));
}

void expect_within_limits(const CompileResult& result) {
  SCOPED_TRACE(result.name + " for " + result.plan.target.arch() + ": " + to_string(result.plan.spec) + '\n' +
               codegen::to_string(result.plan));
  ASSERT_EQ(result.error, "");
  // A log that was not understood gives zeros.
  EXPECT_GT(result.resources.registers, 0);
  EXPECT_GT(result.cubin_bytes, 0);
  EXPECT_EQ(result.spill_bytes, 0);
  EXPECT_EQ(result.resources.local_bytes, 0) << "stack frame";
  EXPECT_EQ(result.defect, "");
  EXPECT_LE(result.resources.registers, kMostRegisters);
  EXPECT_GE(blocks_by_registers(result), result.plan.convolution().launch.min_blocks_per_sm);
  // Else the registers that a wgmma kernel moves between its warps are not those it was given.
  if (result.plan.family() == codegen::Family::wgmma) {
    const codegen::KernelPlan& kernel = result.plan.convolution();
    const codegen::WgmmaGeometry geometry(kernel.problem, std::get<codegen::WgmmaTiling>(kernel.tiling));
    const bool moves = geometry.consumer_registers() != codegen::WgmmaTiling::kLaunchRegisters;
    EXPECT_LE(result.resources.registers, codegen::WgmmaTiling::kLaunchRegisters);
    if (moves) {
      EXPECT_EQ(result.resources.registers, codegen::WgmmaTiling::kLaunchRegisters);
    }
  } else if (result.plan.family() == codegen::Family::pointwise) {
    EXPECT_EQ(result.resources.registers, codegen::PointwiseTiling::kLaunchRegisters);
  }
  EXPECT_LE(result.resources.shared_bytes, result.plan.target.shared_bytes_per_block);
  EXPECT_LE(result.cubin_bytes, kMostCubinBytes);
  EXPECT_LE(result.seconds, kMostSeconds);
}

class Documented : public ::testing::TestWithParam<const char*> {};

TEST_P(Documented, CompilesWithoutSpills) {
  const Target target = parse_target(GetParam());
  std::vector<CompileJob> jobs;
  for (const tools::DocumentedConfiguration& one : tools::documented_configurations())
    jobs.push_back({one.name, codegen::make_plan(one.spec, target)});
  const std::vector<CompileResult> results = compile_all(jobs);
  ASSERT_EQ(results.size(), tools::documented_configurations().size());
  for (const CompileResult& result : results) expect_within_limits(result);
  const std::string text = summary(results);
  std::printf("%s: %s\n", GetParam(), text.c_str());
  RecordProperty("summary", text);
}

INSTANTIATE_TEST_SUITE_P(Architectures, Documented,
                         ::testing::Values("sm_75", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a"),
                         [](const auto& one) { return std::string(one.param); });

// Where tensor cores are allowed. What is compiled for f16 is the same but for a word.
struct Allowed {
  const char* name;
  DataType dtype;
  MathMode math;
};

class DocumentedOnTensorCores : public ::testing::TestWithParam<Allowed> {};

TEST_P(DocumentedOnTensorCores, CompilesWithoutSpills) {
  std::vector<CompileJob> jobs;
  std::size_t tensor = 0;
  for (const tools::DocumentedConfiguration& one : tools::documented_configurations()) {
    ConvSpec spec = one.spec;
    spec.dtype = GetParam().dtype;
    spec.math = GetParam().math;
    jobs.push_back({one.name, codegen::make_plan(spec, parse_target("sm_90a"))});
    if (codegen::uses_tensor_cores(jobs.back().plan.family())) ++tensor;
  }
  EXPECT_GE(tensor, 12u);
  const std::vector<CompileResult> results = compile_all(jobs);
  for (const CompileResult& result : results) expect_within_limits(result);
  std::printf("%s: %zu on tensor cores; %s\n", GetParam().name, tensor, summary(results).c_str());
}

INSTANTIATE_TEST_SUITE_P(Types, DocumentedOnTensorCores,
                         ::testing::Values(Allowed{"tf32", DataType::f32, MathMode::tf32},
                                           Allowed{"bf16", DataType::bf16, MathMode::fp32}),
                         [](const auto& one) { return std::string(one.param.name); });

TEST(Architecture, OlderThanTheTableIsRefusedByName) {
  try {
    parse_target("sm_70");
    FAIL() << "sm_70 was accepted";
  } catch (const SpecError& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_EQ(error.field(), "arch");
    EXPECT_NE(std::string(error.what()).find("\"sm_70\" (CUDA 12.9 was the last toolkit that compiled for it)"),
              std::string::npos)
        << error.what();
  }
}

TEST(Architecture, UnknownToThisCompilerIsRefusedWithTheKnownOnes) {
  Target future = parse_target("sm_90a");
  future.major = 99;
  ConvSpec spec;
  spec.input = {1, 4, 9, 9};
  spec.weight = {4, 4, 3, 3};
  try {
    compile(spec, future);
    FAIL() << "compiled for " << future.arch();
  } catch (const CompileError& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    const std::string message = error.what();
    EXPECT_NE(message.find("does not compile for sm_990a; it knows sm_"), std::string::npos) << message;
    EXPECT_NE(message.find("input=1,4,9,9"), std::string::npos) << message;
  }
}

TEST(SpillBytes, AreReadFromTheLog) {
  const std::string log =
      "ptxas info    : Compiling entry function 'k' for 'sm_90a'\n"
      "ptxas info    : Function properties for k\n"
      "    16 bytes stack frame, 12 bytes spill stores, 8 bytes spill loads\n"
      "ptxas info    : Used 40 registers, used 1 barriers\n";
  EXPECT_EQ(spill_bytes_of(log), 20);
  EXPECT_EQ(spill_bytes_of(""), 0);
}

// A kernel that needs more registers than it may have, in the words of the NVRTC at hand: if its log changed, the tests
// above would see no spill ever again.
TEST(SpillBytes, ThisCompilerReportsThem) {
  codegen::ConvPlan plan = codegen::make_plan(parse_spec("input=1,16,64,64 weight=64,16,3,3"), parse_target("sm_90a"));
  while (plan.convolution().launch.threads * static_cast<unsigned>(plan.convolution().launch.min_blocks_per_sm) < 2048)
    ++plan.convolution().launch.min_blocks_per_sm;
  const std::vector<CompileResult> results = compile_all({{"crowded", plan}});
  ASSERT_EQ(results.front().error, "");
  EXPECT_GT(results.front().spill_bytes, 0) << codegen::to_string(plan);
  EXPECT_GT(results.front().resources.local_bytes, 0);
}

}  // namespace
}  // namespace jitconv::test
