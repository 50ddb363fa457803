// Prints the wgmma_rows family: templates/wgmma_rows/. What it shares with the wgmma family is of wgmma/.
#include "codegen/arithmetic.h"
#include "codegen/text/epilogue.h"
#include "codegen/text/layout_comment.h"
#include "codegen/text/staging.h"
#include "codegen/wgmma_rows/family.h"
#include "codegen/wgmma_rows/tiling.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

std::string constants(const WgmmaRowsGeometry& geometry) {
  const Problem& problem = geometry.problem();
  const WgmmaRowsTiling& tiling = geometry.tiling();
  const int vector = geometry.store_elements();
  const std::int64_t store_vectors = (tiling.window + geometry.lead()) / vector;
  Constants c;
  add_problem_constants(c, problem);
  c.add("kChannels", problem.c).add("kGroupK", problem.k, "output channels");
  c.add("kPlane", problem.output_plane(), "P * Q");
  c.add("kInputStrideN", problem.input.stride.n).add("kInputStrideC", problem.input.stride.c);

  c.group("Tiles: strips of kColumns columns, of which kWindow are stored, by kTileRows rows of outputs");
  if (tiling.folds_columns())
    c.add("kFoldedColumns", tiling.folded_columns, "neighbouring filter columns that a tap has, in groups of rows")
        .add("kWarpK", 16 / tiling.folded_columns, "channels of a warp, each with a row of every group");
  c.add("kBlockRows", WgmmaRowsTiling::kRows, "of a multiplication");
  c.add("kColumns", tiling.columns).add("kWindow", tiling.window).add("kTileRows", tiling.tile_rows);
  c.add("kStrips", geometry.strips());
  c.add("kResidues", geometry.residues(), "of output rows modulo the dilation");
  c.add("kTilesOfResidue", geometry.tiles_of_residue(), "of a strip").add("kTiles", geometry.tiles());

  c.group("Steps: kSlices slices of channels of an input row; a slice is 16 bytes of a pixel");
  c.add("kSlices", tiling.slices).add("kChunkChannels", geometry.chunk_channels());
  c.add("kChunks", geometry.chunks(), "of an input row");
  c.add("kStripPixels", geometry.strip_pixels()).add("kPixelBytes", geometry.pixel_bytes(), "of a step");
  c.add("kUnits", geometry.units(), "of a filter row: taps, each of one slice");
  c.add("kRowWeightBytes", geometry.row_weight_bytes(), "of a filter row");
  c.add("kWeightBytes", geometry.weight_bytes(), "of a step: all filter rows");
  c.add("kStageBytes", geometry.stage_bytes()).add("kStages", tiling.stages);
  c.add("kLoadItems", geometry.load_items(), "of a strip: 32 pixels").add("kLoadBatch", tiling.load_batch, "in flight");

  c.group("The block");
  c.add("kThreads", geometry.threads()).add("kProducerWarps", WgmmaRowsTiling::kProducerWarps);
  c.add("kConsumers", geometry.consumers()).add("kConsumerWarps", 4 * geometry.consumers());
  c.add("kProducerRegisters", geometry.producer_registers()).add("kConsumerRegisters", geometry.consumer_registers());
  c.add("kFullArrivals", tiling.keeps_weights ? 1 : 2,
        tiling.keeps_weights ? "for a stage: the warp that loads its pixels"
                             : "for a stage: the warp that loads its pixels, and the thread that copies its weights");
  c.add("kStoredArrivals", kWarpSize, "all lanes of a warp that has stored");
  c.add("kSectorElements", geometry.sector_elements()).add("kAlignmentPadding", geometry.lead());
  c.add("kStoreVectors", store_vectors).add("kStoreSteps", ceil_div(store_vectors, kWarpSize));
  c.add("kFoldHalo", geometry.staged_before(), "places for sums of outputs before the strip");
  c.add("kStagingPitch", geometry.staging_pitch()).add("kStagingFloats", 8 * geometry.staging_pitch(), "of a warp");
  if (tiling.keeps_weights) c.add("kWeightsFirstByte", geometry.weights_first_byte());
  c.add("kStagingFirstByte", geometry.staging_first_byte());
  c.add("kBarriersFirstByte", geometry.barriers_first_byte());
  std::string text = c.text();
  text.pop_back();
  return text;
}

