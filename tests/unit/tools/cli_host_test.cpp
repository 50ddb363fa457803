// jitconv-run on the host from end to end: kernels are compiled by the machine's C++ compiler and really run. Where a
// test needs a machine without a GPU, or with one, a fake libcuda makes it so.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <regex>

#include "jitconv/spec.h"
#include "support/json_reader.h"
#include "unit/tools/cli_process.h"

namespace jitconv::test {
namespace {

namespace fs = std::filesystem;
using Arguments = std::vector<std::string>;

const std::string kPlain = "input=2,4,12,20 weight=8,4,3,3 padding=1";

class CliHost : public ::testing::Test {
 protected:
  ProcessResult run(Arguments arguments, std::map<std::string, std::string> more = {}) {
    ProcessOptions options;
    options.environment = {{"JITCONV_CACHE_DIR", directory_.file("cache")}};
    for (const auto& [name, value] : more) options.environment[name] = value;
    return run_process(JITCONV_RUN, arguments, options);
  }
  ProcessResult run_host(Arguments arguments, const std::map<std::string, std::string>& more = {}) {
    arguments.push_back("--device=host");
    return run(std::move(arguments), more);
  }
  Json json_of(Arguments arguments) {
    arguments.push_back("--json=-");
    const ProcessResult result = run_host(std::move(arguments));
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
    return JsonReader::read(result.out);
  }
  /// A compiler that edits what it is given with sed before it compiles it.
  std::string compiler_with(const std::string& edit) {
    const std::string path = directory_.file("c++");
    write_file(path,
               "#!/bin/sh\n"
               "for file; do case \"$file\" in *.cc|*.cpp|*.cxx) sed -i '" +
                   edit +
                   "' \"$file\" ;; esac; done\n"
                   "exec " +
                   find_program("c++") + " \"$@\"\n");
    fs::permissions(path, fs::perms::owner_all);
    return path;
  }

  TemporaryDirectory directory_;
  /// A driver that loads and has no device; and one that has a GPU.
  const std::map<std::string, std::string> no_gpu_ = {
      {"LD_LIBRARY_PATH", FAKE_LIBCUDA_DIRECTORY}, {"JITCONV_FAKE_SPEC", kPlain}, {"JITCONV_FAKE_FAULT", "no_device"}};
  const std::map<std::string, std::string> a_gpu_ = {
      {"LD_LIBRARY_PATH", FAKE_LIBCUDA_DIRECTORY}, {"JITCONV_FAKE_SPEC", kPlain}, {"JITCONV_FAKE_FAULT", ""}};
};

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  for (std::size_t begin = 0; (begin = line.find_first_not_of(' ', begin)) != std::string::npos;) {
    const std::size_t end = std::min(line.find(' ', begin), line.size());
    cells.push_back(line.substr(begin, end - begin));
    begin = end;
  }
  return cells;
}

std::vector<std::string> row_of(const std::string& text, const std::string& name) {
  for (const std::string& line : lines_of(text))
    if (line.rfind(name + " ", 0) == 0) return cells_of(line);
  return {};
}

TEST_F(CliHost, EveryFamilyTypeAndLayoutIsRight) {
  const std::map<std::string, std::string> families = {
      {kPlain, "direct"},
      {kPlain + " bias residual activation=gelu_tanh", "direct"},
      {kPlain + " dtype=f16 math=ieee bias", "direct"},
      {kPlain + " dtype=bf16 math=ieee layout=nhwc activation=relu", "direct"},
      {kPlain + " alignment=4 stride=2 dilation=2,1", "direct"},
      {"input=16,64,14,15 weight=64,1,3,3 groups=64", "depthwise"},
      {"input=1,4,2100,2100 weight=4,4,2,2 dilation=2090", "fallback"},
  };
  for (const auto& [spec, family] : families) {
    const ProcessResult result = run_host({"--spec=" + spec});
    ASSERT_EQ(result.exit_code, 0) << spec << "\n" << result.out << result.err;
    EXPECT_EQ(result.err, "") << "no terminal, no progress";
    const std::vector<std::string> cells = row_of(result.out, "spec");
    ASSERT_EQ(cells.size(), 12u) << result.out;
    EXPECT_EQ(cells[2], "-") << "nothing is reduced";
    EXPECT_EQ(cells[3], family) << spec;
    EXPECT_EQ(cells[5], "ok") << spec;
    EXPECT_EQ(cells[6], "ok") << spec;
    EXPECT_LE(std::stod(cells[8]), 1.0) << "error over bound";
    EXPECT_EQ(cells[9], "0") << "findings";
    EXPECT_NE(result.out.find("1 of 1 ran on the host and are right, 0 findings"), std::string::npos) << result.out;
  }
}

TEST_F(CliHost, StandsInForAGpuThatIsNotThere) {
  const ProcessResult result = run({"--spec=" + kPlain}, no_gpu_);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out.find("host: "), 0u) << result.out;
  EXPECT_NE(result.err.find("no GPU"), std::string::npos) << result.err;
  const ProcessResult timed = run({"--spec=" + kPlain, "--repeat=5", "--cold"}, no_gpu_);
  EXPECT_EQ(timed.exit_code, 0);
  EXPECT_NE(timed.err.find("on the host, --repeat and --cold mean nothing"), std::string::npos) << timed.err;
  for (const char* option : {"--device=gpu", "--require-device", "--tune"}) {
    const ProcessResult refused = run({"--spec=" + kPlain, option}, no_gpu_);
    EXPECT_EQ(refused.exit_code, 5) << option;
    EXPECT_EQ(refused.out, "") << option;
  }
}

