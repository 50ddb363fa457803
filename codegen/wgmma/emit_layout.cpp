// The comment of a wgmma kernel that maps its shared memory and lists its barriers.
#include "codegen/wgmma/emit.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

void add_memory(Lines& lines, const WgmmaGeometry& geometry) {
  const WgmmaTiling& tiling = geometry.tiling();
  const auto add = [&lines](std::string_view place, std::string_view what) {
    lines.add(fmt::format("//   {:<20}{}", place, what));
  };
  lines.add("// Shared memory, by first byte:");
  add("0", fmt::format("kStages stages: pixels of kRuns runs{}{}",
                       tiling.splits_operands() ? ", first their larger and then their smaller parts" : "",
                       tiling.keeps_weights() ? "" : ", behind them the weights of the step"));
  if (tiling.keeps_weights()) add("kWeightsFirstByte", "weights of all steps");
  if (tiling.converts_pixels())
    add("kRawFirstByte", "pixels as they lie in x, kCopiesAhead steps of each producer warp");
  add("kStagingFirstByte", tiling.stores_boxes() ? "kStagedBoxes boxes of outputs of each consumer"
                                                 : "outputs on their way from registers to y");
  if (geometry.has_zeros()) add("kZerosFirstByte", "pixels of the unit that has no tap");
  add("kBarriersFirstByte", "barriers");
}

void add_barriers(Lines& lines, const WgmmaGeometry& geometry, const BarrierCounts& counts) {
  const WgmmaTiling& tiling = geometry.tiling();
  const auto add = [&lines](std::string_view name, std::string_view arrivals, std::string_view who,
                            std::string_view waits) {
    lines.add(fmt::format("//   {:<26}{:<16}{:<40}{}", name, arrivals, who, waits));
  };
  lines.add("// Barriers:");
  add("name", "arrivals", "who arrives", "who waits");
  add("full[kStages]", counts.full, "the producer, and copies by their bytes", "consumers, for a step");
  add("empty[kStages]", counts.empty, "consumers that have multiplied a step", "the producer, for a free stage");
  if (tiling.converts_pixels())
    add("copied[4 * kCopiesAhead]", "copies", "the copy engine, by bytes", "a producer warp, to convert");
  if (tiling.splits_im2col())
    add("arrived[kStages]", "1", "the copy engine, by bytes", "loading warps, to split pixels");
  if (tiling.keeps_weights()) add("weights_arrival", "1", "the copy engine, by bytes", "consumers, once");
  if (tiling.schedule == WgmmaTiling::Schedule::pingpong)
    add("multiplied[kConsumers]", "4", "a consumer's warps, in their last step", "the other consumer, for its turn");
  if (tiling.schedule == WgmmaTiling::Schedule::sliced_k)
    add("meeting[4]", "kConsumers * 32", "a pair of warps that has staged sums", "the same pair, before it adds them");
}

}  // namespace

std::string layout_comment(const WgmmaGeometry& geometry, const BarrierCounts& counts) {
  Lines lines;
  add_memory(lines, geometry);
  add_barriers(lines, geometry, counts);
  return lines.text();
}

}  // namespace jitconv::codegen
