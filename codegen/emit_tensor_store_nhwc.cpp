// The tensor family's store to NHWC by threads: see templates/tensor_store_nhwc.cu.in.
#include <algorithm>
#include <utility>

#include "codegen/emit_tensor.h"
#include "codegen/emitter.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

constexpr int kConsumerThreads = 128, kConsumerChannels = 64;

std::string store_vector_type(const ConvSpec& spec, const TensorTiling& tiling) {
  switch (tiling.written_bytes(spec) * tiling.store_vector(spec)) {
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
bool skips_gaps(const ConvSpec& spec, const TensorTiling& tiling) {
  if (tiling.images > 0) return TensorTiling::gap(spec) > 0 || tiling.filter_rows > 1;
  return TensorTiling::gap(spec) > 0 && tiling.row_ends(spec) > 0;
}

/// Lines that say where a run starts and how many outputs it has.
std::string run_first(const ConvSpec& spec, const TensorTiling& tiling) {
  Lines lines;
  if (tiling.images > 0) {
    lines.add("const int image_first = tile.n + run * kImages;");
    lines.add("// Of the run; none if not positive.");
    lines.add("const int outputs = (kN - image_first < kImages ? kN - image_first : kImages) * kPlane;");
    return lines.text();
  }
  lines.add("const int run_first = tile.first_output + run * kWindow;");
  if (skips_gaps(spec, tiling)) lines.add("const int column_first = run_first % kQ;");
  lines.add("// Of the run; none if not positive.");
  lines.add("const int outputs = kPlane - run_first < kWindow ? kPlane - run_first : kWindow;");
  return lines.text();
}

/// Lines that find the output of a staged position, counted from the run's first.
std::string place(const ConvSpec& spec, const TensorTiling& tiling, std::string_view step) {
  Lines lines;
  if (!skips_gaps(spec, tiling)) {
    lines.add(fmt::format("const int output = first + {} * kStorePositions + thread / kVectors;", step));
    lines.add("const bool stored = k_vector < kGroupK && output < outputs;");
    return lines.text();
  }
  lines.add(fmt::format("const int position = first + {} * kStorePositions + thread / kVectors;", step));
  if (tiling.images > 0) {
    return lines.text() + place_in_images("position") +
           "const int output = (image * kP + row) * kQ + column;\n"
           "const bool stored = k_vector < kGroupK && row < kP && column < kQ && output < outputs;\n";
  }
  lines.add(tiling.row_ends(spec) == 1 ? "const int rows = column_first + position < kPitch ? 0 : 1;"
                                       : "const int rows = (column_first + position) / kPitch;");
  lines.add("const int output = position - rows * kGap;");
  lines.add("const bool stored =");
  lines.add("    k_vector < kGroupK && column_first + position - rows * kPitch < kQ && output < outputs;");
  return lines.text();
}

/// Reads the sums that a vector of the residual is added to, four at a time where there are as many.
std::string read_staged(const ConvSpec& spec, const TensorTiling& tiling) {
  const int vector = tiling.store_vector(spec);
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
int store_steps(const ConvSpec& spec, const TensorTiling& tiling) {
  const int vector = tiling.store_vector(spec);
  return tiling.store_columns(spec) * kConsumerChannels / (kConsumerThreads * vector);
}

/// As many of them at a time as registers are sure to hold.
int store_batch(int steps) {
  int batch = std::min(steps, 8);
  while (steps % batch != 0) --batch;
  return batch;
}

}  // namespace

std::string tensor_stage_transposed(const ConvSpec& spec, const TensorTiling& tiling, const std::string& place) {
  return fill_template(embedded_text("tensor_stage_transposed.cu.in"),
                       {{"epilogue", epilogue_of_staged(spec, tiling)}, {"place", place}});
}

void add_tensor_store_nhwc_constants(Constants& c, const ConvPlan& plan, const TensorTiling& tiling) {
  const int vector = tiling.store_vector(plan.spec);
  const int positions = kConsumerThreads * vector / kConsumerChannels, columns = tiling.store_columns(plan.spec);
  c.add("kStoreColumns", columns, "positions of a consumer that are staged at a time");
  c.add("kStagingPitch", tiling.staging_pitch(plan.spec), "of a position");
  c.add("kStagingElements", columns * tiling.staging_pitch(plan.spec) / 4, "of a warp");
  c.add("kStoreVector", vector, "channels").add("kVectors", kConsumerChannels / vector, "of a position");
  c.add("kStorePositions", positions, "that a consumer writes at a time").add("kStoreSteps", columns / positions);
  c.add("kStoreBatch", store_batch(columns / positions), "of these at a time");
}

Holes tensor_store_nhwc_holes(const ConvPlan& plan, const TensorTiling& tiling, const std::string& channel_values) {
  const ConvSpec& spec = plan.spec;
  const Epilogue none;
  const Epilogue& epilogue = tiling.splits > 1 ? none : spec.epilogue;
  const bool transposed = tiling.staged_bytes(spec) == 2;
  const int steps = store_steps(spec, tiling);
  const bool batches = store_batch(steps) < steps;
  const std::string step = batches ? "(step + i)" : "i", where = place(spec, tiling, step);

  std::string read_residual, write;
  if (epilogue.residual) {
    read_residual = fill_template(embedded_text("tensor_read_residual_nhwc.cu.in"), {{"place", where}});
    write = fill_template(embedded_text("tensor_add_residual_nhwc.cu.in"),
                          {{"place", where},
                           {"step", step},
                           {"activation", epilogue.activation == Activation::none ? "" : "value = activate(value);"}});
  } else {
    write = fill_template(embedded_text("tensor_write_nhwc.cu.in"), {{"place", where}, {"step", step}});
  }
  if (batches)
    write = fill_template(embedded_text("tensor_write_batches_nhwc.cu.in"),
                          {{"write", std::exchange(read_residual, {}) + write}});
  const std::string store = fill_template(
      embedded_text("tensor_store_nhwc.cu.in"),
      {{"run_first", run_first(spec, tiling)},
       {"first_output", tiling.images > 0 ? "static_cast<long long>(image_first) * kPlane"
                                          : "static_cast<long long>(tile.n) * kPlane + run_first"},
       {"staged_lane",
        transposed ? "Staged* const staged_lane =\n"
                     "    staged + (lane / 16 * 8 + lane % 8) * kStagingPitch + warp % 4 * 16 + lane / 8 % 2 * 8;"
                   : "Staged* const staged_lane = staged + lane % 4 * 2 * kStagingPitch + warp % 4 * 16 + lane / 4;"},
       {"y", where_stored(tiling)},
       {"residual_vector", epilogue.residual ? "const Element* const residual_vector = residual + first_element;" : ""},
       {"read_residual", read_residual},
       {"stage", transposed ? tensor_stage_transposed(spec, tiling, "staged_lane + i * kStagingPitch")
                            : fill_template(embedded_text("tensor_stage_channels.cu.in"),
                                            {{"epilogue", epilogue_of_staged(spec, tiling)}})},
       {"write", write}});
  return {
      {"staged", transposed ? "Element" : "float"},
      {"boxes", ""},
      {"store_functions", ""},
      {"clear_staging", ""},  // all that is read has been staged
      {"read_staged", fmt::format("using StoreVector = {};  // kStoreVector channels of y\n{}",
                                  store_vector_type(spec, tiling), epilogue.residual ? read_staged(spec, tiling) : "")},
      {"channel_values", channel_values},
      {"await_stores", ""},
      {"store", store}};
}

}  // namespace jitconv::codegen
