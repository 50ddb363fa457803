// Candidates of the tensor family: how many positions a multiplication takes, how channels are cut into steps, how the
// loading warps share them, and over how many blocks a reduction is split.
#include <algorithm>

#include "codegen/arithmetic.h"
#include "codegen/heuristics.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

// Fitted to 1,575 candidates of DeepBench's training set, the documented configurations and KernelBench's level 2,
// measured on an H200: cycles, and picoseconds where they say so.
constexpr std::int64_t kPicosecondsPerCycle = 499;  // of short kernels; power lowers the clock of long ones
constexpr std::int64_t kLoadLatency = 1'230;        // of a batch: from its first load to its stores
constexpr std::int64_t kFirstTouch = 1'900;         // of pixels that come from memory, where tiles are few
constexpr std::int64_t kLoadIssue = 16;             // a warp's load of one channel, or of one vector
constexpr std::int64_t kNextBatch = 24;             // multiplying warps wait longer where a step takes several batches
constexpr std::int64_t kStridedIssue = 12;          // more of it for each column between lanes
constexpr std::int64_t kPixelIssue = 38;            // address, predicate and stores of a lane's pixel
constexpr std::int64_t kL2BytesPerCycle = 28;       // an SM's share
constexpr std::int64_t kCopyIssue = 37;             // a copy of the copy engine; a warp's go one after the other
constexpr std::int64_t kCopyEngine = 25;            // the engine's part of it, of an SM
constexpr std::int64_t kCopyLatency = 2'110;        // of a warp's only copies
constexpr std::int64_t kNextCopyLatency = 1'570;    // where those of another step are on their way meanwhile
constexpr std::int64_t kConvertPixels = 78;         // 32 copied pixels: addresses and predicates
constexpr std::int64_t kConvertSlice = 32;          // and an operand row of each
constexpr std::int64_t kCopiedBytesPerCycle = 92;  // multiplications wait while pixels pass through shared memory again
constexpr std::int64_t kL2CopiedBytesPerCycle = 64;
constexpr std::int64_t kSecondRun = 143;     // a step's, where consumers have a run each
constexpr std::int64_t kWeights = 8;         // and where weights come with it
constexpr std::int64_t kBoxLatency = 1'730;  // as kCopyLatency, where a step's pixels are a box of x
constexpr std::int64_t kNextBoxLatency = 609;
constexpr std::int64_t kL2BoxBytesPerCycle = 34;
constexpr std::int64_t kRawStart = 4'240;          // as kStart, where no kernel packs weights before
constexpr std::int64_t kRawWeights = 72;           // and where threads round them
constexpr std::int64_t kRawWeight = 5;             // more for each unit
constexpr std::int64_t kAllRows = 37;              // and where it covers all filter rows
constexpr std::int64_t kStoreLatency = 1'040;      // the last multiplication, barriers
constexpr std::int64_t kStage = 10;                // a column of accumulators on its way to shared memory
constexpr std::int64_t kStageRows = 6;             // more of it where rows end inside a run
constexpr std::int64_t kStoreColumn = 13;          // four bytes of every channel on their way to y
constexpr std::int64_t kStoreChannels = 3;         // NHWC: a byte of a position's channels
constexpr std::int64_t kStart = 2'480;             // once: packing, the first loads
constexpr std::int64_t kLaunch = 2'790'000;        // picoseconds of every launch
constexpr std::int64_t kExtraLaunch = 2'500'000;   // of a kernel before the convolution
constexpr std::int64_t kReduceLaunch = 3'530'000;  // of the one behind it
constexpr std::int64_t kDramBytesPerMicrosecond = 4'630'000;
constexpr std::int64_t kUnalignedPercent = 154;   // of the memory's time if runs of y do not start and end on 256 bytes
constexpr std::int64_t kLoadedPercent = 123;      // of it, if lanes load: their loads and stores queue together
constexpr std::int64_t kPixelLaunch = 2'590'000;  // of the kernel that packs pixels, besides
constexpr std::int64_t kPackedBytesPerMicrosecond = 3'220'000;  // that it reads and writes
constexpr std::int64_t kPackedCopyIssue = 40;                   // a copy of packed pixels
constexpr std::int64_t kL2PackedBytesPerCycle = 43;
constexpr std::int64_t kMostPackedPixelBytes = 32 << 20;  // that stay in L2
constexpr std::int64_t kBulkColumn = 12;       // as kStoreColumn by the copy engine, which is waited for less
constexpr std::int64_t kNarrowLoads = 2;       // times what a load of a whole 64 bytes takes
constexpr std::int64_t kShallowPermille = 12;  // more of a tile for each stage that loading warps lack
constexpr std::int64_t kScatteredPercent = 5;  // more of the memory's bytes
constexpr std::int64_t kCompetingPercent = 10;
constexpr int kMostStages = 8, kMostColumns = 256;
constexpr std::int64_t kMostTapsOfStep = 25;
constexpr int kLoadingWarps = 4;
constexpr std::int64_t kSectorBytes = 32;

