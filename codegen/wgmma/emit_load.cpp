// The producer's part of the wgmma family's text, for emit.cpp: how pixels become operand rows. Pixels come through
// registers or, where x allows it, by TMA.
#include "codegen/wgmma/emit_load.h"

#include "codegen/arithmetic.h"
#include "codegen/f16_pairs.h"
#include "codegen/wgmma/emit.h"
#include "codegen/wgmma/memory.h"
#include "codegen/wgmma/registers.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

using Pixels = WgmmaTiling::Pixels;

/// The channel whose values lie at a place of a chunk's slices: the place itself, but where weights are multiplied from
/// registers.
std::string channel_at(const WgmmaGeometry& geometry, std::string_view place) {
  return geometry.multiplies_registers() ? fmt::format("channel_at({})", place) : std::string(place);
}

/// Lines that load the channels of pixel, or pair, `i`.
std::string load_pixel(const WgmmaGeometry& geometry) {
  const std::int64_t channels = geometry.problem().c, chunk = geometry.chunk_channels();
  const bool phase_pairs = geometry.pixels().loads_phase_pairs(), pairs = geometry.loads_pairs() || phase_pairs;
  const bool float_pairs = phase_pairs && geometry.problem().input.type == DataType::f32;
  Lines lines;
  for (std::int64_t place = 0; place < chunk; ++place) {
    const std::int64_t c = geometry.channel_at(place);
    const std::string exists =
        channels % chunk == 0 || chunk > channels ? "" : fmt::format(" && c_first + {} < kChannels", c);
    const bool none = chunk > channels && c >= channels;
    if (float_pairs)
      lines.add(none ? fmt::format("value[i][0][{0}] = value[i][1][{0}] = from_float(0.0f);", place)
                     : fmt::format("load_pair_if<{1}LL * kInputStrideC>(source, valid{2}, value[i][0][{0}], "
                                   "value[i][1][{0}]);",
                                   place, c, exists));
    else
      lines.add(none ? fmt::format("value[i][{}] = {};", place, pairs ? "0" : "from_float(0.0f)")
                     : fmt::format("value[i][{}] = {}<{}LL * kInputStrideC>(source, valid{});", place,
                                   pairs ? "load_pair_if" : "load_if", c, exists));
  }
  return lines.text();
}

/// Lines that store the channels of a pixel, `value`, as operand rows at `destination`.
std::string store_rows(const WgmmaGeometry& geometry, std::string_view destination, std::string_view at,
                       std::string_view value) {
  if (geometry.tiling().f16_pairs)
    return fmt::format("store_f16_pixel<kSlices, kRunPixels>({}, {}, scale);", destination, value);
  if (geometry.tiling().splits_operands())
    return fmt::format("store_split_rows<kInputBytes / kOperandRowBytes, kSlices, kRunPixels>({}, {}, kSlices);",
                       destination, value);
  return fmt::format(
      "#pragma unroll\n"
      "for (int slice = 0; slice < kSlices; ++slice)\n"
      "  destination[slice * kRunPixels{}] = operand_row({} + slice * kOperandChannels);",
      at, value);
}

/// Holes of loads of pairs that are a pixel of each phase.
Holes phase_pair_holes(const WgmmaGeometry& geometry) {
  if (geometry.problem().input.type == DataType::f32)
    return {{"value", "Element value[kLoadBatch][2][kChunkChannels]"},
            {"store_first", store_rows(geometry, "destination + kFirst", " + kFirst", "value[i][0]")},
            {"store_second", store_rows(geometry, "destination + kSecond", " + kSecond", "value[i][1]")}};
  constexpr std::string_view kStore =
      "#pragma unroll\n"
      "for (int slice = 0; slice < kSlices; ++slice)\n"
      "  destination[slice * kRunPixels + {}] =\n"
      "      operand_row_of_pairs(value[i] + slice * kOperandChannels, {});";
  return {{"value", "unsigned value[kLoadBatch][kChunkChannels]"},
          {"store_first", fmt::format(kStore, "kFirst", "false")},
          {"store_second", fmt::format(kStore, "kSecond", "true")}};
}

/// What a run begins with: an image, an output of a plane or a position of its grid.
std::string run_start(const WgmmaGeometry& geometry) {
  const WgmmaTiling& tiling = geometry.tiling();
  if (tiling.tile.images > 0) return {};
  return fmt::format("const int row_first = run_first / {0};\nconst int column_first = run_first - row_first * {0};\n",
                     step_text(geometry).run_row);
}

/// Lines that find a pixel's place: its row of outputs and its column, counted from that row's start.
std::string pixel_place(const WgmmaGeometry& geometry) {
  const WgmmaTiling& tiling = geometry.tiling();
  if (tiling.tile.images > 0) return place_in_images("pixel");
  return "const int row = row_first + (column_first + pixel) / kPitch;\n"
         "const int column = (column_first + pixel) % kPitch;\n";
}

