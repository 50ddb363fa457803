// Prints the wgmma family: templates/wgmma/kernel.cu.in, of which emit_load.cpp, emit_multiply.cpp and emit_store*.cpp
// fill the parts.
#include "codegen/wgmma/emit.h"

#include "codegen/arithmetic.h"
#include "codegen/text/epilogue.h"
#include "codegen/text/phases_text.h"
#include "codegen/wgmma/memory.h"
#include "codegen/wgmma/registers.h"
#include "codegen/wgmma/store.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

std::string constants(const WgmmaGeometry& geometry, const Launch& launch) {
  const Problem& problem = geometry.problem();
  const WgmmaTiling& tiling = geometry.tiling();
  const WgmmaMemory memory(geometry);
  const WgmmaRegisters registers(geometry);
  const View::Strides& in = problem.input.stride;
  Constants c;
  add_problem_constants(c, problem,
                        tiling.gathers_patches()    ? "patches"
                        : tiling.transposes_input() ? "transposed_x"
                        : tiling.splits_input()     ? "split_x"
                                                    : "x");
  c.add("kGroups", problem.groups).add("kChannels", problem.c, "of a group");
  c.add("kGroupK", problem.k).add("kPlane", problem.output_plane(), "P * Q");
  if (!geometry.reads_operand_rows())
    c.add("kInputStrideN", in.n).add("kInputStrideC", in.c).add("kInputStrideH", in.h).add("kInputStrideW", in.w);

  c.group(tiling.stores_boxes()
              ? "Tiles: kBlockK channels of kRuns runs of kColumns positions, one run behind the other"
          : tiling.folds_columns()
              ? "Tiles: kBlockK rows of kRuns runs of kColumns positions, of which each stores kWindow outputs"
              : "Tiles: kBlockK channels of kRuns runs of kColumns positions, of which each stores kWindow outputs");
  if (tiling.folds_columns())
    c.add("kFoldedColumns", tiling.tile.folded_columns, "neighbouring filter columns that a tap has, in groups of rows")
        .add("kWarpK", 16 / tiling.tile.folded_columns, "channels of a warp, each with a row of every group");
  c.add("kBlockK", tiling.tile.channels).add("kTilesK", geometry.tiles_k());
  c.add("kRuns", tiling.runs()).add("kColumns", tiling.tile.columns).add("kWindow", tiling.tile.window);
  c.add("kRowPadding", geometry.row_padding(), "positions of a grid row behind its kQ outputs");
  c.add("kPitch", geometry.pitch());
  if (tiling.stores_boxes()) c.add("kRunRow", geometry.run_row(), "positions of the runs of a row");
  if (tiling.tile.images > 0)
    c.add("kN", problem.n)
        .add("kImages", tiling.tile.images, "of a run")
        .add("kImagePositions", geometry.image_positions());
  else
    c.add("kTilesOfPlane", geometry.tiles_of_plane());
  if (tiling.split_k > 1) c.add("kSplits", tiling.split_k);
  c.add("kTiles", geometry.tiles());
  if (geometry.skips_zero_taps()) c.add("kBlocks", launch.blocks, "of the grid");

  c.group(tiling.pipeline.filter_rows == 1
              ? "Steps: a filter row of kSlices slices of channels; a slice is 16 bytes of a pixel"
              : "Steps: all filter rows of kSlices slices of channels; a slice is 16 bytes of a pixel");
  c.add("kSlices", tiling.pipeline.slices).add("kChunkChannels", geometry.chunk_channels());
  c.add("kSteps", geometry.steps());
  if (tiling.split_k > 1) c.add("kStepsOfSplit", geometry.steps_of_split());
  c.add("kStepRows", tiling.pipeline.filter_rows, "filter rows of a step");
  c.add("kPhases", geometry.phases(), "residues of columns modulo the stride, kept apart");
  c.add("kUnits", geometry.units(), "of a step: taps, each of one slice");
  c.add("kRunPixels", geometry.run_pixels());
  if (tiling.uses_im2col())
    c.add("kPixelBytes", 16 * tiling.pipeline.slices, "all slices of a pixel, one after the other")
        .add("kPhaseBytes", geometry.pixels().phase_bytes())
        .add("kIm2colBytes", geometry.pixels().im2col_bytes(), "of a step");
  else if (tiling.multiplies_planes())
    c.add("kPartPixels", WgmmaPixels::kPartPixels, "of a channel, one after the other")
        .add("kPartBytes", geometry.chunk_channels() * WgmmaPixels::kPartBytes, "of all channels of a step")
        .add("kParts", geometry.pixels().parts(), "of a run");
  else if (geometry.loads_vectors())
    c.add("kSlicePitch", geometry.pixels().slice_pitch(), "pixels");
  if (tiling.splits_im2col() && !tiling.f16_pairs)
    c.add("kSplitBatch", geometry.split_rows().batch, "rows that a thread reads before it stores their parts");
  c.add("kRunBytes", geometry.pixels().run_bytes());
  c.add("kWeightBytes", geometry.weight_bytes())
      .add("kInputBytes", geometry.pixels().input_bytes(),
           tiling.operand_parts() > 1 ? "of one part, the larger first" : "");
  if (!tiling.packs_weights() || (tiling.operand_parts() > 1 && !tiling.keeps_weights()))
    c.add("kWeightOffset", memory.weight_offset(), "bytes from a stage's start");
  if (!tiling.packs_weights() && !tiling.takes_weights_transposed())
    c.add("kTaps", geometry.taps())
        .add("kWeightRowBytes", geometry.chunk_channels() * geometry.taps() * problem.input.element_bytes(),
             "of an output channel");
  if (geometry.multiplies_registers())
    c.add("kLaneChannels", geometry.lane_channels(), "neighbours, of which a lane has weights");
  if (geometry.copies_met_taps()) c.add("kTapBytes", geometry.weight_bytes() / geometry.taps(), "of weights");
  c.add("kStageBytes", memory.stage_bytes()).add("kStages", tiling.pipeline.stages);

  add_load_constants(c, geometry);

  c.group("The block");
  c.add("kThreads", WgmmaTiling::kThreads).add("kProducerWarps", WgmmaTiling::kProducerWarps).add("kConsumers", 2);
  const bool cooperative = tiling.schedule == WgmmaTiling::Schedule::cooperative;
  if (WgmmaStore(geometry).stages_runs() || (geometry.multiplies_registers() && cooperative))
    c.add("kConsumerWarps", 8);
  c.add("kProducerRegisters", registers.producer()).add("kConsumerRegisters", registers.consumer());
  add_arrival_constants(c, geometry);
  add_store_constants(c, geometry);
  if (tiling.stores_pixels) add_pixel_constants(c, geometry);
  if (tiling.keeps_weights()) c.add("kWeightsFirstByte", memory.weights_first_byte());
  c.add("kStagingFirstByte", memory.staging_first_byte());
  if (geometry.has_zeros()) c.add("kZerosFirstByte", memory.zeros_first_byte());
  c.add("kBarriersFirstByte", memory.barriers_first_byte());

  if (tiling.f16_pairs) {
    c.group("Scales");
    c.add("kWeightRangeRow", geometry.packed_rows(), "behind packed weights, in rows of 16 bytes");
  }
  if (tiling.split_k > 1)
    c.add("kPartialSumStride", WgmmaStore(geometry).partial_sum_stride(), "floats from a split to the next");
  std::string text = c.text();
  if (const std::string shifts = tiling.stores_pixels ? shift_tables(problem.phases) : ""; !shifts.empty())
    text += "\n// By phases: the output of their first pixel.\n" + shifts;
  if (geometry.copies_met_taps()) text += "\n" + met_tap_tables(geometry);
  text.pop_back();
  return text;
}

