// compile_plan(), the cache and launch() on a backend that records what it is asked: what every backend may rely on,
// and that nothing of the runtime goes around the interface. No driver, no NVRTC.
#include "runtime/backend.h"

#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <sstream>
#include <thread>

#include "../../support/file_size_limit.h"
#include "fake_backend.h"
#include "runtime_test_support.h"

namespace jitconv::runtime_test {
namespace {

using codegen::Tensor;

class BackendTest : public RuntimeTest {
 protected:
  void TearDown() override {
    RuntimeTest::TearDown();
    EXPECT_EQ(fake_driver::calls(), std::vector<std::string>()) << "this backend is not CUDA's";
  }
  Kernel compile_spec(const ConvSpec& spec, const CompileOptions& options = {}) const {
    return runtime::compile_plan(codegen::make_plan(spec, target_), options, backend_);
  }

  const Target target_ = Target::host(parse_target("sm_80"));
  FakeBackend backend_;
};

TEST_F(BackendTest, CompilesKeepsAndFindsItsImages) {
  const ConvSpec spec = new_spec();
  const Kernel cold = compile_spec(spec);
  EXPECT_EQ(backend_.compiled_with, (std::vector<std::string>{"-fake", "-for=--gpu-architecture=sm_80"}));
  EXPECT_FALSE(cold.from_cache());
  EXPECT_EQ(cold.compile_log(), "fake log");

  const Statistics before = statistics();
  const Kernel warm = compile_spec(spec);
  EXPECT_TRUE(warm.from_cache());
  EXPECT_EQ(warm.image(), cold.image());
  EXPECT_EQ(warm.compile_log(), "fake log");
  EXPECT_EQ(warm.cache_key(), cold.cache_key());
  EXPECT_EQ(backend_.compilations, 1);
  EXPECT_EQ(statistics().disk_hits, before.disk_hits + 1);

  const codegen::KernelSource& source = runtime::source_of(cold);
  const cache::Key key =
      cache::make_key({"fake-sm_80", "1.0", "abc", backend_.options(source, {}),
                       std::string(codegen::generator_fingerprint()) + "translation 1", source.text});
  EXPECT_EQ(cold.cache_key(), key.hex());
  const auto entry = runtime::disk_cache().load(key);
  ASSERT_TRUE(entry.has_value());
  EXPECT_EQ(entry->kind, cache::EntryKind::host);
  EXPECT_EQ(entry->payload, cold.image());
  std::map<std::string, std::string> described;
  for (const cache::Property& property : entry->description) described[property.name] = property.value;
  EXPECT_EQ(described["spec"], to_string(cold.spec()));
  EXPECT_EQ(described["target"], "fake-sm_80");
  EXPECT_EQ(described["family"], to_string(runtime::plan_of(cold).family()));
  EXPECT_EQ(described["kernels"].find(source.entries.front().name), 0u);
  EXPECT_EQ(described["compiler"], "1.0");
  EXPECT_EQ(described["compiler identity"], "abc");
  EXPECT_EQ(described["options"], "-fake -for=" + source.options.front());
  EXPECT_EQ(described["generator"], codegen::generator_fingerprint());
  EXPECT_EQ(described["created"].size(), 20u);
}

TEST_F(BackendTest, EverythingThatDecidesTheImageIsInTheKey) {
  const ConvSpec spec = new_spec();
  std::vector<std::string> keys = {compile_spec(spec).cache_key()};
  keys.push_back(compile_spec(spec, {.counters = true}).cache_key());
  backend_.prefix = "other-";
  keys.push_back(compile_spec(spec).cache_key());
  backend_.identity.version = "1.1";
  keys.push_back(compile_spec(spec).cache_key());
  backend_.identity.build_id = "abd";
  keys.push_back(compile_spec(spec).cache_key());
  backend_.translation = "translation 2";
  keys.push_back(compile_spec(spec).cache_key());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(keys[i], keys[j]) << i << " and " << j;
  }
  EXPECT_EQ(static_cast<std::size_t>(backend_.compilations), keys.size());
}

TEST_F(BackendTest, LaunchGetsPointersSizesAndWhatIsWritten) {
  ConvSpec spec = new_spec();
  spec.dtype = DataType::f16;
  spec.epilogue.bias = spec.epilogue.residual = true;
  const Kernel kernel = compile_spec(spec);
  const LaunchArgs args = addresses_for(spec);
  int stream = 0;
  kernel.launch(&stream, args);

  const codegen::KernelEntry& entry = runtime::source_of(kernel).entries.front();
  ASSERT_EQ(backend_.launches.size(), 1u);
  const RecordedLaunch& launch = backend_.launches.front();
  EXPECT_EQ(launch.kernel, entry.name);
  EXPECT_EQ(launch.stream, &stream);
  ASSERT_EQ(launch.pointers.size(), entry.arguments.size());

  const TensorShape out = output_shape(spec);
  const std::int64_t y_bytes = out.n * out.c * out.h * out.w * 2;
  const std::map<Tensor, std::pair<const void*, std::int64_t>> expected = {
      {Tensor::x, {args.x, spec.input.n * spec.input.c * spec.input.h * spec.input.w * 2}},
      {Tensor::w, {args.w, 16 * 8 * 3 * 3 * 2}},
      {Tensor::bias, {args.bias, 16 * 2}},
      {Tensor::residual, {args.residual, y_bytes}},
      {Tensor::y, {args.y, y_bytes}}};
  std::size_t seen = 0;
  for (std::size_t i = 0; i < entry.arguments.size(); ++i) {
    const Tensor tensor = entry.arguments[i].tensor;
    ASSERT_TRUE(expected.contains(tensor)) << entry.arguments[i].name;
    EXPECT_EQ(launch.pointers[i], expected.at(tensor).first) << entry.arguments[i].name;
    EXPECT_EQ(launch.extents[i].bytes, expected.at(tensor).second) << entry.arguments[i].name;
    EXPECT_EQ(launch.extents[i].writable, tensor == Tensor::y) << entry.arguments[i].name;
    ++seen;
  }
  EXPECT_EQ(seen, expected.size());
}

TEST_F(BackendTest, RulesOfALaunchHoldBeforeTheBackendIsAsked) {
  const ConvSpec spec = new_spec();
  const Kernel kernel = compile_spec(spec);
  const LaunchArgs good = addresses_for(spec);
  const auto refused = [&](const LaunchArgs& args) {
    try {
      kernel.launch(nullptr, args);
      return std::string();
    } catch (const SpecError& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      return error.field();
    }
  };
  LaunchArgs args = good;
  args.w = nullptr;
  EXPECT_EQ(refused(args), "w");
  args = good;
  args.x = static_cast<const char*>(args.x) + 4;
  EXPECT_EQ(refused(args), "x");
  args = good;
  args.x = args.y;
  EXPECT_EQ(refused(args), "y");
  EXPECT_EQ(backend_.count("load"), 0);
  EXPECT_TRUE(backend_.launches.empty());
  EXPECT_EQ(refused(good), "");
  EXPECT_EQ(backend_.launches.size(), 1u);
}

TEST_F(BackendTest, AnImageIsLoadedOnceAndPreparedPerDevice) {
  const ConvSpec spec = new_spec();
  {
    const Kernel kernel = compile_spec(spec);
    EXPECT_EQ(backend_.count("load"), 0);
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) threads.emplace_back([&] { kernel.launch(nullptr, addresses_for(spec)); });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(backend_.count("load"), 1);
    EXPECT_EQ(backend_.count("prepare"), 1);
    backend_.device = 1;
    kernel.launch(nullptr, addresses_for(spec));
    runtime::prepare(kernel);
    EXPECT_EQ(backend_.count("load"), 1);
    EXPECT_EQ(backend_.count("prepare"), 2);
    EXPECT_EQ(backend_.launches.size(), 9u);
    EXPECT_EQ(backend_.live_images, 1);
  }
  EXPECT_EQ(backend_.live_images, 0) << "unloaded with the kernel";
}

