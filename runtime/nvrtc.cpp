// Calls NVRTC. Its interface is a dozen C functions, declared here so that building needs no toolkit; where the library
// comes from is nvrtc_search.cpp's business. There is no lock around a compilation: NVRTC compiles in parallel.
#include "runtime/nvrtc.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <set>
#include <sstream>
#include <string_view>

#include "jitconv/error.h"
#include "runtime/compiler_use.h"
#include "runtime/env.h"
#include "runtime/fork_guard.h"
#include "runtime/library_identity.h"
#include "runtime/log.h"
#include "runtime/nvrtc_search.h"

namespace jitconv::runtime {
namespace {

using Result = int;  // nvrtcResult
using Program = void*;

constexpr Result kNvrtcSuccess = 0, kInvalidOption = 5, kCompilation = 6, kBuiltinFailure = 7;
constexpr std::size_t kLongestLog = 64 * 1024;

struct Nvrtc {
  CompilerIdentity identity;
  int major = 0, minor = 0;
  std::vector<int> architectures;

  Result (*nvrtcVersion)(int* major, int* minor);
  const char* (*nvrtcGetErrorString)(Result);
  Result (*nvrtcGetNumSupportedArchs)(int* count);
  Result (*nvrtcGetSupportedArchs)(int* architectures);
  Result (*nvrtcCreateProgram)(Program*, const char* source, const char* name, int header_count,
                               const char* const* headers, const char* const* header_names);
  Result (*nvrtcDestroyProgram)(Program*);
  Result (*nvrtcCompileProgram)(Program, int option_count, const char* const* options);
  Result (*nvrtcGetProgramLogSize)(Program, std::size_t*);
  Result (*nvrtcGetProgramLog)(Program, char*);
  Result (*nvrtcGetCUBINSize)(Program, std::size_t*);
  Result (*nvrtcGetCUBIN)(Program, char*);
  Result (*nvrtcGetPTXSize)(Program, std::size_t*);
  Result (*nvrtcGetPTX)(Program, char*);

