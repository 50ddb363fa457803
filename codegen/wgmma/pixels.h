// The input pixels of a step of a wgmma kernel: how a run's pixels lie in a stage as operand rows, and how they come
// there: loaded by threads, as copies of x that threads convert, or by TMA, in im2col mode or as boxes of planes.
#pragma once

#include <array>
#include <cstdint>

#include "codegen/wgmma/grid.h"
#include "codegen/wgmma/tiling.h"

namespace jitconv::codegen {

/// Bytes, of boxes that tensor maps copy with a swizzle.
inline constexpr std::int64_t kSwizzledBoxAlignment = 1024;

class WgmmaGeometry;

class WgmmaPixels {
 public:
  /// Runs of `run_pixels` positions.
  WgmmaPixels(const PixelGrid& grid, const WgmmaTiling& tiling, std::int64_t run_pixels);

  // In a stage.
  /// Pixels from one slice of a run to the next, such that stores of neighbouring lanes have no bank conflicts.
  std::int64_t slice_pitch() const { return slice_pitch_; }
  /// 16-byte places from a pixel of a slice to the next pixel, and from a slice to the next.
  std::int64_t pixel_step() const { return pixel_step_; }
  std::int64_t slice_step() const { return slice_step_; }
  std::int64_t phase_bytes() const { return phase_bytes_; }  ///< from the pixels of a phase to those of the next
  std::int64_t run_bytes() const { return run_bytes_; }      ///< of one part of operands
  std::int64_t input_bytes() const { return input_bytes_; }  ///< of all runs

  // Loaded by threads.
  /// Whether a lane loads a pixel of each phase at a time: PixelGrid::has_phase_pairs().
  bool loads_phase_pairs() const { return loads_phase_pairs_; }
  /// Loads of a warp of a run's pixels, and those of each phase.
  std::int64_t load_items() const { return load_items_; }
  std::int64_t load_items_of_phase() const { return load_items_of_phase_; }

  // By TMA in im2col mode.
  /// What it brings of a step, for which run_bytes() keeps whole kilobytes.
  std::int64_t im2col_bytes() const { return im2col_bytes_; }

  // As rows of channels: parts of a run, [part][channel][kPartPixels].
  static constexpr std::int64_t kPartPixels = 64, kPartBytes = 128;  ///< of a channel
  std::int64_t parts() const { return parts_; }                      ///< of a run

  // By TMA as they lie in x.
  /// Whether what it brings of a run's pixels is a box of x.
  bool copies_boxes() const { return copies_boxes_; }
  /// Whether it is a box that has rows of x, those that the filter's only row meets, and not a part of each plane.
  bool copies_rows() const { return copies_rows_; }
  std::int64_t raw_rows() const { return raw_rows_; }  ///< of such a box
  /// Elements of a channel's copy, at most, and of a run's copies.
  std::int64_t raw_pitch() const { return raw_pitch_; }
  std::int64_t raw_run_elements() const { return raw_run_elements_; }
  std::int64_t raw_bytes() const { return raw_bytes_; }  ///< of a step
  /// Planes start at the same place within 16 bytes as those so many channels before.
  static std::int64_t plane_period(const Problem& problem);
  /// Whether boxes have every plane of a step's that starts at the same place, one box for each place.
  bool copies_periods() const { return copies_periods_; }
  std::int64_t box_elements() const { return box_elements_; }  ///< of such a box

 private:
  void work_out_raw_pixels(const PixelGrid& grid, const WgmmaTiling& tiling, std::int64_t run_pixels);
  void work_out_planes(const PixelGrid& grid, const WgmmaTiling& tiling);
  /// A run's boxes, each of so many elements.
  void lay_out_boxes(std::int64_t boxes, std::int64_t elements, std::int64_t element_bytes);

  std::int64_t slice_pitch_, pixel_step_, slice_step_, phase_bytes_, run_bytes_, input_bytes_;
  std::int64_t load_items_, load_items_of_phase_, im2col_bytes_, parts_;
  bool loads_phase_pairs_;
  bool copies_rows_ = false, copies_boxes_ = false, copies_periods_ = false;
  std::int64_t raw_rows_ = 0, raw_pitch_ = 0, raw_run_elements_ = 0, raw_bytes_ = 0, box_elements_ = 0;
};

/// The first pixels, along w and h, of TMA's im2col mode, and the last but for the extents.
struct Im2colCorners {
  std::array<std::int64_t, 2> lower, upper;
};
Im2colCorners im2col_corners(const WgmmaGeometry& geometry);

}  // namespace jitconv::codegen
