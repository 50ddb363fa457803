// See tensor_box.h. Boxes of fewer axes have extents of 1 along the others.
#include "host/tensor_box.h"

#include <algorithm>
#include <cstring>

namespace jitconv::host {
namespace {

constexpr std::uint32_t kPiece = 16, kPiecesOfRow = 8;

/// Where a byte of a swizzled box is: the pieces of row r are exchanged by r % 8.
std::uint32_t swizzle(std::uint32_t place) { return place ^ place / (kPiece * kPiecesOfRow) % kPiecesOfRow * kPiece; }

/// A word of a float, rounded to nearest TF32, ties to even. All NaNs become one.
std::uint32_t rounded_to_tf32(std::uint32_t bits) {
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fffe000u;
  return (bits + 0xfffu + (bits >> 13 & 1u)) & ~0x1fffu;
}

}  // namespace

TensorBox::TensorBox(const codegen::TensorMapShape& shape, const void* tensor, const Indices& first)
    : tensor_(static_cast<const char*>(tensor)),
      element_bytes_(shape.element_bytes),
      swizzled_(shape.swizzled),
      rounds_to_tf32_(shape.rounds_to_tf32) {
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
  const auto bytes_of_box = static_cast<std::size_t>(box_[0] * box_[1] * box_[2] * element_bytes_);
  std::memset(destination, 0, bytes_of_box);
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
  if (!rounds_to_tf32_) return;
  for (std::size_t at = 0; at < bytes_of_box; at += 4) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, destination + at, 4);
    bits = rounded_to_tf32(bits);
    std::memcpy(destination + at, &bits, 4);
  }
}

}  // namespace jitconv::host
