// Target::host() through the public interface, on a machine where neither libcuda nor NVRTC can be loaded: compiled by
// the machine's own C++ compiler, cached, launched, and right. What host execution checks is tested in tests/host/.
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "runtime_test_support.h"

namespace jitconv::runtime_test {
namespace {

std::size_t elements(const TensorShape& shape) {
  return static_cast<std::size_t>(shape.n * shape.c * shape.h * shape.w);
}

/// Aligned as spec.alignment asks by default, and not a byte larger than it has to be.
class Tensor {
 public:
  Tensor(std::size_t size, float value) : size_(size), data_(new (std::align_val_t(16)) float[size]) {
    std::fill_n(data_.get(), size, value);
  }
  float* data() const { return data_.get(); }
  std::size_t size() const { return size_; }
  float& operator[](std::size_t i) const { return data_[i]; }

 private:
  struct Free {
    void operator()(float* data) const { ::operator delete[](data, std::align_val_t(16)); }
  };
  std::size_t size_;
  std::unique_ptr<float[], Free> data_;
};

/// Tensors of a small convolution whose result is known without computing it: all inputs are 1, so each output counts
/// the products that went into it.
class Ones {
 public:
  explicit Ones(const ConvSpec& spec)
      : x_(elements(spec.input), 1),
        w_(static_cast<std::size_t>(spec.weight.k * spec.weight.c * spec.weight.r * spec.weight.s), 1),
        y_(elements(output_shape(spec)), -7),
        products_(static_cast<float>(spec.weight.c * spec.weight.r * spec.weight.s)) {}
  LaunchArgs args() {
    LaunchArgs args;
    args.x = x_.data();
    args.w = w_.data();
    args.y = y_.data();
    return args;
  }
  const Tensor& y() const { return y_; }
  float products() const { return products_; }
  void expect_result() const {
    for (std::size_t i = 0; i < y_.size(); ++i) ASSERT_EQ(y_[i], products_) << "element " << i;
  }