/// Which rule keeps the family from computing the spec; empty if none does.
std::string obstacle(const ConvSpec& spec, const Target& target) {
  const std::int64_t image = spec.input.c * spec.input.h * spec.input.w;
  if (target.compute_capability() != 90 || !target.arch_specific)
    return fmt::format("warpgroup multiplications need sm_90a, the target is {}", target.arch());
  if (spec.dtype == DataType::f32 && spec.math != MathMode::tf32)
    return fmt::format("math is {}; fp32 tensors take tensor cores only with tf32", to_string(spec.math));
  if (spec.math == MathMode::ieee) return "math is ieee, which allows fp32 FMA only";
  if (spec.groups > 1 && spec.filter.c < 16)
    return fmt::format("groups of {} channels, at least 16 are needed to fill a multiplication", spec.filter.c);
  if (spec.alignment < 16) return fmt::format("alignment is {}, stores need 16", spec.alignment);
  const TensorShape out = output_shape(spec);
  constexpr std::int64_t kBehindPlane = 1024;  // outputs of the last run that do not exist
  if (spec.input.n * spec.filter.k > INT32_MAX || out.h * out.w > INT32_MAX - kBehindPlane)
    return fmt::format("{} planes of {} outputs, both are counted with 32 bits", spec.input.n * spec.filter.k,
                       out.h * out.w);
  if (image > INT32_MAX) return fmt::format("an image of {} elements, offsets inside one have 32 bits", image);
  // Runs end in rows behind the last, whose input rows are computed and not read.
  const std::int64_t rows = out.h + kMostColumns / TensorTiling::pitch(spec) + 2;
  const std::int64_t last_row = rows * spec.stride.h + (spec.filter.r - 1) * spec.dilation.h;
  const std::int64_t row_elements = spec.input.w * (spec.input_layout == Layout::nhwc ? spec.input.c : 1);
  if (last_row > INT32_MAX / row_elements)
    return fmt::format("input row {} of {} elements, offsets inside an image have 32 bits", last_row, row_elements);
  if (TensorTiling::packing_bytes(spec, {.channels = 1}) > TensorTiling::kMostPackingBytes)
    return fmt::format("a filter of {}x{} taps, more than a block packs at a time", spec.filter.r, spec.filter.s);
  return {};
}

class Search {
 public:
  Search(const ConvSpec& spec, const Target& target)
      : spec_(spec), target_(target), out_(output_shape(spec)), bytes_(static_cast<std::int64_t>(work(spec).bytes)) {}

  /// `why` says what left no candidate, if none is left.
  std::vector<Candidate> run(std::string& why) {
    for (const int block_k : {128, 64}) {
      if (block_k == 128 && spec_.filter.k / spec_.groups <= 64) continue;
      for (int columns = kMostColumns; columns >= 16; columns -= 8) runs(block_k, columns);
    }
    if (candidates_.empty()) why = memory_decides_ || why_.empty() ? no_tile_fits(spec_, target_) : why_;
    return std::move(candidates_);
  }

 private:
  void runs(int block_k, int columns) {
    TensorTiling tiling;
    tiling.block_k = block_k;
    tiling.columns = columns;
    filter_rows(tiling, 1);
    if (spec_.filter.r > 1 && spec_.stride.h == 1 && spec_.stride.w == 1 &&
        spec_.filter.r * spec_.filter.s <= kMostTapsOfStep)
      filter_rows(tiling, static_cast<int>(spec_.filter.r));
  }

