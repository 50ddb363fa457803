// The wgmma family's store to NCHW: see templates/wgmma/store_nchw.cu.in.
#include "codegen/arithmetic.h"
#include "codegen/text/epilogue.h"
#include "codegen/text/phases_text.h"
#include "codegen/text/staging.h"
#include "codegen/wgmma/emit.h"
#include "codegen/wgmma/store.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

/// What a consumer thread needs of its two channels, loaded long before it is needed.
std::string channel_bias(const WgmmaGeometry& geometry) {
  const WgmmaTiling& tiling = geometry.tiling();
  if (!geometry.problem().epilogue.bias || tiling.split_k > 1) return {};
  if (tiling.folds_columns()) return bias_of_folded_rows("tile.group * kGroupK + ");
  const Phases& phases = geometry.problem().phases;
  return bias_of_rows("tile.k_tile * kBlockK + k_consumer + ",
                      tiling.stores_pixels ? "tile.group * kPhaseChannels + " + channel_of_phase(phases, "k")
                                           : "tile.group * kGroupK + k");
}

/// Lines of a vector's part of the epilogue: the residual and what follows, or what follows the sum of folded columns.
std::string epilogue_of_vector(const WgmmaGeometry& geometry, std::string_view condition, std::string_view offset) {
  return vector_epilogue(epilogue_parts(geometry).after, condition, offset);
}

/// Whether outputs are staged as 16-bit elements.
bool stages_16bit(const WgmmaGeometry& geometry) { return WgmmaStore(geometry).staged_bytes() == 2; }

/// Lines that stage one channel's accumulators, without the positions that no output has.
std::string stage_values(const WgmmaGeometry& geometry) {
  const Problem& problem = geometry.problem();
  const WgmmaTiling& tiling = geometry.tiling();
  const std::string lines = epilogue_of_staged(geometry);
  const bool narrow = stages_16bit(geometry);
  // Two outputs at a time where both always lie in one row and at an even place in shared memory, whatever the channel.
  const std::int64_t gap = geometry.row_padding();
  const bool pairs = tiling.tile.images > 0 || tiling.stores_pixels || problem.output_plane() % 2 == 0,
             pairs_in_rows = problem.columns.output % 2 == 0 && gap % 2 == 0;
  const auto fill = [&](bool in_pairs, int row_ends) {
    const std::string_view column = in_pairs ? "i * 8" : "column";
    const std::string value =
        !in_pairs ? (narrow ? "from_float(value)" : "value") : (narrow ? "element_pair(pair.x, pair.y)" : "pair");
    const std::string target = !in_pairs ? "staged_lane[{}]"
                               : narrow  ? "*reinterpret_cast<unsigned*>(staged_lane + ({}))"
                                         : "*reinterpret_cast<float2*>(staged_lane + ({}))";
    const auto assign = [&](const std::string& at) {
      return fmt::format("{} = {};", fmt::format(fmt::runtime(target), at), value);
    };
    std::string lines_of_store;
    if (row_ends == 0) {
      lines_of_store = assign(std::string(column)) + "\n";
    } else if (row_ends == 1) {
      lines_of_store = fmt::format("if ({0} < kQ - column_first) {1}\nif ({0} >= kPitch - column_first) {2}\n", column,
                                   assign(std::string(column)), assign(fmt::format("{} - kRowPadding", column)));
    } else {
      lines_of_store = fmt::format(
          "const int rows = (column_first + {0}) / kPitch;\nif (column_first + {0} - rows * kPitch < kQ) {1}\n", column,
          assign(fmt::format("{} - rows * kRowPadding", column)));
    }
    return fill_template(embedded_text(in_pairs ? "wgmma/stage_pairs.cu.in" : "wgmma/stage_values.cu.in"),
                         {{"epilogue", lines}, {"store", lines_of_store}});
  };
  const int ends = geometry.row_ends();
  const std::string in_one_row = fill(pairs, 0);
  if (ends == 0) return in_one_row;
  const std::string in_rows = fill(pairs && pairs_in_rows, ends);
  if (problem.columns.output < tiling.tile.columns) return in_rows;
  return "if (run_first % kQ + kColumns <= kQ) {\n" + indented(in_one_row) + "} else {\n" + indented(in_rows) + "}\n";
}

/// A line that leaves the channels out that the other warpgroup stores.
std::string other_half(const WgmmaGeometry& geometry) {
  const WgmmaTiling& tiling = geometry.tiling();
  return tiling.schedule == WgmmaTiling::Schedule::sliced_k ? "if (half != consumer) continue;  // the other's" : "";
}

/// Whether whole vectors of staged images are outputs.
bool stores_vectors(const WgmmaGeometry& geometry) { return WgmmaStore(geometry).store_width() > 1; }

