// jitconv-dump as a user meets it: what it prints, and with which exit code it refuses. Nothing here needs NVRTC.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "jitconv/spec.h"
#include "support/file_size_limit.h"
#include "tools/documented.h"
#include "unit/tools/cli_process.h"

namespace jitconv::test {
namespace {

using Arguments = std::vector<std::string>;

ProcessResult dump(Arguments arguments, const ProcessOptions& options = {}) {
  return run_process(JITCONV_DUMP, arguments, options);
}

const Arguments kSmall = {"--input=2,8,16,20", "--weight=12,8,3,3", "--padding=1"};

Arguments small_and(Arguments more) {
  more.insert(more.begin(), kSmall.begin(), kSmall.end());
  return more;
}

/// An environment in which no NVRTC is found.
ProcessOptions without_nvrtc() {
  ProcessOptions options;
  options.environment["JITCONV_NVRTC_PATH"] = "/nonexistent/libnvrtc.so";
  return options;
}

void expect_refusal(const ProcessResult& result, int code, const std::string& about) {
  EXPECT_EQ(result.exit_code, code) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(lines_of(result.err).size(), 1u) << result.err;
  EXPECT_EQ(result.err.find("jitconv-dump: "), 0u) << result.err;
  EXPECT_NE(result.err.find(about), std::string::npos) << result.err;
}

TEST(CliDump, HelpListsOnlyOurOptions) {
  const ProcessResult result = dump({"--help"});
  EXPECT_EQ(result.exit_code, 0);
  for (const char* option :
       {"--emit=", "--config=", "--input=", "--dilation=", "--activation=", "--arch=", "--spec="}) {
    EXPECT_NE(result.out.find(option), std::string::npos) << option;
  }
  EXPECT_EQ(result.out.find("--debug"), std::string::npos) << "an option of LLVM's";
  EXPECT_EQ(result.out.find("color"), std::string::npos) << "an option of LLVM's";
}

TEST(CliDump, VersionNamesTheLibraries) {
  const ProcessResult result = dump({"--version"}, without_nvrtc());
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out.find("jitconv 0."), 0u) << result.out;
  for (const char* library : {"fmt ", "LLVM ", "NVRTC not found"}) {
    EXPECT_NE(result.out.find(library), std::string::npos) << result.out;
  }
}

TEST(CliDump, ListNamesEveryConfiguration) {
  const ProcessResult result = dump({"--list"});
  EXPECT_EQ(result.exit_code, 0);
  const std::vector<std::string> lines = lines_of(result.out);
  EXPECT_EQ(lines.size(), tools::documented_configurations().size() + tools::tensor_core_configurations().size());
  std::set<std::string> names;
  for (const std::string& line : lines) {
    const std::string name = line.substr(0, line.find(' '));
    EXPECT_TRUE(names.insert(name).second) << name;
    ASSERT_NE(tools::find_documented(name), nullptr) << name;
    const std::size_t text = line.find("input=");
    ASSERT_NE(text, std::string::npos) << line;
    EXPECT_EQ(parse_spec(line.substr(text)), tools::find_documented(name)->spec);
  }
}

TEST(CliDump, TensorCoreConfigurationsAreTheHeadlineCasesInAnotherMode) {
  EXPECT_EQ(dump({"--config=C_tf32", "--emit=spec"}).out, dump({"--config=C", "--math=tf32", "--emit=spec"}).out);
  EXPECT_EQ(dump({"--config=D_bf16", "--emit=spec"}).out, dump({"--config=D", "--dtype=bf16", "--emit=spec"}).out);
}

TEST(CliDump, ThePyTorchScriptHasTheSameForwardConvolutions) {
  const std::string script = read_file(std::string(JITCONV_TEST_DATA) + "/../bench/compare_pytorch.py");
  std::map<std::string, ConvSpec> found;
  for (const std::string& line : lines_of(script)) {
    const std::size_t text = line.find("\": \"input=");
    if (text == std::string::npos) continue;
    const std::size_t begin = line.find('"') + 1, end = line.rfind('"');
    found[line.substr(begin, text - begin)] = parse_spec(line.substr(text + 4, end - text - 4));
  }
  std::size_t forward = 0;
  for (const auto& one : tools::documented_configurations()) {
    if (one.spec.operation != Operation::forward) continue;
    ++forward;
    EXPECT_TRUE(found.count(one.name) == 1 && found[one.name] == one.spec) << one.name;
  }
  EXPECT_EQ(found.size(), forward);
}

TEST(CliDump, FlagsSetEveryFieldOfTheSpec) {
  const ProcessResult result = dump(
      {"--input=8,32,512,500", "--weight=64,8,5,9", "--stride=2,1", "--padding=1,2,3,4", "--dilation=2,3", "--groups=4",
       "--dtype=bf16", "--layout=nhwc", "--output-layout=nchw", "--math=tf32", "--bias", "--residual",
       "--activation=leaky_relu", "--slope=0.25", "--clamp-min=-1", "--clamp-max=2", "--alignment=2", "--emit=spec"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  ConvSpec expected;
  expected.input = {8, 32, 512, 500};
  expected.weight = {64, 8, 5, 9};
  expected.stride = {2, 1};
  expected.padding = {1, 2, 3, 4};
  expected.dilation = {2, 3};
  expected.groups = 4;
  expected.dtype = DataType::bf16;
  expected.input_layout = Layout::nhwc;
  expected.math = MathMode::tf32;
  expected.epilogue = {true, true, Activation::leaky_relu, 0.25f, -1.0f, 2.0f};
  expected.alignment = 2;
  EXPECT_EQ(parse_spec(result.out), expected) << result.out;
}

TEST(CliDump, FlagsSetOperationAndOutputType) {
  const ProcessResult result = dump(small_and({"--operation=forward", "--output-dtype=float32", "--emit=spec"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(parse_spec(result.out).operation, Operation::forward);
  EXPECT_EQ(parse_spec(result.out).output_dtype, OutputType::f32);
}

TEST(CliDump, SpecTextIsReadBack) {
  const std::string text = to_string(tools::find_documented("C_bias")->spec);
  const ProcessResult result = dump({"--spec=" + text, "--emit=spec"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, text + "\n");
}

TEST(CliDump, FlagsChangeAConfiguration) {
  const ProcessResult result = dump({"--config=C", "--math=ieee", "--bias", "--emit=spec"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  ConvSpec expected = tools::find_documented("C")->spec;
  expected.math = MathMode::ieee;
  expected.epilogue.bias = true;
  EXPECT_EQ(parse_spec(result.out), expected);
}

TEST(CliDump, PyTorchsWordsAreTakenWhereverASpecIsRead) {
  const auto spec_of = [](const Arguments& arguments) {
    const ProcessResult result = dump(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return parse_spec(result.out);
  };
  ConvSpec expected = parse_spec("input=2,8,16,20 weight=12,8,3,5 dilation=1,2 padding=1,1,4,4 dtype=f16 layout=nhwc");
  EXPECT_EQ(spec_of({"--padding=same", "--dtype=float16", "--layout=channels_last", "--dilation=1,2",
                     "--weight=12,8,3,5", "--input=2,8,16,20", "--emit=spec"}),
            expected);
  EXPECT_EQ(spec_of({"--spec=padding=same dtype=half layout=NHWC dilation=1,2 weight=12,8,3,5 input=2,8,16,20",
                     "--emit=spec"}),
            expected);
  // The configuration's own filter and dilation count.
  EXPECT_EQ(spec_of({"--config=C", "--padding=same", "--emit=spec"}).padding, Padding(4, 4, 12, 12));
  expect_refusal(dump({"--config=KB_L1_50", "--padding=same"}), 2, "needs stride 1; the stride is 4,4");
}

TEST(CliDump, WhatIsMissingIsNamed) {
  expect_refusal(dump({"--input=1,3,8,8"}), 2, "--input without --weight: a convolution needs both");
  expect_refusal(dump({"--weight=1,3,8,8", "--bias"}), 2, "--weight without --input: a convolution needs both");
  expect_refusal(dump({"--spec=input=1,3,8,8"}), 2, "--spec: the text has no weight=K,C/groups,R,S");
  expect_refusal(dump({"--spec=weight=1,3,8,8"}), 2, "--spec: the text has no input=N,C,H,W");
  expect_refusal(dump({"--stride=2"}), 2, "no convolution given");
}

TEST(CliDump, ModelledTimesHaveNoExponents) {
  const ProcessResult result = dump({"--config=A_bf16", "--emit=explain"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find(" ms, wgmma at "), std::string::npos) << result.out;
  EXPECT_EQ(result.out.find("e+"), std::string::npos) << result.out;
}

TEST(CliDump, EarlyStagesNeedNoCompiler) {
  const std::map<std::string, std::string> contents = {{"spec", "input=2,8,16,20"},
                                                       {"plan", "family: "},
                                                       {"source", "extern \"C\""},
                                                       {"json", "\"source\": "},
                                                       {"explain", "family: "},
                                                       {"harness", "int main()"},
                                                       {"torch-extension", "class ModelNew(nn.Conv2d):"}};
  for (const auto& [stage, content] : contents) {
    const ProcessResult result = dump(small_and({"--emit=" + stage}), without_nvrtc());
    EXPECT_EQ(result.exit_code, 0) << stage << ": " << result.err;
    EXPECT_EQ(result.err, "") << stage;
    EXPECT_NE(result.out.find(content), std::string::npos) << stage << ":\n" << result.out;
  }
}

TEST(CliDump, LaterStagesSayThatTheCompilerIsMissing) {
  for (const char* stage : {"key", "ptx", "sass", "resources"}) {
    ProcessOptions options = without_nvrtc();
    options.environment["JITCONV_CACHE"] = "off";
    expect_refusal(dump(small_and({std::string("--emit=") + stage}), options), 4, "NVRTC");
  }
}

TEST(CliDump, SourceIsTheDefaultAndTheSameEverywhere) {
  const ProcessResult first = dump(kSmall);
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const TemporaryDirectory elsewhere;
  ProcessOptions options;
  options.directory = elsewhere.path();
  // A locale with a decimal comma; where it is not installed the C library falls back, and the name is ignored.
  options.environment = {{"LC_ALL", "de_DE.UTF-8"}, {"LANG", "de_DE.UTF-8"}, {"TZ", "Asia/Kathmandu"}, {"HOME", "/"}};
  const ProcessResult second = dump(small_and({"--emit=source"}), options);
  ASSERT_EQ(second.exit_code, 0) << second.err;
  EXPECT_EQ(first.out, second.out);
}

TEST(CliDump, ArchChangesTheTarget) {
  const ProcessResult result = dump(small_and({"--arch=sm_80", "--emit=json"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("\"arch\": \"sm_80\""), std::string::npos);
  expect_refusal(dump(small_and({"--arch=sm_12"})), 3, "sm_12");
}

TEST(CliDump, WritesToAFile) {
  const TemporaryDirectory directory;
  const ProcessResult result = dump(small_and({"-o", directory.file("kernel.cu")}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(read_file(directory.file("kernel.cu")), dump(kSmall).out);
  expect_refusal(dump(small_and({"-o", directory.file("none/kernel.cu")})), 1, "none/kernel.cu");
}

TEST(CliDump, AFileBeyondTheLimitOnFileSizesIsAnErrorThatSaysSo) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("kernel.cu");
  const FileSizeLimit limit(512);
  expect_refusal(dump(small_and({"-o", path})), 1, "cannot write " + path + ": File too large");
  EXPECT_LE(read_file(path).size(), 512u);
}

TEST(CliDump, HarnessHoldsTheKernelUnaltered) {
  const ProcessResult source = dump(kSmall), harness = dump(small_and({"--emit=harness"}));
  ASSERT_FALSE(source.out.empty());
  EXPECT_NE(harness.out.find(source.out), std::string::npos);
}

/// What a compiler says that sees the harness as nvcc's passes for one architecture do, without CUDA's headers.
ProcessResult preprocessed(const Arguments& arguments, const Arguments& macros) {
  const TemporaryDirectory directory;
  for (const char* header : {"cuda.h", "cuda_bf16.h", "cuda_fp16.h", "cuda_runtime.h"})
    write_file(directory.file(header), "");
  Arguments dumped = arguments;
  dumped.insert(dumped.end(), {"--emit=harness", "-o", directory.file("harness.cu")});
  EXPECT_EQ(dump(dumped).exit_code, 0);
  Arguments command = {"-E", "-x", "c++", "-I", directory.path(), "-o", "/dev/null", directory.file("harness.cu")};
  command.insert(command.end(), macros.begin(), macros.end());
  return run_process(find_program("c++"), command);
}

TEST(CliDump, HarnessRefusesAnArchitectureWithoutItsInstructions) {
  if (find_program("c++").empty()) GTEST_SKIP() << "no c++ on PATH";
  const std::string hint = "uses instructions of sm_90a: compile it with nvcc -gencode arch=compute_90a,code=sm_90a";
  const Arguments tensor = {"--config=A_tf32"}, fma = {"--config=A", "--math=ieee"};
  // wgmma is of sm_90a and of no later architecture; FMA kernels run on any that is new enough.
  for (const char* other : {"-D__CUDA_ARCH__=900", "-D__CUDA_ARCH__=1000"}) {
    const ProcessResult result = preprocessed(tensor, {other});
    EXPECT_NE(result.exit_code, 0) << other;
    EXPECT_NE(result.err.find(hint), std::string::npos) << result.err;
  }
  EXPECT_NE(preprocessed(fma, {"-D__CUDA_ARCH__=800"}).err.find(hint), std::string::npos);
  // The right flag, a newer GPU, and nvcc's pass for the host.
  EXPECT_EQ(preprocessed(tensor, {"-D__CUDA_ARCH__=900", "-D__CUDA_ARCH_FEAT_SM90_ALL"}).exit_code, 0);
  EXPECT_EQ(preprocessed(fma, {"-D__CUDA_ARCH__=1000"}).exit_code, 0);
  EXPECT_EQ(preprocessed(tensor, {}).exit_code, 0);
}

TEST(CliDump, UnreadableCommandLinesAreUsageErrors) {
  expect_refusal(dump(small_and({"--emit=nothing"})), 2, "nothing");
  expect_refusal(dump(small_and({"--no-such-flag"})), 2, "--no-such-flag");
  expect_refusal(dump({}), 2, "--config");
  expect_refusal(dump({"--config=nobody"}), 2, "nobody");
  expect_refusal(dump({"--config=A,B"}), 2, "--config");
  expect_refusal(dump({"--config=A", "--spec=input=1,1,1,1"}), 2, "exclude");
  expect_refusal(dump({"--input=8,32", "--weight=64,32,5,9"}), 2, "--input");
  expect_refusal(dump(small_and({"--stride=two"})), 2, "--stride");
  expect_refusal(dump(small_and({"--dtype=f64"})), 2, "f64");
  expect_refusal(dump(small_and({"--padding=1 bias=true"})), 2, "--padding");
  expect_refusal(dump({"--spec=inputs=1,1,1,1"}), 2, "inputs");
  expect_refusal(dump({"--config"}), 2, "config");
}

TEST(CliDump, ConvolutionsThatCannotBeComputedAreRefusedByField) {
  expect_refusal(dump(small_and({"--groups=3"})), 3, "groups");
  expect_refusal(dump(small_and({"--stride=0"})), 3, "stride");
  expect_refusal(dump({"--input=1,8,4,4", "--weight=8,8,5,9", "--dilation=2,3"}), 3, "weight");
  expect_refusal(dump(small_and({"--alignment=3"})), 3, "alignment");
  expect_refusal(dump(small_and({"--operation=weight_gradient", "--activation=relu"})), 3,
                 "activation is relu, must be none for a weight_gradient");
  expect_refusal(dump(small_and({"--output-dtype=f16"})), 3, "output_dtype is f16, must be same or f32");
}

TEST(CliDump, GradientsHaveKernels) {
  for (const char* operation : {"data_gradient", "weight_gradient"}) {
    const ProcessResult result = dump(small_and({std::string("--operation=") + operation}));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_NE(result.out.find(std::string("operation=") + operation), std::string::npos);
  }
}

TEST(CliDump, TheHarnessIsForForwardConvolutions) {
  expect_refusal(dump(small_and({"--operation=data_gradient", "--emit=harness"})), 3,
                 "operation is data_gradient, must be forward: the harness checks y only");
}

TEST(CliDump, ATorchExtensionHoldsTheKernelsOfAllThreeOperationsUnaltered) {
  const ProcessResult extension = dump(small_and({"--bias", "--activation=relu", "--emit=torch-extension"}));
  ASSERT_EQ(extension.exit_code, 0) << extension.err;
  for (const Arguments& operation :
       {Arguments{"--bias", "--activation=relu"}, Arguments{"--operation=data_gradient", "--dy-activation=relu"},
        Arguments{"--operation=weight_gradient", "--bias", "--dy-activation=relu"}}) {
    const ProcessResult source = dump(small_and(operation));
    ASSERT_EQ(source.exit_code, 0) << source.err;
    EXPECT_NE(extension.out.find("r'''\n" + source.out + "'''"), std::string::npos) << operation.front();
  }
}

TEST(CliDump, ATorchExtensionLeavesActivationsToPyTorchWhoseDerivativeNeedsTheirOperand) {
  const ProcessResult extension = dump(small_and({"--activation=silu", "--emit=torch-extension"}));
  ASSERT_EQ(extension.exit_code, 0) << extension.err;
  EXPECT_NE(extension.out.find("silu is computed by PyTorch"), std::string::npos);
  EXPECT_NE(extension.out.find("r'''\n" + dump(kSmall).out + "'''"), std::string::npos);
}

TEST(CliDump, ATorchExtensionIsAForwardConvolutionWithoutResidual) {
  expect_refusal(dump(small_and({"--operation=weight_gradient", "--emit=torch-extension"})), 3,
                 "operation is weight_gradient, must be forward: the file has its gradients as well");
  expect_refusal(dump(small_and({"--residual", "--emit=torch-extension"})), 3,
                 "residual is 1, must be 0: nn.Conv2d has none");
  expect_refusal(dump({"--input=0,8,16,16", "--weight=8,8,3,3", "--emit=torch-extension"}), 3, "has no outputs");
}

TEST(CliDump, AConvolutionWithoutOutputsHasAPlanButNoSource) {
  const Arguments empty = {"--input=0,8,16,16", "--weight=8,8,3,3"};
  Arguments plan = empty, source = empty;
  plan.push_back("--emit=plan");
  EXPECT_EQ(dump(plan).exit_code, 0);
  source.push_back("--emit=source");
  expect_refusal(dump(source), 3, "no outputs");
}

}  // namespace
}  // namespace jitconv::test