  void filter_rows(TensorTiling tiling, int rows) {
    tiling.filter_rows = rows;
    tiling.images = images(tiling);
    tiling.window = static_cast<int>(tiling.images > 0 ? tiling.images * out_.h * out_.w : window(tiling));
    if (tiling.images == 0 && tiling.window < tiling.columns / 4) {
      why_ = fmt::format("{} positions lie between rows of {} outputs, so a run of {} would hold too few outputs",
                         TensorTiling::gap(spec_), out_.w, kMostColumns);
      return;
    }
    // A narrower run that stores as much does the same with less.
    TensorTiling narrower = tiling;
    narrower.columns -= 8;
    if (tiling.columns > 16 &&
        (tiling.images > 0 ? images(narrower) == tiling.images : window(narrower) == tiling.window))
      return;
    slices(tiling);
  }

  /// Whole images whose positions a run holds.
  int images(const TensorTiling& tiling) const {
    const std::int64_t image = tiling.image_positions(spec_), used = (out_.h - 1) * TensorTiling::pitch(spec_) + out_.w;
    if (used > tiling.columns) return 0;
    const std::int64_t most = std::min((tiling.columns - used) / image + 1, ceil_div(spec_.input.n, tiling.runs()));
    const std::int64_t elements = spec_.input.c * spec_.input.h * spec_.input.w;
    return static_cast<int>(std::min(most, INT32_MAX / elements));
  }

  /// The largest window whose outputs, with what rows' ends waste, fit the run's columns; 0 if there is none.
  int window(TensorTiling tiling) const {
    // Where outputs of a channel are not neighbours in y, even numbers keep runs of loads_pairs() at words.
    const int sector = std::max(TensorTiling::sector_elements(spec_), 2);
    const std::int64_t plane = out_.h * out_.w, slack = TensorTiling::slack(spec_);
    for (std::int64_t window = std::min<std::int64_t>(tiling.columns / sector, ceil_div(plane, sector)) * sector;
         window > 0; window -= sector) {
      tiling.window = static_cast<int>(window);
      const std::int64_t outputs = std::min(window + slack, plane);
      if (outputs + tiling.row_ends(spec_) * TensorTiling::gap(spec_) <= tiling.columns) return tiling.window;
    }
    return 0;
  }

  void slices(TensorTiling tiling) {
    const std::int64_t all = ceil_div(spec_.filter.c, TensorTiling::slice_channels(spec_));
    for (const int slices : {1, 2, 4, 8}) {
      if (slices == 1 ? all > 1 : all == 1 || slices > round_up(all, 2)) continue;
      tiling.slices = slices;
      const std::int64_t chunk_bytes = std::min<std::int64_t>(tiling.chunk_channels(spec_), spec_.filter.c) *
                                       spec_.input.h * spec_.input.w * element_bytes(spec_.dtype);
      if (chunk_bytes > INT32_MAX) {
        why_ = fmt::format("a step's channels span {} bytes of x, offsets inside them have 32 bits", chunk_bytes);
        continue;
      }
      if (tiling.load_item_registers(spec_) > tiling.load_registers(spec_) || tiling.packed_rows(spec_) > INT32_MAX)
        continue;
      weights(tiling);
    }
  }

  void weights(TensorTiling tiling) {
    pixels(tiling);
    if (tiling.tiles_k(spec_) * spec_.groups == 1) {
      TensorTiling resident = tiling;
      resident.resident = true;
      pixels(resident);
    }
    tiling.raw_weights = true;
    if (tiling.can_take_raw_weights(spec_) && tiling.registers_fit(spec_)) pixels(tiling);
  }

  void pixels(TensorTiling tiling) {
    loads(tiling);
    TensorTiling packed = tiling;
    packed.packs_pixels = true;
    if (tiling.can_pack_pixels(spec_) && packed.packed_pixel_bytes(spec_) <= kMostPackedPixelBytes) loads(packed);
    if (!tiling.copies_fit(spec_)) return;
    for (const int copies_ahead : {1, 2}) {
      tiling.copies_ahead = copies_ahead;
      loads(tiling);
    }
  }

