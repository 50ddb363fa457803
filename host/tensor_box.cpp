// See tensor_box.h. Boxes of fewer axes have extents of 1 along the others.
#include "host/tensor_box.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "codegen/arithmetic.h"
#include "host/swizzle.h"

namespace jitconv::host {
namespace {

using codegen::TensorMapShape;

constexpr std::size_t kImages = 3;  // the axis; before it come channels, w, h

/// A word of a float, rounded to nearest TF32, ties to even. All NaNs become one.
std::uint32_t rounded_to_tf32(std::uint32_t bits) {
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fffe000u;
  return (bits + 0xfffu + (bits >> 13 & 1u)) & ~0x1fffu;
}

// Hardware raises an illegal instruction for a start outside the corners. What it does with a start between the
// strides, an image that does not exist or an offset that does not fit is not known, so all of them are refused.
std::optional<BoxRefusal> im2col_refusal(const TensorMapShape& shape, const TensorMapShape::Im2col& im2col,
                                         const BoxPlace& place) {
  for (std::size_t i = 0; i < 2; ++i) {
    const char axis = "wh"[i];
    const std::int64_t at = place.first[i + 1], lower = im2col.lower[i], end = shape.extents[i + 1] + im2col.upper[i];
    if (at < lower || at >= end)
      return BoxRefusal{
          Rule::out_of_bounds,
          fmt::format("from {} {} on, outside the im2col corners from {} to before {}", axis, at, lower, end)};
    if ((at - lower) % im2col.stride[i] != 0)
      return BoxRefusal{Rule::misaligned, fmt::format("from {} {} on, where im2col mode from {} by {} does not come",
                                                      axis, at, lower, im2col.stride[i])};
    if (const int offset = (*place.offset)[i]; offset < 0 || offset > TensorMapShape::kMostIm2colOffset)
      return BoxRefusal{Rule::out_of_bounds, fmt::format("at an offset along {} of {}: it is 0 to {}", axis, offset,
                                                         TensorMapShape::kMostIm2colOffset)};
  }
  if (place.first[kImages] < 0 || place.first[kImages] >= shape.extents[kImages])
    return BoxRefusal{Rule::out_of_bounds,
                      fmt::format("from image {} of {} on", place.first[kImages], shape.extents[kImages])};
  return std::nullopt;
}

}  // namespace

TensorBox::TensorBox(const TensorMapShape& shape, const void* tensor, const BoxPlace& place)
    : tensor_(static_cast<const char*>(tensor)),
      element_bytes_(shape.element_bytes),
      swizzle_bytes_(static_cast<std::uint32_t>(shape.swizzle_bytes)),
      rounds_to_tf32_(shape.rounds_to_tf32),
      row_elements_(shape.box[0]) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(shape.rank); ++i) {
    first_[i] = place.first[i];
    strides_[i] = shape.strides[i];
    extents_[i] = shape.extents[i];
    if (i == 0 || shape.im2col) continue;
    rows_[i] = {first_[i], first_[i] + shape.box[i]};
    row_count_ *= shape.box[i];
  }
  if (!shape.im2col) return;
  row_count_ = shape.box[1];
  for (std::size_t i = 0; i < 2; ++i) {
    rows_[i + 1] = {shape.im2col->lower[i], extents_[i + 1] + shape.im2col->upper[i], shape.im2col->stride[i]};
    if (place.offset) offset_[i + 1] = (*place.offset)[i];
  }
  rows_[kImages] = {first_[kImages], first_[kImages] + row_count_};
}

TensorBox TensorBox::of_store(const TensorMapShape& shape, const void* tensor, const BoxPlace& place) {
  TensorBox box(shape, tensor, place);
  box.extents_[0] = codegen::round_up(box.extents_[0], TensorMapShape::kUnit / shape.element_bytes);
  return box;
}

std::uint32_t TensorBox::alignment(const TensorMapShape& shape) { return shape.swizzle_bytes != 0 ? 1024 : 128; }

std::optional<BoxRefusal> TensorBox::refusal(const TensorMapShape& shape, const BoxPlace& place) {
  // Not in the reference: hardware takes it for an illegal instruction.
  if (std::int64_t{place.first[0]} * shape.element_bytes % TensorMapShape::kUnit != 0)
    return BoxRefusal{Rule::misaligned, fmt::format("from index {} on, at no multiple of 16 bytes", place.first[0])};
  return shape.im2col ? im2col_refusal(shape, *shape.im2col, place) : std::nullopt;
}

std::optional<BoxRefusal> TensorBox::store_refusal(const TensorMapShape& shape, const BoxPlace& place) {
  // Hardware takes it for an illegal instruction. What begins at the end of an axis or behind it writes nothing.
  for (std::size_t axis = 0; axis < static_cast<std::size_t>(shape.rank); ++axis)
    if (place.first[axis] < 0)
      return BoxRefusal{
          Rule::out_of_bounds,
          fmt::format("from index {} along axis {} on: no store begins before its tensor", place.first[axis], axis)};
  return std::nullopt;
}

template <typename Visit>
void TensorBox::visit_pieces(const Visit& visit) const {
  visit_runs([&](const char* address, std::uint32_t bytes, std::uint32_t place) {
    if (swizzle_bytes_ == 0) {
      visit(address, bytes, place);
      return;
    }
    // The box is where the pattern of the swizzle begins anew.
    for (std::uint32_t done = 0; done < bytes;) {
      const std::uint32_t piece = std::min(bytes - done, kSwizzlePiece - (place + done) % kSwizzlePiece);
      visit(address + done, piece, swizzled(place + done, swizzle_bytes_));
      done += piece;
    }
  });
}

void TensorBox::land(char* destination) const {
  const auto bytes_of_box = static_cast<std::size_t>(row_count_ * row_elements_ * element_bytes_);
  std::memset(destination, 0, bytes_of_box);
  visit_pieces([destination](const char* source, std::uint32_t bytes, std::uint32_t place) {
    std::memcpy(destination + place, source, bytes);
  });
  if (!rounds_to_tf32_) return;
  for (std::size_t at = 0; at < bytes_of_box; at += 4) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, destination + at, 4);
    bits = rounded_to_tf32(bits);
    std::memcpy(destination + at, &bits, 4);
  }
}

void TensorBox::store(const char* box, char* tensor) const {
  visit_pieces([&](const char* address, std::uint32_t bytes, std::uint32_t place) {
    std::memcpy(tensor + (address - tensor_), box + place, bytes);
  });
}

}  // namespace jitconv::host