  std::string name() const { return fmt::format("NVRTC {}.{} ({})", major, minor, identity.path); }
};

std::string unusable(const CompilerIdentity& identity) { return fmt::format("cannot load NVRTC: {}: ", identity.path); }

[[noreturn]] void throw_unusable(const CompilerIdentity& identity, const std::string& reason) {
  throw CompileError(ErrorCode::compiler_missing, unusable(identity) + reason);
}

void check(const Nvrtc& nvrtc, Result result, const char* call) {
  if (result == kNvrtcSuccess) return;
  throw CompileError(ErrorCode::compile_failed,
                     fmt::format("{}: {} failed: {}", nvrtc.name(), call, nvrtc.nvrtcGetErrorString(result)));
}

/// The file may have been replaced since it was found, and the loader gives what the process has under a name already,
/// whatever the file is now: keys must name the library that compiles.
void identify_loaded(Nvrtc& nvrtc) {
  CompilerIdentity loaded = identify_compiler(nvrtc.identity.path);
  if (std::string id = loaded_build_id(reinterpret_cast<const void*>(nvrtc.nvrtcVersion)); !id.empty())
    loaded.build_id = std::move(id);
  if (loaded == nvrtc.identity) return;
  log(LogLevel::warn, fmt::format("{} was replaced after it had been found", nvrtc.identity.path));
  nvrtc.identity = loaded;
  correct_compiler(loaded);
}

/// Checks the files again first: they may have changed since they were found, and the loader ends the process if one is
/// cut short.
void* load(const CompilerIdentity& identity) {
  const auto require_whole = [&identity](const std::string& path) {
    if (const std::string defect = library_defect(path); !defect.empty())
      throw_unusable(identity, fmt::format("{}: {}", path, defect));
  };
  // NVRTC looks for its builtins by name through the loader, which does not search NVRTC's own directory.
  if (const std::string builtins = builtins_beside(identity); !builtins.empty()) {
    require_whole(builtins);
    if (dlopen(builtins.c_str(), RTLD_NOW | RTLD_LOCAL) == nullptr)
      log(LogLevel::info, fmt::format("cannot load {}: {}", builtins, dlerror()));
  }
  require_whole(identity.path);
  void* library = dlopen(identity.path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw_unusable(identity, dlerror());
  return library;
}

Nvrtc open_nvrtc(const CompilerIdentity& identity) {
  Nvrtc nvrtc{};
  nvrtc.identity = identity;
  void* const library = load(identity);
  const auto resolve = [&](auto& slot, const char* name) {
    slot = reinterpret_cast<std::remove_reference_t<decltype(slot)>>(dlsym(library, name));
    if (slot == nullptr) throw_unusable(nvrtc.identity, fmt::format("has no {}", name));
  };
  resolve(nvrtc.nvrtcVersion, "nvrtcVersion");
  resolve(nvrtc.nvrtcGetErrorString, "nvrtcGetErrorString");
  check(nvrtc, nvrtc.nvrtcVersion(&nvrtc.major, &nvrtc.minor), "nvrtcVersion");
  if (const std::string old = defect_of_version(fmt::format("{}.{}", nvrtc.major, nvrtc.minor)); !old.empty())
    throw_unusable(nvrtc.identity, old);
  resolve(nvrtc.nvrtcGetNumSupportedArchs, "nvrtcGetNumSupportedArchs");
  resolve(nvrtc.nvrtcGetSupportedArchs, "nvrtcGetSupportedArchs");
  resolve(nvrtc.nvrtcCreateProgram, "nvrtcCreateProgram");
  resolve(nvrtc.nvrtcDestroyProgram, "nvrtcDestroyProgram");
  resolve(nvrtc.nvrtcCompileProgram, "nvrtcCompileProgram");
  resolve(nvrtc.nvrtcGetProgramLogSize, "nvrtcGetProgramLogSize");
  resolve(nvrtc.nvrtcGetProgramLog, "nvrtcGetProgramLog");
  resolve(nvrtc.nvrtcGetCUBINSize, "nvrtcGetCUBINSize");
  resolve(nvrtc.nvrtcGetCUBIN, "nvrtcGetCUBIN");
  resolve(nvrtc.nvrtcGetPTXSize, "nvrtcGetPTXSize");
  resolve(nvrtc.nvrtcGetPTX, "nvrtcGetPTX");

  identify_loaded(nvrtc);
  int count = 0;
  check(nvrtc, nvrtc.nvrtcGetNumSupportedArchs(&count), "nvrtcGetNumSupportedArchs");
  nvrtc.architectures.resize(static_cast<std::size_t>(count));
  check(nvrtc, nvrtc.nvrtcGetSupportedArchs(nvrtc.architectures.data()), "nvrtcGetSupportedArchs");
  return nvrtc;
}

/// The number in --gpu-architecture=sm_90a; empty if there is no such option.
std::string architecture_of(const std::vector<std::string>& options) {
  constexpr std::string_view kPrefix = "--gpu-architecture=sm_";
  for (const std::string& option : options) {
    if (!option.starts_with(kPrefix)) continue;
    const std::size_t end = option.find_first_not_of("0123456789", kPrefix.size());
    return option.substr(kPrefix.size(), end - kPrefix.size());
  }
  return {};
}

/// To PTX. For a cache of its own NVRTC would load libcuda, and not survive one that is a stub.
void compile_nothing(const Nvrtc& nvrtc, const std::string& architecture) {
  const std::string target = "--gpu-architecture=compute_" + architecture;
  const std::array<const char*, 3> options = {target.c_str(), "--minimal", "--no-cache"};
  for (const int option_count : {3, 2, 1}) {  // NVRTC before 12.9 refuses --no-cache, and before 12.8 --minimal
    Program program = nullptr;
    if (nvrtc.nvrtcCreateProgram(&program, "__global__ void nothing() {}", "nothing.cu", 0, nullptr, nullptr) !=
        kNvrtcSuccess)
      return;
    const Result result = nvrtc.nvrtcCompileProgram(program, option_count, options.data());
    nvrtc.nvrtcDestroyProgram(&program);
    if (result != kInvalidOption) return;
  }
}

/// NVRTC registers exit handlers when it is loaded and, during its first compilation for an architecture, some more.
/// The latter would run before exit() waits for that compilation, so the first one is of nothing: 12 ms.
void make_exit_wait(const Nvrtc& nvrtc, const std::string& architecture) {
  static std::mutex mutex;
  static auto& made = *new std::set<std::string>;
  const std::lock_guard lock(mutex);
  if (made.count(architecture) != 0) return;
  {
    const LibraryLoading loading;
    compile_nothing(nvrtc, architecture);
  }
  finish_uses_at_exit();
  refuse_while_exiting();
  made.insert(architecture);
}

/// The first library of the search that can be loaded.
Nvrtc open_any_nvrtc() {
  for (;;) {
    const CompilerIdentity& identity = find_compiler();
    try {
      return open_nvrtc(identity);
    } catch (const CompileError& error) {
      // A user who names a library does not want another one.
      if (error.code() != ErrorCode::compiler_missing || !nvrtc_path_from_environment().empty()) throw;
      const std::string known = unusable(identity);
      const std::string_view reason = error.what();
      refuse_compiler(identity, std::string(reason.starts_with(known) ? reason.substr(known.size()) : reason));
    }
  }
}

/// The library, loaded once and for ever. A failure is not remembered. The caller is in a CompilerUse.
const Nvrtc& loaded_nvrtc() {
  static std::mutex mutex;
  static const Nvrtc* nvrtc = nullptr;
  refuse_after_fork();
  forbid_use_after_fork();
  const std::lock_guard lock(mutex);
  if (nvrtc != nullptr) return *nvrtc;
  const LibraryLoading loading;
  nvrtc = new Nvrtc(open_any_nvrtc());
  return *nvrtc;
}

class ProgramOwner {
 public:
  ProgramOwner(const Nvrtc& nvrtc, const std::string& source, const std::string& name) : nvrtc_(nvrtc) {
    check(nvrtc, nvrtc.nvrtcCreateProgram(&program_, source.c_str(), name.c_str(), 0, nullptr, nullptr),
          "nvrtcCreateProgram");
  }
  ~ProgramOwner() { nvrtc_.nvrtcDestroyProgram(&program_); }
  ProgramOwner(const ProgramOwner&) = delete;
  ProgramOwner& operator=(const ProgramOwner&) = delete;
  Program get() const { return program_; }

 private:
  const Nvrtc& nvrtc_;
  Program program_ = nullptr;
};

template <typename SizeOf, typename Get>
std::string fetch(const Nvrtc& nvrtc, Program program, SizeOf size_of, Get get, const char* call) {
  std::size_t size = 0;
  check(nvrtc, size_of(program, &size), call);
  std::string bytes(size, '\0');
  if (size > 0) check(nvrtc, get(program, bytes.data()), call);
  return bytes;
}

/// Texts come with their final zero counted.
std::string without_zeros(std::string text) {
  while (!text.empty() && text.back() == '\0') text.pop_back();
  return text;
}

std::string joined(const std::vector<std::string>& options) { return fmt::format("{}", fmt::join(options, " ")); }

std::string number_lines(const std::string& source) {
  std::istringstream lines(source);
  std::string text;
  int number = 0;
  for (std::string line; std::getline(lines, line);) text += fmt::format("{:5} | {}\n", ++number, line);
  return text;
}

/// The first lines of the log that name an error: enough for what(), the rest is in CompileError::log().
std::string first_errors(const std::string& log) {
  constexpr int kShown = 3;
  std::istringstream lines(log);
  std::string text;
  int shown = 0;
  for (std::string line; shown < kShown && std::getline(lines, line);) {
    if (line.find("error") == std::string::npos && line.find("fatal") == std::string::npos) continue;
    text += "\n  " + line;
    ++shown;
  }
  return text;
}

bool contains(const std::vector<std::string>& options, std::string_view part) {
  return std::any_of(options.begin(), options.end(),
                     [part](const std::string& option) { return option.find(part) != std::string::npos; });
}

/// NVRTC's own message for an unknown architecture does not say which ones it knows.
void require_known_architecture(const Nvrtc& nvrtc, const std::vector<std::string>& options) {
  const std::string number = architecture_of(options);
  const auto known = [&number](int architecture) { return std::to_string(architecture) == number; };
  if (number.empty() || std::any_of(nvrtc.architectures.begin(), nvrtc.architectures.end(), known)) return;
  constexpr std::string_view kPrefix = "--gpu-architecture=";
  const auto option = std::find_if(options.begin(), options.end(),
                                   [kPrefix](const std::string& one) { return one.starts_with(kPrefix); });
  throw CompileError(ErrorCode::unsupported,
                     fmt::format("{} does not compile for {}; it knows sm_{}", nvrtc.name(),
                                 option->substr(kPrefix.size()), fmt::join(nvrtc.architectures, ", sm_")),
                     {}, {}, joined(options));
}

std::vector<std::string> with_silent_options(const Nvrtc& nvrtc, std::vector<std::string> options) {
  if (!contains(options, "ptxas-options") && !contains(options, "-Xptxas")) options.push_back("--ptxas-options=-v");
  const bool has_own_cache = nvrtc.major > 12 || (nvrtc.major == 12 && nvrtc.minor >= 9);
  if (has_own_cache && !contains(options, "-no-cache")) options.push_back("--no-cache");
  return options;
}

[[noreturn]] void throw_failure(const Nvrtc& nvrtc, Result result, const std::string& program_name, std::string log,
                                const std::string& source, const std::vector<std::string>& options) {
  if (log.size() > kLongestLog) log.resize(kLongestLog);
  if (result == kBuiltinFailure) {
    throw CompileError(ErrorCode::compiler_missing,
                       fmt::format("{} cannot use its libnvrtc-builtins.so.{}.{}: is the file of the same version in "
                                   "the same directory?{}",
                                   nvrtc.name(), nvrtc.major, nvrtc.minor, first_errors(log)),
                       log, {}, joined(options));
  }
  const char* verb = result == kCompilation     ? "rejects"
                     : result == kInvalidOption ? "rejects the options of"
                                                : "fails on";
  throw CompileError(ErrorCode::compile_failed,
                     fmt::format("{} {} {}: {}{}", nvrtc.name(), verb, program_name, nvrtc.nvrtcGetErrorString(result),
                                 first_errors(log)),
                     log, number_lines(source), joined(options));
}

}  // namespace

CompiledImage compile_source(const std::string& source, const std::string& program_name,
                             const std::vector<std::string>& options, bool want_ptx) {
  const CompilerUse use;
  const Nvrtc& nvrtc = loaded_nvrtc();
  require_known_architecture(nvrtc, options);
  make_exit_wait(nvrtc, architecture_of(options));
  const std::vector<std::string> all_options = with_silent_options(nvrtc, options);
  std::vector<const char*> arguments;
  for (const std::string& option : all_options) arguments.push_back(option.c_str());

  const ProgramOwner program(nvrtc, source, program_name);
  const Result result = nvrtc.nvrtcCompileProgram(program.get(), static_cast<int>(arguments.size()), arguments.data());
  CompiledImage image;
  image.log = without_zeros(
      fetch(nvrtc, program.get(), nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, "nvrtcGetProgramLog"));
  if (result != kNvrtcSuccess) throw_failure(nvrtc, result, program_name, image.log, source, all_options);
  image.cubin = fetch(nvrtc, program.get(), nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN, "nvrtcGetCUBIN");
  if (want_ptx) {
    image.ptx = without_zeros(fetch(nvrtc, program.get(), nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX, "nvrtcGetPTX"));
  }
  return image;
}

std::vector<std::string> supported_architectures() {
  const CompilerUse use;
  std::vector<std::string> names;
  for (const int architecture : loaded_nvrtc().architectures) names.push_back("sm_" + std::to_string(architecture));
  return names;
}

}  // namespace jitconv::runtime
