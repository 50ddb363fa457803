// What the tests of reduction share: limits, and the comparison of two kernels' texts apart from extents.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "codegen/source.h"
#include "tools/host_run.h"
#include "tools/reduce.h"
#include "unit/tools/cli_process.h"

namespace jitconv::tools {

// What jitconv-run reduces documented configurations to.
inline const WorkLimits kDocumented = host_work_limits(/*documented=*/true, /*full_size=*/false, 400'000'000);
inline constexpr WorkLimits kNoLimit{0, INT64_MAX};

inline const Target kTarget = parse_target("sm_90a");

inline Reduction reduced(const std::string& text, const WorkLimits& limits) {
  return reduce(parse_spec(text), kTarget, limits);
}

/// `spec` with the extents that reduction may change taken from `from`.
inline ConvSpec with_extents_of(ConvSpec spec, const ConvSpec& from) {
  spec.input.n = from.input.n;
  spec.input.h = from.input.h;
  spec.input.w = from.input.w;
  return spec;
}

/// Lines of generated text that N, H and W are printed into: which constants, comments apart. Tiles of wgmma_rows have
/// as many rows (kTileRows) as let SMs share the work; those of the smaller convolution have fewer.
inline const std::set<std::string> kExtentConstants = {"kH",
                                                       "kDyElements",
                                                       "kItems",
                                                       "kSumStrideN",
                                                       "kSumStrideC",
                                                       "kSumStrideH",
                                                       "kSumStrideW",
                                                       "kStripsOfRow",
                                                       "kStripsOfColumn",
                                                       "kStrips",
                                                       "kSums",
                                                       "kSplits",
                                                       "kSummedStrips",
                                                       "kStripRows",
                                                       "kPieceRows",
                                                       "kPieces",
                                                       "kW",
                                                       "kN",
                                                       "kP",
                                                       "kQ",
                                                       "kPixels",
                                                       "kInputPlanes",
                                                       "kInputStrideN",
                                                       "kInputStrideC",
                                                       "kInputStrideH",
                                                       "kInputStrideW",
                                                       "kOutputStrideN",
                                                       "kOutputStrideC",
                                                       "kOutputStrideH",
                                                       "kOutputStrideW",
                                                       "kTileRows",
                                                       "kTilesP",
                                                       "kTilesQ",
                                                       "kPlane",
                                                       "kAllPlanes",
                                                       "kTilesOfPlane",
                                                       "kTilesOfImage",
                                                       "kTilesOfResidue",
                                                       "kTiles",
                                                       "kOutputs",
                                                       "kAllPixels",
                                                       "kAllRows",
                                                       "kSourceFirst",
                                                       "kSourceStrideN",
                                                       "kSourceStrideC",
                                                       "kSourceStrideH",
                                                       "kSourceStrideW",
                                                       "kPartialSumStride",
                                                       "kSplitPixels",
                                                       "kTurns",
                                                       "kSteps",
                                                       "kBands"};

/// The text without comment lines, constants of extents and the kernels' names.
inline std::vector<std::string> kernel_lines(const codegen::KernelSource& source) {
  std::vector<std::string> lines;
  for (std::string line : test::lines_of(source.text)) {
    if (line.rfind("//", 0) == 0) continue;
    if (line.rfind("constexpr ", 0) == 0) {
      const std::size_t equals = line.find(" = ");
      const std::size_t name = line.rfind(' ', equals - 1) + 1;
      if (kExtentConstants.count(line.substr(name, equals - name)) != 0) continue;
    }
    for (const codegen::KernelEntry& entry : source.entries) {
      if (const std::size_t at = line.find(entry.name); at != std::string::npos)
        line.replace(at, entry.name.size(), "kernel");
    }
    // How long the names are decides where signatures break.
    if (!lines.empty() && lines.back().rfind("kernel", 0) == 0 && !lines.back().ends_with('{'))
      lines.back() += line.substr(line.find_first_not_of(' ') - (lines.back().ends_with('(') ? 0 : 1));
    else
      lines.push_back(std::move(line));
  }
  return lines;
}

/// "" or the first lines in which the kernels of two plans differ.
inline std::string difference(const codegen::ConvPlan& a, const codegen::ConvPlan& b) {
  std::vector<std::string> lines_a = kernel_lines(codegen::generate(a)), lines_b = kernel_lines(codegen::generate(b));
  // Pixels are in fewer splits, for which another kernel adds the sums.
  if (a.spec.operation == Operation::weight_gradient) {
    for (std::vector<std::string>* lines : {&lines_a, &lines_b})
      lines->erase(std::ranges::find_if(*lines, [](auto& line) { return line.starts_with("namespace "); }),
                   lines->end());
  }
  const auto [at_a, at_b] = std::mismatch(lines_a.begin(), lines_a.end(), lines_b.begin(), lines_b.end());
  if (at_a == lines_a.end() && at_b == lines_b.end()) return "";
  return (at_a == lines_a.end() ? "the end" : *at_a) + " | " + (at_b == lines_b.end() ? "the end" : *at_b);
}

}  // namespace jitconv::tools
