// The search for NVRTC: the first library in the directories of nvrtc_places.h that can be loaded and is new enough.
// Files are looked at, never loaded, but for the last resort of asking the loader.
#include "runtime/nvrtc_search.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <list>
#include <mutex>
#include <optional>

#include "cache/printable.h"
#include "jitconv/error.h"
#include "runtime/compiler_use.h"
#include "runtime/env.h"
#include "runtime/fork_guard.h"
#include "runtime/library_identity.h"
#include "runtime/log.h"

namespace jitconv::runtime {
namespace {

namespace fs = std::filesystem;
using Refusals = std::vector<RefusedCompiler>;

// Versions whose interface and option set this was written for; newest first.
constexpr std::array<const char*, 2> kLibraryNames = {"libnvrtc.so.13", "libnvrtc.so.12"};

/// The path of the NVRTC library that the process has loaded; empty if there is none, or if the path is very long.
std::string already_loaded() {
  std::array<char, 4096> path{};  // copied while the loader's lock is held: another thread may unload the library
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* out) {  // throws nothing: the C library would end the program
        const std::string_view name = info->dlpi_name == nullptr ? "" : info->dlpi_name;
        const std::string_view file = name.substr(name.rfind('/') + 1);
        auto& copy = *static_cast<decltype(path)*>(out);
        if (name.size() >= copy.size() ||
            std::none_of(kLibraryNames.begin(), kLibraryNames.end(),
                         [file](const char* library) { return file.starts_with(library); })) {
          return 0;
        }
        std::copy(name.begin(), name.end(), copy.begin());
        return 1;
      },
      &path);
  return path.data();
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

std::string resolved(const fs::path& path) {
  std::error_code absent;
  const fs::path file = fs::canonical(path, absent);
  return absent ? path.string() : file.string();
}

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

/// Why the library at `path` cannot be used, as far as files tell; empty if it can.
std::string defect_of(const CompilerIdentity& compiler) {
  if (const std::string defect = library_defect(compiler.path); !defect.empty()) return defect;
  if (const std::string old = defect_of_version(compiler.version); !old.empty()) return old;
  const std::string builtins = builtins_beside(compiler);
  if (builtins.empty()) return {};
  const std::string defect = library_defect(builtins);
  return defect.empty() ? std::string()
                        : fmt::format("{} beside it: {}", fs::path(builtins).filename().string(), defect);
}

void log_passed_over(const RefusedCompiler& one) {
  log(LogLevel::debug, fmt::format("NVRTC: passed over {}: {}", one.path, one.reason));
}

/// A search: what was looked at and not taken, and why.
class Search {
 public:
  explicit Search(const Refusals& before) : refused_(before) {}

  /// The library at `path` if there is one that can be used.
  std::optional<CompilerIdentity> take(const fs::path& path) {
    if (!is_file(path)) return std::nullopt;
    CompilerIdentity compiler = identify_compiler(path.string());
    if (is_refused(compiler.path)) return std::nullopt;
    const std::string defect = defect_of(compiler);
    if (defect.empty()) return compiler;
    refuse(compiler.path, defect);
    return std::nullopt;
  }

  std::optional<CompilerIdentity> take_from(const fs::path& directory) {
    for (const char* name : kLibraryNames)
      if (auto compiler = take(directory / name)) return compiler;
    return std::nullopt;
  }

  /// Libraries of versions that are too old, which take_from() does not look for.
  void note_old_versions(const fs::path& directory) {
    for (const fs::path& file : entries_of(directory, "libnvrtc.so.")) {
      const std::string defect = defect_of_version(version_after(file.filename().string(), "libnvrtc.so."));
      if (!defect.empty() && !is_refused(resolved(file))) refuse(resolved(file), defect);
    }
  }

  /// Finds what only the loader knows of: a run path of the program, a loader with a configuration of its own. Does not
  /// ask for a name that was passed over: the loader might take that very file, and a file that is cut short would end
  /// the process.
  std::optional<CompilerIdentity> ask_the_loader() {
    for (const char* name : kLibraryNames) {
      if (std::any_of(refused_.begin(), refused_.end(),
                      [name](const RefusedCompiler& one) { return one.path.find(name) != std::string::npos; }))
        continue;
      link_map* map = nullptr;
      void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
      if (library == nullptr || dlinfo(library, RTLD_DI_LINKMAP, &map) != 0) continue;
      if (auto compiler = take(map->l_name)) return compiler;
    }
    return std::nullopt;
  }

  bool is_refused(const std::string& path) const {
    return std::any_of(refused_.begin(), refused_.end(),
                       [&path](const RefusedCompiler& one) { return one.path == path; });
  }

  std::string refusals() const {
    std::string text;
    for (const auto& [path, reason] : refused_) text += fmt::format("\n    {}: {}", cache::printable(path), reason);
    return text;
  }

