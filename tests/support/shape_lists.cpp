// See shape_lists.h.
#include "support/shape_lists.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <stdexcept>

namespace jitconv::test {
namespace {

constexpr std::string_view kRequired[] = {"name",     "N",        "C",     "H",     "W",     "K",     "R",     "S",
                                          "stride_h", "stride_w", "pad_h", "pad_w", "dil_h", "dil_w", "groups"};
constexpr std::string_view kOptional[] = {"pad_h_end", "pad_w_end", "transposed", "output_pad_h", "output_pad_w"};

std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream stream(line);
  for (std::string cell; std::getline(stream, cell, ',');) cells.push_back(cell);
  return cells;
}

[[noreturn]] void fail(std::string_view list, int line, const std::string& what) {
  throw std::runtime_error(std::string(list) + ".csv:" + std::to_string(line) + ": " + what);
}

/// One row, by column name.
class Cells {
 public:
  Cells(std::string_view list, int line, const std::vector<std::string>& header, const std::vector<std::string>& cells)
      : list_(list), line_(line) {
    if (cells.size() != header.size()) fail(list, line, "has not as many cells as the header");
    for (std::size_t i = 0; i < header.size(); ++i) cells_[header[i]] = cells[i];
  }

  bool has(const std::string& column) const { return cells_.count(column) != 0; }
  const std::string& text(const std::string& column) const { return cells_.at(column); }

  std::int64_t number(const std::string& column) const {
    const std::string& cell = cells_.at(column);
    std::int64_t value = 0;
    const char* end = cell.data() + cell.size();
    const std::from_chars_result result = std::from_chars(cell.data(), end, value);
    if (result.ec != std::errc{} || result.ptr != end) fail(list_, line_, column + " is '" + cell + "'");
    return value;
  }
  std::int64_t number(const std::string& column, std::int64_t otherwise) const {
    return has(column) ? number(column) : otherwise;
  }

 private:
  std::string_view list_;
  int line_;
  std::map<std::string, std::string> cells_;
};

void check_header(std::string_view list, const std::vector<std::string>& header) {
  for (std::string_view column : kRequired) {
    if (std::find(header.begin(), header.end(), column) == header.end()) {
      fail(list, 1, "has no column " + std::string(column));
    }
  }
  for (const std::string& column : header) {
    const bool required = std::find(std::begin(kRequired), std::end(kRequired), column) != std::end(kRequired);
    const bool optional = std::find(std::begin(kOptional), std::end(kOptional), column) != std::end(kOptional);
    if (!required && !optional) fail(list, 1, "has the unknown column " + column);
  }
}

/// The data gradient that a transposed convolution is. `spec` has its columns as they stand: input is what it reads, of
/// which dx is made, and weight has its output channels where the data gradient has those of dy.
ConvSpec data_gradient_of(ConvSpec spec, Size2 output_padding) {
  const TensorShape dy = spec.input;
  const auto extent = [](std::int64_t pixels, std::int64_t stride, std::int64_t pad, std::int64_t span,
                         std::int64_t behind) { return (pixels - 1) * stride - pad + span + 1 + behind; };
  spec.operation = Operation::data_gradient;
  spec.input.c = spec.weight.k;
  spec.input.h = extent(dy.h, spec.stride.h, spec.padding.top + spec.padding.bottom,
                        spec.dilation.h * (spec.weight.r - 1), output_padding.h);
  spec.input.w = extent(dy.w, spec.stride.w, spec.padding.left + spec.padding.right,
                        spec.dilation.w * (spec.weight.s - 1), output_padding.w);
  spec.weight.k = dy.c;
  spec.weight.c = spec.groups > 0 ? spec.input.c / spec.groups : 0;
  return spec;
}

ShapeRow read_row(const Cells& cells) {
  ShapeRow row;
  row.name = cells.text("name");
  ConvSpec& spec = row.spec;
  spec.groups = cells.number("groups");
  spec.input = {cells.number("N"), cells.number("C"), cells.number("H"), cells.number("W")};
  const std::int64_t channels = spec.groups > 0 ? spec.input.c / spec.groups : 0;
  spec.weight = {cells.number("K"), channels, cells.number("R"), cells.number("S")};
  spec.stride = {cells.number("stride_h"), cells.number("stride_w")};
  spec.dilation = {cells.number("dil_h"), cells.number("dil_w")};
  const std::int64_t top = cells.number("pad_h"), left = cells.number("pad_w");
  spec.padding = {top, cells.number("pad_h_end", top), left, cells.number("pad_w_end", left)};
  // Lists of transposed convolutions only have output padding; mixed lists have a flag.
  const bool transposed = cells.has("transposed") ? cells.number("transposed") != 0 : cells.has("output_pad_h");
  if (transposed) spec = data_gradient_of(spec, {cells.number("output_pad_h", 0), cells.number("output_pad_w", 0)});
  return row;
}

}  // namespace

std::vector<ShapeRow> parse_shape_list(std::string_view list, std::string_view text) {
  std::istringstream stream{std::string(text)};
  std::string line;
  if (!std::getline(stream, line)) fail(list, 1, "is empty");
  const std::vector<std::string> header = split(line);
  check_header(list, header);
  std::vector<ShapeRow> rows;
  for (int number = 2; std::getline(stream, line); ++number) {
    if (line.empty()) continue;
    ShapeRow row = read_row(Cells(list, number, header, split(line)));
    row.list = list;
    row.line = number;
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<ShapeRow> read_shape_list(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::ostringstream text;
  if (!(text << stream.rdbuf())) throw std::runtime_error("cannot read " + file.string());
  return parse_shape_list(file.stem().string(), text.str());
}

std::vector<ShapeRow> all_shapes(const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().extension() == ".csv") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<ShapeRow> rows;
  for (const std::filesystem::path& file : files) {
    for (ShapeRow& row : read_shape_list(file)) rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<ShapeRow> forward_shapes(const std::filesystem::path& directory) {
  std::vector<ShapeRow> rows = all_shapes(directory);
  std::erase_if(rows, [](const ShapeRow& row) { return row.spec.operation != Operation::forward; });
  return rows;
}

}  // namespace jitconv::test
