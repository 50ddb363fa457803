// jitconv-cache on directories made for the test, and jitconv-run's refusals. Nothing here needs NVRTC or a GPU.
#include <gtest/gtest.h>

#include <filesystem>

#include "cache/store.h"
#include "unit/tools/cli_process.h"

namespace jitconv::test {
namespace {

using Arguments = std::vector<std::string>;

class CliCache : public ::testing::Test {
 protected:
  ProcessResult run(const Arguments& arguments, std::map<std::string, std::string> more = {}) {
    ProcessOptions options;
    options.environment = {{"JITCONV_CACHE_DIR", root()}};
    for (const auto& [name, value] : more) options.environment[name] = value;
    return run_process(JITCONV_CACHE, arguments, options);
  }

  std::string root() const { return directory_.file("cache"); }

  /// Stores an entry of `bytes` payload bytes; its key.
  std::string store(const std::string& seed, std::size_t bytes) {
    cache::StoreConfig config;
    config.root = root();
    cache::Store store(config);
    cache::Entry entry;
    entry.key.digest = cache::sha256(seed);
    entry.payload.assign(bytes, 'x');
    EXPECT_TRUE(store.save(entry));
    return entry.key.hex();
  }

  std::size_t entries() {
    cache::StoreConfig config;
    config.root = root();
    return cache::Store(config).list().size();
  }

