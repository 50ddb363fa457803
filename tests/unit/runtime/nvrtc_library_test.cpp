// NVRTC itself, whichever is installed: images, logs, options, and the words of its refusals. No GPU.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "jitconv/error.h"
#include "runtime/library_identity.h"
#include "runtime/nvrtc.h"
#include "runtime/nvrtc_search.h"
#include "runtime/ptxas_log.h"

namespace jitconv::runtime {
namespace {

const std::string kGood = "extern \"C\" __global__ void twice(float* y) {\n  y[threadIdx.x] *= 2.0f;\n}\n";
const std::vector<std::string> kOptions = {"--gpu-architecture=sm_90a", "-std=c++17"};

/// The image is a cubin with that kernel, and the log has its statistics.
void expect_kernel(const CompiledImage& image, const std::string& name) {
  EXPECT_EQ(image.cubin.substr(0, 4),
            "\x7f"
            "ELF");
  EXPECT_NE(image.cubin.find(".text." + name), std::string::npos);
  codegen::KernelEntry entry;
  entry.name = name;
  EXPECT_GT(resources_from_log(image.log, {entry}).front().registers, 0) << image.log;
}

TEST(NvrtcLibrary, FoundAndIdentifiedWithoutBeingLoaded) {
  const CompilerIdentity& compiler = find_compiler();
  EXPECT_EQ(dlopen(compiler.path.c_str(), RTLD_NOW | RTLD_NOLOAD), nullptr)
      << "looking must not load " << compiler.path;
  EXPECT_GE(compiler.build_id.size(), 16u);
  EXPECT_NE(compiler.version.find('.'), std::string::npos) << compiler.version;
  EXPECT_EQ(identify_compiler(compiler.path), compiler);
}

TEST(NvrtcLibrary, CompilesToACubinWithStatistics) {
  const CompiledImage image = compile_source(kGood, "twice.cu", kOptions, /*want_ptx=*/true);
  expect_kernel(image, "twice");
  EXPECT_NE(image.ptx.find(".target sm_90a"), std::string::npos);
}

TEST(NvrtcLibrary, FailureCarriesLogOptionsAndNumberedSource) {
  try {
    compile_source("int a;\n" + kGood + "int b = missing_name;\n", "broken.cu", kOptions);
    FAIL() << "compiled";
  } catch (const CompileError& error) {
    EXPECT_EQ(error.code(), ErrorCode::compile_failed);
    EXPECT_NE(std::string(error.what()).find("broken.cu(5): error"), std::string::npos) << error.what();
    EXPECT_NE(error.log().find("missing_name"), std::string::npos);
    EXPECT_NE(error.numbered_source().find("    5 | int b = missing_name;\n"), std::string::npos);
    EXPECT_NE(error.options().find("--gpu-architecture=sm_90a -std=c++17"), std::string::npos) << error.options();
  }
}

TEST(NvrtcLibrary, UnknownOptionIsNamed) {
  std::vector<std::string> options = kOptions;
  options.push_back("--no-such-option");
  try {
    compile_source(kGood, "twice.cu", options);
    FAIL() << "compiled";
  } catch (const CompileError& error) {
    EXPECT_NE(std::string(error.what()).find("no-such-option"), std::string::npos) << error.what() << error.log();
  }
}

TEST(NvrtcLibrary, UnknownArchitectureListsTheKnownOnes) {
  try {
    compile_source(kGood, "twice.cu", {"--gpu-architecture=sm_999"});
    FAIL() << "compiled";
  } catch (const CompileError& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_NE(std::string(error.what()).find("sm_999; it knows sm_"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("sm_90"), std::string::npos) << error.what();
  }
}

TEST(NvrtcLibrary, EverySupportedArchitectureCompiles) {
  const std::vector<std::string> known = supported_architectures();
  ASSERT_FALSE(known.empty());
  for (const std::string& arch : known) {
    EXPECT_FALSE(compile_source(kGood, "twice.cu", {"--gpu-architecture=" + arch}).cubin.empty()) << arch;
  }
}

TEST(NvrtcLibrary, ThreadsCompileAtOnce) {
  std::vector<CompiledImage> images(4);
  std::vector<std::thread> threads;
  for (CompiledImage& image : images) {
    threads.emplace_back([&image] { image = compile_source(kGood, "twice.cu", kOptions); });
  }
  for (std::thread& thread : threads) thread.join();
  // Not equal images: what NVRTC 13 makes of one source depends on where its memory lies.
  for (const CompiledImage& image : images) expect_kernel(image, "twice");
}

TEST(NvrtcLibrary, PtxasRefusalIsACompileFailure) {
  try {
    compile_source(
        "__shared__ char much[1 << 20];\nextern \"C\" __global__ void k(char* y) { y[0] = much[threadIdx.x]; }\n",
        "large.cu", kOptions);
    FAIL() << "compiled";
  } catch (const CompileError& error) {
    EXPECT_EQ(error.code(), ErrorCode::compile_failed);
    EXPECT_NE(error.log().find("shared"), std::string::npos) << error.log();
  }
}

}  // namespace
}  // namespace jitconv::runtime
