// Prints the tensor family: templates/tensor.cu.in and its parts. Up to four kernels: one packs the weights, one packs
// or transposes the pixels, one convolves, and, if the reduction is split, one adds the partial sums.
#include "codegen/emit_tensor.h"

#include <algorithm>

#include "codegen/arithmetic.h"
#include "codegen/emit.h"
#include "codegen/emit_reduce.h"
#include "codegen/emitter.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

/// A parameter that is a tensor map.
Argument tensor_map(ArgumentRole role, std::string name, const TensorMapShape& map) {
  return {role, "const __grid_constant__ TensorMap", std::move(name), map};
}

/// w as rows of output channels: a box is what a tile needs of a step.
TensorMapShape weight_map(const ConvSpec& spec, const TensorTiling& tiling) {
  const std::int64_t row = spec.weight.c * spec.weight.r * spec.weight.s;
  return {.rank = 2,
          .element_bytes = static_cast<int>(element_bytes(spec.dtype)),
          .extents = {row, spec.weight.k},
          .strides = {1, row},
          .box = {static_cast<int>(tiling.chunk_channels(spec) * tiling.taps(spec)), tiling.block_k},
          .swizzle_bytes = tiling.swizzles_weights(spec) ? 128 : 0,
          .rounds_to_tf32 = tiling.swizzles_weights(spec) && spec.dtype == DataType::f32};
}

/// x, or what it is transposed to, as pixels, which a copy walks over in the order of the grid's positions.
TensorMapShape walk_map(const ConvSpec& spec, const TensorTiling& tiling) {
  const TensorShape& x = spec.input;
  const std::int64_t pixel = TensorTiling::pixel_slices(spec) * TensorTiling::slice_channels(spec);
  const auto corner = [](const std::array<std::int64_t, 2>& places) {
    return std::array{static_cast<int>(places[0]), static_cast<int>(places[1])};
  };
  return {.rank = 4,
          .element_bytes = static_cast<int>(element_bytes(spec.dtype)),
          .extents = {x.c, x.w, x.h, x.n},
          .strides = {1, pixel, pixel * x.w, pixel * x.w * x.h},
          .box = {tiling.chunk_channels(spec), static_cast<int>(tiling.run_pixels(spec))},
          .swizzle_bytes = 16 * tiling.slices,
          .rounds_to_tf32 = spec.dtype == DataType::f32 && !tiling.transposes_pixels(),
          .walk = TensorMapShape::Walk{corner(TensorTiling::walk_lower(spec)),
                                       corner(tiling.walk_upper(spec)),
                                       {static_cast<int>(spec.stride.w), static_cast<int>(spec.stride.h)}}};
}

/// x as planes of all images: a box is what a run needs of a step's channels. All of them are of floats.
TensorMapShape pixel_map(const ConvSpec& spec, const TensorTiling& tiling) {
  const std::int64_t plane = spec.input.h * spec.input.w, planes = spec.input.n * spec.input.c;
  const int channels = tiling.chunk_channels(spec);
  if (tiling.copies_rows(spec))
    return {.rank = 3,
            .extents = {spec.input.w, ceil_div(spec.input.h, spec.stride.h), planes},
            .strides = {1, spec.stride.h * spec.input.w, plane},
            .box = {static_cast<int>(spec.input.w), static_cast<int>(tiling.raw_rows(spec)), channels},
            .rounds_to_tf32 = true};
  return {.rank = 2,
          .extents = {plane, planes},
          .strides = {1, plane},
          .box = {static_cast<int>(tiling.raw_pitch(spec)), channels},
          .rounds_to_tf32 = true};
}

