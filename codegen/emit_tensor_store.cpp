// See emit_tensor.h.
#include "codegen/arithmetic.h"
#include "codegen/emit_tensor.h"
#include "codegen/emitter.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

/// What a multiplying thread needs of its two channels, loaded long before it is needed.
std::string channel_bias(const ConvPlan& plan, const TensorTiling& tiling) {
  if (!plan.spec.epilogue.bias || tiling.splits > 1) return {};
  return "float channel_bias[2];\n"
         "#pragma unroll\n"
         "for (int half = 0; half < 2; ++half) {\n"
         "  const int k = tile.k_tile * kBlockK + k_consumer + warp % 4 * 16 + half * 8 + lane / 4;\n"
         "  channel_bias[half] = k < kGroupK ? to_float(bias[tile.group * kGroupK + k]) : 0.0f;\n"
         "}\n";
}

std::string indented(std::string_view text) {
  Lines lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.add(fmt::format("{}{}", text.front() == '#' || text.front() == '\n' ? "" : "  ", text.substr(0, end)));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return lines.text();
}

/// Lines of a vector's part of the epilogue, for what cannot be done channel by channel: the residual and what follows.
std::string residual(const Epilogue& epilogue, const TensorTiling& tiling, std::string_view condition,
                     std::string_view offset) {
  if (!epilogue.residual || tiling.splits > 1) return {};
  Lines lines;
  lines.add("#pragma unroll");
  lines.add("for (int e = 0; e < kStoreElements; ++e) {");
  lines.add(fmt::format("  if ({}) value[e] += to_float(residual[{}]);", condition, offset));
  if (epilogue.activation != Activation::none) lines.add("  value[e] = activate(value[e]);");
  lines.add("}");
  return lines.text();
}

/// Whether outputs are staged as 16-bit elements.
bool stages_16bit(const ConvPlan& plan, const TensorTiling& tiling) { return tiling.staged_bytes(plan.spec) == 2; }

/// Lines that stage one channel's accumulators, without the positions that no output has.
std::string stage_values(const ConvPlan& plan, const TensorTiling& tiling) {
  const ConvSpec& spec = plan.spec;
  const TensorShape out = output_shape(spec);
  const std::string lines = epilogue_of_staged(spec, tiling);
  const bool narrow = stages_16bit(plan, tiling);
  // Two outputs at a time where both always lie in one row and at an even place in shared memory, whatever the channel.
  const std::int64_t gap = TensorTiling::gap(spec);
  const bool pairs = tiling.images > 0 || out.h * out.w % 2 == 0, pairs_in_rows = out.w % 2 == 0 && gap % 2 == 0;
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
                                   assign(std::string(column)), assign(fmt::format("{} - kGap", column)));
    } else {
      lines_of_store = fmt::format(
          "const int rows = (column_first + {0}) / kPitch;\nif (column_first + {0} - rows * kPitch < kQ) {1}\n", column,
          assign(fmt::format("{} - rows * kGap", column)));
    }
    return fill_template(embedded_text(in_pairs ? "tensor_stage_pairs.cu.in" : "tensor_stage_values.cu.in"),
                         {{"epilogue", lines}, {"store", lines_of_store}});
  };
  const int ends = tiling.row_ends(spec);
  const std::string in_one_row = fill(pairs, 0);
  if (ends == 0) return in_one_row;
  const std::string in_rows = fill(pairs && pairs_in_rows, ends);
  if (out.w < tiling.columns) return in_rows;
  return "if (run_first % kQ + kColumns <= kQ) {\n" + indented(in_one_row) + "} else {\n" + indented(in_rows) + "}\n";
}

/// A line that leaves the channels out that the other warpgroup stores.
std::string other_half(const TensorTiling& tiling) {
  return tiling.share == TensorTiling::Share::steps ? "if (half != consumer) continue;  // the other's" : "";
}

/// Whether whole vectors of staged images are outputs.
bool stores_vectors(const ConvSpec& spec, const TensorTiling& tiling) { return tiling.store_width(spec) > 1; }

