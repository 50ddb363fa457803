// Generated sources, byte for byte: a change of the generator shows here as a diff that somebody reads. `golden_test
// --update` (or JITCONV_UPDATE_GOLDENS=1) writes the files anew. Also: the text is the same in every locale and
// process.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <locale>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "golden/golden_cases.h"
#include "golden/unified_diff.h"

namespace jitconv::test {
namespace {

namespace fs = std::filesystem;

fs::path golden_file(const std::string& name) { return fs::path(JITCONV_TEST_DATA) / "golden" / (name + ".cu"); }

std::string read(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

std::string this_program() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).string();
}

class Golden : public ::testing::TestWithParam<GoldenCase> {};

TEST_P(Golden, SourceIsAsReviewed) {
  const fs::path file = golden_file(GetParam().name);
  ASSERT_TRUE(fs::exists(file)) << file << " is missing; write it with: " << this_program() << " --update";
  const std::string difference = unified_diff(read(file), golden_source(GetParam()), /*most_lines=*/60);
  EXPECT_EQ(difference, "") << file << "\n"
                            << difference << "to accept the change: " << this_program()
                            << " --update, and read the diff of tests/golden";
}

TEST_P(Golden, ShowsWhatItIsHereFor) {
  const GoldenCase& one = GetParam();
  const codegen::ConvPlan plan = golden_plan(one);
  EXPECT_EQ(codegen::to_string(plan.family()), codegen::to_string(one.family));
  EXPECT_NE(golden_source(one).find(one.shows), std::string::npos)
      << "the source has no '" << one.shows << "': choose another shape for " << one.name;
}

/// "name" of "//   name[kStages]  4  who arrives  who waits" and its "4", below "// Barriers:".
std::map<std::string, std::string> listed_barriers(const std::string& source) {
  static const std::regex row("//   ([a-z_]+)(?:\\[[^\\]]*\\])? {2,}(\\S+(?: \\S+)*) {2,}\\S.* {2,}\\S.*");
  std::map<std::string, std::string> listed;
  std::istringstream lines(source.substr(std::min(source.find("// Barriers:\n"), source.size())));
  std::string line;
  std::getline(lines, line);
  std::smatch match;
  while (std::getline(lines, line) && std::regex_match(line, match, row)) listed[match[1]] = match[2];
  listed.erase("name");
  return listed;
}

TEST_P(Golden, ListsItsBarriersWithTheirArrivals) {
  const std::string source = golden_source(GetParam());
  static const std::regex init("barrier_init\\(([a-z_]+)(?: \\+ [a-z]+)?, ([^;]+)\\);");
  std::map<std::string, std::string> initialised;
  for (std::sregex_iterator at(source.begin(), source.end(), init), end; at != end; ++at)
    initialised[(*at)[1]] = (*at)[2];
  std::map<std::string, std::string> listed = listed_barriers(source);
  // wgmma_rows initialises a barrier that only some of its kernels use.
  if (!listed.contains("weights_arrival")) initialised.erase("weights_arrival");
  EXPECT_EQ(listed, initialised);
}

TEST_P(Golden, DeclaresNoDeviceFunctionThatNobodyCalls) {
  static const std::regex comment("//[^\n]*"), function("__device__ __forceinline__ [^\n(]*\\b(\\w+)\\(");
  const std::string code = std::regex_replace(golden_source(GetParam()), comment, "");
  for (std::sregex_iterator at(code.begin(), code.end(), function), end; at != end; ++at) {
    const std::regex name("\\b" + (*at)[1].str() + "\\b");
    EXPECT_GT(std::distance(std::sregex_iterator(code.begin(), code.end(), name), std::sregex_iterator()), 1)
        << (*at)[1];
  }
}

INSTANTIATE_TEST_SUITE_P(Sources, Golden, ::testing::ValuesIn(golden_cases()),
                         [](const auto& one) { return one.param.name; });

TEST(GoldenFolder, HoldsNoOtherSources) {
  std::set<std::string> known, found;
  for (const GoldenCase& one : golden_cases()) known.insert(one.name + ".cu");
  for (const fs::directory_entry& entry : fs::directory_iterator(golden_file("").parent_path()))
    if (entry.path().extension() == ".cu") found.insert(entry.path().filename().string());
  EXPECT_EQ(found, known);
}

/// Groups digits and has a decimal comma.
struct Foreign : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

TEST(Determinism, LocaleAndRepetitionChangeNothing) {
  std::vector<std::string> plain, foreign;
  for (const GoldenCase& one : golden_cases()) plain.push_back(golden_source(one));
  const std::locale previous = std::locale::global(std::locale(std::locale(), new Foreign));
  for (const char* name : {"de_DE.UTF-8", "fr_FR.UTF-8", "tr_TR.UTF-8"})
    if (std::setlocale(LC_ALL, name) != nullptr) break;  // whichever is installed
  std::ostringstream check;
  check << 1234.5;
  EXPECT_EQ(check.str(), "1.234,5") << "the locale has no effect, so this test shows nothing";
  for (const GoldenCase& one : golden_cases()) foreign.push_back(golden_source(one));
  std::locale::global(previous);
  std::setlocale(LC_ALL, "C");
  EXPECT_EQ(plain, foreign);
}

TEST(Determinism, AnotherProcessPrintsTheSame) {
  for (const GoldenCase& one : golden_cases()) {
    const std::string command =
        fmt::format("LC_ALL=de_DE.UTF-8 TZ=Asia/Tokyo '{}' --print={}", this_program(), one.name);
    FILE* const pipe = popen(command.c_str(), "r");
    ASSERT_NE(pipe, nullptr);
    std::string text(1 << 20, '\0');
    text.resize(std::fread(text.data(), 1, text.size(), pipe));
    ASSERT_EQ(pclose(pipe), 0) << command;
    EXPECT_EQ(text, golden_source(one)) << one.name;
  }
}

TEST(UnifiedDiff, EqualTextsHaveNone) {
  EXPECT_EQ(unified_diff("a\nb\n", "a\nb\n", 10), "");
  EXPECT_EQ(unified_diff("", "", 10), "");
}

TEST(UnifiedDiff, ChangedRemovedAndAddedLines) {
  EXPECT_EQ(unified_diff("1\n2\n3\n4\n5\n6\n", "1\n2\n3\nfour\n5\n6\n", 20),
            "@@ -1 +1 @@\n 1\n 2\n 3\n-4\n+four\n 5\n 6\n");
  EXPECT_EQ(unified_diff("a\nb\n", "b\n", 20), "@@ -1 +1 @@\n-a\n b\n");
  EXPECT_EQ(unified_diff("a\n", "a\nb\n", 20), "@@ -1 +1 @@\n a\n+b\n");
}

TEST(UnifiedDiff, DistantChangesAreHunksOfTheirOwn) {
  std::string before, after;
  for (int line = 1; line <= 30; ++line) {
    before += fmt::format("{}\n", line);
    after += line == 5 || line == 25 ? "changed\n" : fmt::format("{}\n", line);
  }
  EXPECT_EQ(unified_diff(before, after, 40),
            "@@ -2 +2 @@\n 2\n 3\n 4\n-5\n+changed\n 6\n 7\n 8\n"
            "@@ -22 +22 @@\n 22\n 23\n 24\n-25\n+changed\n 26\n 27\n 28\n");
}

TEST(UnifiedDiff, IsCutOffWithTheNumberOfDifferences) {
  std::string before, after;
  for (int line = 0; line < 50; ++line) before += fmt::format("{}\n", line);
  const std::string text = unified_diff(before, after, 5);
  EXPECT_EQ(text, "@@ -1 +1 @@\n-0\n-1\n-2\n-3\n-4\n... cut off; 50 lines differ in all\n");
  EXPECT_NE(unified_diff("a", "a\n", 5), "");
}

int update() {
  int written = 0;
  for (const GoldenCase& one : golden_cases()) {
    const fs::path file = golden_file(one.name);
    const std::string text = golden_source(one);
    if (fs::exists(file) && read(file) == text) continue;
    std::ofstream stream(file, std::ios::binary);
    if (!(stream << text << std::flush)) {
      std::fprintf(stderr, "golden_test: cannot write %s\n", file.c_str());
      return 1;
    }
    std::printf("wrote %s\n", file.c_str());
    ++written;
  }
  std::set<std::string> known;
  for (const GoldenCase& one : golden_cases()) known.insert(one.name);
  for (const fs::directory_entry& entry : fs::directory_iterator(golden_file("").parent_path())) {
    if (entry.path().extension() != ".cu" || known.count(entry.path().stem().string()) != 0) continue;
    fs::remove(entry.path());
    std::printf("removed %s\n", entry.path().c_str());
  }
  std::printf("%d of %zu golden files changed\n", written, golden_cases().size());
  return 0;
}

int print(const std::string& name) {
  for (const GoldenCase& one : golden_cases()) {
    if (one.name != name) continue;
    const std::string text = golden_source(one);
    std::fwrite(text.data(), 1, text.size(), stdout);
    return 0;
  }
  std::fprintf(stderr, "golden_test: no case is named %s\n", name.c_str());
  return 2;
}

}  // namespace
}  // namespace jitconv::test

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  const std::string argument = argc > 1 ? argv[1] : "";
  const char* const asked = std::getenv("JITCONV_UPDATE_GOLDENS");
  if (argument == "--update" || (asked != nullptr && std::string(asked) == "1")) return jitconv::test::update();
  if (argument.rfind("--print=", 0) == 0) return jitconv::test::print(argument.substr(8));
  return RUN_ALL_TESTS();
}
