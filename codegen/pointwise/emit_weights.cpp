// The weights of a pointwise kernel: a block keeps those of all its steps, which its threads round, or TMA
// brings and rounds those of a step with the step's pixels.
#include "codegen/arithmetic.h"
#include "codegen/pointwise/emit.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

/// What all consumers wait for before their first tile, `name`: weights and bias that they have put into shared memory.
Holes arrival_holes(std::string_view name) {
  return {{"arrival", fmt::format("Barrier* const {} = empty + kStages;", name)},
          {"init_arrival", fmt::format("barrier_init({}, kConsumerThreads);", name)}};
}

Holes kept_weights(const Problem& problem, const PointwiseTiling& tiling) {
  const bool split = tiling.splits > 1;
  Holes holes = arrival_holes("weights_arrival");
  holes.merge(Holes{
      {"load_weights_function", std::string(embedded_text("pointwise/load_weights.cu.in"))},
      {"weight_bytes", ""},
      {"load_weights_of_step", ""},
      {"load_weights", fmt::format("const int thread = static_cast<int>(threadIdx.x);\nload_weights(w + "
                                   "static_cast<long long>(group * kGroupK + k_block) * kChannels{}, {}, kGroupK - "
                                   "k_block, thread, weights);\n",
                                   split ? " + first_step * kChunkChannels" : "",
                                   split ? "kChannels - first_step * kChunkChannels" : "kChannels") +
                           (tiling.keeps_bias(problem) ? std::string(embedded_text("pointwise/load_bias.cu.in")) : "") +
                           "fence_async_proxy();\nbarrier_arrive(weights_arrival);\nbarrier_wait(weights_arrival, 0);"},
      {"previous_stage", ""},
      {"weights_of_step", fmt::format("// Adding to the operand moves it by rows of 16 bytes.\n"
                                      "const MatrixOperand weights_of_step =\n"
                                      "    matrix_operand(weights + {} * (kChunkChannels / kOperandChannels * "
                                      "kWeightPitch) + k_consumer * kOperandRowBytes, "
                                      "kWeightPitch);",
                                      split ? "(step - first_step)" : "step")},
      {"previous", ""},
      {"release_last", ""}});
  return holes;
}

Holes streamed_weights(const Problem& problem, const PointwiseTiling& tiling) {
  const bool bias = tiling.keeps_bias(problem);
  Holes holes = bias ? arrival_holes("bias_arrival") : Holes{{"arrival", ""}, {"init_arrival", ""}};
  holes.merge(Holes{{"load_weights_function", ""},
                    {"weight_bytes", " + (warp == kConsumerWarps ? kWeightBytes : 0)"},
                    {"load_weights_of_step",
                     "if (warp == kConsumerWarps)\n"
                     "  tensor_copy_2d_to_shared(weights + stage * kWeightStageBytes, &w_map, step * kChunkChannels, "
                     "group * kGroupK + "
                     "k_block,\n                           full + stage);"},
                    {"load_weights", bias ? "const int thread = static_cast<int>(threadIdx.x);\n" +
                                                std::string(embedded_text("pointwise/load_bias.cu.in")) +
                                                "barrier_arrive(bias_arrival);\nbarrier_wait(bias_arrival, 0);"
                                          : ""},
                    {"previous_stage", "int previous_stage = 0;"},
                    {"weights_of_step",
                     "// Adding to the operand moves it by 16 bytes: four channels of all rows.\n"
                     "const MatrixOperand weights_of_step = swizzled_operand<kWeightRowBytes>(\n"
                     "    weights + stage * kWeightStageBytes + k_consumer * kWeightRowBytes);"},
                    {"previous", "previous_stage = stage;"},
                    {"release_last", "if (lane == 0) barrier_arrive(empty + previous_stage);"}});
  return holes;
}

}  // namespace

Holes pointwise_weight_holes(const Problem& problem, const PointwiseTiling& tiling) {
  return tiling.streams_weights ? streamed_weights(problem, tiling) : kept_weights(problem, tiling);
}

TensorMapShape pointwise_weight_map(const Problem& problem, const PointwiseTiling& tiling) {
  return {.rank = 2,
          .extents = {problem.c, problem.output_channels()},
          .strides = {1, problem.c},
          .box = {tiling.chunk_channels, tiling.block_k()},
          .swizzle_bytes = tiling.weight_row_bytes(),
          .rounds_to_tf32 = true};
}

}  // namespace jitconv::codegen