  void loads(TensorTiling tiling) {
    memory_decides_ = true;
    tiling.stages = 0;
    const std::int64_t rest = tiling.shared_bytes(spec_) + 128 + kMostStages * 16;
    const std::int64_t fit = (target_.shared_bytes_per_block - rest) / tiling.stage_bytes(spec_);
    if (fit < (tiling.copies_ahead > 0 ? kLoadingWarps : 2)) return;
    tiling.stages = static_cast<int>(std::min<std::int64_t>(fit, kMostStages));
    if (!tiling.lanes_load()) return splits(tiling);
    const std::int64_t items = tiling.load_items(spec_) * TensorTiling::phases(spec_);
    for (const int team_warps : {1, 2, 4}) {
      if (4 / team_warps > tiling.stages) continue;
      tiling.team_warps = team_warps;
      // As few batches as registers allow, all of about one size.
      const std::int64_t own = ceil_div(items, team_warps);
      const std::int64_t batches = ceil_div(own, tiling.load_registers(spec_) / tiling.load_item_registers(spec_));
      tiling.load_batch = static_cast<int>(ceil_div(own, batches));
      splits(tiling);
    }
  }

  /// Split only what leaves SMs without a tile.
  void splits(TensorTiling tiling) {
    const std::int64_t steps = tiling.steps(spec_);
    tiling.splits = 1;
    const std::int64_t tiles = tiling.tiles(spec_);
    for (int splits = 1; splits <= 32; ++splits) {
      if (splits > 1 && (splits > steps || tiles * splits > 2 * target_.sm_count)) break;
      const std::int64_t steps_of_split = ceil_div(steps, splits);
      if (ceil_div(steps, steps_of_split) != splits) continue;  // some would have nothing to do
      tiling.splits = splits;
      add(tiling);
    }
  }

  void add(const TensorTiling& tiling) {
    const std::int64_t tiles = tiling.tiles(spec_);
    if (tiles > INT32_MAX) return;
    BlockWork work;
    work.blocks = std::min<std::int64_t>(tiles, target_.sm_count);
    work.threads = TensorTiling::kThreads;
    work.warps = TensorTiling::kThreads / kWarpSize;
    work.registers = TensorTiling::kLaunchRegisters;
    work.shared_bytes = tiling.shared_bytes(spec_);
    if (work.shared_bytes > target_.shared_bytes_per_block) return;
    work.launch_blocks = 1;
    candidates_.push_back({tiling, work, price(tiling, tiles)});
  }

