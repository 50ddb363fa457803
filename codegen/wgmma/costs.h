// What the parts of a wgmma kernel cost. The formula is price.cpp's. Cycles are of an SM, unless a group says
// otherwise.
#pragma once

#include <cstdint>

namespace jitconv::codegen {

struct WgmmaCosts {
  std::int64_t picoseconds_per_cycle;

  /// Picoseconds.
  struct Launches {
    std::int64_t launch;               ///< of every launch
    std::int64_t pack_weights;         ///< of the kernel that packs weights
    std::int64_t pack_weights_im2col;  ///< the same, where TMA brings pixels: they wait for nothing
    std::int64_t reduce;               ///< of the kernel that adds partial sums, at most
    std::int64_t reduce_few;           ///< of the same kernel, besides their bytes
    std::int64_t transpose_input;      ///< of the kernel that transposes the input
    std::int64_t pack_and_transpose;   ///< more, if both come before the convolution
  };
  Launches launches;

  /// Cycles of a consumer, of a step if nothing else is said.
  struct Multiply {
    std::int64_t weights;                    ///< where weights come with it
    std::int64_t instruction;                ///< of an instruction, besides a quarter of its columns
    std::int64_t alone;                      ///< where no other warpgroup multiplies meanwhile
    std::int64_t unpacked_weights;           ///< where threads round unpacked weights
    std::int64_t unpacked_weight;            ///< more for each unit
    std::int64_t alone_unpacked_percent;     ///< of both, where no other warpgroup multiplies meanwhile
    std::int64_t sliced_k_percent;           ///< of all, where another warpgroup has every second step
    std::int64_t sliced_k_pipe_percent;      ///< of the instructions' time there, at least
    std::int64_t next_batch;                 ///< more for each further batch that the producer loads of it
    std::int64_t converted_bytes_per_cycle;  ///< pixels that pass through shared memory again
    std::int64_t im2col;                     ///< where TMA brings operand rows
    std::int64_t promotion;                  ///< an addition of accumulators to fp32 sums
    std::int64_t promotion_alone;            ///< where no other warpgroup multiplies meanwhile
  };
  Multiply multiply;

  /// Cycles of a producer warp whose lanes load pixels.
  struct Loads {
    std::int64_t latency;                ///< of a batch: from its first load to its stores
    std::int64_t first_touch;            ///< more, of pixels that come from memory, where tiles are few
    std::int64_t issue;                  ///< a warp's load of one channel, or of one vector
    std::int64_t strided_issue;          ///< more of it for each column between lanes
    std::int64_t pixel_issue;            ///< address, predicate and stores of a lane's pixel
    std::int64_t narrow;                 ///< times as long, if a lane loads less than 64 bytes of many
    std::int64_t cold_percent;           ///< more bytes, of planes that a single tap reads
    std::int64_t cold_anywhere_percent;  ///< the same of planes that do not start at whole vectors
    std::int64_t split_row;              ///< where operands are split: a row of each lane, of pixels with several
    std::int64_t split_vector;           ///< the same of rows that are loaded as vectors, and split one at a time
    std::int64_t l2_bytes_per_cycle;     ///< an SM's share
  };
  Loads loads;

  /// Cycles of a producer warp that converts what TMA brings.
  struct Copies {
    std::int64_t issue;                    ///< a copy; a warp's go one after the other
    std::int64_t engine;                   ///< the engine's part of it, of an SM
    std::int64_t latency;                  ///< of a warp's only copies
    std::int64_t next_latency;             ///< where those of another step are on their way meanwhile
    std::int64_t box_latency;              ///< as latency, where a step's pixels are a box of x
    std::int64_t next_box_latency;         ///< as next_latency
    std::int64_t convert_pixels;           ///< 32 copied pixels: addresses and predicates
    std::int64_t convert_slice;            ///< and an operand row of each
    std::int64_t aligned_bytes_per_cycle;  ///< of planes that all warps together align
    std::int64_t l2_bytes_per_cycle;       ///< an SM's share
    std::int64_t l2_box_bytes_per_cycle;   ///< the same of boxes
  };
  Copies copies;

  /// Cycles of TMA in im2col mode.
  struct Im2col {
    std::int64_t issue;               ///< a request of a step
    std::int64_t pixel_sixteenths;    ///< sixteenths, of a pixel's row, however short
    std::int64_t cut_weight_row;      ///< more of a row of transposed weights that ends inside a box
    std::int64_t l2_bytes_per_cycle;  ///< an SM's share
    std::int64_t split_step;          ///< where operands are split in place: a step, until consumers may read it
    std::int64_t split_batch;         ///< and a batch of rows of each lane, until the first is stored
    std::int64_t split_row;           ///< and a row of each lane
  };
  Im2col im2col;

  /// Strided data gradients whose pixels are stored: their tiles have fewer products of what they load. Other
  /// convolutions have the entries of these names in other groups.
  struct Phases {
    std::int64_t l2_bytes_per_cycle;         ///< an SM's share, of pixels that lanes load
    std::int64_t vector_load_percent;        ///< of the time in which warps load vectors of channels
    std::int64_t copies_l2_bytes_per_cycle;  ///< of copies of planes
    std::int64_t im2col_l2_bytes_per_cycle;
    std::int64_t im2col_pixel_sixteenths;
    std::int64_t nhwc_store_percent;  ///< of a store's instructions
    std::int64_t nchw_store_percent;
  };
  Phases phases;

