// Staged outputs of warps whose rows are channels, see staging.h.
#include "codegen/text/staging.h"

#include "codegen/text/emitter.h"
#include "codegen/text/epilogue.h"
#include "fmt/format.h"

namespace jitconv::codegen {

std::string bias_of_rows(std::string_view first_channel, std::string_view bias_index) {
  return fmt::format(
      "float channel_bias[2];\n"
      "#pragma unroll\n"
      "for (int half = 0; half < 2; ++half) {{\n"
      "  const int k = {}accumulator_row(warp, lane, half);\n"
      "  channel_bias[half] = k < kGroupK ? to_float(bias[{}]) : 0.0f;\n"
      "}}\n",
      first_channel, bias_index);
}

std::string bias_of_folded_rows(std::string_view group_first) {
  return fmt::format(
      "const int bias_k = warp % kWarpgroupWarps * kWarpK + lane_row(lane);  // of the first filter column's rows\n"
      "const float channel_bias =\n"
      "    lane_row(lane) < kWarpK && bias_k < kGroupK ? to_float(bias[{}bias_k]) : 0.0f;\n",
      group_first);
}

std::string stage_folded_sums(const Epilogue& before, const FoldedPlaces& places) {
  const std::string& stored = places.stored;
  return fill_template(embedded_text("staging/stage_sums.cu.in"),
                       {{"epilogue", epilogue_lines(before, {.value = "value[e]", .bias_condition = "half == 0"})},
                        {"find_output", places.find_output},
                        {"and_stored", stored.empty() ? "" : fmt::format(" && ({})", stored)},
                        {"if_stored", stored.empty() ? "" : fmt::format("if ({}) ", stored)}});
}

std::string read_staged_functions(bool adds_rows) {
  std::string text(embedded_text("staging/read_staged.cu.in"));
  if (adds_rows) text.append("\n").append(embedded_text("staging/read_sums.cu.in"));
  return text;
}

std::string read_staged_vector(bool adds_rows) {
  return fmt::format("float value[kStoreElements];\n{}(value, source);", adds_rows ? "read_sums" : "read_staged");
}

std::string vector_epilogue(const Epilogue& after, std::string_view condition, std::string_view offset) {
  const std::string lines = epilogue_lines(
      after, {.value = "value[e]", .residual = residual_at(offset), .residual_condition = std::string(condition)});
  if (lines.empty()) return {};
  return "#pragma unroll\nfor (int e = 0; e < kStoreElements; ++e) {\n" + indented(lines) + "}\n";
}

}  // namespace jitconv::codegen
