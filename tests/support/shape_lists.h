// Reader of tests/shapes/*.csv: lists of convolutions from frameworks and benchmarks, in PyTorch's terms. Columns are
// found by name, so lists may have the optional ones (padding at the end, transposition, output padding) or not.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "jitconv/spec.h"

namespace jitconv::test {

struct ShapeRow {
  std::string list;  ///< file name without extension
  std::string name;  ///< first column; not unique in every list
  int line = 0;      ///< in the file, from 1
  /// The row's forward convolution. If the row is a transposed one, its numbers as they stand: input and filter do not
  /// fit together as a forward convolution, so the spec is not valid.
  ConvSpec spec;
  bool transposed = false;
  Size2 output_padding{0};
};

/// All rows of one list. Throws std::runtime_error, naming file and line, for an unknown column, a missing one or an
/// unreadable number.
std::vector<ShapeRow> read_shape_list(const std::filesystem::path& file);

/// The same from text; `list` names it in rows and errors.
std::vector<ShapeRow> parse_shape_list(std::string_view list, std::string_view text);

/// The forward rows of every list in `directory`, lists in alphabetical order.
std::vector<ShapeRow> forward_shapes(const std::filesystem::path& directory);

}  // namespace jitconv::test