std::string_view assert_of_pixels(WgmmaTiling::Pixels pixels) {
  using Pixels = WgmmaTiling::Pixels;
  switch (pixels) {
    case Pixels::loaded:
      return "static_assert(kTeams * kTeamWarps == kProducerWarps);";
    case Pixels::converted:
      return "static_assert(kStages >= kProducerWarps && kCopySlots * kRawBytes <= kStagingFirstByte);";
    case Pixels::aligned:
      return "static_assert(kStages >= kProducerWarps && kCopySlots * kRawBytes <= kStagingFirstByte);\n"
             "static_assert(kRawPitch % kVectorElements == 0 && kPeriod * kPlane % kVectorElements == 0);\n"
             "static_assert(kPeriod * kBoxChannels == kChunkChannels && kRawRunElements == kPeriod * kBoxElements);\n"
             "static_assert(kPartBytes % kSwizzleAtomBytes == 0 && kStageBytes % kSwizzleAtomBytes == 0);";
    case Pixels::planes:
      return "static_assert(kPartBytes % kSwizzleAtomBytes == 0 && kStageBytes % kSwizzleAtomBytes == 0);";
    case Pixels::im2col:
      return "static_assert(kRunBytes % kSwizzleAtomBytes == 0 && kStageBytes % kSwizzleAtomBytes == 0);";
  }
  return {};
}