/// Whether producer warps make pairs of fp16 numbers.
bool splits_to_f16(const WgmmaTiling& tiling) { return tiling.f16_pairs && !tiling.splits_input(); }

/// Holes of every text that loads a run.
Holes place_holes(const WgmmaGeometry& geometry) {
  const WgmmaTiling& tiling = geometry.tiling();
  return {{"scale", splits_to_f16(tiling) ? ", float scale" : ""},
          {"run_start", run_start(geometry)},
          {"pixel_place", pixel_place(geometry)},
          {"valid", tiling.tile.images > 0 ? " && image < kImages && image < kN - run_first" : ""},
          {"image_offset", tiling.tile.images > 0 ? "image * kInputStrideN + " : ""}};
}

/// Loads vectors of channels; what the last chunk or slice has not is zero.
std::string load_vectors(const WgmmaGeometry& geometry) {
  // Loads of less than a slice each have channels or not, and are not asked whether all of it has.
  const bool parts = geometry.load_bytes() < 16, whole = parts || geometry.problem().c % geometry.chunk_channels() == 0;
  Holes holes = place_holes(geometry);
  const std::string source = fmt::format(
      "x_chunk + ({}h * kInputStrideH + w * kInputStrideW + slice * kOperandChannels)", holes.at("image_offset"));
  holes.erase("image_offset");
  holes.merge(
      Holes{{"load", parts ? fmt::format("load_channels<{}>({}, valid ? kChannels - c_first - slice * "
                                         "kOperandChannels : 0)",
                                         geometry.load_bytes(), source)
                           : fmt::format("load_vector_if({}, valid)", source)},
            {"has_channels", whole ? "" : "const bool has_channels = c_first + slice * kOperandChannels < kChannels;"},
            {"channels", whole ? "" : "has_channels && "},
            {"store_row",
             geometry.tiling().splits_operands()
                 ? "store_split_row<kInputBytes / kOperandRowBytes>(\n"
                   "    reinterpret_cast<uint4*>(run) + (phase * kSlices + slice) * kSlicePitch + pixel,\n"
                   "    reinterpret_cast<const Element*>(&value[i]));"
                 : fmt::format("reinterpret_cast<uint4*>(run)[(phase * kSlices + slice) * kSlicePitch + pixel] = {};",
                               geometry.problem().input.type == DataType::f32
                                   ? "operand_row(reinterpret_cast<const Element*>(&value[i]))"
                                   : "value[i]")}});
  return fill_template(embedded_text("wgmma/load_vectors.cu.in"), holes);
}

/// Text that makes operand rows of copies of x.
std::string convert_run(const WgmmaGeometry& geometry) {
  const Problem& problem = geometry.problem();
  const WgmmaTiling& tiling = geometry.tiling();
  const std::int64_t chunk = geometry.chunk_channels();
  const bool rows = geometry.pixels().copies_rows();
  Holes holes = place_holes(geometry);
  holes.erase("image_offset");
  holes.merge(
      Holes{{"part", tiling.tile.images > 0 || rows     ? ""
                     : geometry.pixels().copies_boxes() ? "const int first = first_element(run_first, r);"
                                                        : "const int first = Part(run_first, r).first;"},
            {"raw_place", tiling.tile.images > 0 ? "image * (kChunkChannels * kRawPitch) + h * kW + w"
                          : rows                 ? "(row - row_first) * kW + w"
                                                 : "h * kW + w - first"},
            {"channel_exists",
             problem.c % chunk == 0 ? "" : fmt::format(" && c_first + {} < kChannels", channel_at(geometry, "c"))}});
  if (!geometry.loads_pairs()) {
    const std::string channel = channel_at(geometry, "c");
    holes.emplace("channel_copy", geometry.pixels().copies_periods() ? fmt::format("channel_copy({})", channel)
                                                                     : fmt::format("{} * kRawPitch", channel));
    // Few pixels are what a step waits for. Of many, reads in bursts hold up warps that store: B takes 4 % longer.
    holes.emplace("unroll", geometry.pixels().load_items() > 4 ? "1" : "4");
    // Boxes come rounded.
    const std::string_view operand = geometry.pixels().copies_boxes()
                                         ? "make_uint4(__float_as_uint(channel[0]), __float_as_uint(channel[1]), "
                                           "__float_as_uint(channel[2]), __float_as_uint(channel[3]))"
                                         : "operand_row(channel)";
    holes.emplace("store_rows",
                  tiling.splits_operands()
                      ? "if (pixel < kRunPixels)\n  " + store_rows(geometry, "destination", "", "value")
                      : fmt::format("#pragma unroll\n"
                                    "for (int slice = 0; slice < kSlices; ++slice) {{\n"
                                    "  const Element* const channel = value + slice * kOperandChannels;\n"
                                    "  const uint4 operand = {};\n"
                                    "  if (pixel < kRunPixels) destination[slice * kRunPixels] = operand;\n"
                                    "}}",
                                    operand));
  }
  return (geometry.pixels().copies_periods() ? std::string(embedded_text("wgmma/channel_copy.cu.in")) : "") +
         fill_template(
             embedded_text(geometry.loads_pairs() ? "wgmma/convert_pairs.cu.in" : "wgmma/convert_pixels.cu.in"), holes);
}

