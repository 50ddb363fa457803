// The engine as a whole: what it runs, in which order, what it refuses, and that it goes on after a finding.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "host/planted/kernels.h"
#include "jitconv/error.h"

namespace jitconv::test {
namespace {

using host::Landing;
using host::Report;
using host::Rule;
using host::Settings;

const char kText[] = R"(
using Element = float;
#include "device/copy_async.cuh"
extern "C" __global__ void indices(const float* x, float* y) {
  const int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  y[block * blockDim.x + threadIdx.x] = static_cast<float>(block * 1000 + threadIdx.x);
}
extern "C" __global__ void reverse(const float* x, float* y) {
  extern __shared__ float shared[];
  shared[threadIdx.x] = x[threadIdx.x % 250];
  __syncthreads();
  if (threadIdx.x < 256) y[threadIdx.x] = shared[blockDim.x - 1 - threadIdx.x];
}
extern "C" __global__ void warp_sum(const float* x, float* y) {
  float sum = x[threadIdx.x];
  for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, distance);
  y[threadIdx.x] = sum;
}
extern "C" __global__ void half_shuffles(const float* x, float* y) {
  const unsigned mask = threadIdx.x % 32 < 16 ? 0x0000ffffu : 0xffff0000u;
  y[threadIdx.x] = __shfl_sync(mask, x[threadIdx.x], 0, 16);
}
extern "C" __global__ void order(const float* x, float* y) {
  extern __shared__ float shared[];
  if (threadIdx.x == 0) shared[0] = 0.0f;
  __syncthreads();
  // Racy on purpose: the order of the threads, in y.
  y[threadIdx.x] = shared[0];
  shared[0] = shared[0] + 1.0f;
}
extern "C" __global__ void what_lands(const float* x, float* y) {
  extern __shared__ float shared[];
  copy_to_shared<1>(shared + threadIdx.x, x + threadIdx.x + 1, true);
  copy_commit();
  y[threadIdx.x] = shared[threadIdx.x];
  copy_wait<0>();
}
extern "C" __global__ void many_bugs(const float* x, float* y) {
  extern __shared__ float shared[];
  if (threadIdx.x != 0) return;
  y[0] = shared[0];
  y[1] = shared[1];
  y[2] = shared[2];
  y[3] = shared[3];
  y[4] = shared[4];
}
extern "C" __global__ void out_of_bounds_in_block_0(const float* x, float* y) {
  extern __shared__ float shared[];
  if (blockIdx.x == 0 && threadIdx.x == 3) y[256] = 1.0f;
  shared[threadIdx.x] = 2.0f;
  __syncthreads();
  if (blockIdx.x > 0 && threadIdx.x < 32) y[blockIdx.x * 32 + threadIdx.x] = shared[31 - threadIdx.x];
}
extern "C" __global__ void out_of_bounds_in_every_block(const float* x, float* y) {
  y[256 + threadIdx.x + blockIdx.x] = 1.0f;
}
extern "C" __global__ void named_barrier_nobody_completes(const float* x, float* y) {
  jitconv_barrier(3, 96);
  y[threadIdx.x] = 1.0f;
}
extern "C" __global__ void named_barrier(const float* x, float* y) {
  extern __shared__ float shared[];
  if (threadIdx.x == 0) shared[0] = 5.0f;
  if (threadIdx.x < 64) jitconv_barrier(1, 64);
  if (threadIdx.x == 40) y[0] = shared[0];
  if (threadIdx.x == 80) y[1] = shared[0];
}
extern "C" __global__ void two_barriers_crossed(const float* x, float* y) {
  if (threadIdx.x < 32) {
    jitconv_barrier(1, 64);
    jitconv_barrier(2, 64);
  } else {
    jitconv_barrier(2, 64);
    jitconv_barrier(1, 64);
  }
}
extern "C" __global__ void table(const float* x, float* y) {
  static const float values[4] = {1.0f, 2.0f, 3.0f, 4.0f};
  float local[8];
  for (int i = 0; i < 8; ++i) local[(i + threadIdx.x) % 8] = values[(i + threadIdx.x) % 4];
  y[threadIdx.x] = local[static_cast<int>(x[threadIdx.x]) % 8];
}
)";

