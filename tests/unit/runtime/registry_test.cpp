// How long the registry keeps kernels: those that somebody holds always, others up to its limit.
#include "runtime/registry.h"

#include <array>
#include <atomic>
#include <optional>
#include <thread>
#include <vector>

#include "runtime_test_support.h"

namespace jitconv::runtime_test {
namespace {

using runtime::Registry;
using runtime::RegistryKey;

class RegistryTest : public RuntimeTest {
 protected:
  RegistryKey new_key() const { return {codegen::canonical(new_spec()), target_, {}}; }

  Kernel get(Registry& registry, const RegistryKey& key) {
    return registry.find_or_build(key, [&] {
      ++builds_;
      return runtime::compile_plan(codegen::make_plan(key.spec, key.target), key.options);
    });
  }

  const Target target_ = parse_target("sm_90a");
  std::atomic<int> builds_{0};
};

TEST_F(RegistryTest, DropsTheOneThatWasUnheldLongest) {
  Registry registry(2);
  const RegistryKey first = new_key(), second = new_key(), third = new_key();
  std::optional<Kernel> one = get(registry, first);
  get(registry, second);
  one.reset();  // after the second
  get(registry, third);
  EXPECT_EQ(registry.size(), 2u);
  EXPECT_FALSE(registry.find(second));
  EXPECT_TRUE(registry.find(first));
  EXPECT_TRUE(registry.find(third));
  EXPECT_EQ(builds_, 3);
  get(registry, second);
  EXPECT_EQ(builds_, 4);
}

TEST_F(RegistryTest, AUseCounts) {
  Registry registry(2);
  const RegistryKey first = new_key(), second = new_key();
  get(registry, first);
  get(registry, second);
  registry.find(first);
  get(registry, new_key());
  EXPECT_TRUE(registry.find(first));
  EXPECT_FALSE(registry.find(second));
}

TEST_F(RegistryTest, KernelsThatSomebodyHoldsStay) {
  Registry registry(1);
  const RegistryKey first = new_key(), second = new_key();
  const Kernel one = get(registry, first);
  std::optional<Kernel> two = get(registry, second), copy = two;
  EXPECT_EQ(registry.size(), 2u);
  EXPECT_EQ(&get(registry, first).source(), &one.source());
  two.reset();
  EXPECT_EQ(registry.size(), 2u);
  copy.reset();  // the last one, beyond the limit
  EXPECT_EQ(registry.size(), 1u);
  EXPECT_FALSE(registry.find(second));
  EXPECT_TRUE(registry.find(first));
}

TEST_F(RegistryTest, ADroppedKernelIsUnloaded) {
  fake_driver::set_current_device(0);
  Registry registry(0);
  const int before = fake_driver::live_libraries();
  std::optional<Kernel> kernel = get(registry, new_key());
  runtime::prepare(*kernel);
  EXPECT_EQ(fake_driver::live_libraries(), before + 1);
  kernel.reset();
  EXPECT_EQ(fake_driver::live_libraries(), before);
}

TEST_F(RegistryTest, EveryNameOfADroppedKernelIsForgotten) {
  Registry registry(1);
  const RegistryKey canonical = new_key();
  RegistryKey alias = canonical;
  alias.spec.epilogue.slope = 0.25f;  // there is no leaky ReLU
  const auto get_alias = [&] { return registry.find_or_build(alias, [&] { return get(registry, canonical); }); };
  EXPECT_EQ(&get_alias().source(), &get(registry, canonical).source());
  EXPECT_EQ(registry.size(), 1u);
  EXPECT_EQ(builds_, 1);
  get(registry, new_key());
  EXPECT_FALSE(registry.find(alias));
  EXPECT_FALSE(registry.find(canonical));
  get_alias();
  EXPECT_EQ(builds_, 3);
}

TEST_F(RegistryTest, OfTooManyNamesTheOldestAreForgotten) {
  Registry registry(1);
  const RegistryKey canonical = new_key();
  const Kernel kernel = get(registry, canonical);
  const auto alias = [&](int i) {
    RegistryKey key = canonical;
    key.spec.epilogue.slope = static_cast<float>(i + 1);
    return key;
  };
  for (int i = 0; i < 100; ++i) registry.find_or_build(alias(i), [&] { return get(registry, canonical); });
  EXPECT_FALSE(registry.find(alias(0)));
  EXPECT_TRUE(registry.find(alias(99)));
  EXPECT_TRUE(registry.find(canonical));
  EXPECT_EQ(builds_, 1);
}

TEST_F(RegistryTest, DropsWhatIsUnheldOnRequest) {
  Registry registry(100);
  const Kernel kept = get(registry, new_key());
  for (int i = 0; i < 3; ++i) get(registry, new_key());
  EXPECT_EQ(registry.size(), 4u);
  EXPECT_EQ(registry.drop_unheld(), 3u);
  EXPECT_EQ(registry.size(), 1u);
  EXPECT_EQ(registry.drop_unheld(), 0u);
}

TEST_F(RegistryTest, AKernelMayOutliveItsRegistry) {
  std::optional<Kernel> kernel;
  {
    Registry registry(0);
    kernel = get(registry, new_key());
  }
  EXPECT_FALSE(kernel->image().empty());
}

TEST_F(RegistryTest, ThreadsThatTakeAndDropShareWhatThereIs) {
  Registry registry(1);
  const std::array<RegistryKey, 2> keys = {new_key(), new_key()};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (int turn = 0; turn < 100; ++turn) {
        const RegistryKey& key = keys[static_cast<std::size_t>((i + turn) % 2)];
        EXPECT_EQ(get(registry, key).spec(), key.spec);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(registry.size(), 1u);
}

TEST_F(RegistryTest, ReleaseUnusedKernelsConcernsTheProcess) {
  release_unused_kernels();
  const std::uint64_t before = statistics().kernels;
  const ConvSpec spec = new_spec();
  std::optional<Kernel> kernel = compile(spec, target_);
  EXPECT_EQ(statistics().kernels, before + 1);
  EXPECT_EQ(release_unused_kernels(), 0u);
  kernel.reset();
  EXPECT_EQ(release_unused_kernels(), 1u);
  EXPECT_EQ(statistics().kernels, before);
  EXPECT_TRUE(compile(spec, target_).from_cache());
}

class RegistryLimitDeathTest : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  /// Exits with the number of kernels that are left of five.
  [[noreturn]] static void compile_five(const char* limit) {
    setenv("JITCONV_MAX_KERNELS", limit, 1);
    setenv("JITCONV_LOG", "warn", 1);
    for (int i = 0; i < 5; ++i) compile(new_spec(), parse_target("sm_90a"));
    std::_Exit(static_cast<int>(statistics().kernels));
  }
};

TEST_F(RegistryLimitDeathTest, ComesFromTheEnvironment) {
  EXPECT_EXIT(compile_five("2"), testing::ExitedWithCode(2), "^$");
  EXPECT_EXIT(compile_five("0"), testing::ExitedWithCode(0), "^$");
  EXPECT_EXIT(compile_five(""), testing::ExitedWithCode(5), "^$");
}

TEST_F(RegistryLimitDeathTest, ANumberThatIsNoneIsReported) {
  EXPECT_EXIT(compile_five("-1"), testing::ExitedWithCode(5),
              "JITCONV_MAX_KERNELS is -1, must be a number of kernels: using 512");
  EXPECT_EXIT(compile_five("2\x1b[31m"), testing::ExitedWithCode(5), "is 2.x1b.31m, must be");
}

}  // namespace
}  // namespace jitconv::runtime_test