std::string load_run(const WgmmaGeometry& geometry) {
  if (geometry.loads_vectors()) return load_vectors(geometry);
  Holes holes = place_holes(geometry);
  holes.emplace("load_pixel", load_pixel(geometry));
  if (geometry.loads_pairs()) return fill_template(embedded_text("wgmma/load_pairs.cu.in"), holes);
  if (geometry.pixels().loads_phase_pairs()) {
    holes.merge(phase_pair_holes(geometry));
    return fill_template(embedded_text("wgmma/load_phase_pairs.cu.in"), holes);
  }
  holes.emplace("store_rows", store_rows(geometry, "destination", "", "value[i]"));
  holes.emplace("input_stride_w", geometry.problem().input.layout() == Layout::nchw ? "" : " * kInputStrideW");
  return fill_template(embedded_text("wgmma/load_pixels.cu.in"), holes);
}

}  // namespace

StepText step_text(const WgmmaGeometry& geometry) {
  const WgmmaTiling& tiling = geometry.tiling();
  const bool split = tiling.split_k > 1, images = tiling.tile.images > 0;
  return {.tile_number = split ? " / kSplits" : "",
          .steps = split
                       ? "const int first_step = number % kSplits * kStepsOfSplit;\nconst int end_step = first_step + "
                         "kStepsOfSplit < kSteps ? first_step + kStepsOfSplit : kSteps;\n"
                       : "",
          .first_step = split ? "first_step" : "0",
          .end_step = split ? "end_step" : "kSteps",
          .chunk = tiling.pipeline.filter_rows == 1 ? "step / kR" : "step",
          .filter_row = tiling.pipeline.filter_rows == 1 ? "step % kR" : "0",
          .run_first = images ? "tile.n + run * kImages" : "tile.first_output + run * kWindow",
          .run_row = tiling.stores_boxes() ? "kRunRow" : "kQ"};
}

std::string place_in_images(std::string_view position) {
  return fmt::format(
      "const int image = {0} / kImagePositions;\n"
      "const int row = ({0} - image * kImagePositions) / kPitch;\n"
      "const int column = {0} - image * kImagePositions - row * kPitch;\n",
      position);
}

namespace {

std::string warp_steps(const WgmmaGeometry& geometry) {
  const WgmmaTiling& tiling = geometry.tiling();
  const bool split = tiling.split_k > 1;
  return fill_template(
      embedded_text("wgmma/warp_steps.cu.in"),
      {{"first_step", split ? "number % kSplits * kStepsOfSplit" : "0"},
       {"end_step", split ? "step + kStepsOfSplit < kSteps ? step + kStepsOfSplit : kSteps" : "kSteps"}});
}

/// What brings a run's pixels, as functions that the file of tiles calls.
std::string load_functions(const WgmmaGeometry& geometry) {
  const WgmmaTiling& tiling = geometry.tiling();
  switch (tiling.producer.pixels) {
    case Pixels::loaded:
      return load_run(geometry);
    case Pixels::converted:
      return warp_steps(geometry) + "\n" + copy_pixels(geometry) + "\n" + convert_run(geometry);
    case Pixels::im2col:
      return copy_im2col(geometry) +
             (tiling.splits_im2col()
                  ? "\n" + std::string(embedded_text(tiling.f16_pairs ? "wgmma/split_pixels_f16.cu.in"
                                                                      : "wgmma/split_pixels.cu.in"))
                  : "");
    case Pixels::planes:
      return copy_planes(geometry);
    case Pixels::aligned:
      return warp_steps(geometry) + "\n" + copy_pixels(geometry) + "\n" + align_planes(geometry);
  }
  return {};
}

/// How producer warps go through tiles and steps.
std::string_view tiles_file(const WgmmaGeometry& geometry) {
  const WgmmaTiling& tiling = geometry.tiling();
  switch (tiling.producer.pixels) {
    case Pixels::loaded:
      return "wgmma/producer_loaded.cu.in";
    case Pixels::converted:
    case Pixels::aligned:
      return "wgmma/producer_converted.cu.in";
    case Pixels::im2col:
      if (tiling.splits_im2col()) return "wgmma/producer_split.cu.in";
      [[fallthrough]];
    case Pixels::planes:
      return "wgmma/producer_copied.cu.in";
  }
  return {};
}

}  // namespace

