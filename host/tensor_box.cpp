// See tensor_box.h. Boxes of fewer axes have extents of 1 along the others.
#include "host/tensor_box.h"

#include <algorithm>
#include <cstring>

namespace jitconv::host {
namespace {

constexpr std::uint32_t kPiece = 16, kPiecesOfRow = 8;

/// Where a byte of a swizzled box is: the pieces of row r are exchanged by r % 8.
std::uint32_t swizzle(std::uint32_t place) { return place ^ place / (kPiece * kPiecesOfRow) % kPiecesOfRow * kPiece; }

}  // namespace

TensorBox::TensorBox(const codegen::TensorMapShape& shape, const void* tensor, const Indices& first)
    : tensor_(static_cast<const char*>(tensor)), element_bytes_(shape.element_bytes), swizzled_(shape.swizzled) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(shape.rank); ++i) {
    first_[i] = first[i];
    strides_[i] = shape.strides[i];
    box_[i] = shape.box[i];
    inside_[i] = {std::max<std::int64_t>(0, -first_[i]), std::min(box_[i], shape.extents[i] - first_[i])};
  }
}

std::int64_t TensorBox::bytes(const codegen::TensorMapShape& shape) {
  std::int64_t bytes = shape.element_bytes;
  for (std::size_t i = 0; i < static_cast<std::size_t>(shape.rank); ++i) bytes *= shape.box[i];
  return bytes;
}

std::uint32_t TensorBox::alignment(const codegen::TensorMapShape& shape) { return shape.swizzled ? 1024 : 128; }

void TensorBox::land(char* destination) const {
  std::memset(destination, 0, static_cast<std::size_t>(box_[0] * box_[1] * box_[2] * element_bytes_));
  visit_runs([&](const char* source, std::uint32_t bytes, std::uint32_t place) {
    if (!swizzled_) {
      std::memcpy(destination + place, source, bytes);
      return;
    }
    for (std::uint32_t done = 0; done < bytes;) {
      const std::uint32_t piece = std::min(bytes - done, kPiece - (place + done) % kPiece);
      std::memcpy(destination + swizzle(place + done), source + done, piece);
      done += piece;
    }
  });
}

}  // namespace jitconv::host
