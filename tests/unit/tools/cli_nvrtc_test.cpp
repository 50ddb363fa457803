// The stages of the programs that compile: ptx, sass, resources, key, tables without a GPU, and the harness under nvcc.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "runtime/nvrtc.h"
#include "tools/cuda_device.h"
#include "tools/harness.h"
#include "unit/tools/cli_process.h"

namespace jitconv::test {
namespace {

namespace fs = std::filesystem;
using Arguments = std::vector<std::string>;

class CliNvrtc : public ::testing::Test {
 protected:
  ProcessResult run(const char* program, const Arguments& arguments, std::map<std::string, std::string> more = {}) {
    ProcessOptions options;
    options.environment = {{"JITCONV_CACHE_DIR", directory_.file("cache")}};
    for (const auto& [name, value] : more) options.environment[name] = value;
    return run_process(program, arguments, options);
  }

  ProcessResult dump(const std::string& stage, std::map<std::string, std::string> more = {}) {
    return run(JITCONV_DUMP, {"--input=2,8,16,20", "--weight=12,8,3,3", "--padding=1", "--emit=" + stage}, more);
  }

  /// A directory whose only program is `name`, which is really `program`.
  std::string path_with(const std::string& name, const std::string& program) {
    const std::string place = directory_.file("bin-" + name);
    fs::create_directories(place);
    fs::create_symlink(program, place + "/" + name);
    return place;
  }

  TemporaryDirectory directory_;
};

TEST_F(CliNvrtc, PtxIsForTheTarget) {
  const ProcessResult result = dump("ptx");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find(".target sm_90a"), std::string::npos);
  EXPECT_NE(result.out.find(".visible .entry jitconv_"), std::string::npos);
}

TEST_F(CliNvrtc, ResourcesAreThoseOfTheCompilersLog) {
  const ProcessResult first = dump("resources"), second = dump("resources");
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_NE(first.out.find("kernel: jitconv_"), std::string::npos);
  EXPECT_NE(first.out.find("registers: "), std::string::npos);
  EXPECT_EQ(first.out.find("registers: 0\n"), std::string::npos);
  EXPECT_EQ(first.out, second.out) << "the second is read from the cache";
}

TEST_F(CliNvrtc, KeysAreStableAndDependOnTheSpec) {
  const ProcessResult key = dump("key");
  ASSERT_EQ(key.exit_code, 0) << key.err;
  EXPECT_EQ(key.out.size(), 65u);
  EXPECT_EQ(key.out.find_first_not_of("0123456789abcdef\n"), std::string::npos);
  EXPECT_EQ(dump("key").out, key.out);
  const ProcessResult other =
      run(JITCONV_DUMP, {"--input=2,8,16,20", "--weight=12,8,3,3", "--padding=1", "--bias", "--emit=key"});
  EXPECT_NE(other.out, key.out);
}

TEST_F(CliNvrtc, SassRunsTheDisassemblerThatIsThere) {
  // echo in nvdisasm's place prints how it was called: the way there and back is what this tests.
  const ProcessResult result = dump("sass", {{"PATH", path_with("nvdisasm", "/bin/echo")}});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out.find("--print-code "), 0u) << result.out;
  EXPECT_NE(result.out.find("cubin"), std::string::npos) << result.out;
}

TEST_F(CliNvrtc, SassReportsADisassemblerThatFails) {
  const ProcessResult result = dump("sass", {{"PATH", path_with("nvdisasm", "/bin/false")}});
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_NE(result.err.find("nvdisasm failed (1)"), std::string::npos) << result.err;
}

TEST_F(CliNvrtc, SassOfTheRealDisassembler) {
  const fs::path beside = fs::path(runtime::find_compiler().path).parent_path().parent_path() / "bin";
  const std::vector<std::string> places = {"/usr/local/cuda/bin", beside.string()};
  if (find_program("nvdisasm", places).empty() && find_program("cuobjdump", places).empty()) {
    const ProcessResult result = dump("sass");
    EXPECT_EQ(result.exit_code, 4);
    EXPECT_NE(result.err.find("needs nvdisasm or cuobjdump"), std::string::npos) << result.err;
    GTEST_SKIP() << "neither nvdisasm nor cuobjdump is here";
  }
  const ProcessResult result = dump("sass");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("EXIT"), std::string::npos);
  EXPECT_NE(result.out.find("FFMA"), std::string::npos);
}

