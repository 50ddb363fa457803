// The consumers of the wgmma family: the multiplications of a step, their operands, and which warpgroup multiplies
// what. Not what they do with the sums: emit_store_nchw.cpp and its like.
#include "codegen/f16_pairs.h"
#include "codegen/wgmma/emit.h"
#include "codegen/wgmma/registers.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

/// A unit of a step: a tap of one slice.
struct Unit {
  std::size_t index;         ///< of its weights
  std::int64_t r, s, slice;  ///< r within the step; of folded columns, s is the first
  std::int64_t pixel_row;    ///< of its first pixel, in places of 16 bytes from the start of the run
};

std::vector<Unit> units(const WgmmaGeometry& geometry) {
  const WgmmaTiling& tiling = geometry.tiling();
  const ColumnFold fold = geometry.fold();
  std::vector<Unit> all;
  for (const int tap : geometry.tap_order()) {
    const std::int64_t r = tap / fold.taps(), s = fold.first_column(tap % fold.taps());
    for (std::int64_t slice = 0; slice < tiling.pipeline.slices; ++slice)
      all.push_back({all.size(), r, s, slice,
                     geometry.phase_of(s) * (geometry.pixels().phase_bytes() / 16) +
                         slice * geometry.pixels().slice_step() +
                         geometry.tap_place(tap) * geometry.pixels().pixel_step()});
  }
  return all;
}

std::string tap_name(const WgmmaGeometry& geometry, const Unit& unit) {
  const WgmmaTiling& tiling = geometry.tiling();
  const std::string columns = tiling.folds_columns()
                                  ? fmt::format("s{}..{}", unit.s, unit.s + geometry.fold().groups() - 1)
                                  : fmt::format("s{}", unit.s);
  return tiling.pipeline.filter_rows == 1 ? columns : fmt::format("r{}{}", unit.r, columns);
}

/// Weights in registers: a tap's channels one after the other, and taps in the order of w, whatever the pixels' order.
void add_register_multiplications(Lines& lines, const WgmmaGeometry& geometry, const std::vector<Unit>& all,
                                  const std::string& first_step) {
  const Problem& problem = geometry.problem();
  const WgmmaTiling& tiling = geometry.tiling();
  for (std::size_t i = 0; i < all.size(); i += 2) {
    const std::int64_t unit = (all[i].r * problem.columns.taps + all[i].s) * tiling.pipeline.slices + all[i].slice;
    lines.add(fmt::format("multiply(sum, a[{}], pixels + {}, {});  // {}, {} of {}", unit / 2, all[i].pixel_row,
                          i == 0 ? fmt::format("step != {}", first_step) : "1", tap_name(geometry, all[i]),
                          all[i].slice / 2 + 1, tiling.pipeline.slices / 2));
  }
}

/// Weights of 1x1 filters as they lie in w, rows of input channels or, transposed, of output channels: one line per
/// multiplication, which takes two slices of the only tap.
void add_row_multiplications(Lines& lines, const WgmmaGeometry& geometry, const std::vector<Unit>& all,
                             const std::string& first_step) {
  const WgmmaTiling& tiling = geometry.tiling();
  const bool transposed = tiling.takes_weights_transposed();
  const std::string_view multiply = !transposed                  ? "multiply"
                                    : tiling.multiplies_planes() ? "multiply_pixels"
                                                                 : "multiply_transposed";
  const int slice = geometry.slice_channels();
  for (std::size_t i = 0; i < all.size(); i += 2) {
    const std::int64_t channel = all[i].slice * slice;
    lines.add(fmt::format("{}(sum, weights + {}, pixels + {}, {});  // c{}..{}", multiply,
                          transposed ? fmt::format("{} * kSwizzleBytes / 16", channel) : std::to_string(i),
                          all[i].pixel_row, i == 0 ? fmt::format("step != {}", first_step) : "1", channel,
                          channel + 2 * slice - 1));
  }
}