class Execute : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    std::string text = kText;
    const std::string include = "#include \"device/copy_async.cuh\"\n";
    text.replace(text.find(include), include.size(), device_text("device/copy_async.cuh"));
    kernel_ = new TestKernel(text,
                             {"indices", "reverse", "warp_sum", "half_shuffles", "order", "what_lands", "many_bugs",
                              "out_of_bounds_in_block_0", "out_of_bounds_in_every_block",
                              "named_barrier_nobody_completes", "named_barrier", "two_barriers_crossed", "table"},
                             host::Purpose::check);
  }
  static void TearDownTestSuite() {
    delete kernel_;
    kernel_ = nullptr;
  }
  static Report run(const std::string& entry, const TestKernel::Shape& shape = {}, const Settings& settings = {}) {
    return kernel_->run(entry, shape, settings);
  }
  static std::vector<float> y(std::size_t count = 256) { return {kernel_->y(), kernel_->y() + count}; }
  static void expect_clean(const Report& report) {
    for (const host::Finding& finding : report.findings) ADD_FAILURE() << to_string(finding);
  }

  static TestKernel* kernel_;
};
TestKernel* Execute::kernel_ = nullptr;

TEST_F(Execute, EveryThreadOfEveryBlockRunsOnce) {
  for (const std::uint32_t blocks : {1u, 2u, 7u, 8u, 12u}) {
    const Report report = run("indices", {.blocks = blocks, .threads = 20}, {.seed = blocks});
    expect_clean(report);
    EXPECT_EQ(report.blocks, blocks);
    for (std::uint32_t i = 0; i < 256; ++i) {
      const std::uint32_t index = i / 20 * 1000 + i % 20;
      ASSERT_EQ(y()[i], i < blocks * 20 ? static_cast<float>(index) : -1.0f) << i;
    }
  }
}

TEST_F(Execute, GridsHaveThreeDimensions) {
  expect_clean(run("indices", {.blocks = 3, .threads = 5, .blocks_y = 4, .blocks_z = 2}));
  for (std::uint32_t i = 0; i < 120; ++i) {
    const std::uint32_t index = i / 5 * 1000 + i % 5;
    ASSERT_EQ(y()[i], static_cast<float>(index)) << i;
  }
}

TEST_F(Execute, BlocksHaveUpTo1024Threads) {
  for (const std::uint32_t threads : {1u, 31u, 32u, 33u, 250u, 1024u}) {
    expect_clean(run("reverse", {.threads = threads, .shared_bytes = 4096}));
    for (std::uint32_t i = 0; i < std::min(threads, 256u); ++i)
      ASSERT_EQ(y()[i], static_cast<float>((threads - 1 - i) % 250));
  }
}

TEST_F(Execute, ShufflesExchangeWithinAWarp) {
  expect_clean(run("warp_sum", {.threads = 96}));
  for (int i = 0; i < 96; ++i) {
    const int sum = i / 32 * 1024 + 31 * 16;
    ASSERT_EQ(y()[i], static_cast<float>(sum)) << i;
  }
  expect_clean(run("half_shuffles", {.threads = 64}));
  for (int i = 0; i < 64; ++i) {
    const int half = i / 16 * 16;
    ASSERT_EQ(y()[i], static_cast<float>(half)) << i;
  }
}

TEST_F(Execute, TheSameSeedGivesTheSameOrderAndAnotherSeedAnother) {
  std::set<std::vector<float>> orders;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const Report first = run("order", {}, {.seed = seed});
    const std::vector<float> once = y(64);
    const Report second = run("order", {}, {.seed = seed});
    EXPECT_EQ(once, y(64));
    ASSERT_EQ(first.findings.size(), second.findings.size());
    for (std::size_t i = 0; i < first.findings.size(); ++i)
      EXPECT_EQ(to_string(first.findings[i]), to_string(second.findings[i]));
    orders.insert(once);
  }
  EXPECT_EQ(orders.size(), 5u);
}

