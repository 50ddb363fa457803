// What the parts of a wgmma kernel cost: the data of the cost model, fitted to measurements. The formula is
// price.cpp's. Cycles are of an SM, unless a group says otherwise.
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
    std::int64_t reduce;               ///< of the kernel that adds partial sums
    std::int64_t transpose_input;      ///< of the kernel that transposes the input
  };
  Launches launches;

  /// Cycles of a consumer, of a step if nothing else is said.
  struct Multiply {
    std::int64_t weights;                    ///< where weights come with it
    std::int64_t alone;                      ///< where no other warpgroup multiplies meanwhile
    std::int64_t unpacked_weights;           ///< where threads round unpacked weights
    std::int64_t unpacked_weight;            ///< more for each unit
    std::int64_t alone_unpacked_percent;     ///< of both, where no other warpgroup multiplies meanwhile
    std::int64_t sliced_k_percent;           ///< of all, where another warpgroup has every second step
    std::int64_t next_batch;                 ///< more for each further batch that the producer loads of it
    std::int64_t converted_bytes_per_cycle;  ///< pixels that pass through shared memory again
    std::int64_t im2col;                     ///< where TMA brings operand rows
    std::int64_t promotion;                  ///< an addition of accumulators to fp32 sums
    std::int64_t promotion_alone;            ///< where no other warpgroup multiplies meanwhile
  };
  Multiply multiply;

  /// Cycles of a producer warp whose lanes load pixels.
  struct Loads {
    std::int64_t latency;             ///< of a batch: from its first load to its stores
    std::int64_t first_touch;         ///< more, of pixels that come from memory, where tiles are few
    std::int64_t issue;               ///< a warp's load of one channel, or of one vector
    std::int64_t strided_issue;       ///< more of it for each column between lanes
    std::int64_t pixel_issue;         ///< address, predicate and stores of a lane's pixel
    std::int64_t narrow;              ///< times as long, if a lane loads less than 64 bytes of many
    std::int64_t l2_bytes_per_cycle;  ///< an SM's share
  };
  Loads loads;

  /// Cycles of a producer warp that converts what the copy engine brings.
  struct Copies {
    std::int64_t issue;                   ///< a copy; a warp's go one after the other
    std::int64_t engine;                  ///< the engine's part of it, of an SM
    std::int64_t latency;                 ///< of a warp's only copies
    std::int64_t next_latency;            ///< where those of another step are on their way meanwhile
    std::int64_t box_latency;             ///< as latency, where a step's pixels are a box of x
    std::int64_t next_box_latency;        ///< as next_latency
    std::int64_t convert_pixels;          ///< 32 copied pixels: addresses and predicates
    std::int64_t convert_slice;           ///< and an operand row of each
    std::int64_t l2_bytes_per_cycle;      ///< an SM's share
    std::int64_t l2_box_bytes_per_cycle;  ///< the same of boxes
  };
  Copies copies;

  /// Cycles of TMA in im2col mode.
  struct Im2col {
    std::int64_t issue;               ///< a request of a step
    std::int64_t pixel_sixteenths;    ///< sixteenths, of a pixel's row, however short
    std::int64_t l2_bytes_per_cycle;  ///< an SM's share
  };
  Im2col im2col;

  /// Cycles of a tile or of a block.
  struct Tile {
    std::int64_t start;                   ///< once: packing, the first loads
    std::int64_t start_unpacked;          ///< the same, where no kernel packs weights before
    std::int64_t start_im2col;            ///< the same, where TMA brings pixels
    std::int64_t second_run;              ///< of a step, where consumers have a run each
    std::int64_t all_rows;                ///< of a step that covers all filter rows
    std::int64_t exchange;                ///< where consumers add their sums
    std::int64_t exchange_column;         ///< more for each column
    std::int64_t shallow_permille;        ///< more of a tile for each stage that producer warps lack
    std::int64_t shallow_im2col_percent;  ///< more of a tile with three stages
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
    std::int64_t bulk_column;           ///< the same by the copy engine, which is waited for less
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
    std::int64_t transposed_per_microsecond;     ///< bytes that transposing reads and writes
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
  };
  Memory memory;
};

/// An H200's. Where not said otherwise, they were fitted to 6,204 measurements of candidates of DeepBench's training
/// set, the documented configurations and KernelBench's level 2; those of im2col to 2,503 of 120 convolutions of the
/// same lists on NHWC tensors; those of transposing to 824 of 47 convolutions of DeepBench on NCHW tensors; those of
/// boxes to 1,550 of 39 of these convolutions.
inline constexpr WgmmaCosts kH200WgmmaCosts = {
    .picoseconds_per_cycle = 508,  // of short kernels; power lowers the clock of long ones
    .launches = {.launch = 1'969'089,
                 .pack_weights = 4'464'863,
                 .pack_weights_im2col = 1'873'345,
                 .reduce = 1'925'314,
                 .transpose_input = 2'663'352},
    .multiply = {.weights = 69,
                 .alone = 4,
                 .unpacked_weights = 37,
                 .unpacked_weight = 28,
                 .alone_unpacked_percent = 215,
                 .sliced_k_percent = 34,
                 .next_batch = 24,
                 .converted_bytes_per_cycle = 57,
                 .im2col = 13,
                 .promotion = 100,
                 .promotion_alone = 350},
    .loads = {.latency = 2'255,
              .first_touch = 659,
              .issue = 7,
              .strided_issue = 24,
              .pixel_issue = 6,
              .narrow = 2,
              .l2_bytes_per_cycle = 29},
    .copies = {.issue = 17,
               .engine = 41,
               .latency = 1'897,
               .next_latency = 475,
               .box_latency = 733,
               .next_box_latency = 686,
               .convert_pixels = 394,
               .convert_slice = 13,
               .l2_bytes_per_cycle = 51,
               .l2_box_bytes_per_cycle = 46},
    .im2col = {.issue = 130, .pixel_sixteenths = 24, .l2_bytes_per_cycle = 46},
    .tile = {.start = 1'695,
             .start_unpacked = 4'396,
             .start_im2col = 1'536,
             .second_run = 49,
             .all_rows = 9,
             .exchange = 63,
             .exchange_column = 28,
             .shallow_permille = 58,
             .shallow_im2col_percent = 4},
    .store = {.latency = 2'123,
              .latency_im2col = 3'529,
              .latency_boxes = 1'944,
              .latency_boxes_im2col = 2'304,
              .stage_column = 3,
              .fold_column = 6,  // bank conflicts counted, not fitted
              .stage_rows = 53,
              .column = 4,
              .bulk_column = 11,
              .nhwc_channels = 5,
              .box_column = 4,
              .box_row_sixteenths = 2,
              .box_end = 4'190,
              .awaited_percent = 75,
              .bytes_per_cycle = 14,
              .box_bytes_per_cycle = 92},
    .memory = {.bytes_per_microsecond = 8'860'803,
               .bytes_per_microsecond_im2col = 8'655'115,
               .transposed_per_microsecond = 2'152'083,
               .unaligned_percent = 248,
               .loaded_percent = 212,
               .loaded_boxes_percent = 188,
               .boxes_im2col_percent = 156,
               .scattered_percent = 1,
               .pingpong_percent = 34,
               .pingpong_im2col_percent = 17,
               .pingpong_boxes_im2col_percent = 56,
               .again_percent = 1,
               .again_im2col_percent = 5,
               .competing_percent = 3},
};

}  // namespace jitconv::codegen
