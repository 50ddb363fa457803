// Prints the wgrad_depthwise family: templates/wgrad_depthwise/.
#include "codegen/arithmetic.h"
#include "codegen/text/layout_comment.h"
#include "codegen/wgrad_depthwise/family.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

void add_tile_constants(Constants& c, const KernelPlan& kernel, const WgradDepthwiseTiling& tiling) {
  const Problem& problem = kernel.problem;
  c.group("A block's share of dw and of the pixels");
  c.add("kBlockC", tiling.block_c, "channels of x")
      .add("kBlockK", tiling.block_k, "and of dy")
      .add("kTileR", tiling.tile_r, "filter rows");
  c.add("kTilesK", tiling.tiles_k(problem)).add("kTilesR", tiling.tiles_r(problem));
  c.add("kThreadQ", tiling.thread_q, "columns of a thread").add("kThreadsQ", tiling.threads_q);
  c.add("kTileQ", tiling.tile_q()).add("kTilesQ", tiling.tiles_q(problem));
  c.add("kStripRows", tiling.strip_rows).add("kStripXRows", tiling.strip_x_rows(problem), "rows of x they meet");
  c.add("kBands", tiling.bands(problem), "strips of a column and a phase");
  c.add("kPhases", WgradDepthwiseTiling::row_phases(problem), "from a row of a strip to the next");
  c.add("kSlots", tiling.slots, "strips at the same time").add("kTurns", tiling.turns, "one after the other");
  c.add("kThreads", tiling.threads()).add("kMinBlocksPerSm", kernel.launch.min_blocks_per_sm);
  c.add("kSums", tiling.sums(problem), problem.epilogue.bias ? "of a thread: taps, and that of db" : "of a thread");
  c.add("kPartialSumStride", gradient_sum_stride(problem), "floats from a share to the next");
  if (problem.epilogue.bias) c.add("kBiasSums", problem.weight_elements(), "floats before those of db");
}

void add_pipeline_constants(Constants& c, const Problem& problem, const WgradDepthwiseTiling& tiling) {
  const bool nhwc = problem.input.layout() == Layout::nhwc;
  c.group("Pipeline: stages of x [slot][row][column][channel], and behind it dy alike");
  c.add("kStages", tiling.stages).add("kSteps", tiling.turns * tiling.strip_steps(problem));
  c.add("kStripSteps", tiling.strip_steps(problem));
  c.add("kLiveRows", tiling.live_rows(problem), "rows of dy that one row of x meets");
  c.add("kPeriodXRows", tiling.period_rows(problem), "after which dy lies in the same registers again");
  c.add("kPeriods", tiling.periods, "of a stage");
  c.add("kStageXRows", tiling.stage_x_rows(problem)).add("kStageDyRows", tiling.stage_dy_rows(problem));
  c.add("kXColumns", tiling.x_columns(problem)).add("kColumnShift", tiling.column_shift);
  c.add("kWindow", tiling.window(problem), "columns of x that one thread meets");
  c.add("kXVector", tiling.x_vector, "elements of one copy").add("kDyVector", tiling.dy_vector);
  c.add("kXVectors", tiling.x_pitch(problem) / tiling.x_vector, "copies of one row");
  c.add("kDyVectors", tiling.dy_pitch() / tiling.dy_vector);
  if (!nhwc) c.add("kReadVector", tiling.read_vector(problem), "elements that a thread reads at a time");
  c.add("kStageXElements", tiling.x_elements(problem)).add("kStageElements", tiling.stage_elements(problem));
}

std::string constants(const KernelPlan& kernel, const WgradDepthwiseTiling& tiling) {
  const Problem& problem = kernel.problem;
  const View::Strides &x = problem.input.stride, &dy = problem.output.stride;
  Constants c;
  add_problem_constants(c, problem);
  c.add("kN", problem.n).add("kMultiplier", problem.k, "output channels per input channel");
  c.add("kInputStrideN", x.n).add("kInputStrideH", x.h).add("kOutputStrideN", dy.n).add("kOutputStrideH", dy.h);
  if (problem.input.layout() == Layout::nchw) {
    c.add("kInputStrideC", x.c).add("kOutputStrideC", dy.c);
  } else {
    c.add("kInputStrideW", x.w).add("kOutputStrideW", dy.w);
    c.add("kChannels", problem.input_channels()).add("kOutputChannels", problem.output_channels());
  }
  add_tile_constants(c, kernel, tiling);
  add_pipeline_constants(c, problem, tiling);
  std::string text = c.text();
  text.pop_back();
  return text;
}

