// See compiler.h.
#include "host/compiler.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>

#include "cache/digest.h"
#include "cache/files.h"
#include "cache/write_all.h"
#include "host/process.h"
#include "host/scratch_folder.h"
#include "host/translation.h"
#include "jitconv/error.h"

namespace jitconv::host {
namespace {

namespace fs = std::filesystem;

constexpr int kOldestGnu = 11, kOldestClang = 14;

std::string environment(const char* name) {
  const char* value = ::secure_getenv(name);
  return value == nullptr ? std::string() : value;
}

[[noreturn]] void missing(const std::string& message) { throw CompileError(ErrorCode::compiler_missing, message); }

/// Value of `#define name value` in a compiler's list of predefined macros; empty if there is none.
std::string macro(const std::string& macros, const std::string& name) {
  const std::string start = "#define " + name + " ";
  const std::size_t at = macros.find(start);
  if (at == std::string::npos || (at != 0 && macros[at - 1] != '\n')) return {};
  return macros.substr(at + start.size(), macros.find('\n', at) - at - start.size());
}

int number(const std::string& text) { return text.empty() ? 0 : std::atoi(text.c_str()); }

std::string identity_of(const std::string& path, const std::string& macros) {
  std::error_code error;
  const fs::path file = fs::canonical(path, error);
  struct stat status {};
  if (error || ::stat(file.c_str(), &status) != 0) missing(fmt::format("{} cannot be read", path));
  cache::Digest digest;
  digest.add(file.string()).add(static_cast<std::uint64_t>(status.st_size));
  digest.add(static_cast<std::uint64_t>(status.st_mtim.tv_sec)).add(static_cast<std::uint64_t>(status.st_mtim.tv_nsec));
  return cache::to_hex(digest.add(macros).finish());
}

/// Absolute path of a program, which may be one already; empty if there is none.
std::string on_path(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    std::error_code error;
    return fs::absolute(name, error).string();
  }
  std::string folders = environment("PATH");
  for (std::size_t at = 0; at <= folders.size();) {
    const std::size_t end = std::min(folders.find(':', at), folders.size());
    const std::string candidate = folders.substr(at, end - at) + "/" + name;
    if (candidate.front() == '/' && candidate != "/" + name && ::access(candidate.c_str(), X_OK) == 0) return candidate;
    at = end + 1;
  }
  return {};
}

Compiler search(const std::string& chosen) {
  if (!chosen.empty()) {
    const std::string path = on_path(chosen);
    if (path.empty()) missing(fmt::format("JITCONV_HOST_CXX names {}, which is not on the PATH", chosen));
    return probe_compiler(path);
  }
  std::string tried;
  for (const char* name : {"c++", "g++", "clang++"}) {
    const std::string path = on_path(name);
    if (path.empty()) continue;
    try {
      return probe_compiler(path);
    } catch (const CompileError& error) {
      tried += fmt::format("\n  {}", error.what());
    }
  }
  missing(
      fmt::format("host execution needs a C++ compiler, g++ {} or clang++ {} or later, on the PATH or named by "
                  "JITCONV_HOST_CXX{}",
                  kOldestGnu, kOldestClang, tried.empty() ? "; there is none" : ". Tried:" + tried));
}

void write_file(const fs::path& path, const std::string& text) {
  const cache::FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  const int error = file.get() < 0 ? errno : cache::write_all(file.get(), text);
  if (error == 0) return;
  throw CompileError(ErrorCode::compile_failed,
                     fmt::format("{} cannot be written: {}", path.string(), std::generic_category().message(error)));
}

std::string read_file(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(stream), {});
}

/// The text between two quotes of the line; LC_ALL=C makes the compilers write plain ones.
std::string quoted(const std::string& line) {
  const std::size_t first = line.find_first_of("'`");
  if (first == std::string::npos) return {};
  return line.substr(first + 1, line.find('\'', first + 1) - first - 1);
}

/// The first line that says anything; empty if there is none.
std::string first_line(const std::string& log) {
  const std::size_t first = log.find_first_not_of(" \t\r\n");
  return first == std::string::npos ? std::string() : log.substr(first, log.find('\n', first) - first);
}

