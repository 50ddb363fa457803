// Standard streams that are closed, full or hostile: no program aborts, and what could not be written is an error.
#include <gtest/gtest.h>

#include "unit/tools/cli_process.h"

namespace jitconv::test {
namespace {

using Arguments = std::vector<std::string>;

/// A program whose streams the shell has redirected.
ProcessResult run_with(const std::string& redirections, const std::string& program, const Arguments& arguments) {
  Arguments command = {"-c", "exec \"$0\" \"$@\" " + redirections, program};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return run_process("/bin/sh", command);
}

const Arguments kSpec = {"--input=1,3,8,8", "--weight=4,3,3,3", "--emit=spec"};

TEST(CliStreams, AClosedOrFullStderrChangesNoExitCode) {
  for (const char* redirection : {"2>&-", "2>/dev/full", "0<&- 2>&-"}) {
    EXPECT_EQ(run_with(redirection, JITCONV_DUMP, kSpec).exit_code, 0) << redirection;
    EXPECT_EQ(run_with(redirection, JITCONV_DUMP, {"--version"}).exit_code, 0) << redirection;
    EXPECT_EQ(run_with(redirection, JITCONV_DUMP, {"--help"}).exit_code, 0) << redirection;
    EXPECT_EQ(run_with(redirection, JITCONV_DUMP, {"--nonsense"}).exit_code, 2) << redirection;
    EXPECT_EQ(run_with(redirection, JITCONV_DUMP, {"--config=A", "--groups=3"}).exit_code, 3) << redirection;
    EXPECT_EQ(run_with(redirection, JITCONV_RUN, {"--list"}).exit_code, 0) << redirection;
    EXPECT_EQ(run_with(redirection, JITCONV_RUN, {"--seed=x", "--config=A"}).exit_code, 2) << redirection;
  }
}

TEST(CliStreams, AClosedOrFullStdoutIsAnError) {
  for (const char* redirection : {">&-", ">/dev/full", "0<&- >&-", ">&- 2>&-"}) {
    const bool silent = std::string(redirection).find("2>&-") != std::string::npos;
    for (const Arguments& arguments : {kSpec, Arguments{"--version"}, Arguments{"--help"}, Arguments{"--list"}}) {
      const ProcessResult result = run_with(redirection, JITCONV_DUMP, arguments);
      EXPECT_EQ(result.exit_code, 1) << redirection << arguments.front();
      if (!silent) {
        EXPECT_EQ(result.err.find("jitconv-dump: cannot write stdout: "), 0u) << redirection << result.err;
      }
    }
    EXPECT_EQ(run_with(redirection, JITCONV_RUN, {"--list"}).exit_code, 1) << redirection;
    EXPECT_EQ(run_with(redirection, JITCONV_CACHE, {"--version"}).exit_code, 1) << redirection;
  }
}

// A closed stream's number is the lowest free one: the next file that is opened would get what is meant for the stream.
TEST(CliStreams, FilesDoNotTakeTheNumberOfAClosedStream) {
  const TemporaryDirectory directory;
  const std::string text = run_process(JITCONV_DUMP, kSpec).out;
  for (const char* redirection : {"0<&- >&- 2>&-", "0<&- >&-", ">&- 2>&-"}) {
    Arguments arguments = kSpec;
    arguments.insert(arguments.end(), {"-o", directory.file("spec")});
    EXPECT_EQ(run_with(redirection, JITCONV_DUMP, arguments).exit_code, 0) << redirection;
    EXPECT_EQ(read_file(directory.file("spec")), text) << redirection;
    // An error message in place of the results.
    const ProcessResult failed =
        run_with(redirection, JITCONV_RUN, {"--device=gpu", "--config=A", "--json=" + directory.file("json")});
    EXPECT_NE(failed.exit_code, 0) << redirection;
  }
}

TEST(CliStreams, AFileBeyondItsLimitOfSizeIsAnError) {
  const TemporaryDirectory directory;
  const std::string file = directory.file("kernel.cu");
  const ProcessResult result = run_process(
      "/bin/sh", {"-c", "ulimit -f 1; exec \"$0\" \"$@\"", JITCONV_DUMP, "--config=KB_L1_67_small", "-o", file});
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_NE(result.err.find("cannot write " + file + ": File too large"), std::string::npos) << result.err;
}

TEST(CliStreams, MessagesHaveNoControlCharacters) {
  const ProcessResult result = run_process(JITCONV_DUMP, {"--config=\x1b[31mA\x07\x7f"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("'\\x1b[31mA\\x07\\x7f' is not a configuration"), std::string::npos) << result.err;
}

}  // namespace
}  // namespace jitconv::test
