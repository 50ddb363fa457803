// See tensor_price.h.
#include "codegen/tensor_price.h"

#include <algorithm>

#include "codegen/arithmetic.h"
#include "codegen/heuristics.h"

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

TensorPrice::TensorPrice(const ConvSpec& spec, const Target& target)
    : spec_(spec), target_(target), out_(output_shape(spec)), bytes_(static_cast<std::int64_t>(work(spec).bytes)) {}

std::int64_t TensorPrice::step_load(const TensorTiling& tiling) const {
  using Pixels = TensorTiling::Pixels;
  switch (tiling.pixels) {
    case Pixels::loaded:
      return load_by_lanes(tiling);
    case Pixels::copied:
      return load_copied(tiling);
    case Pixels::walked:
    case Pixels::transposed:
      return load_walked(tiling);
  }
  return 0;
}

std::int64_t TensorPrice::load_walked(const TensorTiling& tiling) const {
  const std::int64_t requests = tiling.runs() * TensorTiling::phases(spec_);
  const std::int64_t bytes = tiling.walked_bytes(spec_) + tiling.stage_weight_bytes(spec_);
  return std::max(requests * (kWalkIssue + tiling.run_pixels(spec_) * kWalkPixel / 16), bytes / kL2WalkedBytesPerCycle);
}

std::int64_t TensorPrice::load_copied(const TensorTiling& tiling) const {
  const std::int64_t runs = tiling.runs(), weight_bytes = tiling.stage_weight_bytes(spec_);
  const std::int64_t items = tiling.load_items(spec_) * TensorTiling::phases(spec_);
  const std::int64_t convert = items * runs * (kConvertPixels + tiling.slices * kConvertSlice);
  const std::int64_t bytes = tiling.raw_bytes(spec_) + weight_bytes;
  if (tiling.copies_boxes(spec_)) {
    const std::int64_t warp = convert + (tiling.copies_ahead == 1 ? kBoxLatency : kNextBoxLatency);
    return std::max(warp / kLoadingWarps, bytes / kL2BoxBytesPerCycle);
  }
  const std::int64_t channels = std::min<std::int64_t>(tiling.chunk_channels(spec_), spec_.weight.c);
  const std::int64_t copies = runs * (tiling.images > 0 ? tiling.images : channels);
  const std::int64_t warp =
      copies * kCopyIssue + convert + (tiling.copies_ahead == 1 ? kCopyLatency : kNextCopyLatency);
  return std::max({warp / kLoadingWarps, copies * kCopyEngine, bytes / kL2CopiedBytesPerCycle});
}

std::int64_t TensorPrice::load_by_lanes(const TensorTiling& tiling) const {
  const std::int64_t runs = tiling.runs(), weight_bytes = tiling.stage_weight_bytes(spec_);
  const std::int64_t items = tiling.load_items(spec_) * TensorTiling::phases(spec_);
  const std::int64_t own = ceil_div(items, tiling.team_warps);
  const std::int64_t loads = TensorTiling::loads_vectors(spec_) ? 1 : tiling.chunk_channels(spec_);
  // A chunk has a step per filter row; the first brings most of the pixels to L2.
  const bool few = ceil_div(tiling.tiles(spec_), target_.sm_count) <= 2;
  const std::int64_t latency = kLoadLatency + (few ? kFirstTouch * tiling.filter_rows / spec_.weight.r : 0);
  // Less than 64 bytes at a time, of pixels that have many.
  const bool narrow =
      TensorTiling::loads_vectors(spec_) && tiling.slices < 4 && 4 * tiling.chunk_channels(spec_) <= spec_.weight.c;
  // Lanes that are a stride apart ask for as many more sectors.
  const std::int64_t apart = TensorTiling::loads_vectors(spec_) ? 1 : std::min<std::int64_t>(spec_.stride.w, 8);
  const std::int64_t issue = loads * (kLoadIssue + (apart - 1) * kStridedIssue) + kPixelIssue;
  const std::int64_t warp =
      (narrow ? kNarrowLoads : 1) * runs * (ceil_div(own, tiling.load_batch) * latency + own * issue);
  // Teams that have a step to load, and stages to load it to.
  const std::int64_t steps = tiling.steps_of_split(spec_) * ceil_div(tiling.tiles(spec_), target_.sm_count);
  const std::int64_t teams =
      std::min({std::int64_t{kLoadingWarps / tiling.team_warps}, std::int64_t{tiling.stages - 1}, steps});
  // Sectors also contain columns that no tap needs.
  const std::int64_t phases = TensorTiling::phases(spec_);
  const std::int64_t width =
      phases < spec_.stride.w ? std::min(spec_.stride.w, kSectorBytes / element_bytes(spec_.dtype)) : 1;
  const std::int64_t pixel_bytes = runs * phases * tiling.run_pixels(spec_) * width *
                                   std::min<std::int64_t>(tiling.chunk_channels(spec_), spec_.weight.c) *
                                   element_bytes(spec_.dtype);
  return std::max(warp / teams, (pixel_bytes + weight_bytes) / kL2BytesPerCycle);
}