/// The convolution kernel's parameters: as in other families, but with packed weights, and possibly partial sums.
std::vector<Argument> convolve_arguments(const ConvPlan& plan, const TensorTiling& tiling) {
  std::vector<Argument> result;
  for (Argument& argument : arguments(plan.spec)) {
    if (argument.role == ArgumentRole::w && tiling.packs_weights())
      result.push_back({ArgumentRole::packed_w, "const uint4* __restrict__", "packed_w"});
    else if (argument.role == ArgumentRole::y && tiling.stores_boxes())
      result.push_back(tensor_map(ArgumentRole::y, "y_map", output_map(plan.spec, tiling)));
    else if (argument.role == ArgumentRole::w)
      result.push_back(tensor_map(ArgumentRole::w, "w_map", weight_map(plan.spec, tiling)));
    else if (argument.role == ArgumentRole::x && tiling.walks_pixels())
      result.push_back(tensor_map(tiling.transposes_pixels() ? ArgumentRole::packed_x : ArgumentRole::x, "x_map",
                                  walk_map(plan.spec, tiling)));
    else if (argument.role == ArgumentRole::x && tiling.copies_boxes(plan.spec))
      result.push_back(tensor_map(ArgumentRole::x, "x_map", pixel_map(plan.spec, tiling)));
    else if (argument.role == ArgumentRole::x || tiling.splits == 1)
      result.push_back(std::move(argument));
  }
  if (tiling.splits > 1) result.push_back({ArgumentRole::partial_sums, "float* __restrict__", "partial_sums"});
  return result;
}

/// `source` is the convolution that was asked for.
std::string constants(const ConvPlan& plan, const TensorTiling& tiling, const ConvSpec& source) {
  const ConvSpec& spec = plan.spec;
  const TensorShape out = output_shape(spec);
  const ElementStrides in = element_strides(spec.input, spec.input_layout);
  Constants c;
  add_problem_constants(c, plan, tiling.transposes_pixels() ? "packed_x" : "x");
  c.add("kGroups", spec.groups).add("kChannels", spec.weight.c, "of a group");
  c.add("kGroupK", spec.weight.k / spec.groups).add("kPlane", out.h * out.w, "P * Q");
  if (!tiling.transposes_pixels())
    c.add("kInputStrideN", in.n).add("kInputStrideC", in.c).add("kInputStrideH", in.h).add("kInputStrideW", in.w);

  c.group(tiling.stores_boxes()
              ? "Tiles: kBlockK channels of kRuns runs of kColumns positions, one run behind the other"
              : "Tiles: kBlockK channels of kRuns runs of kColumns positions, of which each stores kWindow outputs");
  c.add("kBlockK", tiling.block_k).add("kTilesK", tiling.tiles_k(spec));
  c.add("kRuns", tiling.runs()).add("kColumns", tiling.columns).add("kWindow", tiling.window);
  c.add("kGap", TensorTiling::gap(spec), "positions of a grid row behind its kQ outputs");
  c.add("kPitch", TensorTiling::pitch(spec));
  if (tiling.stores_boxes()) c.add("kRunRow", tiling.run_row(spec), "positions of the runs of a row");
  if (tiling.images > 0)
    c.add("kN", spec.input.n)
        .add("kImages", tiling.images, "of a run")
        .add("kImagePositions", tiling.image_positions(spec));
  else
    c.add("kTilesOfPlane", tiling.tiles_of_plane(spec));
  if (tiling.splits > 1) c.add("kSplits", tiling.splits);
  c.add("kTiles", tiling.tiles(spec));

  c.group(tiling.filter_rows == 1
              ? "Steps: a filter row of kSlices slices of channels; a slice is 16 bytes of a pixel"
              : "Steps: all filter rows of kSlices slices of channels; a slice is 16 bytes of a pixel");
  c.add("kSlices", tiling.slices).add("kChunkChannels", tiling.chunk_channels(spec));
  c.add("kSteps", tiling.steps(spec));
  if (tiling.splits > 1) c.add("kStepsOfSplit", tiling.steps_of_split(spec));
  c.add("kStepRows", tiling.filter_rows, "filter rows of a step");
  c.add("kPhases", TensorTiling::phases(spec), "residues of columns modulo the stride, kept apart");
  c.add("kUnits", tiling.units(spec), "of a step: taps, each of one slice");
  c.add("kRunPixels", tiling.run_pixels(spec));
  if (tiling.walks_pixels())
    c.add("kPixelBytes", 16 * tiling.slices, "all slices of a pixel, one after the other")
        .add("kPhaseBytes", tiling.phase_bytes(spec))
        .add("kWalkedBytes", tiling.walked_bytes(spec), "of a step");
  else if (TensorTiling::loads_vectors(spec))
    c.add("kSlicePitch", tiling.slice_pitch(spec), "pixels");
  c.add("kRunBytes", tiling.run_bytes(spec));
  c.add("kWeightBytes", tiling.weight_bytes(spec)).add("kInputBytes", tiling.runs() * tiling.run_bytes(spec));
  if (!tiling.packs_weights())
    c.add("kWeightsOfStage", tiling.weights_in_stage(spec), "bytes from a stage's start")
        .add("kTaps", tiling.taps(spec))
        .add("kWeightRowBytes", tiling.chunk_channels(spec) * tiling.taps(spec) * element_bytes(spec.dtype),
             "of an output channel");
  if (tiling.multiplies_registers(spec))
    c.add("kLaneChannels", tiling.lane_channels(spec), "neighbours, of which a lane has weights");
  c.add("kStageBytes", tiling.stage_bytes(spec)).add("kStages", tiling.stages);

  add_tensor_load_constants(c, plan, tiling);

  c.group("The block");
  c.add("kThreads", TensorTiling::kThreads).add("kConsumers", 2);
  c.add("kLoaderRegisters", tiling.loader_registers(spec)).add("kConsumerRegisters", tiling.consumer_registers(spec));
  add_tensor_store_constants(c, plan, tiling);
  if (!tiling.weights_come_with_steps()) c.add("kWeightsFirstByte", tiling.weights_first_byte(spec));
  c.add("kStagingFirstByte", tiling.staging_first_byte(spec));
  if (tiling.has_zeros(spec)) c.add("kZerosFirstByte", tiling.zeros_first_byte(spec));
  c.add("kBarriersFirstByte", tiling.barriers_first_byte(spec));

  if (tiling.packs_weights()) add_tensor_pack_constants(c, spec, tiling);
  if (tiling.transposes_pixels()) add_tensor_transpose_constants(c, spec, source);
  if (tiling.splits > 1) {
    c.group("Adding partial sums");
    add_reduce_constants(c, spec, tiling.partial_sum_stride(spec));
  }
  std::string text = c.text();
  text.pop_back();
  return text;
}

