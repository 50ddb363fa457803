// Candidates of the wgrad_wgmma family: how dw is cut into tiles, how long the steps are, and over how many blocks the
// pixels are split. price.cpp says what they cost.
#include <algorithm>
#include <array>
#include <numeric>

#include "codegen/bias_gradient/pass.h"
#include "codegen/cost.h"
#include "codegen/costs/costs.h"
#include "codegen/gather_patches/tiling.h"
#include "codegen/pack_pixels/pass.h"
#include "codegen/reduce/tiling.h"
#include "codegen/split_operands.h"
#include "codegen/tensor_map.h"
#include "codegen/wgrad_wgmma/family.h"
#include "codegen/wgrad_wgmma/limits.h"
#include "codegen/wgrad_wgmma/price.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

using wgrad_wgmma::gathers, wgrad_wgmma::joins_columns, wgrad_wgmma::kMostColumns;

constexpr std::int64_t kMostPartialSumBytes = std::int64_t{1} << 30;
/// Products that an accumulator sums up before it is added to memory: see docs/accuracy.md.
constexpr std::int64_t kSummedPixels = 8192;
constexpr std::int64_t kLongRow = 32;  // outputs

class Search {
 public:
  /// Searches tilings whose operands are exchanged, joined or packed as `given` says.
  Search(const Problem& asked, const WgradWgmmaTiling& given, const Target& target, CandidateList& into)
      : into_(into),
        problem_(given.problem_of(asked)),
        target_(target),
        price_(problem_, target, into.costs().wgrad_wgmma),
        given_(given) {
    if (given.packs()) passes_cost_ = pixel_packing_cost(given.packing_of(asked), into.costs().fma);
    if (given.exchanges && asked.epilogue.bias) passes_cost_ += bias_gradient_cost(asked, into.costs().fma);
  }

  void run() {
    if (given_.takes_boxes() && !can_take_boxes()) return;
    if (given_.orders() && !can_copy()) return;
    const bool one_tap = problem_.taps() == 1;
    for (const int consumers_k : {1, 2}) {
      if (consumers_k == 2 && problem_.k <= 64 && !one_tap) continue;
      if (joins_columns(problem_)) {
        gathered(consumers_k);
        continue;
      }
      for (const int block_c : {256, 192, 128, 96, 64, 48, 32, 16, 8}) {
        if (block_c >= 2 * problem_.c && block_c > (can_take_boxes() ? 16 : 8)) continue;
        taps(consumers_k, block_c);
      }
    }
  }

  /// Tiles whose operands are planes.
  void run_planes() {
    if (!are_planes(problem_.input) || !dy_can_be_copied()) return;
    for (const int block_c : {256, 192, 128, 96, 64, 48, 32, 16, 8}) {
      if (block_c >= 2 * problem_.c && block_c > 8) continue;
      WgradWgmmaTiling tiling = given_;
      tiling.consumers_k = 2;
      tiling.block_c = block_c;
      const int part = WgradGeometry(problem_, tiling).part_pixels();
      for (tiling.row_pixels = part; tiling.row_pixels <= 4 * part; tiling.row_pixels *= 2)
        if (tiling.row_pixels < 2 * problem_.columns.output || tiling.row_pixels == part) stages(tiling);
    }
  }

 private:
  /// Whether a tensor's pixels are a row for each channel, which TMA can bring.
  bool are_planes(const View& view) const {
    const std::int64_t unit = unit_pixels();
    return problem_.alignment >= 16 && problem_.rows.output == 1 && problem_.columns.stride == 1 &&
           problem_.columns.pad == 0 && view.stride.w == 1 && view.stride.c % unit == 0 && view.stride.n % unit == 0;
  }

  bool dy_can_be_copied() const {
    const View& dy = problem_.output;
    return are_planes(dy) || (problem_.input.type == DataType::f32 && dy.stride.c == 1 &&
                              dy.stride.w % unit_pixels() == 0 && dy.stride.n % unit_pixels() == 0);
  }

  /// Whether TMA can bring runs of the planes of both tensors.
  bool can_copy() const {
    const Axis& columns = problem_.columns;
    const std::int64_t shortest = columns.reach() / columns.stride + 5 * unit_pixels();  // of x, with its ends
    return problem_.alignment >= 16 && (columns.stride == 1 || given_.packs_x) &&
           shortest <= TensorMapShape::kMostBox && has_runs(problem_.input, problem_.c) &&
           has_runs(problem_.output, problem_.k);
  }

