// What the wgrad_wgmma family decides: which part of dw a block computes, of which pixels, and how they come to the
// tensor cores. What follows from a tiling and the problem is computed by its members and by WgradGeometry.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "codegen/arithmetic.h"
#include "codegen/pack_pixels/tiling.h"
#include "codegen/pixel_splits.h"
#include "codegen/problem.h"
#include "codegen/reduce/tiling.h"
#include "codegen/tensor_map.h"

namespace jitconv::codegen {

/// Tensor-core kernel of the weight gradient for sm_90a: 64 output channels are the rows of a product, `block_c` input
/// channels its columns, and there is one product for each tap, summed over pixels. Operands are either rows of pixels
/// (K-major): dy comes to the multiplications through registers and serves all taps; x lies in shared memory, shifted
/// so that every tap finds whole operand rows. Or they are rows of channels (MN-major), as NHWC tensors of 16-bit
/// elements have them: a tap is a row of shared memory to begin at.
struct WgradWgmmaTiling {
  enum class Producer : std::uint8_t {
    loads,    ///< threads load both tensors, and write operand rows of x
    gathers,  ///< the same of few channels: rows of x have a column of the product for each channel and filter column
    orders,   ///< TMA brings runs of NCHW planes, and threads make operand rows of those of x
    boxes,    ///< TMA brings boxes of NHWC tensors, swizzled, which are operands as they lie (MN-major)
    planes,   ///< TMA brings runs of planes, those of x swizzled, which are an operand as they lie (K-major): 1x1 only
  };
  Producer producer = Producer::loads;
  int consumers_k = 1;      ///< 2: the consumer warpgroups have different output channels; 1: different taps
  int block_c = 64;         ///< input channels of a tile: the N of an instruction
  int block_r = 1;          ///< filter rows of a block
  int block_s = 1;          ///< filter columns of a block
  bool joins_taps = false;  ///< an instruction's columns are those of all filter columns of a block: gathers, or boxes
  int row_pixels = 32;      ///< of dy in a step, a multiple of an instruction's
  int x_rows = 4;           ///< of x in shared memory
  int stages = 3;           ///< of dy in shared memory
  bool x_vectors = false;   ///< x is read as vectors of 16 bytes, else pixel by pixel
  int raw_rows = 0;         ///< of x as they lie in memory, to be put in order
  int copy_vector = 1;      ///< elements of dy that a thread's copy brings
  int strip_rows = 1;       ///< of dy, whose steps follow each other
  int splits = 1;           ///< blocks that share the strips of a tile
  int summed_strips = 1;    ///< strips whose products an accumulator sums up before it is added to memory, or
  int piece_rows = 1;       ///< rows of a strip, if that is cut in pieces
  /// Each operand is the sum of two TF32 numbers. Accumulators, which truncate, take the products of one step of one
  /// instruction's, and then are added to fp32 sums.
  bool splits_operands = false;
  /// The kernel's x is dy and its dy is x: see exchanged_operands(). Or each of its groups is so many of those asked
  /// for: see join_groups(). What follows speaks of the kernel's.
  bool exchanges = false;
  int joins_groups = 1;
  /// A kernel before makes planes of the tensor, or NHWC rows for boxes (pack_pixels/). In planes of x for orders, rows
  /// are [phase][column], each phase whole vectors.
  bool packs_x = false, packs_dy = false;
  /// A kernel before gathers the patches of x (gather_patches/). What is asked for, in all that follows, is the weight
  /// gradient of patch_problem().
  bool gathers_patches = false;
  /// Rows of all images are one row, with columns of zeros between images. Only for packed tensors, boxes or runs.
  bool joins_rows = false;
  Tensor partial_sums = Tensor::scratch;