TEST_F(BackendTest, ResourcesAreTheBackendsOnceItIsLoaded) {
  const Kernel kernel = compile_spec(new_spec());
  const codegen::KernelEntry& entry = runtime::source_of(kernel).entries.front();
  const Resources from_log{0, 0, entry.shared_bytes, static_cast<int>(entry.threads)};
  EXPECT_EQ(kernel.resources(), std::vector<Resources>{from_log}) << "a log that says nothing of registers";
  runtime::prepare(kernel);
  const Resources loaded{3, 5, 7 + static_cast<std::int64_t>(entry.shared_bytes), static_cast<int>(entry.threads)};
  EXPECT_EQ(kernel.resources(), std::vector<Resources>{loaded});
}

TEST_F(BackendTest, ACachedImageThatIsRefusedIsCompiledAgainOnce) {
  for (const char* call : {"load", "kernel", "prepare"}) {
    const ConvSpec spec = new_spec();
    compile_spec(spec);
    const Kernel kernel = compile_spec(spec);
    ASSERT_TRUE(kernel.from_cache());
    const int before = backend_.compilations;
    backend_.fail(call, /*images_fault=*/true);
    kernel.launch(nullptr, addresses_for(spec));
    EXPECT_EQ(backend_.compilations, before + 1) << call;
    EXPECT_FALSE(kernel.from_cache()) << call;
    EXPECT_EQ(backend_.live_images, 1) << call;

    const Kernel again = compile_spec(spec);
    ASSERT_TRUE(again.from_cache()) << "the new image replaced the old one";
    backend_.fail(call, /*images_fault=*/true, 2);
    EXPECT_THROW(again.launch(nullptr, addresses_for(spec)), CudaError) << call;
    EXPECT_EQ(backend_.compilations, before + 2) << call;
    EXPECT_NO_THROW(again.launch(nullptr, addresses_for(spec))) << "nothing is remembered of the failure";
  }
}

