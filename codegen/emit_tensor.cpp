// Prints the tensor family: templates/tensor.cu.in and its parts. Up to three kernels: one packs the weights, one
// convolves, and, if the reduction is split, one adds the partial sums.
#include "codegen/emit_tensor.h"

#include <algorithm>

#include "codegen/arithmetic.h"
#include "codegen/emit.h"
#include "codegen/emitter.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

constexpr int kPackThreads = 256;
constexpr int kReduceThreads = 256;

std::string pack_name(const ConvPlan& plan) { return kernel_name(plan) + "_pack"; }
std::string reduce_name(const ConvPlan& plan) { return kernel_name(plan) + "_reduce"; }

std::vector<Argument> pack_arguments() {
  return {{ArgumentRole::w, "const Element* __restrict__", "w"},
          {ArgumentRole::packed_w, "uint4* __restrict__", "packed_w"}};
}

/// Of the convolution: those of the other families, with packed weights, and with partial sums instead of an output.
std::vector<Argument> convolve_arguments(const ConvPlan& plan, const TensorTiling& tiling) {
  std::vector<Argument> result;
  for (Argument& argument : arguments(plan.spec)) {
    if (argument.role == ArgumentRole::w)
      result.push_back({ArgumentRole::packed_w, "const uint4* __restrict__", "packed_w"});
    else if (argument.role == ArgumentRole::x || tiling.splits == 1)
      result.push_back(std::move(argument));
  }
  if (tiling.splits > 1) result.push_back({ArgumentRole::partial_sums, "float* __restrict__", "partial_sums"});
  return result;
}

std::vector<Argument> reduce_arguments(const ConvPlan& plan) {
  std::vector<Argument> result = {{ArgumentRole::partial_sums, "const float* __restrict__", "partial_sums"}};
  for (Argument& argument : arguments(plan.spec))
    if (argument.role != ArgumentRole::x && argument.role != ArgumentRole::w) result.push_back(std::move(argument));
  return result;
}

std::string constants(const ConvPlan& plan, const TensorTiling& tiling) {
  const ConvSpec& spec = plan.spec;
  const TensorShape out = output_shape(spec);
  const ElementStrides in = element_strides(spec.input, spec.input_layout);
  Constants c;
  add_problem_constants(c, plan);
  c.add("kGroups", spec.groups).add("kChannels", spec.filter.c, "of a group");
  c.add("kGroupK", spec.filter.k / spec.groups).add("kPlane", out.h * out.w, "P * Q");
  c.add("kInputStrideN", in.n).add("kInputStrideC", in.c).add("kInputStrideH", in.h).add("kInputStrideW", in.w);

  c.group("Tiles: kBlockK channels of kRuns runs of kColumns positions, of which each stores kWindow outputs");
  c.add("kBlockK", tiling.block_k).add("kTilesK", tiling.tiles_k(spec));
  c.add("kRuns", tiling.runs()).add("kColumns", tiling.columns).add("kWindow", tiling.window);
  c.add("kGap", TensorTiling::gap(spec), "positions of a grid row behind its kQ outputs");
  c.add("kPitch", out.w + TensorTiling::gap(spec));
  c.add("kTilesOfPlane", tiling.tiles_of_plane(spec));
  c.add("kSplits", tiling.splits).add("kTiles", tiling.tiles(spec));

  c.group("Steps: a filter row of kSlices slices of channels; a slice is 16 bytes of a pixel");
  c.add("kSlices", tiling.slices).add("kChunkChannels", tiling.chunk_channels(spec));
  c.add("kSteps", tiling.steps(spec)).add("kStepsOfSplit", tiling.steps_of_split(spec));
  c.add("kPhases", TensorTiling::phases(spec), "residues of columns modulo the stride, kept apart");
  c.add("kUnits", tiling.units(spec), "taps of a slice");
  c.add("kRunPixels", tiling.run_pixels(spec)).add("kRunBytes", tiling.run_bytes(spec));
  c.add("kWeightBytes", tiling.weight_bytes(spec));
  c.add("kInputBytes", tiling.runs() * tiling.run_bytes(spec));
  c.add("kStageBytes", tiling.stage_bytes(spec)).add("kStages", tiling.stages);

  c.group("Loading: kTeams teams of kTeamWarps warps");
  c.add("kTeamWarps", tiling.team_warps).add("kTeams", 4 / tiling.team_warps);
  const std::int64_t items = tiling.load_items(spec);
  c.add("kLoadItemsOfPhase", items, TensorTiling::loads_pairs(spec) ? "64 pixels each" : "32 pixels each")
      .add("kLoadItems", items * TensorTiling::phases(spec));
  c.add("kLoadBatch", tiling.load_batch, "items of a warp in flight");

  c.group("The block");
  c.add("kThreads", TensorTiling::kThreads).add("kConsumers", 2);
  c.add("kLoaderRegisters", tiling.loader_registers()).add("kConsumerRegisters", tiling.consumer_registers());
  c.add("kSectorElements", TensorTiling::sector_elements(spec));
  c.add("kLead", tiling.lead(spec)).add("kStagingPitch", tiling.staging_pitch(spec));
  c.add("kStagingElements", 8 * tiling.staging_pitch(spec), "of a warp");
  const std::int64_t vector = tiling.splits > 1 ? 4 : 16 / element_bytes(spec.dtype);
  c.add("kStoreVectors", (tiling.window + tiling.lead(spec)) / vector);
  c.add("kStoreSteps", ceil_div((tiling.window + tiling.lead(spec)) / vector, kWarpSize));
  if (tiling.resident) c.add("kWeightsFirstByte", tiling.resident_first_byte(spec));
  c.add("kStagingFirstByte", tiling.staging_first_byte(spec));
  if (tiling.has_zeros(spec)) c.add("kZerosFirstByte", tiling.zeros_first_byte(spec));
  c.add("kBarriersFirstByte", tiling.barriers_first_byte(spec));
  c.add("kPackThreads", kPackThreads).add("kPackedRows", tiling.packed_rows(spec));
  if (tiling.splits > 1) {
    c.add("kReduceThreads", kReduceThreads).add("kPartialSumStride", tiling.partial_sum_stride(spec));
    c.add("kOutputs", out.n * out.c * out.h * out.w);
  }
  std::string text = c.text();
  text.pop_back();
  return text;
}

