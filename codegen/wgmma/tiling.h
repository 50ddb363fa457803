// What the wgmma family decides, in parts. What follows from the decisions and the problem is WgmmaGeometry's.
#pragma once

#include <cstdint>

namespace jitconv::codegen {

/// Tensor-core kernel for sm_90a. A block is one producer warpgroup, which loads, and two consumer warpgroups, which
/// multiply; it goes through tiles of output channels by one or two runs of positions. A position is a place in an
/// image's grid of output rows that are row_padding() columns longer than y's, so that a tap is a constant distance
/// between positions; a run is `columns` consecutive ones. A step of the pipeline is one filter row, or all of them, of
/// `slices` slices of channels.
struct WgmmaTiling {
  struct Tile {
    /// Output channels: 128 (each consumer has 64 and all positions), or 64 (which share a tile: a run each). If
    /// columns are folded, rows, of which each channel has several.
    int channels = 128;
    /// Neighbouring filter columns that one multiplication takes: a tile's rows are so many groups of all channels, and
    /// the sums of group j belong to outputs j columns before. 1: rows are channels.
    int folded_columns = 1;
    int columns = 256;  ///< positions of a run: the N of a multiplication, a multiple of 8
    /// From a run to the next: outputs, a multiple of a sector or whole images, or, where boxes are stored, positions.
    int window = 248;
    int images = 0;  ///< consecutive images of a run; 0: its window lies in one image
    bool operator==(const Tile&) const = default;
  };
  Tile tile;

  /// What the two consumer warpgroups share.
  enum class Schedule : std::uint8_t {
    cooperative,  ///< a tile, of which each has channels or a run of its own
    pingpong,     ///< the tiles of a block, which they take in turn: one stores while the other multiplies
    sliced_k,     ///< the steps of a tile, of which each takes every second, and they add their sums
  };
  Schedule schedule = Schedule::cooperative;

  struct Pipeline {
    int filter_rows = 1;  ///< of a step: 1, or R, and then a pixel is loaded once for all rows
    int slices = 4;       ///< of a step: each is 16 bytes of channels of a pixel; 1, or even
    int stages = 3;       ///< steps in flight
    bool operator==(const Pipeline&) const = default;
  };
  Pipeline pipeline;

  enum class Weights : std::uint8_t {
    packed,      ///< packed by a kernel before the convolution, loaded with each step
    resident,    ///< packed, and all of them stay in shared memory
    unpacked,    ///< loaded with each step as they lie in w
    transposed,  ///< the same of a data gradient's 1x1 filter, whose output channels are neighbours: 16 bits, MN-major
  };
  Weights weights = Weights::packed;

  enum class Pixels : std::uint8_t {
    loaded,     ///< threads load them and write operand rows
    converted,  ///< TMA brings them as they lie in x, and threads make operand rows of that
    im2col,     ///< TMA brings operand rows of an NHWC tensor, swizzled, in im2col mode
    planes,     ///< TMA brings boxes of NCHW planes of 16-bit elements, swizzled: an MN-major operand as it lies
    aligned,    ///< TMA brings planes that start anywhere as they lie in x, and threads shift them to such an operand
  };
  struct Producer {
    Pixels pixels = Pixels::loaded;
    int team_warps = 1;    ///< loaded: warps that share a step; 4 / team_warps teams take steps in turn
    int load_batch = 0;    ///< loaded: pixels, or vectors, of a lane in flight
    int copies_ahead = 0;  ///< converted, aligned: steps that are on their way to a warp
    bool operator==(const Producer&) const = default;
  };
  Producer producer;

  /// Boxes of a consumer's outputs that are staged, or on their way to y, at a time, if TMA stores them (NHWC);
  /// 0: threads do, or TMA stores runs or planes (NCHW).
  int staged_boxes = 0;
  /// What a kernel before the convolution makes of the input, so that im2col can bring it.
  enum class Preparation : std::uint8_t {
    none,
    transposition,  ///< to NHWC (transpose_input/)
    gathering,      ///< what outputs meet of it (gather_patches/): what remains is a 1x1 convolution of patches
    splitting,      ///< NHWC pairs of fp16 numbers (transpose_input/)
  };
  Preparation preparation = Preparation::none;
  bool stores_pixels = false;  ///< of a strided data gradient: Phases::stores_pixels
  int joins_groups = 1;        ///< that a group of the kernel's problem is made of: join_groups()
  int split_k = 1;             ///< blocks that share the reduction of a tile, each a range of steps
  /// If operands are split into two numbers each: multiplications of the larger ones that accumulators take, which
  /// truncate, before they are added to fp32 sums. 0: operands are not split.
  int promotion_interval = 0;
  bool f16_pairs = false;  ///< the two numbers are fp16: f16_pairs.h

  static constexpr int kMostColumns = 256;
  static constexpr int kThreads = 384;
  static constexpr int kProducerWarps = 4;  ///< of a block, the first; the others are two consumer warpgroups
  /// Per thread, of the launch; setmaxnreg then moves registers from the producer to the consumers.
  static constexpr int kLaunchRegisters = 168;

  /// Warpgroups that have accumulators for different outputs of a tile.
  int tile_consumers() const { return schedule == Schedule::cooperative ? 2 : 1; }
  int runs() const { return 64 * tile_consumers() / tile.channels; }
  bool packs_weights() const { return weights == Weights::packed || keeps_weights(); }
  bool takes_weights_transposed() const { return weights == Weights::transposed; }
  bool keeps_weights() const { return weights == Weights::resident; }
  bool loads_pixels() const { return producer.pixels == Pixels::loaded; }
  bool converts_pixels() const { return producer.pixels == Pixels::converted; }
  bool uses_im2col() const { return producer.pixels == Pixels::im2col; }
  bool uses_planes() const { return producer.pixels == Pixels::planes; }
  bool aligns_pixels() const { return producer.pixels == Pixels::aligned; }
  /// TMA brings pixels as they lie in x, of which threads make an operand.
  bool copies_pixels() const { return converts_pixels() || aligns_pixels(); }
  /// The operand's rows are channels, each 64 pixels of a plane.
  bool multiplies_planes() const { return uses_planes() || aligns_pixels(); }
  /// What TMA brings is an operand, which no thread touches.
  bool copies_operands() const { return uses_im2col() || uses_planes(); }
  bool transposes_input() const { return preparation == Preparation::transposition; }
  bool gathers_patches() const { return preparation == Preparation::gathering; }
  bool splits_input() const { return preparation == Preparation::splitting; }
  bool stores_boxes() const { return staged_boxes > 0; }
  bool folds_columns() const { return tile.folded_columns > 1; }
  bool splits_operands() const { return promotion_interval > 0; }
  /// Whether producer warps split what TMA brings.
  bool splits_im2col() const { return splits_operands() && uses_im2col() && !splits_input(); }
  /// Copies of an operand in a stage, of which the larger parts are one and the smaller ones another. Pairs of fp16
  /// numbers are one, as large as floats.
  int operand_parts() const { return splits_operands() && !f16_pairs ? 2 : 1; }
  bool operator==(const WgmmaTiling&) const = default;
};

}  // namespace jitconv::codegen