TEST_F(BackendTest, FreshImagesAndOtherFailuresAreNotCompiledAgain) {
  const ConvSpec spec = new_spec();
  const Kernel fresh = compile_spec(spec);
  backend_.fail("load", /*images_fault=*/true);
  EXPECT_THROW(fresh.launch(nullptr, addresses_for(spec)), CudaError);
  const Kernel cached = compile_spec(spec);
  ASSERT_TRUE(cached.from_cache());
  backend_.fail("load", /*images_fault=*/false);
  EXPECT_THROW(cached.launch(nullptr, addresses_for(spec)), CudaError);
  EXPECT_EQ(backend_.compilations, 1);
}

TEST_F(BackendTest, FailuresReachTheCaller) {
  const ConvSpec spec = new_spec();
  const Kernel kernel = compile_spec(spec);
  backend_.device = FakeBackend::kOldDevice;
  EXPECT_THROW(kernel.launch(nullptr, addresses_for(spec)), CudaError);
  EXPECT_EQ(backend_.count("load"), 0);
  backend_.device = 0;
  int stream = 0;
  backend_.capturing = &stream;
  try {
    kernel.launch(&stream, addresses_for(spec));
    FAIL() << "launched";
  } catch (const CudaError& error) {
    EXPECT_NE(std::string(error.what()).find("being captured"), std::string::npos) << error.what();
  }
  EXPECT_EQ(backend_.count("load"), 0);
  backend_.fault = true;
  try {
    kernel.launch(nullptr, addresses_for(spec));
    FAIL() << "launched";
  } catch (const KernelFault& error) {
    EXPECT_EQ(error.code(), ErrorCode::kernel_fault);
    EXPECT_STREQ(error.what(), "the fake kernel is at fault");
  }
}

TEST_F(BackendTest, CompilersFailureNamesTheSpec) {
  backend_.broken_compiler = true;
  const ConvSpec spec = new_spec();
  const Statistics before = statistics();
  try {
    compile_spec(spec);
    FAIL() << "compiled";
  } catch (const CompileError& error) {
    EXPECT_EQ(error.code(), ErrorCode::compile_failed);
    EXPECT_EQ(error.what(), "the fake compiler is broken\n  spec: " + to_string(codegen::canonical(spec)));
    EXPECT_EQ(error.log(), "its log");
  }
  EXPECT_EQ(statistics().compilations, before.compilations + 1);
  backend_.broken_compiler = false;
  EXPECT_FALSE(compile_spec(spec).from_cache()) << "nothing was stored";
}