/// The pixels that units i and i + 1 meet, of `pixels` or of their smaller parts.
std::string pixels_of_units(const WgmmaGeometry& geometry, const std::vector<Unit>& all, std::size_t i,
                            std::string_view pixels) {
  if (geometry.tiling().pipeline.slices > 1) return fmt::format("{} + {}", pixels, all[i].pixel_row);
  if (i + 1 < all.size())
    return fmt::format("matrix_operand({} + kOperandRowBytes * {}, kOperandRowBytes * {})", pixels, all[i].pixel_row,
                       all[i + 1].pixel_row - all[i].pixel_row);
  return fmt::format("matrix_operand({0} + kOperandRowBytes * {1}, zeros - ({0} + kOperandRowBytes * {1}))", pixels,
                     all[i].pixel_row);
}

/// What the units i and i + 1 are, for a comment.
std::string name_of_units(const WgmmaGeometry& geometry, const std::vector<Unit>& all, std::size_t i) {
  const int slice = geometry.slice_channels();
  const std::string tap = tap_name(geometry, all[i]);
  if (geometry.tiling().pipeline.slices > 1)
    return fmt::format("{} c{}..{}", tap, all[i].slice * slice, (all[i].slice + 2) * slice - 1);
  return i + 1 < all.size() ? fmt::format("{} {}", tap, tap_name(geometry, all[i + 1])) : tap;
}

/// Packed weights: one line per multiplication, which takes two units.
void add_tap_multiplications(Lines& lines, const WgmmaGeometry& geometry, const std::vector<Unit>& all,
                             const std::string& first_step) {
  for (std::size_t i = 0; i < all.size(); i += 2)
    lines.add(fmt::format("multiply(sum, weights + {} * kBlockK, {}, {});  // {}", all[i].index,
                          pixels_of_units(geometry, all, i, "pixels"),
                          i == 0 ? fmt::format("step != {}", first_step) : "1", name_of_units(geometry, all, i)));
}

/// The operands of three multiplications: of both larger parts, and of one larger and one smaller part each. That of
/// the smaller parts is too small to count.
struct SplitOperands {
  struct Parts {
    std::string high, low;
  };
  Parts weights, pixels;
  std::string name;  ///< for a comment
};

/// Both parts of two units, TF32 numbers.
SplitOperands parts_of_units(const WgmmaGeometry& geometry, const std::vector<Unit>& all, std::size_t i) {
  return {
      {fmt::format("weights + {} * kBlockK", all[i].index), fmt::format("weights_low + {} * kBlockK", all[i].index)},
      {pixels_of_units(geometry, all, i, "pixels"), pixels_of_units(geometry, all, i, "pixels_low")},
      name_of_units(geometry, all, i)};
}

/// Four slices of a tap that are pairs of fp16 numbers: two of larger parts, and behind them two of smaller ones.
SplitOperands parts_of_pairs(const WgmmaGeometry& geometry, const std::vector<Unit>& all, std::size_t i) {
  const Unit &high = all[i], &low = all[i + kPairGroupRows / 2];
  const std::int64_t channel = high.slice / kPairGroupRows * kPairGroupChannels;
  return {{fmt::format("weights + {} * kBlockK", high.index), fmt::format("weights + {} * kBlockK", low.index)},
          {fmt::format("pixels + {}", high.pixel_row), fmt::format("pixels + {}", low.pixel_row)},
          fmt::format("{} c{}..{}", tap_name(geometry, high), channel, channel + kPairGroupChannels - 1)};
}