std::string asserts(const ConvPlan& plan, const TensorTiling& tiling) {
  Lines lines;
  lines.add("// The numbers above are redundant; they must agree.");
  lines.add(
      "static_assert(kColumns % 8 == 0 && kColumns <= 256 && kRuns * kBlockK == 128 && kTeams * kTeamWarps == 4);");
  lines.add("static_assert(kGap == (kS - 1) * kDilationW / kStrideW && kRunPixels == kColumns + kGap);");
  lines.add("static_assert(kChunkChannels == kSlices * kOperandChannels && kSteps % kR == 0);");
  lines.add("static_assert(kUnits % 2 == 0 && kUnits >= kS * kSlices && kWeightBytes == kUnits * kBlockK * 16);");
  lines.add("static_assert(kRunBytes == kPhases * kSlices * kRunPixels * 16);");
  lines.add(
      "static_assert(kStageBytes >= kInputBytes && kInputBytes == kRuns * kRunBytes && kStages * kStageBytes <= "
      "kStagingFirstByte);");
  lines.add("static_assert(kWindow % kSectorElements == 0 && kStagingPitch >= kColumns + kLead);");
  lines.add("static_assert(128 * (kLoaderRegisters + 2 * kConsumerRegisters) <= 65536);");
  lines.add(fmt::format("static_assert(kBarriersFirstByte + 16 * kStages + {} <= {});", tiling.resident ? 8 : 0,
                        plan.shared_bytes));
  return lines.text();
}

std::string_view multiply_file(DataType type) {
  if (type == DataType::f32) return "device/multiply_tf32.cuh";
  return type == DataType::f16 ? "device/multiply_f16.cuh" : "device/multiply_bf16.cuh";
}

