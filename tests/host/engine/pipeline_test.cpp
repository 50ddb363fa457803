// A whole pipeline of the kind the checks are made for: a warpgroup that loads, two that multiply, stages that go round
// and round between them. Right whatever the order of threads, with every bug found that can be planted by one word.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <random>
#include <set>

#include "host/compiler.h"
#include "host/engine.h"
#include "host/module.h"
#include "support/multiply_text.h"

namespace jitconv::test {
namespace {

using host::Landing;
using host::Rule;

constexpr int kColumns = 24, kSteps = 10, kTiles = 3, kDepth = 8;

// y[tile][128][24] = a[tile][128][80] * b[80][24]. Of `a`, thread by thread, one warpgroup's rows are copied through
// registers; b comes by bulk copies, packed as it lies in shared memory. BUG is the number of the planted one.
const char kPipelineKernel[] = R"(
constexpr int kColumns = 24, kSteps = 10, kTiles = 3, kStages = 3;
constexpr int kHalfOfA = 128 * 16 + 16, kBytesOfB = kColumns * 32;
struct Stage {
  unsigned char a[2 * kHalfOfA];
  unsigned char b[kBytesOfB];
};
struct Memory {
  Stage stage[kStages];
  Barrier full[kStages], empty[kStages];
};
extern "C" __global__ void __launch_bounds__(384) probe(const uint4* a, const uint4* b, float* y) {
  extern __shared__ __align__(128) unsigned char shared[];
  Memory& memory = *reinterpret_cast<Memory*>(shared);
  const int t = static_cast<int>(threadIdx.x), warpgroup = t / 128;
  if (t == 0) {
    for (int s = 0; s < kStages; ++s) {
      barrier_init(&memory.full[s], BUG == 1 ? 128 : 129);
      barrier_init(&memory.empty[s], 2);
    }
    if (BUG != 2) barrier_init_visible();
  }
  __syncthreads();
  if (warpgroup == 0) {
    shrink_registers_to<40>();
    int round = 0;
    for (int tile = blockIdx.x; tile < kTiles; tile += gridDim.x) {
      for (int step = 0; step < kSteps; ++step, ++round) {
        const int s = round % kStages, phase = round / kStages;
        Stage& stage = memory.stage[s];
        if (BUG != 3) barrier_wait(&memory.empty[s], (phase + 1) % 2);
        if (t == 0) {
          barrier_arrive_expecting(&memory.full[s], BUG == 4 ? kBytesOfB - 16 : kBytesOfB);
          bulk_copy_to_shared(stage.b, b + step * kColumns * 2, kBytesOfB, &memory.full[s]);
        }
        for (int half = 0; half < 2; ++half)
          *reinterpret_cast<uint4*>(stage.a + half * kHalfOfA + t * 16) = a[((tile * kSteps + step) * 128 + t) * 2 + half];
        if (BUG != 5) fence_async_proxy();
        barrier_arrive(&memory.full[s]);
      }
    }
  } else {
    grow_registers_to<232>();
    const int rows = (warpgroup - 1) * 64;
    int round = 0;
    for (int tile = blockIdx.x; tile < kTiles; tile += gridDim.x) {
      float sum[kColumns / 2];
      for (int step = 0; step < kSteps; ++step, ++round) {
        const int s = round % kStages, phase = round / kStages;
        Stage& stage = memory.stage[s];
        if (BUG != 6) barrier_wait(&memory.full[s], BUG == 7 ? 1 - phase % 2 : phase % 2);
        multiply_begin();
        multiply(sum, matrix_operand(stage.a + rows * 16, kHalfOfA), matrix_operand(stage.b, kBytesOfB / 2), step > 0);
        multiply_commit();
        // The multiplication before this one is done: its stage may be filled again.
        multiply_wait<BUG == 8 ? 2 : 1>();
        if (step > 0 && t % 128 == 0) barrier_arrive(&memory.empty[(round + kStages - 1) % kStages]);
      }
      if (BUG != 9) multiply_wait<0>();
      if (t % 128 == 0) barrier_arrive(&memory.empty[(round + kStages - 1) % kStages]);
      for (int j = 0; j < kColumns / 8; ++j)
        for (int i = 0; i < 4; ++i)
          y[(tile * 128 + rows + 16 * (t / 32 % 4) + t % 32 / 4 + 8 * (i / 2)) * kColumns + 8 * j + 2 * (t % 4) +
            i % 2] = sum[4 * j + i];
      multiply_wait<0>();
    }
  }
}
)";

class Pipeline : public testing::Test {
 protected:
  Pipeline() {
    std::mt19937 random(5);
    const auto element = [&random] { return static_cast<float>(static_cast<int>(random() % 9) - 4); };
    a_.resize(kTiles * kSteps * 128 * kDepth);
    b_.resize(kSteps * kColumns * kDepth);
    std::vector<float> plain_b(b_.size());  // [step][column][k]
    for (float& value : a_) value = element();
    for (float& value : plain_b) value = element();
    for (int step = 0; step < kSteps; ++step)
      for (int column = 0; column < kColumns; ++column)
        for (int k = 0; k < kDepth; ++k)
          b_[index(((step * 2 + k / 4) * kColumns + column) * 4 + k % 4)] =
              plain_b[index((step * kColumns + column) * kDepth + k)];
    for (int tile = 0; tile < kTiles; ++tile)
      for (int row = 0; row < 128; ++row)
        for (int column = 0; column < kColumns; ++column) {
          float sum = 0;
          for (int step = 0; step < kSteps; ++step)
            for (int k = 0; k < kDepth; ++k)
              sum += a_[index(((tile * kSteps + step) * 128 + row) * kDepth + k)] *
                     plain_b[index((step * kColumns + column) * kDepth + k)];
          expected_.push_back(sum);
        }
    y_.resize(expected_.size());
  }
  static std::size_t index(int i) { return static_cast<std::size_t>(i); }