/// The first complaint of a log. An unknown name is the most likely one: a built-in that has no model yet.
std::string complaint(const std::string& log) {
  std::size_t at = 0;
  while (at < log.size()) {
    const std::size_t end = std::min(log.find('\n', at), log.size());
    const std::string line = log.substr(at, end - at);
    for (const char* unknown :
         {"was not declared", "undeclared identifier", "unknown type name", "does not name a type", "must be available",
          "undefined reference to", "undefined symbol"}) {
      const std::size_t found = line.find(unknown);
      if (found == std::string::npos) continue;
      const std::string name = quoted(line);
      const std::string place = line.substr(0, std::min(line.find(": error"), line.size()));
      return fmt::format("no CPU model of '{}', or the source does not declare it ({})", name.empty() ? line : name,
                         place);
    }
    if (line.find("error: ") != std::string::npos || line.find("fatal") != std::string::npos) return line;
    at = end + 1;
  }
  return first_line(log);
}

std::string failure(const Outcome& outcome, std::chrono::milliseconds limit) {
  switch (outcome.end) {
    case Outcome::End::exited:
      if (!first_line(outcome.output).empty()) return complaint(outcome.output);
      return fmt::format("the compiler exited with status {} and printed nothing", outcome.code);
    case Outcome::End::signalled:
      return fmt::format("the compiler was ended by signal {}", outcome.code);
    case Outcome::End::timed_out:
      return fmt::format("the compiler took longer than {} ms", limit.count());
    case Outcome::End::not_started:
      return "the compiler could not be started: " + std::error_code(outcome.code, std::generic_category()).message();
  }
  return {};
}

}  // namespace

Compiler probe_compiler(const std::string& path) {
  const Outcome outcome = run(
      {.arguments = {path, "-dM", "-E", "-x", "c++", "/dev/null"}, .directory = {}, .limit = std::chrono::seconds(20)});
  const std::string& macros = outcome.output;
  Compiler compiler;
  compiler.path = path;
  compiler.kind = macro(macros, "__clang__").empty() ? Compiler::Kind::gnu : Compiler::Kind::clang;
  const bool clang = compiler.kind == Compiler::Kind::clang;
  const char* const name = clang ? "clang++" : "g++";
  const std::string prefix = clang ? "__clang" : "__GNUC";
  const std::string major = macro(macros, clang ? "__clang_major__" : "__GNUC__");
  if (!outcome.succeeded() || major.empty()) {
    missing(
        fmt::format("{} does not say which C++ compiler it is: {}", path, failure(outcome, std::chrono::seconds(20))));
  }
  compiler.major = number(major);
  compiler.version =
      fmt::format("{} {}.{}.{}", name, major, macro(macros, prefix + "_minor__") + macro(macros, prefix + "_MINOR__"),
                  macro(macros, prefix + "_patchlevel__") + macro(macros, prefix + "_PATCHLEVEL__"));
  const int oldest = clang ? kOldestClang : kOldestGnu;
  if (compiler.major < oldest) {
    missing(fmt::format("{} is {}, must be {} {} or later", path, compiler.version, name, oldest));
  }
  compiler.identity = identity_of(path, macros);
  return compiler;
}

Compiler find_compiler() {
  static std::mutex mutex;
  // Never destroyed: static objects of the program may compile while they are destroyed.
  static auto& known = *new std::map<std::pair<std::string, std::string>, Compiler>;
  const std::pair<std::string, std::string> asked{environment("JITCONV_HOST_CXX"), environment("PATH")};
  const std::lock_guard lock(mutex);
  if (const auto found = known.find(asked); found != known.end()) return found->second;
  return known.emplace(asked, search(asked.first)).first->second;
}