TEST_F(CliHost, RunsBesideAGpuIfAskedTo) {
  EXPECT_EQ(run_host({"--spec=" + kPlain}, a_gpu_).out.find("host: "), 0u);
  const ProcessResult result = run({"--spec=" + kPlain, "--counters"}, a_gpu_);
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("--counters goes with --device=host"), std::string::npos) << result.err;
}

TEST_F(CliHost, NeedsNoNvrtc) {
  EXPECT_EQ(run_host({"--spec=" + kPlain}, {{"JITCONV_NVRTC_PATH", "/nonexistent/libnvrtc.so"}}).exit_code, 0);
}

TEST_F(CliHost, ArchSaysWhoseCodeRuns) {
  // sm_75 has no cp.async: another device file, and other text.
  const ProcessResult result = run_host({"--spec=" + kPlain, "--arch=sm_75"});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_NE(result.out.find("the code for sm_75\n"), std::string::npos) << result.out;
}

TEST_F(CliHost, WithoutACompilerItSaysSo) {
  const ProcessResult result = run_host({"--spec=" + kPlain}, {{"JITCONV_HOST_CXX", "/nonexistent/c++"}});
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_EQ(result.out, "");
  EXPECT_NE(result.err.find("/nonexistent/c++"), std::string::npos) << result.err;
}

TEST_F(CliHost, TheSecondTimeTheModuleComesFromTheCache) {
  EXPECT_NE(row_of(run_host({"--spec=" + kPlain}).out, "spec").back(), "cached");
  EXPECT_EQ(row_of(run_host({"--spec=" + kPlain}).out, "spec").back(), "cached");
}

TEST_F(CliHost, DocumentedConfigurationsAreReducedAndOthersTakenAsGiven) {
  // 16 images of 3 planes: 28 M multiply-adds, more than a documented configuration runs, less than the limit.
  const auto n_of = [](const Json& json) {
    return parse_spec(json.at("results").elements.at(0).string("run_spec")).input.n;
  };
  EXPECT_EQ(n_of(json_of({"--config=KB_L1_82_small"})), 2);
  EXPECT_EQ(n_of(json_of({"--config=KB_L1_82_small", "--full-size", "--exact"})), 16);
  const Arguments flags = {"--input=16,3,256,256", "--weight=3,1,3,3", "--groups=3"};
  EXPECT_EQ(n_of(json_of(flags)), 16);
  Arguments limited = flags;
  limited.push_back("--work-limit=5");
  EXPECT_EQ(n_of(json_of(limited)), 2);
}

TEST_F(CliHost, RunsAreWhatTheOptionsSay) {
  const auto kinds_of = [&](Arguments more) {
    more.push_back("--spec=" + kPlain);
    std::vector<std::string> kinds;
    const Json json = json_of(std::move(more));
    for (const Json& run : json.at("results").elements.at(0).at("runs").elements)
      kinds.push_back(run.string("data") + " " + run.string("landing"));
    return kinds;
  };
  using Kinds = std::vector<std::string>;
  EXPECT_EQ(kinds_of({}), (Kinds{"exact early", "random late"}));
  EXPECT_EQ(kinds_of({"--landing=random"}), (Kinds{"exact random", "random random"}));
  EXPECT_EQ(kinds_of({"--exact"}), (Kinds{"exact early", "exact late"}));
  EXPECT_EQ(kinds_of({"--positive", "--seed=9"}), (Kinds{"exact early", "positive late"}));
}

