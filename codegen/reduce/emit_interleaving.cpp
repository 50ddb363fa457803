// Prints templates/reduce/interleave.cu.in: the reduce pass behind a sub-pixel convolution.
#include "codegen/phases.h"
#include "codegen/reduce/pass.h"
#include "codegen/text/epilogue.h"
#include "codegen/text/phases_text.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

bool is_nhwc(const Problem& problem) { return problem.output.layout() == Layout::nhwc; }

std::int64_t items(const Problem& problem, const ReduceTiling& tiling) {
  return problem.output_elements() / tiling.channels;
}

std::string constants(const Problem& problem, const Problem& sub_pixel, const ReduceTiling& tiling) {
  const View::Strides& sums = sub_pixel.output.stride;
  Constants c;
  c.group("dx, of which a thread stores kChannels channels of a pixel");
  c.add("kThreads", ReduceTiling::kThreads).add("kItems", items(problem, tiling));
  c.add("kChannels", tiling.channels).add("kOutputChannels", problem.output_channels());
  c.add("kGroupChannels", problem.k).add("kH", problem.rows.output).add("kW", problem.columns.output);
  c.add("kPlane", problem.output_plane());
  c.group("Its phases, and their partial sums");
  c.add("kRowStride", sub_pixel.phases.rows.stride).add("kColumnStride", sub_pixel.phases.columns.stride);
  c.add("kPhases", sub_pixel.phases.count(), "that meet a tap");
  c.add("kColumnPhases", sub_pixel.phases.columns.count(), "of a row");
  c.add("kSumStrideN", sums.n).add("kSumStrideC", sums.c).add("kSumStrideH", sums.h).add("kSumStrideW", sums.w);
  c.add("kSplits", tiling.split_k).add("kPartialSumStride", tiling.sums.stride, "floats from a split to the next");
  return c.text();
}

/// Lines that find a thread's channels and its pixel: lanes run along what is contiguous.
std::string place(const Problem& problem) {
  if (is_nhwc(problem))
    return "const int channel = static_cast<int>(item % (kOutputChannels / kChannels)) * kChannels;\n"
           "const auto pixel = item / (kOutputChannels / kChannels);  // of all images\n"
           "const int w = static_cast<int>(pixel % kW), h = static_cast<int>(pixel / kW % kH);\n"
           "const int n = static_cast<int>(pixel / kPlane);\n";
  return "const int pixel = static_cast<int>(item % kPlane), w = pixel % kW, h = pixel / kW;\n"
         "const auto channels = item / kPlane;  // of all images\n"
         "const int channel = static_cast<int>(channels % (kOutputChannels / kChannels)) * kChannels;\n"
         "const int n = static_cast<int>(channels / (kOutputChannels / kChannels));\n";
}

std::string add_sums(const Problem& problem, const ReduceTiling& tiling, const PhasePlace& row,
                     const PhasePlace& column) {
  const std::string add =
      is_nhwc(problem)
          ? "const SumVector vector = *reinterpret_cast<const SumVector*>(sums);\n"
            "#pragma unroll\n"
            "for (int c = 0; c < kChannels; ++c) sum[c] += vector.at[c];\n"
          : "#pragma unroll\n"
            "for (int c = 0; c < kChannels; ++c) sum[c] += sums[c * static_cast<long long>(kSumStrideC)];\n";
  std::string text =
      fill_template(embedded_text("reduce/add_sums.cu.in"), {{"phase", "(row_phase * kColumnPhases + column_phase)"},
                                                             {"row", row.place},
                                                             {"column", column.place},
                                                             {"unroll", reduce::unroll(tiling)},
                                                             {"add", add}});
  if (!row.may_miss && !column.may_miss) return text;
  const std::string_view inside = !row.may_miss      ? "column_phase >= 0"
                                  : !column.may_miss ? "row_phase >= 0"
                                                     : "row_phase >= 0 && column_phase >= 0";
  return fmt::format("if ({}) {{\n{}}}\n", inside, indented(text));
}

std::string store(const Problem& problem) {
  const Epilogue& epilogue = problem.epilogue;
  const bool nhwc = is_nhwc(problem);
  return fill_template(
      embedded_text(nhwc ? "reduce/store_channels.cu.in" : "reduce/store_planes.cu.in"),
      {{"channel_values", channel_values(epilogue, "channel + c")},
       {"epilogue",
        epilogue_lines(epilogue, {.residual = residual_at(nhwc ? "output + c"
                                                               : "output + c * static_cast<long long>(kPlane)")})}});
}

}  // namespace

KernelText reduce::emit_interleaving(const KernelPlan& kernel, std::string_view name) {
  const Problem& problem = kernel.problem;
  const auto& tiling = std::get<ReduceTiling>(kernel.tiling);
  const Problem sub_pixel = sub_pixel_problem(problem);
  const PhasePlace row = phase_place(sub_pixel.phases.rows, "Row", "h", "row_phase");
  const PhasePlace column = phase_place(sub_pixel.phases.columns, "Column", "w", "column_phase");
  std::string phases = row.tables + column.tables;
  if (!phases.empty())
    phases =
        "\n// By residues modulo the stride: phases. By phases: where the sums of their first pixel are.\n" + phases;
  if (is_nhwc(problem)) phases += "\nstruct alignas(4 * kChannels) SumVector {\n  float at[kChannels];\n};\n";
  KernelText text;
  text.arguments = parameters(kernel, tiling);
  text.files = device_files(kernel, tiling);
  text.text = fill_template(embedded_text("reduce/interleave.cu.in"),
                            {{"constants", constants(problem, sub_pixel, tiling) + phases},
                             {"activation", activation_function(problem.epilogue, tiling.relu)},
                             {"kernel", std::string(name)},
                             {"parameters", parameter_list(text.arguments)},
                             {"index", kernel.wide_index ? "long long" : "int"},
                             {"place", place(problem)},
                             {"row_phase", fmt::format("const int row_phase = {};", row.phase)},
                             {"column_phase", fmt::format("const int column_phase = {};", column.phase)},
                             {"wait", wait(kernel)},
                             {"sums", add_sums(problem, tiling, row, column)},
                             {"store", store(problem)}});
  return text;
}

}  // namespace jitconv::codegen