  /// Cycles of an SM between the loads of two steps.
  std::int64_t step_load(const TensorTiling& tiling) const {
    const std::int64_t runs = tiling.runs(), weight_bytes = tiling.stage_weight_bytes(spec_);
    const std::int64_t items = tiling.load_items(spec_) * TensorTiling::phases(spec_);
    if (tiling.packs_pixels) {
      const std::int64_t copies = runs * TensorTiling::phases(spec_) * tiling.slices * std::max(1, tiling.images);
      return std::max(copies / kLoadingWarps * kPackedCopyIssue,
                      (runs * tiling.run_bytes(spec_) + weight_bytes) / kL2PackedBytesPerCycle);
    }
    if (tiling.copies_ahead > 0) {
      const std::int64_t convert = items * runs * (kConvertPixels + tiling.slices * kConvertSlice);
      const std::int64_t bytes = tiling.raw_bytes(spec_) + weight_bytes;
      if (tiling.copies_boxes(spec_)) {
        const std::int64_t warp = convert + (tiling.copies_ahead == 1 ? kBoxLatency : kNextBoxLatency);
        return std::max(warp / kLoadingWarps, bytes / kL2BoxBytesPerCycle);
      }
      const std::int64_t channels = std::min<std::int64_t>(tiling.chunk_channels(spec_), spec_.filter.c);
      const std::int64_t copies = runs * (tiling.images > 0 ? tiling.images : channels);
      const std::int64_t warp =
          copies * kCopyIssue + convert + (tiling.copies_ahead == 1 ? kCopyLatency : kNextCopyLatency);
      return std::max({warp / kLoadingWarps, copies * kCopyEngine, bytes / kL2CopiedBytesPerCycle});
    }
    const std::int64_t own = ceil_div(items, tiling.team_warps);
    const std::int64_t loads = TensorTiling::loads_vectors(spec_) ? 1 : tiling.chunk_channels(spec_);
    // Of a chunk's steps, one per filter row, the first brings most of the pixels to L2.
    const bool few = ceil_div(tiling.tiles(spec_), target_.sm_count) <= 2;
    const std::int64_t latency = kLoadLatency + (few ? kFirstTouch * tiling.filter_rows / spec_.filter.r : 0);
    // Less than 64 bytes at a time, of pixels that have many.
    const bool narrow =
        TensorTiling::loads_vectors(spec_) && tiling.slices < 4 && 4 * tiling.chunk_channels(spec_) <= spec_.filter.c;
    // Lanes that are a stride apart ask for as many more sectors.
    const std::int64_t apart = TensorTiling::loads_vectors(spec_) ? 1 : std::min<std::int64_t>(spec_.stride.w, 8);
    const std::int64_t issue = loads * (kLoadIssue + (apart - 1) * kStridedIssue) + kPixelIssue;
    const std::int64_t warp =
        (narrow ? kNarrowLoads : 1) * runs * (ceil_div(own, tiling.load_batch) * latency + own * issue);
    // Teams that have a step to load, and stages to load it to.
    const std::int64_t steps = tiling.steps_of_split(spec_) * ceil_div(tiling.tiles(spec_), target_.sm_count);
    const std::int64_t teams =
        std::min({std::int64_t{kLoadingWarps / tiling.team_warps}, std::int64_t{tiling.stages - 1}, steps});
    // Of columns between those that any tap needs, sectors come along.
    const std::int64_t phases = TensorTiling::phases(spec_);
    const std::int64_t width =
        phases < spec_.stride.w ? std::min(spec_.stride.w, kSectorBytes / element_bytes(spec_.dtype)) : 1;
    const std::int64_t pixel_bytes = runs * phases * tiling.run_pixels(spec_) * width *
                                     std::min<std::int64_t>(tiling.chunk_channels(spec_), spec_.filter.c) *
                                     element_bytes(spec_.dtype);
    return std::max(warp / teams, (pixel_bytes + weight_bytes) / kL2BytesPerCycle);
  }

  /// Cycles of a step's multiplications.
  std::int64_t step_multiply(const TensorTiling& tiling) const {
    const std::int64_t n = tiling.columns, instruction = std::max(n / 2, 16 + n / 4);
    // Two consumers, two units each.
    std::int64_t cycles = tiling.units(spec_) * instruction;
    if (tiling.weights_come_with_steps()) cycles += kWeights;
    if (!tiling.packs_weights()) cycles += kRawWeights + kRawWeight * tiling.units(spec_);
    if (tiling.packs_pixels) return cycles;
    if (tiling.copies_ahead > 0) return cycles + tiling.raw_bytes(spec_) / kCopiedBytesPerCycle;
    const std::int64_t own = ceil_div(tiling.load_items(spec_) * TensorTiling::phases(spec_), tiling.team_warps);
    return cycles + (ceil_div(own, tiling.load_batch) - 1) * kNextBatch;
  }

  /// Cycles of an NCHW tile's store.
  std::int64_t store_columns(const TensorTiling& tiling, std::int64_t bytes_of_window) const {
    const std::int64_t n = tiling.columns, rows = tiling.row_ends(spec_) > 1 ? kStageRows * n : 0;
    if (!tiling.stores_bulk(spec_)) return rows + kStage * n + kStoreColumn * bytes_of_window / 4;
    return rows + kStage * n * tiling.staged_bytes(spec_) / 4 + kBulkColumn * bytes_of_window / 4;
  }

