// Prints the pointwise family: templates/pointwise/.
#include "codegen/pointwise/emit.h"

#include "codegen/arithmetic.h"
#include "codegen/pointwise/family.h"
#include "codegen/text/epilogue.h"
#include "codegen/text/layout_comment.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

constexpr int kWeightBatch = 16;   // rows of 16 bytes of a thread in flight
constexpr int kResidualBatch = 4;  // pairs of channels of a lane in flight

/// As in other families; if the reduction is split, the kernel writes partial sums.
std::vector<Argument> parameters(const Problem& problem, const PointwiseTiling& tiling) {
  Problem stored = problem;
  if (tiling.splits > 1) stored.epilogue = {};
  std::vector<Argument> result = arguments(stored);
  if (tiling.splits > 1) result.back() = {problem.output.tensor, "float* __restrict__", "partial_sums"};
  if (tiling.streams_weights)
    for (Argument& argument : result)
      if (argument.tensor == problem.weight.tensor)
        argument = tensor_map(problem.weight.tensor, "w_map", pointwise_weight_map(problem, tiling));
  if (tiling.tile == PointwiseTiling::Pixels::rows)
    for (Argument& argument : result)
      if (argument.tensor == problem.input.tensor)
        argument = tensor_map(problem.input.tensor, "x_map", pointwise_pixel_map(problem, tiling));
  return result;
}

std::string constants(const KernelPlan& kernel, const PointwiseTiling& tiling) {
  const Problem& problem = kernel.problem;
  const std::int64_t plane = problem.input_plane();
  Constants c;
  c.group("Convolution: x[N][C][H * W], w[K][C/groups], y[N][K][H * W]");
  c.add("kImages", problem.n).add("kPlane", plane, "H * W");
  c.add("kAllPixels", PointwiseTiling::pixels(problem), "of all images");
  c.add("kInputStrideN", problem.input_channels() * plane);
  c.add("kGroups", problem.groups).add("kChannels", problem.c, "of a group");
  c.add("kGroupK", problem.k);

  c.group("Tiles: kPixels pixels of a block by kBlockK channels; a warpgroup multiplies kColumns of them");
  c.add("kPixels", tiling.block_pixels()).add("kTiles", tiling.tiles(problem));
  c.add("kBlockK", tiling.block_k()).add("kColumns", tiling.columns).add("kTilesK", tiling.tiles_k(problem));
  c.add("kLanePixels", tiling.lane_pixels, tiling.gathers() ? "" : "neighbours");
  c.add("kInstructions", tiling.instructions(), "of 64 rows each");
  c.add("kSplits", tiling.splits).add("kSlabs", tiling.slabs(problem), "of the weights");

  c.group("Steps: kChunkChannels channels of a tile");
  c.add("kChunkChannels", tiling.chunk_channels).add("kSteps", tiling.steps(problem));
  if (tiling.splits > 1) c.add("kStepsOfSplit", tiling.steps_of_split(problem));
  c.add("kBatchSteps", tiling.batch_steps, "eights of channels in registers, and as many being multiplied");
  c.add("kPixelPitch", tiling.pixel_pitch(problem), "floats from channel to channel");
  c.add("kStageFloats", tiling.stage_bytes(problem) / 4).add("kStages", tiling.stages);
  add_pointwise_pixel_constants(c, problem, tiling);

  c.group("The block");
  c.add("kThreads", PointwiseTiling::kThreads).add("kProducerWarps", PointwiseTiling::kProducerWarps);
  c.add("kConsumerWarps", 4 * PointwiseTiling::kConsumers);
  c.add("kConsumerThreads", PointwiseTiling::kConsumers * 128);
  c.add("kConsumerRegisters", PointwiseTiling::kConsumerRegisters)
      .add("kProducerRegisters", PointwiseTiling::kProducerRegisters);
  if (tiling.streams_weights) {
    c.add("kWeightRowBytes", tiling.weight_row_bytes(), "of an output channel");
    c.add("kWeightBytes", tiling.block_k() * tiling.weight_row_bytes(), "of a step")
        .add("kWeightStageBytes", tiling.weight_stage_bytes());
  } else {
    c.add("kSlabSlices", tiling.slab_slices(problem), "of four input channels");
    c.add("kSlabRows", tiling.slab_slices(problem) * tiling.block_k(), "of 16 bytes");
    c.add("kSliceRows", tiling.block_k() + 1, "one of them unused").add("kWeightPitch", tiling.weight_pitch());
    c.add("kWeightBatch", kWeightBatch, "rows of a thread in flight");
  }
  c.add("kWeightsFirstByte", tiling.weights_first_byte(problem));
  if (tiling.keeps_bias(problem)) c.add("kBiasFirstByte", tiling.bias_first_byte(problem));
  c.add("kBarriersFirstByte", tiling.barriers_first_byte(problem));
  if (tiling.splits > 1) {
    c.add("kPartialSumStride", tiling.partial_sum_stride(problem), "floats from a split to the next");
  } else if (problem.epilogue.residual) {
    c.add("kResidualBatch", kResidualBatch, "eights of channels of a warp in flight");
  }
  std::string text = c.text();
  text.pop_back();
  return text;
}

