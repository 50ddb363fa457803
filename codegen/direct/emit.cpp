// Prints the direct family: templates/direct/.
#include <algorithm>

#include "codegen/arithmetic.h"
#include "codegen/direct/family.h"
#include "codegen/text/epilogue.h"
#include "codegen/text/layout_comment.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

/// How weights are dealt to warps: units of 8 taps x 4 channels, first along channels.
struct WeightCopy {
  std::int64_t warps_k, taps_per_step, steps_k, steps_tap;
  WeightCopy(const DirectTiling& tiling, std::int64_t chunk_taps) {
    const std::int64_t units_k = ceil_div(tiling.block_k(), 4);
    warps_k = units_k < tiling.warps() ? units_k : tiling.warps();
    while (tiling.warps() % warps_k != 0) --warps_k;
    steps_k = ceil_div(units_k, warps_k);
    taps_per_step = tiling.warps() / warps_k * 8;
    steps_tap = ceil_div(chunk_taps, taps_per_step);
  }
};

std::string constants(const KernelPlan& kernel, const DirectTiling& tiling) {
  const Problem& problem = kernel.problem;
  const std::int64_t channels = problem.c, group_k = problem.k;
  const std::int64_t taps = problem.taps(), chunk_taps = tiling.chunk_c * taps;
  const View::Strides& in = problem.input.stride;
  const View::Strides& y = problem.output.stride;
  const WeightCopy weights(tiling, chunk_taps);
  const bool nchw_out = problem.output.layout() == Layout::nchw;

  Constants c;
  add_problem_constants(c, kernel.problem);
  c.add("kGroups", problem.groups).add("kChannels", channels, "of a group").add("kGroupK", group_k);
  c.add("kTaps", taps).add("kFilterSize", channels * taps, "elements of one output channel's filter");
  c.add("kInputStrideN", in.n).add("kInputStrideC", in.c).add("kInputStrideH", in.h);
  if (problem.input.layout() == Layout::nhwc) c.add("kInputStrideW", in.w);
  c.add("kOutputStrideN", y.n);
  if (nchw_out) c.add("kOutputStrideC", y.c);
  c.add("kOutputStrideH", y.h);
  if (!nchw_out) c.add("kOutputStrideW", y.w);

  c.group("Outputs of a thread, of a warp's lanes and of a block's warps");
  c.add("kThreadK", tiling.thread_k).add("kThreadP", tiling.thread_p).add("kThreadQ", tiling.thread_q);
  c.add("kLanesP", tiling.lanes_p).add("kLanesQ", tiling.lanes_q);
  c.add("kWarpP", tiling.warp_p()).add("kWarpQ", tiling.warp_q());
  c.add("kWarpsK", tiling.warps_k).add("kWarpsP", tiling.warps_p).add("kWarpsQ", tiling.warps_q);
  c.add("kWarps", tiling.warps())
      .add("kThreads", tiling.threads())
      .add("kMinBlocksPerSm", kernel.launch.min_blocks_per_sm);
  c.add("kBlockK", tiling.block_k()).add("kBlockP", tiling.block_p()).add("kBlockQ", tiling.block_q());
  c.add("kTilesK", ceil_div(group_k, tiling.block_k())).add("kTilesP", ceil_div(problem.rows.output, tiling.block_p()));
  c.add("kTilesQ", ceil_div(problem.columns.output, tiling.block_q()));

  c.group("Pipeline: stages of kChunkC input channels, each an input tile [c][h][w] and weights [c][r][s][k]");
  c.add("kStages", tiling.stages).add("kChunkC", tiling.chunk_c).add("kChunks", ceil_div(channels, tiling.chunk_c));
  c.add("kUnrollC", tiling.unroll_c);
  c.add("kInputRows", tiling.input_rows(problem)).add("kInputPitch", tiling.input_pitch);
  c.add("kWindow", tiling.window(problem), "floats of an input row that one thread reads");
  c.add("kColumnShift", tiling.column_shift, "columns before the first tap, for aligned copies");
  if (problem.input.layout() == Layout::nchw) {
    c.add("kCopyVector", tiling.copy_vector, "elements of one copy");
    c.add("kInputRowSteps", ceil_div(tiling.chunk_c * tiling.input_rows(problem), tiling.warps()),
          "rows copied by one warp");
    c.add("kInputSteps", ceil_div(tiling.input_pitch, kWarpSize * tiling.copy_vector), "copies of a row by one lane");
  }
  c.add("kInputStageFloats", tiling.input_stage_floats(problem));
  c.add("kStageFloats", tiling.input_stage_floats(problem) + tiling.weight_stage_floats(problem));
  c.add("kChunkTaps", chunk_taps).add("kWeightPitch", tiling.weight_pitch);
  c.add("kWeightWarpsK", weights.warps_k).add("kWeightTapsPerStep", weights.taps_per_step);
  c.add("kWeightStepsK", weights.steps_k).add("kWeightStepsTap", weights.steps_tap);

  c.group("Store");
  if (nchw_out) {
    const std::int64_t sector = 32 / problem.output.element_bytes();
    c.add("kSectorElements", sector).add("kStoreChannels", tiling.store_channels);
    c.add("kStorePitch", tiling.warp_q() + 4).add("kStoreStageFloats", tiling.store_stage_floats());
    c.add("kStoreSteps", ceil_div(tiling.warp_q() + sector - 1, kWarpSize));
  } else {
    c.add("kStoreVector", tiling.store_vector(problem), "channels written by one instruction");
  }
  std::string text = c.text();
  text.pop_back();
  return text;
}

