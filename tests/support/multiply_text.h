// Device files of warpgroup multiplications for one number of columns, as a kernel holds them.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "codegen/template_text.h"

namespace jitconv::test {

/// `name` is "device/multiply_tf32.cuh" or its like.
inline std::string multiply_text(std::string_view name, int columns) {
  const int accumulators = columns / 2;
  std::string results, sums;
  for (int i = 0; i < accumulators; ++i) {
    results += fmt::format("{}%{}", i == 0 ? "" : ", ", i);
    sums += fmt::format("{}\"+f\"(sum[{}])", i == 0 ? "" : ", ", i);
  }
  return codegen::fill_template(codegen::embedded_text(name), {{"columns", std::to_string(columns)},
                                                               {"accumulators", std::to_string(accumulators)},
                                                               {"results", results},
                                                               {"sums", sums},
                                                               {"a", std::to_string(accumulators)},
                                                               {"b", std::to_string(accumulators + 1)},
                                                               {"accumulate", std::to_string(accumulators + 2)}});
}

}  // namespace jitconv::test