/// Lines that read a vector of staged outputs, or one of them, into `value`.
std::string read_staged(bool vectors, bool narrow, std::string_view source) {
  if (vectors && narrow) return fmt::format("const uint4 value = *reinterpret_cast<const uint4*>({});", source);
  if (vectors) return fmt::format("float value[kStoreElements];\nread_staged(value, {});", source);
  return fmt::format("{} value = *({});", narrow ? "const Element" : "float", source);
}

constexpr std::string_view kReadStaged =
    "__device__ __forceinline__ void read_staged(float (&value)[kStoreElements], const float* staged) {\n"
    "#pragma unroll\n"
    "  for (int e = 0; e < kStoreElements; e += 4) {\n"
    "    const float4 quad = *reinterpret_cast<const float4*>(staged + e);\n"
    "    value[e] = quad.x, value[e + 1] = quad.y, value[e + 2] = quad.z, value[e + 3] = quad.w;\n"
    "  }\n"
    "}";

/// A line of a loop over k, where a tile may have fewer channels than it takes.
std::string end_of_channels(const ConvSpec& spec, const TensorTiling& tiling) {
  return spec.weight.k / spec.groups % tiling.block_k == 0 ? "" : "if (k_first + k >= kGroupK) break;";
}

std::string store_images(const ConvPlan& plan, const TensorTiling& tiling) {
  const ConvSpec& spec = plan.spec;
  const bool narrow = stages_16bit(plan, tiling), vectors = stores_vectors(spec, tiling);
  std::string residual_lines, store = "store_all_if(y_lane + k * kPlane, value, true);";
  if (vectors) {
    residual_lines = residual(spec.epilogue, tiling, "true", "y_lane - y + k * kPlane + e");
  } else {
    if (spec.epilogue.residual && tiling.splits == 1) {
      residual_lines = "value += to_float(residual[y_lane - y + k * kPlane]);\n";
      if (spec.epilogue.activation != Activation::none) residual_lines += "value = activate(value);\n";
    }
    store = fmt::format("y_lane[k * kPlane] = {};", tiling.splits > 1 || narrow ? "value" : "from_float(value)");
  }
  return fill_template(embedded_text("tensor_store_images.cu.in"),
                       {{"stage_values", stage_values(plan, tiling)},
                        {"other_half", other_half(tiling)},
                        {"end_of_channels", end_of_channels(spec, tiling)},
                        {"read_outputs", read_staged(vectors, narrow, "source + k * kStagingPitch")},
                        {"residual", residual_lines},
                        {"store_outputs", store},
                        {"y", where_stored(tiling)}});
}

/// What stores a run of whole vectors: a thread that asks the copy engine, or the lanes of a warp.
std::string store_inside(const ConvPlan& plan, const TensorTiling& tiling) {
  const ConvSpec& spec = plan.spec;
  if (tiling.stores_bulk(spec))
    return fill_template(embedded_text("tensor_store_bulk.cu.in"),
                         {{"end_of_channels", end_of_channels(spec, tiling)}, {"y", where_stored(tiling)}});
  return fill_template(embedded_text("tensor_store_vectors.cu.in"),
                       {{"read_vector", read_staged(true, stages_16bit(plan, tiling), "source")},
                        {"end_of_channels", end_of_channels(spec, tiling)},
                        {"residual_inside", residual(spec.epilogue, tiling, "stored",
                                                     "y_lane - y + late_k + i * (32 * kStoreElements) + e")},
                        {"y", where_stored(tiling)}});
}