/// Lines that read a vector of staged outputs, or one of them, into `value`.
std::string read_staged(bool vectors, bool narrow, std::string_view source) {
  if (vectors && narrow) return fmt::format("const uint4 value = *reinterpret_cast<const uint4*>({});", source);
  if (vectors) return fmt::format("float value[kStoreElements];\nread_staged(value, {});", source);
  return fmt::format("{} value = *({});", narrow ? "const Element" : "float", source);
}

/// Whether several staged rows are sums of one channel.
bool sums_rows(const WgmmaGeometry& geometry) { return geometry.tiling().tile.folded_columns > 2; }

/// Lines that read a vector of staged outputs of a run.
std::string read_vector(const WgmmaGeometry& geometry) {
  return sums_rows(geometry) ? read_staged_vector(true) : read_staged(true, stages_16bit(geometry), "source");
}

/// Channels that a warp has staged.
std::string staged_channels(const WgmmaGeometry& geometry) {
  return geometry.tiling().folds_columns() ? "kWarpK" : "kHalfRows";
}

/// Lines that stage one channel's accumulators where the planes of eight channels follow each other. Of the eight
/// positions that a warp stages at a time, the first ones may be of one image and the others of the next.
std::string stage_planes(const WgmmaGeometry& geometry) {
  if (geometry.plane() % 2 == 0)
    return fill_template(
        embedded_text("wgmma/stage_pairs.cu.in"),
        {{"epilogue", epilogue_of_staged(geometry)},
         {"store",
          "const int image = i * 8 / kImagePositions +\n"
          "                  (i * 8 % kImagePositions + accumulator_column(lane) >= kImagePositions ? 1 : 0);\n"
          "if (i * 8 + accumulator_column(lane) - image * kImagePositions < kPlane && image < kImages)\n"
          "  *reinterpret_cast<unsigned*>(staged_lane + (i * 8 + image * kImageShift)) = element_pair(pair.x, "
          "pair.y);\n"}});
  return fill_template(
      embedded_text("wgmma/stage_values.cu.in"),
      {{"epilogue", epilogue_of_staged(geometry)},
       {"store",
        "const int first = i / 2 * 8, offset = column - first + accumulator_column(lane);\n"
        "const int image = first / kImagePositions + (first % kImagePositions + offset >= kImagePositions ? 1 : 0);\n"
        "if (column + accumulator_column(lane) - image * kImagePositions < kPlane && image < kImages)\n"
        "  staged_lane[column + image * kImageShift] = from_float(value);\n"}});
}

std::string store_planes(const WgmmaGeometry& geometry) {
  const bool whole = geometry.problem().k % geometry.tiling().tile.channels == 0;
  return fill_template(embedded_text("wgmma/store_planes.cu.in"),
                       {{"stage_planes", stage_planes(geometry)},
                        {"await_staging", await_staging(geometry)},
                        {"has_channels", whole ? "" : " && k_first < kGroupK"}});
}

std::string store_images(const WgmmaGeometry& geometry) {
  const bool narrow = stages_16bit(geometry), vectors = stores_vectors(geometry);
  std::string residual_lines, store = "store_all_if(y_lane + k * kPlane, value, true);";
  if (vectors) {
    residual_lines = epilogue_of_vector(geometry, "", "y_lane - y + k * kPlane + e");
  } else {
    residual_lines =
        epilogue_lines(epilogue_parts(geometry).after, {.residual = residual_at("y_lane - y + k * kPlane")});
    store = fmt::format("y_lane[k * kPlane] = {};",
                        WgmmaStore(geometry).stores_sums() || narrow ? "value" : "from_float(value)");
  }
  return fill_template(embedded_text("wgmma/store_images.cu.in"),
                       {{"stage_values", stage_values(geometry)},
                        {"other_half", other_half(geometry)},
                        {"end_of_channels", end_of_channels(geometry)},
                        {"read_outputs", read_staged(vectors, narrow, "source + k * kStagingPitch")},
                        {"residual", residual_lines},
                        {"store_outputs", store},
                        {"y", where_stored(geometry)}});
}

