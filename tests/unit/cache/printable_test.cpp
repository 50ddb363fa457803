// What a terminal would obey is shown; the rest is left alone.
#include "cache/printable.h"

#include <gtest/gtest.h>

namespace jitconv::cache {
namespace {

TEST(Printable, TextIsLeftAlone) {
  EXPECT_EQ(printable(""), "");
  EXPECT_EQ(printable("/opt/cuda 13/lib~"), "/opt/cuda 13/lib~");
  EXPECT_EQ(printable("/home/J\xc3\xbcrgen/\xe6\x97\xa5"), "/home/J\xc3\xbcrgen/\xe6\x97\xa5");
}

TEST(Printable, ControlCharactersAreShown) {
  using std::string_view_literals::operator""sv;
  EXPECT_EQ(printable("\x1b[31mred\r\n\t\x7f\0"sv), "\\x1b[31mred\\x0d\\x0a\\x09\\x7f\\x00");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m\xc2\x80\xc2\x9f\xc2\xa0"),
            "\\xc2\\x9b31m\\xc2\\x80\\xc2\\x9f\xc2\xa0");
}

TEST(Printable, BytesThatAreNotUtf8AreShown) {
  EXPECT_EQ(printable("\x9b"
                      "31m J\xfcrgen"),
            "\\x9b31m J\\xfcrgen");
  EXPECT_EQ(printable("J\xc3\xbcrgen \x9b\n"), "J\\xc3\\xbcrgen \\x9b\\x0a");
  EXPECT_EQ(printable("cut \xc2"), "cut \\xc2");
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf");  // "/" in two bytes is no UTF-8
}

}  // namespace
}  // namespace jitconv::cache
