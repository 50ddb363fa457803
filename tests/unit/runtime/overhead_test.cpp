// What a compile() of a known spec and a launch cost: no memory, no lock that blocks, and less time than the budget.
// The fake driver's calls cost next to nothing, so what is measured is jitconv.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <new>

#include "runtime_test_support.h"

namespace {

std::atomic<bool> counting{false};
std::atomic<int> allocations{0};

void* counted(std::size_t size) {
  if (counting.load(std::memory_order_relaxed)) ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t size) { return counted(size); }
void* operator new[](std::size_t size) { return counted(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

extern "C" int cuLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*,
                              void**, void**);

namespace jitconv::runtime_test {
namespace {

/// Nanoseconds of one call: the best of many batches, because anything slower is the machine's doing.
template <typename Call>
double nanoseconds(Call call) {
  constexpr int kBatches = 50, kCalls = 2000;
  double best = 1e9;
  for (int batch = 0; batch < kBatches; ++batch) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kCalls; ++i) call();
    const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - start;
    best = std::min(best, time.count() / kCalls);
  }
  return best;
}

class OverheadTest : public RuntimeTest {
 protected:
  void SetUp() override {
    RuntimeTest::SetUp();
    fake_driver::set_current_device(0);
    spec_.epilogue.bias = true;
    kernel_.emplace(compile(spec_));
    kernel_->launch(nullptr, addresses_for(spec_));
    fake_driver::record(false);
  }
  ConvSpec spec_ = new_spec();
  std::optional<Kernel> kernel_;
};

TEST_F(OverheadTest, KnownSpecAndLaunchAllocateNothing) {
  const LaunchArgs args = addresses_for(spec_);
  counting = true;
  for (int i = 0; i < 100; ++i) compile(spec_).launch(nullptr, args);
  counting = false;
  EXPECT_EQ(allocations, 0);
}

TEST_F(OverheadTest, KnownSpecAndLaunchAreWithinBudget) {
#if !defined(NDEBUG) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "measured in optimised builds only";
#endif
  const LaunchArgs args = addresses_for(spec_);
  const double compile_ns = nanoseconds([&] { compile(spec_); });
  const double launch_ns = nanoseconds([&] { kernel_->launch(nullptr, args); });
  void* parameters[8] = {};
  const double raw_ns = nanoseconds(
      [&] { cuLaunchKernel(nullptr, 1, 1, 1, 32, 1, 1, 0, nullptr, static_cast<void**>(parameters), nullptr); });
  RecordProperty("compile_ns", std::to_string(compile_ns));
  RecordProperty("launch_overhead_ns", std::to_string(launch_ns - raw_ns));
  std::printf("known spec %.0f ns, launch %.0f ns more than a raw one\n", compile_ns, launch_ns - raw_ns);
  EXPECT_LT(compile_ns, 1000);
  EXPECT_LT(launch_ns - raw_ns, 300);
}

}  // namespace
}  // namespace jitconv::runtime_test