/// Split operands, in groups that are promoted, each with the products of smaller parts first.
void add_split_multiplications(Lines& lines, const WgmmaGeometry& geometry, const std::vector<Unit>& all,
                               const std::string& release_in_order) {
  const bool pairs = geometry.tiling().f16_pairs;
  std::vector<SplitOperands> operands;
  for (std::size_t i = 0; i < all.size(); i += pairs ? kPairGroupRows : 2)
    operands.push_back(pairs ? parts_of_pairs(geometry, all, i) : parts_of_units(geometry, all, i));
  const auto add = [&](const std::string& weights, const std::string& pixels, bool accumulate,
                       const std::string& name) {
    lines.add(fmt::format("multiply(partial, {}, {}, {});  // {}", weights, pixels, accumulate ? 1 : 0, name));
  };
  std::size_t first = 0;
  for (const int multiplications : geometry.promotion_groups(static_cast<int>(operands.size()))) {
    const std::size_t end = first + static_cast<std::size_t>(multiplications);
    lines.add("multiply_begin();");
    for (std::size_t i = first; i < end; ++i) {
      const auto& [weights, pixels, name] = operands[i];
      add(weights.low, pixels.high, i != first, name);
      add(weights.high, pixels.low, true, name);
    }
    for (std::size_t i = first; i < end; ++i)
      add(operands[i].weights.high, operands[i].pixels.high, true, operands[i].name);
    lines.add("multiply_commit();\nmultiply_wait<0>();\nsettle(partial);");
    if (end == operands.size()) lines.add(release_in_order + "if (releases_stage) barrier_arrive(empty + stage);");
    lines.add("promote(sum, partial);");
    first = end;
  }
}

/// Which tiles and which of their steps a warpgroup multiplies, and when.
Holes share_holes(const WgmmaGeometry& geometry) {
  const WgmmaTiling& tiling = geometry.tiling();
  const StepText text = step_text(geometry);
  Holes holes = {{"take_turns", ""},       {"first_number", "blockIdx.x"},  {"next_number", "number += gridDim.x"},
                 {"await_turn", ""},       {"own_first", text.first_step},  {"next_step", "++step"},
                 {"release_in_order", ""}, {"next_stage", "next_stage();"}, {"end_turn", ""},
                 {"end_tile", ""}};
  if (tiling.schedule == WgmmaTiling::Schedule::pingpong) {
    holes["take_turns"] = embedded_text("wgmma/pingpong.cu.in");
    holes["first_number"] = "blockIdx.x + consumer * gridDim.x";
    holes["next_number"] = "number += kConsumers * gridDim.x";
    holes["await_turn"] =
        "// In turn t, from 0, consumer 1 waits for phase t of consumer 0, which goes first, and consumer 0 for phase\n"
        "// t - 1 of consumer 1. Phase -1 counts as complete: a barrier begins with a phase of parity 0.\n"
        "barrier_wait(multiplied + (1 - consumer), (turn++ + consumer + 1) % 2);\n";
    holes["release_in_order"] =
        "// Producer warps count on stages that are released in order: those of the other's tile come first.\n"
        "if (releases_stage && step == 0 && number != static_cast<int>(blockIdx.x))\n"
        "  barrier_wait(empty + (stage + kStages - 1) % kStages, stage == 0 ? parity ^ 1 : parity);\n";
    holes["end_turn"] = "if (lane == 0) barrier_arrive(multiplied + consumer);\n";
    holes["end_tile"] = "skip_tile();\n";
  } else if (tiling.schedule == WgmmaTiling::Schedule::sliced_k) {
    holes["take_turns"] = embedded_text("wgmma/sliced_k.cu.in");
    const bool split = tiling.split_k > 1;
    holes["await_turn"] = fmt::format("const int own_first = {}first_turn;\n", split ? "first_step + " : "");
    holes["own_first"] = "own_first";
    holes["next_step"] = "step += kConsumers";
    holes["next_stage"] = "next_stage();\nnext_stage();\n";
    holes["end_tile"] = fill_template(
        embedded_text("wgmma/add_sliced_k.cu.in"),
        {{"steps", split ? "end_step - first_step" : "kSteps"}, {"await_staging", await_staging(geometry)}});
  }
  return holes;
}