std::string layout_comment(bool nchw_out) {
  return LayoutComment("float")
      .memory("0", "kStages stages of kStageFloats: the input of a chunk, [c][h][w]")
      .memory("kInputStageFloats", "in each stage, behind it: weights of the chunk, [c][r][s][k]")
      .memory("0", fmt::format("in their place, at the end: {} outputs of each warp, on their way to y",
                               nchw_out ? "kStoreStageFloats" : "32 * kThreadK"))
      .text();
}

std::string asserts(const KernelPlan& kernel) {
  Lines lines;
  lines.add("// The numbers above are redundant; they must agree.");
  lines.add(
      "static_assert(kLanesP * kLanesQ == 32 && kWarps == kWarpsK * kWarpsP * kWarpsQ && kThreads == 32 * kWarps);");
  lines.add(
      "static_assert(kThreadQ * kStrideW % 4 == 0 && kInputPitch % 4 == 0, \"rows are read 16 bytes at a time\");");
  lines.add("static_assert(kThreadK * kWarpsK == kBlockK && kBlockK <= kWeightPitch);");
  if (kernel.problem.input.layout() == Layout::nchw) lines.add("static_assert(kInputSteps <= 32);");
  if (kernel.problem.output.layout() == Layout::nchw) lines.add("static_assert(kThreadK % kStoreChannels == 0);");
  lines.add("static_assert(kInputRows == (kBlockP - 1) * kStrideH + (kR - 1) * kDilationH + 1);");
  lines.add("static_assert(kWindow >= kColumnShift + (kThreadQ - 1) * kStrideW + (kS - 1) * kDilationW + 1);");
  lines.add("static_assert(kInputPitch >= (kBlockQ - kThreadQ) * kStrideW + kWindow);");
  lines.add(fmt::format("static_assert(sizeof(float) * kStages * kStageFloats <= {});", kernel.launch.shared_bytes));
  if (kernel.problem.output.layout() == Layout::nchw)
    lines.add(
        fmt::format("static_assert(sizeof(float) * kWarps * kStoreStageFloats <= {});", kernel.launch.shared_bytes));
  else
    lines.add(fmt::format("static_assert(sizeof(float) * kThreads * kThreadK <= {});", kernel.launch.shared_bytes));
  return lines.text();
}

/// `// begin taps` ... `// end taps`: the body for one input channel, one line per tap.
std::string taps(const KernelPlan& kernel, const DirectTiling& tiling) {
  const Problem& problem = kernel.problem;
  const std::int64_t row_step = tiling.lanes_p * problem.rows.stride;  // input rows between a thread's output rows
  const std::int64_t rows_in_body = tiling.unroll_rows ? problem.rows.taps : 1;
  const std::string indent = tiling.unroll_rows ? "" : "  ";
  Lines lines;
  lines.add("// begin taps");
  if (!tiling.unroll_rows) {
    lines.add("#pragma unroll 1");
    lines.add("for (int r = 0; r < kR; ++r) {");
    lines.add("  const float* input_r = input_c + r * (kDilationH * kInputPitch);");
    lines.add("  const float* weights_r = weights_c + r * (kS * kWeightPitch);");
  }
  std::vector<std::int64_t> loaded;
  for (std::int64_t r = 0; r < rows_in_body; ++r) {
    for (std::int64_t p = 0; p < tiling.thread_p; ++p) {
      const std::int64_t row = p * row_step + r * problem.rows.dilation;
      if (std::find(loaded.begin(), loaded.end(), row) != loaded.end()) continue;
      loaded.push_back(row);
      lines.add(fmt::format("{}const Row in_h{}({} + {} * kInputPitch);", indent, row,
                            tiling.unroll_rows ? "input_c" : "input_r", row));
    }
    for (std::int64_t s = 0; s < problem.columns.taps; ++s) {
      std::string windows;
      for (std::int64_t p = 0; p < tiling.thread_p; ++p)
        windows += fmt::format("{}in_h{} + {}", p == 0 ? "" : ", ", p * row_step + r * problem.rows.dilation,
                               tiling.column_shift + s * problem.columns.dilation);
      lines.add(fmt::format("{}tap(acc, {} + {} * kWeightPitch, {{{}}});{}", indent,
                            tiling.unroll_rows ? "weights_c" : "weights_r", r * problem.columns.taps + s, windows,
                            tiling.unroll_rows ? fmt::format("  // r{}s{}", r, s) : fmt::format("  // s{}", s)));
    }
  }
  if (!tiling.unroll_rows) lines.add("}");
  lines.add("// end taps");
  return lines.text();
}

}  // namespace