std::string asserts(const WgmmaRowsGeometry& geometry, std::uint32_t shared_bytes) {
  const WgmmaRowsTiling& tiling = geometry.tiling();
  const bool folds = tiling.folds_columns();
  Lines lines;
  lines.add("// The numbers above are redundant; they must agree.");
  lines.add(
      "static_assert(kConsumers == kR && kStrideH == 1 && kStrideW == 1 && kThreads == kWarpgroupThreads * (kConsumers "
      "+ 1));");
  lines.add("static_assert(kColumns % 8 == 0 && kColumns <= 256 && kWindow % kSectorElements == 0);");
  lines.add(fmt::format("static_assert(kStripPixels == kColumns + {} * kDilationW);",
                        folds ? "(kS > kFoldedColumns ? kS - kFoldedColumns : 0)" : "(kS - 1)"));
  lines.add("static_assert(kChunkChannels == kSlices * kOperandChannels && kChunks * kChunkChannels >= kChannels);");
  lines.add(folds ? "static_assert(kUnits % 2 == 0 && kFoldedColumns * kUnits >= kS * kSlices && kWarpK * "
                    "kFoldedColumns == kWarpRows);"
                  : "static_assert(kUnits % 2 == 0 && kUnits == kS * kSlices && kGroupK <= kBlockRows);");
  lines.add(
      "static_assert(kRowWeightBytes == kUnits * kBlockRows * kOperandRowBytes && kWeightBytes == kR * "
      "kRowWeightBytes);\n"
      "static_assert(kPixelBytes == kSlices * kStripPixels * kOperandRowBytes && kStageBytes >= kPixelBytes);\n"
      "static_assert(kStagingPitch >= kFoldHalo + kColumns + kAlignmentPadding);\n"
      "static_assert(kStoreVectors * kStoreElements == kWindow + kAlignmentPadding);\n"
      "static_assert(kWarpgroupThreads * (kProducerRegisters + kConsumers * kConsumerRegisters) <= 65536);");
  lines.add(fmt::format("static_assert(kBarriersFirstByte + {} <= {});", geometry.barrier_bytes(), shared_bytes));
  return lines.text();
}

/// As the problem has them, but that weights are packed.
std::vector<Argument> parameters(const Problem& problem) {
  std::vector<Argument> result = arguments(problem);
  for (Argument& argument : result)
    if (argument.tensor == problem.weight.tensor) argument = {argument.tensor, "const uint4* __restrict__", "packed_w"};
  return result;
}

std::vector<DeviceFile> files(const WgmmaRowsGeometry& geometry) {
  const Problem& problem = geometry.problem();
  const DataType type = problem.input.type;
  const bool f32 = type == DataType::f32;
  std::vector<DeviceFile> result = {{element_header(type)},
                                    {"device/barrier.cuh"},
                                    {"device/bulk_copy.cuh"},
                                    {"device/dependent_launch.cuh"},
                                    {"device/warpgroup.cuh"},
                                    {"device/wgmma_sizes.cuh"},
                                    {"device/fragments.cuh"},
                                    {load_header(problem.input.type)},
                                    {operand_header(problem.input.type)}};
  if (geometry.stores_floats()) {
    result.push_back({"device/store_32bit.cuh"});
  } else {
    result.push_back({pair_header(type)});
    result.push_back({"device/store_16bit.cuh"});
  }
  result.push_back({"device/elements_within.cuh"});
  if (problem.epilogue.activation == Activation::relu) result.push_back({"device/max_nan.cuh"});
  result.push_back({f32                     ? "device/multiply_tf32.cuh"
                    : type == DataType::f16 ? "device/multiply_f16.cuh"
                                            : "device/multiply_bf16.cuh",
                    geometry.tiling().columns});
  return result;
}

/// One line per multiplication, which takes two slices of a tap.
std::string multiplications(const WgmmaRowsGeometry& geometry) {
  const WgmmaRowsTiling& tiling = geometry.tiling();
  const ColumnFold fold = geometry.fold();
  Lines lines;
  std::int64_t unit = 0;
  for (std::int64_t tap = 0; tap < fold.taps(); ++tap) {
    const std::int64_t s = fold.first_column(tap);
    const std::string columns =
        tiling.folds_columns() ? fmt::format("s{}..{}", s, s + fold.groups() - 1) : fmt::format("s{}", s);
    for (std::int64_t slice = 0; slice < tiling.slices; slice += 2, unit += 2)
      lines.add(fmt::format("multiply(sum, weights + {} * kBlockRows, pixels + {}, {});  // {} c{}..{}", unit,
                            slice * geometry.strip_pixels() + s * geometry.problem().columns.dilation,
                            unit == 0 ? "r + chunk != 0" : "1", columns, slice * geometry.slice_channels(),
                            (slice + 2) * geometry.slice_channels() - 1));
  }
  return lines.text();
}

std::string layout_comment(const WgmmaRowsGeometry& geometry) {
  const bool keeps = geometry.tiling().keeps_weights;
  LayoutComment comment;
  comment.memory(
      "0", keeps ? "kStages stages: pixels of a step" : "kStages stages: pixels of a step, behind them its weights");
  if (keeps) comment.memory("kWeightsFirstByte", "weights of all steps");
  comment.memory("kStagingFirstByte", "outputs on their way from registers to y");
  comment.memory("kBarriersFirstByte", "barriers");
  comment.barrier("full[kStages]", "kFullArrivals", "a producer warp, and TMA by bytes", "consumers, for a step");
  comment.barrier("empty[kStages]", "kConsumerWarps", "a warp that has used or passed a step",
                  "the producer, for a free stage");
  if (keeps) comment.barrier("weights_arrival", "1", "TMA, by bytes", "consumers, once");
  comment.barrier("stored[kConsumerWarps]", "kStoredArrivals", "lanes of a warp that has stored",
                  "that warp of the next consumer");
  return comment.text();
}

