// What tests of loaded modules share: a kernel is compiled, loaded and run as one thread against an engine that
// records.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "codegen/text/template_text.h"
#include "host/module.h"
#include "host/recording_engine.h"
#include "host/small_kernel.h"

namespace jitconv::test {

inline constexpr char kFloats[] = "extern \"C\" __global__ void probe(const float* x, float* y) {\n";

inline codegen::KernelSource on_floats(const std::string& body) {
  return small_kernel(kFloats + body + "}\n", {input("const float*", "x"), input("float*", "y")});
}

inline std::string device(const char* name) { return std::string(codegen::embedded_text(name)); }

/// Runs small kernels of one compiler as one thread, and keeps what they asked of the engine.
class ModuleTest : public ::testing::TestWithParam<host::Compiler> {
 protected:
  using Kind = Event::Kind;

  std::string image(const codegen::KernelSource& source, host::Purpose purpose = host::Purpose::check) {
    return host::compile_module(GetParam(), source, host::compile_options(GetParam(), purpose)).image;
  }
  /// Compiles and runs it as thread `thread` of one warp.
  void run(const codegen::KernelSource& source, std::vector<void*> pointers, unsigned thread = 0,
           host::Purpose purpose = host::Purpose::check) {
    module_ = std::make_unique<host::Module>(image(source, purpose));
    engine_.thread.thread_index.x = thread;
    engine_.run(*module_, "probe", std::move(pointers));
  }
  /// "load 4 at 8, line 3": accesses of the buffers x and y, by offset, and everything else.
  std::string accesses(Kind kind, const void* base) {
    std::string text;
    for (const Event& event : engine_.of(kind)) {
      const std::uintptr_t offset = event.address - reinterpret_cast<std::uintptr_t>(base);
      if (offset >= 4096) continue;
      text += fmt::format("{}{}@{} line {}", text.empty() ? "" : ", ", event.bytes, offset, module_->line_of(event.pc));
    }
    return text;
  }

  static bool on_stack(std::uintptr_t address) {
    const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    return address < here + (1 << 16) && address + (1 << 16) > here;
  }

  RecordingEngine engine_;
  std::unique_ptr<host::Module> module_;
  alignas(64) float x_[64] = {};
  alignas(64) float y_[64] = {};
};

}  // namespace jitconv::test