std::string_view assert_of_pixels(TensorTiling::Pixels pixels) {
  using Pixels = TensorTiling::Pixels;
  switch (pixels) {
    case Pixels::loaded:
      return "static_assert(kTeams * kTeamWarps == 4);";
    case Pixels::copied:
      return "static_assert(kStages >= 4 && kCopiesAhead * 4 * kRawBytes <= kStagingFirstByte);";
    case Pixels::walked:
    case Pixels::transposed:
      return "static_assert(kRunBytes % 1024 == 0 && kStageBytes % 1024 == 0);";
  }
  return {};
}

std::string asserts(const ConvPlan& plan, const TensorTiling& tiling) {
  Lines lines;
  lines.add("// The numbers above are redundant; they must agree.");
  lines.add(fmt::format("static_assert(kColumns % 8 == 0 && kColumns <= 256 && kRuns * kBlockK == {});",
                        64 * tiling.tile_consumers()));
  lines.add(assert_of_pixels(tiling.pixels));
  const bool walks = tiling.walks_pixels(), vectors = TensorTiling::loads_vectors(plan.spec),
             nhwc = plan.spec.output_layout == Layout::nhwc;
  lines.add("static_assert(kGap <= (kS - 1) * kDilationW / kStrideW && kPitch == kQ + kGap);");
  lines.add(
      "static_assert(kRunPixels ==\n              kColumns + (kS - 1) * kDilationW / kStrideW + (kStepRows - 1) * "
      "kDilationH * kPitch);");
  lines.add("static_assert(kChunkChannels == kSlices * kOperandChannels && kSteps * kStepRows % kR == 0);");
  lines.add(
      tiling.packs_weights()
          ? "static_assert(kUnits % 2 == 0 && kUnits >= kStepRows * kS * kSlices && kWeightBytes == kUnits * kBlockK * "
            "16);"
      : tiling.swizzles_weights(plan.spec)
          ? "static_assert(kUnits == kTaps * kSlices && kWeightRowBytes == 128);\n"
            "static_assert(kWeightsOfStage % 1024 == 0 && kStageBytes % 1024 == 0);\n"
            "static_assert(kWeightsOfStage >= kInputBytes && kWeightBytes == kBlockK * kWeightRowBytes);"
          : "static_assert(kUnits == kTaps * kSlices && kChunkChannels == 4 * kLaneChannels);\n"
            "static_assert(kWeightsOfStage >= kInputBytes && kWeightBytes == kBlockK * kWeightRowBytes);");
  lines.add(walks     ? "static_assert(kRunBytes == kPhases * kPhaseBytes && kPhaseBytes >= kRunPixels * kPixelBytes);"
            : vectors ? "static_assert(kRunBytes == kPhases * kSlices * kSlicePitch * 16 && kSlicePitch >= kRunPixels);"
                      : "static_assert(kRunBytes == kPhases * kSlices * kRunPixels * 16);");
  lines.add(
      "static_assert(kStageBytes >= kInputBytes && kInputBytes == kRuns * kRunBytes && kStages * kStageBytes <= "
      "kStagingFirstByte);");
  if (tiling.stores_boxes())
    lines.add(
        "static_assert(kRunRow >= kQ && kWindow == kColumns && kColumns % kStoreColumns == 0 && kBoxRows * "
        "kRowChannels == 64);\n"
        "static_assert(kStagingFirstByte % 1024 == 0 && kBoxElements * sizeof(Element) % 1024 == 0);");
  else if (nhwc)
    lines.add("static_assert(kStoreSteps * kStorePositions == kStoreColumns && kStoreColumns % 16 == 0);");
  else if (tiling.images > 0)
    lines.add("static_assert(kWindow == kImages * kPlane && kStagingPitch >= kColumns);");
  else
    lines.add("static_assert(kWindow % kSectorElements == 0 && kStagingPitch >= kColumns + kLead);");
  lines.add("static_assert(128 * (kLoaderRegisters + 2 * kConsumerRegisters) <= 65536);");
  lines.add(fmt::format("static_assert(kBarriersFirstByte + 16 * kStages + {} <= {});",
                        (tiling.resident ? 8 : 0) + 8 * tiling.share_barriers() + 32 * tiling.copies_ahead,
                        plan.shared_bytes));
  return lines.text();
}