  static host::Module module_of(int bug, host::Purpose purpose = host::Purpose::check) {
    codegen::KernelSource source;
    for (const char* file : {"device/barrier.cuh", "device/bulk_copy.cuh", "device/warpgroup.cuh"})
      source.text += codegen::embedded_text(file);
    source.text += test::multiply_text("device/multiply_tf32.cuh", kColumns);
    source.text += fmt::format("constexpr int BUG = {};\n", bug) + kPipelineKernel;
    codegen::KernelEntry entry;
    entry.name = "probe";
    entry.arguments = {{codegen::Tensor::x, "const uint4*", "a"},
                       {codegen::Tensor::w, "const uint4*", "b"},
                       {codegen::Tensor::y, "float*", "y"}};
    source.entries.push_back(entry);
    const host::Compiler compiler = host::find_compiler();
    return host::Module(host::compile_module(compiler, source, host::compile_options(compiler, purpose)).image);
  }

  host::Report run(const host::Module& module, std::uint32_t blocks, const host::Settings& settings) {
    std::fill(y_.begin(), y_.end(), -1.0f);
    host::Launch launch;
    launch.entry = "probe";
    launch.grid = {blocks, 1, 1};
    launch.threads = 384;
    launch.shared_bytes = 3 * (2 * (128 * 16 + 16) + kColumns * 32) + 6 * 8;
    const auto bytes = [](const auto& of) { return static_cast<std::int64_t>(of.size() * 4); };
    launch.buffers = {
        {"a", a_.data(), bytes(a_), false}, {"b", b_.data(), bytes(b_), false}, {"y", y_.data(), bytes(y_), true}};
    return host::execute(module, launch, settings);
  }

