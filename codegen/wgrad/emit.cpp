// Prints the wgrad family: templates/wgrad/.
#include "codegen/arithmetic.h"
#include "codegen/reduce/tiling.h"
#include "codegen/text/layout_comment.h"
#include "codegen/wgrad/family.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

std::string constants(const KernelPlan& kernel, const WgradTiling& tiling) {
  const Problem& problem = kernel.problem;
  const View::Strides &x = problem.input.stride, &dy = problem.output.stride;
  Constants c;
  add_problem_constants(c, problem);
  c.add("kGroups", problem.groups).add("kChannels", problem.c, "of a group").add("kGroupK", problem.k);
  c.add("kPlane", problem.output_plane(), "P * Q").add("kPixels", WgradTiling::pixels(problem), "N * P * Q");
  c.add("kColumns", WgradTiling::columns(problem), "C/groups * R * S");
  c.add("kInputStrideN", x.n).add("kInputStrideC", x.c).add("kInputStrideH", x.h).add("kInputStrideW", x.w);
  c.add("kOutputStrideN", dy.n).add("kOutputStrideC", dy.c).add("kOutputStrideW", dy.w);

  c.group("Tile of a block and of a thread");
  c.add("kBlockK", tiling.block_k).add("kBlockColumns", tiling.block_columns);
  c.add("kThreadK", tiling.thread_k).add("kThreadColumns", tiling.thread_columns);
  c.add("kThreadsK", tiling.threads_k()).add("kThreadsColumns", tiling.threads_columns());
  c.add("kThreads", tiling.threads()).add("kMinBlocksPerSm", kernel.launch.min_blocks_per_sm);
  c.add("kTilesK", tiling.tiles_k(problem)).add("kTilesColumns", tiling.tiles_columns(problem));
  c.add("kSplitPixels", tiling.split_pixels);
  c.add("kPartialSumStride", gradient_sum_stride(problem), "floats from a split to the next");
  if (problem.epilogue.bias) c.add("kBiasSums", problem.weight_elements(), "floats before those of db");

  c.group("Pipeline: stages of kChunkPixels pixels, each dy [pixel][k] and x [pixel][column]");
  c.add("kStages", tiling.stages).add("kChunkPixels", tiling.chunk_pixels);
  c.add("kPitchK", tiling.pitch_k()).add("kPitchColumns", tiling.pitch_columns());
  c.add("kStageFloats", tiling.stage_floats());
  c.add("kCopyRows", tiling.threads() / tiling.chunk_pixels, "that the block copies at a time, lanes along pixels");
  return c.text();
}

std::string asserts(const KernelPlan& kernel) {
  Lines lines;
  lines.add("static_assert(kThreadsK * kThreadK == kBlockK && kThreadsColumns * kThreadColumns == kBlockColumns);");
  lines.add(
      "static_assert(kThreadK % 4 == 0 && kThreadColumns % 4 == 0 && kPitchK % 4 == 0 && kPitchColumns % 4 == 0);");
  lines.add("static_assert(kCopyRows * kChunkPixels == kThreads && kSplitPixels % kChunkPixels == 0);");
  lines.add(fmt::format("static_assert(sizeof(float) * kStages * kStageFloats <= {});", kernel.launch.shared_bytes));
  return lines.text();
}

std::string layout_comment() {
  return LayoutComment("float")
      .memory("0", "kStages stages of kStageFloats: dy of a chunk, [pixel][k], pixels kPitchK apart")
      .memory("kChunkPixels * kPitchK",
              "in each stage, behind it: x of the chunk, [pixel][column], kPitchColumns apart")
      .text();
}

/// db is summed where dy already lies in shared memory: by the blocks of the first column tile.
std::string bias_lines(const Problem& problem, std::string_view file) {
  return problem.epilogue.bias ? std::string(embedded_text(file)) : "";
}

}  // namespace

KernelText wgrad::emit(const KernelPlan& kernel, std::string_view name) {
  const auto& tiling = std::get<WgradTiling>(kernel.tiling);
  const Problem& problem = kernel.problem;
  const bool x_nhwc = problem.input.layout() == Layout::nhwc, dy_nhwc = problem.output.layout() == Layout::nhwc;
  KernelText text;
  text.arguments = {{problem.input.tensor, "const Element* __restrict__", "x"},
                    {problem.output.tensor, "const Element* __restrict__", "dy"},
                    {tiling.partial_sums, "float* __restrict__", "partial_sums"}};
  text.files = {{element_header(problem.input.type)},
                {"device/vector.cuh"},
                {tiling.async_copy ? "device/copy_async.cuh" : "device/copy_registers.cuh"}};
  text.text = fill_template(
      embedded_text("wgrad/kernel.cu.in"),
      {{"constants", constants(kernel, tiling)},
       {"index", kernel.wide_index ? "long long" : "int"},
       {"asserts", asserts(kernel)},
       {"layout", layout_comment()},
       {"kernel", std::string(name)},
       {"parameters", parameter_list(text.arguments)},
       {"copy_dy", std::string(embedded_text(dy_nhwc ? "wgrad/copy_dy_nhwc.cu.in" : "wgrad/copy_dy_nchw.cu.in"))},
       {"copy_x", std::string(embedded_text(x_nhwc ? "wgrad/copy_x_nhwc.cu.in" : "wgrad/copy_x_nchw.cu.in"))},
       {"bias_begin", bias_lines(problem, "wgrad/begin_bias.cu.in")},
       {"bias_add", bias_lines(problem, "wgrad/add_bias.cu.in")},
       {"bias_store", bias_lines(problem, "wgrad/store_bias.cu.in")},
       {"place_in_filter", x_nhwc ? "column % kChannels * (kR * kS) + column / kChannels" : "column"}});
  return text;
}

}  // namespace jitconv::codegen
