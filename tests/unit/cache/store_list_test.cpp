// What a store says of its entries: list(), which reads their beginnings, and verify(), which reads them whole.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>

#include "cache/store.h"
#include "unit/cache/cache_test_support.h"

namespace jitconv::cache {
namespace {

class StoreList : public ::testing::Test {
 protected:
  Store open() { return Store({root_, Mode::read_write, std::uint64_t{64} << 20}, warnings_.collector()); }

  ScratchDirectory scratch_;
  std::string root_ = scratch_ / "parent/cache";
  Warnings warnings_;
};

TEST_F(StoreList, ListAndVerifyReportEveryEntry) {
  Store store = open();
  for (std::uint64_t i = 0; i < 20; ++i) ASSERT_TRUE(store.save(entry_of(i)));
  write_file(entry_path(root_, key_of(3)), "damaged");
  write_file(entry_path(root_, key_of(4)), encode(entry_of(5)));
  set_age(entry_path(root_, key_of(6)), std::chrono::hours(10));

  const auto listed = store.list();
  ASSERT_EQ(listed.size(), 20u);
  for (std::size_t i = 0; i < listed.size(); ++i) {
    EXPECT_EQ(root_ + "/" + listed[i].path, entry_path(root_, key_of(0)).substr(0, root_.size() + 4) +
                                                listed[i].key.substr(0, 2) + "/" + listed[i].key);
    const bool damaged = listed[i].key == key_of(3).hex() || listed[i].key == key_of(4).hex();
    EXPECT_EQ(listed[i].problem.has_value(), damaged) << listed[i].key;
    if (!damaged) {
      const std::uint64_t number = std::stoull(listed[i].entry.value().description.at(0).value);
      EXPECT_EQ(listed[i].key, key_of(number).hex());
      EXPECT_EQ(listed[i].entry->description, entry_of(number).description);
      EXPECT_EQ(listed[i].entry->metadata_bytes, entry_of(number).metadata.size());
      EXPECT_EQ(listed[i].entry->payload_bytes, 1000u);
    }
    if (i > 0) {
      EXPECT_LT(listed[i - 1].path, listed[i].path);
    }
  }
  for (const FileReport& report : store.verify()) {
    const std::string path = root_ + "/" + report.path;
    EXPECT_EQ(report.bytes, std::filesystem::file_size(path));
    if (report.key == key_of(3).hex()) {
      EXPECT_EQ(report.problem, "truncated: 7 bytes");
    } else if (report.key == key_of(4).hex()) {
      EXPECT_EQ(report.problem, "is the entry of key " + key_of(5).hex());
    } else {
      EXPECT_EQ(report.problem, std::nullopt) << *report.problem;
    }
    const auto now =
        std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch());
    const std::int64_t age = now.count() - report.modified_unix_s;
    EXPECT_NEAR(static_cast<double>(age), report.key == key_of(6).hex() ? 36000.0 : 0.0, 60.0);
  }
  EXPECT_TRUE(std::filesystem::exists(entry_path(root_, key_of(3)))) << "verify removes nothing";
  EXPECT_EQ(store.statistics().misses, 0u);
}

// List reads the start of a file only; what is wrong further on takes verify.
TEST_F(StoreList, ListSeesDamageAtTheStartAndVerifyEverywhere) {
  Store store = open();
  for (std::uint64_t i = 1; i <= 2; ++i) ASSERT_TRUE(store.save(entry_of(i, 5000)));
  const auto flip = [&](std::uint64_t number, std::size_t at) {
    std::string bytes = encode(entry_of(number, 5000));
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
    write_file(entry_path(root_, key_of(number)), bytes);
  };
  flip(1, 4000);
  flip(2, kHeaderBytes);
  const auto listed = store.list(key_of(1).hex().substr(0, 20));
  ASSERT_EQ(listed.size(), 1u) << "the other has another prefix";
  EXPECT_EQ(listed[0].problem, std::nullopt);
  const auto verified = store.verify(key_of(1).hex());
  ASSERT_EQ(verified.size(), 1u);
  EXPECT_EQ(verified[0].problem, "SHA-256 does not match");
  ASSERT_TRUE(verified[0].entry.has_value()) << "what the start says may help to find out what it was";
  EXPECT_EQ(verified[0].entry->description, entry_of(1).description);

  const auto other = store.list(key_of(2).hex());
  ASSERT_EQ(other.size(), 1u);
  EXPECT_EQ(other[0].problem, "the description is not a list of names and values");
  EXPECT_EQ(store.verify(key_of(2).hex())[0].problem, "SHA-256 does not match");
  EXPECT_TRUE(store.list("zz").empty());
}

TEST_F(StoreList, AnEntryWithTooLongADescriptionIsNotStored) {
  Store store = open();
  Entry entry = entry_of(1);
  entry.description = {{"long", std::string(kMaxDescriptionBytes, 'x')}};
  EXPECT_FALSE(store.save(entry));
  EXPECT_TRUE(store.list().empty());
}

}  // namespace
}  // namespace jitconv::cache
