// What describes the programs: their manual pages, and --help of the scripts of bench/ on a machine without PyTorch.
#include <gtest/gtest.h>

#include <algorithm>

#include "unit/tools/cli_process.h"

namespace jitconv::test {
namespace {

/// The options that --help lists, each as it is written there: `--emit=<value>`, `-o <file>`.
std::vector<std::string> options_of(const std::string& help) {
  std::vector<std::string> options;
  for (const std::string& line : lines_of(help)) {
    const std::size_t begin = line.find_first_not_of(' ');
    const std::size_t meaning = line.find(" - ");
    if (begin == 0 || begin == std::string::npos || meaning == std::string::npos || begin >= meaning) continue;
    const std::size_t end = line.find_last_not_of(' ', meaning) + 1;
    const std::string option = line.substr(begin, end - begin);
    if (option.front() == '-' || option.front() == '=') options.push_back(option);
  }
  return options;
}

/// The page's text as a reader sees it, without backslashes.
std::string unescaped(const std::string& page) {
  std::string text;
  for (std::size_t i = 0; i < page.size(); ++i)
    if (page[i] != '\\' || i + 1 == page.size() || page[i + 1] != '-') text += page[i];
  return text;
}

TEST(ManualPages, HaveEveryOptionOfTheHelp) {
  const std::string groff = find_program("groff");
  for (const std::string program : {JITCONV_DUMP, JITCONV_RUN, JITCONV_CACHE}) {
    const std::string help = run_process(program, {"--help"}).out, page = unescaped(read_file(program + ".1"));
    const std::vector<std::string> options = options_of(help);
    EXPECT_GE(options.size(), 6u) << help;
    for (const std::string& option : options)
      EXPECT_NE(page.find("\n.B " + option + "\n"), std::string::npos) << program << " has " << option;
    const std::string name = program.substr(program.rfind('/') + 1);
    EXPECT_NE(page.find(".SH NAME\n" + name + " - "), std::string::npos) << page;
    EXPECT_NE(page.find("\"jitconv 0."), std::string::npos) << page;
    if (groff.empty()) continue;
    const ProcessResult shown = run_process(groff, {"-man", "-Tutf8", "-ww", "-z", program + ".1"});
    EXPECT_EQ(shown.exit_code, 0);
    EXPECT_EQ(shown.err, "");
  }
}

TEST(ManualPages, ShowWhatTheOptionsOfAnOptionMean) {
  const std::string page = unescaped(read_file(std::string(JITCONV_DUMP) + ".1"));
  EXPECT_NE(page.find(".B =explain\nWhy this family and plan\n"), std::string::npos) << page;
  EXPECT_NE(page.find(".SH EXIT STATUS\n"), std::string::npos) << page;
  EXPECT_NE(page.find("JITCONV_CACHE_DIR  "), std::string::npos) << page;
  EXPECT_NE(page.find("\n.BR jitconv-run (1)"), std::string::npos) << page;
}

class BenchScripts : public ::testing::Test {
 protected:
  void SetUp() override {
    if (python_.empty()) GTEST_SKIP() << "no python3 on PATH";
    for (const char* module : {"torch", "numpy"})
      write_file(directory_.file(module + std::string(".py")), "raise ImportError('hidden by the test')\n");
  }
  ProcessResult run(const std::string& script, std::vector<std::string> arguments) {
    ProcessOptions options;
    options.environment = {{"PYTHONPATH", directory_.path()}, {"PYTHONDONTWRITEBYTECODE", "1"}};
    arguments.insert(arguments.begin(), std::string(JITCONV_TEST_DATA) + "/../bench/" + script);
    return run_process(python_, arguments, options);
  }

  TemporaryDirectory directory_;
  const std::string python_ = find_program("python3");
};

TEST_F(BenchScripts, HelpNeedsNoPyTorch) {
  for (const char* script : {"compare_pytorch.py", "performance_table.py", "ablate.py"}) {
    const ProcessResult result = run(script, {"--help"});
    EXPECT_EQ(result.exit_code, 0) << script << "\n" << result.err;
    EXPECT_EQ(result.out.find("usage: " + std::string(script)), 0u) << result.out;
  }
  EXPECT_EQ(run("compare_pytorch.py", {"--list"}).exit_code, 0);
}

TEST_F(BenchScripts, ComparingSaysThatPyTorchIsMissing) {
  const ProcessResult result = run("compare_pytorch.py", {"--config=A"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.err, "compare_pytorch.py: needs PyTorch, which this Python does not have\n");
}

}  // namespace
}  // namespace jitconv::test