std::string device(const ConvPlan& plan, const TensorTiling& tiling) {
  const bool f32 = plan.spec.dtype == DataType::f32;
  std::vector<std::string_view> files = {element_header(plan.spec.dtype),
                                         "device/barrier.cuh",
                                         "device/bulk_copy.cuh",
                                         "device/warpgroup.cuh",
                                         f32 ? "device/load_32bit.cuh" : "device/load_16bit.cuh",
                                         f32 ? "device/operand_tf32.cuh" : "device/operand_16bit.cuh"};
  if (f32 || tiling.splits > 1) {
    files.push_back("device/store_32bit.cuh");
  } else {
    files.push_back(plan.spec.dtype == DataType::f16 ? "device/pair_f16.cuh" : "device/pair_bf16.cuh");
    files.push_back("device/store_16bit.cuh");
  }
  if (tiling.row_ends(plan.spec) > 1) files.push_back("device/opaque.cuh");
  if (plan.spec.epilogue.activation == Activation::relu) files.push_back("device/max_nan.cuh");
  std::string text = device_text(files);
  text += "\n\n" + multiply_text(multiply_file(plan.spec.dtype), tiling.columns);
  text.pop_back();
  return text;
}

/// Lines that load the channels of pixel `i`.
std::string load_pixel(const ConvPlan& plan, const TensorTiling& tiling) {
  const std::int64_t channels = plan.spec.filter.c, chunk = tiling.chunk_channels(plan.spec);
  const bool pairs = TensorTiling::loads_pairs(plan.spec);
  Lines lines;
  for (std::int64_t c = 0; c < chunk; ++c) {
    if (chunk > channels && c >= channels)
      lines.add(fmt::format("value[i][{}] = {};", c, pairs ? "0" : "from_float(0.0f)"));
    else
      lines.add(fmt::format(
          "value[i][{}] = {}<{}LL * kInputStrideC>(source, valid{});", c, pairs ? "load_pair_if" : "load_if", c,
          channels % chunk == 0 || chunk > channels ? "" : fmt::format(" && c_first + {} < kChannels", c)));
  }
  return lines.text();
}

std::string load_run(const ConvPlan& plan, const TensorTiling& tiling) {
  Holes holes = {{"load_pixel", load_pixel(plan, tiling)}};
  if (TensorTiling::loads_pairs(plan.spec)) return fill_template(embedded_text("tensor_load_pairs.cu.in"), holes);
  holes.emplace("input_stride_w", plan.spec.input_layout == Layout::nchw ? "" : " * kInputStrideW");
  return fill_template(embedded_text("tensor_load_pixels.cu.in"), holes);
}

/// A unit of a step: a tap of one slice.
struct Unit {
  std::int64_t s, slice;
  std::int64_t pixel_row;  ///< of its first pixel, in rows of 16 bytes from the start of the run
};

std::vector<Unit> units(const ConvSpec& spec, const TensorTiling& tiling) {
  std::vector<Unit> all;
  for (const std::int64_t s : TensorTiling::tap_order(spec))
    for (std::int64_t slice = 0; slice < tiling.slices; ++slice)
      all.push_back({s, slice,
                     (TensorTiling::phase_of(spec, s) * tiling.slices + slice) * tiling.run_pixels(spec) +
                         s * spec.dilation.w / spec.stride.w});
  return all;
}

/// `// begin taps` ... `// end taps`: one line per multiplication, which takes two units.
std::string multiplications(const ConvPlan& plan, const TensorTiling& tiling) {
  const ConvSpec& spec = plan.spec;
  const std::vector<Unit> all = units(spec, tiling);
  const int slice = TensorTiling::slice_channels(spec);
  const std::string first = tiling.splits > 1 ? "first_step" : "0";
  Lines lines;
  lines.add("// begin taps");
  for (std::size_t i = 0; i < all.size(); i += 2) {
    const std::string accumulate = i == 0 ? fmt::format("step != {}", first) : "1";
    if (tiling.slices > 1) {
      lines.add(fmt::format("multiply(sum, weights + {} * kBlockK, pixels + {}, {});  // s{} c{}..{}", i,
                            all[i].pixel_row, accumulate, all[i].s, all[i].slice * slice,
                            (all[i].slice + 2) * slice - 1));
    } else if (i + 1 < all.size()) {
      lines.add(fmt::format(
          "multiply(sum, weights + {} * kBlockK, matrix_operand(pixels + 16 * {}, 16 * {}), {});  // "
          "s{} s{}",
          i, all[i].pixel_row, all[i + 1].pixel_row - all[i].pixel_row, accumulate, all[i].s, all[i + 1].s));
    } else {
      lines.add(
          fmt::format("multiply(sum, weights + {} * kBlockK, matrix_operand(pixels + 16 * {}, zeros - (pixels + "
                      "16 * {})), {});  // s{}",
                      i, all[i].pixel_row, all[i].pixel_row, accumulate, all[i].s));
    }
  }
  lines.add("// end taps");
  return lines.text();
}