std::int64_t TensorPrice::step_multiply(const TensorTiling& tiling) const {
  const std::int64_t n = tiling.columns, instruction = std::max(n / 2, 16 + n / 4);
  // An instruction multiplies two units; one consumer issues it, or both.
  const bool alone = tiling.tile_consumers() == 1;
  const std::int64_t pipe = tiling.units(spec_) * instruction * tiling.tile_consumers() / 2;
  std::int64_t cycles = pipe;
  if (tiling.weights_come_with_steps()) cycles += kWeights;
  if (alone) cycles += kTurnStep;
  if (tiling.multiplies_registers(spec_))
    cycles += (kRawWeights + kRawWeight * tiling.units(spec_)) * (alone ? kRawTurnPercent : 100) / 100;
  if (tiling.share == TensorTiling::Share::steps) cycles = std::max(pipe, cycles * kStepTurnPercent / 100);
  if (tiling.walks_pixels()) return cycles + kWalkStep;
  if (tiling.copies_pixels()) return cycles + tiling.raw_bytes(spec_) / kCopiedBytesPerCycle;
  const std::int64_t own = ceil_div(tiling.load_items(spec_) * TensorTiling::phases(spec_), tiling.team_warps);
  return cycles + (ceil_div(own, tiling.load_batch) - 1) * kNextBatch;
}

std::int64_t TensorPrice::store_columns(const TensorTiling& tiling, std::int64_t bytes_of_window) const {
  const std::int64_t n = tiling.columns, rows = tiling.row_ends(spec_) > 1 ? kStageRows * n : 0;
  if (tiling.stores_boxes()) return kBoxColumn * tiling.staged_bytes(spec_) * n / 4;
  if (spec_.output_layout == Layout::nhwc) return kStoreChannels * tiling.staged_bytes(spec_) * n / 8;
  if (!tiling.stores_bulk(spec_)) return rows + kStage * n + kStoreColumn * bytes_of_window / 4;
  return rows + kStage * n * tiling.staged_bytes(spec_) / 4 + kBulkColumn * bytes_of_window / 4;
}

std::int64_t TensorPrice::tile_bytes(const TensorTiling& tiling) const {
  return tiling.block_k * tiling.runs() * tiling.window * tiling.written_bytes(spec_);
}

std::int64_t TensorPrice::awaited_boxes(const TensorTiling& tiling) const {
  // While a warpgroup that has its turn waits for boxes, the other multiplies.
  if (!tiling.stores_boxes() || tiling.share == TensorTiling::Share::turns) return 0;
  const std::int64_t boxes = tiling.columns / tiling.store_columns(spec_), more = boxes - tiling.staged_boxes;
  return more <= 0 ? 0 : tile_bytes(tiling) / kBoxStoredBytesPerCycle * more * kBoxAwaitedPercent / (boxes * 100);
}

