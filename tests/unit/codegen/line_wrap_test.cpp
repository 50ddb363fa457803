// Breaking of long lines: where they break, and that nothing is lost or changed by it.
#include "codegen/text/line_wrap.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "codegen/plan.h"
#include "codegen/source.h"
#include "unit/codegen/wgmma_candidates.h"

namespace jitconv::codegen {
namespace {

TEST(LineWrap, LinesThatFitStayAsTheyAre) {
  for (const std::string text : {"", "\n", "a = b;", "a = b;\n\n  c, d\n", "// a b\n#define X a, b\n"})
    EXPECT_EQ(wrap_lines(text, 14), text);
}

TEST(LineWrap, CodeBreaksAtTheOutermostPlace) {
  EXPECT_EQ(wrap_lines("  f(aaaa, g(bb, cc));\n", 18), "  f(aaaa,\n      g(bb, cc));\n");
  EXPECT_EQ(wrap_lines("const int x = f(a, b);\n", 20), "const int x =\n    f(a, b);\n");
  EXPECT_EQ(wrap_lines("kernel(const float* x, float* y) {\n", 30), "kernel(const float* x,\n    float* y) {\n");
  EXPECT_EQ(wrap_lines("static_assert(kA == kB && kC == kD);\n", 30), "static_assert(kA == kB &&\n    kC == kD);\n");
  EXPECT_EQ(wrap_lines("value = flag ? left : right;\n", 22), "value = flag ? left\n    : right;\n");
}

TEST(LineWrap, CommasGoBeforeOperatorsOfTheSameDepth) {
  EXPECT_EQ(wrap_lines("f(a + b, c + d + e);\n", 16), "f(a + b,\n    c + d + e);\n");
}

TEST(LineWrap, StatementsLeaveTheLineOfTheirCondition) {
  EXPECT_EQ(wrap_lines("  if (a < b) c[i] = d;\n", 20), "  if (a < b)\n      c[i] = d;\n");
  EXPECT_EQ(wrap_lines("for (int i = 0; i < n; ++i) x(i);\n", 30), "for (int i = 0; i < n; ++i)\n    x(i);\n");
  EXPECT_EQ(wrap_lines("if (aaaa && bbbb && cccc) {\n", 20), "if (aaaa && bbbb &&\n    cccc) {\n");
}

TEST(LineWrap, ALineMayBreakSeveralTimes) {
  EXPECT_EQ(wrap_lines("f(aaaa, bbbb, cccc, dddd);\n", 12), "f(aaaa,\n    bbbb,\n    cccc,\n    dddd);\n");
}

TEST(LineWrap, LiteralsAreNotBroken) {
  EXPECT_EQ(wrap_lines("asm(\"a, b, c, d\", e);\n", 19), "asm(\"a, b, c, d\",\n    e);\n");
  EXPECT_EQ(wrap_lines("f(\"a \\\" b, c // d\", e);\n", 20), "f(\"a \\\" b, c // d\",\n    e);\n");
}

TEST(LineWrap, CommentsBreakBetweenWords) {
  EXPECT_EQ(wrap_lines("  // one two three\n", 14), "  // one two\n  // three\n");
  EXPECT_EQ(wrap_lines("//   a=1 b=2 c=3\n", 11), "//   a=1\n//   b=2\n//   c=3\n");
  EXPECT_EQ(wrap_lines("// abcdefghijkl m\n", 8), "// abcdefghijkl\n// m\n");
}

TEST(LineWrap, WordsOfACommentMoveToItsNextLine) {
  EXPECT_EQ(wrap_lines("  // one two three\n  // four\n  // five\n", 16), "  // one two\n  // three four\n  // five\n");
  EXPECT_EQ(wrap_lines("// one two three\n// four five six\n// seven\nx = y;", 13),
            "// one two\n// three four\n// five six\n// seven\nx = y;");
  EXPECT_EQ(wrap_lines("// one two three\n// four", 13), "// one two\n// three four");
}

TEST(LineWrap, WordsOfACommentStayInIt) {
  for (const std::string next :
       {"x = y;\n", "\n", "//\n", "  // four\n", "//   four\n", "// - four\n", "// four  five\n", "#pragma unroll\n"})
    EXPECT_EQ(wrap_lines("// one two three\n" + next, 13), "// one two\n// three\n" + next);
}

TEST(LineWrap, ListsAndTablesKeepTheirLines) {
  EXPECT_EQ(wrap_lines("//   one two three\n//   four\n", 14), "//   one two\n//   three\n//   four\n");
  EXPECT_EQ(wrap_lines("// - one two three\n// - four\n", 14), "// - one two\n// three\n// - four\n");
  EXPECT_EQ(wrap_lines("// one  two three\n// four  five\n", 14), "// one  two\n// three\n// four  five\n");
}

TEST(LineWrap, CommentsBehindLongLinesComeBeforeThem) {
  EXPECT_EQ(wrap_lines("  f(a, b);  // why\n", 14), "  // why\n  f(a, b);\n");
  EXPECT_EQ(wrap_lines("  f(aaaa, bbbb);  // why\n", 14), "  // why\n  f(aaaa,\n      bbbb);\n");
}

TEST(LineWrap, WhatCannotBreakStaysLong) {
  EXPECT_EQ(wrap_lines("abcdefghijkl;\n", 8), "abcdefghijkl;\n");
  EXPECT_EQ(wrap_lines("#pragma unroll everything\n", 8), "#pragma unroll everything\n");
  EXPECT_EQ(wrap_lines("  name_of_a_function(\n", 12), "  name_of_a_function(\n");
  EXPECT_EQ(wrap_lines("  function(arguments);\n", 16), "  function(\n      arguments);\n");
}

TEST(LineWrap, ANameLongerThanALineIsFollowedByABreak) {
  EXPECT_EQ(wrap_lines("  name_of_a_function(x);\n", 12), "  name_of_a_function(\n      x);\n");
}

/// Code and comments, each without spaces and line breaks: comments may move before the code they stand behind.
struct Words {
  std::string code, comments;
  bool operator==(const Words&) const = default;
};
Words words_of(const std::string& text) {
  Words words;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::erase(line, ' ');
    const std::size_t slashes = std::min(line.find("//"), line.size());
    words.code += line.substr(0, slashes);
    if (slashes < line.size()) words.comments += line.substr(slashes + 2);
  }
  return words;
}

RC_GTEST_PROP(LineWrapProperty, GeneratedTextIsTheSameButForItsLines, ()) {
  ConvSpec spec = *test::valid_specs();
  if (*rc::gen::arbitrary<bool>()) spec = test::for_tensor_cores(spec);
  const KernelSource source =
      generate(make_plan(spec, parse_target(*rc::gen::element<std::string>("sm_75", "sm_90a"))));
  std::istringstream lines(source.text);
  const auto is_name = [](const std::string& line) { return line.find('(') + 1 == line.size(); };
  for (std::string line; std::getline(lines, line);) RC_ASSERT(line.size() <= 120u || is_name(line));
  RC_ASSERT(wrap_lines(source.text, 120) == source.text);
  const std::size_t columns = *rc::gen::inRange<std::size_t>(20, 100);
  const std::string narrow = wrap_lines(source.text, columns);
  RC_ASSERT(words_of(narrow) == words_of(source.text));
  RC_ASSERT(wrap_lines(narrow, columns) == narrow);
}

}  // namespace
}  // namespace jitconv::codegen
