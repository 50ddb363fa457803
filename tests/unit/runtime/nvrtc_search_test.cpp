// Where NVRTC is looked for, with made-up directories and the fake library as the thing to find.
#include "runtime/nvrtc_search.h"

#include <dlfcn.h>
#include <elf.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

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

// In a process of its own: what is loaded may stay.
TEST(NvrtcSearchDeathTest, ALoadedLibraryIsTheOneToUse) {
  const auto load_and_search = [] {
    const TemporaryDirectory directory;
    const std::string loaded = place_library(directory.path() + "/loaded/libnvrtc.so.13");
    const std::string other = place_library(directory.path() + "/loader/libnvrtc.so.13");
    if (dlopen(loaded.c_str(), RTLD_NOW | RTLD_LOCAL) == nullptr) std::_Exit(1);
    const bool loaded_first = found_with({{"LD_LIBRARY_PATH", directory.path() + "/loader"}}) == loaded;
    const bool but_for_the_users_choice = found_with({{"JITCONV_NVRTC_PATH", other}}) == other;
    fs::remove_all(directory.path());
    std::_Exit(loaded_first && but_for_the_users_choice ? 0 : 2);
  };
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(load_and_search(), testing::ExitedWithCode(0), "");
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

/// The library without its last `missing` bytes.
void place_cut_library(const fs::path& path, std::size_t missing) {
  fs::create_directories(path.parent_path());
  fs::copy_file(JITCONV_FAKE_NVRTC, path);
  fs::resize_file(path, fs::file_size(path) - missing);
}

/// The error of a search that refuses what this machine has where every search looks.
std::string error_with(const Variables& variables) {
  std::vector<runtime::RefusedCompiler> refused;
  for (;;) {
    try {
      refused.push_back({runtime::search_compiler(environment_of(variables), refused).path, "refused by the test"});
    } catch (const CompileError& error) {
      EXPECT_EQ(error.code(), ErrorCode::compiler_missing);
      return error.what();
    }
  }
}

TEST(NvrtcSearch, PassesOverWhatCannotBeLoaded) {
  const TemporaryDirectory directory;
  const std::string root = directory.path();
  const auto machine_of = [](const fs::path& path, Elf64_Half machine) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(offsetof(Elf64_Ehdr, e_machine));
    file.write(reinterpret_cast<const char*>(&machine), sizeof machine);
  };
  place_cut_library(root + "/cut/libnvrtc.so.13", 1);
  place_cut_library(root + "/shorter/libnvrtc.so.13", fs::file_size(JITCONV_FAKE_NVRTC) - 5000);
  place_library(root + "/other/libnvrtc.so.13");
  machine_of(root + "/other/libnvrtc.so.13", EM_S390);
  write(root + "/text/libnvrtc.so.13", std::string(100, 'x'));
  const std::string old = place_library(root + "/old/libnvrtc.so.11.8.89");
  fs::create_symlink(old, root + "/old/libnvrtc.so.12");
  const std::string builtins = place_library(root + "/builtins/libnvrtc.so.13");
  place_cut_library(root + "/builtins/libnvrtc-builtins.so.13.0", 1);
  const std::string bad =
      root + "/cut:" + root + "/shorter:" + root + "/other:" + root + "/text:" + root + "/old:" + root + "/builtins";
  const std::string good = place_library(root + "/good/libnvrtc.so.12");
  EXPECT_EQ(found_with({{"LD_LIBRARY_PATH", bad + ":" + root + "/good"}}), good);

  // Named by the user, each is an error that says why.
  for (const auto& [path, reason] : std::map<std::string, std::string>{
           {"/cut", "libnvrtc.so.13: cut short"},
           {"/shorter/libnvrtc.so.13", "libnvrtc.so.13: cut short"},
           {"/other", "libnvrtc.so.13: made for machine 22, this is "},
           {"/text", "libnvrtc.so.13: not an ELF file"},
           {"/old", "libnvrtc.so.11.8.89: NVRTC 11.8 is too old, must be 12.0 or newer"},
           {"/builtins", "libnvrtc.so.13: libnvrtc-builtins.so.13.0 beside it: cut short"}}) {
    const std::string error = error_with({{"JITCONV_NVRTC_PATH", root + path}});
    EXPECT_NE(error.find("JITCONV_NVRTC_PATH is " + root + path + ", must be an NVRTC library"), std::string::npos);
    EXPECT_NE(error.find(reason), std::string::npos) << error;
  }
}

TEST(NvrtcSearch, PassesOverWhatCouldNotBeLoadedBefore) {
  const TemporaryDirectory directory;
  const std::string first = place_library(directory.path() + "/first/libnvrtc.so.13");
  const std::string second = place_library(directory.path() + "/second/libnvrtc.so.13");
  const Variables variables = {{"LD_LIBRARY_PATH", directory.path() + "/first:" + directory.path() + "/second"}};
  EXPECT_EQ(found_with(variables), first);
  EXPECT_EQ(runtime::search_compiler(environment_of(variables), {{first, "a symbol is missing"}}).path, second);
}