std::int64_t TensorPrice::input_bytes() const {
  return spec_.input.n * spec_.input.c * spec_.input.h * spec_.input.w / spec_.stride.h *
         TensorTiling::row_phases(spec_) * element_bytes(spec_.dtype);
}

std::int64_t TensorPrice::of_walk(const TensorTiling& tiling, std::int64_t tiles) const {
  using Share = TensorTiling::Share;
  const std::int64_t steps = tiling.steps_of_split(spec_), waves = ceil_div(tiles, target_.sm_count);
  const std::int64_t multiply = steps * step_multiply(tiling), load = steps * step_load(tiling);
  const std::int64_t window_bytes = tiling.window * tiling.written_bytes(spec_);
  const bool boxes = tiling.stores_boxes();
  const std::int64_t stored = tile_bytes(tiling) / (boxes ? kBoxStoredBytesPerCycle : kWalkStoredBytesPerCycle);
  std::int64_t store = boxes ? kBoxWalkStore + store_columns(tiling, window_bytes) + awaited_boxes(tiling)
                             : kWalkStore + std::max(stored, store_columns(tiling, window_bytes));
  if (tiling.share == Share::steps) store = store / 2 + kExchange + kExchangeColumn * tiling.columns;
  const bool turns = tiling.share == Share::turns;
  const std::int64_t consume =
      turns ? std::max({multiply, (multiply + store) / 2, stored}) : std::max(multiply + store, boxes ? stored : 0);
  const std::int64_t engine = load + (boxes ? tile_bytes(tiling) / 128 * kBoxRow / 16 : 0);
  std::int64_t tile = std::max(consume, engine) + std::min(consume, engine) / 8;
  if (tiling.stages <= 3) tile += tile * (tiling.stages == 2 ? 10 : kWalkShallowPercent) / 100;
  // The first step's pixels are waited for, and of the last tile the store.
  const std::int64_t ends = kWalkStart + load / steps + (turns ? store : 0) + (boxes ? kBoxEnd : 0);
  std::int64_t compute = (waves * tile + ends) * kPicosecondsPerCycle + (tiling.packs_weights() ? kWalkExtraLaunch : 0);
  std::int64_t bytes = bytes_ + (tiling.tiles_k(spec_) - 1) * input_bytes() * kWalkAgainPercent / 100;
  if (turns && tiling.tiles_k(spec_) > 1) bytes += bytes * (boxes ? kBoxTurnsPercent : kWalkTurnsPercent) / 100;
  if (tiling.splits > 1) {
    compute += kReduceLaunch;
    bytes += 2 * tiling.partial_sum_bytes(spec_);
  }
  const std::int64_t memory =
      bytes * 1000 / (kWalkDramBytesPerMicrosecond / 1000) * (boxes ? kBoxWalkPercent : 100) / 100;
  return std::max(compute, memory) + std::min(compute, memory) / 5 + kLaunch;
}

std::int64_t TensorPrice::of_transposition(const ConvSpec& source) const {
  const std::int64_t bytes = element_bytes(spec_.dtype), pixels = spec_.input.n * spec_.input.h * spec_.input.w;
  // Sectors also contain columns that no tap needs.
  const std::int64_t width = std::min(source.input.w * bytes, spec_.input.w * kSectorBytes);
  const std::int64_t read = spec_.input.n * spec_.input.c * spec_.input.h * width;
  const std::int64_t written = pixels * TensorTiling::pixel_slices(spec_) * TensorTiling::kRowBytes;
  return kTransposeLaunch + (read + written) * 1000 / (kTransposedBytesPerMicrosecond / 1000);
}