  std::vector<float> a_, b_, expected_, y_;
};

TEST_F(Pipeline, IsRightAndCleanInEveryOrder) {
  const host::Module module = module_of(0);
  for (const Landing landing : {Landing::early, Landing::late, Landing::random}) {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      for (const std::uint32_t blocks : {1u, 2u, 3u}) {
        const host::Report report = run(module, blocks, {.seed = seed, .landing = landing});
        for (const host::Finding& finding : report.findings) ADD_FAILURE() << to_string(finding);
        ASSERT_EQ(y_, expected_) << seed;
      }
    }
  }
}

TEST_F(Pipeline, IsCounted) {
  const host::Module module = module_of(0, host::Purpose::count);
  for (const Landing landing : {Landing::early, Landing::late}) {
    const host::Report report = run(module, 2, {.landing = landing});
    for (const host::Finding& finding : report.findings) ADD_FAILURE() << to_string(finding);
    ASSERT_EQ(y_, expected_);
    const std::uint64_t steps = kTiles * kSteps, bytes_of_b = kColumns * kDepth * 4;
    EXPECT_EQ(report.counters.multiply_adds, steps * 128 * kColumns * kDepth);
    EXPECT_EQ(report.counters.fmas, 0u);
    // A warp's loads of a are half rows of 32 bytes: all sectors twice. A copy of b may start inside a sector.
    const std::uint64_t sectors_of_b =
        bytes_of_b / 32 + (reinterpret_cast<std::uintptr_t>(b_.data()) % 32 == 0 ? 0 : 1);
    EXPECT_EQ(report.counters.global_loads.requests, steps * (4 * 2 + 1));
    EXPECT_EQ(report.counters.global_loads.sectors, steps * (4 * 2 * 32 + sectors_of_b));
    EXPECT_EQ(report.counters.shared_stores.bytes, steps * (128 * 32 + bytes_of_b));
    EXPECT_EQ(report.counters.shared_stores.conflicts(), 0u);
  }
}

TEST_F(Pipeline, EveryBugIsFoundInEveryOrder) {
  const std::vector<std::set<Rule>> rules = {
      {},
      /* one arrival too few       */
      {Rule::race, Rule::barrier_misuse, Rule::unfinished_copy, Rule::divergent_barrier, Rule::uninitialised,
       Rule::unfinished_multiplication},
      /* barriers not visible      */ {Rule::barrier_misuse},
      /* stage not waited for      */
      {Rule::unfinished_multiplication, Rule::race, Rule::unfinished_copy, Rule::barrier_misuse,
       Rule::divergent_barrier},
      /* too few bytes announced   */
      {Rule::divergent_barrier, Rule::barrier_misuse, Rule::unfinished_copy, Rule::race},
      /* no fence                  */ {Rule::race},
      /* full stage not waited for */ {Rule::unfinished_copy, Rule::race, Rule::uninitialised},
      /* wrong parity              */ {Rule::unfinished_copy, Rule::race, Rule::uninitialised, Rule::divergent_barrier},
      /* stage given back early    */ {Rule::unfinished_multiplication},
      /* sums used early           */ {Rule::unfinished_multiplication},
  };
  for (int bug = 1; bug < static_cast<int>(rules.size()); ++bug) {
    const host::Module module = module_of(bug);
    std::set<Rule> found;
    for (const Landing landing : {Landing::early, Landing::late, Landing::random}) {
      for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        const host::Report report = run(module, 2, {.seed = seed, .landing = landing});
        ASSERT_FALSE(report.findings.empty()) << "bug " << bug << " seed " << seed;
        const host::Finding& first = report.findings.front();
        EXPECT_TRUE(rules[index(bug)].contains(first.rule)) << "bug " << bug << ": " << to_string(first);
        found.insert(first.rule);
      }
    }
    std::string names;
    for (const Rule rule : found) names += " " + to_string(rule) + ",";
    std::printf("bug %d:%s\n", bug, names.c_str());
  }
}

}  // namespace
}  // namespace jitconv::test