KernelText direct::emit(const KernelPlan& kernel, std::string_view name) {
  const auto& tiling = std::get<DirectTiling>(kernel.tiling);
  const Problem& problem = kernel.problem;
  const Epilogue& epilogue = problem.epilogue;
  const bool whole_chunks = problem.c % tiling.chunk_c == 0;
  const bool whole_tiles_k = problem.k % tiling.block_k() == 0;
  const bool nchw_in = problem.input.layout() == Layout::nchw, nchw_out = problem.output.layout() == Layout::nchw;
  const WeightCopy weights(tiling, tiling.chunk_c * problem.taps());

  std::string weight_valid = whole_tiles_k ? "" : "k_block + weight_k + j * kNextK < kGroupK";
  if (!whole_chunks)
    weight_valid += fmt::format("{}chunk * kChunkTaps + tap_index < kFilterSize", weight_valid.empty() ? "" : " && ");
  if (weight_valid.empty()) weight_valid = "true";

  const Holes input_holes = {
      {"row_unroll", std::to_string(std::min<std::int64_t>(
                         2, ceil_div(tiling.chunk_c * tiling.input_rows(problem), tiling.warps())))},
      {"row_inside", fmt::format("h >= 0 && h < kH{}", whole_chunks ? "" : " && c < kChannels")},
  };
  const StoredText stored = stored_text(problem);
  Holes store_holes;
  if (nchw_out) {
    store_holes = {{"stored", stored.element},
                   {"channel_values", channel_values(epilogue, "group * kGroupK + k_first + k_stage + k")},
                   {"epilogue", epilogue_lines(epilogue, {.residual = residual_at("offset + i * 32")})}};
  } else {
    store_holes = {{"vector", stored.vector},
                   {"channel_values", channel_values(epilogue, "group * kGroupK + k_group + j")},
                   {"epilogue", epilogue_lines(epilogue, {.residual = residual_at("first + j")})}};
  }
  store_holes.emplace("converted", stored.converted);
  KernelText text;
  text.arguments = arguments(problem);
  text.files = {{element_header(problem.input.type)},
                {"device/vector.cuh"},
                {tiling.async_copy ? "device/copy_async.cuh" : "device/copy_registers.cuh"}};
  if (stores_floats(problem)) text.files.push_back(stored.vector_file);
  text.text = fill_template(
      embedded_text("direct/kernel.cu.in"),
      {{"constants", constants(kernel, tiling)},
       {"index", kernel.wide_index ? "long long" : "int"},
       {"asserts", asserts(kernel)},
       {"layout", layout_comment(nchw_out)},
       {"activation", activation_function(epilogue)},
       {"kernel", std::string(name)},
       {"parameters", parameter_list(text.arguments)},
       {"copy_input", nchw_in ? fill_template(embedded_text("direct/copy_nchw.cu.in"), input_holes)
                              : std::string(embedded_text("direct/copy_nhwc.cu.in"))},
       {"weight_valid", weight_valid},
       {"weight_store",
        weights.steps_k * weights.warps_k * 4 == tiling.block_k() ? "" : " && weight_k + j * kNextK < kBlockK"},
       {"taps", taps(kernel, tiling)},
       {"store",
        fill_template(embedded_text(nchw_out ? "direct/store_nchw.cu.in" : "direct/store_nhwc.cu.in"), store_holes)}});
  return text;
}

}  // namespace jitconv::codegen