std::int64_t TensorPrice::of(const TensorTiling& tiling, std::int64_t tiles) const {
  if (tiling.walks_pixels()) return of_walk(tiling, tiles);
  const std::int64_t steps = tiling.steps_of_split(spec_), n = tiling.columns;
  const std::int64_t multiply = steps * step_multiply(tiling), load_of_step = step_load(tiling);
  const std::int64_t load = steps * load_of_step;
  const std::int64_t written_bytes = tiling.written_bytes(spec_), bytes_of_window = tiling.window * written_bytes;
  const bool nhwc = spec_.output_layout == Layout::nhwc;
  std::int64_t store = (tiling.stores_boxes() ? kBoxStore : kStoreLatency) + store_columns(tiling, bytes_of_window) +
                       awaited_boxes(tiling);

  if (tiling.share == TensorTiling::Share::steps) store = store / 2 + kExchange + kExchangeColumn * n;
  // One warpgroup stores while the other multiplies, except at the end.
  const bool turns = tiling.share == TensorTiling::Share::turns;
  const std::int64_t consume = turns ? std::max(multiply, (multiply + store) / 2) : multiply + store;
  const std::int64_t last = turns ? store : 0;
  std::int64_t tile = std::max(consume, load) + std::min(consume, load) / 8;
  if (tiling.runs() == 2) tile += steps * kSecondRun;
  if (tiling.filter_rows > 1) tile += steps * kAllRows * tiling.runs();
  // A warp that converts needs a stage besides the one that is multiplied.
  if (tiling.copies_pixels() && tiling.stages < kLoadingWarps + 2) tile += tile * 4 / 100;
  // Loading warps that run few stages ahead of those they load now. A step of one slice is one long batch instead.
  if (tiling.loads_pixels() && tiling.slices > 1) {
    const std::int64_t ahead = tiling.stages - kLoadingWarps / tiling.team_warps;
    tile += tile * std::max<std::int64_t>(0, 3 - ahead) * kShallowPermille / 1000;
  }
  if (tiling.stages <= 3) tile += tile * (tiling.stages == 2 ? 10 : 6) / 100;
  const std::int64_t waves = ceil_div(tiles, target_.sm_count);
  const std::int64_t first = waves > 1 ? 0 : load_of_step * (tiling.copies_pixels() ? 3 : 2) / 2;
  std::int64_t compute =
      (waves * tile + last + first + (tiling.packs_weights() ? kStart : kRawStart)) * kPicosecondsPerCycle +
      (tiling.packs_weights() ? kExtraLaunch : 0);
  std::int64_t bytes = bytes_;
  if (tiling.splits > 1) {
    compute += kReduceLaunch;
    bytes += 2 * tiling.partial_sum_bytes(spec_);
  }
  const bool aligned = nhwc || (out_.h * out_.w * written_bytes % 256 == 0 && bytes_of_window % 256 == 0);
  // Runs of vectors that do not start at the same places within 64 bytes.
  const bool scattered = !nhwc && tiling.images == 0 && !tiling.stores_bulk(spec_) && bytes_of_window % 64 != 0;
  // Where rows come again for the next filter row, more copies in flight only compete with stores.
  const bool competing = tiling.copies_ahead > 1 && spec_.weight.r > tiling.filter_rows;
  bytes += (tiling.tiles_k(spec_) - 1) * input_bytes() * kAgainPercent / 100;
  bytes += bytes * ((scattered ? kScatteredPercent : 0) + (competing ? kCompetingPercent : 0)) / 100;
  // Warpgroups that take tiles in turn store the channels of a run at different times.
  if (turns && tiling.tiles_k(spec_) > 1) bytes += bytes * kTurnsPercent / 100;
  const std::int64_t memory = bytes * 1000 / (kDramBytesPerMicrosecond / 1000) * (aligned ? 100 : kUnalignedPercent) /
                              100 *
                              (tiling.copies_pixels()  ? 100
                               : tiling.stores_boxes() ? kBoxLoadedPercent
                                                       : kLoadedPercent) /
                              100;
  return std::max(compute, memory) + std::min(compute, memory) / 5 + kLaunch;
}

}  // namespace jitconv::codegen