  std::int64_t price(const TensorTiling& tiling, std::int64_t tiles) const {
    const std::int64_t steps = tiling.steps_of_split(spec_), n = tiling.columns;
    const std::int64_t multiply = steps * step_multiply(tiling), load = steps * step_load(tiling);
    const std::int64_t written_bytes = tiling.written_bytes(spec_), bytes_of_window = tiling.window * written_bytes;
    const bool nhwc = spec_.output_layout == Layout::nhwc;
    const std::int64_t store = kStoreLatency + (nhwc ? kStoreChannels * tiling.staged_bytes(spec_) * n
                                                     : store_columns(tiling, bytes_of_window));

    std::int64_t tile = std::max(multiply + store, load) + std::min(multiply + store, load) / 8;
    if (tiling.runs() == 2 && !tiling.packs_pixels) tile += steps * kSecondRun;
    if (tiling.filter_rows > 1) tile += steps * kAllRows * tiling.runs();
    // A warp that converts needs a stage besides the one that is multiplied.
    if (tiling.copies_ahead > 0 && tiling.stages < kLoadingWarps + 2) tile += tile * 4 / 100;
    // Loading warps that run few stages ahead of those they load now. A step of one slice is one long batch instead.
    if (tiling.lanes_load() && tiling.slices > 1) {
      const std::int64_t ahead = tiling.stages - kLoadingWarps / tiling.team_warps;
      tile += tile * std::max<std::int64_t>(0, 3 - ahead) * kShallowPermille / 1000;
    }
    if (tiling.stages <= 3) tile += tile * (tiling.stages == 2 ? 10 : 6) / 100;
    const std::int64_t waves = ceil_div(tiles, target_.sm_count);
    const std::int64_t first = waves > 1 ? 0 : step_load(tiling) * (tiling.copies_ahead > 0 ? 3 : 2) / 2;
    std::int64_t compute =
        (waves * tile + first + (tiling.packs_weights() ? kStart : kRawStart)) * kPicosecondsPerCycle +
        (tiling.packs_weights() ? kExtraLaunch : 0);
    if (tiling.packs_pixels)
      compute += kPixelLaunch +
                 (tiling.packed_pixel_bytes(spec_) + input_bytes()) * 1000 / (kPackedBytesPerMicrosecond / 1000);
    std::int64_t bytes = bytes_;
    if (tiling.splits > 1) {
      compute += kReduceLaunch;
      bytes += 2 * tiling.partial_sum_bytes(spec_);
    }
    const bool aligned = nhwc || (out_.h * out_.w * written_bytes % 256 == 0 && bytes_of_window % 256 == 0);
    // Runs of vectors that do not start at the same places within 64 bytes.
    const bool scattered = !nhwc && tiling.images == 0 && !tiling.stores_bulk(spec_) && bytes_of_window % 64 != 0;
    // Where rows come again for the next filter row, more copies in flight only compete with stores.
    const bool competing = tiling.copies_ahead > 1 && spec_.filter.r > tiling.filter_rows;
    bytes += bytes * ((scattered ? kScatteredPercent : 0) + (competing ? kCompetingPercent : 0)) / 100;
    const std::int64_t memory = bytes * 1000 / (kDramBytesPerMicrosecond / 1000) * (aligned ? 100 : kUnalignedPercent) /
                                100 * (tiling.copies_ahead > 0 ? 100 : kLoadedPercent) / 100;
    return std::max(compute, memory) + std::min(compute, memory) / 5 + kLaunch;
  }

  /// That the kernel that packs pixels reads.
  std::int64_t input_bytes() const {
    return spec_.input.n * spec_.input.c * spec_.input.h * spec_.input.w / spec_.stride.h *
           TensorTiling::row_phases(spec_) * element_bytes(spec_.dtype);
  }

  const ConvSpec& spec_;
  const Target& target_;
  TensorShape out_;
  std::int64_t bytes_;
  std::vector<Candidate> candidates_;
  std::string why_;              // the last rule that kept a tiling from being cut to shared memory
  bool memory_decides_ = false;  // none did for one of them
};

}  // namespace

std::vector<Candidate> tensor_candidates(const ConvSpec& spec, const Target& target, std::string& why) {
  why = obstacle(spec, target);
  if (!why.empty()) return {};
  return Search(spec, target).run(why);
}

}  // namespace jitconv::codegen