  /// Cycles of a tile or of a block.
  struct Tile {
    std::int64_t start;                    ///< once: packing, the first loads
    std::int64_t start_unpacked;           ///< the same, where no kernel packs weights before
    std::int64_t start_im2col;             ///< the same, where TMA brings pixels
    std::int64_t second_run;               ///< of a step, where consumers have a run each
    std::int64_t all_rows;                 ///< of a step that covers all filter rows
    std::int64_t exchange;                 ///< where consumers add their sums
    std::int64_t exchange_column;          ///< more for each column
    std::int64_t shallow_permille;         ///< more of a tile for each stage that producer warps lack
    std::int64_t shallow_im2col_percent;   ///< more of a tile with three stages, where TMA brings pixels
    std::int64_t two_stages_percent;       ///< more of a tile with two stages
    std::int64_t three_stages_percent;     ///< more of a tile with three stages
    std::int64_t converted_percent;        ///< more of a tile whose converting warps have no stage to spare
    std::int64_t aligned_percent;          ///< more of a tile whose planes warps align
    std::int64_t first_converted_percent;  ///< of a step's load, which the only tile waits for, where warps convert
    std::int64_t unhidden_permille;        ///< of the lesser of loading and multiplying, which the other does not hide
  };
  Tile tile;

  /// Cycles of a consumer that stores a tile.
  struct Store {
    std::int64_t latency;               ///< the last multiplication, barriers
    std::int64_t latency_im2col;        ///< the same, where TMA brings pixels
    std::int64_t latency_boxes;         ///< the same, where TMA stores boxes
    std::int64_t latency_boxes_im2col;  ///< the same, where TMA does both
    std::int64_t stage_column;          ///< a column of accumulators on its way to shared memory
    std::int64_t fold_column;           ///< the same, where sums of folded columns are added there
    std::int64_t stage_rows;            ///< more of it where rows end inside a run
    std::int64_t column;                ///< four bytes of every channel on their way to y
    std::int64_t bulk_column;           ///< the same by TMA, which is waited for less
    std::int64_t nhwc_channels;         ///< NHWC: eight bytes of a position's channels
    std::int64_t box_column;            ///< boxes: four bytes of every channel on their way to shared memory
    std::int64_t box_row_sixteenths;    ///< sixteenths, of 128 bytes that TMA stores: it brings pixels, too
    std::int64_t box_end;               ///< until the last boxes are stored
    std::int64_t awaited_percent;       ///< of what boxes take that have no place until others are stored
    std::int64_t bytes_per_cycle;       ///< of y, an SM's
    std::int64_t box_bytes_per_cycle;   ///< of y in boxes, an SM's
  };
  Store store;

  /// Rates of the whole GPU, and per cent of its bytes or time.
  struct Memory {
    std::int64_t bytes_per_microsecond;
    std::int64_t bytes_per_microsecond_im2col;   ///< where TMA brings pixels
    std::int64_t dram_bytes_per_microsecond;     ///< at most, of tensors that the L2 cache does not hold
    std::int64_t dram_parts_percent;             ///< more of its time for each further part of a pixel's 128 bytes
    std::int64_t dram_cut_percent;               ///< more of its time, if stages hold no whole pixels
    std::int64_t dram_short_run_percent;         ///< more of its time where runs of a plane are half of 1024 bytes
    std::int64_t dram_loaded_percent;            ///< of its time, if lanes load
    std::int64_t transposed_per_microsecond;     ///< bytes that transposing reads and writes
    std::int64_t packed_per_microsecond;         ///< the same of packing weights that the cache keeps
    std::int64_t reduced_per_microsecond;        ///< bytes of partial sums that are added
    std::int64_t unaligned_percent;              ///< of the time, if runs of y do not start and end on 256 bytes
    std::int64_t loaded_percent;                 ///< of the time, if lanes load: their loads and stores queue together
    std::int64_t loaded_boxes_percent;           ///< the same, where TMA stores boxes
    std::int64_t boxes_im2col_percent;           ///< of the time, where TMA stores boxes and brings pixels
    std::int64_t scattered_percent;              ///< more bytes, if vectors do not start at the same places of 64 bytes
    std::int64_t pingpong_percent;               ///< more bytes of tiles in turn with several tiles of channels
    std::int64_t pingpong_im2col_percent;        ///< the same, where TMA brings pixels
    std::int64_t pingpong_boxes_im2col_percent;  ///< the same, where it stores boxes, too
    std::int64_t again_percent;                  ///< of pixels that come again for other output channels
    std::int64_t again_im2col_percent;           ///< the same, where TMA brings pixels
    std::int64_t competing_percent;              ///< more bytes, where copies in flight compete with stores
    std::int64_t unhidden_percent;  ///< of the lesser of computing and memory, which the other does not hide
  };
  Memory memory;
};

}  // namespace jitconv::codegen