  static constexpr int kConsumers = 2;
  bool threads_load() const { return producer == Producer::loads || gathers(); }
  bool gathers() const { return producer == Producer::gathers; }
  bool orders() const { return producer == Producer::orders; }
  bool takes_boxes() const { return producer == Producer::boxes; }
  bool takes_planes() const { return producer == Producer::planes; }
  /// One thread does all that the producer warps do.
  bool copies_operands() const { return takes_boxes() || takes_planes(); }
  bool packs() const { return packs_x || packs_dy; }
  int operand_parts() const { return splits_operands ? 2 : 1; }  ///< numbers that an operand's element is the sum of
  /// Two warpgroups put x in order, unless consumers take more registers than a launch of as many threads has.
  int producer_warps() const {
    const bool many = splits_operands ? split_registers() > kRegistersBesideTwo : block_c > 128;
    return orders() && !many ? 8 : 4;
  }
  int order_warps() const { return producer_warps() - 1; }  ///< that put copied rows in order
  int threads() const { return 32 * producer_warps() + 128 * kConsumers; }
  int consumer_registers() const {
    if (threads_load()) return splits_operands ? 200 : 208;
    return copies_operands() ? 240 : producer_warps() == 8 ? kRegistersBesideTwo : 232;
  }
  int producer_registers() const {
    if (threads_load()) return splits_operands ? 104 : 88;
    return copies_operands() ? 24 : 40;
  }
  /// The most accumulators of a thread. If operands are split, room is left for steps of four multiplications.
  int most_accumulators() const {
    if (splits_operands) return (orders() ? 232 : 200) - kOtherRegisters - columns() / 2 - 8 * 4;
    return takes_boxes() ? 192 : gathers() ? 96 : 160;
  }
  int block_k() const { return 64 * consumers_k; }
  int taps() const { return block_r * block_s; }
  /// Columns of an instruction.
  int columns() const { return joins_taps ? static_cast<int>(round_up(std::int64_t{block_s} * block_c, 8)) : block_c; }
  int products() const { return joins_taps ? block_r : taps(); }  ///< instructions for the same pixels
  /// The products() of one warpgroup: all, or, if warpgroups share them, the larger half, which the first has.
  int consumer_products() const { return consumers_k == 2 ? products() : (products() + 1) / 2; }
  int accumulators() const { return consumer_products() * columns() / 2; }
  /// If operands are split, multiplications of the larger parts that accumulators take before they are promoted, and
  /// what a consumer thread needs: sums, one instruction's accumulators, both parts of a step of dy, and all else.
  int promotion_interval() const { return row_pixels / 8; }
  int split_registers() const { return accumulators() + columns() / 2 + 8 * promotion_interval() + kOtherRegisters; }
  /// What is asked for: `given`, a weight gradient, or that of its patches.
  Problem asked_of(const Problem& given) const;
  /// The problem that the kernel computes, and how the sums of what is asked for lie then.
  Problem problem_of(const Problem& asked) const;
  GradientSums sums_of(const Problem& asked) const;
  PackPixelsTiling packing_of(const Problem& asked) const;
  /// Floats from one split's sums to the next's, of the kernel's problem. Of exchanged operands, there is a place for
  /// db, which is not asked of that.
  std::int64_t sum_stride(const Problem& problem) const {
    return exchanges ? round_up(problem.weight_elements() + problem.input_channels(), 64)
                     : gradient_sum_stride(problem);
  }
  /// How blocks share the pixels of the kernel's problem.
  PixelSplits pixel_splits(const Problem& problem) const;
  void share_pixels(const Problem& problem, std::int64_t most_splits);
  bool operator==(const WgradWgmmaTiling&) const = default;

 private:
  Problem unpacked_problem_of(const Problem& asked) const;
  /// How a tensor of `asked`, which is not packed, is packed for `problem`, which the kernel computes.
  PackedPixels packed_x(const Problem& asked, const Problem& problem) const;
  PackedPixels packed_dy(const Problem& asked, const Problem& problem) const;

