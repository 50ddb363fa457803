// Why an entry is refused, in words: what somebody reads who wonders about a cache. entry_test.cpp shows that every
// damage is refused; here each check is the only one left that can see it.
#include <gtest/gtest.h>

#include <string>

#include "cache/entry.h"
#include "unit/cache/cache_test_support.h"

namespace jitconv::cache {
namespace {

constexpr std::size_t kDigestBytes = sizeof(Sha256);

std::string reason(const std::string& bytes) {
  const auto decoded = decode(bytes);
  const auto* failure = std::get_if<DecodeFailure>(&decoded);
  return failure ? failure->reason : "";
}

/// The bytes with a digest that fits them, as a program that is not jitconv could have left them.
std::string resealed(std::string bytes) {
  bytes.resize(bytes.size() - kDigestBytes);
  const Sha256 digest = sha256(bytes);
  return bytes.append(digest.begin(), digest.end());
}

TEST(EntryRefusal, AFileOfAnotherProgramWhoseDigestFits) {
  const std::string entry = encode(entry_of(1, 300));
  for (std::size_t at = 0; at < 8; ++at) {
    std::string bytes = entry;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x20);
    EXPECT_EQ(reason(resealed(bytes)), "not a jitconv cache entry") << "byte " << at;
  }
}

TEST(EntryRefusal, AFileShorterThanAnEntryCanBeSaysSo) {
  const std::string entry = encode(entry_of(1, 300));
  for (std::size_t length = 0; length < kHeaderBytes + kDigestBytes; ++length)
    EXPECT_EQ(reason(entry.substr(0, length)), "truncated: " + std::to_string(length) + " bytes");
}

// A header that promises no description, no metadata and no payload, and a file that ends in the middle of the digest.
TEST(EntryRefusal, AnEmptyEntryWithoutAllOfItsDigest) {
  Entry empty = entry_of(1, 300);
  empty.metadata.clear();
  empty.payload.clear();
  empty.description.clear();
  const std::string bytes = encode(empty);
  ASSERT_EQ(bytes.size(), kHeaderBytes + kDigestBytes);
  EXPECT_EQ(reason(bytes), "");
  EXPECT_EQ(reason(bytes.substr(0, bytes.size() - 1)), "truncated: " + std::to_string(bytes.size() - 1) + " bytes");
}

}  // namespace
}  // namespace jitconv::cache