  /// Whether the planes of a tensor, or of whole periods of its channels, are rows of a tensor map.
  bool has_runs(const View& view, std::int64_t channels) const {
    const std::int64_t period = plane_period_of(view);
    return view.layout() == Layout::nchw && channels % period == 0 && view.stride.n % unit_pixels() == 0 &&
           period * view.stride.c < INT32_MAX / 2;
  }

  std::int64_t unit_pixels() const { return 16 / problem_.input.element_bytes(); }

  /// Whether TMA can bring rows of channels of both tensors, which are operands as they lie.
  bool can_take_boxes() const {
    // Elements of 16 bytes, at multiples of which pixels lie and boxes begin.
    const std::int64_t unit = unit_pixels();
    return problem_.alignment >= 16 && problem_.input.element_bytes() == 2 && problem_.input.layout() == Layout::nhwc &&
           problem_.output.layout() == Layout::nhwc && problem_.c % unit == 0 && problem_.k % unit == 0 &&
           (problem_.columns.input % problem_.columns.stride == 0 || given_.packs_x) &&
           problem_.n * problem_.rows.output <= INT32_MAX &&
           problem_.columns.stride * problem_.input_channels() <= INT32_MAX;
  }

  /// Tiles whose operands are boxes: filter columns are joined to an instruction where they are neighbours in memory,
  /// or each has an instruction of its own.
  void boxes(int consumers_k, int block_c) {
    const std::int64_t columns = problem_.columns.taps;
    if (block_c < 16 || block_c == 96 || block_c == 48) return;  // what a swizzled row has, or several
    WgradWgmmaTiling tiling = given_;
    tiling.producer = WgradWgmmaTiling::Producer::boxes;
    tiling.consumers_k = consumers_k;
    tiling.block_c = block_c;
    int before = 0;
    for (std::int64_t tiles = 1; tiles <= columns; ++tiles) {
      tiling.block_s = static_cast<int>(ceil_div(columns, tiles));
      if (tiling.block_s == before) continue;
      before = tiling.block_s;
      if (tiling.block_s < columns && problem_.columns.stride != 1) return;
      for (const bool joins : {true, false}) {
        tiling.joins_taps = joins;
        if (joins && (tiling.block_s == 1 || problem_.columns.stride != 1 || block_c > 64)) continue;
        tiling.block_r = 1;
        if (tiling.columns() > kMostColumns) continue;
        filter_rows(tiling);
      }
    }
  }

  /// Tiles of few channels.
  void gathered(int consumers_k) {
    WgradWgmmaTiling tiling = given_;
    tiling.producer = WgradWgmmaTiling::Producer::gathers;
    tiling.splits_operands = splits_operands();
    tiling.joins_taps = true;
    tiling.consumers_k = consumers_k;
    tiling.block_c = static_cast<int>(problem_.c);
    tiling.block_s = static_cast<int>(problem_.columns.taps);
    tiling.copy_vector = copy_vector();
    filter_rows(tiling);
  }

  /// As many filter rows as there are accumulators for, all tiles of about one size.
  void filter_rows(WgradWgmmaTiling tiling) {
    const std::int64_t rows = problem_.rows.taps;
    const bool shares = shares_rows() || problem_.rows.dilation == 1;
    for (std::int64_t tiles = shares ? 1 : rows; tiles <= rows; ++tiles) {
      tiling.block_r = static_cast<int>(ceil_div(rows, tiles));
      if (tiling.accumulators() > tiling.most_accumulators()) continue;
      if (tiling.consumers_k == 1 && tiling.products() == 1) return;
      // With one instruction for each operand in registers, ptxas serialises those of 16-bit pairs (C7513).
      if (tiling.gathers() && tiling.products() == 1 && problem_.input.type != DataType::f32) return;
      rows_of_pixels(tiling);
      return;
    }
  }

  /// Whether rows of x can be shared by a block's filter rows: they are as far apart as the steps are.
  bool shares_rows() const { return problem_.rows.stride == 1 && problem_.rows.dilation <= problem_.rows.output; }