TEST(NvrtcSearch, TheErrorIsShortFirstAndNamesEveryPlaceOnce) {
  const TemporaryDirectory directory;
  const std::string root = directory.path();
  place_cut_library(root + "/cut/libnvrtc.so.13", 1);
  place_library(root + "/old/libnvrtc.so.11.2");
  fs::create_directory_symlink(root + "/old", root + "/alias");
  const std::string error = error_with({{"LD_LIBRARY_PATH", root + "/cut:" + root + "/old:" + root + "/alias:" + root +
                                                                "/old:" + root + "/none/../none:" + root + "/none"},
                                        {"CUDA_HOME", root + "/bad\x1b[31m"}});
  std::vector<std::string> lines;
  std::istringstream text(error);
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  EXPECT_EQ(lines.front(), "NVRTC was not found: jitconv needs libnvrtc.so.13 or libnvrtc.so.12");
  EXPECT_EQ(std::set<std::string>(lines.begin(), lines.end()).size(), lines.size()) << error;
  const auto has = [&lines](const std::string& line) {
    return std::find(lines.begin(), lines.end(), line) != lines.end();
  };
  const std::string real = fs::canonical(root);
  EXPECT_TRUE(has("    " + real + "/cut/libnvrtc.so.13: cut short")) << error;
  EXPECT_TRUE(has("    " + real + "/old/libnvrtc.so.11.2: NVRTC 11.2 is too old, must be 12.0 or newer")) << error;
  EXPECT_TRUE(has("    " + root + "/old") && !has("    " + root + "/alias")) << error;
  EXPECT_TRUE(has("    " + root + "/none/../none") && !has("    " + root + "/none")) << error;
  EXPECT_TRUE(has("    " + root + "/bad\\x1b[31m/lib64")) << error;
  EXPECT_NE(error.find("\n  what to install: a CUDA 12 or 13 toolkit, or the Python package nvidia-cuda-nvrtc"),
            std::string::npos);
}

// In a process of its own, where nothing is found or loaded yet.
TEST(NvrtcSearch, SaysThatNoFileCanBeOpened) {
  const TemporaryDirectory directory;
  const std::string library = place_library(directory.path() + "/libnvrtc.so.13");
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit none{0, limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const std::string defect = runtime::library_defect(library);
  std::string message;
  try {
    found_with({{"LD_LIBRARY_PATH", directory.path()}, {"HOME", directory.path()}});
  } catch (const CompileError& error) {
    message = error.what();
  }
  setrlimit(RLIMIT_NOFILE, &limit);
  EXPECT_EQ(defect, "it cannot be opened: Too many open files");
  EXPECT_EQ(message, "NVRTC cannot be looked for: Too many open files");
}

TEST(NvrtcSearchDeathTest, ALibraryThatTurnsOutTooOldDoesNotEndTheSearch) {
  const auto two_libraries = [] {
    const TemporaryDirectory directory;
    place_library(directory.path() + "/old/libnvrtc.so.13");
    const std::string good = place_library(directory.path() + "/good/libnvrtc.so.13");
    for (const char* variable : {"JITCONV_NVRTC_PATH", "VIRTUAL_ENV", "CONDA_PREFIX", "PATH", "HOME"})
      unsetenv(variable);
    setenv("FAKE_NVRTC_OLD", "/old/", 1);
    setenv("LD_LIBRARY_PATH", (directory.path() + "/old:" + directory.path() + "/good").c_str(), 1);
    const Kernel kernel = compile(new_spec(), parse_target("sm_90a"));
    const bool right = runtime::find_compiler().path == good && !kernel.image().empty();
    fs::remove_all(directory.path());
    std::_Exit(right ? 0 : 1);
  };
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(two_libraries(), testing::ExitedWithCode(0), "");
}

TEST(NvrtcSearchDeathTest, AnOldLibraryTheUserNamesIsAnError) {
  const auto old_library = [] {
    setenv("FAKE_NVRTC_OLD", "/", 1);
    try {
      compile(new_spec(), parse_target("sm_90a"));
      std::_Exit(1);
    } catch (const CompileError& error) {
      const bool says_why =
          std::string(error.what()).find("NVRTC 11.8 is too old, must be 12.0 or newer") != std::string::npos;
      std::_Exit(error.code() == ErrorCode::compiler_missing && says_why ? 0 : 2);
    }
  };
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(old_library(), testing::ExitedWithCode(0), "");
}

TEST(NvrtcSearchDeathTest, ALibraryCutShortAfterItWasFoundIsAnError) {
  const auto cut_late = [] {
    const TemporaryDirectory directory;
    const std::string path = place_library(directory.path() + "/libnvrtc.so.13");
    setenv("JITCONV_NVRTC_PATH", path.c_str(), 1);
    runtime::find_compiler();
    fs::resize_file(path, 5000);
    try {
      compile(new_spec(), parse_target("sm_90a"));
    } catch (const CompileError& error) {
      fs::remove_all(directory.path());
      std::_Exit(error.code() == ErrorCode::compiler_missing ? 0 : 2);
    }
    std::_Exit(1);
  };
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(cut_late(), testing::ExitedWithCode(0), "");
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
