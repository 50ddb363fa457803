// See operand_place.h. Fields count 16 bytes: address in bits 0 to 13, right half from bit 16, step from bit 32; the
// layout is in bits 62 and 63. The hardware takes the right half of a swizzled operand from the row, not from its
// field.
#include "host/operand_place.h"

#include <fmt/format.h>

#include <utility>

namespace jitconv::host {
namespace {

constexpr std::uint64_t kField = 0x3fff, kLayout = 3;
constexpr unsigned kLayoutBit = 62;
constexpr std::uint64_t kKnown = kField | kField << 16 | kField << 32 | kLayout << kLayoutBit;
constexpr std::uint32_t kRowBytesOfLayout[] = {0, 128, 64, 32};

std::uint32_t field(std::uint64_t descriptor, unsigned shift) {
  return static_cast<std::uint32_t>(descriptor >> shift & kField) << 4;
}

}  // namespace

OperandPlace::OperandPlace(std::uint64_t descriptor, OperandOrder order)
    : descriptor_(descriptor),
      order_(order),
      first_(field(descriptor, 0)),
      right_half_(field(descriptor, 16)),
      step_(field(descriptor, 32)),
      row_bytes_(kRowBytesOfLayout[descriptor >> kLayoutBit & kLayout]) {}

std::optional<OperandRefusal> OperandPlace::refusal() const {
  if ((descriptor_ & ~kKnown) != 0) {
    return OperandRefusal{
        Rule::out_of_bounds,
        fmt::format("operand {:#x} is none without swizzle and none with one that begins where its rows do",
                    descriptor_)};
  }
  if (order_ == OperandOrder::mn_major) return pixel_refusal();
  if (row_bytes_ == 0) return std::nullopt;
  if (step_ % (kRows * row_bytes_) != 0) {
    return OperandRefusal{Rule::misaligned,
                          fmt::format("eight rows of {} bytes of a swizzled operand begin {} bytes behind the eight "
                                      "before them: no multiple of {}",
                                      row_bytes_, step_, kRows * row_bytes_)};
  }
  if (first_ % (2 * kPiece) != 0) {
    return OperandRefusal{Rule::misaligned,
                          fmt::format("a swizzled operand begins {} bytes into its rows: no multiple of {}",
                                      first_ % row_bytes_, 2 * kPiece)};
  }
  return std::nullopt;
}

std::optional<OperandRefusal> OperandPlace::pixel_refusal() const {
  if (row_bytes_ == 0) return OperandRefusal{Rule::out_of_bounds, "an operand whose rows are pixels is not swizzled"};
  for (const auto& [what, bytes] : {std::pair{"begins", first_}, std::pair{"has its next channels", right_half_},
                                    std::pair{"has its next eight pixels", step_}}) {
    if (bytes % row_bytes_ == 0) continue;
    return OperandRefusal{Rule::misaligned, fmt::format("an operand whose rows are pixels {} at {} bytes: no multiple "
                                                        "of its rows' {}",
                                                        what, bytes, row_bytes_)};
  }
  return std::nullopt;
}

TileOperand OperandPlace::tile(const char* memory) const {
  if (row_bytes_ == 0) return {{memory + first_, memory + first_ + right_half_}, step_};
  if (order_ == OperandOrder::mn_major) return {{memory, memory}, step_, row_bytes_, first_, right_half_, true};
  return {{memory, memory}, step_, row_bytes_, first_};
}

}  // namespace jitconv::host