std::string store_windows(const ConvPlan& plan, const TensorTiling& tiling) {
  const ConvSpec& spec = plan.spec;
  const bool narrow = stages_16bit(plan, tiling), bulk = tiling.stores_bulk(spec);
  return fill_template(
      embedded_text("tensor_store_nchw.cu.in"),
      {{"stage_values", stage_values(plan, tiling)},
       {"other_half", other_half(tiling)},
       {"column_first", tiling.row_ends(spec) == 0 ? ""
                        : tiling.row_ends(spec) == 1
                            ? "const int column_first = run_first % kQ + lane % 4 * 2;"
                            : "const int column_first = opaque(run_first % kQ + lane % 4 * 2);"},
       {"inside", tiling.lead(spec) == 0 ? "run_first + kWindow <= kPlane"
                                         : "run_first > 0 && run_first + (kWindow + kSectorElements) <= kPlane"},
       {"await_staging", await_staging(spec, tiling)},
       {"fence_staged", bulk ? "fence_async_proxy();" : ""},
       {"store_inside", store_inside(plan, tiling)},
       {"edge_unroll", tiling.window + tiling.lead(spec) <= kWarpSize * 16 / tiling.written_bytes(spec) ? "4" : "1"},
       {"read_vector", read_staged(true, narrow, "source")},
       {"residual", residual(spec.epilogue, tiling, "(mask >> e & 1u) != 0", "row + output + e")},
       {"y", where_stored(tiling)}});
}

}  // namespace

std::string await_staging(const ConvSpec& spec, const TensorTiling& tiling) {
  return tiling.stores_bulk(spec) ? "if (lane == 0) bulk_stores_wait_read<0>();  // of what was staged before" : "";
}

std::string where_stored(const TensorTiling& tiling) {
  return tiling.splits > 1 ? "partial_sums + number % kSplits * static_cast<long long>(kPartialSumStride)" : "y";
}

std::string epilogue_of_staged(const ConvSpec& spec, const TensorTiling& tiling) {
  const Epilogue epilogue = tiling.splits > 1 ? Epilogue{} : spec.epilogue;
  const Activation activation = epilogue.residual ? Activation::none : epilogue.activation;
  return (epilogue.bias ? "value += channel_bias[half];\n" : "") + epilogue_lines({.activation = activation}, "");
}

void add_tensor_store_constants(Constants& c, const ConvPlan& plan, const TensorTiling& tiling) {
  const ConvSpec& spec = plan.spec;
  if (tiling.stores_boxes()) return add_tensor_store_boxes_constants(c, spec, tiling);
  if (spec.output_layout == Layout::nhwc) return add_tensor_store_nhwc_constants(c, plan, tiling);
  c.add("kStagingPitch", tiling.staging_pitch(spec));
  c.add("kStagingElements", 8 * tiling.staging_pitch(spec), "of a warp");
  if (tiling.images > 0) {
    c.add("kStoreWidth", tiling.store_width(spec), "outputs of a lane");
    return;
  }
  c.add("kSectorElements", TensorTiling::sector_elements(spec)).add("kLead", tiling.lead(spec));
  const std::int64_t vector = 16 / tiling.written_bytes(spec);
  c.add("kStoreVectors", (tiling.window + tiling.lead(spec)) / vector);
  if (!tiling.stores_bulk(spec))
    c.add("kStoreSteps", ceil_div((tiling.window + tiling.lead(spec)) / vector, kWarpSize));
}

Holes tensor_store_holes(const ConvPlan& plan, const TensorTiling& tiling) {
  if (tiling.stores_boxes()) return tensor_store_boxes_holes(plan.spec, tiling, channel_bias(plan, tiling));
  if (plan.spec.output_layout == Layout::nhwc) return tensor_store_nhwc_holes(plan, tiling, channel_bias(plan, tiling));
  const bool narrow = stages_16bit(plan, tiling), images = tiling.images > 0;
  const bool reads_vectors = !narrow && (!images || stores_vectors(plan.spec, tiling));
  return {
      {"staged", narrow ? "Element" : "float"},
      {"boxes", ""},
      {"store_functions", images ? "" : std::string(embedded_text("tensor_runs_nchw.cu.in"))},
      {"clear_staging",
       "// A vector that is stored in part is read whole.\n"
       "for (int i = threadIdx.x; i < kConsumers * 4 * kStagingElements; i += kThreads) staging[i] = "
       "Staged{};"},
      {"read_staged", reads_vectors ? std::string(kReadStaged) : ""},
      {"channel_values", channel_bias(plan, tiling)},
      {"store", images ? store_images(plan, tiling) : store_windows(plan, tiling)},
      {"await_stores",
       tiling.stores_bulk(plan.spec) ? "if (lane == 0) bulk_stores_wait_read<0>();  // before the block ends" : ""}};
}

}  // namespace jitconv::codegen