  // Registers of a consumer thread: what it has if two warpgroups load, and what it needs beside sums and operands.
  static constexpr int kRegistersBesideTwo = 216, kOtherRegisters = 40;
};

/// Whether a weight gradient is one of exchanged_operands(), too: without a stride, also in the view that x is, and
/// with no more padding than the filter reaches.
bool can_exchange_operands(const Problem& asked);

/// The weight gradient of which x is the dy, and dy the x: of dw[k][c][r] = sum over p of dy[k][p] * x[c][p + r - pad],
/// with h = p + r - pad, the same sums are those over h of x[c][h] * dy[k][h + (R - 1 - r) - (R - 1 - pad)]. So input
/// and output channels are exchanged, and taps run from last to first. Without db.
Problem exchanged_operands(const Problem& asked);

/// Channels of an NCHW tensor whose planes start at different places within 16 bytes.
inline std::int64_t plane_period_of(const View& view) { return plane_period(view.stride.c * view.element_bytes()); }

/// Where a tap finds its operand: a phase of x's columns, one of the shifted copies of it, and a unit of 16 bytes; of
/// boxes, the phase's number among those there are, and a pixel.
struct TapOperand {
  int phase = 0, copy = 0, unit = 0;
};

/// Numbers that follow from a problem and a tiling, worked out once.
class WgradGeometry {
 public:
  WgradGeometry(const Problem& problem, const WgradWgmmaTiling& tiling);

