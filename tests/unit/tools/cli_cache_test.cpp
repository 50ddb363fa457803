// jitconv-cache on directories made for the test, and jitconv-run's refusals. Nothing here needs NVRTC or a GPU.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <filesystem>
#include <set>

#include "cache/store.h"
#include "unit/cache/cache_test_support.h"
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

  std::string path_of(const std::string& key) const {
    return root() + cache::kSchemaFolder + "/" + key.substr(0, 2) + "/" + key;
  }

  /// Stores an entry of `bytes` payload bytes; its key.
  std::string store(const std::string& seed, std::size_t bytes) {
    cache::StoreConfig config;
    config.root = root();
    cache::Store store(config);
    cache::Entry entry;
    entry.key.digest = cache::sha256(seed);
    entry.payload.assign(bytes, 'x');
    entry.metadata = "ptxas info: Used 40 registers\n";
    entry.description = {{"spec", "input=1,8,4,4 weight=8,8,3,3 stride=1,1 padding=1,1,1,1 dtype=f32"},
                         {"target", "sm_90a"},
                         {"compiler", "NVRTC 13.0"},
                         {"options", "--std=c++17 \033[31m"}};
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
  for (const std::string& key : {first, second}) cache::set_age(path_of(key), std::chrono::seconds(330));
  const ProcessResult result = run({"list"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(lines_of(result.out).size(), 4u) << result.out;
  const auto line = [&](const std::string& key, const char* size) {
    return key.substr(0, 12) + "  sm_90a  " + size +
           "  5 min ago  NVRTC 13.0  input=1,8,4,4 weight=8,8,3,3 padding=1,1,1,1\n";
  };
  EXPECT_NE(result.out.find(line(first, "1.3K")), std::string::npos) << result.out;
  EXPECT_NE(result.out.find(line(second, "2.3K")), std::string::npos) << result.out;
  const ProcessResult json = run({"list", "--json"});
  EXPECT_EQ(json.out.find("["), 0u);
  EXPECT_NE(json.out.find("\"key\": \"" + first + "\""), std::string::npos) << json.out;
  EXPECT_NE(json.out.find("\"target\": \"sm_90a\""), std::string::npos) << json.out;
}

TEST_F(CliCache, ListNamesSizesAgesAndDamage) {
  const std::string old = store("one", 3 << 20), damaged = store("two", 1000), future = store("three", 10);
  cache::set_age(path_of(old), std::chrono::hours(75));
  cache::set_age(path_of(future), std::chrono::hours(-2));
  write_file(path_of(damaged), "short");
  const std::string out = run({"list"}).out;
  EXPECT_NE(out.find("  3.0M     3 days ago  "), std::string::npos) << out;
  EXPECT_NE(out.find("  in the future  "), std::string::npos) << out;
  EXPECT_NE(out.find("unusable: truncated: 5 bytes\n"), std::string::npos) << out;
}

TEST_F(CliCache, ExplainTellsEverythingOfOneEntry) {
  const std::string key = store("one", 1000);
  std::string upper = key.substr(0, 7);
  std::transform(upper.begin(), upper.end(), upper.begin(), [](unsigned char c) { return std::toupper(c); });
  for (const std::string& name : {key, key.substr(0, 1), upper}) {
    const ProcessResult result = run({"explain", name});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    for (const std::string& text :
         {"key:      " + key + "\n", "file:     " + path_of(key) + "\n", std::string("kind:     cubin\n"),
          std::string("spec:     input=1,8,4,4 weight=8,8,3,3 stride=1,1 padding=1,1,1,1 dtype=f32\n"),
          std::string("target:   sm_90a\n"), std::string("options:  --std=c++17 \\x1b[31m\n"),
          std::string("(1000 of them the image, 30 the compiler's log)\n"), std::string("verified: yes\n"),
          std::string("compiler's log:\nptxas info: Used 40 registers\n")}) {
      EXPECT_NE(result.out.find(text), std::string::npos) << text << "\nin\n" << result.out;
    }
  }
  const std::string json = run({"explain", key, "--json"}).out;
  for (const char* text : {"\"kind\": \"cubin\"", "\"spec\": \"input=1,8,4,4 weight=8,8,3,3 stride=1,1",
                           "\"verified\": true", "\"log\": \"ptxas info: Used 40 registers\\n\""}) {
    EXPECT_NE(json.find(text), std::string::npos) << text << "\nin\n" << json;
  }
}

TEST_F(CliCache, ExplainSaysWhatIsWrongWithADamagedEntry) {
  const std::string key = store("one", 1000);
  const std::string path = path_of(key);
  std::string bytes = read_file(path);
  bytes[bytes.size() - 100] = 'y';
  write_file(path, bytes);
  const ProcessResult result = run({"explain", key});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.out.find("verified: no: SHA-256 does not match\n"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("target:   sm_90a\n"), std::string::npos) << result.out;
  EXPECT_EQ(result.out.find("log:\n"), std::string::npos) << "what is damaged is not shown as true";
}

TEST_F(CliCache, ExplainRefusesWhatIsNoKeyOrMoreThanOne) {
  EXPECT_EQ(run({"explain"}).exit_code, 2);
  EXPECT_EQ(run({"explain", "kernel"}).exit_code, 2);
  EXPECT_EQ(run({"explain", std::string(65, 'a')}).exit_code, 2);
  const ProcessResult none = run({"explain", "abc"});
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_EQ(none.err, "jitconv-cache: no key in " + root() + " begins with abc\n");
  // 17 keys have 16 first digits between them.
  std::set<char> first_digits;
  std::string repeated;
  for (int i = 0; repeated.empty(); ++i) {
    const std::string key = store(std::to_string(i), 10);
    if (!first_digits.insert(key[0]).second) repeated = key.substr(0, 1);
  }
  const ProcessResult several = run({"explain", repeated});
  EXPECT_EQ(several.exit_code, 2);
  EXPECT_EQ(several.err.find("jitconv-cache: 2 keys begin with " + repeated + ", among them "), 0u) << several.err;
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

TEST_F(CliCache, StatsInJsonHaveLimitsOfAllSizes) {
  const std::string json = run({"stats", "--json"}, {{"JITCONV_CACHE_MAXSIZE", "18446744073709551615"}}).out;
  EXPECT_NE(json.find("\"max_bytes\": 18446744073709551615"), std::string::npos) << json;
}

TEST_F(CliCache, NamesOfDirectoriesCannotSpeakToTheTerminal) {
  const std::string key = store("one", 1000), strange = directory_.file("\033[31m\xff");
  std::filesystem::rename(root(), strange);
  for (const Arguments& command :
       {Arguments{"stats"}, {"stats", "--json"}, {"explain", key}, {"explain", key, "--json"}}) {
    Arguments arguments = command;
    arguments.push_back("--dir=" + strange);
    const ProcessResult result = run(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.out.find_first_of("\033\xff"), std::string::npos) << result.out;
  }
  EXPECT_NE(run({"stats", "--dir=" + strange}).out.find("/\\x1b[31m\\xff\n"), std::string::npos);
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
  EXPECT_NE(run({"list", "--dir=" + relative}, {{"JITCONV_CACHE_DIR", "/nowhere"}}).out.find(key.substr(0, 12)),
            std::string::npos);
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

TEST_F(CliCache, WhatCannotBeRemovedIsNoSuccess) {
  const std::string key = store("one", 1000);
  const std::string path = path_of(key);
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);  // nobody can unlink it, not even root
  const ProcessResult result = run({"clear"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out, "removed 0 bytes\n");
  EXPECT_EQ(result.err.find("jitconv-cache: not removed: 1 of the files; the first problem: cannot remove " + key), 0u)
      << result.err;
  EXPECT_NE(run({"clear", "--json"}).out.find("\"files_left\": 1"), std::string::npos);
}

// As on a medium that cannot be written. Root could write all the same, so it gives up its powers.
TEST_F(CliCache, ClearAndPruneOfAReadOnlyCacheFail) {
  store("one", 1000);
  std::filesystem::permissions(directory_.path(), std::filesystem::perms(0755));
  for (const auto& item : std::filesystem::recursive_directory_iterator(root())) {
    ASSERT_EQ(chmod(item.path().c_str(), item.is_directory() ? 0500 : 0400), 0);
    if (geteuid() == 0) {
      ASSERT_EQ(chown(item.path().c_str(), cache::kOtherUser, cache::kOtherUser), 0);
    }
  }
  if (geteuid() == 0) {
    ASSERT_EQ(chown(root().c_str(), cache::kOtherUser, cache::kOtherUser), 0);
  }
  const bool ran = cache::run_in_child([&] {
    cache::become_other_user();
    if (access(JITCONV_CACHE, X_OK) != 0) _exit(cache::kChildSkipped);
    for (const Arguments& arguments : {Arguments{"clear"}, Arguments{"prune", "--max-size=0"}}) {
      const ProcessResult result = run(arguments);
      EXPECT_EQ(result.exit_code, 1) << arguments[0];
      EXPECT_EQ(result.out, "removed 0 bytes\n");
      EXPECT_NE(result.err.find("not removed: 1 of the files"), std::string::npos) << result.err;
    }
  });
  for (const auto& item : std::filesystem::recursive_directory_iterator(root())) {
    if (item.is_directory()) chmod(item.path().c_str(), 0700);
  }
  if (!ran) GTEST_SKIP() << "another user cannot run " << JITCONV_CACHE;
}

TEST_F(CliCache, WithoutACommandItPrintsItsUsageOnce) {
  const ProcessResult result = run({});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.err.find("usage: jitconv-cache COMMAND [options]\n"), 0u) << result.err;
  EXPECT_EQ(result.err.find("jitconv-cache", 10), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("  explain KEY  "), std::string::npos) << result.err;
}

TEST_F(CliCache, AnEmptyDirectoryNameIsRefused) {
  const ProcessResult result = run({"list", "--dir="});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.err, "jitconv-cache: --dir is empty; it must name a directory (see jitconv-cache --help)\n");
}

TEST_F(CliCache, RefusesWhatItCannotRead) {
  EXPECT_EQ(run({"list", "everything"}).exit_code, 2);
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
  EXPECT_EQ(run_tool({"--config=A", "--spec=input=1,8,4,4 weight=8,8,3,3"}).exit_code, 2);
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