std::string_view multiply_file(const ConvSpec& spec, const TensorTiling& tiling) {
  if (tiling.multiplies_registers(spec)) return "device/multiply_registers_tf32.cuh";
  if (spec.dtype == DataType::f32) return "device/multiply_tf32.cuh";
  return spec.dtype == DataType::f16 ? "device/multiply_f16.cuh" : "device/multiply_bf16.cuh";
}

std::string device(const ConvPlan& plan, const TensorTiling& tiling) {
  const bool f32 = plan.spec.dtype == DataType::f32, nhwc = plan.spec.output_layout == Layout::nhwc;
  const bool boxes = tiling.copies_boxes(plan.spec);
  std::vector<std::string_view> files = {element_header(plan.spec.dtype), "device/barrier.cuh"};
  const bool copies_in = boxes || tiling.walks_pixels() || !tiling.packs_weights(), copies_out = tiling.stores_boxes();
  if (copies_in || copies_out) files.push_back("device/tensor_map.cuh");
  if (copies_in) files.push_back("device/tensor_copy.cuh");
  if (tiling.packs_weights() || (tiling.copies_pixels() && !boxes)) files.push_back("device/bulk_copy.cuh");
  files.insert(files.end(), {"device/dependent_launch.cuh", "device/warpgroup.cuh"});
  if (tiling.walks_pixels() || tiling.swizzles_weights(plan.spec)) files.push_back("device/swizzled_operand.cuh");
  // Kernels before the convolution load elements, whatever loads pixels.
  if (tiling.packs_weights() || tiling.transposes_pixels() || tiling.loads_pixels())
    files.push_back(f32 ? "device/load_32bit.cuh" : "device/load_16bit.cuh");
  if (tiling.loads_pixels() && TensorTiling::loads_vectors(plan.spec)) files.push_back("device/load_vector.cuh");
  files.push_back(f32 ? "device/operand_tf32.cuh" : "device/operand_16bit.cuh");
  if (nhwc) {
    files.push_back("device/warpgroup_sync.cuh");
    if (!copies_out) files.push_back("device/store_words.cuh");
    if (plan.spec.epilogue.residual && tiling.splits == 1) files.push_back("device/vector.cuh");
    if (tiling.staged_bytes(plan.spec) == 2) {
      files.push_back(plan.spec.dtype == DataType::f16 ? "device/pair_f16.cuh" : "device/pair_bf16.cuh");
      files.push_back("device/store_transposed.cuh");
    }
  } else if (f32 || tiling.splits > 1) {
    files.push_back("device/store_32bit.cuh");
  } else {
    files.push_back(plan.spec.dtype == DataType::f16 ? "device/pair_f16.cuh" : "device/pair_bf16.cuh");
    files.push_back("device/store_16bit.cuh");
  }
  if (tiling.stores_bulk(plan.spec) || copies_out) files.push_back("device/bulk_store.cuh");
  if (copies_out) files.push_back("device/tensor_store.cuh");
  if (!nhwc && tiling.row_ends(plan.spec) > 1) files.push_back("device/opaque.cuh");
  if (plan.spec.epilogue.activation == Activation::relu) files.push_back("device/max_nan.cuh");
  std::string text = device_text(files);
  text += "\n\n" + multiply_text(multiply_file(plan.spec, tiling), tiling.columns);
  text.pop_back();
  return text;
}