std::string asserts(const WgmmaGeometry& geometry, std::uint32_t shared_bytes) {
  const WgmmaTiling& tiling = geometry.tiling();
  Lines lines;
  lines.add("// The numbers above are redundant; they must agree.");
  lines.add(fmt::format("static_assert(kColumns % 8 == 0 && kColumns <= 256 && kRuns * kBlockK == {}kInstructionRows);",
                        tiling.tile_consumers() == 1 ? "" : "2 * "));
  lines.add(assert_of_pixels(tiling.producer.pixels));
  const bool im2col = tiling.uses_im2col(), vectors = geometry.loads_vectors(),
             nhwc = geometry.problem().output.layout() == Layout::nhwc;
  lines.add("static_assert(kRowPadding <= (kS - 1) * kDilationW / kStrideW && kPitch == kQ + kRowPadding);");
  lines.add(
      fmt::format("static_assert(kRunPixels ==\n              kColumns + {} * kDilationW{} + (kStepRows - 1) * "
                  "kDilationH * kPitch);",
                  tiling.folds_columns() ? "(kS > kFoldedColumns ? kS - kFoldedColumns : 0)" : "(kS - 1)",
                  tiling.folds_columns() ? "" : " / kStrideW"));
  lines.add("static_assert(kChunkChannels == kSlices * kOperandChannels && kSteps * kStepRows % kR == 0);");
  const std::string_view parts = tiling.operand_parts() > 1 ? "2 * " : "";
  lines.add(tiling.folds_columns()
                ? fmt::format("static_assert(kUnits % 2 == 0 && kFoldedColumns * kUnits >= kStepRows * kS * kSlices);\n"
                              "static_assert(kWeightBytes == {}kUnits * kBlockK * kOperandRowBytes && kFoldedColumns * "
                              "kWarpK == kWarpRows);",
                              parts)
            : tiling.takes_weights_transposed()
                ? "static_assert(kWeightOffset % kSwizzleAtomBytes == 0 && kStageBytes % kSwizzleAtomBytes == 0);\n"
                  "static_assert(kWeightOffset >= kInputBytes && kWeightBytes == kBlockK * kChunkChannels * 2);"
            : tiling.packs_weights()
                ? fmt::format("static_assert(kUnits % 2 == 0 && kUnits >= kStepRows * kS * kSlices && kWeightBytes == "
                              "{}kUnits * kBlockK * kOperandRowBytes);",
                              parts)
            : geometry.swizzles_weights()
                ? "static_assert(kUnits == kTaps * kSlices && kWeightRowBytes == kSwizzleBytes);\n"
                  "static_assert(kWeightOffset % kSwizzleAtomBytes == 0 && kStageBytes % kSwizzleAtomBytes == 0);\n"
                  "static_assert(kWeightOffset >= kInputBytes && kWeightBytes == kBlockK * kWeightRowBytes);"
                : "static_assert(kUnits == kTaps * kSlices && kChunkChannels == 4 * kLaneChannels);\n"
                  "static_assert(kWeightOffset >= kInputBytes && kWeightBytes == kBlockK * kWeightRowBytes);");
  lines.add(im2col ? "static_assert(kRunBytes == kPhases * kPhaseBytes && kPhaseBytes >= kRunPixels * kPixelBytes);"
            : tiling.multiplies_planes()
                ? "static_assert(kRunBytes == kParts * kPartBytes && kParts * kPartPixels >= kColumns);"
            : vectors ? "static_assert(kRunBytes == kPhases * kSlices * kSlicePitch * kOperandRowBytes && kSlicePitch "
                        ">= kRunPixels);"
                      : "static_assert(kRunBytes == kPhases * kSlices * kRunPixels * kOperandRowBytes);");
  lines.add(
      fmt::format("static_assert(kStageBytes >= {}kInputBytes && kInputBytes == kRuns * kRunBytes && kStages * "
                  "kStageBytes <= kStagingFirstByte);",
                  parts));
  if (tiling.stores_boxes())
    lines.add(
        "static_assert(kRunRow >= kQ && kWindow == kColumns && kColumns % kStoreColumns == 0 && kBoxRows * "
        "kRowChannels == kInstructionRows);\n"
        "static_assert(kStagingFirstByte % kSwizzleAtomBytes == 0 && kBoxElements * sizeof(Element) % "
        "kSwizzleAtomBytes == 0);");
  else if (nhwc && tiling.folds_columns())
    lines.add("static_assert(kStagingPitch >= kFoldHalo + kColumns && kWarpK % kStoreVector == 0);");
  else if (nhwc)
    lines.add("static_assert(kStoreSteps * kStorePositions == kStoreColumns && kStoreColumns % 16 == 0);");
  else if (tiling.stores_pixels)
    lines.add("static_assert(kStagingPitch >= kColumns && kHalfRows % kColumnPhases == 0);");
  else if (WgmmaStore(geometry).stores_planes())
    lines.add(
        "static_assert(kWindow == kImages * kPlane && kStagingElements == kHalfRows * kWindow);\n"
        "static_assert((kImages - 1) * kImagePositions + kPlane <= kColumns);");
  else if (tiling.tile.images > 0)
    lines.add("static_assert(kWindow == kImages * kPlane && kStagingPitch >= kColumns);");
  else
    lines.add(
        fmt::format("static_assert(kWindow % kSectorElements == 0 && kStagingPitch >= {}kColumns + kAlignmentPadding);",
                    tiling.folds_columns() ? "kFoldHalo + " : ""));
  if (tiling.folds_columns())
    lines.add("static_assert(kFoldHalo >= ((kS < kFoldedColumns ? kS : kFoldedColumns) - 1) * kDilationW);");
  lines.add("static_assert(kWarpgroupThreads * (kProducerRegisters + 2 * kConsumerRegisters) <= 65536);");
  lines.add(fmt::format("static_assert(kBarriersFirstByte + 16 * kStages + {} <= {});",
                        (tiling.keeps_weights() ? 8 : 0) + (tiling.splits_im2col() ? 8 * tiling.pipeline.stages : 0) +
                            8 * schedule_barriers(geometry.tiling().schedule) + 32 * tiling.producer.copies_ahead,
                        shared_bytes));
  return lines.text();
}