std::string layout_comment(const WgradDepthwiseTiling& tiling) {
  return LayoutComment("element")
      .memory("0", "kStages stages of kStageElements: rows of x, [slot][row][column][channel]")
      .memory("kStageXElements", "in each stage, behind them: rows of dy, alike")
      .memory("0", fmt::format("in their place, at the end: kSums floats of each {}",
                               tiling.block_k == 1 ? "warp" : "thread that has a sum"))
      .text();
}

std::string asserts(const KernelPlan& kernel) {
  const bool nhwc = kernel.problem.input.layout() == Layout::nhwc;
  Lines lines;
  lines.add("static_assert(kThreads % 32 == 0 && kSlots * kThreadsQ * kBlockK <= kThreads);");
  lines.add("static_assert(kBlockK == 1 || kBlockK == kBlockC * kMultiplier);");
  lines.add("static_assert(kStageXRows == kPeriods * kPeriodXRows && kStageDyRows == kPeriods * kLiveRows);");
  lines.add("static_assert(kStripSteps * kStageXRows >= kStripXRows && kSteps == kTurns * kStripSteps);");
  lines.add("static_assert(kWindow >= kColumnShift + (kThreadQ - 1) * kStrideW + (kS - 1) * kDilationW + 1);");
  lines.add("static_assert(kXColumns >= (kTileQ - kThreadQ) * kStrideW + kWindow);");
  if (!nhwc) lines.add("static_assert(kW % kXVector == 0 && kQ % kDyVector == 0 && kThreadQ % kReadVector == 0);");
  if (nhwc) lines.add("static_assert(kChannels % kXVector == 0 && kOutputChannels % kDyVector == 0);");
  lines.add(
      "static_assert(kXVectors * kXVector == kXColumns * kBlockC && kDyVectors * kDyVector == kTileQ * kBlockK);");
  lines.add(
      fmt::format("static_assert(sizeof(Element) * kStages * kStageElements <= {});", kernel.launch.shared_bytes));
  return lines.text();
}

/// A period: every row of x is read once, and meets the rows of dy that lie in registers.
std::string rows(const Problem& problem, const WgradDepthwiseTiling& tiling) {
  const int stride = static_cast<int>(WgradDepthwiseTiling::row_stride(problem)), live = tiling.live_rows(problem);
  Lines lines;
  for (int h = 0; h < tiling.period_rows(problem); ++h) {
    if (h % stride == 0) {
      const int p = h / stride;
      lines.add(fmt::format("read_dy(dy_row[{0}], dy_rows + {0} * (kTileQ * kBlockK));", p));
      if (problem.epilogue.bias) lines.add(fmt::format("add_bias(dy_row[{}]);", p));
    }
    bool read = false;
    for (int r = 0; r < tiling.tile_r; ++r) {
      const int distance = h - r;
      if (positive_modulo(distance, stride) != 0) continue;
      const auto row = positive_modulo(distance / stride, live);
      if (!read) {
        lines.add(fmt::format("float x_h{}[kWindow];", h));
        lines.add(fmt::format("read_x(x_h{0}, x_rows + {0} * (kXColumns * kBlockC));", h));
      }
      read = true;
      lines.add(fmt::format("add_products(sum[{}], dy_row[{}], x_h{});", r, row, h));
    }
  }
  return lines.text();
}

struct PeriodLines {
  std::string begin, rows, end;
};

PeriodLines period_lines(const Problem& problem, const WgradDepthwiseTiling& tiling) {
  const std::string body = rows(problem, tiling);
  if (tiling.periods == 1) return {"", body, ""};
  return {
      "#pragma unroll 1\nfor (int period = 0; period < kPeriods; ++period) {\n",
      indented(body),
      "  x_rows += kPeriodXRows * (kXColumns * kBlockC);\n"
      "  dy_rows += kLiveRows * (kTileQ * kBlockK);\n"
      "}\n",
  };
}

/// Rows that the last strip left behind. The only one of a filter row is read anew before it is used.
std::string strip_begin(const Problem& problem, const WgradDepthwiseTiling& tiling) {
  if (tiling.live_rows(problem) == 1) return {};
  return "if (step % kStripSteps == 0) {\n"
         "#pragma unroll\n"
         "  for (int i = 0; i < kLiveRows; ++i)\n"
         "#pragma unroll\n"
         "    for (int q = 0; q < kThreadQ; ++q) dy_row[i][q] = 0.0f;\n"
         "}\n";
}

