// See price.h.
#include "codegen/wgmma/price.h"

#include <algorithm>

#include "codegen/arithmetic.h"
#include "codegen/cost.h"

namespace jitconv::codegen {
namespace {

// Fitted to 6,204 measurements of candidates of DeepBench's training set, the documented configurations and
// KernelBench's level 2, measured on an H200: cycles, and picoseconds where they say so.
constexpr std::int64_t kPicosecondsPerCycle = 508;  // of short kernels; power lowers the clock of long ones
constexpr std::int64_t kLoadLatency = 2'255;        // of a batch: from its first load to its stores
constexpr std::int64_t kFirstTouch = 659;           // of pixels that come from memory, where tiles are few
constexpr std::int64_t kLoadIssue = 7;              // a warp's load of one channel, or of one vector
constexpr std::int64_t kNextBatch = 24;             // multiplying warps wait longer where a step takes several batches
constexpr std::int64_t kStridedIssue = 24;          // more of it for each column between lanes
constexpr std::int64_t kPixelIssue = 6;             // address, predicate and stores of a lane's pixel
constexpr std::int64_t kL2BytesPerCycle = 29;       // an SM's share
constexpr std::int64_t kCopyIssue = 17;             // a copy of the copy engine; a warp's go one after the other
constexpr std::int64_t kCopyEngine = 41;            // the engine's part of it, of an SM
constexpr std::int64_t kCopyLatency = 1'897;        // of a warp's only copies
constexpr std::int64_t kNextCopyLatency = 475;      // where those of another step are on their way meanwhile
constexpr std::int64_t kConvertPixels = 394;        // 32 copied pixels: addresses and predicates
constexpr std::int64_t kConvertSlice = 13;          // and an operand row of each
constexpr std::int64_t kCopiedBytesPerCycle = 57;  // multiplications wait while pixels pass through shared memory again
constexpr std::int64_t kL2CopiedBytesPerCycle = 51;
constexpr std::int64_t kSecondRun = 49;    // a step's, where consumers have a run each
constexpr std::int64_t kWeights = 69;      // and where weights come with it
constexpr std::int64_t kBoxLatency = 733;  // as kCopyLatency, where a step's pixels are a box of x
constexpr std::int64_t kNextBoxLatency = 686;
constexpr std::int64_t kL2BoxBytesPerCycle = 46;
constexpr std::int64_t kRawStart = 4'396;      // as kStart, where no kernel packs weights before
constexpr std::int64_t kRawWeights = 37;       // and where threads round them
constexpr std::int64_t kRawWeight = 28;        // more for each unit
constexpr std::int64_t kAllRows = 9;           // and where it covers all filter rows
constexpr std::int64_t kTurnStep = 4;          // a step's, where no other warpgroup multiplies meanwhile
constexpr std::int64_t kRawTurnPercent = 215;  // and of what threads take to round weights
constexpr std::int64_t kStepTurnPercent = 34;  // of both, where another warpgroup has every second step
constexpr std::int64_t kExchange = 63;         // a tile's, where warpgroups add their sums
constexpr std::int64_t kExchangeColumn = 28;
constexpr std::int64_t kStoreLatency = 2'123;      // the last multiplication, barriers
constexpr std::int64_t kStage = 3;                 // a column of accumulators on its way to shared memory
constexpr std::int64_t kStageRows = 53;            // more of it where rows end inside a run
constexpr std::int64_t kStoreColumn = 4;           // four bytes of every channel on their way to y
constexpr std::int64_t kStoreChannels = 5;         // NHWC: eight bytes of a position's channels
constexpr std::int64_t kStart = 1'695;             // once: packing, the first loads
constexpr std::int64_t kLaunch = 1'969'089;        // picoseconds of every launch
constexpr std::int64_t kExtraLaunch = 4'464'863;   // of a kernel before the convolution
constexpr std::int64_t kReduceLaunch = 1'925'314;  // of the one behind it
constexpr std::int64_t kDramBytesPerMicrosecond = 8'860'803;
constexpr std::int64_t kUnalignedPercent = 248;  // of the memory's time if runs of y do not start and end on 256 bytes
constexpr std::int64_t kLoadedPercent = 212;     // of it, if lanes load: their loads and stores queue together
constexpr std::int64_t kBulkColumn = 11;         // as kStoreColumn by the copy engine, which is waited for less
constexpr std::int64_t kNarrowLoads = 2;         // times what a load of a whole 64 bytes takes
constexpr std::int64_t kShallowPermille = 58;    // more of a tile for each stage that loading warps lack
constexpr std::int64_t kScatteredPercent = 1;    // more of the memory's bytes
constexpr std::int64_t kTurnsPercent = 34;       // and of tiles in turn
constexpr std::int64_t kAgainPercent = 1;        // of pixels that come again for other output channels
constexpr std::int64_t kCompetingPercent = 3;
// For kernels whose pixels the copy engine walks over. They convert nothing and have constants of their own, fitted
// to 2,503 measurements of 120 convolutions of the same lists on NHWC tensors.
constexpr std::int64_t kWalkIssue = 130;               // a request of a step
constexpr std::int64_t kWalkPixel = 24;                // sixteenths, of a pixel's row, however short
constexpr std::int64_t kL2WalkedBytesPerCycle = 46;    // an SM's share
constexpr std::int64_t kWalkStep = 13;                 // a step's, of those who multiply
constexpr std::int64_t kWalkStart = 1'536;             // as kStart
constexpr std::int64_t kWalkStore = 3'529;             // as kStoreLatency
constexpr std::int64_t kWalkStoredBytesPerCycle = 14;  // of y, an SM's
constexpr std::int64_t kWalkShallowPercent = 4;        // more of a tile with three stages
constexpr std::int64_t kWalkExtraLaunch = 1'873'345;   // as kExtraLaunch
constexpr std::int64_t kWalkAgainPercent = 5;          // as kAgainPercent
constexpr std::int64_t kWalkTurnsPercent = 17;         // as kTurnsPercent
constexpr std::int64_t kWalkDramBytesPerMicrosecond = 8'655'115;
// In addition, where pixels are transposed; fitted to 824 measurements of 47 convolutions of DeepBench on NCHW tensors.
constexpr std::int64_t kTransposeLaunch = 2'663'352;                // of the kernel that transposes pixels
constexpr std::int64_t kTransposedBytesPerMicrosecond = 2'152'083;  // that it reads and writes
// Where the copy engine stores boxes of y; fitted to 1,550 measurements of 39 of these convolutions.
constexpr std::int64_t kBoxStore = 1'944;             // as kStoreLatency
constexpr std::int64_t kBoxLoadedPercent = 188;       // as kLoadedPercent
constexpr std::int64_t kBoxWalkStore = 2'304;         // as kWalkStore
constexpr std::int64_t kBoxEnd = 4'190;               // until the last are stored
constexpr std::int64_t kBoxAwaitedPercent = 75;       // of what boxes take that have no place until others are stored
constexpr std::int64_t kBoxColumn = 4;                // four bytes of every channel on their way to shared memory
constexpr std::int64_t kBoxRow = 2;                   // sixteenths, of 128 bytes: the engine that walks stores, too
constexpr std::int64_t kBoxStoredBytesPerCycle = 92;  // of y, an SM's
constexpr std::int64_t kBoxTurnsPercent = 56;         // as kWalkTurnsPercent
constexpr std::int64_t kBoxWalkPercent = 156;         // of the memory's time of walks
constexpr int kLoadingWarps = 4;
constexpr std::int64_t kSectorBytes = 32;

}  // namespace

WgmmaPrice::WgmmaPrice(const Problem& problem, const Target& target)
    : problem_(problem), target_(target), grid_(problem), bytes_(static_cast<std::int64_t>(work(problem).bytes)) {}

std::int64_t WgmmaPrice::step_load(const WgmmaGeometry& geometry) const {
  const WgmmaTiling& tiling = geometry.tiling();
  using Pixels = WgmmaTiling::Pixels;
  switch (tiling.producer.pixels) {
    case Pixels::loaded:
      return load_by_lanes(geometry);
    case Pixels::converted:
      return load_copied(geometry);
    case Pixels::im2col:
      return load_walked(geometry);
  }
  return 0;
}

std::int64_t WgmmaPrice::load_walked(const WgmmaGeometry& geometry) const {
  const WgmmaTiling& tiling = geometry.tiling();
  const std::int64_t requests = tiling.runs() * geometry.phases();
  const std::int64_t bytes = geometry.walked_bytes() + geometry.stage_weight_bytes();
  return std::max(requests * (kWalkIssue + geometry.run_pixels() * kWalkPixel / 16), bytes / kL2WalkedBytesPerCycle);
}

std::int64_t WgmmaPrice::load_copied(const WgmmaGeometry& geometry) const {
  const WgmmaTiling& tiling = geometry.tiling();
  const std::int64_t runs = tiling.runs(), weight_bytes = geometry.stage_weight_bytes();
  const std::int64_t items = geometry.load_items() * geometry.phases();
  const std::int64_t convert = items * runs * (kConvertPixels + tiling.pipeline.slices * kConvertSlice);
  const std::int64_t bytes = geometry.raw_bytes() + weight_bytes;
  if (geometry.copies_boxes()) {
    const std::int64_t warp = convert + (tiling.producer.copies_ahead == 1 ? kBoxLatency : kNextBoxLatency);
    return std::max(warp / kLoadingWarps, bytes / kL2BoxBytesPerCycle);
  }
  const std::int64_t channels = std::min<std::int64_t>(geometry.chunk_channels(), problem_.c);
  const std::int64_t copies = runs * (tiling.tile.images > 0 ? tiling.tile.images : channels);
  const std::int64_t warp =
      copies * kCopyIssue + convert + (tiling.producer.copies_ahead == 1 ? kCopyLatency : kNextCopyLatency);
  return std::max({warp / kLoadingWarps, copies * kCopyEngine, bytes / kL2CopiedBytesPerCycle});
}

std::int64_t WgmmaPrice::load_by_lanes(const WgmmaGeometry& geometry) const {
  const WgmmaTiling& tiling = geometry.tiling();
  const std::int64_t runs = tiling.runs(), weight_bytes = geometry.stage_weight_bytes();
  const std::int64_t items = geometry.load_items() * geometry.phases();
  const std::int64_t own = ceil_div(items, tiling.producer.team_warps);
  const std::int64_t loads = geometry.loads_vectors() ? 1 : geometry.chunk_channels();
  // A chunk has a step per filter row; the first brings most of the pixels to L2.
  const bool few = ceil_div(geometry.tiles(), target_.sm_count) <= 2;
  const std::int64_t latency =
      kLoadLatency + (few ? kFirstTouch * tiling.pipeline.filter_rows / problem_.rows.taps : 0);
  // Less than 64 bytes at a time, of pixels that have many.
  const bool narrow =
      geometry.loads_vectors() && tiling.pipeline.slices < 4 && 4 * geometry.chunk_channels() <= problem_.c;
  // Lanes that are a stride apart ask for as many more sectors.
  const std::int64_t apart = geometry.loads_vectors() ? 1 : std::min<std::int64_t>(problem_.columns.stride, 8);
  const std::int64_t issue = loads * (kLoadIssue + (apart - 1) * kStridedIssue) + kPixelIssue;
  const std::int64_t warp =
      (narrow ? kNarrowLoads : 1) * runs * (ceil_div(own, tiling.producer.load_batch) * latency + own * issue);
  // Teams that have a step to load, and stages to load it to.
  const std::int64_t steps = geometry.steps_of_split() * ceil_div(geometry.tiles(), target_.sm_count);
  const std::int64_t teams = std::min(
      {std::int64_t{kLoadingWarps / tiling.producer.team_warps}, std::int64_t{tiling.pipeline.stages - 1}, steps});
  // Sectors also contain columns that no tap needs.
  const std::int64_t phases = geometry.phases();
  const std::int64_t width = phases < problem_.columns.stride
                                 ? std::min(problem_.columns.stride, kSectorBytes / problem_.input.element_bytes())
                                 : 1;
  const std::int64_t pixel_bytes = runs * phases * geometry.run_pixels() * width *
                                   std::min<std::int64_t>(geometry.chunk_channels(), problem_.c) *
                                   problem_.input.element_bytes();
  return std::max(warp / teams, (pixel_bytes + weight_bytes) / kL2BytesPerCycle);
}

std::int64_t WgmmaPrice::step_multiply(const WgmmaGeometry& geometry) const {
  const WgmmaTiling& tiling = geometry.tiling();
  const std::int64_t n = tiling.tile.columns, instruction = std::max(n / 2, 16 + n / 4);
  // An instruction multiplies two units; one consumer issues it, or both.
  const bool alone = tiling.tile_consumers() == 1;
  const std::int64_t pipe = geometry.units() * instruction * tiling.tile_consumers() / 2;
  std::int64_t cycles = pipe;
  if (!tiling.keeps_weights()) cycles += kWeights;
  if (alone) cycles += kTurnStep;
  if (geometry.multiplies_registers())
    cycles += (kRawWeights + kRawWeight * geometry.units()) * (alone ? kRawTurnPercent : 100) / 100;
  if (tiling.schedule == WgmmaTiling::Schedule::sliced_k) cycles = std::max(pipe, cycles * kStepTurnPercent / 100);
  if (tiling.uses_im2col()) return cycles + kWalkStep;
  if (tiling.converts_pixels()) return cycles + geometry.raw_bytes() / kCopiedBytesPerCycle;
  const std::int64_t own = ceil_div(geometry.load_items() * geometry.phases(), tiling.producer.team_warps);
  return cycles + (ceil_div(own, tiling.producer.load_batch) - 1) * kNextBatch;
}

std::int64_t WgmmaPrice::store_columns(const WgmmaGeometry& geometry, std::int64_t bytes_of_window) const {
  const WgmmaTiling& tiling = geometry.tiling();
  const std::int64_t n = tiling.tile.columns, rows = geometry.row_ends() > 1 ? kStageRows * n : 0;
  if (tiling.stores_boxes()) return kBoxColumn * geometry.staged_bytes() * n / 4;
  if (problem_.output.layout() == Layout::nhwc) return kStoreChannels * geometry.staged_bytes() * n / 8;
  if (!geometry.stores_bulk()) return rows + kStage * n + kStoreColumn * bytes_of_window / 4;
  return rows + kStage * n * geometry.staged_bytes() / 4 + kBulkColumn * bytes_of_window / 4;
}

std::int64_t WgmmaPrice::tile_bytes(const WgmmaGeometry& geometry) const {
  const WgmmaTiling& tiling = geometry.tiling();
  return tiling.tile.channels * tiling.runs() * tiling.tile.window * geometry.written_bytes();
}

std::int64_t WgmmaPrice::awaited_boxes(const WgmmaGeometry& geometry) const {
  const WgmmaTiling& tiling = geometry.tiling();
  // While a warpgroup that has its turn waits for boxes, the other multiplies.
  if (!tiling.stores_boxes() || tiling.schedule == WgmmaTiling::Schedule::pingpong) return 0;
  const std::int64_t boxes = tiling.tile.columns / geometry.store_columns(), more = boxes - tiling.staged_boxes;
  return more <= 0 ? 0 : tile_bytes(geometry) / kBoxStoredBytesPerCycle * more * kBoxAwaitedPercent / (boxes * 100);
}

std::int64_t WgmmaPrice::input_bytes() const {
  return problem_.n * problem_.input_channels() * problem_.input_plane() / problem_.rows.stride * grid_.row_phases() *
         problem_.input.element_bytes();
}

std::int64_t WgmmaPrice::of_walk(const WgmmaGeometry& geometry, std::int64_t tiles) const {
  const WgmmaTiling& tiling = geometry.tiling();
  using Schedule = WgmmaTiling::Schedule;
  const std::int64_t steps = geometry.steps_of_split(), waves = ceil_div(tiles, target_.sm_count);
  const std::int64_t multiply = steps * step_multiply(geometry), load = steps * step_load(geometry);
  const std::int64_t window_bytes = tiling.tile.window * geometry.written_bytes();
  const bool boxes = tiling.stores_boxes();
  const std::int64_t stored = tile_bytes(geometry) / (boxes ? kBoxStoredBytesPerCycle : kWalkStoredBytesPerCycle);
  std::int64_t store = boxes ? kBoxWalkStore + store_columns(geometry, window_bytes) + awaited_boxes(geometry)
                             : kWalkStore + std::max(stored, store_columns(geometry, window_bytes));
  if (tiling.schedule == Schedule::sliced_k) store = store / 2 + kExchange + kExchangeColumn * tiling.tile.columns;
  const bool turns = tiling.schedule == Schedule::pingpong;
  const std::int64_t consume =
      turns ? std::max({multiply, (multiply + store) / 2, stored}) : std::max(multiply + store, boxes ? stored : 0);
  const std::int64_t engine = load + (boxes ? tile_bytes(geometry) / 128 * kBoxRow / 16 : 0);
  std::int64_t tile = std::max(consume, engine) + std::min(consume, engine) / 8;
  if (tiling.pipeline.stages <= 3) tile += tile * (tiling.pipeline.stages == 2 ? 10 : kWalkShallowPercent) / 100;
  // The first step's pixels are waited for, and of the last tile the store.
  const std::int64_t ends = kWalkStart + load / steps + (turns ? store : 0) + (boxes ? kBoxEnd : 0);
  std::int64_t compute = (waves * tile + ends) * kPicosecondsPerCycle + (tiling.packs_weights() ? kWalkExtraLaunch : 0);
  std::int64_t bytes = bytes_ + (geometry.tiles_k() - 1) * input_bytes() * kWalkAgainPercent / 100;
  if (turns && geometry.tiles_k() > 1) bytes += bytes * (boxes ? kBoxTurnsPercent : kWalkTurnsPercent) / 100;
  if (tiling.split_k > 1) {
    compute += kReduceLaunch;
    bytes += 2 * geometry.partial_sum_bytes();
  }
  const std::int64_t memory =
      bytes * 1000 / (kWalkDramBytesPerMicrosecond / 1000) * (boxes ? kBoxWalkPercent : 100) / 100;
  return std::max(compute, memory) + std::min(compute, memory) / 5 + kLaunch;
}

std::int64_t WgmmaPrice::of_transposition(const Problem& source) const {
  const std::int64_t bytes = problem_.input.element_bytes(), pixels = problem_.n * problem_.input_plane();
  // Sectors also contain columns that no tap needs.
  const std::int64_t width = std::min(source.columns.input * bytes, problem_.columns.input * kSectorBytes);
  const std::int64_t read = problem_.n * problem_.input_channels() * problem_.rows.input * width;
  const std::int64_t written = pixels * grid_.pixel_slices() * PixelGrid::kRowBytes;
  return kTransposeLaunch + (read + written) * 1000 / (kTransposedBytesPerMicrosecond / 1000);
}

std::int64_t WgmmaPrice::of(const WgmmaGeometry& geometry, std::int64_t tiles) const {
  const WgmmaTiling& tiling = geometry.tiling();
  if (tiling.uses_im2col()) return of_walk(geometry, tiles);
  const std::int64_t steps = geometry.steps_of_split(), n = tiling.tile.columns;
  const std::int64_t multiply = steps * step_multiply(geometry), load_of_step = step_load(geometry);
  const std::int64_t load = steps * load_of_step;
  const std::int64_t written_bytes = geometry.written_bytes(), bytes_of_window = tiling.tile.window * written_bytes;
  const bool nhwc = problem_.output.layout() == Layout::nhwc;
  std::int64_t store = (tiling.stores_boxes() ? kBoxStore : kStoreLatency) + store_columns(geometry, bytes_of_window) +
                       awaited_boxes(geometry);

  if (tiling.schedule == WgmmaTiling::Schedule::sliced_k) store = store / 2 + kExchange + kExchangeColumn * n;
  // One warpgroup stores while the other multiplies, except at the end.
  const bool turns = tiling.schedule == WgmmaTiling::Schedule::pingpong;
  const std::int64_t consume = turns ? std::max(multiply, (multiply + store) / 2) : multiply + store;
  const std::int64_t last = turns ? store : 0;
  std::int64_t tile = std::max(consume, load) + std::min(consume, load) / 8;
  if (tiling.runs() == 2) tile += steps * kSecondRun;
  if (tiling.pipeline.filter_rows > 1) tile += steps * kAllRows * tiling.runs();
  // A warp that converts needs a stage besides the one that is multiplied.
  if (tiling.converts_pixels() && tiling.pipeline.stages < kLoadingWarps + 2) tile += tile * 4 / 100;
  // Loading warps that run few stages ahead of those they load now. A step of one slice is one long batch instead.
  if (tiling.loads_pixels() && tiling.pipeline.slices > 1) {
    const std::int64_t ahead = tiling.pipeline.stages - kLoadingWarps / tiling.producer.team_warps;
    tile += tile * std::max<std::int64_t>(0, 3 - ahead) * kShallowPermille / 1000;
  }
  if (tiling.pipeline.stages <= 3) tile += tile * (tiling.pipeline.stages == 2 ? 10 : 6) / 100;
  const std::int64_t waves = ceil_div(tiles, target_.sm_count);
  const std::int64_t first = waves > 1 ? 0 : load_of_step * (tiling.converts_pixels() ? 3 : 2) / 2;
  std::int64_t compute =
      (waves * tile + last + first + (tiling.packs_weights() ? kStart : kRawStart)) * kPicosecondsPerCycle +
      (tiling.packs_weights() ? kExtraLaunch : 0);
  std::int64_t bytes = bytes_;
  if (tiling.split_k > 1) {
    compute += kReduceLaunch;
    bytes += 2 * geometry.partial_sum_bytes();
  }
  const bool aligned = nhwc || (problem_.output_plane() * written_bytes % 256 == 0 && bytes_of_window % 256 == 0);
  // Runs of vectors that do not start at the same places within 64 bytes.
  const bool scattered = !nhwc && tiling.tile.images == 0 && !geometry.stores_bulk() && bytes_of_window % 64 != 0;
  // Where rows come again for the next filter row, more copies in flight only compete with stores.
  const bool competing = tiling.producer.copies_ahead > 1 && problem_.rows.taps > tiling.pipeline.filter_rows;
  bytes += (geometry.tiles_k() - 1) * input_bytes() * kAgainPercent / 100;
  bytes += bytes * ((scattered ? kScatteredPercent : 0) + (competing ? kCompetingPercent : 0)) / 100;
  // Warpgroups that take tiles in turn store the channels of a run at different times.
  if (turns && geometry.tiles_k() > 1) bytes += bytes * kTurnsPercent / 100;
  const std::int64_t memory = bytes * 1000 / (kDramBytesPerMicrosecond / 1000) * (aligned ? 100 : kUnalignedPercent) /
                              100 *
                              (tiling.converts_pixels() ? 100
                               : tiling.stores_boxes()  ? kBoxLoadedPercent
                                                        : kLoadedPercent) /
                              100;
  return std::max(compute, memory) + std::min(compute, memory) / 5 + kLaunch;
}

}  // namespace jitconv::codegen