std::string_view multiply_file(const WgmmaGeometry& geometry) {
  const Problem& problem = geometry.problem();
  if (geometry.multiplies_registers()) return "device/multiply_registers_tf32.cuh";
  if (geometry.tiling().takes_weights_transposed()) {
    const bool f16 = problem.input.type == DataType::f16;
    if (geometry.tiling().multiplies_planes())
      return f16 ? "device/multiply_pixels_f16.cuh" : "device/multiply_pixels_bf16.cuh";
    return f16 ? "device/multiply_transposed_f16.cuh" : "device/multiply_transposed_bf16.cuh";
  }
  if (geometry.tiling().f16_pairs) return "device/multiply_f16.cuh";
  if (problem.input.type == DataType::f32) return "device/multiply_tf32.cuh";
  if (geometry.tiling().multiplies_planes())
    return problem.input.type == DataType::f16 ? "device/multiply_planes_f16.cuh" : "device/multiply_planes_bf16.cuh";
  return problem.input.type == DataType::f16 ? "device/multiply_f16.cuh" : "device/multiply_bf16.cuh";
}

std::vector<DeviceFile> files(const WgmmaGeometry& geometry) {
  const Problem& problem = geometry.problem();
  const WgmmaTiling& tiling = geometry.tiling();
  const WgmmaStore store(geometry);
  const bool nhwc = problem.output.layout() == Layout::nhwc;
  const bool boxes = geometry.pixels().copies_boxes();
  std::vector<DeviceFile> result = {{element_header(problem.input.type)}, {"device/barrier.cuh"}};
  const bool copies_in = boxes || tiling.copies_operands() || !tiling.packs_weights(),
             copies_out = tiling.stores_boxes();
  if (copies_in || copies_out) result.push_back({"device/tensor_map.cuh"});
  if (copies_in) result.push_back({"device/tensor_copy.cuh"});
  if (tiling.packs_weights() || (tiling.converts_pixels() && !boxes)) result.push_back({"device/bulk_copy.cuh"});
  result.insert(result.end(), {{"device/dependent_launch.cuh"},
                               {"device/warpgroup.cuh"},
                               {"device/wgmma_sizes.cuh"},
                               {"device/fragments.cuh"}});
  if (tiling.uses_im2col() || geometry.swizzles_weights()) result.push_back({"device/swizzled_operand.cuh"});
  if (tiling.multiplies_planes() || tiling.takes_weights_transposed()) result.push_back({"device/pixel_operand.cuh"});
  if (tiling.aligns_pixels()) result.push_back({"device/shifted_words.cuh"});
  if (tiling.loads_pixels()) result.push_back({load_header(problem.input.type)});
  if (tiling.loads_pixels() && geometry.loads_vectors())
    result.push_back({geometry.load_bytes() == 16 ? "device/load_vector.cuh" : "device/load_channels.cuh"});
  result.push_back({operand_header(problem.input.type)});
  if (tiling.operand_parts() > 1) result.push_back({"device/split_tf32.cuh"});
  if (tiling.f16_pairs) result.insert(result.end(), {{"device/pair_f16.cuh"}, {"device/split_f16.cuh"}});
  if (tiling.splits_operands()) result.push_back({"device/promote.cuh"});
  if (nhwc && tiling.folds_columns()) {
    result.push_back({"device/vector.cuh"});
  } else if (nhwc) {
    result.push_back({"device/warpgroup_sync.cuh"});
    if (!copies_out) result.push_back({"device/store_words.cuh"});
    if (problem.epilogue.residual && tiling.split_k == 1) result.push_back({"device/vector.cuh"});
    if (store.staged_bytes() == 2) {
      result.push_back({pair_header(problem.input.type)});
      result.push_back({"device/store_transposed.cuh"});
    }
  } else if (tiling.stores_pixels) {
    result.push_back({"device/vector.cuh"});
    if (store.staged_bytes() == 2) result.push_back({pair_header(problem.input.type)});
  } else if (store.written_bytes() == 4) {
    result.push_back({"device/store_32bit.cuh"});
  } else {
    result.push_back({pair_header(problem.input.type)});
    result.push_back({"device/store_16bit.cuh"});
  }
  if (!nhwc && !tiling.stores_pixels) result.push_back({"device/elements_within.cuh"});
  if (store.uses_tma() || copies_out) result.push_back({"device/bulk_store.cuh"});
  if (copies_out) result.push_back({"device/tensor_store.cuh"});
  if (store.stages_runs() && geometry.row_ends() > 1) result.push_back({"device/opaque.cuh"});
  if (problem.epilogue.activation == Activation::relu && tiling.split_k == 1) result.push_back({"device/max_nan.cuh"});
  result.push_back({multiply_file(geometry), tiling.tile.columns});
  return result;
}