std::string asserts(const KernelPlan& kernel) {
  const auto& tiling = std::get<PointwiseTiling>(kernel.tiling);
  Lines lines;
  lines.add("// The numbers above are redundant; they must agree.");
  lines.add("static_assert(kColumns % 8 == 0 && kInstructions * kColumns <= 256);");
  lines.add(
      "static_assert(kLanePixels == 2 * kInstructions && kPixels * kBlockK == kInstructionRows * kLanePixels * "
      "kColumns);");
  lines.add("static_assert(kChunkChannels % (8 * kBatchSteps) == 0 && kSteps * kChunkChannels == kChannels);");
  switch (tiling.tile) {
    case PointwiseTiling::Pixels::line:
      lines.add(
          "static_assert(kPixelPitch % 32 == 8 && kStageFloats == kChunkChannels * kPixelPitch && kPlane % 4 == 0);");
      break;
    case PointwiseTiling::Pixels::images:
      lines.add(
          "static_assert(kTilePixels == kTileImages * kOutputs && kTilePixels <= kPixels && kPixelPitch == kPlane);");
      lines.add("static_assert(kStageFloats == kTileImages * kChunkChannels * kPlane);");
      break;
    case PointwiseTiling::Pixels::rows:
      lines.add(
          "static_assert(kTilePixels == kTileRows * kQ && kTilePixels <= kPixels && kPixelPitch == kTileRows * kW);");
      lines.add("static_assert(kStageFloats >= kChunkChannels * kPixelPitch && kStageFloats % 32 == 0);");
      break;
  }
  lines.add(tiling.streams_weights
                ? "static_assert(kWeightsFirstByte >= kStages * kStageFloats * 4 && kWeightsFirstByte % "
                  "kSwizzleAtomBytes == 0);\n"
                  "static_assert(kWeightStageBytes >= kWeightBytes && kWeightBytes == kBlockK * kChunkChannels * 4);"
                : "static_assert(kWeightsFirstByte == kStages * kStageFloats * 4 && kWeightPitch == kSliceRows * "
                  "kOperandRowBytes);");
  lines.add("static_assert(kWarpgroupThreads * (kProducerRegisters + 2 * kConsumerRegisters) <= 65536);");
  lines.add(tiling.streams_weights
                ? "static_assert(kBarriersFirstByte >= kWeightsFirstByte + kStages * kWeightStageBytes);"
                : "static_assert(kBarriersFirstByte >= kWeightsFirstByte + kSlabSlices * kWeightPitch);");
  lines.add(fmt::format("static_assert(kBarriersFirstByte + 16 * kStages + 8 <= {});", kernel.launch.shared_bytes));
  return lines.text();
}

constexpr std::string_view kReleases = "kConsumerWarps";

std::string layout_comment(const Problem& problem, const PointwiseTiling& tiling, std::string_view loaders) {
  const bool bias = tiling.keeps_bias(problem);
  LayoutComment comment;
  comment.memory("0", "kStages stages: pixels of a step");
  comment.memory("kWeightsFirstByte", tiling.streams_weights ? "kStages stages: weights of a step"
                                                             : "weights of the block's channels, all steps");
  if (bias) comment.memory("kBiasFirstByte", "bias of the block's channels");
  comment.memory("kBarriersFirstByte", "barriers");
  comment.barrier("full[kStages]", loaders, "a producer thread, and copies by their bytes", "consumers, for a step");
  comment.barrier("empty[kStages]", kReleases, "a warp that has multiplied a step", "the producer, for a free stage");
  if (!tiling.streams_weights)
    comment.barrier("weights_arrival", "kConsumerThreads", "a thread that has put weights there", "consumers, once");
  else if (bias)
    comment.barrier("bias_arrival", "kConsumerThreads", "a thread that has put the bias there", "consumers, once");
  return comment.text();
}

