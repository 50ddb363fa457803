// Column widths and padding of the text tables.
#include "tools/table.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace jitconv::tools {
namespace {

void require_cells(const std::vector<std::string>& cells, const std::vector<Column>& columns) {
  if (cells.size() != columns.size()) throw std::logic_error("a table row has another number of cells");
}

}  // namespace

RowFormat::RowFormat(std::vector<Column> columns) : columns_(std::move(columns)) {
  for (Column& column : columns_) column.width = std::max(column.width, column.title.size());
}

std::string RowFormat::heading() const {
  std::vector<std::string> titles;
  std::string rule;
  for (const Column& column : columns_) {
    titles.push_back(column.title);
    rule += (rule.empty() ? "" : "  ") + std::string(column.width, '-');
  }
  return line(titles) + rule + '\n';
}

std::string RowFormat::line(const std::vector<std::string>& cells) const {
  require_cells(cells, columns_);
  std::string text;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string space(columns_[i].width - std::min(columns_[i].width, cells[i].size()), ' ');
    if (i > 0) text += "  ";
    text += columns_[i].align == Align::left ? cells[i] + space : space + cells[i];
  }
  text.erase(text.find_last_not_of(' ') + 1);
  return text + '\n';
}

Table::Table(std::vector<std::string> titles, std::vector<Align> alignment) {
  if (titles.size() != alignment.size()) throw std::logic_error("a table has another number of titles");
  for (std::size_t i = 0; i < titles.size(); ++i) columns_.push_back({std::move(titles[i]), alignment[i]});
}

void Table::add(std::vector<std::string> cells) {
  require_cells(cells, columns_);
  for (std::size_t i = 0; i < cells.size(); ++i) columns_[i].width = std::max(columns_[i].width, cells[i].size());
  rows_.push_back(std::move(cells));
}

std::string Table::text() const {
  const RowFormat format(columns_);
  std::string text = format.heading();
  for (const auto& row : rows_) text += format.line(row);
  return text;
}

}  // namespace jitconv::tools
