// What the generator hands to the runtime: the CUDA text and everything needed to launch it. The parameter list is kept
// once, here: the printer writes the signature from it and the launcher packs its argument array from it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/plan.h"
#include "codegen/problem.h"
#include "codegen/tensor_map.h"

namespace jitconv::codegen {

/// A parameter of a kernel. No parameter is the whole workspace: its regions are parameters of their own.
struct Argument {
  Tensor tensor;     ///< what it leads to
  std::string type;  ///< "const float* __restrict__", "const __grid_constant__ TensorMap"
  std::string name;  ///< "x"
  TensorMapShape map = {};
  /// The kernel stores there: its type does not say const; of tensor maps only a result's does, or one that says so.
  bool written() const { return map.rank != 0 ? is_result(tensor) || map.writes_scratch : !type.starts_with("const "); }
  bool operator==(const Argument&) const = default;
};

/// One GPU kernel of the source. A launch runs the entries in order on one stream.
struct KernelEntry {
  std::string name;
  std::string scope = {};  ///< of C++, "reduce::"; the name alone is the symbol
  std::array<std::uint32_t, 3> grid{1, 1, 1};
  std::uint32_t threads = 1;
  std::uint32_t shared_bytes = 0;  ///< dynamic shared memory
  std::vector<Argument> arguments;
  bool packs_weights = false;  ///< left out if the caller has packed weights
  /// May start before the entry before it has finished: it waits by itself before it reads what that one writes, and
  /// all of its blocks wait, so that when it has finished, so has the one before.
  bool starts_early = false;
  bool operator==(const KernelEntry&) const = default;
};

struct KernelSource {
  std::string text;                  ///< the complete .cu; empty for a convolution without outputs
  std::vector<std::string> options;  ///< NVRTC options, --gpu-architecture included
  std::vector<KernelEntry> entries;
  std::vector<Scratch> scratch;
  /// What logs and files call the source: the convolution's name, not that of a pass before it.
  std::string_view name() const {
    for (const KernelEntry& entry : entries)
      if (entry.scope.empty()) return entry.name;
    return {};
  }
  bool operator==(const KernelSource&) const = default;
};

/// Prints the plan as CUDA. Pure and deterministic: the same plan gives the same bytes on every machine.
KernelSource generate(const ConvPlan& plan);

/// SHA-256 (hex) over templates/ and codegen/, computed by the build: part of every cache key.
std::string_view generator_fingerprint();

}  // namespace jitconv::codegen