/// Text of the passes that make operands of w and x; the loading warps' part is elsewhere.
std::string packing(std::string_view kernel, const ConvSpec& spec, const TensorTiling& tiling) {
  std::string text;
  if (tiling.packs_weights()) text = emit_tensor_pack(kernel, spec, tiling);
  if (tiling.multiplies_registers(spec)) text = emit_tensor_raw_weights(spec, tiling);
  if (tiling.transposes_pixels()) text += (text.empty() ? "" : "\n\n") + emit_tensor_transpose(kernel, tiling);
  return text;
}

std::string tile(const TensorTiling& tiling) {
  if (tiling.images > 0) return std::string(embedded_text("tensor_tile_images.cu.in"));
  return fill_template(embedded_text("tensor_tile.cu.in"),
                       {{"counted", tiling.stores_boxes() ? "in kP rows of kRunRow" : "in a plane of y"}});
}

/// Taps in the order of their pixels' places, if that is not the filter's.
std::string tap_order(const ConvSpec& spec, const TensorTiling& tiling) {
  const std::vector<int> order = tiling.tap_order(spec);
  if (std::is_sorted(order.begin(), order.end())) return {};
  const bool columns = tiling.filter_rows == 1;
  const std::string_view none = columns ? "kS" : "kR * kS";
  std::string list;
  for (const int tap : order) list += fmt::format("{}, ", tap);
  list += tiling.has_zeros(spec) ? none : "";
  if (list.ends_with(", ")) list.resize(list.size() - 2);
  return fmt::format(
      "// {} in the order of their pixels in a run; {} stands for none.\n__constant__ int kTapOrder[] = {{{}}};\n",
      columns ? "Filter columns" : "Taps, r * kS + s,", none, list);
}

/// As in other families, except for ReLU: this GPU has an instruction for it.
std::string activation(const Epilogue& epilogue) {
  if (epilogue.activation != Activation::relu) return activation_function(epilogue);
  return "// Activation: relu.\n__device__ __forceinline__ float activate(float x) { return max_nan(x, 0.0f); }\n";
}