/// For each phase that a tile's channels may be of, the multiplications of the taps that it meets.
std::string multiplications_of_phases(const WgmmaGeometry& geometry, const std::vector<Unit>& all,
                                      const std::string& first_step) {
  // Each list is a group of its own: ptxas makes two of a group that begins or ends outside of the branches.
  std::string text = "switch (tile.k_tile / kTilesOfPhase) {  // other taps have no weights in the phase\n";
  for (std::int64_t phase = 0; phase < geometry.tile_phases(); ++phase) {
    std::vector<Unit> met;
    for (const Unit& unit : all)
      if (geometry.meets_tap(phase, unit.r, unit.s)) met.push_back(unit);
    Lines lines;
    lines.add("multiply_begin();");
    add_tap_multiplications(lines, geometry, met, first_step);
    lines.add("multiply_commit();\nbreak;");
    text += fmt::format("  case {}:\n", phase) + indented(indented(lines.text()));
  }
  return text + "}\n";
}

/// `first_step`: of a tile's steps, the warpgroup's first.
std::string multiplications(const WgmmaGeometry& geometry, const std::string& first_step,
                            const std::string& release_in_order) {
  const WgmmaTiling& tiling = geometry.tiling();
  const std::vector<Unit> all = units(geometry);
  if (geometry.skips_zero_taps())
    return "// begin taps\n" + multiplications_of_phases(geometry, all, first_step) + "// end taps\n";
  Lines lines;
  if (tiling.splits_operands()) {
    lines.add("// begin taps");
    add_split_multiplications(lines, geometry, all, release_in_order);
    lines.add("// end taps");
    return lines.text();
  }
  lines.add("multiply_begin();\n// begin taps");
  if (tiling.packs_weights())
    add_tap_multiplications(lines, geometry, all, first_step);
  else if (!geometry.multiplies_registers())
    add_row_multiplications(lines, geometry, all, first_step);
  else
    add_register_multiplications(lines, geometry, all, first_step);
  lines.add("// end taps\nmultiply_commit();");
  return lines.text();
}

std::string operands(const WgmmaGeometry& geometry) {
  const WgmmaTiling& tiling = geometry.tiling();
  Lines lines;
  lines.add(fmt::format("// Adding to an operand moves it by 16 bytes: {}, {}.",
                        tiling.multiplies_planes() ? "64 pixels of a channel are eight of that"
                        : tiling.uses_im2col()     ? "a slice of all pixels"
                                                   : "a pixel of a slice",
                        geometry.swizzles_weights()         ? "a slice of all weights"
                        : tiling.takes_weights_transposed() ? "eight weights of a channel"
                                                            : "a channel of a unit"));
  if (tiling.uses_im2col())
    lines.add("const MatrixOperand pixels = swizzled_operand<kPixelBytes>(input + run * kRunBytes);");
  else if (tiling.multiplies_planes())
    lines.add(
        "const MatrixOperand pixels = pixel_operand<kSwizzleBytes>(input + run * kRunBytes, kPartBytes, kCoreRows * "
        "kSwizzleBytes);");
  else if (tiling.pipeline.slices > 1)
    lines.add(
        fmt::format("const MatrixOperand pixels = matrix_operand(input + run * kRunBytes, {} * kOperandRowBytes);",
                    geometry.loads_vectors() ? "kSlicePitch" : "kRunPixels"));
  else
    lines.add("const char* pixels = input + run * kRunBytes;");
  if (tiling.operand_parts() > 1)
    lines.add(tiling.pipeline.slices > 1 || tiling.uses_im2col()
                  ? "const MatrixOperand pixels_low = pixels + kInputBytes / kOperandRowBytes;"
                  : "const char* pixels_low = pixels + kInputBytes;");
  if (geometry.has_zeros()) lines.add("const char* zeros = shared + kZerosFirstByte;");
  if (geometry.swizzles_weights()) {
    lines.add("const MatrixOperand weights =");
    lines.add("    swizzled_operand<kWeightRowBytes>(input + kWeightOffset + k_consumer * kWeightRowBytes);");
    return lines.text();
  }
  if (tiling.takes_weights_transposed()) {
    lines.add(
        "const MatrixOperand weights = pixel_operand<kSwizzleBytes>(\n"
        "    input + kWeightOffset + k_consumer * (kChunkChannels * 2), 0, kCoreRows * kSwizzleBytes);");
    return lines.text();
  }
  if (geometry.multiplies_registers()) {
    lines.add("multiply_wait<0>();  // of those that are overwritten now");
    lines.add("load_weights(a, input + kWeightOffset, k_consumer + warp_first_row(warp) + lane_row(lane), lane);");
    lines.add("__syncwarp();  // all lanes have read");
    return lines.text();
  }
  lines.add(tiling.keeps_weights()
                ? "const char* weights_of_step = shared + kWeightsFirstByte + step * kWeightBytes;"
                : fmt::format("const char* weights_of_step = input + {};", weight_offset_constant(geometry)));
  lines.add(
      "const MatrixOperand weights = matrix_operand(weights_of_step + k_consumer * kOperandRowBytes, kBlockK * "
      "kOperandRowBytes);");
  if (tiling.operand_parts() > 1) lines.add("const MatrixOperand weights_low = weights + kUnits * kBlockK;");
  return lines.text();
}