TEST_F(BackendTest, NoCompileNamesTheKeysTarget) {
  const ScopedVariable forbidden("JITCONV_NO_COMPILE", "1");
  try {
    compile_spec(new_spec());
    FAIL() << "compiled";
  } catch (const CompileError& error) {
    EXPECT_NE(std::string(error.what()).find("for fake-sm_80:"), std::string::npos) << error.what();
  }
  EXPECT_EQ(backend_.compilations, 0);
}

TEST_F(BackendTest, DumpsUnderItsOwnSuffix) {
  const TemporaryDirectory directory;
  const ScopedVariable dump("JITCONV_DUMP_DIR", directory.path());
  const Kernel kernel = compile_spec(new_spec());
  std::ifstream file(directory.path() + "/" + runtime::source_of(kernel).entries.front().name + "_" +
                         kernel.cache_key().substr(0, 8) + ".fake",
                     std::ios::binary);
  std::stringstream contents;
  contents << file.rdbuf();
  EXPECT_EQ(contents.str(), kernel.image());
}

TEST_F(BackendTest, ALimitOnFileSizesCostsADumpAndNotTheProcess) {
  const TemporaryDirectory directory;
  const ScopedVariable dump("JITCONV_DUMP_DIR", directory.path());
  const ConvSpec spec = new_spec();
  const test::FileSizeLimit limit(512);  // less than any source
  compile_spec(spec).launch(nullptr, addresses_for(spec));
  EXPECT_EQ(backend_.launches.size(), 1u);
}

TEST_F(BackendTest, AConvolutionWithoutOutputsNeedsNoBackend) {
  ConvSpec spec = new_spec();
  spec.input.n = 0;
  compile_spec(spec).launch(nullptr, {});
  EXPECT_EQ(backend_.compilations, 0);
  EXPECT_TRUE(backend_.launches.empty());
}

TEST_F(BackendTest, AChildOfForkIsRefusedOnAnyBackend) {
  const ConvSpec spec = new_spec();
  const Kernel kernel = compile_spec(spec);
  kernel.launch(nullptr, addresses_for(spec));
  compile(new_spec(), parse_target("sm_90a"));  // the registry has been used
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(10);
    try {
      kernel.launch(nullptr, addresses_for(spec));
      _exit(1);
    } catch (const CudaError& error) {
      _exit(error.code() == ErrorCode::no_driver && backend_.launches.size() == 1 ? 0 : 2);
    } catch (...) {
      _exit(3);
    }
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_NO_THROW(kernel.launch(nullptr, addresses_for(spec))) << "the parent is not concerned";
}

TEST(BackendFor, FollowsTheTargetsExecution) {
  EXPECT_EQ(runtime::backend_for(Target{}).format().key_prefix, "");
  EXPECT_EQ(runtime::backend_for(Target{}).format().kind, cache::EntryKind::cubin);
  EXPECT_EQ(runtime::backend_for(Target::host()).format().key_prefix, "host-");
  EXPECT_EQ(runtime::backend_for(Target::host()).format().kind, cache::EntryKind::host);
  Target wrong;
  wrong.execution = static_cast<Execution>(7);
  try {
    runtime::backend_for(wrong);
    FAIL() << "there is no such backend";
  } catch (const SpecError& error) {
    EXPECT_EQ(error.field(), "execution");
    EXPECT_NE(std::string(error.what()).find("execution is 7, must be gpu or host"), std::string::npos);
  }
}

TEST(BackendFor, OnlyTheHostCounts) {
  for (const std::int64_t batch : {2, 0}) {
    ConvSpec spec = new_spec();
    spec.input.n = batch;
    try {
      compile(spec, parse_target("sm_90a"), {.counters = true});
      ADD_FAILURE() << "compiled";
    } catch (const SpecError& error) {
      EXPECT_EQ(error.code(), ErrorCode::unsupported);
      EXPECT_EQ(error.field(), "counters");
    }
  }
}

}  // namespace
}  // namespace jitconv::runtime_test
