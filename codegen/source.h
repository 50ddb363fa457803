// What the generator hands to the runtime: the CUDA text and everything needed to launch it. The parameter list is kept
// once, here: the printer writes the signature from it and the launcher packs its argument array from it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "codegen/plan.h"

namespace jitconv::codegen {

/// Which pointer of LaunchArgs a kernel parameter is. No parameter is the whole workspace: packed_w,
/// partial_sums and packed_x are its parts, unless the caller hands in packed weights.
enum class ArgumentRole : std::uint8_t { x, w, bias, residual, y, workspace, packed_w, partial_sums, packed_x };

/// How the copy engine sees a tensor that a kernel gets as a tensor map instead of a pointer (cp.async.bulk.tensor,
/// cuTensorMapEncodeTiled): a copy brings a box of it, as one block of memory without gaps, and zeros for what lies
/// outside. Axes are counted from the one whose elements are neighbours; along that, boxes start at whole 16 bytes.
struct TensorMapShape {
  static constexpr int kMostRank = 3;
  int rank = 0;           ///< 0: the parameter is a pointer
  int element_bytes = 4;  ///< 4 or 2
  std::array<std::int64_t, kMostRank> extents{};
  std::array<std::int64_t, kMostRank> strides{};  ///< elements; the first is 1, the others multiples of 16 bytes
  std::array<int, kMostRank> box{};               ///< at most 256 along an axis; rows are multiples of 16 bytes
  /// Rows are 128 bytes, and piece i of 16 bytes of row r lies at place i ^ r % 8, so that reads of a column of pieces
  /// meet in no bank. A copy's destination is then a multiple of 1024 bytes, else of 128.
  bool swizzled = false;
  /// Of floats: they arrive rounded to TF32, to nearest, ties to even.
  bool rounds_to_tf32 = false;
  bool operator==(const TensorMapShape&) const = default;
};

struct Argument {
  ArgumentRole role;
  std::string type;  ///< "const float* __restrict__", "const __grid_constant__ TensorMap"
  std::string name;  ///< "x"
  TensorMapShape map = {};
  /// The kernel stores there: its type does not say const.
  bool written() const { return !type.starts_with("const "); }
  bool operator==(const Argument&) const = default;
};

/// One GPU kernel of the source. A launch runs the entries in order on one stream.
struct KernelEntry {
  std::string name;
  std::array<std::uint32_t, 3> grid{1, 1, 1};
  std::uint32_t threads = 1;
  std::uint32_t shared_bytes = 0;  ///< dynamic shared memory
  std::vector<Argument> arguments;
  bool packs_weights = false;  ///< turns w into packed_w; left out if the caller has packed weights
  /// May start before the entry before it has finished: it waits by itself before it reads what that one writes, and
  /// all of its blocks wait, so that when it has finished, so has the one before.
  bool starts_early = false;
  bool operator==(const KernelEntry&) const = default;
};

struct KernelSource {
  std::string text;                  ///< the complete .cu; empty for a convolution without outputs
  std::vector<std::string> options;  ///< NVRTC options, --gpu-architecture included
  std::vector<KernelEntry> entries;
  Workspace workspace;
  bool operator==(const KernelSource&) const = default;
};

/// Prints the plan as CUDA. Pure and deterministic: the same plan gives the same bytes on every machine.
KernelSource generate(const ConvPlan& plan);

/// SHA-256 (hex) over templates/ and codegen/, computed by the build: part of every cache key.
std::string_view generator_fingerprint();

}  // namespace jitconv::codegen
