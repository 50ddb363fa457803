// The comment of a wgmma kernel that maps its shared memory and lists its barriers.
#include "codegen/text/layout_comment.h"
#include "codegen/wgmma/emit.h"
#include "fmt/format.h"

namespace jitconv::codegen {

std::string layout_comment(const WgmmaGeometry& geometry, const BarrierCounts& counts) {
  const WgmmaTiling& tiling = geometry.tiling();
  LayoutComment comment;
  comment.memory("0", fmt::format("kStages stages: pixels of kRuns runs{}{}",
                                  tiling.splits_operands() ? ", first their larger and then their smaller parts" : "",
                                  tiling.keeps_weights() ? "" : ", behind them the weights of the step"));
  if (tiling.keeps_weights()) comment.memory("kWeightsFirstByte", "weights of all steps");
  if (tiling.converts_pixels())
    comment.memory("kRawFirstByte", "pixels as they lie in x, kCopiesAhead steps of each producer warp");
  comment.memory("kStagingFirstByte", tiling.stores_boxes() ? "kStagedBoxes boxes of outputs of each consumer"
                                                            : "outputs on their way from registers to y");
  if (geometry.has_zeros()) comment.memory("kZerosFirstByte", "pixels of the unit that has no tap");
  comment.memory("kBarriersFirstByte", "barriers");

  comment.barrier("full[kStages]", counts.full, "the producer, and copies by their bytes", "consumers, for a step");
  comment.barrier("empty[kStages]", counts.empty, "consumers that have multiplied a step",
                  "the producer, for a free stage");
  if (tiling.converts_pixels())
    comment.barrier("copied[4 * kCopiesAhead]", copied_arrivals(geometry), "the copy engine, by bytes",
                    "a producer warp, to convert");
  if (tiling.splits_im2col())
    comment.barrier("arrived[kStages]", "1", "the copy engine, by bytes", "loading warps, to split pixels");
  if (tiling.keeps_weights()) comment.barrier("weights_arrival", "1", "the copy engine, by bytes", "consumers, once");
  if (tiling.schedule == WgmmaTiling::Schedule::pingpong)
    comment.barrier("multiplied[kConsumers]", "4", "a consumer's warps, in their last step",
                    "the other consumer, for its turn");
  if (tiling.schedule == WgmmaTiling::Schedule::sliced_k)
    comment.barrier("meeting[4]", "kConsumers * 32", "a pair of warps that has staged sums",
                    "the same pair, before it adds them");
  return comment.text();
}

}  // namespace jitconv::codegen