std::string operands(const ConvSpec& spec, const TensorTiling& tiling) {
  Lines lines;
  lines.add("// Adding to an operand moves it by rows of 16 bytes: a pixel of a slice, a channel of a unit.");
  if (tiling.slices > 1)
    lines.add("const MatrixOperand pixels = matrix_operand(input + run * kRunBytes, kRunPixels * 16);");
  else
    lines.add("const char* pixels = input + run * kRunBytes;");
  if (tiling.has_zeros(spec)) lines.add("const char* zeros = shared + kZerosFirstByte;");
  lines.add(tiling.resident ? "const char* weights_of_step = shared + kWeightsFirstByte + step * kWeightBytes;"
                            : "const char* weights_of_step = input + kInputBytes;");
  lines.add("const MatrixOperand weights = matrix_operand(weights_of_step + k_consumer * 16, kBlockK * 16);");
  return lines.text();
}

std::string unit_tap(const ConvSpec& spec, const TensorTiling& tiling) {
  const std::vector<int> order = TensorTiling::tap_order(spec);
  const std::string place = tiling.slices == 1 ? "unit" : "unit / kSlices";
  if (std::is_sorted(order.begin(), order.end())) return place;
  return fmt::format("kTapOrder[{}]", place);
}

/// Taps in the order of their pixels' places, if that is not the filter's.
std::string tap_order(const ConvSpec& spec, const TensorTiling& tiling) {
  const std::vector<int> order = TensorTiling::tap_order(spec);
  if (std::is_sorted(order.begin(), order.end())) return {};
  std::string list;
  for (const int s : order) list += fmt::format("{}, ", s);
  list += tiling.has_zeros(spec) ? "kS" : "";
  if (list.ends_with(", ")) list.resize(list.size() - 2);
  return fmt::format(
      "// Filter columns in the order of their pixels in a run; kS stands for none.\n__constant__ int kTapOrder[] = "
      "{{{}}};\n",
      list);
}

/// As in other families, but for what this GPU has an instruction for.
std::string activation(const Epilogue& epilogue) {
  if (epilogue.activation != Activation::relu) return activation_function(epilogue);
  return "// Activation: relu.\n__device__ __forceinline__ float activate(float x) { return max_nan(x, 0.0f); }\n";
}

/// Where weights are loaded and awaited: with each step, or once for all tiles.
Holes weight_holes(const TensorTiling& tiling) {
  if (!tiling.resident) {
    return {{"arrivals", "kTeamWarps + 1"},
            {"weights_barrier", ""},
            {"init_weights", ""},
            {"load_weights", ""},
            {"weights_of_tile",
             "const char* w_tile = reinterpret_cast<const char*>(packed_w) +\n"
             "                     static_cast<long long>(tile.group * kTilesK + tile.k_tile) * kSteps * "
             "kWeightBytes;\n"},
            {"load_weights_of_step",
             "if (member == 0 && lane == 0) {\n"
             "  barrier_arrive_expecting(full + stage, kWeightBytes);\n"
             "  bulk_copy_to_shared(input + kInputBytes, w_tile + static_cast<long long>(step) * kWeightBytes, "
             "kWeightBytes,\n"
             "                      full + stage);\n"
             "}\n"},
            {"await_weights", ""}};
  }
  return {{"arrivals", "kTeamWarps"},
          {"weights_barrier", "Barrier* const weights_arrival = empty + kStages;"},
          {"init_weights", "barrier_init(weights_arrival, 1);"},
          {"load_weights",
           "if (threadIdx.x == 0) {  // all of them, for all tiles\n"
           "  barrier_arrive_expecting(weights_arrival, kSteps * kWeightBytes);\n"
           "  for (int step = 0; step < kSteps; ++step)\n"
           "    bulk_copy_to_shared(shared + kWeightsFirstByte + step * kWeightBytes,\n"
           "                        reinterpret_cast<const char*>(packed_w) + step * kWeightBytes, kWeightBytes,\n"
           "                        weights_arrival);\n"
           "}\n"},
          {"weights_of_tile", ""},
          {"load_weights_of_step", ""},
          {"await_weights", "barrier_wait(weights_arrival, 0);"}};
}

