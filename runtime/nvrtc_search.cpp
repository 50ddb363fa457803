// The search for NVRTC: a list of directories in order of preference, built from the environment, then the first
// versioned library in one of them. Files are looked at, never loaded, but for the last resort of asking the loader.
#include "runtime/nvrtc_search.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <optional>
#include <vector>

#include "jitconv/error.h"
#include "runtime/env.h"
#include "runtime/fork_guard.h"
#include "runtime/library_identity.h"
#include "runtime/log.h"

namespace jitconv::runtime {
namespace {

namespace fs = std::filesystem;

// Versions whose interface and option set this was written for; newest first.
constexpr std::array<const char*, 2> kLibraryNames = {"libnvrtc.so.13", "libnvrtc.so.12"};

using Paths = std::vector<fs::path>;

Paths entries_of(const fs::path& directory, std::string_view prefix) {
  Paths found;
  std::error_code ignored;
  for (fs::directory_iterator it(directory, ignored), end; !ignored && it != end; it.increment(ignored)) {
    if (it->path().filename().string().starts_with(prefix)) found.push_back(it->path());
  }
  std::sort(found.begin(), found.end(), std::greater<>());  // the order of a directory is nobody's choice
  return found;
}

void split(const std::string& list, Paths& into) {
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t end = std::min(list.find(':', at), list.size());
    if (end > at) into.emplace_back(list.substr(at, end - at));
    at = end + 1;
  }
}

std::string already_loaded() {
  std::string path;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* out) {
        const std::string_view name = info->dlpi_name == nullptr ? "" : info->dlpi_name;
        const std::string_view file = name.substr(name.rfind('/') + 1);
        if (std::none_of(kLibraryNames.begin(), kLibraryNames.end(),
                         [file](const char* library) { return file.starts_with(library); })) {
          return 0;
        }
        *static_cast<std::string*>(out) = name;
        return 1;
      },
      &path);
  return path;
}

/// Installation prefixes of the Pythons a user may mean: the one running, an activated environment, python3 on PATH,
/// and packages installed for the user alone.
Paths python_prefixes(const Environment& environment) {
  Paths prefixes;
  std::error_code ignored;
  const fs::path self = fs::read_symlink("/proc/self/exe", ignored);
  if (self.filename().string().starts_with("python")) prefixes.push_back(self.parent_path().parent_path());
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    if (const std::string value = environment(name); !value.empty()) prefixes.emplace_back(value);
  }
  Paths path;
  split(environment("PATH"), path);
  for (const fs::path& directory : path) {
    const fs::path python = directory / "python3";
    if (!fs::exists(python, ignored)) continue;
    prefixes.push_back(directory.parent_path());  // an environment's own prefix, before its link is followed
    prefixes.push_back(fs::canonical(python, ignored).parent_path().parent_path());
    break;
  }
  if (const std::string home = environment("HOME"); !home.empty()) prefixes.emplace_back(home + "/.local");
  return prefixes;
}

void add_wheel_directories(const Environment& environment, Paths& into) {
  for (const fs::path& prefix : python_prefixes(environment)) {
    for (const char* library : {"lib", "lib64", "local/lib"}) {
      for (const fs::path& python : entries_of(prefix / library, "python3")) {
        for (const char* packages : {"site-packages", "dist-packages"}) {
          const fs::path nvidia = python / packages / "nvidia";
          into.push_back(nvidia / "cu13/lib");
          into.push_back(nvidia / "cuda_nvrtc/lib");
        }
      }
    }
  }
  if (const std::string conda = environment("CONDA_PREFIX"); !conda.empty()) into.push_back(fs::path(conda) / "lib");
}

void add_loader_directories(const Environment& environment, Paths& into) {
  split(environment("LD_LIBRARY_PATH"), into);
  for (const fs::path& file : entries_of("/etc/ld.so.conf.d", "")) {
    std::ifstream lines(file);
    for (std::string line; std::getline(lines, line);) {
      line.erase(std::min(line.find_first_of("# \t\r"), line.size()));
      if (line.starts_with('/')) into.emplace_back(line);
    }
  }
  for (const char* directory : {"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu",
                                "/usr/lib/aarch64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib"}) {
    into.emplace_back(directory);
  }
}

void add_toolkit_directories(const Environment& environment, Paths& into) {
  Paths roots;
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const std::string value = environment(name); !value.empty()) roots.emplace_back(value);
  }
  roots.emplace_back("/usr/local/cuda");
  for (const fs::path& root : roots) {
    for (const char* library : {"lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"}) {
      into.push_back(root / library);
    }
  }
}

bool is_library(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) && !library_identity(path).empty();
}

std::optional<fs::path> library_in(const fs::path& directory) {
  for (const char* name : kLibraryNames) {
    if (is_library(directory / name)) return directory / name;
  }
  return std::nullopt;
}

