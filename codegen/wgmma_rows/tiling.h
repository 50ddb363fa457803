// What the wgmma_rows family decides, and the numbers of its kernels that follow from that and the problem.
#pragma once

#include <cstdint>

#include "codegen/arithmetic.h"
#include "codegen/pack_weights/tiling.h"
#include "codegen/problem.h"
#include "jitconv/target.h"

namespace jitconv::codegen {

/// Tensor-core kernel for sm_90a, NCHW tensors and few output channels. A block goes down a strip of columns. Input
/// rows pass through shared memory once, and there is a consumer warpgroup for each filter row: at any time as many
/// rows of outputs are open as the filter has rows, and each consumer has one of them.
struct WgmmaRowsTiling {
  int columns = 128;          ///< of a strip: the N of a multiplication, a multiple of 8
  int window = 128;           ///< outputs from a strip to the next, a multiple of a sector
  int folded_columns = 1;     ///< neighbouring filter columns in the rows of a multiplication: see ColumnFold
  int tile_rows = 64;         ///< output rows of a tile
  int slices = 4;             ///< of a step: each is 16 bytes of channels of a pixel; even
  int stages = 4;             ///< steps in flight
  int load_batch = 1;         ///< pixels of a lane in flight
  bool keeps_weights = true;  ///< all of them stay in shared memory; else a step's come with its pixels

  static constexpr int kRows = 64;  ///< of a multiplication
  static constexpr int kFewestFilterRows = 2, kMostFilterRows = 4;
  static constexpr int kProducerWarps = 4;
  bool folds_columns() const { return folded_columns > 1; }
  bool operator==(const WgmmaRowsTiling&) const = default;
};

class WgmmaRowsGeometry {
 public:
  /// The problem must outlive the object.
  WgmmaRowsGeometry(const Problem& problem, const WgmmaRowsTiling& tiling) : problem_(problem), tiling_(tiling) {}

  const Problem& problem() const { return problem_; }
  const WgmmaRowsTiling& tiling() const { return tiling_; }

  // The block.
  int consumers() const { return static_cast<int>(problem_.rows.taps); }
  int threads() const { return (consumers() + 1) * 128; }
  // Registers per thread: of the launch, and what the warpgroups make of them.
  int launch_registers() const { return 65536 / threads() / 8 * 8; }
  int consumer_registers() const;
  int producer_registers() const;
  int load_registers() const;  ///< of a producer thread, for elements in flight

  // Tiles: a strip by tile_rows rows of outputs, every dilation-th, so that each input row meets all filter rows.
  std::int64_t residues() const;          ///< of output rows modulo the dilation
  std::int64_t rows_of_residue() const;   ///< at most
  std::int64_t tiles_of_residue() const;  ///< of a strip
  std::int64_t strips() const;
  std::int64_t tiles() const { return problem_.n * residues() * tiles_of_residue() * strips(); }

  // Steps: a chunk of channels of an input row of a strip.
  int slice_channels() const { return static_cast<int>(16 / problem_.input.element_bytes()); }
  int chunk_channels() const { return tiling_.slices * slice_channels(); }
  std::int64_t chunks() const { return ceil_div(problem_.c, chunk_channels()); }
  ColumnFold fold() const { return {problem_.columns.taps, tiling_.folded_columns}; }
  /// Columns of a strip that are computed and belong to outputs before it.
  std::int64_t fold_reach() const { return (fold().groups() - 1) * problem_.columns.dilation; }
  /// Pixels of a strip: those that taps of its last column meet, too.
  std::int64_t strip_pixels() const {
    return tiling_.columns + fold().first_column(fold().taps() - 1) * problem_.columns.dilation;
  }
  std::int64_t units() const { return fold().taps() * tiling_.slices; }  ///< of a filter row: taps of one slice
  std::int64_t row_weight_bytes() const { return units() * WgmmaRowsTiling::kRows * 16; }  ///< of a filter row
  std::int64_t weight_bytes() const { return problem_.rows.taps * row_weight_bytes(); }    ///< of a step
  std::int64_t pixel_bytes() const { return tiling_.slices * strip_pixels() * 16; }        ///< of a step
  std::int64_t stage_bytes() const { return pixel_bytes() + (tiling_.keeps_weights ? 0 : weight_bytes()); }
  std::int64_t load_items() const { return ceil_div(strip_pixels(), kWarpSize); }  ///< a lane's pixels of a step
  PackWeightsTiling packed_layout() const;

  // Outputs.
  bool stores_floats() const { return problem_.output.type == DataType::f32; }
  int sector_elements() const { return static_cast<int>(32 / problem_.output.element_bytes()); }
  int store_elements() const { return sector_elements() / 2; }  ///< of a vector
  /// Outputs before a sector that a strip begins with, at most; 0 where every row of every plane starts with a sector.
  int lead() const;
  /// Outputs of a strip that its columns must hold besides its window.
  int alignment_outputs() const { return lead() == 0 ? 0 : sector_elements() - 1; }
  int staged_before() const { return static_cast<int>(round_up(fold_reach(), 4)); }
  int staging_pitch() const;
  std::int64_t staging_bytes() const { return std::int64_t{4} * 4 * 8 * staging_pitch(); }

  // Shared memory, by first byte.
  std::int64_t weights_first_byte() const { return round_up(tiling_.stages * stage_bytes(), 128); }
  std::int64_t staging_first_byte() const;
  std::int64_t barriers_first_byte() const { return staging_first_byte() + staging_bytes(); }
  std::int64_t barrier_bytes() const { return 8 * (2 * tiling_.stages + 1 + 4 * consumers()); }
  std::int64_t shared_bytes() const { return barriers_first_byte() + barrier_bytes(); }

 private:
  const Problem& problem_;
  WgmmaRowsTiling tiling_;
};

}  // namespace jitconv::codegen
