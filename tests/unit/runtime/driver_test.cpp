// Opening the driver: every way it can be unusable, in one process, because a failure must not be remembered. One test,
// so that the order is certain and the driver is opened for good only at its end.
#include "runtime/driver.h"

#include "runtime_test_support.h"

namespace jitconv::runtime_test {
namespace {

CudaError failure_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const CudaError& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return {ErrorCode::internal, 0, "", ""};
}

TEST(Driver, EveryFailureToOpenIsNamedAndForgotten) {
  fake_driver::reset();
  const auto opened = [] { return failure_of([] { current_target(); }); };

  fake_driver::fail("cuInit", 34);
  EXPECT_EQ(opened().code(), ErrorCode::no_driver);
  fake_driver::fail("cuInit", 34);
  EXPECT_NE(std::string(opened().what()).find("stub"), std::string::npos);

  fake_driver::set_driver_version(11080);
  const CudaError old = opened();
  EXPECT_EQ(old.code(), ErrorCode::no_driver);
  EXPECT_NE(std::string(old.what()).find("CUDA 11.8"), std::string::npos) << old.what();
  EXPECT_NE(std::string(old.what()).find("12.0"), std::string::npos) << old.what();
  fake_driver::set_driver_version(12020);  // cannot capture kernels that overlap

  fake_driver::fail("cuInit", 100);
  EXPECT_EQ(opened().code(), ErrorCode::no_device);
  fake_driver::set_device_count(0);
  EXPECT_EQ(opened().code(), ErrorCode::no_device);
  fake_driver::set_device_count(1);
  fake_driver::fail("cuInit", 803);
  EXPECT_EQ(opened().code(), ErrorCode::no_driver);

  int n = 1;
  for (bool reached = true; reached; ++n) {
    fake_driver::fail_call_number(n, 999);
    try {
      current_target();
      EXPECT_TRUE(fake_driver::failure_was_not_reached()) << "call " << n;
      reached = false;
    } catch (const CudaError& error) {
      EXPECT_EQ(error.result(), 999) << error.what();
    }
  }
  EXPECT_GT(n, 10);
  EXPECT_EQ(current_target().arch(), "sm_90a");
  const std::size_t calls = fake_driver::calls().size();
  current_target();
  EXPECT_EQ(fake_driver::calls().size(), calls + 1) << "a known device costs one question: which is current";

  // This driver runs one kernel after the other.
  const runtime::Driver& driver = runtime::Driver::get();
  driver.ensure_context();
  const auto image = driver.load("cubin");
  const std::array<std::uint32_t, 3> grid{1, 1, 1};
  driver.launch(driver.kernel(*image, "kernel"), grid, 32, 0, nullptr, nullptr, /*overlap=*/true);
  EXPECT_EQ(fake_driver::calls().back(), "cuLaunchKernel");
}

}  // namespace
}  // namespace jitconv::runtime_test
