// The JSON writer: exact text, since readers of other languages take it from there.
#include "tools/json.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace jitconv::tools::json {
namespace {

TEST(JsonTest, ScalarsAreWrittenAsJsonHasThem) {
  EXPECT_EQ(Value(nullptr).text(), "null");
  EXPECT_EQ(Value(true).text(), "true");
  EXPECT_EQ(Value(std::numeric_limits<std::uint64_t>::max()).text(), "18446744073709551615");
  EXPECT_EQ(Value(std::numeric_limits<std::int64_t>::min()).text(), "-9223372036854775808");
}

TEST(JsonTest, NumbersReadBackExactlyAndAreNeverNan) {
  EXPECT_EQ(Value(0.1).text(), "0.1");
  EXPECT_EQ(Value(1e300).text(), "1e+300");
  EXPECT_EQ(Value(std::numeric_limits<double>::quiet_NaN()).text(), "null");
  EXPECT_EQ(Value(-std::numeric_limits<double>::infinity()).text(), "null");
}

TEST(JsonTest, TextIsQuoted) {
  EXPECT_EQ(Value("a\"b\\c\n\t\x01").text(), R"("a\"b\\c\n\u0009\u0001")");
  EXPECT_EQ(Value("5 µs").text(), "\"5 µs\"");
  EXPECT_EQ(Value(std::string("x\0y", 3)).text(), R"("x\u0000y")");
}

TEST(JsonTest, EmptyContainersStayOnOneLine) {
  EXPECT_EQ(Value(Array{}).text(), "[]");
  EXPECT_EQ(Value(Object{}).text(), "{}");
}

TEST(JsonTest, NestingIndentsByTwoAndKeepsTheOrder) {
  Array grid{3U, 1U};
  Object object{{"z", Object{{"grid", grid}}}, {"a", "1"}};
  object["a"] = nullptr;
  object["new"] = false;
  EXPECT_EQ(render(object),
            "{\n"
            "  \"z\": {\n"
            "    \"grid\": [\n"
            "      3,\n"
            "      1\n"
            "    ]\n"
            "  },\n"
            "  \"a\": null,\n"
            "  \"new\": false\n"
            "}\n");
}

TEST(JsonTest, TextWithLineBreaksIsNotIndented) { EXPECT_EQ(render(Array{"a\nb"}), "[\n  \"a\\nb\"\n]\n"); }

}  // namespace
}  // namespace jitconv::tools::json
