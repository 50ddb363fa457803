// Where NVRTC is looked for, with made-up directories and the fake library as the thing to find.
#include "runtime/nvrtc_search.h"

#include <dlfcn.h>
#include <elf.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include "runtime/library_identity.h"
#include "runtime_test_support.h"

namespace jitconv::runtime_test {
namespace {

namespace fs = std::filesystem;
using Variables = std::map<std::string, std::string>;

runtime::Environment environment_of(const Variables& variables) {
  return [variables](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::string() : found->second;
  };
}

std::string place_library(const fs::path& path) {
  fs::create_directories(path.parent_path());
  fs::copy_file(JITCONV_FAKE_NVRTC, path);
  return fs::canonical(path);
}

void write(const fs::path& path, const std::string& bytes) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

std::string found_with(const Variables& variables) { return runtime::search_compiler(environment_of(variables)).path; }

TEST(NvrtcSearch, TheUsersChoiceIsALibraryOrADirectory) {
  const TemporaryDirectory directory;
  const std::string library = place_library(directory.path() + "/libnvrtc.so.12");
  EXPECT_EQ(found_with({{"JITCONV_NVRTC_PATH", library}}), library);
  EXPECT_EQ(found_with({{"JITCONV_NVRTC_PATH", directory.path()}}), library);
  const std::string newer = place_library(directory.path() + "/libnvrtc.so.13");
  EXPECT_EQ(found_with({{"JITCONV_NVRTC_PATH", directory.path()}}), newer);
  const std::string custom = place_library(directory.path() + "/my-nvrtc.so");
  EXPECT_EQ(found_with({{"JITCONV_NVRTC_PATH", custom}}), custom);
}

TEST(NvrtcSearch, TheUsersChoiceIsNotReplacedByAnother) {
  const TemporaryDirectory directory;
  place_library(directory.path() + "/good/libnvrtc.so.13");
  write(directory.path() + "/bad/libnvrtc.so.13", "no ELF file");
  for (const char* choice : {"/bad", "/bad/libnvrtc.so.13", "/missing"}) {
    try {
      found_with({{"JITCONV_NVRTC_PATH", directory.path() + choice}, {"LD_LIBRARY_PATH", directory.path() + "/good"}});
      FAIL() << choice;
    } catch (const CompileError& error) {
      EXPECT_EQ(error.code(), ErrorCode::compiler_missing);
      EXPECT_NE(std::string(error.what()).find("JITCONV_NVRTC_PATH"), std::string::npos);
      EXPECT_NE(std::string(error.what()).find(directory.path() + choice), std::string::npos) << error.what();
    }
  }
}

TEST(NvrtcSearch, PrefersWheelsThenTheLoaderPathThenToolkits) {
  const TemporaryDirectory directory;
  const std::string root = directory.path();
  const Variables all = {{"VIRTUAL_ENV", root + "/venv"},
                         {"PATH", root + "/nothing:" + root + "/prefix/bin"},
                         {"LD_LIBRARY_PATH", root + "/loader"},
                         {"CUDA_HOME", root + "/toolkit"}};
  const std::string toolkit = place_library(root + "/toolkit/lib64/libnvrtc.so.13");
  // A library of the system may come before the toolkit's.
  const std::string loader = place_library(root + "/loader/libnvrtc.so.12");
  EXPECT_EQ(found_with(all), loader);
  write(root + "/prefix/bin/python3", "");
  const std::string wheel =
      place_library(root + "/prefix/lib/python3.11/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12");
  EXPECT_EQ(found_with(all), wheel);
  const std::string environment =
      place_library(root + "/venv/lib/python3.12/site-packages/nvidia/cu13/lib/libnvrtc.so.13");
  EXPECT_EQ(found_with(all), environment);
}

TEST(NvrtcSearch, ALoadedLibraryIsTheOneToUse) {
  const TemporaryDirectory directory;
  const std::string loaded = place_library(directory.path() + "/loaded/libnvrtc.so.13");
  const std::string other = place_library(directory.path() + "/loader/libnvrtc.so.13");
  void* library = dlopen(loaded.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  EXPECT_EQ(found_with({{"LD_LIBRARY_PATH", directory.path() + "/loader"}}), loaded);
  EXPECT_EQ(found_with({{"JITCONV_NVRTC_PATH", other}}), other) << "but for an explicit choice";
  dlclose(library);
}

TEST(NvrtcSearch, VersionComesFromTheNameOrFromTheBuiltinsBesideIt) {
  const TemporaryDirectory directory;
  const std::string full = place_library(directory.path() + "/toolkit/libnvrtc.so.12.6.85");
  EXPECT_EQ(runtime::identify_compiler(full).version, "12.6");
  fs::create_symlink(full, directory.path() + "/toolkit/libnvrtc.so.12");
  EXPECT_EQ(runtime::identify_compiler(directory.path() + "/toolkit/libnvrtc.so.12").path, full);

  const std::string wheel = place_library(directory.path() + "/wheel/libnvrtc.so.13");
  EXPECT_EQ(runtime::identify_compiler(wheel).version, "13");
  EXPECT_EQ(runtime::builtins_beside(runtime::identify_compiler(wheel)), "");
  write(directory.path() + "/wheel/libnvrtc-builtins.so.13.1", "");
  write(directory.path() + "/wheel/libnvrtc-builtins.so.12.9", "");
  EXPECT_EQ(runtime::identify_compiler(wheel).version, "13.1");
  EXPECT_EQ(runtime::builtins_beside(runtime::identify_compiler(wheel)),
            fs::canonical(wheel).parent_path() / "libnvrtc-builtins.so.13.1");
}

TEST(LibraryIdentity, IsTheBuildIdOrADigest) {
  const std::string id = runtime::library_identity(JITCONV_FAKE_NVRTC);
  ASSERT_FALSE(id.empty());
  const TemporaryDirectory directory;
  const std::string copy = place_library(directory.path() + "/copy.so");
  EXPECT_EQ(runtime::library_identity(copy), id);

  // Without notes the bytes decide: an ELF header with no segments.
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof(header));
  write(directory.path() + "/plain", bytes);
  const std::string plain = runtime::library_identity(directory.path() + "/plain");
  EXPECT_EQ(plain.substr(0, 3), "64-");
  bytes.back() = 1;
  write(directory.path() + "/other", bytes);
  EXPECT_NE(runtime::library_identity(directory.path() + "/other"), plain);
}

TEST(LibraryIdentity, SurvivesDamagedFiles) {
  EXPECT_EQ(runtime::library_identity("/does/not/exist"), "");
  EXPECT_EQ(runtime::library_identity("/"), "");
  const TemporaryDirectory directory;
  std::ifstream file(JITCONV_FAKE_NVRTC, std::ios::binary);
  std::string bytes(1024, '\0');
  file.read(bytes.data(), 1024);
  for (std::size_t length = 0; length < bytes.size(); length += 29) {
    write(directory.path() + "/cut", bytes.substr(0, length));
    runtime::library_identity(directory.path() + "/cut");
  }
  for (std::size_t at = 16; at < 400; at += 3) {  // a sanitizer build is the judge
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(0xff);
    write(directory.path() + "/damaged", damaged);
    runtime::library_identity(directory.path() + "/damaged");
  }
}

}  // namespace
}  // namespace jitconv::runtime_test