/// Arrivals that release a stage. Multiplications are the warpgroup's, reading weights to registers is each lane's own.
std::string releases(const WgmmaGeometry& geometry) {
  const bool both = geometry.tiling().schedule == WgmmaTiling::Schedule::cooperative;
  if (geometry.multiplies_registers()) return both ? "kConsumerWarps" : "kWarpgroupWarps";
  return both ? "kConsumers" : "1";
}

}  // namespace

std::string unpacked_weights_text(const WgmmaGeometry& geometry) {
  const WgmmaTiling& tiling = geometry.tiling();
  const int vector = geometry.lane_channels() * geometry.taps() % 4 == 0 ? 4 : 2;
  std::string text =
      fill_template(embedded_text("wgmma/unpacked_weights.cu.in"),
                    {{"vector", std::to_string(vector)},
                     {"more_of_vector", vector == 2 ? "" : "value[i + 2] = some.z, value[i + 3] = some.w;"}});
  // Loads of lanes name the channels in this order.
  if (!tiling.loads_pixels()) text.append("\n").append(embedded_text("wgmma/channel_order.cu.in"));
  text.pop_back();
  return text;
}

Holes multiply_holes(const WgmmaGeometry& geometry) {
  const WgmmaTiling& tiling = geometry.tiling();
  const StepText text = step_text(geometry);
  Holes tile = share_holes(geometry), holes;
  const std::string own_first = tile["own_first"];
  for (const char* name : {"take_turns", "first_number", "next_number", "await_turn", "end_tile"})
    holes.insert(tile.extract(name));
  tile.merge(Holes{{"end_step", text.end_step},
                   {"operands", operands(geometry)},
                   {"multiply", multiplications(geometry, own_first, tile["release_in_order"])}});
  if (tiling.splits_operands()) {
    tile.erase("release_in_order");
    tile.emplace("undo_scales", tiling.f16_pairs ? std::string(embedded_text("wgmma/undo_scales.cu.in")) : "");
  }
  const bool in_registers = geometry.multiplies_registers();
  holes.merge(Holes{
      {"consumer_registers",
       move_registers(WgmmaRegisters(geometry).consumer(), WgmmaTiling::kLaunchRegisters, "kConsumerRegisters")},
      {"steps", text.steps},
      {"multiply_tile", fill_template(embedded_text(tiling.splits_operands() ? "wgmma/multiply_tile_split.cu.in"
                                                                             : "wgmma/multiply_tile.cu.in"),
                                      tile)},
      {"k_consumer", tiling.tile.channels == 128 ? "consumer * kInstructionRows" : "0"},
      {"consumer_rows", tiling.folds_columns() ? "all rows of a tile" : "64 of the tile's channels"},
      {"run", tiling.runs() == 1 ? "0" : "consumer"},
      {"own_weights", in_registers ? "unsigned a[kUnits / 2][4];" : ""},
      {"releases", releases(geometry)},
      {"releases_stage", in_registers ? "lane == 0;  // what its warp has read and multiplied"
                                      : "threadIdx.x % kWarpgroupThreads == 0;  // what its warpgroup has multiplied"},
  });
  return holes;
}

}  // namespace jitconv::codegen
