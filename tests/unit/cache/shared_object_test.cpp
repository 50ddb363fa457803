// Which bytes can be given to the loader: a whole library, and not one that is cut short anywhere.
#include "cache/shared_object.h"

#include <dlfcn.h>
#include <elf.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <fstream>
#include <sstream>

namespace jitconv::cache {
namespace {

/// The C library, a shared object that every program here has.
const std::string& library() {
  static const std::string bytes = [] {
    Dl_info info{};
    void* const symbol = dlsym(RTLD_DEFAULT, "memcpy");
    if (symbol == nullptr || dladdr(symbol, &info) == 0) return std::string();
    std::stringstream text;
    text << std::ifstream(info.dli_fname, std::ios::binary).rdbuf();
    return text.str();
  }();
  return bytes;
}

template <typename Field>
std::string with(std::size_t offset, Field value) {
  std::string bytes = library();
  std::memcpy(bytes.data() + offset, &value, sizeof value);
  return bytes;
}

TEST(SharedObject, AWholeOneHasNoDefect) {
  ASSERT_GT(library().size(), 1000u);
  EXPECT_EQ(defect_of_shared_object(library()), "");
}

TEST(SharedObject, OneCutShortAnywhereHas) {
  const std::string_view whole = library();
  for (const std::size_t size :
       {std::size_t{64}, std::size_t{100}, std::size_t{1000}, whole.size() / 2, whole.size() - 1})
    EXPECT_EQ(defect_of_shared_object(whole.substr(0, size)), "cut short") << size;
  EXPECT_EQ(defect_of_shared_object(whole.substr(0, 63)), "it has 63 bytes");
  EXPECT_EQ(defect_of_shared_object(""), "it has 0 bytes");
}

TEST(SharedObject, OtherFilesHave) {
  EXPECT_EQ(defect_of_shared_object(std::string(500, 'x')), "not an ELF file");
  EXPECT_EQ(defect_of_shared_object(with(EI_CLASS, std::uint8_t{ELFCLASS32})), "not a 64-bit little-endian ELF file");
  EXPECT_EQ(defect_of_shared_object(with(offsetof(Elf64_Ehdr, e_type), Elf64_Half{ET_REL})),
            "an ELF file of type 1, must be a shared object");
  EXPECT_EQ(defect_of_shared_object(with(offsetof(Elf64_Ehdr, e_machine), Elf64_Half{EM_S390})).substr(0, 19),
            "made for machine 22");
  EXPECT_EQ(defect_of_shared_object(with(offsetof(Elf64_Ehdr, e_phnum), Elf64_Half{0})), "it has no program headers");
}

TEST(SharedObject, PlacesBeyondTheFileAreNotReached) {
  constexpr std::uint64_t kFar = ~std::uint64_t{0} - 8;
  EXPECT_EQ(defect_of_shared_object(with(offsetof(Elf64_Ehdr, e_phoff), kFar)), "cut short");
  EXPECT_EQ(defect_of_shared_object(with(offsetof(Elf64_Ehdr, e_shoff), kFar)), "cut short");
  Elf64_Ehdr header;
  std::memcpy(&header, library().data(), sizeof header);
  EXPECT_EQ(defect_of_shared_object(with(header.e_phoff + offsetof(Elf64_Phdr, p_filesz), kFar)), "cut short");
  EXPECT_EQ(defect_of_shared_object(with(header.e_phoff + offsetof(Elf64_Phdr, p_offset), kFar)), "cut short");
}

TEST(SharedObject, AFileThatCannotBeReadHas) {
  const auto nothing = [](std::uint64_t, void*, std::size_t) { return false; };
  EXPECT_EQ(defect_of_shared_object(1000, nothing), "it cannot be read");
}

}  // namespace
}  // namespace jitconv::cache
