// See wgrad_wgmma/price.h; codegen/wgrad_wgmma/costs.h has the terms.
#include "codegen/wgrad_wgmma/price.h"

#include <algorithm>

#include "codegen/arithmetic.h"
#include "codegen/cost.h"
#include "codegen/reduce/tiling.h"

namespace jitconv::codegen {
namespace {

/// Pixels that a thread reads to put a unit of x in order, all of its copies together.
std::int64_t pixels_of_unit(const WgradGeometry& geometry) { return geometry.unit_pixels() + geometry.shifts().back(); }

}  // namespace

WgradWgmmaPrice::WgradWgmmaPrice(const Problem& problem, const Target& target, const WgradWgmmaCosts& costs)
    : target_(target), costs_(costs), bytes_(static_cast<std::int64_t>(work(problem).bytes)) {}

std::int64_t WgradWgmmaPrice::of(const WgradGeometry& geometry, std::int64_t blocks) const {
  const WgradWgmmaTiling& tiling = geometry.tiling();
  const std::int64_t instruction = cycles_of_instruction(geometry),
                     blocks_of_step = tiling.row_pixels / geometry.depth();
  const std::int64_t products = tiling.consumers_k == 2 ? 2 * tiling.products() : tiling.products();
  const std::int64_t overhead = tiling.copies_operands() ? costs_.multiply.step_of_boxes : costs_.multiply.step;
  const std::int64_t parts = tiling.splits_operands ? 3 : 1;  // products that a product of operands is the sum of
  const std::int64_t multiply = blocks_of_step * products * parts * instruction + overhead;
  const std::int64_t own =
      blocks_of_step * tiling.consumer_products() * parts * instruction + split_and_promote(tiling);
  const std::int64_t alone = tiling.copies_operands() ? own * costs_.multiply.alone_percent / 100 + overhead
                                                      : own + costs_.multiply.alone_steps * overhead;
  const std::int64_t load = load_of_step(geometry), bytes = bytes_of_step(geometry);
  const std::int64_t step = std::max({multiply, alone, bytes / costs_.loads.l2_bytes_per_cycle, load,
                                      shared_bytes(geometry) / costs_.split.shared_bytes_per_cycle});
  const std::int64_t strips = ceil_div(geometry.strips(), tiling.splits);
  // A strip's first step waits for all of its rows of x.
  const std::int64_t first_rows = tiling.block_r > 1 ? tiling.block_r : 0;
  const std::int64_t flushes = geometry.sums();
  const std::int64_t flush = costs_.flush + tiling.accumulators() * costs_.flush_sum;
  const std::int64_t block =
      strips * (tiling.strip_rows * step + first_rows * std::max(load, costs_.multiply.step)) + flushes * flush;
  const std::int64_t waves = ceil_div(blocks, target_.sm_count);
  const std::int64_t sums = 4 * tiling.splits * gradient_elements(geometry.problem());
  const std::int64_t start = tiling.copies_operands() ? costs_.start_of_copies : costs_.start;
  const std::int64_t compute = start + waves * block * costs_.picoseconds_per_cycle + costs_.reduce_launch +
                               sums / costs_.reduce_bytes_per_picosecond;
  const std::int64_t memory = (bytes_ + sums) * 1000 / (costs_.dram_bytes_per_microsecond / 1000);
  return overlapped(compute, memory, 10 * costs_.unhidden_percent);
}

std::int64_t WgradWgmmaPrice::split_and_promote(const WgradWgmmaTiling& tiling) const {
  if (!tiling.splits_operands) return 0;
  return tiling.promotion_interval() * costs_.split.dy +
         tiling.consumer_products() * (costs_.split.promotion + tiling.columns() / 2);
}

std::int64_t WgradWgmmaPrice::shared_bytes(const WgradGeometry& geometry) {
  const WgradWgmmaTiling& tiling = geometry.tiling();
  // Shared memory counts where operands are split, and where rows of x are put in order.
  if (!tiling.splits_operands && !tiling.orders()) return 0;
  const std::int64_t parts = tiling.splits_operands ? 3 : 1;
  const std::int64_t multiplications =
      parts * (tiling.row_pixels / geometry.depth()) * tiling.products() * tiling.consumers_k * 32 * tiling.columns();
  // Consumers that share taps read a half of dy each, others all of it, and pairs that are cut twice. Fitted: those of
  // split operands count as if they read all.
  const std::int64_t consumers = tiling.consumers_k == 2 && !tiling.splits_operands ? 1 : 2,
                     reads_of_dy = consumers * (geometry.cuts_pairs() ? 2 : 1);
  // Fitted: copied pixels that are read alone have bank conflicts.
  const std::int64_t reads_of_x = tiling.orders() && !tiling.x_vectors ? pixels_of_unit(geometry) / 2 : 1;
  return multiplications + geometry.new_rows() * (geometry.x_row_bytes() + (1 + reads_of_x) * geometry.raw_bytes()) +
         (1 + reads_of_dy) * geometry.stage_bytes();
}

std::int64_t WgradWgmmaPrice::cycles_of_instruction(const WgradGeometry& geometry) const {
  const WgradWgmmaTiling& tiling = geometry.tiling();
  if (tiling.takes_planes() ? geometry.problem().input.type == DataType::f32 : !tiling.takes_boxes())
    return std::max(tiling.columns() / 2, 16);
  // Shared memory gives both operands at 128 bytes a cycle.
  return std::max(tiling.columns() / 2, 16 + tiling.columns() / 4) + costs_.multiply.instruction;
}

std::int64_t WgradWgmmaPrice::bytes_of_step(const WgradGeometry& geometry) const {
  const WgradWgmmaTiling& tiling = geometry.tiling();
  if (tiling.takes_boxes()) return geometry.new_rows() * geometry.x_row_bytes() + geometry.stage_bytes();
  if (tiling.gathers()) return geometry.stage_bytes();
  if (tiling.takes_planes()) return geometry.x_row_bytes() + geometry.stage_bytes();
  return geometry.stage_bytes() + std::int64_t{16} * geometry.phases() * geometry.units() * tiling.block_c;
}

std::int64_t WgradWgmmaPrice::order(const WgradGeometry& geometry) const {
  const WgradWgmmaTiling& tiling = geometry.tiling();
  const std::int64_t of_thread = ceil_div(geometry.loads(), 32 * tiling.order_warps());
  return costs_.multiply.step + of_thread * ((tiling.x_vectors ? costs_.loads.order_vector
                                                               : pixels_of_unit(geometry) * costs_.loads.order_pixel) +
                                             (tiling.splits_operands ? costs_.split.x : 0));
}

std::int64_t WgradWgmmaPrice::load_of_step(const WgradGeometry& geometry) const {
  const WgradWgmmaTiling& tiling = geometry.tiling();
  if (tiling.copies_operands()) return costs_.multiply.step;
  if (tiling.orders()) return order(geometry);
  const std::int64_t loads = ceil_div(geometry.loads(), 128);
  // Fitted: what is stored counts, too, and with a stride what is stored of each phase.
  const auto copies = static_cast<std::int64_t>(geometry.shifts().size());
  const std::int64_t of_pixel = geometry.phases() > 1 ? copies + 3 : tiling.gathers() ? 2 : 2 * copies;
  const std::int64_t issues = tiling.x_vectors ? 4 : geometry.unit_pixels() * of_pixel;
  return geometry.new_rows() *
             (ceil_div(loads, geometry.load_batch()) * costs_.loads.latency + loads * issues * costs_.loads.issue +
              (tiling.splits_operands ? loads * costs_.split.x : 0)) +
         copy_dy(geometry);
}

std::int64_t WgradWgmmaPrice::copy_dy(const WgradGeometry& geometry) const {
  constexpr std::int64_t kInFlight = 8;  // of a thread, by way of registers
  const WgradWgmmaTiling& tiling = geometry.tiling();
  const std::int64_t copies = std::int64_t{tiling.block_k()} * tiling.row_pixels / 128 / tiling.copy_vector;
  // Not fitted to columns that are gathered.
  return copies * (tiling.gathers() ? costs_.loads.issue : costs_.loads.copy) +
         (geometry.copies_dy_async() ? 0 : ceil_div(copies, kInFlight) * costs_.loads.latency);
}

}  // namespace jitconv::codegen
