// Candidates of the wgmma_rows family: how wide a strip is, how many rows a tile has, and what a step brings.
#include <algorithm>

#include "codegen/costs/costs.h"
#include "codegen/wgmma_rows/family.h"
#include "codegen/wgmma_rows/tiling.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

constexpr int kMostStages = 16;
// Producer warps take steps in turn, each at its own pace. With fewer stages than warps, one could wait for a stage
// while another still waits for it, two phases behind, where the parity of its barrier says nothing.
constexpr int kFewestStages = WgmmaRowsTiling::kProducerWarps;
constexpr int kMostColumns = 256, kFewestColumns = 64;
constexpr int kFewestTileRows = 8;
constexpr int kFewestProducerRegisters = 72;

/// Which rule keeps the family from computing the problem; empty if none does.
std::string obstacle(const Problem& problem, const Target& target) {
  if (const std::string_view rule = beyond_dense_forward(problem); !rule.empty()) return std::string(rule);
  if (target.compute_capability() != 90 || !target.arch_specific)
    return fmt::format("warpgroup multiplications need sm_90a, the target is {}", target.arch());
  if (problem.arithmetic != Arithmetic::tf32 && problem.arithmetic != Arithmetic::f16 &&
      problem.arithmetic != Arithmetic::bf16)
    return "the math mode does not let it multiply on tensor cores";
  if (problem.input.layout() != Layout::nchw) return "the input is nhwc";
  if (problem.output.layout() != Layout::nchw) return "the output is nhwc";
  if (problem.groups > 1) return fmt::format("there are {} groups", problem.groups);
  if (problem.rows.stride != 1 || problem.columns.stride != 1)
    return fmt::format("the stride is ({},{})", problem.rows.stride, problem.columns.stride);
  if (problem.rows.taps < WgmmaRowsTiling::kFewestFilterRows || problem.rows.taps > WgmmaRowsTiling::kMostFilterRows)
    return fmt::format("the filter has {} rows, consumers are {} to {}", problem.rows.taps,
                       WgmmaRowsTiling::kFewestFilterRows, WgmmaRowsTiling::kMostFilterRows);
  if (problem.k > WgmmaRowsTiling::kRows)
    return fmt::format("{} output channels, a multiplication has {}", problem.k, WgmmaRowsTiling::kRows);
  if (problem.alignment < 16) return fmt::format("alignment is {}, stores need 16", problem.alignment);
  const std::int64_t planes = problem.n * std::max(problem.c, problem.k);
  const std::int64_t plane = std::max(problem.input_plane(), problem.output_plane());
  if (planes > INT32_MAX || problem.c * problem.input_plane() > INT32_MAX || plane > INT32_MAX - 4 * kMostColumns)
    return fmt::format("images of {} x {} elements, which are counted with 32 bits", problem.c, problem.input_plane());
  const std::int64_t reach = problem.rows.reach() + problem.columns.reach() + problem.rows.pad + problem.columns.pad;
  if (reach > INT32_MAX / 4) return "taps are too far from each other to count pixels with 32 bits";
  return PackWeightsTiling::obstacle(problem);
}

class Search {
 public:
  Search(const Problem& problem, const Target& target, CandidateList& into)
      : into_(into),
        costs_(into.costs().wgmma_rows),
        problem_(problem),
        target_(target),
        bytes_(static_cast<std::int64_t>(work(problem).bytes)) {}

  void run() {
    // Tilings with fewer multiplications come first: of equal prices the first one is taken.
    for (const int folded : {8, 4, 2, 1}) {
      WgmmaRowsTiling tiling;
      tiling.folded_columns = folded;
      // Half as many groups of rows would do.
      if (folded > 1 && (problem_.k * folded > WgmmaRowsTiling::kRows || 2 * problem_.columns.taps <= folded)) continue;
      for (int columns = kMostColumns; columns >= kFewestColumns; columns -= 8) strips(tiling, columns);
    }
  }

 private:
  void strips(WgmmaRowsTiling tiling, int columns) {
    tiling.columns = columns;
    WgmmaRowsGeometry geometry(problem_, tiling);
    if (geometry.producer_registers() < kFewestProducerRegisters) return;
    const int sector = geometry.sector_elements();
    const std::int64_t outputs = columns - geometry.fold_reach() - geometry.alignment_outputs();
    if (outputs < sector) return;
    const auto most = static_cast<int>(outputs / sector * sector);
    // As few strips as that allows, all of about one width.
    const std::int64_t strips = ceil_div(problem_.columns.output, most);
    tiling.window = static_cast<int>(round_up(ceil_div(problem_.columns.output, strips), sector));
    const std::int64_t needed = tiling.window + geometry.fold_reach() + geometry.alignment_outputs();
    if (needed <= columns - 8 && columns > kFewestColumns) return;  // a narrower strip stores as much
    if (columns > kFewestColumns && strips == 1 && problem_.columns.output + geometry.fold_reach() <= columns - 8)
      return;
    for (const int slices : {2, 4, 8}) {
      if (slices > 2 && slices * geometry.slice_channels() > round_up(problem_.c, 2 * geometry.slice_channels()))
        continue;
      tiling.slices = slices;
      for (const bool keeps_weights : {true, false}) {
        tiling.keeps_weights = keeps_weights;
        stages(tiling);
      }
    }
  }