TEST_F(CliNvrtc, HarnessCompilesWithNvcc) {
  const std::string nvcc = find_program("nvcc", {"/usr/local/cuda/bin"});
  if (nvcc.empty()) GTEST_SKIP() << "no nvcc on PATH or in /usr/local/cuda/bin";
  const std::vector<Arguments> cases = {
      {"--input=2,8,33,20", "--weight=8,8,3,5", "--dilation=2,3", "--padding=2,4", "--bias"},
      {"--config=KB_L1_82_small", "--dtype=f16"},
      {"--input=2,8,33,20", "--weight=8,4,3,3", "--groups=2", "--dtype=bf16", "--layout=nhwc", "--activation=gelu_erf",
       "--residual", "--bias"},
      {"--input=2,8,33,20", "--weight=8,8,3,3", "--activation=clamp", "--clamp-min=-0.5", "--math=ieee"},
      {"--input=1,512,14,14", "--weight=512,512,3,2", "--padding=1", "--math=tf32", "--arch=sm_90a"},
      {"--input=8,1024,14,14", "--weight=256,1024,1,1", "--math=tf32", "--arch=sm_90a"}};
  // What the last two are here for.
  const std::vector<std::vector<std::string>> wanted = {
      {"Pointer{b.scratch[0]}", "_reduce, dim3("},
      {"tensor_map<TensorMap>(b.x, CU_TENSOR_MAP_DATA_TYPE_TFLOAT32, CU_TENSOR_MAP_SWIZZLE_NONE",
       "tensor_map<TensorMap>(b.w, CU_TENSOR_MAP_DATA_TYPE_TFLOAT32, CU_TENSOR_MAP_SWIZZLE_128B"}};
  for (std::size_t i = 0; i < cases.size(); ++i) {
    Arguments arguments = cases[i];
    const std::string file = directory_.file("harness.cu");
    std::string name;
    for (const std::string& argument : arguments) name += argument + " ";
    arguments.insert(arguments.end(), {"--emit=harness", "-o", file});
    const ProcessResult dumped = run(JITCONV_DUMP, arguments);
    ASSERT_EQ(dumped.exit_code, 0) << dumped.err;
    if (i + wanted.size() >= cases.size()) {
      for (const std::string& part : wanted[i + wanted.size() - cases.size()])
        EXPECT_NE(read_file(file).find(part), std::string::npos) << name << "has no " << part;
    }
    const ProcessResult compiled = run(nvcc.c_str(), {"-gencode", "arch=compute_90a,code=sm_90a",
                                                      "-Werror=all-warnings", "-o", directory_.file("harness"), file});
    EXPECT_EQ(compiled.exit_code, 0) << name << "\n" << compiled.out << compiled.err;
  }
}

// The kernel's own maps are replaced by what else a map can be: nvcc checks calls, not what comes of them.
TEST_F(CliNvrtc, HarnessEncodesWalksAndEachSwizzle) {
  const ConvSpec spec = parse_spec("input=8,1024,14,14 weight=256,1024,1,1 math=tf32");
  const codegen::ConvPlan plan = codegen::make_plan(spec, parse_target("sm_90a"));
  codegen::KernelSource source = codegen::generate(plan);
  ASSERT_EQ(source.entries.size(), 1u);
  std::vector<codegen::Argument*> maps;
  for (codegen::Argument& argument : source.entries[0].arguments)
    if (argument.map.rank != 0) maps.push_back(&argument);
  ASSERT_EQ(maps.size(), 2u);
  maps[0]->map = {.rank = 4,
                  .element_bytes = 2,
                  .extents = {64, 8, 16, 2},
                  .strides = {1, 64, 512, 8192},
                  .box = {16, 300},
                  .swizzle_bytes = 32,
                  .im2col = codegen::TensorMapShape::Im2col{.lower = {-1, -2}, .upper = {-3, 4}, .stride = {2, 5}}};
  maps[1]->map = {
      .rank = 4, .extents = {64, 8, 16, 2}, .strides = {1, 64, 512, 8192}, .box = {16, 2, 4, 2}, .swizzle_bytes = 64};
  const std::string text = tools::harness_text(plan, source);
  for (const std::string part :
       {"tensor_im2col<TensorMap>(b.x, CU_TENSOR_MAP_DATA_TYPE_UINT16, CU_TENSOR_MAP_SWIZZLE_32B,\n"
        "                                {64, 8, 16, 2}, {128, 1024, 16384}, 16, 300, {-1, -2}, {-3, 4}, {2, 5})",
        "tensor_map<TensorMap>(b.w, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, CU_TENSOR_MAP_SWIZZLE_64B,\n"
        "                                {64, 8, 16, 2}, {256, 2048, 32768}, {16, 2, 4, 2})"})
    EXPECT_NE(text.find(part), std::string::npos) << part;

  const std::string nvcc = find_program("nvcc", {"/usr/local/cuda/bin"});
  if (nvcc.empty()) GTEST_SKIP() << "no nvcc on PATH or in /usr/local/cuda/bin";
  const std::string file = directory_.file("harness.cu");
  write_file(file, text);
  const ProcessResult compiled = run(nvcc.c_str(), {"-gencode", "arch=compute_90a,code=sm_90a", "-Werror=all-warnings",
                                                    "-o", directory_.file("harness"), file});
  EXPECT_EQ(compiled.exit_code, 0) << compiled.out << compiled.err;
}

