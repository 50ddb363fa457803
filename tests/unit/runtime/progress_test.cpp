// What JITCONV_LOG=info and debug say of a kernel on its way. Each case runs in a process of its own.
#include <unistd.h>

#include "codegen/plan.h"
#include "codegen/source.h"
#include "runtime/registry.h"
#include "runtime_test_support.h"

namespace jitconv::runtime_test {
namespace {

class ProgressDeathTest : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  /// Compiles for the GPU, takes it from memory, and then from disk.
  [[noreturn]] static void compile_thrice(const char* level, const char* cache) {
    setenv("JITCONV_LOG", level, 1);
    setenv("JITCONV_CACHE", cache, 1);
    fake_driver::set_current_device(0);
    const ConvSpec spec = new_spec();
    compile(spec);
    compile(spec);
    release_unused_kernels();
    compile(spec);
    _exit(0);
  }
};

#define PLANNED \
  "jitconv: info: planned in [0-9.]+ ms for sm_90a, family [a-z]+: input=2,8,16,[0-9]+ weight=16,8,3,3.*\n"
#define COMPILED                                                                                                   \
  "jitconv: info: no cache hit, compiled in [0-9.]+ ms with /.*libnvrtc.so.13 .13.: jitconv_[a-z]+_fprop_.*, key " \
  "[0-9a-f]{64}\n"
#define LOADED "jitconv: info: loaded in [0-9.]+ ms on device 0: jitconv_[a-z]+_fprop_.*\n"

TEST_F(ProgressDeathTest, InfoNamesEachStepAndTheCacheThatAnswered) {
  EXPECT_EXIT(compile_thrice("info", "rw"), testing::ExitedWithCode(0),
              "^" PLANNED "jitconv: info: NVRTC 13 at /.*\n" COMPILED LOADED
              "jitconv: info: memory hit for sm_90a: input=2,8,16,[0-9]+ weight=16,8,3,3.*\n" PLANNED
              "jitconv: info: disk cache hit in [0-9.]+ ms: jitconv_[a-z]+_fprop_.*, key [0-9a-f]{64}\n" LOADED "$");
}

TEST_F(ProgressDeathTest, DebugSaysWhy) {
  EXPECT_EXIT(compile_thrice("debug", "rw"), testing::ExitedWithCode(0),
              "jitconv: debug: plan: .*\n(.*\n)*jitconv: debug: the disk cache in /.* has no usable entry: "
              "jitconv_[a-z]+_fprop_");
  EXPECT_EXIT(compile_thrice("debug", "off"), testing::ExitedWithCode(0),
              "debug: the disk cache is off: jitconv_[a-z]+_fprop_");
}

TEST(Progress, ASourceHasTheNameOfItsConvolution) {
  ConvSpec spec = new_spec();
  spec.operation = Operation::weight_gradient;
  spec.dy_activation = Activation::relu;
  const codegen::KernelSource source = codegen::generate(codegen::make_plan(spec, parse_target("sm_80")));
  EXPECT_TRUE(source.entries.front().name.ends_with("_activation_gradient"));
  EXPECT_TRUE(source.entries.front().name.starts_with(source.name()));
  EXPECT_EQ(source.name().find("activation_gradient"), std::string_view::npos);
}

TEST_F(ProgressDeathTest, TheDefaultIsSilent) {
  EXPECT_EXIT(compile_thrice("", "rw"), testing::ExitedWithCode(0), "^$");
}

}  // namespace
}  // namespace jitconv::runtime_test