std::string store_pixels(const WgmmaGeometry& geometry) {
  const Phases& phases = geometry.problem().phases;
  const bool narrow = stages_16bit(geometry);
  // Zeros have no epilogue (phases.h).
  const std::string value = phases.columns.has_zeros()
                                ? narrow ? "pixels.at[e] = e == 0 ? source[k * kStagingPitch] : from_float(0.0f);"
                                         : "pixels.at[e] = from_float(e == 0 ? source[k * kStagingPitch] : 0.0f);"
                            : narrow ? "pixels.at[e] = source[(k * kColumnPhases + e) * kStagingPitch];"
                                     : "float value = source[(k * kColumnPhases + e) * kStagingPitch];\n" +
                                           epilogue_lines(epilogue_parts(geometry).after,
                                                          {.residual = residual_at("y_channel - y + element + e")}) +
                                           "pixels.at[e] = from_float(value);";
  return fill_template(embedded_text("wgmma/store_pixels.cu.in"),
                       {{"run_first", outputs_of_run(geometry)},
                        {"other_half", other_half(geometry)},
                        {"first_pixel", first_pixel_of_channels(geometry, "k_first")},
                        {"stage_values", stage_values(geometry)},
                        {"first_w", first_pixel(phases.columns, "Column", "column_phase")},
                        {"place", place_of_pixel(geometry, "item / kPositionStores")},
                        {"zero_pixels", zero_pixels(geometry, "")},
                        {"value", value}});
}

/// What stores a run of whole vectors: a thread, by TMA, or the lanes of a warp.
std::string store_inside(const WgmmaGeometry& geometry) {
  if (WgmmaStore(geometry).stores_bulk())
    return fill_template(embedded_text("wgmma/store_bulk.cu.in"),
                         {{"end_of_channels", end_of_channels(geometry)}, {"y", where_stored(geometry)}});
  return fill_template(
      embedded_text("wgmma/store_vectors.cu.in"),
      {{"read_vector", read_vector(geometry)},
       {"channels", staged_channels(geometry)},
       {"end_of_channels", end_of_channels(geometry)},
       {"epilogue", epilogue_of_vector(geometry, "stored", "y_lane - y + offset_k + i * (32 * kStoreElements) + e")},
       {"y", where_stored(geometry)}});
}

/// What stores a run that begins or ends a plane.
std::string store_edges(const WgmmaGeometry& geometry) {
  const WgmmaTiling& tiling = geometry.tiling();
  const WgmmaStore store(geometry);
  const bool one_step = tiling.tile.window + store.lead() <= kWarpSize * 16 / store.written_bytes();
  return fill_template(embedded_text("wgmma/store_edges.cu.in"),
                       {{"edge_unroll", one_step ? "4" : "1"},
                        {"channels", staged_channels(geometry)},
                        {"read_vector", read_vector(geometry)},
                        {"epilogue", epilogue_of_vector(geometry, "(mask >> e & 1u) != 0", "row + output + e")},
                        {"y", where_stored(geometry)}});
}

/// Whether a run and what stores it in vectors lie inside its plane, whatever the channel.
std::string inside(const WgmmaGeometry& geometry) {
  return WgmmaStore(geometry).lead() == 0 ? "run_first + kWindow <= kPlane"
                                          : "run_first > 0 && run_first + (kWindow + kSectorElements) <= kPlane";
}

/// A channel's outputs of folded columns are one run of y, as others are.
std::string store_folded_nchw(const WgmmaGeometry& geometry) {
  return store_folded(geometry,
                      {.staged_row = "const int plane_first = (tile.n * kGroups + tile.group) * kGroupK;\n"
                                     "Staged* const staged_row = staged + (lane_row(lane) * kStagingPitch + "
                                     "accumulator_column(lane) + kAlignmentPadding -\n"
                                     "                                     alignment_offset(plane_first + k_first + "
                                     "lane / kRowLanes % kWarpK));",
                       .store = fill_template(embedded_text("wgmma/store_folded_runs.cu.in"),
                                              {{"inside", inside(geometry)},
                                               {"store_inside", store_inside(geometry)},
                                               {"store_edges", store_edges(geometry)}})});
}

std::string store_windows(const WgmmaGeometry& geometry) {
  return fill_template(embedded_text("wgmma/store_nchw.cu.in"),
                       {{"stage_values", stage_values(geometry)},
                        {"other_half", other_half(geometry)},
                        {"column_first", column_first(geometry, "")},
                        {"inside", inside(geometry)},
                        {"await_staging", await_staging(geometry)},
                        {"fence_staged", WgmmaStore(geometry).stores_bulk() ? "fence_async_proxy();" : ""},
                        {"store_inside", store_inside(geometry)},
                        {"store_edges", store_edges(geometry)}});
}

}  // namespace

std::string await_staging(const WgmmaGeometry& geometry) {
  return WgmmaStore(geometry).uses_tma() ? "if (lane == 0) bulk_stores_wait_read<0>();  // of what was staged before"
                                         : "";
}

std::string where_stored(const WgmmaGeometry& geometry) {
  const WgmmaTiling& tiling = geometry.tiling();
  return tiling.split_k > 1 ? "partial_sums + number % kSplits * static_cast<long long>(kPartialSumStride)" : "y";
}

