// Every field of KeyInputs reaches the key, nothing else does, and the key of schema 1 stays what it is.
#include "cache/key.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>

namespace jitconv::cache {
namespace {

KeyInputs example() {
  return {"sm_90a",
          "13.0",
          "build-id 0123abcd",
          {"--std=c++17", "--no-cache", "--gpu-architecture=sm_90a"},
          "fingerprint",
          "extern \"C\" __global__ void kernel() {}\n"};
}

// If this fails, the framing of keys changed: raise kSchema and run make_golden.py, which computes it independently.
TEST(Key, IsTheGoldenOneOfThisSchema) {
  ASSERT_EQ(kSchema, 2u);
  EXPECT_EQ(make_key(example()).hex(), "eeb9d5ec6979cc2243a5b10953b3b088c390b8032bb97370d921e1fdeb8b2cfa");
}

TEST(Key, IsTheSameForTheSameInputs) { EXPECT_EQ(make_key(example()), make_key(example())); }

TEST(Key, EveryChangeOfAFieldChangesIt) {
  const std::map<std::string, std::function<void(KeyInputs&)>> changes = {
      {"target", [](KeyInputs& k) { k.target = "sm_90"; }},
      {"compiler_version", [](KeyInputs& k) { k.compiler_version = "13.1"; }},
      {"compiler_identity", [](KeyInputs& k) { k.compiler_identity += "e"; }},
      {"option added", [](KeyInputs& k) { k.options.push_back("-lineinfo"); }},
      {"empty option added", [](KeyInputs& k) { k.options.push_back(""); }},
      {"option repeated", [](KeyInputs& k) { k.options.push_back(k.options[0]); }},
      {"option removed", [](KeyInputs& k) { k.options.pop_back(); }},
      {"option changed", [](KeyInputs& k) { k.options[0] = "--std=c++20"; }},
      {"options joined",
       [](KeyInputs& k) {
         k.options = {k.options[0] + k.options[1], k.options[2]};
       }},
      {"generator_fingerprint", [](KeyInputs& k) { k.generator_fingerprint += "2"; }},
      {"source", [](KeyInputs& k) { k.source += "\n"; }},
      {"source emptied", [](KeyInputs& k) { k.source.clear(); }},
      {"text moved from source to fingerprint",
       [](KeyInputs& k) {
         k.generator_fingerprint += k.source[0];
         k.source.erase(0, 1);
       }},
      {"text moved from version to target",
       [](KeyInputs& k) {
         k.target += k.compiler_version;
         k.compiler_version.clear();
       }},
      {"last option moved to the fingerprint",
       [](KeyInputs& k) {
         k.generator_fingerprint = k.options.back();
         k.options.pop_back();
       }},
      {"fields swapped", [](KeyInputs& k) { std::swap(k.generator_fingerprint, k.compiler_identity); }},
  };
  std::map<Sha256, std::string> seen = {{make_key(example()).digest, "unchanged"}};
  for (const auto& [name, change] : changes) {
    KeyInputs inputs = example();
    change(inputs);
    const auto [position, fresh] = seen.emplace(make_key(inputs).digest, name);
    EXPECT_TRUE(fresh) << name << " gives the key of " << position->second;
  }
}

TEST(Key, EveryByteOfTheSourceCounts) {
  const KeyInputs original = example();
  std::map<Sha256, std::size_t> seen = {{make_key(original).digest, original.source.size()}};
  for (std::size_t i = 0; i < original.source.size(); ++i) {
    KeyInputs inputs = original;
    inputs.source[i] = static_cast<char>(inputs.source[i] ^ 1);
    EXPECT_TRUE(seen.emplace(make_key(inputs).digest, i).second) << "byte " << i;
  }
}

TEST(Key, TheOrderOfOptionsDoesNotCount) {
  KeyInputs inputs = example();
  const Key key = make_key(inputs);
  std::sort(inputs.options.begin(), inputs.options.end());
  do {
    EXPECT_EQ(make_key(inputs), key);
  } while (std::next_permutation(inputs.options.begin(), inputs.options.end()));
}

TEST(Key, HexHas64LowerCaseDigits) {
  const std::string hex = make_key(example()).hex();
  EXPECT_EQ(hex.size(), 64u);
  EXPECT_EQ(hex.find_first_not_of("0123456789abcdef"), std::string::npos);
}

}  // namespace
}  // namespace jitconv::cache
