// Prints the depthwise_planes family: templates/depthwise_planes/.
#include <algorithm>

#include "codegen/arithmetic.h"
#include "codegen/depthwise_planes/family.h"
#include "codegen/text/epilogue.h"
#include "codegen/text/layout_comment.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

/// Whether the last block has fewer planes than the others.
bool has_short_block(const Problem& problem, const DepthwisePlanesTiling& tiling) {
  return problem.n * problem.input_channels() % tiling.planes != 0;
}

std::string constants(const KernelPlan& kernel, const DepthwisePlanesTiling& tiling) {
  const Problem& problem = kernel.problem;
  Constants c;
  add_problem_constants(c, problem);
  c.add("kChannels", problem.input_channels()).add("kAllPlanes", problem.n * problem.input_channels(), "N * C");
  c.add("kTaps", problem.taps());

  if (problem.is_upsampled()) {
    c.group("Gradient with a stride: row p meets tap r in row (p + r * kDilationH - kPadTop) / kUpsamplingH, if whole");
    c.add("kUpsamplingH", problem.rows.upsampling).add("kUpsamplingW", problem.columns.upsampling);
    c.add("kFirstH", problem.rows.first_input(), "row of x that a plane's first rows meet first");
  }
  c.group("Planes of a block, and rows of a thread");
  c.add("kPlanes", tiling.planes).add("kThreadP", tiling.thread_p);
  c.add("kThreadsP", tiling.threads_p(problem), "threads of a plane").add("kThreads", tiling.threads(problem));
  c.add("kMinBlocksPerSm", kernel.launch.min_blocks_per_sm);

  if (tiling.share_weights) c.add("kWeightsFirstByte", tiling.weights_first_byte(problem), "in shared memory");

  c.group("Elements that a thread moves at a time");
  c.add("kCopyVector", DepthwisePlanesTiling::kCopyBytes / problem.input.element_bytes(), "from x to shared memory");
  c.add("kReadVector", tiling.read_vector, "from there").add("kStoreVector", tiling.store_vector, "back");
  c.add("kLeaveVector", DepthwisePlanesTiling::kCopyBytes / problem.output.element_bytes(), "from shared memory to y");
  std::string text = c.text();
  text.pop_back();
  return text;
}

std::string layout_comment(const DepthwisePlanesTiling& tiling) {
  LayoutComment comment;
  comment.memory("0", "planes of x, [kPlanes][kH][kW], and then, in their place, of y, [kPlanes][kP][kQ]");
  if (tiling.share_weights) comment.memory("kWeightsFirstByte", "weights as floats, [kPlanes][kTaps]");
  return comment.text();
}

std::string asserts(const KernelPlan& kernel, const DepthwisePlanesTiling& tiling) {
  Lines lines;
  lines.add("// The numbers above are redundant; they must agree.");
  lines.add("static_assert(kThreads == kPlanes * kThreadsP && kThreadsP * kThreadP >= kP);");
  lines.add("static_assert(kPlanes * (kH * kW) % kCopyVector == 0 && kPlanes * (kP * kQ) % kLeaveVector == 0);");
  lines.add("static_assert(kAllPlanes % kPlanes * (kH * kW) % kCopyVector == 0, \"the last block's, too\");");
  lines.add("static_assert(kAllPlanes % kPlanes * (kP * kQ) % kLeaveVector == 0);");
  lines.add("static_assert(kW % kReadVector == 0 && kQ % kStoreVector == 0);");
  if (kernel.problem.is_upsampled())
    lines.add("static_assert(kThreadP % kUpsamplingH == 0, \"a thread has rows of all phases\");");
  lines.add(fmt::format("static_assert(kPlanes * (kH * kW) * sizeof(Element) <= {});", kernel.launch.shared_bytes));
  if (tiling.share_weights)
    lines.add(fmt::format("static_assert(kWeightsFirstByte + kPlanes * kTaps * sizeof(float) <= {});",
                          kernel.launch.shared_bytes));
  return lines.text();
}

/// Lines that bring the weights of a thread to registers: its own from w, or from those that the block shares.
std::string filter(std::string_view from, const Problem& problem) {
  const bool runs_backwards = problem.weight.stride.h < 0;  // taps of a data gradient
  return fill_template(embedded_text(fmt::format("depthwise_planes/{}_weights.cu.in", from)),
                       {{"tap", runs_backwards ? "kTaps - 1 - tap" : "tap"}});
}

/// Lines that say which column of x output `q` meets in tap `s`. Of a gradient with a stride, it may meet none.
std::string column(const Problem& problem) {
  if (!problem.is_upsampled()) return "const int column = q * kStrideW + s * kDilationW - kPadLeft;\n";
  return "const int place = q + s * kDilationW - kPadLeft, column = place / kUpsamplingW;\n"
         "if (place % kUpsamplingW != 0) continue;\n";
}

/// When row `h` from a thread's first is one of its plane: C++, "true" if it always is.
std::string is_inside(const Problem& problem, const DepthwisePlanesTiling& tiling, std::int64_t h) {
  const std::int64_t first = problem.rows.first_input() + h;  // of the first thread of a plane
  const std::int64_t last = first + std::int64_t{tiling.threads_p(problem) - 1} * tiling.thread_p *
                                        problem.rows.stride / problem.rows.upsampling;
  std::string text;
  const auto add = [&text](const std::string& condition) { text += (text.empty() ? "" : " && ") + condition; };
  if (has_short_block(problem, tiling)) add("plane < planes");
  if (first < 0) add(fmt::format("h_thread + {} >= 0", h));
  if (last >= problem.rows.input) add(fmt::format("h_thread + {} < kH", h));
  return text.empty() ? "true" : text;
}