 private:
  Tensor x_, w_, y_;
  float products_;
};

ConvSpec small_spec() {
  static std::int64_t width = 12;
  ConvSpec spec;
  spec.input = {1, 4, 9, ++width};
  spec.weight = {8, 4, 3, 3};
  return spec;
}

class HostTargetTest : public testing::Test {
 protected:
  const ScopedVariable no_nvrtc_{"JITCONV_NVRTC_PATH", "/nowhere"};
};

TEST_F(HostTargetTest, CompilesAndComputesWithoutCuda) {
  const ConvSpec spec = small_spec();
  EXPECT_THROW(compile(spec, Target{}), CompileError) << "there is no NVRTC";
  EXPECT_THROW(compile(spec), CudaError) << "there is no driver, and the host is nobody's default";
  EXPECT_THROW(current_target(), CudaError);

  const Kernel kernel = compile(spec, Target::host());
  EXPECT_EQ(kernel.target(), Target::host());
  EXPECT_EQ(kernel.image().substr(1, 3), "ELF");
  Ones ones(spec);
  kernel.launch(nullptr, ones.args());
  ones.expect_result();

  const codegen::KernelEntry& entry = runtime::source_of(kernel).entries.front();
  const Resources expected{0, 0, entry.shared_bytes, static_cast<int>(entry.threads)};
  EXPECT_EQ(kernel.resources(), std::vector<Resources>{expected});
}

TEST_F(HostTargetTest, SourceIsTheOneTheGpuGets) {
  const ConvSpec spec = small_spec();
  const codegen::KernelSource gpu = codegen::generate(codegen::make_plan(spec, parse_target("sm_80")));
  EXPECT_EQ(compile(spec, Target::host(parse_target("sm_80"))).source(), gpu.text);
}

TEST_F(HostTargetTest, KernelsOfTargetsAndOptionsAreApart) {
  const ConvSpec spec = small_spec();
  const Kernel plain = compile(spec, Target::host());
  EXPECT_EQ(&compile(spec, Target::host()).source(), &plain.source()) << "one kernel per spec and target";
  EXPECT_NE(compile(spec, Target::host(parse_target("sm_90"))).cache_key(), plain.cache_key());
  const Kernel counting = compile(spec, Target::host(), {.counters = true});
  EXPECT_NE(counting.cache_key(), plain.cache_key());
  Ones ones(spec);
  counting.launch(nullptr, ones.args());
  ones.expect_result();
}

TEST_F(HostTargetTest, SpecsArePreparedTogether) {
  std::vector<ConvSpec> specs = {small_spec(), small_spec(), small_spec()};
  specs.push_back(specs[1]);
  std::size_t reports = 0;
  PrepareOptions options;
  options.progress = [&](const Progress& progress) { reports = progress.done; };
  const std::vector<Kernel> kernels = prepare(specs, Target::host(), options);
  EXPECT_EQ(reports, specs.size());
  ASSERT_EQ(kernels.size(), specs.size());
  EXPECT_EQ(&kernels[1].source(), &kernels[3].source());
  for (std::size_t i = 0; i < specs.size(); ++i) {
    Ones ones(specs[i]);
    kernels[i].launch(nullptr, ones.args());
    ones.expect_result();
  }
  specs[2].groups = 3;
  EXPECT_THROW(prepare(specs, Target::host(), options), SpecError);
  EXPECT_THROW(prepare(specs), CudaError) << "there is no driver";
}

TEST_F(HostTargetTest, TheDiskCacheKeepsItsImages) {
  const ConvSpec spec = small_spec();
  const codegen::ConvPlan plan = codegen::make_plan(spec, Target::host());
  const Kernel cold = runtime::compile_plan(plan);
  EXPECT_FALSE(cold.from_cache());
  const Statistics before = statistics();
  const Kernel warm = runtime::compile_plan(plan);
  EXPECT_TRUE(warm.from_cache());
  EXPECT_EQ(warm.image(), cold.image());
  EXPECT_EQ(statistics().compilations, before.compilations);
  Ones ones(spec);
  warm.launch(nullptr, ones.args());
  ones.expect_result();
}

// Whole entries whose payload is of no use, as an interrupted copy of a cache from elsewhere may leave them.
TEST_F(HostTargetTest, AnImageThatDoesNotLoadIsCompiledAgain) {
  const codegen::ConvPlan plan = codegen::make_plan(small_spec(), Target::host());
  const std::string good = runtime::compile_plan(plan).image();
  const cache::Key key = runtime::cache_key(codegen::generate(plan), plan.target, {});
  for (const std::string& bad :
       {std::string(), std::string("not a library"), good.substr(0, good.size() / 2), good.substr(0, 64)}) {
    ASSERT_TRUE(runtime::disk_cache().save({key, cache::EntryKind::host, "old log", bad}));
    const Kernel kernel = runtime::compile_plan(plan);
    ASSERT_TRUE(kernel.from_cache());
    const Statistics before = statistics();
    Ones ones(plan.spec);
    kernel.launch(nullptr, ones.args());
    ones.expect_result();
    EXPECT_EQ(statistics().compilations, before.compilations + 1) << bad.size() << " bytes";
    EXPECT_FALSE(kernel.from_cache());
    EXPECT_EQ(kernel.image().size(), good.size());
  }
}

TEST_F(HostTargetTest, RulesOfALaunchHold) {
  const ConvSpec spec = small_spec();
  const Kernel kernel = compile(spec, Target::host());
  const auto field = [&](void* stream, const LaunchArgs& args) {
    try {
      kernel.launch(stream, args);
      return std::string();
    } catch (const SpecError& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << error.what();
      return error.field();
    }
  };
  Ones ones(spec);
  const LaunchArgs good = ones.args();
  LaunchArgs args = good;
  args.x = nullptr;
  EXPECT_EQ(field(nullptr, args), "x");
  args = good;
  args.w = static_cast<const char*>(args.w) + 4;
  EXPECT_EQ(field(nullptr, args), "w");
  args = good;
  args.x = args.y;
  EXPECT_EQ(field(nullptr, args), "y");
  int stream = 0;
  EXPECT_EQ(field(&stream, good), "stream");
  EXPECT_EQ(field(nullptr, good), "");
  ones.expect_result();
}

TEST_F(HostTargetTest, ResidualMayBeTheOutputItself) {
  ConvSpec spec = small_spec();
  spec.epilogue.residual = true;
  const Kernel kernel = compile(spec, Target::host());
  Ones ones(spec);
  for (std::size_t i = 0; i < ones.y().size(); ++i) ones.y()[i] = static_cast<float>(i);
  LaunchArgs args = ones.args();
  args.residual = args.y;
  kernel.launch(nullptr, args);
  for (std::size_t i = 0; i < ones.y().size(); ++i) {
    ASSERT_EQ(ones.y()[i], static_cast<float>(i) + ones.products()) << "element " << i;
  }
}

TEST_F(HostTargetTest, ThreadsTakeTurns) {
  const ConvSpec spec = small_spec();
  const Kernel kernel = compile(spec, Target::host());
  std::vector<Ones> ones;
  for (int i = 0; i < 4; ++i) ones.emplace_back(spec);
  std::vector<std::thread> threads;
  for (Ones& mine : ones) threads.emplace_back([&kernel, &mine] { kernel.launch(nullptr, mine.args()); });
  for (std::thread& thread : threads) thread.join();
  for (const Ones& each : ones) each.expect_result();
}

TEST_F(HostTargetTest, AChildOfForkIsRefusedInsteadOfLeftToHang) {
  const ConvSpec spec = small_spec();
  const Kernel kernel = compile(spec, Target::host());
  const auto refused = [](const auto& call) {
    try {
      call();
      return false;
    } catch (const CudaError& error) {
      return error.code() == ErrorCode::no_driver && std::strstr(error.what(), "spawn") != nullptr;
    } catch (...) {
      return false;
    }
  };
  Ones ones(spec);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(20);
    const bool launch = refused([&] { kernel.launch(nullptr, ones.args()); });
    const bool known = refused([&] { compile(spec, Target::host()); });
    _exit((launch ? 0 : 1) + (known ? 0 : 2));
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  kernel.launch(nullptr, ones.args());
  ones.expect_result();
}

}  // namespace
}  // namespace jitconv::runtime_test