std::string add_threads(const Problem& problem, const WgradDepthwiseTiling& tiling) {
  const bool warps = tiling.block_k == 1, bias = problem.epilogue.bias;
  const std::string k = warps ? "k_block" : "k";
  const std::string store =
      fmt::format("share[static_cast<long long>({}) * (kR * kS) + r * kS + i % kS] = value;\n", k);
  const std::string stores = bias ? fmt::format(
                                        "if (i == kTileR * kS) {{\n"
                                        "  if (r_block == 0) share[kBiasSums + {}] = value;\n"
                                        "}} else if (r < kR) {{\n"
                                        "  {}"
                                        "}}\n",
                                        k, store)
                                  : "if (r < kR) " + store;
  return fill_template(embedded_text(warps ? "wgrad_depthwise/add_warps.cu.in" : "wgrad_depthwise/add_channels.cu.in"),
                       {{"bias_share", !bias   ? ""
                                       : warps ? "store_warp_sum(kTileR * kS, bias_sum);\n"
                                               : "thread_sums[kTileR * kS * kBlockK] = bias_sum;\n"},
                        {"store", stores}});
}

std::string copies(const Problem& problem, const WgradDepthwiseTiling& tiling) {
  // A loop that is not unrolled keeps nothing in registers between steps. Copies through registers come in pairs.
  const auto unroll = [&](std::int64_t copies) {
    return std::to_string(tiling.unroll_copies ? copies : tiling.async_copy ? 1 : std::min<std::int64_t>(2, copies));
  };
  return fill_template(
      embedded_text(problem.input.layout() == Layout::nhwc ? "wgrad_depthwise/copy_nhwc.cu.in"
                                                           : "wgrad_depthwise/copy_nchw.cu.in"),
      {{"x_unroll", unroll(tiling.x_copies(problem))}, {"dy_unroll", unroll(tiling.dy_copies(problem))}});
}

}  // namespace

KernelText wgrad_depthwise::emit(const KernelPlan& kernel, std::string_view name) {
  const auto& tiling = std::get<WgradDepthwiseTiling>(kernel.tiling);
  const Problem& problem = kernel.problem;
  const bool nhwc = problem.input.layout() == Layout::nhwc;
  const PeriodLines period = period_lines(problem, tiling);
  KernelText text;
  text.arguments = {{problem.input.tensor, "const Element* __restrict__", "x"},
                    {problem.output.tensor, "const Element* __restrict__", "dy"},
                    {tiling.partial_sums, "float* __restrict__", "partial_sums"}};
  text.files = {{element_header(problem.input.type)},
                {"device/vector.cuh"},
                {tiling.async_copy ? "device/copy_elements_async.cuh" : "device/copy_elements.cuh"}};
  text.text =
      fill_template(embedded_text("wgrad_depthwise/kernel.cu.in"),
                    {{"constants", constants(kernel, tiling)},
                     {"index", kernel.wide_index ? "long long" : "int"},
                     {"asserts", asserts(kernel)},
                     {"layout", layout_comment(tiling)},
                     {"read_row", std::string(embedded_text(nhwc ? "wgrad_depthwise/read_row_nhwc.cu.in"
                                                                 : "wgrad_depthwise/read_row_nchw.cu.in"))},
                     {"kernel", std::string(name)},
                     {"parameters", parameter_list(text.arguments)},
                     {"copy", copies(problem, tiling)},
                     {"bias_begin", problem.epilogue.bias ? "float bias_sum = 0.0f;  // of dy, for db\n"
                                                            "auto add_bias = [&](const float(&row)[kThreadQ]) {\n"
                                                            "#pragma unroll\n"
                                                            "  for (int q = 0; q < kThreadQ; ++q) bias_sum += row[q];\n"
                                                            "};\n"
                                                          : ""},
                     {"spare_threads", tiling.working_threads() == tiling.threads()
                                           ? ""
                                           : "if (slot_thread >= kSlots) continue;  // the thread only fills a warp\n"},
                     {"strip_begin", strip_begin(problem, tiling)},
                     {"period_begin", period.begin},
                     {"rows", period.rows},
                     {"period_end", period.end},
                     {"add_threads", add_threads(problem, tiling)}});
  return text;
}

}  // namespace jitconv::codegen
