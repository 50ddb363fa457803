// Prints the depthwise family: templates/depthwise/.
#include <algorithm>

#include "codegen/arithmetic.h"
#include "codegen/depthwise/family.h"
#include "codegen/text/epilogue.h"
#include "codegen/text/layout_comment.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

using Store = DepthwiseTiling::Store;

std::string constants(const KernelPlan& kernel, const DepthwiseTiling& tiling) {
  const Problem& problem = kernel.problem;
  const Axis &rows = problem.rows, &columns = problem.columns;
  Constants c;
  add_problem_constants(c, kernel.problem);
  c.add("kChannels", problem.input_channels()).add("kInputPlanes", problem.n * problem.input_channels(), "N * C");
  c.add("kMultiplier", problem.k, "output channels per input channel");
  c.add("kTaps", problem.taps());

  c.group("Outputs of a thread and of a block");
  c.add("kThreadP", tiling.thread_p).add("kThreadQ", tiling.thread_q);
  c.add("kThreadsP", tiling.threads_p).add("kThreadsQ", tiling.threads_q).add("kPlanes", tiling.planes);
  c.add("kThreads", tiling.threads()).add("kMinBlocksPerSm", kernel.launch.min_blocks_per_sm);
  c.add("kTileP", tiling.tile_p()).add("kTileQ", tiling.tile_q());
  c.add("kTilesP", ceil_div(problem.rows.output, tiling.tile_p()))
      .add("kTilesQ", ceil_div(problem.columns.output, tiling.tile_q()));

  c.group("Input tile in shared memory: [plane][h][w], columns from kColumnShift before the first tap");
  c.add("kInputRows", tiling.input_rows(problem)).add("kInputPitch", tiling.input_pitch);
  c.add("kInputFloats", tiling.input_floats(problem)).add("kColumnShift", tiling.column_shift);
  c.add("kCopyVector", tiling.copy_vector, "elements of one copy");
  c.add("kInputVectors", tiling.input_pitch / tiling.copy_vector, "copies of one row");
  c.add("kWindow", tiling.window(problem), "floats of an input row that one thread reads");
  if (problem.is_upsampled()) {
    c.add("kReadVector", tiling.read_vector, "at a time");
    c.group(
        "Gradient with a stride: from a tile's first, q meets tap s in (q + s * kDilationW - kLeadW) / kUpsamplingW");
    c.add("kUpsamplingH", rows.upsampling).add("kUpsamplingW", columns.upsampling);
    c.add("kLeadH", rows.lead()).add("kLeadW", columns.lead());
    c.add("kFirstH", rows.first_input(), "row of x that rows of the first tile meet first");
    c.add("kFirstW", columns.first_input());
  }

  if (tiling.store != Store::vector) {
    c.group("Store");
    c.add("kStoreFirstFloat", tiling.store_first_float(problem));
    if (tiling.store == Store::flat)
      c.add("kStoreVector", tiling.store_vector(problem));
    else
      c.add("kSectorElements", 32 / problem.output.element_bytes());
  }
  std::string text = c.text();
  text.pop_back();
  return text;
}

std::string layout_comment(const Problem& problem, const DepthwiseTiling& tiling) {
  LayoutComment comment("float");
  comment.memory("0", "input tile, [kPlanes][kInputRows][kInputPitch]");
  comment.memory("kInputFloats", "weights, [kPlanes][kMultiplier][kTaps]");
  if (tiling.store != Store::vector)
    comment.memory("kStoreFirstFloat", tiling.store_first_float(problem) == 0
                                           ? "in their place: outputs on their way to y"
                                           : "outputs on their way to y");
  return comment.text();
}

void assert_windows(Lines& lines) {
  lines.add(
      "static_assert(kThreadQ * kStrideW % 4 == 0 && kInputPitch % 4 == 0, \"rows are read 16 bytes at a time\");");
  lines.add("static_assert(kInputRows == (kTileP - 1) * kStrideH + (kR - 1) * kDilationH + 1);");
  lines.add("static_assert(kWindow >= kColumnShift + (kThreadQ - 1) * kStrideW + (kS - 1) * kDilationW + 1);");
  lines.add("static_assert(kInputPitch >= (kTileQ - kThreadQ) * kStrideW + kWindow);");
}