  const Problem& problem() const { return problem_; }
  const WgradWgmmaTiling& tiling() const { return tiling_; }
  bool is_fp32() const { return problem_.input.type == DataType::f32; }
  /// Pixels of a unit, 16 bytes: an operand row. A multiplication takes two.
  int unit_pixels() const { return static_cast<int>(16 / problem_.input.element_bytes()); }
  int depth() const { return 2 * unit_pixels(); }
  /// Whether threads copy dy without waiting (cp.async), which brings whole words.
  bool copies_dy_async() const { return tiling_.copy_vector * problem_.output.element_bytes() >= 4; }
  /// Units of a producer thread in flight.
  int load_batch() const { return unit_pixels() > 4 ? 1 : tiling_.gathers() || tiling_.splits_operands ? 3 : 5; }
  int phases() const { return static_cast<int>(problem_.columns.stride); }
  /// Shifts of the copies, in pixels of a phase; and the pixel of the row's first unit, counted from q * stride.
  const std::vector<int>& shifts() const { return shifts_; }
  std::int64_t first_shift() const { return first_shift_; }
  /// The operand of the block's filter column `s`.
  TapOperand tap_operand(int s) const;
  int units() const { return units_; }  ///< of a copy
  // Boxes: of each phase and each part of the channels, rows of channels, one for each pixel.
  const std::vector<int>& box_phases() const { return box_phases_; }  ///< columns modulo the stride that taps meet
  int row_channels() const { return std::min(tiling_.block_c, 64); }
  int row_bytes() const { return 2 * row_channels(); }
  int parts() const { return tiling_.block_c / row_channels(); }
  int boxes() const { return static_cast<int>(box_phases_.size()) * parts(); }
  int box_pixels() const { return tiling_.row_pixels + static_cast<int>(reach_); }
  std::int64_t box_bytes() const { return round_up(std::int64_t{box_pixels()} * row_bytes(), kBoxAlignment); }
  // Planes: parts of a row of x, each of as many pixels as a swizzled row has, [c][pixel].
  int part_pixels() const { return kSwizzledRowBytes / static_cast<int>(problem_.input.element_bytes()); }
  int pixel_parts() const { return tiling_.row_pixels / part_pixels(); }
  /// Multiplications that read dy from shared memory as it lies there, not by way of registers.
  bool takes_dy_as_it_lies() const { return tiling_.takes_boxes() || (tiling_.takes_planes() && !is_fp32()); }
  /// One unused, or two: stores of neighbours have no bank conflicts.
  int unit_rows() const { return (tiling_.gathers() ? tiling_.columns() : tiling_.block_c) + 1; }
  /// Units that are loaded for a row of x.
  int loads() const { return units_ * (tiling_.gathers() ? tiling_.columns() : phases() * tiling_.block_c); }
  std::int64_t x_part_bytes() const;  ///< of a row of x, one of the numbers that its elements are the sum of
  std::int64_t x_row_bytes() const { return tiling_.operand_parts() * x_part_bytes(); }
  int dy_pitch() const;              ///< elements
  std::int64_t stage_bytes() const;  ///< of dy
  std::int64_t dy_first_byte() const { return tiling_.x_rows * x_row_bytes(); }
  /// Runs of planes: so many channels have planes that start at different places within 16 bytes, and a box for each.
  std::int64_t x_period() const { return tiling_.orders() && !tiling_.x_vectors ? plane_period_of(problem_.input) : 1; }
  std::int64_t dy_period() const { return tiling_.orders() ? plane_period_of(problem_.output) : 1; }
  /// Whether rows of dy have 16-bit pixels that are pairs of an operand, but lie in two words.
  bool cuts_pairs() const { return tiling_.orders() && !is_fp32() && problem_.columns.output % 2 != 0; }
  /// Elements of a channel's run of x as TMA brings it, or a phase's, and bytes of all of them, and of a slot.
  int raw_pitch() const { return unit_pixels() * (units_ + (tiling_.x_vectors ? 1 : 2)); }
  std::int64_t raw_bytes() const { return problem_.input.element_bytes() * raw_pitch() * phases() * tiling_.block_c; }
  std::int64_t raw_box_bytes() const { return round_up(raw_bytes() / x_period(), 128); }
  std::int64_t raw_slot_bytes() const { return x_period() * raw_box_bytes(); }
  std::int64_t raw_first_byte() const { return dy_first_byte() + tiling_.stages * stage_bytes(); }
  std::int64_t barriers_first_byte() const { return raw_first_byte() + tiling_.raw_rows * raw_slot_bytes(); }
  std::int64_t shared_bytes() const {
    return barriers_first_byte() + 16 * (tiling_.x_rows + tiling_.stages + tiling_.raw_rows);
  }
  /// Pixels of the longest box of either tensor, where there are any that depend on the tiling.
  int longest_box() const {
    return tiling_.takes_boxes() ? box_pixels() : tiling_.orders() ? std::max(raw_pitch(), dy_pitch()) : 0;
  }
  std::int64_t strips_of_row() const { return ceil_div(problem_.columns.output, tiling_.row_pixels); }
  /// Rows from one step to the next: where a block has several filter rows, their distance, so that they share rows of
  /// x.
  std::int64_t row_step() const { return tiling_.block_r > 1 ? problem_.rows.dilation : 1; }
  /// Rows of x that are new to a step that is not its strip's first: those of the others move up.
  std::int64_t new_rows() const { return std::min<std::int64_t>(problem_.rows.stride, tiling_.block_r); }
  std::int64_t strips_of_column() const {
    return row_step() * ceil_div(ceil_div(problem_.rows.output, row_step()), tiling_.strip_rows);
  }
  std::int64_t pieces() const { return ceil_div(tiling_.strip_rows, tiling_.piece_rows); }
  std::int64_t sums() const { return ceil_div(ceil_div(strips(), tiling_.splits), tiling_.summed_strips) * pieces(); }
  /// Nothing that the constructor works out depends on it.
  void set_strip_rows(int rows) { tiling_.strip_rows = rows; }
  std::int64_t strips() const { return problem_.n * strips_of_row() * strips_of_column(); }
  std::int64_t tiles_c() const { return ceil_div(problem_.c, tiling_.block_c); }
  std::int64_t tiles_k() const { return ceil_div(problem_.k, tiling_.block_k()); }
  std::int64_t tiles_r() const { return ceil_div(problem_.rows.taps, tiling_.block_r); }
  std::int64_t tiles_s() const { return ceil_div(problem_.columns.taps, tiling_.block_s); }
  std::int64_t tiles() const { return problem_.groups * tiles_c() * tiles_k() * tiles_r() * tiles_s(); }

 private:
  std::int64_t shift_of(int s) const;
  int phase_of(int s) const;

  Problem problem_;
  WgradWgmmaTiling tiling_;
  std::vector<int> shifts_;
  static constexpr std::int64_t kBoxAlignment = 1024;  // of swizzled boxes
  static constexpr int kSwizzledRowBytes = 128;        // the widest
  std::vector<int> box_phases_;
  std::int64_t first_shift_ = 0, reach_ = 0;
  int units_ = 0;
};

}  // namespace jitconv::codegen
