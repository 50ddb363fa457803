// How a wgmma kernel's outputs get from accumulators to y: what a tile writes, what is staged in shared memory on the
// way, and by how much a warp or TMA stores at a time. The text is emit_store_*.cpp's.
#pragma once

#include <cstdint>

#include "codegen/wgmma/geometry.h"

namespace jitconv::codegen {

/// Output channels of a consumer warpgroup: the rows of a wgmma instruction.
inline constexpr int kConsumerChannels = 64;

class WgmmaStore {
 public:
  /// Works out what all stores need; `geometry` must outlive the object.
  explicit WgmmaStore(const WgmmaGeometry& geometry);

  static constexpr int kStagedChannels = 8;  ///< of a warp at a time, where stages_runs()
  /// Elements before the first that a run stores: its first vectors are stored in part.
  int lead() const { return lead_; }
  /// Whether a tile writes sums, as floats whatever the operands: those of a split, or of phases (phases.h).
  bool stores_sums() const { return stores_sums_; }
  /// Bytes of an output where a tile writes it: in y, or among sums.
  std::int64_t written_bytes() const { return written_bytes_; }
  /// Bytes of a staged output: of its own type, or of a float if it is a sum of a split or of folded columns, or a
  /// residual is added to it.
  int staged_bytes() const { return staged_bytes_; }
  /// Whether TMA stores staged runs (NCHW). It is slower where planes of floats start in the middle of a
  /// line of 128 bytes, and cannot add a residual on the way.
  bool stores_bulk() const { return stores_bulk_; }
  /// Whether TMA stores the planes of eight channels of an image at a time, which are neighbours in y (NCHW, runs of
  /// whole images).
  bool stores_planes() const { return stores_planes_; }
  bool uses_tma() const { return stores_bulk_ || stores_planes_; }  ///< NCHW
  /// Staged outputs of a channel's row while it is staged for its store, such that lanes have few bank conflicts. Of
  /// planes, a channel's share of what a warp stages. Where not stages_runs(): of a position's 64 channels.
  int staging_pitch() const { return staging_pitch_; }
  /// Floats before those of a run where its folded columns' sums of outputs before it are left.
  int staged_before() const { return staged_before_; }
  /// Whether a warp stages runs of its channels, [channel][position]: NCHW, or folded columns, whose sums are added
  /// there.
  bool stages_runs() const;
  /// Channels of a position that one instruction writes, where such runs are stored as NHWC.
  int run_store_vector() const;
  /// Positions a consumer stages at a time (NHWC). Where boxes are stored, an equal part of a run. 0 if there is none,
  /// or where stages_runs().
  int store_columns() const { return store_columns_; }
  std::int64_t box_bytes() const { return std::int64_t{store_columns_} * staging_pitch_ * staged_bytes_; }
  std::int64_t staging_bytes() const { return staging_bytes_; }  ///< of shared memory

  /// Outputs of a lane's store where runs are whole images: a vector, if no vector crosses the end of a row or plane.
  int store_width() const;
  /// Channels one instruction writes (NHWC): all of a group, and of a phase whose pixels are stored.
  int store_vector() const;
  /// Pixels of a row of dx that one instruction writes, if they are stored (NCHW): those of all phases of columns, a
  /// vector of them, or 1; or one and the zeros beside it.
  int pixels_of_store() const;
  std::int64_t partial_sum_stride() const;  ///< floats from one split's sums to the next's
  std::int64_t partial_sum_bytes() const;   ///< of all splits

 private:
  bool can_store_bulk() const;
  bool can_store_planes() const;
  int pitch_of_runs() const;
  int columns_nhwc() const;
  std::int64_t bytes_of_staging() const;

  const WgmmaGeometry& geometry_;
  bool stores_sums_, stores_bulk_, stores_planes_;
  int lead_, staged_bytes_, staged_before_, store_columns_, staging_pitch_;
  std::int64_t written_bytes_, staging_bytes_;
};

}  // namespace jitconv::codegen
