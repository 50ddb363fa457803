// The machine's C++ compiler: which one, what it is told, and running it on a translated kernel. g++ 11 or clang++ 14
// and later.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "codegen/source.h"

namespace jitconv::host {

struct Compiler {
  enum class Kind { gnu, clang };
  std::string path;  ///< absolute; not resolved, since a link's name decides what a driver does
  Kind kind = Kind::gnu;
  int major = 0;
  std::string version;   ///< "g++ 12.2.0"
  std::string identity;  ///< hex digest over the file's place, size and time and over what it predefines
  bool operator==(const Compiler&) const = default;
};

/// JITCONV_HOST_CXX (a name or a path), else the first of c++, g++ and clang++ on the PATH that is recent enough.
/// Throws CompileError (compiler_missing) that says what was tried. Asks each compiler once per process.
Compiler find_compiler();

/// The compiler at `path`. Throws CompileError (compiler_missing) if it is not a C++ compiler, or too old.
Compiler probe_compiler(const std::string& path);

enum class Purpose { check, count };

/// What the compiler is told besides its input and output, for this machine's CPU: nothing is left to -march=native.
/// Throws CompileError (unsupported) if the compiler cannot make modules for the purpose.
std::vector<std::string> compile_options(const Compiler& compiler, Purpose purpose);

struct CompiledModule {
  std::string image;  ///< an ELF shared object
  std::string log;
};

/// Throws CompileError: unsupported for an instruction without a CPU model, compile_failed with log, options and
/// numbered source if the compiler objects or takes longer than `limit`. Leaves no file behind.
CompiledModule compile_module(const Compiler& compiler, const codegen::KernelSource& source,
                              const std::vector<std::string>& options,
                              std::chrono::milliseconds limit = std::chrono::minutes(2));

}  // namespace jitconv::host