  TemporaryDirectory directory_;
};

TEST_F(CliCache, ListsWhatIsThere) {
  const std::string first = store("one", 1000), second = store("two", 2000);
  const ProcessResult result = run({"list"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(lines_of(result.out).size(), 4u) << result.out;
  EXPECT_NE(result.out.find(first), std::string::npos);
  EXPECT_NE(result.out.find(second), std::string::npos);
  const ProcessResult json = run({"list", "--json"});
  EXPECT_EQ(json.out.find("["), 0u);
  EXPECT_NE(json.out.find("\"key\": \"" + first + "\""), std::string::npos) << json.out;
}

TEST_F(CliCache, AnEmptyOrMissingDirectoryIsFine) {
  for (const char* verb : {"list", "stats", "verify", "prune", "clear"}) {
    EXPECT_EQ(run({verb}).exit_code, 0) << verb;
  }
  EXPECT_EQ(run({"list", "--json"}).out, "[]\n");
}

TEST_F(CliCache, StatsCountEntriesAndName) {
  store("one", 1000);
  const ProcessResult result = run({"stats"});
  EXPECT_NE(result.out.find("entries:   1\n"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find(root()), std::string::npos);
  EXPECT_NE(run({"stats", "--json"}).out.find("\"entries\": 1"), std::string::npos);
}

TEST_F(CliCache, DirWinsOverTheEnvironment) {
  store("one", 1000);
  const ProcessResult result = run({"stats", "--dir=" + directory_.file("other")});
  EXPECT_NE(result.out.find("entries:   0\n"), std::string::npos) << result.out;
  EXPECT_NE(run({"stats", "--dir", root()}, {{"JITCONV_CACHE", "off"}}).out.find("entries:   1\n"), std::string::npos);
}

TEST_F(CliCache, PruneKeepsToTheLimit) {
  for (const char* seed : {"a", "b", "c", "d"}) store(seed, 10000);
  ASSERT_EQ(entries(), 4u);
  EXPECT_EQ(run({"prune", "--max-size=1G"}).exit_code, 0);
  EXPECT_EQ(entries(), 4u);
  EXPECT_EQ(run({"prune", "--max-size=25K"}).exit_code, 0);
  EXPECT_EQ(entries(), 2u);
  EXPECT_EQ(run({"prune"}, {{"JITCONV_CACHE_MAXSIZE", "12K"}}).exit_code, 0);
  EXPECT_EQ(entries(), 1u);
}

TEST_F(CliCache, ClearRemovesEntriesAndNothingElse) {
  store("one", 1000);
  write_file(root() + "/notes.txt", "mine");
  const ProcessResult result = run({"clear"}, {{"JITCONV_CACHE", "ro"}});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out.find("removed "), 0u);
  EXPECT_EQ(entries(), 0u);
  EXPECT_EQ(read_file(root() + "/notes.txt"), "mine");
}

TEST_F(CliCache, DirIsTakenFromTheWorkingDirectory) {
  const std::string key = store("one", 100);
  const std::string relative = std::filesystem::relative(root()).string();
  EXPECT_NE(run({"list", "--dir=" + relative}, {{"JITCONV_CACHE_DIR", "/nowhere"}}).out.find(key), std::string::npos);
  EXPECT_EQ(run({"clear", "--dir=" + relative}).exit_code, 0);
  EXPECT_EQ(entries(), 0u);
}

TEST_F(CliCache, ADirectoryThatIsRefusedIsNoSuccess) {
  store("one", 100);
  std::filesystem::permissions(root(), std::filesystem::perms::all);
  for (const char* verb : {"list", "stats", "verify", "prune", "clear"}) {
    const ProcessResult result = run({verb});
    EXPECT_EQ(result.exit_code, 1) << verb;
    EXPECT_EQ(lines_of(result.err).size(), 1u) << result.err;
  }
  std::filesystem::permissions(root(), std::filesystem::perms::owner_all);
  EXPECT_EQ(entries(), 1u);
}

TEST_F(CliCache, RefusesWhatItCannotRead) {
  EXPECT_EQ(run({}).exit_code, 2);
  EXPECT_EQ(run({"shrink"}).exit_code, 2);
  EXPECT_EQ(run({"list", "--no-such-flag"}).exit_code, 2);
  EXPECT_EQ(run({"prune", "--max-size=many"}).exit_code, 2);
  EXPECT_EQ(run({"prune", "--max-size=99999999999999999999"}).exit_code, 2);
  EXPECT_EQ(run({"list", "--max-size=1K"}).exit_code, 2);
  EXPECT_EQ(run({"--help"}).exit_code, 0);
  EXPECT_EQ(run({"--version"}).exit_code, 0);
  const ProcessResult off = run({"list"}, {{"JITCONV_CACHE", "off"}});
  EXPECT_EQ(off.exit_code, 1);
  EXPECT_EQ(lines_of(off.err).size(), 1u) << off.err;
}

ProcessResult run_tool(const Arguments& arguments) { return run_process(JITCONV_RUN, arguments); }

TEST(CliRun, HelpListVersion) {
  EXPECT_EQ(run_tool({"--help"}).exit_code, 0);
  EXPECT_EQ(run_tool({"--version"}).exit_code, 0);
  const ProcessResult list = run_tool({"--list"});
  EXPECT_EQ(list.exit_code, 0);
  EXPECT_EQ(list.out, run_process(JITCONV_DUMP, {"--list"}).out);
}

TEST(CliRun, RefusesByExitCode) {
  EXPECT_EQ(run_tool({}).exit_code, 2);
  EXPECT_EQ(run_tool({"--config=A,nobody"}).exit_code, 2);
  EXPECT_EQ(run_tool({"--config=A", "--all"}).exit_code, 2);
  EXPECT_EQ(run_tool({"--config=A", "--repeat=0"}).exit_code, 2);
  EXPECT_EQ(run_tool({"--config=A", "--exact", "--positive"}).exit_code, 2);
  EXPECT_EQ(run_tool({"--config=A", "--tune", "--compile-only"}).exit_code, 2);
  EXPECT_EQ(run_tool({"--config=A", "--repeat=often"}).exit_code, 2);
  const ProcessResult unsupported = run_tool({"--input=1,8,4,4", "--weight=8,8,3,3", "--groups=5"});
  EXPECT_EQ(unsupported.exit_code, 3);
  EXPECT_NE(unsupported.err.find("groups"), std::string::npos) << unsupported.err;
  const ProcessResult no_compiler =
      run_process(JITCONV_RUN, {"--input=1,8,4,4", "--weight=8,8,3,3", "--compile-only"},
                  {{{"JITCONV_NVRTC_PATH", "/nonexistent"}, {"JITCONV_CACHE", "off"}}, ""});
  EXPECT_EQ(no_compiler.exit_code, 4);
  EXPECT_NE(no_compiler.out.find("0 of 1 compiled"), std::string::npos) << no_compiler.out;
}

TEST(CliRun, WithoutAGpu) {
  // Any directory of libraries without libcuda.so.1 in it would do; an invisible device does it on every machine.
  const ProcessOptions no_device{{{"CUDA_VISIBLE_DEVICES", "-1"}, {"JITCONV_CACHE", "off"}}, ""};
  const Arguments small = {"--input=1,8,4,4", "--weight=8,8,3,3"};
  Arguments required = small;
  required.push_back("--require-device");
  const ProcessResult result = run_process(JITCONV_RUN, required, no_device);
  EXPECT_EQ(result.exit_code, 5) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_NE(result.err.find("no GPU"), std::string::npos) << result.err;
}

}  // namespace
}  // namespace jitconv::test