 private:
  void refuse(const std::string& path, const std::string& reason) {
    refused_.push_back({path, reason});
    log_passed_over(refused_.back());
  }

  Refusals refused_;
};

/// A user who names a library does not want another one.
CompilerIdentity named_by_user(const std::string& path, const Refusals& refused_before) {
  Search search(refused_before);
  if (auto compiler = search.take(path)) return *compiler;
  if (auto compiler = search.take_from(path)) return *compiler;
  const std::string reasons = search.refusals();
  throw CompileError(ErrorCode::compiler_missing,
                     fmt::format("JITCONV_NVRTC_PATH is {}, must be an NVRTC library or a directory with {}{}{}",
                                 cache::printable(path), fmt::join(kLibraryNames, " or "),
                                 reasons.empty() ? "" : "\n  refused:", reasons));
}

[[noreturn]] void throw_not_found(const Search& search, const std::vector<fs::path>& directories) {
  std::string text = fmt::format("NVRTC was not found: jitconv needs {}", fmt::join(kLibraryNames, " or "));
  if (const std::string refused = search.refusals(); !refused.empty()) text += "\n  passed over:" + refused;
  text += "\n  looked in:";
  for (const fs::path& directory : without_repetitions(directories))
    text += "\n    " + cache::printable(directory.string());
  text +=
      "\n  what to install: a CUDA 12 or 13 toolkit, or the Python package nvidia-cuda-nvrtc (pip install "
      "nvidia-cuda-nvrtc)\n  elsewhere: set JITCONV_NVRTC_PATH to the library or its directory";
  throw CompileError(ErrorCode::compiler_missing, text);
}

std::mutex found_mutex;
const CompilerIdentity* found_compiler = nullptr;

/// Never destroyed, each kept once: callers keep the reference.
const CompilerIdentity* remember(CompilerIdentity compiler) {
  static auto& all = *new std::list<CompilerIdentity>;
  const auto known = std::find(all.begin(), all.end(), compiler);
  return known != all.end() ? &*known : &all.emplace_back(std::move(compiler));
}

/// Libraries that looked right and could not be loaded.
Refusals& refused_when_loaded() {
  static Refusals& refusals = *new Refusals;
  return refusals;
}

}  // namespace

CompilerIdentity identify_compiler(const std::string& path) {
  const std::string file = resolved(path);
  return {file, version_of(file), library_identity(file)};
}

std::string defect_of_version(const std::string& version) {
  constexpr int kOldest = 12;
  int major = kOldest;
  std::from_chars(version.data(), version.data() + version.size(), major);
  if (major >= kOldest) return {};
  return fmt::format("NVRTC {} is too old, must be {}.0 or newer", version, kOldest);
}

std::string builtins_beside(const CompilerIdentity& compiler) {
  const std::string name = "libnvrtc-builtins.so." + compiler.version;
  const std::vector<fs::path> found = entries_of(fs::path(compiler.path).parent_path(), name);
  return found.empty() ? std::string() : found.back().string();
}

CompilerIdentity search_compiler(const Environment& environment, const Refusals& refused_before) {
  if (const std::string named = environment("JITCONV_NVRTC_PATH"); !named.empty())
    return named_by_user(named, refused_before);
  Search search(refused_before);
  if (const std::string loaded = already_loaded(); !loaded.empty() && !search.is_refused(resolved(loaded)))
    return identify_compiler(loaded);
  const std::vector<fs::path> directories = nvrtc_directories(environment);
  for (const fs::path& directory : directories)
    if (auto compiler = search.take_from(directory)) return *compiler;
  if (auto compiler = search.ask_the_loader()) return *compiler;
  for (const fs::path& directory : directories) search.note_old_versions(directory);
  throw_not_found(search, directories);
}

const CompilerIdentity& find_compiler() {
  refuse_after_fork();
  {
    const std::lock_guard lock(found_mutex);
    if (found_compiler != nullptr) return *found_compiler;
  }
  const CompilerUse use;  // the loader may be asked; before the lock, for which other uses may wait
  const std::lock_guard lock(found_mutex);
  if (found_compiler != nullptr) return *found_compiler;
  try {
    found_compiler =
        remember(search_compiler([](const char* name) { return environment(name); }, refused_when_loaded()));
  } catch (const CompileError&) {
    refused_when_loaded().clear();  // a failure is not kept
    throw;
  }
  log(LogLevel::info, fmt::format("NVRTC {} at {}", found_compiler->version, found_compiler->path));
  return *found_compiler;
}

void correct_compiler(const CompilerIdentity& loaded) {
  const std::lock_guard lock(found_mutex);
  found_compiler = remember(loaded);
}

void refuse_compiler(const CompilerIdentity& found, const std::string& reason) {
  const std::lock_guard lock(found_mutex);
  refused_when_loaded().push_back({found.path, reason});
  found_compiler = nullptr;
  log_passed_over(refused_when_loaded().back());
}

}  // namespace jitconv::runtime
