// A box of a tensor as the copy engine brings it to shared memory (cp.async.bulk.tensor): which of its elements are
// there to be read, and where each of them lands.
#pragma once

#include <array>
#include <cstdint>

#include "codegen/source.h"

namespace jitconv::host {

class TensorBox {
 public:
  using Indices = std::array<int, codegen::TensorMapShape::kMostRank>;
  /// The box that begins at the indices, negative or beyond the end as they may be.
  TensorBox(const codegen::TensorMapShape& shape, const void* tensor, const Indices& first);

  static std::int64_t bytes(const codegen::TensorMapShape& shape);
  /// What the place in shared memory is a multiple of.
  static std::uint32_t alignment(const codegen::TensorMapShape& shape);

  /// Calls visit(address, bytes, place) for each run of neighbours that lies in the tensor. `place`: where the run
  /// would land in the box if it were not swizzled.
  template <typename Visit>
  void visit_runs(const Visit& visit) const;
  /// Writes the whole box: what lies outside the tensor as zeros, words rounded if the shape says so.
  void land(char* destination) const;

 private:
  static constexpr std::size_t kAxes = codegen::TensorMapShape::kMostRank;
  struct Range {
    std::int64_t first = 0, last = 1;  // of the box's elements along an axis, those in the tensor
  };

  const char* tensor_;
  std::int64_t element_bytes_;
  bool swizzled_, rounds_to_tf32_;
  std::array<std::int64_t, kAxes> first_{}, strides_{}, box_{1, 1, 1};
  std::array<Range, kAxes> inside_{};
};

template <typename Visit>
void TensorBox::visit_runs(const Visit& visit) const {
  const auto& [run, rows, planes] = inside_;
  if (run.first >= run.last) return;
  for (std::int64_t plane = planes.first; plane < planes.last; ++plane) {
    for (std::int64_t row = rows.first; row < rows.last; ++row) {
      const std::int64_t element =
          first_[0] + run.first + (first_[1] + row) * strides_[1] + (first_[2] + plane) * strides_[2];
      visit(tensor_ + element * element_bytes_, static_cast<std::uint32_t>((run.last - run.first) * element_bytes_),
            static_cast<std::uint32_t>(((plane * box_[1] + row) * box_[0] + run.first) * element_bytes_));
    }
  }
}

}  // namespace jitconv::host