[[noreturn]] void throw_missing(const std::string& what, const Paths& tried) {
  std::string places;
  for (const fs::path& place : tried) places += "\n  " + place.string();
  throw CompileError(ErrorCode::compiler_missing,
                     fmt::format("{}: looked for {} in{}", what, fmt::join(kLibraryNames, " and "), places));
}

/// A user who names a library does not want another one.
CompilerIdentity named_by_user(const std::string& path) {
  if (is_library(path)) return identify_compiler(path);
  if (const auto library = library_in(path)) return identify_compiler(*library);
  throw_missing("JITCONV_NVRTC_PATH names neither an NVRTC library nor a directory with one", {path});
}

/// Finds what only the loader knows of: a run path of the program, a loader with a configuration of its own.
std::string ask_the_loader() {
  for (const char* name : kLibraryNames) {
    link_map* map = nullptr;
    void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr && dlinfo(library, RTLD_DI_LINKMAP, &map) == 0) return map->l_name;
  }
  return {};
}

/// Digits and dots at the start of `text`, at most two numbers: "12.6" of "12.6.85".
std::string major_minor(std::string_view text) {
  std::size_t end = 0, dots = 0;
  for (; end < text.size(); ++end) {
    if (text[end] == '.' && (++dots == 2 || end == 0)) break;
    if (text[end] != '.' && (text[end] < '0' || text[end] > '9')) break;
  }
  while (end > 0 && text[end - 1] == '.') --end;
  return std::string(text.substr(0, end));
}

std::string version_after(const std::string& name, std::string_view prefix) {
  return name.starts_with(prefix) ? major_minor(std::string_view(name).substr(prefix.size())) : std::string();
}

/// From the file's name, "libnvrtc.so.12.6.85"; where that has only a major version, as in wheels, from the builtins
/// library beside it, which NVRTC itself looks for by its minor version.
std::string version_of(const fs::path& path) {
  const std::string version = version_after(path.filename().string(), "libnvrtc.so.");
  if (version.find('.') != std::string::npos) return version;
  std::vector<std::string> minor_versions;
  for (const fs::path& builtins : entries_of(path.parent_path(), "libnvrtc-builtins.so.")) {
    const std::string found = version_after(builtins.filename().string(), "libnvrtc-builtins.so.");
    if (found.starts_with(version + ".")) minor_versions.push_back(found);
  }
  std::sort(minor_versions.begin(), minor_versions.end());
  minor_versions.erase(std::unique(minor_versions.begin(), minor_versions.end()), minor_versions.end());
  return minor_versions.size() == 1 ? minor_versions.front() : version;
}

std::mutex found_mutex;
const CompilerIdentity* found_compiler = nullptr;  // never freed: callers keep the reference

}  // namespace

CompilerIdentity identify_compiler(const std::string& path) {
  std::error_code ignored;
  const fs::path resolved = fs::canonical(path, ignored);
  const fs::path& file = resolved.empty() ? fs::path(path) : resolved;
  return {file.string(), version_of(file), library_identity(file)};
}

std::string builtins_beside(const CompilerIdentity& compiler) {
  const std::string name = "libnvrtc-builtins.so." + compiler.version;
  const Paths found = entries_of(fs::path(compiler.path).parent_path(), name);
  return found.empty() ? std::string() : found.back().string();
}

CompilerIdentity search_compiler(const Environment& environment) {
  if (const std::string named = environment("JITCONV_NVRTC_PATH"); !named.empty()) return named_by_user(named);
  if (const std::string loaded = already_loaded(); !loaded.empty()) return identify_compiler(loaded);
  Paths directories;
  add_wheel_directories(environment, directories);
  add_loader_directories(environment, directories);
  add_toolkit_directories(environment, directories);
  for (const fs::path& directory : directories) {
    if (const auto library = library_in(directory)) return identify_compiler(*library);
  }
  if (const std::string path = ask_the_loader(); !path.empty()) return identify_compiler(path);
  throw_missing(
      "NVRTC not found; install a CUDA 12 or 13 toolkit, or the Python package nvidia-cuda-nvrtc, or set "
      "JITCONV_NVRTC_PATH",
      directories);
}

const CompilerIdentity& find_compiler() {
  refuse_after_fork();
  const std::lock_guard lock(found_mutex);
  if (found_compiler == nullptr) {
    found_compiler = new CompilerIdentity(search_compiler([](const char* name) { return environment(name); }));
    log(LogLevel::info, fmt::format("NVRTC {} at {}", found_compiler->version, found_compiler->path));
  }
  return *found_compiler;
}

void correct_compiler(const CompilerIdentity& loaded) {
  const std::lock_guard lock(found_mutex);
  found_compiler = new CompilerIdentity(loaded);
}

}  // namespace jitconv::runtime