/// `// begin rows` ... `// end rows`: each row of x is read once and used by every output row that meets it.
std::string rows(const Problem& problem, const DepthwisePlanesTiling& tiling) {
  const Axis& axis = problem.rows;
  Lines lines;
  lines.add("// begin rows");
  for (std::int64_t h = 0; h < tiling.read_rows(problem); ++h) {
    bool is_read = false;
    for (std::int64_t p = 0; p < tiling.thread_p; ++p) {
      const std::int64_t offset = h * axis.upsampling + axis.lead() - p * axis.stride;
      if (offset < 0 || offset % axis.dilation != 0 || offset / axis.dilation >= axis.taps) continue;
      if (!is_read)
        lines.add(fmt::format("const Row in_h{0}(window + {0} * kW, {1});", h, is_inside(problem, tiling, h)));
      is_read = true;
      lines.add(fmt::format("filter_row(acc[{}], filter + {} * kS, in_h{});", p, offset / axis.dilation, h));
    }
  }
  lines.add("// end rows");
  return lines.text();
}

/// How `value`, the last of a vector's or its only one, becomes an element of it.
std::string kept_value(const Problem& problem, const DepthwisePlanesTiling& tiling) {
  if (!tiling.store_pairs) return fmt::format("vector.at[j] = {};\n", stored_text(problem).converted);
  if (tiling.store_vector > 1) return "acc[i][q + j] = value;\n";
  return "vector.at[j] = {static_cast<unsigned short>(element_pair(value, value))};\n";
}

std::string store(const Problem& problem, const DepthwisePlanesTiling& tiling) {
  const StoredText stored = stored_text(problem);
  const bool pairs = tiling.store_pairs && tiling.store_vector > 1;
  // Behind the last plane there is no residual, and what is written is not taken away.
  std::string row_limit;
  if (has_short_block(problem, tiling) && problem.epilogue.residual) row_limit += "if (plane >= planes) break;\n";
  if (problem.rows.output % tiling.thread_p != 0) row_limit += "if (p_thread + i >= kP) break;\n";
  return fill_template(
      embedded_text("depthwise_planes/store.cu.in"),
      {{"channel_values",
        channel_values(problem.epilogue, tiling.share_weights ? "(plane_first + plane) % kChannels" : "channel")},
       {"row_limit", row_limit},
       {"vector", pairs ? "PairVector" : stored.vector + "<kStoreVector>"},
       {"epilogue",
        epilogue_lines(problem.epilogue,
                       {.residual = residual_at("static_cast<Index>(plane_first) * (kP * kQ) + row * kQ + q + j")})},
       {"keep_value", kept_value(problem, tiling)},
       {"pairs", pairs ? "#pragma unroll\n"
                         "for (int j = 0; j < kStoreVector; j += 2)\n"
                         "  vector.at[j / 2] = element_pair(acc[i][q + j], acc[i][q + j + 1]);\n"
                       : ""},
       {"leave_vector", stored.vector}});
}

}  // namespace

KernelText depthwise_planes::emit(const KernelPlan& kernel, std::string_view name) {
  const auto& tiling = std::get<DepthwisePlanesTiling>(kernel.tiling);
  const Problem& problem = kernel.problem;
  const std::int64_t copies = ceil_div(tiling.planes * problem.input_plane() * problem.input.element_bytes(),
                                       DepthwisePlanesTiling::kCopyBytes * tiling.threads(problem));
  KernelText text;
  text.arguments = arguments(problem);
  text.files = {{element_header(problem.input.type)}, {"device/vector.cuh"}};
  if (stores_floats(problem)) text.files.push_back(stored_text(problem).vector_file);
  if (tiling.store_pairs) text.files.push_back({pair_header(problem.input.type)});
  text.files.push_back({tiling.async_copy ? "device/copy_elements_async.cuh" : "device/copy_elements.cuh"});
  text.text = fill_template(
      embedded_text("depthwise_planes/kernel.cu.in"),
      {{"constants", constants(kernel, tiling)},
       {"index", kernel.wide_index ? "long long" : "int"},
       {"asserts", asserts(kernel, tiling)},
       {"layout", layout_comment(tiling)},
       {"pair_vector",
        tiling.store_pairs && tiling.store_vector > 1 ? pair_vector("kStoreVector", "Outputs of a row") : ""},
       {"column", column(problem)},
       {"activation", activation_function(problem.epilogue)},
       {"kernel", std::string(name)},
       {"parameters", parameter_list(text.arguments)},
       {"stored", stored_text(problem).element},
       {"copy_unroll", std::to_string(std::min<std::int64_t>(copies, 8))},
       {"h_thread", problem.is_upsampled() ? "p_thread / kUpsamplingH + kFirstH" : "p_thread * kStrideH - kPadTop"},
       {"weights", tiling.share_weights ? std::string(embedded_text("depthwise_planes/share_weights.cu.in"))
                                        : filter("own", problem)},
       {"filter", tiling.share_weights ? filter("shared", problem) : ""},
       {"rows", rows(problem, tiling)},
       {"store", store(problem, tiling)}});
  return text;
}

}  // namespace jitconv::codegen