  void taps(int consumers_k, int block_c) {
    if (can_take_boxes()) return boxes(consumers_k, block_c);
    WgradWgmmaTiling tiling = given_;
    if (can_copy()) tiling.producer = WgradWgmmaTiling::Producer::orders;
    tiling.splits_operands = splits_operands();
    tiling.block_c = block_c;
    const int most = tiling.most_accumulators() / (block_c / 2) * (consumers_k == 2 ? 1 : 2);
    const std::int64_t rows = problem_.rows.taps, columns = problem_.columns.taps;
    if (most == 0 || (consumers_k == 1 && rows * columns == 1)) return;
    tiling.consumers_k = consumers_k;
    tiling.block_s = static_cast<int>(ceil_div(columns, ceil_div(columns, most)));
    if (tiling.block_s < columns && problem_.columns.stride != 1) return;
    tiling.block_r = 1;
    if (shares_rows() && tiling.block_s == columns) {
      const std::int64_t fit = std::max<std::int64_t>(1, std::min<std::int64_t>(rows, most / tiling.block_s));
      tiling.block_r = static_cast<int>(ceil_div(rows, ceil_div(rows, fit)));
    }
    if (consumers_k == 1 && tiling.taps() == 1) return;
    loads(tiling);
  }

  void loads(WgradWgmmaTiling tiling) {
    const bool aligned = problem_.alignment >= 16, floats = problem_.input.type == DataType::f32;
    const bool x_nchw = problem_.input.layout() == Layout::nchw;
    const bool whole_vectors = given_.packs_x || (aligned && x_nchw && problem_.columns.input % unit_pixels() == 0 &&
                                                  problem_.columns.stride == 1);
    tiling.x_vectors = whole_vectors && tiling.block_s == problem_.columns.taps && (floats || tiling.orders());
    // Runs of a plane are of rows that follow each other without a gap.
    if (given_.packs_x && !tiling.x_vectors) return;
    tiling.copy_vector = copy_vector();
    rows_of_pixels(tiling);
  }

  /// Elements of dy that a thread copies at a time: up to 16 bytes. A float may come alone.
  int copy_vector() const {
    const std::int64_t contiguous = problem_.output.layout() == Layout::nchw ? problem_.columns.output : problem_.k;
    const auto most = static_cast<int>(unit_pixels());
    if (problem_.alignment < 16) return 1;
    if (problem_.input.type == DataType::f32) return contiguous % most == 0 ? most : 1;
    return static_cast<int>(std::gcd<std::int64_t>(most, contiguous));
  }

  void rows_of_pixels(WgradWgmmaTiling tiling) {
    int before = 0;
    for (const std::int64_t most : {128, 64, 48, 32, 24, 16}) {
      if (most == 128 && problem_.input.type == DataType::f32) continue;
      if (most == 24 && !splits_operands()) continue;
      const std::int64_t columns = problem_.columns.output;
      tiling.row_pixels = static_cast<int>(round_up(ceil_div(columns, ceil_div(columns, most)), 2 * unit_pixels()));
      if (tiling.row_pixels == before) continue;
      before = tiling.row_pixels;
      if (splits_operands() && !splits_step(tiling)) continue;
      stages(tiling);
    }
  }

  bool splits_operands() const { return splits_floats(problem_.arithmetic); }

  /// Whether accumulators may take a step's products before they are promoted, and registers hold what they multiply.
  bool splits_step(const WgradWgmmaTiling& tiling) const {
    return tiling.promotion_interval() <= longest_promotion_interval(problem_.n * problem_.output_plane()) &&
           tiling.split_registers() <= tiling.consumer_registers();
  }

  /// As many rows of x and stages of dy as fit, some of each first.
  void stages(WgradWgmmaTiling tiling) {
    for (const auto& [extra, stages, raw_rows] :
         {std::array{3, 4, 4}, {2, 4, 4}, {2, 3, 4}, {2, 3, 3}, {1, 3, 3}, {1, 2, 3}, {1, 2, 2}}) {
      // Those of a strip's last step may still be multiplied when those of the next strip's first come.
      const auto new_rows = static_cast<int>(WgradGeometry(problem_, tiling).new_rows());
      tiling.x_rows = std::max(tiling.block_r + extra * new_rows, 2 * tiling.block_r);
      tiling.stages = stages;
      tiling.raw_rows = tiling.orders() ? raw_rows : 0;
      const WgradGeometry geometry(problem_, tiling);
      // Producer threads know that a step's copies have arrived when they copy the next step's, and consumers
      // release a step's stage in the next.
      if (tiling.threads_load() && geometry.copies_dy_async() && stages < 3) continue;
      if (geometry.longest_box() > TensorMapShape::kMostBox) return;
      if (geometry.shared_bytes() > target_.shared_bytes_per_block) continue;
      splits(tiling);
      return;
    }
  }

