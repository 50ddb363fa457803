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
                      "31m\xc2\x80\xc2\x9f\xc2\xa0\xc2"),
            "\\xc2\\x9b31m\\xc2\\x80\\xc2\\x9f\xc2\xa0\xc2");
}

}  // namespace
}  // namespace jitconv::cache
