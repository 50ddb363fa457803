// See operand_place.h. Fields count 16 bytes: address in bits 0 to 13, right half from bit 16, step from bit 32; the
// layout is in bits 62 and 63. The hardware takes the right half of a swizzled operand from the row, not from its
// field.
#include "host/operand_place.h"

#include <fmt/format.h>

namespace jitconv::host {
namespace {

constexpr std::uint64_t kField = 0x3fff, kSwizzled = std::uint64_t{1} << 62;
constexpr std::uint64_t kKnown = kField | kField << 16 | kField << 32 | kSwizzled;

std::uint32_t field(std::uint64_t descriptor, unsigned shift) {
  return static_cast<std::uint32_t>(descriptor >> shift & kField) << 4;
}

}  // namespace

OperandPlace::OperandPlace(std::uint64_t descriptor)
    : descriptor_(descriptor),
      first_(field(descriptor, 0)),
      right_half_(field(descriptor, 16)),
      step_(field(descriptor, 32)),
      swizzled_((descriptor & kSwizzled) != 0) {}

std::optional<OperandRefusal> OperandPlace::refusal() const {
  if ((descriptor_ & ~kKnown) != 0) {
    return OperandRefusal{
        Rule::out_of_bounds,
        fmt::format("operand {:#x} is none without swizzle and none with one of 128 bytes", descriptor_)};
  }
  if (!swizzled_) return std::nullopt;
  // Pieces change places by the bits of their address: elsewhere they would not by the number of the row.
  const std::uint32_t rows = first_ / kSwizzledRow * kSwizzledRow;
  if (rows % kSwizzledRows != 0 || step_ % kSwizzledRows != 0) {
    return OperandRefusal{Rule::misaligned, fmt::format("eight rows of a swizzled operand begin at shared + {:#x}, and "
                                                        "the next eight {} bytes behind them: no multiples of {}",
                                                        rows, step_, kSwizzledRows)};
  }
  if (pieces() % 2 != 0) {
    return OperandRefusal{Rule::misaligned,
                          fmt::format("a swizzled operand begins {} bytes into its rows: no multiple of {}",
                                      pieces() * kPiece, 2 * kPiece)};
  }
  return std::nullopt;
}

TileOperand OperandPlace::tile(const char* memory) const {
  if (!swizzled_) return {{memory + first_, memory + first_ + right_half_}, step_};
  const char* const rows = memory + first_ / kSwizzledRow * kSwizzledRow;
  return {{rows, rows}, step_, /*swizzled=*/true, pieces()};
}

}  // namespace jitconv::host