std::vector<std::string> compile_options(const Compiler& compiler, Purpose purpose) {
  const bool clang = compiler.kind == Compiler::Kind::clang;
  std::vector<std::string> options{
      "-std=c++17", "-O1", "-foptimize-sibling-calls", "-fPIC", "-shared", "-nodefaultlibs", "-w", "-pipe",
      // Arithmetic as the text says it; memory as the text accesses it.
      "-ffp-contract=off", "-fno-math-errno", "-fno-strict-aliasing", "-fno-exceptions", "-fno-rtti",
      "-fno-threadsafe-statics", "-fno-stack-protector", "-fomit-frame-pointer",
      // The hooks: see models/prelude.h.
      "-fsanitize=thread", "-fsanitize=signed-integer-overflow,shift,integer-divide-by-zero",
      "-fno-sanitize-recover=integer-divide-by-zero",
      // A function nobody defined is found now rather than when the module is loaded.
      "-Wl,-z,defs"};
  const auto add = [&options](std::initializer_list<const char*> more) {
    options.insert(options.end(), more.begin(), more.end());
  };
  if (clang) {
    add({"-fsanitize=array-bounds", "-gline-tables-only", "-fno-vectorize", "-fno-slp-vectorize", "-fno-unroll-loops",
         "-mllvm", "-pragma-unroll-threshold=0", "-Wno-unused-command-line-argument"});
    // Two accesses or barriers of the text stay two, each with its line.
    for (const char* merge : {"-simplifycfg-sink-common=false", "-simplifycfg-hoist-common=false",
                              "-simplifycfg-merge-cond-stores=false", "-enable-tail-merge=false"}) {
      add({"-mllvm", merge});
    }
  } else {
    // Tensor maps are parameters aligned to 64 bytes; that GCC 4.6 passed such ones otherwise is no news.
    add({"-fsanitize=bounds", "-g1", "-gno-record-gcc-switches", "-fno-tree-vectorize", "-Wno-psabi"});
  }
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) add({"-mavx2", "-mfma"});
#endif
  if (purpose == Purpose::check) return options;
  if (!clang && compiler.major < 12) {
    throw CompileError(ErrorCode::unsupported,
                       fmt::format("{} cannot leave functions out of counting: counters need g++ 12 or clang++ {}",
                                   compiler.version, kOldestClang));
  }
  // Blocks stay in the order of the text, so that lanes that wait at the lowest address wait for all that come later,
  // and code that follows a branch is not copied for those who take it: they would never meet the others again.
  add({"-DJITCONV_COUNTING"});
  if (clang) {  // its own layout puts the exits of a loop behind the loop; the text's order would not
    add({"-fsanitize-coverage=bb,no-prune,trace-pc"});
  } else {
    add({"-fsanitize-coverage=trace-pc", "-fno-reorder-blocks", "-fno-reorder-blocks-and-partition",
         "-fno-thread-jumps"});
  }
  return options;
}

CompiledModule compile_module(const Compiler& compiler, const codegen::KernelSource& source,
                              const std::vector<std::string>& options, std::chrono::milliseconds limit) {
  const std::string unit = translate(source);
  const ScratchFolder folder;
  write_file(folder.path() / "unit.cpp", unit);
  Command command{.arguments = {compiler.path}, .directory = folder.path().string(), .limit = limit};
  command.arguments.insert(command.arguments.end(), options.begin(), options.end());
  // The folder's name is no part of the module: equal inputs give equal bytes.
  command.arguments.push_back(fmt::format("-ffile-prefix-map={}=.", folder.path().string()));
  for (const char* last : {"unit.cpp", "-o", "module.so", "-lm", "-lc"}) command.arguments.emplace_back(last);
  Outcome outcome = run(command);
  CompiledModule module{outcome.succeeded() ? read_file(folder.path() / "module.so") : std::string(),
                        std::move(outcome.output)};
  if (!module.image.empty()) return module;
  outcome.output = module.log;
  throw CompileError(ErrorCode::compile_failed,
                     fmt::format("{}\n  {} ({}) made no module of {}", failure(outcome, limit), compiler.path,
                                 compiler.version, source_file(source)),
                     module.log, with_line_numbers(source.text), fmt::format("{}", fmt::join(options, " ")));
}

}  // namespace jitconv::host
