// Where the operand of a multiplication lies in shared memory, read from its descriptor (a wgmma matrix descriptor):
// in core matrices, eight rows of 16 bytes one after the other, or swizzled, in rows of 32, 64 or 128 bytes as a tensor
// map's box brings them; such rows may also be pixels, over which is summed. What no GPU was seen to do as the model
// does is refused.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "host/finding.h"
#include "host/swizzle.h"
#include "host/tile_multiply.h"

namespace jitconv::host {

struct OperandRefusal {
  Rule rule{};
  std::string text;
};

/// What follows along a row in memory: indices of the reduction (K-major), or the operand's own rows or columns
/// (MN-major), of 16-bit elements.
enum class OperandOrder : std::uint8_t { k_major, mn_major };

class OperandPlace {
 public:
  explicit OperandPlace(std::uint64_t descriptor, OperandOrder order = OperandOrder::k_major);

  /// Why the model refuses the descriptor; nothing if it accepts it.
  std::optional<OperandRefusal> refusal() const;
  /// For multiply_tile(), of a block whose shared memory is at `memory`.
  TileOperand tile(const char* memory) const;

  /// Calls visit(row, offset, bytes) for neighbouring bytes that are read, of rows from `row` on, until it returns
  /// false. Together they are what is read, and nothing else; of rows over which is summed, these are whole pieces.
  template <typename Visit>
  void visit_runs(std::uint32_t rows, const Visit& visit) const;

 private:
  /// Of a row over which is summed, its first bytes.
  template <typename Visit>
  bool visit_row_of_sums(std::uint32_t row, std::uint32_t bytes, std::uint32_t offset, const Visit& visit) const;

  static constexpr std::uint32_t kPiece = kSwizzlePiece, kRows = 8;

  std::optional<OperandRefusal> pixel_refusal() const;

  std::uint64_t descriptor_;
  OperandOrder order_;
  std::uint32_t first_, right_half_, step_;  // bytes; of pixels, right_half_ is the distance of the next channels
  std::uint32_t row_bytes_;                  // if swizzled; 0 if not
};

template <typename Visit>
void OperandPlace::visit_runs(std::uint32_t rows, const Visit& visit) const {
  if (order_ == OperandOrder::mn_major) {
    for (std::uint32_t row = 0; row < rows; row += row_bytes_ / 2)
      for (std::uint32_t pixel = 0; pixel < 2 * kRows; ++pixel)
        if (!visit_row_of_sums(
                row, std::min(row_bytes_, (rows - row) * 2),
                first_ + row / (row_bytes_ / 2) * right_half_ + pixel / kRows * step_ + pixel % kRows * row_bytes_,
                visit))
          return;
    return;
  }
  if (row_bytes_ != 0) {
    // The two pieces of a row are neighbours wherever the swizzle brings them, though perhaps in the other order.
    for (std::uint32_t row = 0; row < rows; ++row) {
      const std::uint32_t left = swizzled(first_ + row / kRows * step_ + row % kRows * row_bytes_, row_bytes_);
      if (!visit(row, left / (2 * kPiece) * (2 * kPiece), 2 * kPiece)) return;
    }
    return;
  }
  for (std::uint32_t half = 0; half < 2; ++half)
    for (std::uint32_t row = 0; row < rows; row += kRows)
      if (!visit(row, first_ + half * right_half_ + row / kRows * step_, kRows * kPiece)) return;
}

template <typename Visit>
bool OperandPlace::visit_row_of_sums(std::uint32_t row, std::uint32_t bytes, std::uint32_t offset,
                                     const Visit& visit) const {
  if (bytes == row_bytes_) return visit(row, offset, bytes);
  for (std::uint32_t first = 0; first < bytes; first += kPiece)
    if (!visit(row, swizzled(offset + first, row_bytes_), kPiece)) return false;
  return true;
}

}  // namespace jitconv::host