  void splits(WgradWgmmaTiling tiling) {
    const std::int64_t tiles = WgradGeometry(problem_, tiling).tiles();
    int before = 0;
    for (const std::int64_t waves : {1, 2}) {
      const std::int64_t most_splits =
          std::max<std::int64_t>(1, kMostPartialSumBytes / (4 * gradient_elements(problem_)));
      tiling.splits = static_cast<int>(std::clamp<std::int64_t>(waves * target_.sm_count / tiles, 1, most_splits));
      if (tiling.splits == before) continue;
      before = tiling.splits;
      strips(tiling);
    }
  }

  /// Strips as long as leaves all blocks about as many.
  void strips(WgradWgmmaTiling tiling) {
    WgradGeometry geometry(problem_, tiling);
    const std::int64_t row_step = geometry.row_step(), rows = ceil_div(problem_.rows.output, row_step);
    std::int64_t least = INT64_MAX;
    WgradWgmmaTiling best = tiling;
    for (std::int64_t strips = 1; strips <= std::min<std::int64_t>(rows, 64); ++strips) {
      tiling.strip_rows = static_cast<int>(ceil_div(rows, strips));
      // No strip is empty, also of those that have a row less.
      if (problem_.rows.output / row_step <= (strips - 1) * tiling.strip_rows) continue;
      geometry.set_strip_rows(tiling.strip_rows);
      // A strip's first step waits for all of its rows of x.
      const std::int64_t steps = ceil_div(geometry.strips(), tiling.splits) * (tiling.strip_rows + tiling.block_r);
      if (steps >= least) continue;
      least = steps;
      best = tiling;
    }
    const std::int64_t strips = WgradGeometry(problem_, best).strips();
    best.splits = static_cast<int>(std::min<std::int64_t>(best.splits, strips));
    const std::int64_t of_block = ceil_div(strips, best.splits),
                       strip_pixels = std::int64_t{best.row_pixels} * best.strip_rows;
    best.summed_strips = static_cast<int>(std::clamp<std::int64_t>(kSummedPixels / strip_pixels, 1, of_block));
    best.piece_rows = static_cast<int>(ceil_div(best.strip_rows, ceil_div(strip_pixels, kSummedPixels)));
    add(WgradGeometry(problem_, best));
  }

  void add(const WgradGeometry& geometry) {
    const std::int64_t blocks = geometry.tiles() * geometry.tiling().splits;
    if (blocks > INT32_MAX) return;
    const Launch launch = {static_cast<std::uint32_t>(blocks), static_cast<std::uint32_t>(geometry.tiling().threads()),
                           static_cast<std::uint32_t>(geometry.shared_bytes())};
    into_.add(geometry.tiling(), launch, price_.of(geometry, blocks) + passes_cost_);
  }

  CandidateList& into_;
  const Problem problem_;
  const Target& target_;
  WgradWgmmaPrice price_;
  WgradWgmmaTiling given_;  ///< says which operands are exchanged, joined or packed
  std::int64_t passes_cost_ = 0;
};

/// Adds tilings for 1x1 filters whose operands are planes: the tensor's own, or planes that a kernel before makes.
void add_planes(const Problem& asked, WgradWgmmaTiling tiling, const Target& target, CandidateList& into) {
  if (splits_floats(asked.arithmetic)) return;
  tiling.producer = WgradWgmmaTiling::Producer::planes;
  // What a stride skips is left out where x is packed.
  const bool skips = asked.rows.stride != 1 || asked.columns.stride != 1;
  for (const bool packs_x : {false, true}) {
    if (skips && !packs_x) continue;
    for (const bool packs_dy : {false, true}) {
      tiling.packs_x = packs_x;
      tiling.packs_dy = packs_dy;
      Search(asked, tiling, target, into).run_planes();
    }
  }
}