/// The same of a gradient with a stride.
void assert_phases(Lines& lines) {
  lines.add(
      "static_assert(kThreadP % kUpsamplingH == 0 && kThreadQ % kUpsamplingW == 0, \"a thread has all phases\");");
  lines.add("static_assert(kThreadQ / kUpsamplingW % kReadVector == 0 && kInputPitch % kReadVector == 0);");
  lines.add("static_assert(kInputRows == (kTileP - 1 + (kR - 1) * kDilationH - kLeadH) / kUpsamplingH + 1);");
  lines.add("static_assert(kWindow > kColumnShift + (kThreadQ - 1 + (kS - 1) * kDilationW - kLeadW) / kUpsamplingW);");
  lines.add("static_assert(kInputPitch >= (kTileQ - kThreadQ) / kUpsamplingW + kWindow);");
}

std::string asserts(const KernelPlan& kernel, const DepthwiseTiling& tiling) {
  Lines lines;
  lines.add("// The numbers above are redundant; they must agree.");
  lines.add("static_assert(kThreads == kThreadsP * kThreadsQ * kPlanes && kTileP == kThreadP * kThreadsP);");
  if (kernel.problem.is_upsampled())
    assert_phases(lines);
  else
    assert_windows(lines);
  lines.add("static_assert(kW % kCopyVector == 0 && kInputPitch % kCopyVector == 0);");
  lines.add("static_assert(kPlanes == 1 || (kTilesP == 1 && kTilesQ == 1));");
  lines.add(fmt::format("static_assert(sizeof(float) * (kInputFloats + kPlanes * kMultiplier * kTaps) <= {});",
                        kernel.launch.shared_bytes));
  if (tiling.store == Store::flat) lines.add("static_assert(kTilesQ == 1);");
  if (tiling.store == Store::vector) lines.add("static_assert(kQ % kThreadQ == 0);");
  return lines.text();
}

/// `// begin rows` ... `// end rows`: the thread marches down its input rows; each is loaded once and used by every
/// output row it reaches.
std::string rows(const KernelPlan& kernel, const DepthwiseTiling& tiling) {
  const Axis& axis = kernel.problem.rows;
  const auto place = [hidden = tiling.hide_places](std::int64_t row, std::string_view pitch) {
    return hidden ? fmt::format("opaque({} * {})", row, pitch) : fmt::format("{} * {}", row, pitch);
  };
  Lines lines;
  lines.add("// begin rows");
  std::string filter = "filter";
  if (tiling.weights_in_registers) {
    filter = "w_r";
    lines.add("float w_r[kTaps];");
    lines.add("#pragma unroll");
    lines.add("for (int i = 0; i < kTaps; ++i) w_r[i] = filter[i];");
  }
  if (!tiling.unroll_rows) {
    lines.add("#pragma unroll 1");
    lines.add("for (int r = 0; r < kR; ++r) {");
    for (int p = 0; p < tiling.thread_p; ++p)
      lines.add(fmt::format("  filter_row(acc[{}], {} + r * kS, Row(window + (r * kDilationH + {}) * kInputPitch));", p,
                            filter, p * axis.stride));
    lines.add("}");
  } else {
    for (std::int64_t h = 0; h < axis.inputs_met(tiling.thread_p); ++h) {
      bool loaded = false;
      for (std::int64_t p = 0; p < tiling.thread_p; ++p) {
        const std::int64_t offset = h * axis.upsampling + axis.lead() - p * axis.stride;
        if (offset < 0 || offset % axis.dilation != 0 || offset / axis.dilation >= axis.taps) continue;
        if (!loaded) lines.add(fmt::format("const Row in_h{}(window + {});", h, place(h, "kInputPitch")));
        loaded = true;
        lines.add(
            fmt::format("filter_row(acc[{}], {} + {}, in_h{});", p, filter, place(offset / axis.dilation, "kS"), h));
      }
    }
  }
  lines.add("// end rows");
  return lines.text();
}

