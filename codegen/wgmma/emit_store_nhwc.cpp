// The wgmma family's store to NHWC by threads: see templates/wgmma/store_nhwc.cu.in.
#include <algorithm>
#include <utility>

#include "codegen/text/epilogue.h"
#include "codegen/wgmma/emit.h"
#include "codegen/wgmma/store.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

constexpr int kConsumerThreads = 128;

constexpr std::string_view kAboutStore =
    "// Store: the channels of a position are neighbours in y. A consumer stages its 64 channels of kStoreColumns\n"
    "// positions at a time, [position][channel], and writes vectors of channels, those of a position by neighbouring\n"
    "// lanes: no sector of y is written twice. Positions that no output has are staged and not written.";
constexpr std::string_view kAboutPixels =
    "// Store: the channels of a phase are neighbours in dx. A consumer stages its 64 channels of kStoreColumns\n"
    "// positions at a time, [position][channel], and writes vectors of channels, those of a position by neighbouring\n"
    "// lanes. Positions that no output has are staged and not written.";

std::string store_vector_type(const WgmmaGeometry& geometry) {
  const WgmmaStore store(geometry);
  switch (store.written_bytes() * store.store_vector()) {
    case 16:
      return "uint4";
    case 8:
      return "uint2";
    case 4:
      return "unsigned";
    default:
      return "unsigned short";
  }
}

/// Whether a run may go on in another row of the grid, or another image, behind positions that no output has.
bool skips_gaps(const WgmmaGeometry& geometry) {
  const WgmmaTiling& tiling = geometry.tiling();
  if (tiling.tile.images > 0) return geometry.row_padding() > 0 || tiling.pipeline.filter_rows > 1;
  return geometry.row_padding() > 0 && geometry.row_ends() > 0;
}

/// Lines that find a vector's first element in y: of its phase, where pixels of dx are stored.
std::string first_element(const WgmmaGeometry& geometry) {
  const WgmmaTiling& tiling = geometry.tiling();
  const bool images = tiling.tile.images > 0;
  if (tiling.stores_pixels) return first_pixel_of_channels(geometry, "k_vector");
  return fmt::format(
      "const long long first_element = ({}) * (kGroups * kGroupK) + tile.group * kGroupK + k_vector;\n",
      images ? "static_cast<long long>(image_first) * kPlane" : "static_cast<long long>(tile.n) * kPlane + run_first");
}

/// Lines that find the output of a staged position, counted from the run's first.
std::string place(const WgmmaGeometry& geometry, std::string_view step) {
  const WgmmaTiling& tiling = geometry.tiling();
  if (tiling.stores_pixels)
    return place_of_pixel(geometry, fmt::format("first + {} * kStorePositions + thread / kVectors", step));
  Lines lines;
  if (!skips_gaps(geometry)) {
    lines.add(fmt::format("const int output = first + {} * kStorePositions + thread / kVectors;", step));
    lines.add("const bool stored = k_vector < kGroupK && output < outputs;");
    return lines.text();
  }
  lines.add(fmt::format("const int position = first + {} * kStorePositions + thread / kVectors;", step));
  if (tiling.tile.images > 0) {
    return lines.text() + place_in_images("position") +
           "const int output = (image * kP + row) * kQ + column;\n"
           "const bool stored = k_vector < kGroupK && row < kP && column < kQ && output < outputs;\n";
  }
  lines.add(geometry.row_ends() == 1 ? "const int rows = column_first + position < kPitch ? 0 : 1;"
                                     : "const int rows = (column_first + position) / kPitch;");
  lines.add("const int output = position - rows * kRowPadding;");
  lines.add("const bool stored =");
  lines.add("    k_vector < kGroupK && column_first + position - rows * kPitch < kQ && output < outputs;");
  return lines.text();
}

/// Reads the sums that a vector of the residual is added to, four at a time where there are as many.
std::string read_staged(const WgmmaGeometry& geometry) {
  const int vector = WgmmaStore(geometry).store_vector();
  Lines lines;
  lines.add("__device__ __forceinline__ void read_staged(float (&value)[kStoreVector], const float* staged) {");
  lines.add("#pragma unroll");
  if (vector < 4) {
    lines.add("  for (int e = 0; e < kStoreVector; ++e) value[e] = staged[e];");
  } else {
    lines.add("  for (int e = 0; e < kStoreVector; e += 4) {");
    lines.add("    const float4 quad = *reinterpret_cast<const float4*>(staged + e);");
    lines.add("    value[e] = quad.x, value[e + 1] = quad.y, value[e + 2] = quad.z, value[e + 3] = quad.w;");
    lines.add("  }");
  }
  lines.add("}");
  return lines.text();
}

/// Instructions of a thread that write what is staged at a time.
int store_steps(const WgmmaGeometry& geometry) {
  const WgmmaStore store(geometry);
  const int vector = store.store_vector();
  return store.store_columns() * kConsumerChannels / (kConsumerThreads * vector);
}

/// As many of them at a time as registers are sure to hold.
int store_batch(int steps) {
  int batch = std::min(steps, 8);
  while (steps % batch != 0) --batch;
  return batch;
}

}  // namespace

