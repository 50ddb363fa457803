// How TMA sees a tensor: what a kernel gets as a tensor map instead of a pointer.
#pragma once

#include <array>
#include <cstdint>
#include <numeric>
#include <optional>

namespace jitconv::codegen {

/// How TMA sees a tensor that a kernel gets as a tensor map instead of a pointer (cp.async.bulk.tensor,
/// cuTensorMapEncodeTiled): a copy brings a box of it, as one block of memory without gaps, and zeros for what lies
/// outside; or it takes one there, but for what lies outside, and such a box starts at no negative index. Axes are
/// counted from the one whose elements are neighbours; along that, boxes start at whole 16 bytes.
struct TensorMapShape {
  // Limits of the hardware and of cuTensorMapEncode*.
  static constexpr int kMostRank = 4;
  static constexpr int kMostBox = 256;  ///< elements along an axis
  static constexpr std::int64_t kUnit = 16, kMostExtent = std::int64_t{1} << 32;
  static constexpr std::int64_t kMostStride = std::int64_t{1} << 40;  ///< bytes, not reached
  static constexpr int kMostIm2colPixels = 1024, kMostIm2colStride = 8, kMostIm2colOffset = 255;
  static constexpr int kLeastCorner = -128, kMostCorner = 127;
  int rank = 0;           ///< 0: the parameter is a pointer
  int element_bytes = 4;  ///< 4 or 2
  std::array<std::int64_t, kMostRank> extents{};
  std::array<std::int64_t, kMostRank> strides{};  ///< elements; the first is 1, the others multiples of kUnit bytes
  std::array<int, kMostRank> box{};  ///< at most kMostBox along an axis; rows are multiples of kUnit bytes; see im2col
  /// Width of rows whose pieces of 16 bytes are exchanged, so that reads of a column have no bank conflicts; 0: none
  /// are. Of 128 bytes, piece i of row r lies at place i ^ r % 8, of 64 at i ^ r / 2 % 4, of 32 at i ^ r / 4 % 2. A
  /// copy's destination is then a multiple of 1024 bytes, else of 128.
  int swizzle_bytes = 0;
  /// Floats are rounded to TF32 on the way, to nearest, ties to even.
  bool rounds_to_tf32 = false;
  /// Im2col mode in place of boxes (cuTensorMapEncodeIm2col), for a tensor with the axes C, W, H, N. A copy brings
  /// box[0] channels of box[1] pixels (up to kMostIm2colPixels), a row for each pixel. It starts at a pixel and goes on
  /// by `stride` along w, then h, then n. Along {w, h}, pixels begin at `lower` and end before the extent plus `upper`.
  /// Each pixel is read at an offset from it that the copy names, 0 to kMostIm2colOffset along each axis. What lies
  /// outside the tensor is zero.
  struct Im2col {
    std::array<int, 2> lower{}, upper{};  ///< kLeastCorner to kMostCorner
    std::array<int, 2> stride{1, 1};      ///< 1 to kMostIm2colStride
    bool operator==(const Im2col&) const = default;
  };
  std::optional<Im2col> im2col = {};
  bool writes_scratch = false;  ///< of a region of scratch: boxes are taken there
  /// Bytes that one copy brings.
  std::int64_t box_bytes() const {
    std::int64_t bytes = element_bytes;
    for (int axis = 0; axis < (im2col ? 2 : rank); ++axis) bytes *= box[static_cast<std::size_t>(axis)];
    return bytes;
  }
  bool operator==(const TensorMapShape&) const = default;
};

/// Planes of so many bytes start at the same place within TensorMapShape::kUnit bytes as those so many planes before.
/// With that many planes as a row, one box has the planes of every row that start at a place.
constexpr std::int64_t plane_period(std::int64_t bytes) {
  return TensorMapShape::kUnit / std::gcd(TensorMapShape::kUnit, bytes);
}

}  // namespace jitconv::codegen
