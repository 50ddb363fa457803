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
  /// A forward convolution; of a transposed one, the data gradient that computes it: dy is its input, dx its output.
  ConvSpec spec;
};

/// All rows of one list. Throws std::runtime_error, naming file and line, for an unknown column, a missing one or an
/// unreadable number.
std::vector<ShapeRow> read_shape_list(const std::filesystem::path& file);

/// The same from text; `list` names it in rows and errors.
std::vector<ShapeRow> parse_shape_list(std::string_view list, std::string_view text);

/// The rows of every list in `directory`, lists in alphabetical order.
std::vector<ShapeRow> all_shapes(const std::filesystem::path& directory);

/// Those that are forward convolutions.
std::vector<ShapeRow> forward_shapes(const std::filesystem::path& directory);

}  // namespace jitconv::test