  void stages(WgmmaRowsTiling tiling) {
    tiling.stages = 0;
    WgmmaRowsGeometry geometry(problem_, tiling);
    const std::int64_t rest = geometry.shared_bytes() + 256 + 16 * kMostStages;
    const std::int64_t fit = (target_.shared_bytes_per_block - rest) / geometry.stage_bytes();
    if (fit < kFewestStages) return;
    tiling.stages = static_cast<int>(std::min<std::int64_t>(fit, kMostStages));
    const std::int64_t in_flight = geometry.load_registers() / geometry.chunk_channels();
    if (in_flight < 1) return;
    const std::int64_t batches = ceil_div(geometry.load_items(), in_flight);
    tiling.load_batch = static_cast<int>(ceil_div(geometry.load_items(), batches));
    rows(tiling);
  }

  /// Rows of a tile, such that SMs have about the same work: each tile loads the rows between it and the next again.
  void rows(WgmmaRowsTiling tiling) {
    tiling.tile_rows = 1;
    const WgmmaRowsGeometry geometry(problem_, tiling);
    const std::int64_t rows = geometry.rows_of_residue();
    const std::int64_t columns = problem_.n * geometry.residues() * geometry.strips();
    const std::int64_t again = problem_.rows.taps - 1;
    std::int64_t best = INT64_MAX;
    const auto most = static_cast<std::int64_t>(ceil_div(rows, std::min<std::int64_t>(kFewestTileRows, rows)));
    for (std::int64_t tiles = 1; tiles <= most; ++tiles) {
      const std::int64_t tile_rows = ceil_div(rows, tiles);
      const std::int64_t waves = ceil_div(columns * ceil_div(rows, tile_rows), target_.sm_count);
      const std::int64_t time = waves * (tile_rows + again);
      if (time >= best) continue;
      best = time;
      tiling.tile_rows = static_cast<int>(tile_rows);
    }
    add(tiling);
  }

  void add(const WgmmaRowsTiling& tiling) {
    const WgmmaRowsGeometry geometry(problem_, tiling);
    const std::int64_t tiles = geometry.tiles(), shared_bytes = geometry.shared_bytes();
    if (tiles > INT32_MAX - 2 * target_.sm_count || shared_bytes > target_.shared_bytes_per_block) return;
    const Launch launch = {static_cast<std::uint32_t>(std::min<std::int64_t>(tiles, target_.sm_count)),
                           static_cast<std::uint32_t>(geometry.threads()), static_cast<std::uint32_t>(shared_bytes)};
    into_.add(tiling, launch, price(geometry));
  }

  /// Cycles of an input row of a strip.
  std::int64_t row_cycles(const WgmmaRowsGeometry& geometry) const {
    const WgmmaRowsTiling& tiling = geometry.tiling();
    const std::int64_t products = problem_.rows.taps * geometry.units() / 2;
    const std::int64_t multiply = products * (tiling.columns / 2) * costs_.multiply_percent / 100;
    const std::int64_t batches = ceil_div(geometry.load_items(), tiling.load_batch);
    const std::int64_t loads = geometry.load_items() * geometry.chunk_channels();
    const std::int64_t load = (batches * costs_.load_batch + loads * costs_.load) / WgmmaRowsTiling::kProducerWarps;
    const std::int64_t store =
        (tiling.columns * costs_.staged_columns + problem_.k * tiling.window * costs_.stored_vector) / kWarpSize;
    return (geometry.chunks() * (multiply + load) + store) * percent_of_row(geometry) / 100;
  }

  std::int64_t percent_of_row(const WgmmaRowsGeometry& geometry) const {
    const WgmmaRowsTiling& tiling = geometry.tiling();
    std::int64_t percent = 100;
    if (!tiling.keeps_weights) percent += costs_.weights_come_percent;
    if (tiling.slices == 8) percent += costs_.long_step_percent;
    if (tiling.stages < 6) percent += costs_.few_stages_percent;
    if (tiling.window * problem_.output.element_bytes() % 128 != 0) percent += costs_.unaligned_percent;
    if (geometry.lead() != 0) percent += costs_.lead_percent;
    if (problem_.k <= 4) percent += costs_.few_channels_percent;
    if (problem_.c <= 16) percent += problem_.c < 8 ? costs_.few_inputs_percent : costs_.some_inputs_percent;
    if (problem_.input.element_bytes() == 2) percent += costs_.sixteen_bits_percent;
    if (geometry.consumers() == 2) percent += costs_.two_consumers_percent;
    return percent;
  }

  std::int64_t price(const WgmmaRowsGeometry& geometry) const {
    const std::int64_t waves = ceil_div(geometry.tiles(), target_.sm_count);
    const std::int64_t rows = waves * (geometry.tiling().tile_rows + problem_.rows.taps - 1);
    const std::int64_t compute = costs_.start + rows * row_cycles(geometry) * costs_.picoseconds_per_cycle;
    const std::int64_t memory = bytes_ * 1000 / (costs_.dram_bytes_per_microsecond / 1000);
    const std::int64_t cost = std::max(compute, memory);
    return problem_.epilogue.residual ? cost + cost * costs_.residual_percent / 100 : cost;
  }

  CandidateList& into_;
  const WgmmaRowsCosts& costs_;
  const Problem& problem_;
  const Target& target_;
  std::int64_t bytes_;
};

}  // namespace

std::string wgmma_rows::enumerate(const Problem& problem, const Target& target, CandidateList& into) {
  if (std::string why = obstacle(problem, target); !why.empty()) return why;
  Search(problem, target, into).run();
  return into.empty() ? no_tile_fits(problem, target) : "";
}

}  // namespace jitconv::codegen
