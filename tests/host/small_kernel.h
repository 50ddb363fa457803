// Kernels written by hand for tests of the way from text to module, and an engine that only writes down what it is
// asked.
#pragma once

#include <cstdlib>
#include <string>
#include <vector>

#include "codegen/source.h"
#include "codegen/text/template_text.h"
#include "host/compiler.h"
#include "host/module_abi.h"

namespace jitconv::test {

/// One entry named "probe"; `text` defines it as extern "C".
inline codegen::KernelSource small_kernel(std::string text, std::vector<codegen::Argument> arguments = {}) {
  codegen::KernelSource source;
  source.text = std::move(text);
  codegen::KernelEntry entry;
  entry.name = "probe";
  entry.threads = 32;
  entry.arguments = std::move(arguments);
  source.entries.push_back(std::move(entry));
  return source;
}

inline codegen::Argument input(std::string type, std::string name) {
  return {codegen::Tensor::x, std::move(type), std::move(name)};
}

/// JITCONV_HOST_CXX if it is set, else g++ and clang++, whichever this machine has.
inline const std::vector<host::Compiler>& compilers() {
  static const std::vector<host::Compiler> found = [] {
    std::vector<host::Compiler> all;
    if (std::getenv("JITCONV_HOST_CXX") != nullptr) return std::vector{host::find_compiler()};
    for (const char* path : {"/usr/bin/g++", "/usr/bin/clang++"}) {
      try {
        all.push_back(host::probe_compiler(path));
      } catch (const std::exception&) {
      }
    }
    if (all.empty()) all.push_back(host::find_compiler());
    return all;
  }();
  return found;
}

/// What the compiler can make modules for; g++ 11 cannot count.
inline std::vector<host::Purpose> purposes(const host::Compiler& compiler) {
  if (compiler.kind == host::Compiler::Kind::gnu && compiler.major < 12) return {host::Purpose::check};
  return {host::Purpose::check, host::Purpose::count};
}

/// For GoogleTest's messages.
inline std::string kind_name(const host::Compiler& compiler) {
  return compiler.kind == host::Compiler::Kind::clang ? "clang" : "gnu";
}

}  // namespace jitconv::test