void add_load_constants(Constants& c, const WgmmaGeometry& geometry) {
  const Problem& problem = geometry.problem();
  const WgmmaTiling& tiling = geometry.tiling();
  const WgmmaPixels& pixels = geometry.pixels();
  if (tiling.copies_operands()) return;
  const bool vectors = geometry.loads_vectors(), pairs = geometry.loads_pairs();
  if (tiling.copies_pixels()) {
    c.group("Loading: a warp takes every fourth step, and TMA brings kCopiesAhead of them");
    c.add("kCopiesAhead", tiling.producer.copies_ahead)
        .add("kCopySlots", WgmmaTiling::kProducerWarps * tiling.producer.copies_ahead, "of all producer warps");
    if (tiling.aligns_pixels() || (tiling.tile.images == 0 && !pixels.copies_rows()))
      c.add("kVectorElements", 16 / problem.input.element_bytes());
    if (pixels.copies_periods()) add_box_constants(c, geometry);
    c.add("kRawPitch", pixels.raw_pitch(), "elements of a channel's copy")
        .add("kRawRunElements", pixels.raw_run_elements())
        .add("kRawBytes", pixels.raw_bytes(), "of a step");
    c.add("kRawFirstByte", WgmmaMemory(geometry).raw_first_byte());
  } else {
    c.group("Loading: kTeams teams of kTeamWarps warps");
    c.add("kTeamWarps", tiling.producer.team_warps).add("kTeams", 4 / tiling.producer.team_warps);
  }
  if (tiling.aligns_pixels()) return add_align_constants(c, geometry);
  if (vectors) c.add("kItemPixels", kWarpSize / tiling.pipeline.slices);
  if (pixels.loads_phase_pairs())
    c.add("kLoadItems", pixels.load_items(), "32 pairs each");
  else
    c.add("kLoadItemsOfPhase", pixels.load_items_of_phase(),
          vectors ? "kItemPixels each"
          : pairs ? "64 pixels each"
                  : "32 pixels each")
        .add("kLoadItems", pixels.load_items());
  if (tiling.loads_pixels()) c.add("kLoadBatch", tiling.producer.load_batch, "items of a warp in flight");
}

Holes load_holes(const WgmmaGeometry& geometry) {
  const WgmmaTiling& tiling = geometry.tiling();
  const StepText text = step_text(geometry);
  const bool copies = tiling.copies_pixels();
  Holes tiles = {{"producer_registers", move_registers(WgmmaRegisters(geometry).producer(),
                                                       WgmmaTiling::kLaunchRegisters, "kProducerRegisters")},
                 {"await_packing", await_packing(geometry)},
                 {"tile_number", text.tile_number},
                 {"chunk", text.chunk},
                 {"filter_row", text.filter_row},
                 {"run_first", text.run_first}};
  if (!tiling.copies_operands() || tiling.splits_im2col())
    tiles.merge(Holes{{"find_scale", splits_to_f16(tiling) ? find_scale("x_range") : ""},
                      {"scale", splits_to_f16(tiling) ? ", scale" : ""}});
  if (copies)
    tiles.merge(Holes{{"source", copied_tensor(geometry)}});
  else
    tiles.merge(Holes{{"steps", text.steps}, {"first_step", text.first_step}, {"end_step", text.end_step}});
  if (tiling.copies_operands() && !tiling.splits_im2col()) {
    tiles.emplace("copied_bytes", tiling.uses_im2col() ? "kIm2colBytes" : "kInputBytes");
    // A thread that only waits for stages, and arrives nowhere, could miss a phase: the others would not wait for it.
    tiles.emplace("issuing_threads",
                  !tiling.keeps_weights() ? "one thread copies pixels, another weights" : "one thread copies pixels");
    tiles.emplace("leave",
                  !tiling.keeps_weights() ? "if (lane != 0 || warp > 1) return;" : "if (threadIdx.x != 0) return;");
  }
  if (tiling.loads_pixels())
    tiles.merge(
        Holes{{"run_image", tiling.tile.images > 0 ? "run * static_cast<long long>(kImages * kInputStrideN) + " : ""}});
  Holes weights = weight_holes(geometry);
  for (const char* name : {"load_weights", "weights_of_tile", "load_weights_of_step"})
    tiles.insert(weights.extract(name));
  Holes holes = {{"first_copies", first_copies(geometry)},
                 {"load_functions", load_functions(geometry)},
                 {"load_tiles", fill_template(embedded_text(tiles_file(geometry)), tiles)}};
  holes.merge(weights);
  holes.merge(barrier_holes(geometry));
  return holes;
}

}  // namespace jitconv::codegen
