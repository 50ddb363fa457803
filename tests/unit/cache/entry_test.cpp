// The entry format: what is written comes back, and nothing that differs from it by a bit does.
#include "cache/entry.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "unit/cache/cache_test_support.h"

namespace jitconv::cache {
namespace {

std::string reason(const std::variant<Entry, DecodeFailure>& decoded) {
  const auto* failure = std::get_if<DecodeFailure>(&decoded);
  return failure ? failure->reason : "";
}

void put_number(std::string& bytes, std::size_t offset, std::uint64_t number) {
  for (std::size_t i = 0; i < 8; ++i) bytes[offset + i] = static_cast<char>((number >> (8 * i)) & 0xff);
}

/// The bytes with a digest that fits them, as a writer with other ideas would have left them.
std::string sealed(std::string bytes) {
  bytes.resize(bytes.size() - 32);
  const Sha256 digest = sha256(bytes);
  return bytes.append(digest.begin(), digest.end());
}

constexpr std::size_t kSchemaAt = 8, kKindAt = 48, kDescriptionLengthAt = 56, kMetadataLengthAt = 64,
                      kPayloadLengthAt = 72;

TEST(Entry, RoundTrips) {
  for (const auto kind : {EntryKind::cubin, EntryKind::ptx, EntryKind::host, EntryKind::choice}) {
    for (const std::string& metadata : {std::string(), std::string("log\n"), std::string(5000, '\0')}) {
      for (const std::string& payload : {std::string(),
                                         std::string("\0\x7f"
                                                     "ELF",
                                                     5),
                                         payload_of(1, 100'000)}) {
        for (const std::vector<Property>& description :
             {std::vector<Property>(), {{"", ""}}, {{"spec", "input=1,2,3,4"}, {"options", std::string(3000, '\0')}}}) {
          const Entry entry{key_of(3), kind, metadata, payload, description};
          const std::string bytes = encode(entry);
          EXPECT_EQ(bytes.size(), encoded_bytes(entry));
          ASSERT_EQ(reason(decode(bytes, entry.key)), "");
          EXPECT_EQ(std::get<Entry>(decode(bytes, entry.key)), entry);
          EXPECT_EQ(std::get<Entry>(decode(bytes)), entry);
        }
      }
    }
  }
}

// If this fails, the layout changed: raise kSchema, run make_golden.py, and keep the old file, which must then be
// refused.
TEST(Entry, IsTheGoldenOneOfThisSchema) {
  const std::string folder = JITCONV_TEST_DATA "/unit/cache/entry_v";
  const std::string golden = read_file(folder + std::to_string(kSchema) + ".bin");
  ASSERT_FALSE(golden.empty()) << "no golden entry of schema " << kSchema;
  std::string payload;
  for (int i = 0; i < 256; ++i) payload += static_cast<char>(i);
  const KeyInputs inputs{"sm_90a",
                         "13.0",
                         "build-id 0123abcd",
                         {"--std=c++17", "--no-cache", "--gpu-architecture=sm_90a"},
                         "fingerprint",
                         "extern \"C\" __global__ void kernel() {}\n"};
  const Entry entry{make_key(inputs),
                    EntryKind::ptx,
                    "ptxas info: Used 168 registers\n",
                    payload +
                        "\x7f"
                        "ELF",
                    {{"target", "sm_90a"}, {"empty", ""}}};
  EXPECT_EQ(encode(entry), golden);
  ASSERT_EQ(reason(decode(golden, entry.key)), "");
  EXPECT_EQ(std::get<Entry>(decode(golden, entry.key)), entry);
  for (std::uint64_t schema = 1; schema < kSchema; ++schema) {
    const std::string old = read_file(folder + std::to_string(schema) + ".bin");
    ASSERT_FALSE(old.empty()) << "no golden entry of schema " << schema;
    EXPECT_NE(reason(decode(old)), "") << "schema " << schema;
  }
}

TEST(Entry, EveryTruncationIsRefused) {
  const Entry entry = entry_of(1, 300);
  const std::string bytes = encode(entry);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    ASSERT_NE(reason(decode(std::string_view(bytes).substr(0, size), entry.key)), "") << size;
  }
}

TEST(Entry, EveryExtensionIsRefused) {
  const Entry entry = entry_of(1, 300);
  for (std::size_t more = 1; more < 100; ++more) {
    ASSERT_NE(reason(decode(encode(entry) + std::string(more, '\0'), entry.key)), "") << more;
  }
}

TEST(Entry, EveryFlippedBitIsRefused) {
  const Entry entry = entry_of(1, 300);
  std::string bytes = encode(entry);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      bytes[i] = static_cast<char>(bytes[i] ^ (1 << bit));
      ASSERT_NE(reason(decode(bytes, entry.key)), "") << "byte " << i << " bit " << bit;
      ASSERT_NE(reason(decode(bytes)), "") << "byte " << i << " bit " << bit;
      bytes[i] = static_cast<char>(bytes[i] ^ (1 << bit));
    }
  }
  EXPECT_EQ(reason(decode(bytes, entry.key)), "");
}

// What a crash leaves when the length reached the disk and the data did not.
TEST(Entry, EveryZeroFilledTailIsRefused) {
  const Entry entry = entry_of(1, 300);
  const std::string bytes = encode(entry);
  for (std::size_t from = 0; from < bytes.size(); ++from) {
    const std::string damaged = bytes.substr(0, from) + std::string(bytes.size() - from, '\0');
    if (damaged == bytes) continue;
    ASSERT_NE(reason(decode(damaged, entry.key)), "") << from;
  }
}

TEST(Entry, TheEntryOfAnotherKeyIsRefused) {
  const std::string bytes = encode(entry_of(1));
  EXPECT_EQ(reason(decode(bytes, key_of(2))), "is the entry of key " + key_of(1).hex());
  EXPECT_EQ(reason(decode(bytes)), "");
}

TEST(Entry, OtherSchemasAreRefusedEvenIfWhole) {
  for (const std::uint64_t schema : {std::uint64_t{0}, kSchema + 1, kSchema + (std::uint64_t{1} << 32), ~kSchema}) {
    std::string bytes = encode(entry_of(1));
    put_number(bytes, kSchemaAt, schema);
    EXPECT_EQ(reason(decode(sealed(bytes))), "schema " + std::to_string(schema) + ", not " + std::to_string(kSchema));
  }
}

TEST(Entry, UnknownKindsAreRefusedEvenIfWhole) {
  for (const std::uint64_t kind : {std::uint64_t{0}, std::uint64_t{5}, (std::uint64_t{1} << 32) + 1}) {
    std::string bytes = encode(entry_of(1));
    put_number(bytes, kKindAt, kind);
    EXPECT_EQ(reason(decode(sealed(bytes))), "unknown kind " + std::to_string(kind));
  }
}

TEST(Entry, ClaimedLengthsMustAddUpToTheFile) {
  const Entry entry = entry_of(1, 300);
  const std::uint64_t metadata = entry.metadata.size(), payload = entry.payload.size();
  const std::uint64_t description = encoded_bytes(entry) - kHeaderBytes - metadata - payload - sizeof(Sha256);
  const std::uint64_t huge = std::uint64_t{1} << 60, all = ~std::uint64_t{0};
  const std::array<std::uint64_t, 3> claims[] = {
      {description, metadata, huge},
      {description, huge, payload},
      {huge, metadata, payload},
      {description, metadata, payload + 1},
      {description, metadata + 1, payload},
      {description + 1, metadata, payload},
      // Sums that are right modulo 2^64 only.
      {description, all, metadata + payload + 1},
      {description, metadata + payload + 1, all},
      {all, metadata, payload + description + 1},
      {description, std::uint64_t{0} - huge, metadata + payload + huge},
      {std::uint64_t{0} - huge, metadata + description + huge, payload},
  };
  for (const auto& claim : claims) {
    std::string bytes = encode(entry);
    put_number(bytes, kDescriptionLengthAt, claim[0]);
    put_number(bytes, kMetadataLengthAt, claim[1]);
    put_number(bytes, kPayloadLengthAt, claim[2]);
    EXPECT_EQ(reason(decode(sealed(bytes), entry.key)).substr(0, 6), "claims")
        << claim[0] << " " << claim[1] << " " << claim[2];
  }
}

TEST(Entry, ADescriptionThatIsNoListOfNamesAndValuesIsRefused) {
  Entry entry = entry_of(1, 300);
  entry.description = {{"name", "value"}};  // 8 + 4 + 8 + 5 bytes
  const std::string bytes = encode(entry);
  const std::uint64_t all = ~std::uint64_t{0};
  for (const std::uint64_t length : {std::uint64_t{3}, std::uint64_t{5}, std::uint64_t{17}, std::uint64_t{18}, all}) {
    std::string damaged = bytes;
    put_number(damaged, kHeaderBytes, length);
    EXPECT_EQ(reason(decode(sealed(damaged))), "the description is not a list of names and values") << length;
  }
  for (const std::uint64_t length : {std::uint64_t{4}, std::uint64_t{6}, all}) {
    std::string damaged = bytes;
    put_number(damaged, kHeaderBytes + 12, length);
    EXPECT_EQ(reason(decode(sealed(damaged))), "the description is not a list of names and values") << length;
  }
  // A name without a value.
  std::string cut = bytes;
  put_number(cut, kDescriptionLengthAt, 12);
  put_number(cut, kMetadataLengthAt, entry.metadata.size() + 13);
  EXPECT_EQ(reason(decode(sealed(cut))), "the description is not a list of names and values");
}

TEST(Entry, ADescriptionLongerThanAnyIsRefusedByTheHeader) {
  Entry entry = entry_of(1, 300);
  entry.description = {{"long", std::string(kMaxDescriptionBytes - 20, 'x')}};
  EXPECT_TRUE(fits_format(entry));
  EXPECT_EQ(reason(decode(encode(entry))), "");
  entry.description[0].value += 'x';
  EXPECT_FALSE(fits_format(entry));
  const auto failure = check_header(encode(entry).substr(0, kHeaderBytes), encoded_bytes(entry));
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->reason, "65537 bytes of description, more than an entry can have");
}

TEST(Entry, AFileLargerThanAnyEntryIsRefusedByItsSize) {
  std::string header = encode(entry_of(1)).substr(0, kHeaderBytes);
  const std::uint64_t size = kMaxEntryBytes + 1;
  put_number(header, kDescriptionLengthAt, 0);
  put_number(header, kMetadataLengthAt, 0);
  put_number(header, kPayloadLengthAt, size - kHeaderBytes - 32);
  ASSERT_TRUE(check_header(header, size).has_value());
  put_number(header, kPayloadLengthAt, kMaxEntryBytes - kHeaderBytes - 32);
  EXPECT_FALSE(check_header(header, kMaxEntryBytes).has_value());
}

TEST(Entry, MovingTheBorderOfMetadataAndPayloadIsRefused) {
  std::string bytes = encode(entry_of(1, 300));
  put_number(bytes, kMetadataLengthAt, 0);
  put_number(bytes, kPayloadLengthAt, entry_of(1, 300).metadata.size() + 300);
  EXPECT_EQ(reason(decode(bytes)), "SHA-256 does not match");
}

}  // namespace
}  // namespace jitconv::cache