TEST_F(CliNvrtc, RunWithoutAGpuShowsCompileResults) {
  // A driver that cannot be loaded, whatever this machine has.
  const Arguments arguments = {"--config=KB_L1_55_small,KB_L1_82_small", "--compile-only",
                               "--json=" + directory_.file("j")};
  const ProcessResult result = run(JITCONV_RUN, arguments);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::vector<std::string> lines = lines_of(result.out);
  ASSERT_EQ(lines.size(), 5u) << result.out;
  EXPECT_EQ(lines[0].find("config"), 0u);
  EXPECT_EQ(lines[2].find("KB_L1_55_small"), 0u);
  EXPECT_EQ(lines[3].find("KB_L1_82_small"), 0u);
  EXPECT_EQ(lines[4].find("2 of 2 compiled"), 0u) << lines[4];
  EXPECT_NE(result.err.find("sm_90a"), std::string::npos);
  const std::string json = read_file(directory_.file("j"));
  EXPECT_NE(json.find("\"registers\": "), std::string::npos);
  EXPECT_NE(json.find("\"arch\": \"sm_90a\""), std::string::npos);
}

TEST_F(CliNvrtc, TheCacheToolSeesWhatWasCompiled) {
  ASSERT_EQ(dump("resources").exit_code, 0);
  const std::string key = lines_of(dump("key").out).at(0);
  const ProcessResult list = run(JITCONV_CACHE, {"list"});
  EXPECT_EQ(list.exit_code, 0) << list.err;
  EXPECT_NE(list.out.find("\n" + key.substr(0, 12) + " "), std::string::npos) << list.out;
  EXPECT_EQ(run(JITCONV_CACHE, {"verify"}).exit_code, 0);

  // One damaged byte in the middle of the only entry.
  std::string entry;
  for (const auto& file : fs::recursive_directory_iterator(directory_.file("cache"))) {
    if (file.path().filename() == key) entry = file.path();
  }
  ASSERT_FALSE(entry.empty());
  std::string bytes = read_file(entry);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  write_file(entry, bytes);
  const ProcessResult verify = run(JITCONV_CACHE, {"verify"});
  EXPECT_EQ(verify.exit_code, 1);
  EXPECT_NE(verify.out.find("1 of 1 entries are damaged"), std::string::npos) << verify.out;

  EXPECT_EQ(run(JITCONV_CACHE, {"clear"}).exit_code, 0);
  EXPECT_EQ(run(JITCONV_CACHE, {"list"}).out.find(key), std::string::npos);
}

TEST(DeviceKernels, CompileForEveryArchitecture) {
  for (const char* arch : {"sm_75", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a"}) {
    const std::vector<std::string> known = runtime::supported_architectures();
    const std::string plain = std::string(arch).substr(0, std::string(arch).find('a'));
    if (std::find(known.begin(), known.end(), plain) == known.end()) continue;
    const runtime::CompiledImage image = runtime::compile_source(
        tools::kDeviceKernels, "device_kernels.cu", {std::string("--gpu-architecture=") + arch, "--std=c++17"});
    EXPECT_GT(image.cubin.size(), 1000u) << arch;
  }
}

}  // namespace
}  // namespace jitconv::test