TEST_F(Execute, LandingDecidesWhatAnEarlyReadSees) {
  EXPECT_FALSE(run("what_lands", {}, {.landing = Landing::early}).findings.empty());
  EXPECT_EQ(y()[7], 8.0f);
  EXPECT_FALSE(run("what_lands", {}, {.landing = Landing::late}).findings.empty());
  EXPECT_NE(y()[7], y()[7]) << "a NaN";
  run("what_lands", {}, {.landing = Landing::random});
  const std::vector<float> either = y(64);
  const auto nans = std::count_if(either.begin(), either.end(), [](float value) { return value != value; });
  EXPECT_GT(nans, 5);
  EXPECT_LT(nans, 59);
}

TEST_F(Execute, StopsAtTheMostFindings) {
  EXPECT_EQ(run("many_bugs", {}, {.most_findings = 100}).findings.size(), 5u);
  const Report report = run("many_bugs", {.blocks = 50}, {.most_findings = 3});
  EXPECT_EQ(report.findings.size(), 3u);
  EXPECT_EQ(report.blocks, 1u);
}

TEST_F(Execute, OneFindingPerRuleAndLine) {
  const Report report = run("out_of_bounds_in_every_block", {.blocks = 5});
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_EQ(report.blocks, 5u);
}

TEST_F(Execute, GoesOnWithTheNextBlock) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    const Report report = run("out_of_bounds_in_block_0", {.blocks = 8}, {.seed = seed});
    ASSERT_EQ(report.findings.size(), 1u);
    EXPECT_EQ(report.findings[0].rule, Rule::out_of_bounds);
    EXPECT_EQ(report.blocks, 8u);
    for (int i = 32; i < 256; ++i) ASSERT_EQ(y()[i], 2.0f) << i;
  }
}

TEST_F(Execute, ABarrierNobodyCompletesIsAFindingNotAHang) {
  const Report report = run("named_barrier_nobody_completes");
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_EQ(report.findings[0].rule, Rule::divergent_barrier);
  EXPECT_EQ(report.findings[0].text, "deadlock: all 64 threads wait at barrier 3, which takes 96");
}

TEST_F(Execute, CrossedBarriersAreAFindingNotAHang) {
  const Report report = run("two_barriers_crossed");
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_EQ(report.findings[0].rule, Rule::divergent_barrier);
  EXPECT_EQ(report.findings[0].thread, 32u);
  EXPECT_NE(report.findings[0].text.find("deadlock: thread 0 waits at this barrier for thread 32, which waits at line"),
            std::string::npos)
      << report.findings[0].text;
}

TEST_F(Execute, NamedBarriersOrderTheirThreadsOnly) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    const Report report = run("named_barrier", {.threads = 96}, {.seed = seed});
    EXPECT_FALSE(report.findings.empty());
    // Every finding is about thread 80, which is not part of it; none is about thread 40, which is.
    for (const host::Finding& finding : report.findings)
      EXPECT_TRUE(finding.thread == 80 || finding.text.find("thread 80 ") != std::string::npos) << to_string(finding);
    EXPECT_EQ(y()[0], 5.0f);
  }
}

TEST_F(Execute, ConstantsAndOwnStackAreFree) {
  expect_clean(run("table", {}));
  for (int i = 0; i < 64; ++i) EXPECT_EQ(y()[i], static_cast<float>(i % 8 % 4 + 1));
}

TEST_F(Execute, RefusesWhatIsNoLaunch) {
  const auto field = [](const TestKernel::Shape& shape, const std::string& entry = "indices") -> std::string {
    try {
      run(entry, shape);
    } catch (const SpecError& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      return error.field();
    }
    return "";
  };
  EXPECT_EQ(field({.threads = 0}), "threads");
  EXPECT_EQ(field({.threads = 1025}), "threads");
  EXPECT_EQ(field({.blocks = 0}), "grid");
  EXPECT_EQ(field({.shared_bytes = 232449}), "shared_bytes");
  EXPECT_EQ(field({}, "nothing"), "entry");
  expect_clean(run("indices", {.blocks = 1, .threads = 32, .shared_bytes = 232448}));
}

}  // namespace
}  // namespace jitconv::test
