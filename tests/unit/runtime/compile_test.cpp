// compile(): who gets which kernel, when NVRTC is called, and what failures leave behind. Fake NVRTC, no driver calls.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "runtime/nvrtc.h"
#include "runtime_test_support.h"

namespace jitconv::runtime_test {
namespace {

class CompileTest : public RuntimeTest {
 protected:
  void TearDown() override {
    RuntimeTest::TearDown();
    EXPECT_EQ(fake_driver::calls(), std::vector<std::string>()) << "compiling for a target needs no driver";
  }
  const Target target_ = parse_target("sm_90a");
};

TEST_F(CompileTest, WalksFromSpecToKernel) {
  const ConvSpec spec = new_spec();
  const Kernel kernel = compile(spec, target_);
  EXPECT_EQ(kernel.spec(), codegen::canonical(spec));
  EXPECT_EQ(kernel.target(), target_);
  EXPECT_EQ(kernel.image().substr(0, 11), "fake cubin ");
  EXPECT_EQ(kernel.cache_key().size(), 64u);
  EXPECT_FALSE(kernel.from_cache());
  EXPECT_NE(kernel.source().find("__global__"), std::string::npos);
  EXPECT_NE(kernel.explain().find("family: "), std::string::npos);
  EXPECT_EQ(kernel.plan(), to_string(runtime::plan_of(kernel)));
}

TEST_F(CompileTest, ResourcesComeFromTheLogUntilTheDriverKnows) {
  const Kernel kernel = compile(new_spec(), target_);
  const codegen::KernelEntry& entry = runtime::source_of(kernel).entries.front();
  const Resources expected{55, 24, 2048 + static_cast<std::int64_t>(entry.shared_bytes),
                           static_cast<int>(entry.threads)};
  EXPECT_EQ(kernel.resources().front(), expected);
}

TEST_F(CompileTest, SameSpecIsTheSameKernel) {
  const ConvSpec spec = new_spec();
  const Kernel first = compile(spec, target_);
  const Statistics before = statistics();
  EXPECT_EQ(&compile(spec, target_).source(), &first.source());
  const Statistics after = statistics();
  EXPECT_EQ(after.memory_hits, before.memory_hits + 1);
  EXPECT_EQ(after.compilations, before.compilations);
  EXPECT_EQ(after.disk_hits + after.disk_misses, before.disk_hits + before.disk_misses);
}

TEST_F(CompileTest, SpecsThatDifferInWhatCannotMatterShareAKernel) {
  ConvSpec spec = new_spec();
  const Kernel first = compile(spec, target_);
  spec.epilogue.slope = 0.25f;  // there is no leaky ReLU
  EXPECT_EQ(&compile(spec, target_).source(), &first.source());
}

TEST_F(CompileTest, TargetAndOptionsTellKernelsApart) {
  const ConvSpec spec = new_spec();
  const Kernel plain = compile(spec, target_);
  EXPECT_NE(compile(spec, parse_target("sm_80")).cache_key(), plain.cache_key());
  EXPECT_NE(compile(spec, target_, {.line_info = true}).cache_key(), plain.cache_key());
}

TEST_F(CompileTest, DiskHitNeedsNoCompiler) {
  const codegen::ConvPlan plan = codegen::make_plan(new_spec(), target_);
  const Kernel cold = runtime::compile_plan(plan);
  const ScopedVariable no_compiler("FAKE_NVRTC_RESULT", "6");
  const Statistics before = statistics();
  const Kernel warm = runtime::compile_plan(plan);
  EXPECT_TRUE(warm.from_cache());
  EXPECT_EQ(warm.image(), cold.image());
  EXPECT_EQ(warm.compile_log(), cold.compile_log());
  EXPECT_EQ(warm.resources(), cold.resources());
  EXPECT_EQ(statistics().compilations, before.compilations);
  EXPECT_EQ(statistics().disk_hits, before.disk_hits + 1);
}

TEST_F(CompileTest, ManyThreadsCompileOnce) {
  const ScopedVariable slow("FAKE_NVRTC_MS", "100");
  const ConvSpec spec = new_spec();
  const Statistics before = statistics();
  constexpr int kThreads = 16;
  std::barrier start(kThreads);
  std::vector<const std::string*> sources(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      ConvSpec mine = spec;
      mine.epilogue.slope = static_cast<float>(i % 2);  // two spellings of one convolution
      start.arrive_and_wait();
      sources[static_cast<std::size_t>(i)] = &compile(mine, target_).source();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string* source : sources) EXPECT_EQ(source, sources.front());
  EXPECT_EQ(statistics().compilations, before.compilations + 1);
  EXPECT_EQ(statistics().memory_hits, before.memory_hits + kThreads - 1);
}

TEST_F(CompileTest, DifferentSpecsCompileInParallel) {
  const ScopedVariable together("FAKE_NVRTC_TOGETHER", "4");
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([this, spec = new_spec()] { EXPECT_NO_THROW(compile(spec, target_)); });
  for (std::thread& thread : threads) thread.join();
}

TEST_F(CompileTest, AllWaitersGetTheFailureAndTheNextCallTriesAgain) {
  const ConvSpec spec = new_spec();
  std::atomic<int> failures{0};
  {
    const ScopedVariable broken("FAKE_NVRTC_RESULT", "6");
    const ScopedVariable slow("FAKE_NVRTC_MS", "100");
    std::barrier start(4);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        start.arrive_and_wait();
        try {
          compile(spec, target_);
        } catch (const CompileError&) {
          ++failures;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(failures, 4);
  EXPECT_FALSE(compile(spec, target_).image().empty());
}

TEST_F(CompileTest, FailureNamesTheSpecAndCarriesLogAndSource) {
  const ScopedVariable broken("FAKE_NVRTC_RESULT", "6");
  const ConvSpec spec = new_spec();
  try {
    compile(spec, target_);
    FAIL() << "compiled";
  } catch (const CompileError& error) {
    EXPECT_EQ(error.code(), ErrorCode::compile_failed);
    EXPECT_NE(std::string(error.what()).find(to_string(codegen::canonical(spec))), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("as the test asked"), std::string::npos) << error.what();
    EXPECT_NE(error.log().find("error: as the test asked"), std::string::npos);
    EXPECT_NE(error.numbered_source().find("    1 | "), std::string::npos);
    EXPECT_NE(error.options().find("--gpu-architecture=sm_90a"), std::string::npos);
  }
}

TEST_F(CompileTest, BrokenBuiltinsAreTheCompilersFaultNotTheSources) {
  const ScopedVariable broken("FAKE_NVRTC_RESULT", "7");
  try {
    compile(new_spec(), target_);
    FAIL() << "compiled";
  } catch (const CompileError& error) {
    EXPECT_EQ(error.code(), ErrorCode::compiler_missing);
    EXPECT_NE(std::string(error.what()).find("libnvrtc-builtins.so.13.0"), std::string::npos) << error.what();
  }
}

TEST_F(CompileTest, ArchitectureTheCompilerDoesNotKnow) {
  try {
    compile(new_spec(), parse_target("sm_120a"));
    FAIL() << "compiled";
  } catch (const CompileError& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_NE(std::string(error.what()).find("sm_120a; it knows sm_80, sm_90, sm_100"), std::string::npos)
        << error.what();
  }
}

TEST_F(CompileTest, NoCompileTurnsAMissIntoAnError) {
  const ConvSpec known = new_spec();
  const codegen::ConvPlan plan = codegen::make_plan(known, target_);
  runtime::compile_plan(plan);
  const ScopedVariable forbidden("JITCONV_NO_COMPILE", "1");
  EXPECT_TRUE(runtime::compile_plan(plan).from_cache());

  const ConvSpec unknown = new_spec();
  const auto key =
      runtime::cache_key(codegen::generate(codegen::make_plan(unknown, target_)), target_, CompileOptions{}).hex();
  const Statistics before = statistics();
  try {
    compile(unknown, target_);
    FAIL() << "compiled";
  } catch (const CompileError& error) {
    EXPECT_NE(std::string(error.what()).find(key), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find(to_string(codegen::canonical(unknown))), std::string::npos)
        << error.what();
  }
  EXPECT_EQ(statistics().compilations, before.compilations);
}

TEST_F(CompileTest, InvalidSpecIsRefusedBeforeAnythingElse) {
  ConvSpec spec = new_spec();
  spec.stride = {0};
  const Statistics before = statistics();
  EXPECT_THROW(compile(spec, target_), SpecError);
  spec = new_spec();
  spec.epilogue.slope = std::numeric_limits<float>::quiet_NaN();  // equal to nothing, so no key of the registry
  EXPECT_THROW(compile(spec, target_), SpecError);
  EXPECT_EQ(statistics().disk_misses, before.disk_misses);
}

TEST_F(CompileTest, ConvolutionWithoutOutputs) {
  ConvSpec spec = new_spec();
  spec.input.n = 0;
  const Statistics before = statistics();
  const Kernel kernel = compile(spec, target_);
  EXPECT_EQ(kernel.image(), "");
  EXPECT_EQ(kernel.cache_key(), "");
  EXPECT_TRUE(kernel.resources().empty());
  EXPECT_EQ(statistics().compilations, before.compilations);
  kernel.launch(nullptr, {});  // needs neither pointers nor a driver
}

// What a package manager does under a running process. In a process of its own, which has loaded no NVRTC yet.
TEST(CompileDeathTest, AnImageIsKeptUnderTheCompilerThatMadeIt) {
  const auto replaced_between_search_and_load = [] {
    const TemporaryDirectory directory;
    const std::string path = directory.path() + "/libnvrtc.so.13", other = directory.path() + "/other";
    std::filesystem::copy_file(JITCONV_FAKE_NVRTC, path);
    const ScopedVariable nvrtc("JITCONV_NVRTC_PATH", path);
    const std::string id = runtime::find_compiler().build_id;

    std::stringstream bytes;
    bytes << std::ifstream(path, std::ios::binary).rdbuf();
    std::string raw, changed = bytes.str();
    for (std::size_t i = 0; i < id.size(); i += 2) raw += static_cast<char>(std::stoi(id.substr(i, 2), nullptr, 16));
    changed.at(changed.find(raw)) ^= 1;
    std::ofstream(other, std::ios::binary) << changed;
    std::filesystem::rename(other, path);

    const Target target = parse_target("sm_90a");
    const codegen::ConvPlan plan = codegen::make_plan(new_spec(), target);
    const auto key = [&] { return runtime::cache_key(codegen::generate(plan), target, {}); };
    const cache::Key before = key();
    const Kernel kernel = runtime::compile_plan(plan);
    const cache::Key after = key();
    const bool replaced = runtime::find_compiler().build_id != id && !(before == after);
    const bool under_the_new = kernel.cache_key() == after.hex() && runtime::disk_cache().load(after).has_value();
    const bool under_the_old = runtime::disk_cache().load(before).has_value();
    std::exit(replaced && under_the_new && !under_the_old ? 0 : 1);
  };
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(replaced_between_search_and_load(), testing::ExitedWithCode(0), "");
}

TEST_F(CompileTest, DumpsSourceAndImage) {
  const TemporaryDirectory directory;
  const std::string where = directory.path() + "/made/here";
  const ScopedVariable dump("JITCONV_DUMP_DIR", where);
  const Kernel kernel = compile(new_spec(), target_);
  const auto name_of = [&where](const Kernel& of) {
    return where + "/" + runtime::source_of(of).entries.front().name + "_" + of.cache_key().substr(0, 8);
  };
  const std::string name = name_of(kernel);
  const auto contents = [](const std::string& path) {
    std::stringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
  };
  EXPECT_EQ(contents(name + ".cu"), kernel.source());
  EXPECT_EQ(contents(name + ".cubin"), kernel.image());

  // Neither alignment nor what stands in the text alone is part of a kernel's name.
  ConvSpec other = kernel.spec();
  other.alignment = 4;
  const Kernel unaligned = compile(other, target_);
  ASSERT_EQ(runtime::source_of(unaligned).entries.front().name, runtime::source_of(kernel).entries.front().name);
  EXPECT_EQ(contents(name_of(unaligned) + ".cu"), unaligned.source());
  EXPECT_EQ(contents(name + ".cu"), kernel.source());

  const ScopedVariable impossible("JITCONV_DUMP_DIR", "/proc/none/here");
  EXPECT_FALSE(compile(new_spec(), target_).image().empty());
}

TEST_F(CompileTest, AChildOfForkIsRefusedInsteadOfLeftToHang) {
  const ConvSpec spec = new_spec();
  compile(spec, target_);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(10);
    try {
      compile(spec, target_);
      _exit(1);
    } catch (const CudaError& error) {
      _exit(error.code() == ErrorCode::no_driver && std::string(error.what()).find("spawn") != std::string::npos ? 0
                                                                                                                 : 2);
    } catch (...) {
      _exit(3);
    }
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_NO_THROW(compile(spec, target_)) << "the parent is not concerned";
}

}  // namespace
}  // namespace jitconv::runtime_test