/// Whether a kernel before makes the weights that TMA brings.
bool awaits_weights(const Problem& problem, const PointwiseTiling& tiling) {
  return tiling.streams_weights && is_scratch(problem.weight.tensor);
}

std::vector<DeviceFile> files(const Problem& problem, const PointwiseTiling& tiling) {
  std::vector<DeviceFile> result = {{element_header(problem.input.type)}};
  if (!tiling.gathers()) result.push_back({"device/vector.cuh"});
  add_files(result, {{"device/barrier.cuh"},
                     {"device/bulk_copy.cuh"},
                     {"device/warpgroup.cuh"},
                     {"device/wgmma_sizes.cuh"},
                     {"device/fragments.cuh"},
                     {"device/operand_tf32.cuh"}});
  if (tiling.streams_weights || tiling.tile == PointwiseTiling::Pixels::rows)
    add_files(result, {{"device/tensor_map.cuh"}, {"device/tensor_copy.cuh"}});
  if (tiling.streams_weights) result.push_back({"device/swizzled_operand.cuh"});
  if (tiling.splits > 1 || awaits_weights(problem, tiling)) result.push_back({"device/dependent_launch.cuh"});
  result.push_back({"device/multiply_registers_tf32.cuh", tiling.columns});
  return result;
}

/// `// begin channels` ... `// end channels`: batches of a step. One is loaded while the one before it is multiplied.
std::string multiplications(const PointwiseTiling& tiling) {
  const std::string first = tiling.splits > 1 ? "first_step" : "0";
  Lines lines;
  lines.add("// begin channels");
  for (int batch = 0; batch < tiling.batches(); ++batch) {
    const int half = batch % 2, c_first = batch * tiling.batch_steps * 8;
    const bool last = batch + 1 == tiling.batches();
    for (int i = 0; i < tiling.batch_steps; ++i)
      lines.add(fmt::format("load_pixels(a[{}][{}], pixels + {} * kPixelPitch{});", half, i, c_first + i * 8,
                            tiling.gathers() ? ", offset" : ""));
    lines.add("multiply_begin();");
    for (int i = 0; i < tiling.batch_steps; ++i) {
      const int c = c_first + i * 8;
      for (int t = 0; t < tiling.instructions(); ++t)
        lines.add(fmt::format("multiply(sum[{}], a[{}][{}][{}], weights_of_step + {}, {});  // c{}..{}", t, half, i, t,
                              tiling.streams_weights ? std::to_string(c / 4) : fmt::format("{} * kSliceRows", c / 4),
                              c == 0 ? fmt::format("step != {}", first) : "1", c, c + 7));
    }
    lines.add("multiply_commit();");
    if (last) lines.add("__syncwarp();  // all lanes have read");
    if (last && !tiling.streams_weights) lines.add("if (lane == 0) barrier_arrive(empty + stage);");
    // The next step's first batch takes the registers of the batch before this one, or of this one.
    lines.add(last && half == 0 ? "multiply_wait<0>();" : "multiply_wait<1>();");
    // Weights of a stage are read until what was multiplied with them is complete.
    if (batch == 0 && tiling.streams_weights)
      lines.add(fmt::format("if (lane == 0 && step != {}) barrier_arrive(empty + previous_stage);", first));
  }
  lines.add("// end channels");
  return lines.text();
}