std::string end_of_channels(const WgmmaGeometry& geometry) {
  const Problem& problem = geometry.problem();
  const WgmmaTiling& tiling = geometry.tiling();
  return problem.k % (tiling.tile.channels / tiling.tile.folded_columns) == 0 ? ""
                                                                              : "if (k_first + k >= kGroupK) break;";
}

std::string column_first(const WgmmaGeometry& geometry, std::string_view before) {
  if (geometry.row_ends() == 0) return {};
  const std::string first = fmt::format("run_first % kQ + accumulator_column(lane){}", before);
  return fmt::format("const int column_first = {};",
                     geometry.row_ends() == 1 ? first : fmt::format("opaque({})", first));
}

StagedEpilogue epilogue_parts(const WgmmaGeometry& geometry) {
  const WgmmaTiling& tiling = geometry.tiling();
  if (tiling.split_k > 1) return {};
  return staged_epilogue(geometry.problem().epilogue, !tiling.folds_columns());
}

std::string epilogue_of_staged(const WgmmaGeometry& geometry) {
  return epilogue_lines(epilogue_parts(geometry).before, {.bias = "channel_bias[half]"});
}

void add_store_constants(Constants& c, const WgmmaGeometry& geometry) {
  const Problem& problem = geometry.problem();
  const WgmmaTiling& tiling = geometry.tiling();
  const WgmmaStore store(geometry);
  if (tiling.stores_boxes()) return add_store_boxes_constants(c, geometry);
  if (!store.stages_runs()) return add_store_nhwc_constants(c, geometry);
  if (!store.stores_planes()) c.add("kStagingPitch", store.staging_pitch());
  c.add("kStagingElements", WgmmaStore::kStagedChannels * store.staging_pitch(), "of a warp");
  if (tiling.stores_pixels) return;
  if (tiling.folds_columns()) c.add("kFoldHalo", store.staged_before(), "places for sums of outputs before the run");
  if (problem.output.layout() == Layout::nhwc) {
    c.add("kStoreVector", store.run_store_vector(), "channels of a position that a lane writes at a time");
    return;
  }
  if (store.stores_planes()) {
    c.add("kImageShift", WgmmaStore::kStagedChannels * geometry.plane() - geometry.image_positions(),
          "from where an image's outputs lie among the positions to where they are staged");
    return;
  }
  if (tiling.tile.images > 0) {
    c.add("kStoreWidth", store.store_width(), "outputs of a lane");
    return;
  }
  c.add("kSectorElements", geometry.sector_elements()).add("kAlignmentPadding", store.lead());
  const std::int64_t vector = 16 / store.written_bytes();
  c.add("kStoreVectors", (tiling.tile.window + store.lead()) / vector);
  if (!store.stores_bulk()) c.add("kStoreSteps", ceil_div((tiling.tile.window + store.lead()) / vector, kWarpSize));
}

Holes store_holes(const WgmmaGeometry& geometry) {
  const WgmmaTiling& tiling = geometry.tiling();
  if (tiling.stores_boxes()) return store_boxes_holes(geometry, channel_bias(geometry));
  if (!WgmmaStore(geometry).stages_runs()) return store_nhwc_holes(geometry, channel_bias(geometry));
  if (geometry.problem().output.layout() == Layout::nhwc)
    return store_folded_nhwc_holes(geometry, channel_bias(geometry));
  const bool narrow = stages_16bit(geometry), images = tiling.tile.images > 0;
  const bool planes = WgmmaStore(geometry).stores_planes();
  const bool pixels = tiling.stores_pixels, reads_vectors = !narrow && !pixels && (!images || stores_vectors(geometry));
  return {
      {"staged", narrow ? "Element" : "float"},
      {"boxes", ""},
      {"store_functions", images || pixels ? "" : std::string(embedded_text("wgmma/alignment_offset.cu.in"))},
      {"clear_staging",
       planes || pixels ? "" : "// A vector that is stored in part is read whole.\n" + std::string(kClearStaging)},
      {"read_staged", reads_vectors ? read_staged_functions(sums_rows(geometry)) : ""},
      {"channel_values", channel_bias(geometry)},
      {"store", pixels                   ? store_pixels(geometry)
                : planes                 ? store_planes(geometry)
                : images                 ? store_images(geometry)
                : tiling.folds_columns() ? store_folded_nchw(geometry)
                                         : store_windows(geometry)},
      {"await_stores",
       WgmmaStore(geometry).uses_tma() ? "if (lane == 0) bulk_stores_wait_read<0>();  // before the block ends" : ""}};
}

}  // namespace jitconv::codegen