std::string tile(const WgmmaGeometry& geometry) {
  const WgmmaTiling& tiling = geometry.tiling();
  const std::string k_tile = geometry.skips_zero_taps()
                                 ? "// Phases have more taps or fewer: in its next tile a block has another one.\n"
                                   "k_tile = (number % kTilesK + number / kTilesK * kTilesK / kBlocks) % kTilesK;"
                                 : "k_tile = number % kTilesK;";
  if (tiling.tile.images > 0) return fill_template(embedded_text("wgmma/tile_images.cu.in"), {{"k_tile", k_tile}});
  return fill_template(
      embedded_text("wgmma/tile.cu.in"),
      {{"k_tile", k_tile}, {"counted", tiling.stores_boxes() ? "in kP rows of kRunRow" : "in a plane of y"}});
}

}  // namespace

KernelText wgmma::emit(const KernelPlan& kernel, std::string_view name) {
  const WgmmaGeometry geometry(kernel.problem, std::get<WgmmaTiling>(kernel.tiling));
  const bool split = geometry.tiling().split_k > 1;
  const StepText step = step_text(geometry);
  KernelText text;
  text.arguments = wgmma_arguments(geometry);
  text.files = files(geometry);
  Holes holes = {
      {"constants", constants(geometry, kernel.launch)},
      {"asserts", asserts(geometry, kernel.launch.shared_bytes)},
      {"activation", split ? "" : activation_function(kernel.problem.epilogue, Relu::instruction)},
      {"unpacked_weights", geometry.multiplies_registers() ? unpacked_weights_text(geometry) : ""},
      {"kernel", std::string(name)},
      {"parameters", parameter_list(text.arguments)},
      {"zeros", geometry.has_zeros() ? std::string(embedded_text("wgmma/zeros.cu.in")) : ""},
      {"let_reduction_start", split || is_scratch(kernel.problem.output.tensor) ? "let_next_kernel_start();" : ""},
      {"tile_number", step.tile_number},
      {"tile", tile(geometry)},
  };
  holes.merge(multiply_holes(geometry));
  holes.merge(load_holes(geometry));
  holes.merge(store_holes(geometry));
  holes.emplace("layout", layout_comment(geometry, holes.at("releases")));
  text.text = fill_template(embedded_text("wgmma/kernel.cu.in"), holes);
  return text;
}

}  // namespace jitconv::codegen
