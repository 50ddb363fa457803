// The directories of nvrtc_places.h. Reads the environment and directories; opens no library.
#include "runtime/nvrtc_places.h"

#include <dirent.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <memory>
#include <new>
#include <set>
#include <system_error>

#include "jitconv/error.h"

namespace jitconv::runtime {
namespace {

namespace fs = std::filesystem;
using Paths = std::vector<fs::path>;

void split(const std::string& list, Paths& into) {
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t end = std::min(list.find(':', at), list.size());
    if (end > at) into.emplace_back(list.substr(at, end - at));
    at = end + 1;
  }
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

}  // namespace

Paths nvrtc_directories(const Environment& environment) {
  Paths directories;
  add_wheel_directories(environment, directories);
  add_loader_directories(environment, directories);
  add_toolkit_directories(environment, directories);
  return directories;
}

Paths without_repetitions(const Paths& directories) {
  Paths once;
  std::set<fs::path> seen;
  for (const fs::path& directory : directories) {
    std::error_code absent;
    const fs::path resolved = fs::canonical(directory, absent);
    if (seen.insert(absent ? directory.lexically_normal() : resolved).second) once.push_back(directory);
  }
  return once;
}

// Not with std::filesystem's iterators: they end the program when memory for a name is short.
Paths entries_of(const fs::path& directory, std::string_view prefix) {
  Paths found;
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(::opendir(directory.c_str()), ::closedir);
  if (listing == nullptr && errno == ENOMEM) throw std::bad_alloc();
  if (listing == nullptr && (errno == EMFILE || errno == ENFILE))
    throw CompileError(ErrorCode::compiler_missing,
                       "NVRTC cannot be looked for: " + std::generic_category().message(errno));
  if (listing == nullptr) return found;
  while (const dirent* entry = ::readdir(listing.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != ".." && name.starts_with(prefix)) found.push_back(directory / name);
  }
  std::sort(found.begin(), found.end(), std::greater<>());  // readdir gives them in no order
  return found;
}

}  // namespace jitconv::runtime