/// Adds tilings for larger filters whose tensors a kernel before packs. 16-bit tensors become NHWC rows of whole
/// strides, read as boxes. Floats become planes; in their rows each phase of columns is whole vectors.
void add_packed_rows(const Problem& asked, WgradWgmmaTiling tiling, const Target& target, CandidateList& into) {
  const Problem problem = tiling.problem_of(asked);
  const bool floats = problem.input.type == DataType::f32;
  if (floats ? joins_columns(problem) : gathers(problem)) return;
  const bool x_nhwc = problem.input.layout() == Layout::nhwc, dy_nhwc = problem.output.layout() == Layout::nhwc;
  tiling.producer = floats ? WgradWgmmaTiling::Producer::orders : WgradWgmmaTiling::Producer::boxes;
  tiling.packs_x = floats ? x_nhwc || problem.columns.stride > 1 || problem.columns.input % 4 != 0
                          : !x_nhwc || problem.columns.input % problem.columns.stride != 0;
  tiling.packs_dy = floats ? dy_nhwc || problem.output_plane() % 4 != 0 : !dy_nhwc;
  if (tiling.packs()) Search(asked, tiling, target, into).run();
  // Short rows make short steps.
  if (problem.n == 1 || problem.columns.output >= kLongRow) return;
  tiling.packs_x = tiling.packs_dy = tiling.joins_rows = true;
  Search(asked, tiling, target, into).run();
}

/// All tilings of the kernel's problem that `tiling` makes of what is asked for. The result says why there are none.
std::string add_tilings(const Problem& asked, const WgradWgmmaTiling& tiling, const Target& target,
                        CandidateList& into) {
  if (std::string why = wgrad_wgmma::obstacle_of_tiles(tiling.problem_of(asked)); !why.empty()) return why;
  Search(asked, tiling, target, into).run();
  if (asked.rows.is_pointwise() && asked.columns.is_pointwise())
    add_planes(asked, tiling, target, into);
  else
    add_packed_rows(asked, tiling, target, into);
  return {};
}

/// All tilings of what is asked for, as it is, with exchanged operands or with joined groups. The result says why there
/// are none.
std::string add_all_tilings(const Problem& asked, const Target& target, CandidateList& into) {
  if (std::string why = wgrad_wgmma::obstacle(asked, target); !why.empty()) return why;
  std::string why = fmt::format(
      "groups of {} output channels, it takes {}, or as many input channels and neither a stride nor more padding than "
      "the filter reaches, or groups that can be joined",
      asked.k, wgrad_wgmma::kFewestRows);
  WgradWgmmaTiling exchanged, joined;
  exchanged.exchanges = true;
  joined.joins_groups = wgrad_wgmma::groups_to_join(asked);
  if (asked.k >= wgrad_wgmma::kFewestRows)
    why = add_tilings(asked, {}, target, into);
  else if (asked.c >= wgrad_wgmma::kFewestRows && can_exchange_operands(asked))
    why = add_tilings(asked, exchanged, target, into);
  if (joined.joins_groups > 1) why = add_tilings(asked, joined, target, into);
  return why;
}

/// The same of the weight gradient of patches, which a kernel before gathers.
void add_patch_tilings(const Problem& asked, const Target& target, CandidateList& into) {
  if (asked.reduction != Reduction::pixels || !can_gather_patches(asked)) return;
  const Problem patches = patch_problem(asked);
  const std::int64_t gathering = pass_price(gather_patches_tiling(asked).priced_bytes(asked), into.costs().fma);
  CandidateList gathered(into.keep(), into.costs());
  add_all_tilings(patches, target, gathered);
  for (const Candidate& one : gathered.candidates()) {
    auto tiling = std::get<WgradWgmmaTiling>(one.tiling);
    tiling.gathers_patches = true;
    into.add(tiling, one.launch, one.cost + gathering);
  }
}

}  // namespace

std::string wgrad_wgmma::enumerate(const Problem& problem, const Target& target, CandidateList& into) {
  const std::string why = add_all_tilings(problem, target, into);
  add_patch_tilings(problem, target, into);
  if (!into.empty()) return {};
  return why.empty() ? no_tile_fits(problem, target) : why;
}

}  // namespace jitconv::codegen