TEST_F(CliHost, CountersCountWhatTheKernelDoes) {
  const std::string spec = "input=2,8,16,64 weight=16,8,3,3 math=ieee";
  const Json json = json_of({"--spec=" + spec, "--counters"});
  const Json& row = json.at("results").elements.at(0);
  EXPECT_EQ(row.string("outcome"), "ok");
  const Json& counters = row.at("runs").elements.at(1).at("counters").elements.at(0);
  EXPECT_EQ(counters.integer("fmas"), row.integer("executed_multiply_adds"));
  const TensorShape out = output_shape(parse_spec(spec));
  EXPECT_EQ(counters.at("global_stores").integer("bytes"), 4 * out.n * out.c * out.h * out.w) << "each output once";
  EXPECT_GE(counters.at("global_loads").integer("bytes"), 4 * (2 * 8 * 16 * 64 + 16 * 8 * 9)) << "each input";
  EXPECT_GT(counters.at("shared_loads").integer("wavefronts"), 0);
  const ProcessResult table = run_host({"--spec=" + spec, "--counters"});
  EXPECT_NE(table.out.find("sectors/store"), std::string::npos) << table.out;
  EXPECT_NE(table.out.find(" " + counters.at("fmas").text + " "), std::string::npos) << table.out;
  EXPECT_EQ(run_host({"--spec=" + spec}).out.find("sectors/store"), std::string::npos);
}

