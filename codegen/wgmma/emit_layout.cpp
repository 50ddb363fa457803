// The barriers of a wgmma kernel, and the comment that lists them and maps its shared memory.
#include "codegen/text/layout_comment.h"
#include "codegen/wgmma/emit_load.h"
#include "fmt/format.h"

namespace jitconv::codegen {

Holes barrier_holes(const WgmmaGeometry& geometry) {
  const WgmmaTiling& tiling = geometry.tiling();
  Lines init, more;
  std::string next = tiling.copies_pixels() ? "empty + kStages + kCopySlots" : "empty + kStages";
  if (tiling.splits_im2col()) {
    more.add(fmt::format("Barrier* const arrived = {};", next));
    init.add("for (int i = 0; i < kStages; ++i) barrier_init(arrived + i, 1);");
    next = "arrived + kStages";
  }
  if (tiling.keeps_weights()) {
    more.add(fmt::format("Barrier* const weights_arrival = {};", next));
    init.add("barrier_init(weights_arrival, 1);");
    next = "weights_arrival + 1";
  }
  if (tiling.schedule == WgmmaTiling::Schedule::pingpong) {
    more.add(fmt::format("Barrier* const multiplied = {};  // one of each consumer warpgroup", next));
    init.add("for (int i = 0; i < kConsumers; ++i) barrier_init(multiplied + i, kWarpgroupWarps);");
  }
  if (tiling.schedule == WgmmaTiling::Schedule::sliced_k) {
    more.add(fmt::format("Barrier* const pairs = {};  // one of each pair of warps that add their sums", next));
    init.add("for (int i = 0; i < kWarpgroupWarps; ++i) barrier_init(pairs + i, kPairArrivals);");
  }
  return {{"more_barriers", more.text()}, {"init_barriers", init.text()}};
}

std::string layout_comment(const WgmmaGeometry& geometry, std::string_view releases) {
  const WgmmaTiling& tiling = geometry.tiling();
  LayoutComment comment;
  comment.memory("0", fmt::format("kStages stages: pixels of kRuns runs{}{}",
                                  tiling.operand_parts() > 1 ? ", first their larger and then their smaller parts" : "",
                                  tiling.keeps_weights() ? "" : ", behind them the weights of the step"));
  if (tiling.keeps_weights()) comment.memory("kWeightsFirstByte", "weights of all steps");
  if (tiling.copies_pixels())
    comment.memory("kRawFirstByte", "pixels as they lie in x, kCopiesAhead steps of each producer warp");
  comment.memory("kStagingFirstByte", tiling.stores_boxes() ? "kStagedBoxes boxes of outputs of each consumer"
                                                            : "outputs on their way from registers to y");
  if (geometry.has_zeros()) comment.memory("kZerosFirstByte", "pixels of the unit that has no tap");
  comment.memory("kBarriersFirstByte", "barriers");

  comment.barrier("full[kStages]", "kFullArrivals", "the producer, and copies by their bytes", "consumers, for a step");
  comment.barrier("empty[kStages]", releases, "consumers that have multiplied a step",
                  "the producer, for a free stage");
  if (tiling.copies_pixels())
    comment.barrier("copied[kCopySlots]", copied_arrivals(geometry), "TMA, by bytes", "a producer warp, to convert");
  if (tiling.splits_im2col())
    comment.barrier("arrived[kStages]", "1", "TMA, by bytes", "producer warps, to split pixels");
  if (tiling.keeps_weights()) comment.barrier("weights_arrival", "1", "TMA, by bytes", "consumers, once");
  if (tiling.schedule == WgmmaTiling::Schedule::pingpong)
    comment.barrier("multiplied[kConsumers]", "kWarpgroupWarps", "a consumer's warps, in their last step",
                    "the other consumer, for its turn");
  if (tiling.schedule == WgmmaTiling::Schedule::sliced_k)
    comment.barrier("pairs[kWarpgroupWarps]", "kPairArrivals", "a pair of warps that has staged sums",
                    "the same pair, to add them");
  return comment.text();
}

}  // namespace jitconv::codegen
