// What the parts of a pointwise kernel cost. Cycles are of an SM.
#pragma once

#include <cstdint>

namespace jitconv::codegen {

struct PointwiseCosts {
  std::int64_t picoseconds_per_cycle;
  std::int64_t start;  ///< picoseconds: the launch, the first loads, the last store
  /// Cycles of TMA, and bytes that it brings in one.
  struct Copies {
    std::int64_t copy;     ///< of a run of pixels, whatever its length
    std::int64_t looped;   ///< times as long, where a loop copies runs of any number of images
    std::int64_t box_row;  ///< of a box of rows, whatever their length
    std::int64_t bytes;
    std::int64_t streamed_bytes;  ///< pixels, and weights with them
    std::int64_t gathered_bytes;  ///< where pixels come as images or rows
    std::int64_t weight_bytes;    ///< every block at once, through registers
  };
  Copies copies;
  std::int64_t step;                ///< cycles: a barrier, the step's first pixels on their way to registers
  std::int64_t two_stages_percent;  ///< more of a tile with two stages: loading waits for multiplying
  std::int64_t shared_bytes_per_cycle;
  /// Cycles.
  struct Store {
    std::int64_t latency;  ///< the last multiplication, the first store
    std::int64_t bytes_per_cycle;
    /// Hundredths, of a word that is stored by itself: eight lanes store a sector of 32 bytes,
    std::int64_t sector;
    std::int64_t halves;  ///< two halves of sectors,
    std::int64_t parts;   ///< or parts of two
  };
  Store store;
  /// The kernel that adds partial sums.
  struct Reduce {
    std::int64_t launch;  ///< picoseconds
    std::int64_t bytes_per_picosecond;
    std::int64_t cached_bytes;   ///< others are written to memory and read from there,
    std::int64_t memory_tenths;  ///< at so many tenths of a picosecond a byte
  };
  Reduce reduce;
  std::int64_t dram_bytes_per_microsecond;
  std::int64_t unread_percent;    ///< of the bytes of rows that no output meets
  std::int64_t unhidden_percent;  ///< of the lesser of computing and memory, which the other does not hide
};

}  // namespace jitconv::codegen
