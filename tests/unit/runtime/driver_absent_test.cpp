// A machine whose driver cannot be used. Built twice: against a libcuda.so.1 that is no library, and against one of
// before CUDA 12.0. Everything but launching still works.
#include <gtest/gtest.h>

#include "runtime_test_support.h"

namespace jitconv::runtime_test {
namespace {

void expect_no_driver(const std::function<void()>& call, const std::string& part) {
  try {
    call();
    FAIL() << "nothing was thrown";
  } catch (const CudaError& error) {
    EXPECT_EQ(error.code(), ErrorCode::no_driver);
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST(DriverAbsent, CompilingForATargetWorksAndLaunchingSaysWhy) {
  const ConvSpec spec = new_spec();
  const Kernel kernel = compile(spec, parse_target("sm_90a"));
  EXPECT_FALSE(kernel.image().empty());
  for (int attempt = 0; attempt < 2; ++attempt) {
    expect_no_driver([&] { kernel.launch(nullptr, addresses_for(spec)); }, JITCONV_EXPECTED_REASON);
    expect_no_driver([&] { compile(spec); }, JITCONV_EXPECTED_REASON);
    expect_no_driver([&] { current_target(); }, JITCONV_EXPECTED_REASON);
  }
  LaunchArgs incomplete = addresses_for(spec);
  incomplete.w = nullptr;
  EXPECT_THROW(kernel.launch(nullptr, incomplete), SpecError) << "the caller's mistake comes first";
}

}  // namespace
}  // namespace jitconv::runtime_test