std::string move_registers(int wanted, std::string_view name) {
  if (wanted == TensorTiling::kLaunchRegisters) return {};
  return fmt::format("{}_registers_to<{}>();", wanted < TensorTiling::kLaunchRegisters ? "shrink" : "grow", name);
}

}  // namespace

std::string multiply_text(std::string_view file, int columns) {
  const int accumulators = columns / 2;
  std::string results = "\"", sums;
  for (int i = 0; i < accumulators; ++i) {
    const bool last = i + 1 == accumulators;
    results += fmt::format("%{}{}", i, last ? "\\n\"\n" : i % 16 == 15 ? ",\\n\"\n\"" : ", ");
    sums += fmt::format("\"+f\"(sum[{}]){}", i, last ? "\n" : i % 8 == 7 ? ",\n" : ", ");
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

std::vector<KernelEntry> tensor_entries(const ConvPlan& plan) {
  const auto& tiling = std::get<TensorTiling>(plan.tiling);
  const auto blocks = [](std::int64_t threads, int block) {
    return static_cast<std::uint32_t>(ceil_div(threads, block));
  };
  std::vector<KernelEntry> entries(2);
  entries[0] = {pack_name(plan),  {blocks(tiling.packed_rows(plan.spec), kPackThreads), 1, 1},
                kPackThreads,     0,
                pack_arguments(), /*packs_weights=*/true};
  entries[1] = {
      kernel_name(plan), {plan.blocks, 1, 1}, plan.threads, plan.shared_bytes, convolve_arguments(plan, tiling)};
  if (tiling.splits > 1) {
    const TensorShape out = output_shape(plan.spec);
    entries.push_back({reduce_name(plan),
                       {blocks(out.n * out.c * out.h * out.w, kReduceThreads), 1, 1},
                       kReduceThreads,
                       0,
                       reduce_arguments(plan)});
  }
  return entries;
}

std::string emit_tensor(const ConvPlan& plan) {
  const auto& tiling = std::get<TensorTiling>(plan.tiling);
  const ConvSpec& spec = plan.spec;
  const bool split = tiling.splits > 1;
  Holes holes = {
      {"banner", banner(plan, "tensor.cu.in")},
      {"device", device(plan, tiling)},
      {"constants", constants(plan, tiling)},
      {"asserts", asserts(plan, tiling)},
      {"tap_order", tap_order(spec, tiling)},
      {"activation", activation(spec.epilogue)},
      {"pack_kernel", pack_name(plan)},
      {"pack_parameters", parameter_list(pack_arguments())},
      {"unit_tap", unit_tap(spec, tiling)},
      {"kernel", kernel_name(plan)},
      {"parameters", parameter_list(convolve_arguments(plan, tiling))},
      {"load_run", load_run(plan, tiling)},
      {"zeros", tiling.has_zeros(spec) ? std::string(embedded_text("tensor_zeros.cu.in")) : ""},
      {"loader_registers", move_registers(tiling.loader_registers(), "kLoaderRegisters")},
      {"consumer_registers", move_registers(tiling.consumer_registers(), "kConsumerRegisters")},
      {"tile_number", split ? " / kSplits" : ""},
      {"steps", split ? "const int first_step = number % kSplits * kStepsOfSplit;\nconst int end_step = first_step + "
                        "kStepsOfSplit < kSteps ? first_step + kStepsOfSplit : kSteps;\n"
                      : ""},
      {"first_step", split ? "first_step" : "0"},
      {"end_step", split ? "end_step" : "kSteps"},
      {"k_consumer", tiling.runs() == 1 ? "consumer * 64" : "0"},
      {"run", tiling.runs() == 1 ? "0" : "consumer"},
      {"operands", operands(spec, tiling)},
      {"multiply", multiplications(plan, tiling)},
      {"reduce", split ? emit_tensor_reduce(plan, reduce_name(plan), reduce_arguments(plan)) : ""},
  };
  holes.merge(weight_holes(tiling));
  holes.merge(tensor_store_holes(plan, tiling));
  return fill_template(embedded_text("tensor.cu.in"), holes);
}

}  // namespace jitconv::codegen