std::string outputs_of_run(const WgmmaGeometry& geometry) {
  const WgmmaTiling& tiling = geometry.tiling();
  Lines lines;
  if (tiling.tile.images > 0) {
    lines.add("const int image_first = tile.n + run * kImages;");
    lines.add("// Of the run; none if not positive.");
    lines.add("const int outputs = (kN - image_first < kImages ? kN - image_first : kImages) * kPlane;");
    return lines.text();
  }
  lines.add("const int run_first = tile.first_output + run * kWindow;");
  if (skips_gaps(geometry) || tiling.stores_pixels) lines.add("const int column_first = run_first % kQ;");
  lines.add("// Of the run; none if not positive.");
  lines.add("const int outputs = kPlane - run_first < kWindow ? kPlane - run_first : kWindow;");
  return lines.text();
}

std::string stage_transposed(const WgmmaGeometry& geometry, const std::string& place) {
  return fill_template(embedded_text("wgmma/stage_transposed.cu.in"),
                       {{"epilogue", epilogue_of_staged(geometry)}, {"place", place}});
}

void add_store_nhwc_constants(Constants& c, const WgmmaGeometry& geometry) {
  const WgmmaStore store(geometry);
  const int vector = store.store_vector();
  const int positions = kConsumerThreads * vector / kConsumerChannels, columns = store.store_columns();
  c.add("kStoreColumns", columns, "positions of a consumer that are staged at a time");
  c.add("kStagingPitch", store.staging_pitch(), "of a position");
  c.add("kStagingElements", columns * store.staging_pitch() / 4, "of a warp");
  c.add("kStoreVector", vector, "channels").add("kVectors", kConsumerChannels / vector, "of a position");
  c.add("kStorePositions", positions, "that a consumer writes at a time").add("kStoreSteps", columns / positions);
  c.add("kStoreBatch", store_batch(columns / positions), "of these at a time");
}

Holes store_nhwc_holes(const WgmmaGeometry& geometry, const std::string& channel_values) {
  const Problem& problem = geometry.problem();
  const WgmmaTiling& tiling = geometry.tiling();
  const Epilogue none;
  const Epilogue& epilogue = tiling.split_k > 1 ? none : problem.epilogue;
  const bool transposed = WgmmaStore(geometry).staged_bytes() == 2;
  const int steps = store_steps(geometry);
  const bool batches = store_batch(steps) < steps;
  const std::string step = batches ? "(step + i)" : "i", where = place(geometry, step);
  const std::string pixel_channels = tiling.stores_pixels ? "(kGroups * kPhaseChannels)" : "(kGroups * kGroupK)";

  std::string read_residual, write;
  if (epilogue.residual) {
    read_residual = fill_template(embedded_text("wgmma/read_residual_nhwc.cu.in"),
                                  {{"place", where}, {"pixel_channels", pixel_channels}});
    write = fill_template(
        embedded_text("wgmma/add_residual_nhwc.cu.in"),
        {{"place", where},
         {"step", step},
         {"pixel_channels", pixel_channels},
         {"epilogue", epilogue_lines(epilogue_parts(geometry).after, {.residual = "to_float(vector[i].at[e])"})}});
  } else {
    write = fill_template(embedded_text("wgmma/write_nhwc.cu.in"),
                          {{"place", where},
                           {"step", step},
                           {"pixel_channels", pixel_channels},
                           {"zero_pixels", zero_pixels(geometry, pixel_channels)}});
  }
  if (batches)
    write = fill_template(embedded_text("wgmma/write_batches_nhwc.cu.in"),
                          {{"write", std::exchange(read_residual, {}) + write}});
  const std::string store = fill_template(
      embedded_text("wgmma/store_nhwc.cu.in"),
      {{"about_store", std::string(tiling.stores_pixels ? kAboutPixels : kAboutStore)},
       {"run_first", outputs_of_run(geometry)},
       {"first_element", first_element(geometry)},
       {"staged_lane", transposed ? "Staged* const staged_lane =\n"
                                    "    staged + transposed_column(lane) * kStagingPitch + warp_first_row(warp) + "
                                    "transposed_first_row(lane);"
                                  : "Staged* const staged_lane = staged + accumulator_column(lane) * kStagingPitch + "
                                    "warp_first_row(warp) + lane_row(lane);"},
       {"y", where_stored(geometry)},
       {"residual_vector", epilogue.residual ? "const Element* const residual_vector = residual + first_element;" : ""},
       {"read_residual", read_residual},
       {"stage", transposed ? stage_transposed(geometry, "staged_lane + i * kStagingPitch")
                            : fill_template(embedded_text("wgmma/stage_channels.cu.in"),
                                            {{"epilogue", epilogue_of_staged(geometry)}})},
       {"write", write}});
  return {{"staged", transposed ? "Element" : "float"},
          {"boxes", ""},
          {"store_functions", ""},
          {"clear_staging", ""},  // all that is read has been staged
          {"read_staged", fmt::format("using StoreVector = {};  // kStoreVector channels of y\n{}",
                                      store_vector_type(geometry), epilogue.residual ? read_staged(geometry) : "")},
          {"channel_values", channel_values},
          {"await_stores", ""},
          {"store", store}};
}

}  // namespace jitconv::codegen
