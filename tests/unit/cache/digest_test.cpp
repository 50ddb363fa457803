// SHA-256 against published answers, and the framing that makes a list of fields unambiguous.
#include "cache/digest.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <variant>
#include <vector>

namespace jitconv::cache {
namespace {

// FIPS 180-4 examples and NIST's long message.
TEST(Sha256, KnownAnswers) {
  EXPECT_EQ(to_hex(sha256("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(to_hex(sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(to_hex(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(to_hex(sha256(std::string(1'000'000, 'a'))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, HashesZeroBytesAndHighBytes) {
  EXPECT_EQ(to_hex(sha256(std::string(3, '\0'))), "709e80c88487a2411e1ee4dfb9f22a861492d20c4765150c0c794abd70f8147c");
  EXPECT_EQ(to_hex(sha256("\xff")), "a8100ae6aa1940d0b663bb31cd466142ebbdbd5187131b92d93818987832eb89");
}

TEST(Digest, FramesFieldsAsDocumented) {
  const std::string framed = std::string("\2\0\0\0\0\0\0\0", 8) + "ab" + std::string(8, '\xff') +
                             std::string("\x05\x01\0\0\0\0\0\0", 8) + std::string(8, '\0');
  EXPECT_EQ(Digest().add("ab").add(0x105).add("").finish(), sha256(framed));
}

TEST(Digest, DoesNotDependOnHowBufferedBytesFallIntoBlocks) {
  for (std::size_t first = 0; first < 200; ++first) {
    const std::string a(first, 'a'), b(200 - first, 'b');
    std::string framed;
    for (const std::string& field : {a, b}) {
      for (int i = 0; i < 8; ++i) framed += static_cast<char>((field.size() >> (8 * i)) & 0xff);
      framed += field;
    }
    ASSERT_EQ(Digest().add(a).add(b).finish(), sha256(framed)) << first;
  }
}

TEST(Digest, FinishMayBeFollowedByMoreFields) {
  Digest digest;
  digest.add("a");
  EXPECT_EQ(digest.finish(), Digest().add("a").finish());
  EXPECT_EQ(digest.add("b").finish(), Digest().add("a").add("b").finish());
}

// Every list of up to four fields from a set chosen to collide under joining: prefixes of each other, an empty field,
// texts that look like the frame of a number or a length.
TEST(Digest, DifferentListsOfFieldsDiffer) {
  using Field = std::variant<std::string, std::uint64_t>;
  const std::vector<Field> fields = {std::string(),
                                     std::string("a"),
                                     std::string("aa"),
                                     std::string(8, '\0'),
                                     std::string("\1\0\0\0\0\0\0\0a", 9),
                                     std::uint64_t{0},
                                     std::uint64_t{'a'},
                                     std::string(16, '\xff'),
                                     std::string(8, '\xff') + std::string(8, '\0')};
  std::map<Sha256, std::vector<std::size_t>> seen;
  std::vector<std::vector<std::size_t>> lists = {{}};
  for (std::size_t done = 0; done < lists.size(); ++done) {
    const std::vector<std::size_t> list = lists[done];
    Digest digest;
    for (const std::size_t index : list) {
      std::visit([&](const auto& field) { digest.add(field); }, fields[index]);
    }
    ASSERT_TRUE(seen.emplace(digest.finish(), list).second) << "list " << done << " collides";
    if (list.size() == 4) continue;
    for (std::size_t index = 0; index < fields.size(); ++index) {
      lists.push_back(list);
      lists.back().push_back(index);
    }
  }
  EXPECT_EQ(seen.size(), 1u + 9 + 81 + 729 + 6561);
}

}  // namespace
}  // namespace jitconv::cache
