// What TMA brings of a tensor to shared memory (cp.async.bulk.tensor), a box of it or pixels in im2col
// mode: which of the elements are there to be read, and where each of them lands. And the way back, of boxes.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "codegen/source.h"
#include "host/finding.h"

namespace jitconv::host {

/// What a copy by a map is asked for.
struct BoxPlace {
  std::array<int, codegen::TensorMapShape::kMostRank> first{};  ///< where it begins, also outside; a store not before
  std::optional<std::array<int, 2>> offset = {};  ///< in im2col mode: each pixel is read so far to its right, and down
};

struct BoxRefusal {
  Rule rule{};
  std::string text;
};

class TensorBox {
 public:
  TensorBox(const codegen::TensorMapShape& shape, const void* tensor, const BoxPlace& place);
  /// The same for a store: hardware writes whole pieces of 16 bytes, of which a row's last may reach behind its end.
  static TensorBox of_store(const codegen::TensorMapShape& shape, const void* tensor, const BoxPlace& place);

  /// What the place in shared memory is a multiple of.
  static std::uint32_t alignment(const codegen::TensorMapShape& shape);
  /// Why no copy begins there; nothing if one does.
  static std::optional<BoxRefusal> refusal(const codegen::TensorMapShape& shape, const BoxPlace& place);
  /// Why no box is stored from there on though a copy to shared memory may begin there; nothing if one is.
  static std::optional<BoxRefusal> store_refusal(const codegen::TensorMapShape& shape, const BoxPlace& place);

  /// Calls visit(address, bytes, place) for each run of neighbours that lies in the tensor. `place`: where the run
  /// would land in the box if it were not swizzled.
  template <typename Visit>
  void visit_runs(const Visit& visit) const;
  /// Writes the whole box: what lies outside the tensor as zeros, words rounded if the shape says so.
  void land(char* destination) const;
  /// The way back, of_store(): writes what lies in the tensor as it is in the box. `tensor`: as given there.
  void store(const char* box, char* tensor) const;

 private:
  static constexpr std::size_t kAxes = codegen::TensorMapShape::kMostRank;
  using Index = std::array<std::int64_t, kAxes>;
  /// As visit_runs(), of what the swizzle leaves together; `place`: where that is in the box.
  template <typename Visit>
  void visit_pieces(const Visit& visit) const;
  struct Range {
    std::int64_t begin = 0, end = 1, by = 1;  // of indices along an axis
  };

  /// From the index of a row's first element to the next row's: where an axis ends, the one behind it goes on.
  void step(Index& index) const {
    for (std::size_t axis = 1; axis < kAxes; ++axis) {
      index[axis] += rows_[axis].by;
      if (index[axis] < rows_[axis].end) return;
      index[axis] = rows_[axis].begin;
    }
  }

  const char* tensor_;
  std::int64_t element_bytes_;
  std::uint32_t swizzle_bytes_;
  bool rounds_to_tf32_;
  Index first_{}, offset_{}, strides_{}, extents_{1, 1, 1, 1};
  std::array<Range, kAxes> rows_{};
  std::int64_t row_elements_, row_count_ = 1;
};

template <typename Visit>
void TensorBox::visit_runs(const Visit& visit) const {
  // Every row of the box has the same elements inside the tensor, if it has any.
  const std::int64_t begin = first_[0] < 0 ? -first_[0] : 0;
  const std::int64_t end = extents_[0] - first_[0] < row_elements_ ? extents_[0] - first_[0] : row_elements_;
  if (begin >= end) return;
  Index index = first_;
  for (std::int64_t row = 0; row < row_count_; ++row, step(index)) {
    std::int64_t element = first_[0] + begin;
    bool inside = true;
    for (std::size_t axis = 1; axis < kAxes && inside; ++axis) {
      const std::int64_t at = index[axis] + offset_[axis];
      inside = at >= 0 && at < extents_[axis];
      if (inside) element += at * strides_[axis];
    }
    if (!inside) continue;
    visit(tensor_ + element * element_bytes_, static_cast<std::uint32_t>((end - begin) * element_bytes_),
          static_cast<std::uint32_t>((row * row_elements_ + begin) * element_bytes_));
  }
}

}  // namespace jitconv::host