std::string store(const KernelPlan& kernel, const DepthwiseTiling& tiling) {
  const Epilogue& epilogue = kernel.problem.epilogue;
  const StoredText stored = stored_text(kernel.problem);
  switch (tiling.store) {
    case Store::vector:
      return fill_template(embedded_text("depthwise/store_vector.cu.in"),
                           {{"vector", stored.vector},
                            {"converted", stored.converted},
                            {"channel_values", channel_values(epilogue, "plane % kChannels * kMultiplier + multiple")},
                            {"epilogue", epilogue_lines(epilogue, {.residual = residual_at("first + j")})}});
    case Store::flat:
      return fill_template(
          embedded_text("depthwise/store_flat.cu.in"),
          {{"stored", stored.element},
           {"vector", stored.vector},
           {"converted", stored.converted},
           {"channel_values",
            channel_values(epilogue, "(plane_block + (first + j) / (kP * kQ)) % kChannels * kMultiplier + multiple")},
           {"epilogue", epilogue_lines(epilogue, {.residual = residual_at("run_first + first + j")})}});
    case Store::rows:
      return fill_template(
          embedded_text("depthwise/store_rows.cu.in"),
          {{"stored", stored.element},
           {"converted", stored.converted},
           {"channel_values", channel_values(epilogue, "plane_block % kChannels * kMultiplier + multiple")},
           {"epilogue", epilogue_lines(epilogue, {.residual = residual_at("row_first + q")})}});
  }
  return {};
}

/// Where weight i of a tile is among the filters of its input plane. Taps of a data gradient run backwards.
std::string tap_of_weight(const Problem& problem) {
  if (problem.weight.stride.h > 0) return "i % (kMultiplier * kTaps)";
  if (problem.k == 1) return "(kTaps - 1 - i % kTaps)";
  return "i % (kMultiplier * kTaps) / kTaps * kTaps + (kTaps - 1 - i % kTaps)";
}

}  // namespace

KernelText depthwise::emit(const KernelPlan& kernel, std::string_view name) {
  const auto& tiling = std::get<DepthwiseTiling>(kernel.tiling);
  const Problem& problem = kernel.problem;
  const bool upsampled = problem.is_upsampled();
  const std::int64_t copies = ceil_div(
      tiling.planes * tiling.input_rows(problem) * (tiling.input_pitch / tiling.copy_vector), tiling.threads());
  KernelText text;
  text.arguments = arguments(problem);
  text.files = {{element_header(problem.input.type)},
                {"device/vector.cuh"},
                {tiling.async_copy ? "device/copy_async.cuh" : "device/copy_registers.cuh"}};
  if (stores_floats(problem)) text.files.push_back(stored_text(problem).vector_file);
  if (upsampled) add_files(text.files, {{"device/float_vector.cuh"}});
  if (tiling.hide_places) text.files.push_back({"device/opaque.cuh"});
  text.text = fill_template(
      embedded_text("depthwise/kernel.cu.in"),
      {{"constants", constants(kernel, tiling)},
       {"index", kernel.wide_index ? "long long" : "int"},
       {"asserts", asserts(kernel, tiling)},
       {"layout", layout_comment(problem, tiling)},
       {"row", std::string(embedded_text(upsampled ? "depthwise/row_upsampled.cu.in" : "depthwise/row.cu.in"))},
       {"activation", activation_function(problem.epilogue)},
       {"kernel", std::string(name)},
       {"parameters", parameter_list(text.arguments)},
       {"copy_unroll", std::to_string(std::min<std::int64_t>(copies, 8))},
       {"h_block", upsampled ? "p_tile * (kTileP / kUpsamplingH) + kFirstH" : "p_tile * (kTileP * kStrideH) - kPadTop"},
       {"w_block",
        upsampled ? "q_tile * (kTileQ / kUpsamplingW) + kFirstW" : "q_tile * (kTileQ * kStrideW) - kPadLeft"},
       {"tap", tap_of_weight(problem)},
       {"thread_row", upsampled ? "p_thread / kUpsamplingH" : "p_thread * kStrideH"},
       {"thread_column", upsampled ? "q_thread / kUpsamplingW" : "q_thread * kStrideW"},
       {"rows", rows(kernel, tiling)},
       {"store", store(kernel, tiling)}});
  return text;
}

}  // namespace jitconv::codegen