/// How weights come: once for all tiles, or with each step.
Holes weight_holes(const WgmmaRowsGeometry& geometry) {
  const bool keeps = geometry.tiling().keeps_weights;
  return {
      {"load_weights", keeps ? std::string(embedded_text("wgmma_rows/load_weights.cu.in"))
                             : "if (lane == 0) wait_for_previous_kernel();"},
      {"load_weights_of_step", keeps ? "" : std::string(embedded_text("wgmma_rows/copy_weights.cu.in"))},
      {"await_weights", keeps ? "barrier_wait(weights_arrival, 0);" : ""},
      {"operands", fmt::format("const char* const input = stages + stage * kStageBytes;\n"
                               "const MatrixOperand pixels = matrix_operand(input, kStripPixels * kOperandRowBytes);\n"
                               "const MatrixOperand weights =\n"
                               "    matrix_operand({} + r * kRowWeightBytes, kBlockRows * kOperandRowBytes);\n",
                               keeps ? "shared + kWeightsFirstByte + chunk * kWeightBytes" : "input + kPixelBytes")}};
}

/// What a consumer's thread needs of its channels, loaded before the first tile.
std::string channel_bias(const WgmmaRowsGeometry& geometry) {
  if (!geometry.problem().epilogue.bias) return {};
  return geometry.tiling().folds_columns() ? bias_of_folded_rows("") : bias_of_rows("", "k");
}

/// Whether several staged rows are sums of one channel.
bool sums_rows(const WgmmaRowsGeometry& geometry) { return geometry.tiling().folded_columns > 2; }

std::string store_vectors(const WgmmaRowsGeometry& geometry, const Epilogue& after) {
  return fill_template(embedded_text("wgmma_rows/store_vectors.cu.in"),
                       {{"channels", geometry.tiling().folds_columns() ? "kWarpK" : "kHalfRows"},
                        {"read_vector", read_staged_vector(sums_rows(geometry))},
                        {"epilogue", vector_epilogue(after, "(mask >> e & 1u) != 0", "y_channel + output + e")}});
}

std::string stage_and_store(const WgmmaRowsGeometry& geometry) {
  const StagedEpilogue epilogue = staged_epilogue(geometry.problem().epilogue, false);
  if (!geometry.tiling().folds_columns())
    return fill_template(
        embedded_text("wgmma_rows/store_channels.cu.in"),
        {{"stage_values", fill_template(embedded_text("wgmma/stage_values.cu.in"),
                                        {{"epilogue", epilogue_lines(epilogue.before, {.bias = "channel_bias[half]"})},
                                         {"store", "staged_lane[column] = value;"}})},
         {"store_channels", store_vectors(geometry, epilogue.after)}});
  const bool zeros = geometry.fold().groups() < geometry.tiling().folded_columns;
  return fill_template(embedded_text("wgmma_rows/store_folded.cu.in"),
                       {{"skip_zeros", zeros ? "if (filter_column >= kS) continue;  // has no weights" : ""},
                        {"stage_sums", stage_folded_sums(epilogue.before, {})},
                        {"store_channels", store_vectors(geometry, epilogue.after)}});
}

}  // namespace

KernelText wgmma_rows::emit(const KernelPlan& kernel, std::string_view name) {
  const WgmmaRowsGeometry geometry(kernel.problem, std::get<WgmmaRowsTiling>(kernel.tiling));
  const Problem& problem = kernel.problem;
  KernelText text;
  text.arguments = parameters(problem);
  text.files = files(geometry);
  Holes holes = {
      {"constants", constants(geometry)},
      {"asserts", asserts(geometry, kernel.launch.shared_bytes)},
      {"layout", layout_comment(geometry)},
      {"activation", activation_function(problem.epilogue, Relu::instruction)},
      {"read_staged", read_staged_functions(sums_rows(geometry))},
      {"kernel", std::string(name)},
      {"parameters", parameter_list(text.arguments)},
      {"let_next_kernel_start", is_scratch(problem.output.tensor) ? "let_next_kernel_start();" : ""},
      {"producer_registers",
       move_registers(geometry.producer_registers(), geometry.launch_registers(), "kProducerRegisters")},
      {"consumer_registers",
       move_registers(geometry.consumer_registers(), geometry.launch_registers(), "kConsumerRegisters")},
      {"consumer_rows", geometry.tiling().folds_columns() ? "output channels at filter columns" : "output channels"},
      {"channel_values", channel_bias(geometry)},
      {"multiply", multiplications(geometry)},
      {"store",
       fill_template(embedded_text("wgmma_rows/store.cu.in"), {{"stage_and_store", stage_and_store(geometry)}})},
  };
  holes.merge(weight_holes(geometry));
  text.text = fill_template(embedded_text("wgmma_rows/kernel.cu.in"), holes);
  return text;
}

}  // namespace jitconv::codegen