std::string store(const KernelPlan& kernel, const PointwiseTiling& tiling) {
  const Problem& problem = kernel.problem;
  const bool split = tiling.splits > 1;
  const Epilogue epilogue = split ? Epilogue{} : problem.epilogue;
  const bool ragged = problem.k % tiling.block_k() != 0;
  Lines residual;
  if (epilogue.residual) {
    residual.add("if (j % kResidualBatch == 0) {");
    residual.add("#pragma unroll");
    residual.add("  for (int i = 0; i < 2 * kResidualBatch; ++i) {");
    residual.add("    const int k = (j + i / 2) * 8 + i % 2;");
    residual.add(fmt::format("    if (k < kColumns{})", ragged ? " && k_block + k_lane + k < kGroupK" : ""));
    residual.add(
        "      residual_of[i] =\n          *reinterpret_cast<const Pixels*>(residual + first_output + "
        "static_cast<long long>(k) * kPlane);");
    residual.add("  }");
    residual.add("}");
  }
  const std::string lines = epilogue_lines(epilogue, {.bias = "e == 0 ? channel_bias.x : channel_bias.y",
                                                      .residual = "residual_of[j % kResidualBatch * 2 + e].at[i]"});
  const std::string y = split ? "partial_sums + split * static_cast<long long>(kPartialSumStride)" : "y";
  const std::string_view condition = ragged ? "if (k_block + k_lane + j * 8 + e < kGroupK)\n  " : "";
  const std::string channel_bias =
      epilogue.bias ? "const float2 channel_bias = *reinterpret_cast<const float2*>(block_bias + k_lane + j * 8);" : "";
  if (tiling.gathers()) {
    const bool images = tiling.tile == PointwiseTiling::Pixels::images;
    return fill_template(
        embedded_text("pointwise/store_gathered.cu.in"),
        {{"output_place", images ? "const int image_of_tile = tile_pixel[i] / kOutputs;\n"
                                   "const int image = tile * kTileImages + image_of_tile;\n"
                                   "const int output = tile_pixel[i] - image_of_tile * kOutputs;"
                                 : "const int image = tile / kTilesOfImage;\n"
                                   "const int output = (tile - image * kTilesOfImage) * kTilePixels + tile_pixel[i];"},
         {"behind", images ? "image >= kImages" : "output >= kOutputs"},
         {"load_bias", channel_bias},
         {"epilogue", lines},
         {"store",
          fmt::format("{}({})[first_output + static_cast<long long>(j * 8 + e) * kOutputs] = value;", condition, y)}});
  }
  return fill_template(
      embedded_text("pointwise/store.cu.in"),
      {{"residual_values", epilogue.residual ? "Pixels residual_of[2 * kResidualBatch];" : ""},
       {"load_residual", residual.text()},
       {"load_bias", channel_bias},
       {"epilogue", lines},
       {"store",
        fmt::format("{}*reinterpret_cast<Pixels*>({} + first_output + static_cast<long long>(j * 8 + e) * kPlane) = "
                    "output;",
                    condition, y)}});
}

}  // namespace

KernelText pointwise::emit(const KernelPlan& kernel, std::string_view name) {
  const auto& tiling = std::get<PointwiseTiling>(kernel.tiling);
  const Problem& problem = kernel.problem;
  const bool split = tiling.splits > 1, bias = tiling.keeps_bias(problem);
  KernelText text;
  text.arguments = parameters(problem, tiling);
  text.files = files(problem, tiling);
  Holes holes = {
      {"constants", constants(kernel, tiling)},
      {"asserts", asserts(kernel)},
      {"releases", std::string(kReleases)},
      {"activation", split ? "" : activation_function(problem.epilogue)},
      {"kernel", std::string(name)},
      {"parameters", parameter_list(text.arguments)},
      {"block_bias", bias ? "float* const block_bias = reinterpret_cast<float*>(shared + kBiasFirstByte);" : ""},
      {"steps", split ? "const int split = slab / (kTilesK * kGroups);\n"
                        "const int first_step = split * kStepsOfSplit;\n"
                        "const int end_step = first_step + kStepsOfSplit < kSteps ? first_step + kStepsOfSplit : "
                        "kSteps;\n"
                      : ""},
      {"let_reduction_start", split ? "let_next_kernel_start();" : ""},
      {"await_weights",
       awaits_weights(problem, tiling) ? "if (warp == kConsumerWarps) wait_for_previous_kernel();" : ""},
      {"first_step", split ? "first_step" : "0"},
      {"end_step", split ? "end_step" : "kSteps"},
      {"k_consumer", tiling.consumers_k == 1 ? "0" : "consumer * kColumns"},
      {"multiply", multiplications(tiling)},
      {"store", store(kernel, tiling)}};
  holes.merge(pointwise_pixel_holes(problem, tiling));
  holes.merge(pointwise_weight_holes(problem, tiling));
  holes.emplace("layout", layout_comment(problem, tiling, holes.at("loaders")));
  text.text = fill_template(embedded_text("pointwise/kernel.cu.in"), holes);
  return text;
}

}  // namespace jitconv::codegen