TEST_F(CliHost, AWrongKernelIsAWrongRowAndExitCode1) {
  // Outputs of the second row are those of the first: wrong, and yet every rule is kept.
  const std::string wrong = compiler_with("s/kPadTop = 1;/kPadTop = 0;/");
  const ProcessResult result = run_host({"--spec=" + kPlain}, {{"JITCONV_HOST_CXX", wrong}});
  EXPECT_EQ(result.exit_code, 1) << result.out << result.err;
  EXPECT_EQ(row_of(result.out, "spec").at(5), "WRONG") << result.out;
  EXPECT_EQ(row_of(result.out, "spec").at(6), "WRONG") << result.out;
  EXPECT_NE(result.out.find("outputs wrong"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("0 of 1 ran on the host and are right"), std::string::npos) << result.out;
}

TEST_F(CliHost, ABrokenRuleIsAFindingWithItsLine) {
  // Without the wait, what is read may not have landed; without the barrier, other threads' copies may not have.
  const std::map<std::string, std::string> edits = {{"s/^ *copy_wait<[^;]*;/;/", ":[0-9]+: unfinished copy: "},
                                                    {"s/^ *__syncthreads();/;/", ":[0-9]+: race: "}};
  for (const auto& [edit, rule] : edits) {
    const ProcessResult result =
        run_host({"--spec=" + kPlain}, {{"JITCONV_HOST_CXX", compiler_with(edit)}, {"JITCONV_CACHE", "off"}});
    EXPECT_EQ(result.exit_code, 1) << result.out << result.err;
    EXPECT_NE(row_of(result.out, "spec").at(9), "0") << result.out;
    for (const char* run : {"exact, early", "random, late"}) {
      const std::string finding =
          std::string("spec \\(") + run + "\\): jitconv_direct_fprop_[a-z0-9_]*" + rule + "block \\([0-9]";
      EXPECT_TRUE(std::regex_search(result.out, std::regex(finding))) << finding << "\n" << result.out;
    }
  }
}

TEST_F(CliHost, ASourceThatDoesNotCompileIsAFailedRowAndTheOthersRun) {
  const std::string broken = compiler_with("s/kStrideW = 3;/kStrideW = ;/");
  const ProcessResult result = run_host({"--config=KB_L1_76_small,KB_L1_67_small"}, {{"JITCONV_HOST_CXX", broken}});
  EXPECT_EQ(result.exit_code, 4) << result.out << result.err;
  EXPECT_EQ(row_of(result.out, "KB_L1_76_small").at(5), "failed") << result.out;
  EXPECT_EQ(row_of(result.out, "KB_L1_67_small").at(5), "ok") << result.out;
  EXPECT_NE(result.out.find("KB_L1_76_small: "), std::string::npos) << "why";
  EXPECT_NE(result.out.find("1 of 2 ran on the host and are right"), std::string::npos) << result.out;
}

TEST_F(CliHost, AnInterruptedRunKeepsItsRows) {
  for (const int signal : {SIGINT, SIGTERM}) {
    ProcessOptions options;
    options.environment = {{"JITCONV_CACHE_DIR", directory_.file("cache")}};
    options.signal_at = "KB_L1_67_small";
    options.signal = signal;
    const std::string json_file = directory_.file("json");
    const ProcessResult result =
        run_process(JITCONV_RUN, {"--device=host", "--config=KB_L1_67_small,D,A", "--json=" + json_file}, options);
    EXPECT_EQ(result.exit_code, -signal) << result.err;
    EXPECT_EQ(row_of(result.out, "KB_L1_67_small").at(5), "ok") << result.out;
    EXPECT_NE(result.out.find("1 of 1 ran on the host and are right"), std::string::npos) << result.out;
    EXPECT_EQ(result.err, "jitconv-run: interrupted after 1 of 3 convolutions\n");
    const Json json = JsonReader::read(read_file(json_file));
    EXPECT_EQ(json.at("interrupted").text, "true");
    ASSERT_EQ(json.at("results").elements.size(), 1u);
    EXPECT_EQ(json.at("results").elements[0].string("config"), "KB_L1_67_small");
  }
}

TEST_F(CliHost, AReaderThatLeavesCostsNoRows) {
  ProcessOptions options;
  options.environment = {{"JITCONV_CACHE_DIR", directory_.file("cache")}, {"JSON", directory_.file("json")}};
  const ProcessResult result = run_process(
      "/bin/sh",
      {"-c",
       "{ \"$0\" --device=host --config=KB_L1_67_small,KB_L1_76_small --json=\"$JSON\"; echo \"code $?\" >&2; } "
       "| head -n 1",
       JITCONV_RUN},
      options);
  EXPECT_NE(result.err.find("jitconv-run: cannot write stdout: Broken pipe"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("code 1\n"), std::string::npos) << result.err;
  const Json json = JsonReader::read(read_file(directory_.file("json")));
  EXPECT_EQ(json.at("interrupted").text, "true");
  EXPECT_GE(json.at("results").elements.size(), 1u);
}

TEST_F(CliHost, GradientsOfSpecsAndOfConfigurationsAreChecked) {
  for (const char* operation : {"data_gradient", "weight_gradient"}) {
    for (const Arguments& what :
         {Arguments{"--config=KB_L1_76_small", "--math=tf32"},
          Arguments{"--spec=input=2,6,11,12 weight=8,3,3,2 groups=2 stride=2,1 bias residual"}}) {
      Arguments arguments = what;
      arguments.push_back(std::string("--operation=") + operation);
      const Json json = json_of(arguments);
      ASSERT_EQ(json.at("results").elements.size(), 1u);
      const Json& row = json.at("results").elements[0];
      EXPECT_EQ(row.string("outcome"), "ok") << what[0];
      EXPECT_NE(row.string("spec").find(std::string("operation=") + operation), std::string::npos) << what[0];
    }
  }
}

// The C++ compiler is given a kernel that subtracts where it is to add, and the message names the element.
TEST_F(CliHost, AWrongGradientIsFoundAndNamed) {
  const auto wrong = [&](const char* operation, const std::string& edit) {
    return run_host({"--spec=input=2,6,11,12 weight=8,3,3,2 groups=2 bias", std::string("--operation=") + operation},
                    {{"JITCONV_HOST_CXX", compiler_with(edit)}});
  };
  const ProcessResult data = wrong("data_gradient", "s/= fmaf(/= -fmaf(/");
  EXPECT_EQ(data.exit_code, 1) << data.out << data.err;
  EXPECT_NE(data.out.find("first: dx[n=0, c=0, h=0, w=0]"), std::string::npos) << data.out;
  const ProcessResult weight = wrong("weight_gradient", "s/= fmaf(/= -fmaf(/");
  EXPECT_EQ(weight.exit_code, 1) << weight.out << weight.err;
  EXPECT_NE(weight.out.find("first: dw[k=0, c=0, r=0, s=0]"), std::string::npos) << weight.out;
  const ProcessResult sums = wrong("weight_gradient", "s/bias_sum\\[i\\] += /bias_sum[i] -= /");
  EXPECT_EQ(sums.exit_code, 1) << sums.out << sums.err;
  EXPECT_NE(sums.out.find("first: db[k=0]"), std::string::npos) << sums.out;
}

TEST_F(CliHost, AConvolutionWithoutOutputsIsFine) {
  const ProcessResult result = run_host({"--spec=input=0,4,12,20 weight=8,4,3,3"});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_NE(result.out.find("no outputs"), std::string::npos) << result.out;
}

}  // namespace
}  // namespace jitconv::test