/// The plan of what the convolution's kernel computes.
ConvPlan convolved_plan(const ConvPlan& asked, const TensorTiling& tiling) {
  ConvPlan plan = asked;
  plan.spec = tiling.convolved_spec(asked.spec);
  return plan;
}

}  // namespace

std::string multiply_text(std::string_view file, int columns) {
  const int accumulators = columns / 2;
  std::string results = "\"", sums;
  for (int i = 0; i < accumulators; ++i) {
    const bool last = i + 1 == accumulators;
    results += fmt::format("%{}{}", i, last ? "\\n\"\n" : i % 16 == 15 ? ",\\n\"\n\"" : ", ");
    sums += fmt::format("\"+f\"(sum[{}]){}", i, last ? "\n" : i % 6 == 5 ? ",\n" : ", ");
  }
  // The first operand is a descriptor or four registers.
  const int a_parts = file.find("registers") == std::string_view::npos ? 1 : 4;
  std::string a = std::to_string(accumulators);
  for (int i = 1; i < a_parts; ++i) a += fmt::format(", %{}", accumulators + i);
  return fill_template(embedded_text(file), {{"columns", std::to_string(columns)},
                                             {"accumulators", std::to_string(accumulators)},
                                             {"accumulate", std::to_string(accumulators + a_parts + 1)},
                                             {"a", a},
                                             {"b", std::to_string(accumulators + a_parts)},
                                             {"results", results},
                                             {"sums", sums}});
}

std::vector<KernelEntry> tensor_entries(const ConvPlan& asked) {
  const auto& tiling = std::get<TensorTiling>(asked.tiling);
  const ConvPlan plan = convolved_plan(asked, tiling);
  std::vector<KernelEntry> entries;
  const std::string kernel = kernel_name(asked);
  if (tiling.packs_weights()) entries.push_back(tensor_pack_entry(kernel, plan.spec, tiling));
  if (tiling.transposes_pixels()) entries.push_back(tensor_transpose_entry(kernel, plan.spec, tiling));
  entries.push_back({kernel,
                     {plan.blocks, 1, 1},
                     plan.threads,
                     plan.shared_bytes,
                     convolve_arguments(plan, tiling),
                     /*packs_weights=*/false,
                     /*starts_early=*/!entries.empty()});
  if (tiling.splits > 1) entries.push_back(reduce_entry(asked));
  return entries;
}

std::string emit_tensor(const ConvPlan& asked) {
  const auto& tiling = std::get<TensorTiling>(asked.tiling);
  const ConvPlan plan = convolved_plan(asked, tiling);
  const ConvSpec& spec = plan.spec;
  const bool split = tiling.splits > 1;
  const StepText text = step_text(tiling);
  Holes holes = {
      {"banner", banner(asked, "tensor.cu.in")},
      {"device", device(plan, tiling)},
      {"constants", constants(plan, tiling, asked.spec)},
      {"asserts", asserts(plan, tiling)},
      {"tap_order", tap_order(spec, tiling)},
      {"activation", activation(spec.epilogue)},
      {"packing", packing(kernel_name(asked), spec, tiling)},
      {"kernel", kernel_name(asked)},
      {"parameters", parameter_list(convolve_arguments(plan, tiling))},
      {"zeros", tiling.has_zeros(spec) ? std::string(embedded_text("tensor_zeros.cu.in")) : ""},
      {"let_reduction_start", split ? "let_next_kernel_start();" : ""},
      {"tile_number", text.tile_number},
      {"tile", tile(tiling)},
      {"reduce", split ? emit_reduce(asked) : ""},
  };
  holes.merge(tensor_multiply_holes(plan, tiling));
  holes.merge(tensor_load_holes(plan, tiling));
  holes.merge(tensor_store_holes(plan, tiling));
  return fill_template(embedded_text("tensor.cu.in"), holes);
}

}  // namespace jitconv::codegen
