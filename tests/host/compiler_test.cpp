// The machine's C++ compilers: each makes modules of every golden source, in bounded time and without leaving a file
// behind, and what goes wrong is an error that says what.
#include "host/compiler.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "golden/golden_cases.h"
#include "host/module.h"
#include "host/small_kernel.h"
#include "host/surroundings.h"
#include "jitconv/error.h"
#include "support/file_size_limit.h"
#include "support/full_run.h"

namespace jitconv::test {
namespace {

namespace fs = std::filesystem;
using host::Purpose;

/// CPU time of the programs this process has waited for: a busy machine does not make a compiler slower by it.
double seconds_of_children() {
  rusage usage{};
  ::getrusage(RUSAGE_CHILDREN, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

class CompilerTest : public ::testing::TestWithParam<host::Compiler> {};

/// Modules that count are of the same text with other options: a share of the sources will do.
constexpr std::size_t kCountedInEvery = 4;

TEST_P(CompilerTest, MakesModulesOfEveryGoldenSource) {
  std::vector<double> seconds;
  std::size_t index = 0, left_out = 0;
  for (const GoldenCase& one : golden_cases()) {
    const codegen::KernelSource source = codegen::generate(codegen::make_plan(one.spec, Target::host()));
    const bool is_counted = index++ % kCountedInEvery == 0 || is_full_run();
    for (const Purpose purpose : purposes(GetParam())) {
      if (purpose == Purpose::count && !is_counted) {
        ++left_out;
        continue;
      }
      const double before = seconds_of_children();
      const host::CompiledModule made =
          host::compile_module(GetParam(), source, host::compile_options(GetParam(), purpose));
      if (purpose == Purpose::check) {
        seconds.push_back(seconds_of_children() - before);
      }
      const host::Module module(made.image);
      EXPECT_EQ(made.log, "") << one.name;
      EXPECT_NE(module.entry(source.entries.front().name), nullptr) << one.name;
      EXPECT_EQ(module.counts(), purpose == Purpose::count) << one.name;
    }
  }
  std::sort(seconds.begin(), seconds.end());
  const double median = seconds[seconds.size() / 2];
  RecordProperty("median_compile_cpu_ms", static_cast<int>(median * 1000));
  std::printf("%s: median %.0f ms of CPU time, slowest %.0f ms of %zu modules\n", GetParam().version.c_str(),
              median * 1e3, seconds.back() * 1e3, seconds.size());
  if (left_out > 0) std::printf("%zu modules that count are made with ./dev test --full\n", left_out);
  EXPECT_LT(median, 3.0);
}

TEST_P(CompilerTest, EqualInputsGiveEqualBytes) {
  const codegen::KernelSource source =
      codegen::generate(codegen::make_plan(golden_cases().front().spec, Target::host()));
  const auto options = host::compile_options(GetParam(), Purpose::check);
  EXPECT_EQ(host::compile_module(GetParam(), source, options).image,
            host::compile_module(GetParam(), source, options).image);
}

TEST_P(CompilerTest, NamesABuiltInWithoutModel) {
  for (const char* call : {"__nanosleep(100);", "int n = __reduce_add_sync(~0u, 1);", "__half h;"}) {
    const codegen::KernelSource source =
        small_kernel(fmt::format("extern \"C\" __global__ void probe() {{\n  {}\n}}\n", call));
    try {
      host::compile_module(GetParam(), source, host::compile_options(GetParam(), Purpose::check));
      FAIL() << call << " was compiled";
    } catch (const CompileError& error) {
      const std::string text = error.what(), first = text.substr(0, text.find('\n'));
      const std::string name = std::string(call).substr(std::string(call).find("__"));
      EXPECT_NE(first.find("'" + name.substr(0, name.find_first_of("( ")) + "'"), std::string::npos) << text;
      EXPECT_NE(first.find("probe.cu:2"), std::string::npos) << text;
      EXPECT_EQ(error.code(), ErrorCode::compile_failed);
      EXPECT_NE(error.log().find("error"), std::string::npos);
      EXPECT_NE(error.numbered_source().find("    2 |   " + std::string(call)), std::string::npos);
      EXPECT_NE(error.options().find("-fsanitize=thread"), std::string::npos);
    }
  }
}

TEST_P(CompilerTest, NamesAFunctionThatIsDeclaredButNotDefined) {
  const codegen::KernelSource source =
      small_kernel("void nowhere();\nextern \"C\" __global__ void probe() { nowhere(); }\n");
  try {
    host::compile_module(GetParam(), source, host::compile_options(GetParam(), Purpose::check));
    FAIL() << "linked";
  } catch (const CompileError& error) {
    EXPECT_NE(std::string(error.what()).find("'nowhere()'"), std::string::npos) << error.what();
  }
}

TEST_P(CompilerTest, LeavesNoFileBehind) {
  const Folder folder;
  const Variable temporary("TMPDIR", folder.path().string());
  const auto options = host::compile_options(GetParam(), Purpose::check);
  host::compile_module(GetParam(), small_kernel("extern \"C\" __global__ void probe() {}\n"), options);
  EXPECT_TRUE(folder.empty());
  EXPECT_THROW(host::compile_module(GetParam(), small_kernel("not C++"), options), CompileError);
  EXPECT_TRUE(folder.empty());
  try {
    const codegen::KernelSource source =
        codegen::generate(codegen::make_plan(golden_cases().front().spec, Target::host()));
    host::compile_module(GetParam(), source, options, std::chrono::milliseconds(5));
    FAIL() << "compiled in 5 ms";
  } catch (const CompileError& error) {
    EXPECT_NE(std::string(error.what()).find("took longer than 5 ms"), std::string::npos) << error.what();
  }
  EXPECT_TRUE(folder.empty());
}

TEST_P(CompilerTest, TakesNothingFromTheEnvironment) {
  const Variable first("CPLUS_INCLUDE_PATH", "/nonexistent"), second("GCC_EXEC_PREFIX", "/nonexistent/"),
      third("COMPILER_PATH", "/nonexistent"), fourth("LIBRARY_PATH", "/nonexistent"),
      fifth("CCC_OVERRIDE_OPTIONS", "+-DX");
  EXPECT_NO_THROW(host::compile_module(GetParam(), small_kernel("extern \"C\" __global__ void probe() {}\n"),
                                       host::compile_options(GetParam(), Purpose::check)));
}

TEST_P(CompilerTest, OptionsNameEveryFeature) {
  const auto check = host::compile_options(GetParam(), Purpose::check);
  for (const std::string& option : check) EXPECT_EQ(option.find("native"), std::string::npos) << option;
  if (purposes(GetParam()).size() == 2) {
    EXPECT_NE(check, host::compile_options(GetParam(), Purpose::count));
  } else {
    EXPECT_THROW(host::compile_options(GetParam(), Purpose::count), CompileError);
  }
#if defined(__x86_64__)
  const bool fused = __builtin_cpu_supports("fma") && __builtin_cpu_supports("avx2");
  EXPECT_EQ(std::count(check.begin(), check.end(), "-mfma"), fused ? 1 : 0);
#endif
}

INSTANTIATE_TEST_SUITE_P(Found, CompilerTest, ::testing::ValuesIn(compilers()),
                         [](const auto& one) { return kind_name(one.param); });

TEST(CompilerIdentity, TellsCompilersApart) {
  const Folder folder;
  const host::Compiler real = compilers().front();
  EXPECT_EQ(real, host::probe_compiler(real.path));
  // The same compiler behind a wrapper of one's own is another one: the wrapper may change its options.
  const host::Compiler wrapped = host::probe_compiler(script(folder, "exec " + real.path + " \"$@\"").string());
  EXPECT_EQ(wrapped.version, real.version);
  EXPECT_NE(wrapped.identity, real.identity);
}

std::string missing(const std::string& chosen) {
  const Variable variable("JITCONV_HOST_CXX", chosen);
  try {
    return "found " + host::find_compiler().version;
  } catch (const CompileError& error) {
    EXPECT_EQ(error.code(), ErrorCode::compiler_missing);
    return error.what();
  }
}

/// What compiling an empty kernel with this compiler says.
std::string refusal(const host::Compiler& compiler) {
  try {
    host::compile_module(compiler, small_kernel("extern \"C\" __global__ void probe() {}\n"), {});
    return "compiled";
  } catch (const CompileError& error) {
    EXPECT_EQ(error.code(), ErrorCode::compile_failed);
    return error.what();
  }
}

TEST(CompilerFailure, HasAReasonEvenIfTheCompilerGivesNone) {
  const Folder folder;
  host::Compiler compiler = compilers().front();
  compiler.path = script(folder, "exit 7").string();
  EXPECT_EQ(refusal(compiler).find("the compiler exited with status 7 and printed nothing\n"), 0u);
  compiler.path = script(folder, "echo; exit 0").string();
  EXPECT_EQ(refusal(compiler).find("the compiler exited with status 0 and printed nothing\n"), 0u);
  compiler.path = script(folder, "echo; echo ' I give up'; exit 1").string();
  EXPECT_EQ(refusal(compiler).find("I give up\n"), 0u) << refusal(compiler);
}

TEST(CompilerFailure, ALimitOnFileSizesIsOne) {
  const FileSizeLimit limit(512);
  EXPECT_NE(refusal(compilers().front()).find("unit.cpp cannot be written: File too large"), std::string::npos);
}

TEST(CompilerSearch, SaysWhatIsWrongWithTheChosenOne) {
  const Folder folder;
  EXPECT_NE(missing("no-such-compiler").find("no-such-compiler, which is not on the PATH"), std::string::npos);
  EXPECT_NE(missing("/nonexistent/c++").find("/nonexistent/c++ does not say which C++ compiler it is"),
            std::string::npos);
  EXPECT_NE(missing("/bin/true").find("/bin/true does not say which C++ compiler it is"), std::string::npos);
  const fs::path old = script(folder, "echo '#define __GNUC__ 9'; echo '#define __GNUC_MINOR__ 4'");
  EXPECT_NE(missing(old.string()).find("must be g++ 11 or later"), std::string::npos) << missing(old.string());
}

TEST(CompilerSearch, TakesTheChosenOne) {
  for (const host::Compiler& compiler : compilers()) {
    const Variable variable("JITCONV_HOST_CXX", compiler.path);
    EXPECT_EQ(host::find_compiler(), compiler);
  }
}

TEST(CompilerSearch, PassesOverOneThatIsTooOld) {
  const Folder folder;
  const host::Compiler real = compilers().front();
  const fs::path old = script(folder, "echo '#define __GNUC__ 9'");
  fs::rename(old, folder.path() / "c++");
  fs::create_symlink(real.path, folder.path() / "g++");
  const Variable chosen("JITCONV_HOST_CXX", ""), path("PATH", folder.path().string() + ":/usr/bin:/bin");
  EXPECT_EQ(host::find_compiler().version, real.version);
}

}  // namespace
}  // namespace jitconv::test
