// Every documented configuration and its gradients compile for every supported architecture, without spills and within
// bounds for registers, time and size; architectures nobody can compile for are refused with words. No GPU.
#include <gtest/gtest.h>

#include <cstdio>

#include "codegen/arithmetic.h"
#include "codegen/wgmma/geometry.h"
#include "codegen/wgmma/registers.h"
#include "jitconv/error.h"
#include "jitconv/kernel.h"
#include "nvrtc/compile_all.h"
#include "support/documented_gradients.h"
#include "support/full_run.h"
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
    const bool moves = codegen::WgmmaRegisters(geometry).consumer() != codegen::WgmmaTiling::kLaunchRegisters;
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

std::vector<CompileResult> compiled(const std::vector<tools::DocumentedConfiguration>& configurations,
                                    const std::string& arch) {
  const Target target = parse_target(arch);
  std::vector<CompileJob> jobs;
  for (const tools::DocumentedConfiguration& one : configurations)
    jobs.push_back({one.name, codegen::make_plan(one.spec, target)});
  std::vector<CompileResult> results = compile_all(jobs);
  EXPECT_EQ(results.size(), configurations.size());
  const std::string text = summary(results);
  std::printf("%s: %s\n", arch.c_str(), text.c_str());
  ::testing::Test::RecordProperty("summary", text);
  return results;
}

/// A TF32 weight gradient of which every candidate keeps 16 bytes of a thread in local memory.
constexpr const char* kWithoutSoundCandidate = "KB_L1_65 weight_gradient";

/// Forward convolutions keep to the limits. Of gradients the compiler may spoil a kernel in forty on tensor cores, and
/// compile() then has to find another; and of FMA kernels the model may misjudge the registers of one in twenty-five.
void expect_all_within_limits(const std::vector<CompileResult>& results) {
  std::size_t spoiled = 0, misjudged = 0;
  for (const CompileResult& result : results) {
    if (result.defect.empty() || result.plan.spec.operation == Operation::forward) {
      expect_within_limits(result);
      continue;
    }
    if (result.duplicate) continue;
    std::printf("spoiled: %s: %s\n", result.name.c_str(), result.defect.c_str());
    if (codegen::uses_tensor_cores(result.plan.family())) {
      ++spoiled;
      if (result.name != kWithoutSoundCandidate) {
        EXPECT_EQ(fault_of_replacement(result), "") << result.name;
      }
    } else {
      ++misjudged;
    }
  }
  EXPECT_LE(spoiled, results.size() / 40);
  EXPECT_LE(misjudged, results.size() / 25);
}

const auto kArchitectures = ::testing::Values("sm_75", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a");

class Documented : public ::testing::TestWithParam<const char*> {};

TEST_P(Documented, CompilesWithoutSpills) {
  expect_all_within_limits(compiled(tools::documented_configurations(), GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Architectures, Documented, kArchitectures,
                         [](const auto& one) { return std::string(one.param); });

class DocumentedGradients : public ::testing::TestWithParam<const char*> {};

// The share is what differs most: without cp.async, and with tensor cores.
TEST_P(DocumentedGradients, Compile) {
  const std::string arch = GetParam();
  if (arch != "sm_75" && arch != "sm_90a" && !is_full_run())
    GTEST_SKIP() << "gradients compile for this architecture with ./dev test --full";
  expect_all_within_limits(compiled(documented_gradients(), arch));
}

INSTANTIATE_TEST_SUITE_P(Architectures, DocumentedGradients, kArchitectures,
                         [](const auto& one) { return std::string(one.param); });

// Where tensor cores are allowed. What is compiled for f16 is the same but for a word.
struct Allowed {
  const char* name;
  DataType dtype;
  MathMode math;
};

/// At least `fewest` of them on tensor cores.
std::vector<CompileResult> compiled(const std::vector<tools::DocumentedConfiguration>& configurations,
                                    const Allowed& allowed, std::size_t fewest) {
  std::vector<CompileJob> jobs;
  std::size_t tensor = 0;
  for (const tools::DocumentedConfiguration& one : configurations) {
    ConvSpec spec = one.spec;
    spec.dtype = allowed.dtype;
    spec.math = allowed.math;
    jobs.push_back({one.name, codegen::make_plan(spec, parse_target("sm_90a"))});
    if (codegen::uses_tensor_cores(jobs.back().plan.family())) ++tensor;
  }
  EXPECT_GE(tensor, fewest);
  std::vector<CompileResult> results = compile_all(jobs);
  std::printf("%s: %zu on tensor cores; %s\n", allowed.name, tensor, summary(results).c_str());
  return results;
}

class DocumentedOnTensorCores : public ::testing::TestWithParam<Allowed> {};

TEST_P(DocumentedOnTensorCores, CompilesWithoutSpills) {
  expect_all_within_limits(compiled(tools::documented_configurations(), GetParam(), /*fewest=*/24));
}

TEST_P(DocumentedOnTensorCores, GradientsCompile) {
  expect_all_within_limits(compiled(documented_gradients(), GetParam(), /*fewest=*/48));
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
  codegen::ConvPlan plan =
      codegen::make_plan(parse_spec("input=1,16,64,64 weight=64,16,3,3 math=ieee"), parse_target("sm_90a"));
  while (plan.convolution().launch.threads * static_cast<unsigned>(plan.convolution().launch.min_blocks_per_sm) < 2048)
    ++plan.convolution().launch.min_blocks_per_sm;
  const std::vector<CompileResult> results = compile_all({{"crowded", plan}});
  ASSERT_EQ(results.front().error, "");
  EXPECT_GT(results.front().spill_bytes, 0) << codegen::to_string(plan);
  EXPECT_GT(results.front().resources.local_bytes, 0);
}

}  // namespace
}  // namespace jitconv::test
