// Column widths and padding of the text tables.
#include "tools/table.h"

#include <algorithm>
#include <stdexcept>

namespace jitconv::tools {

Table::Table(std::vector<std::string> titles, std::vector<Align> alignment) : alignment_(std::move(alignment)) {
  add(std::move(titles));
}

void Table::add(std::vector<std::string> cells) {
  if (cells.size() != alignment_.size()) throw std::logic_error("a table row has another number of cells");
  rows_.push_back(std::move(cells));
}

std::string Table::text() const {
  std::vector<std::size_t> widths(alignment_.size(), 0);
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string space(widths[i] - row[i].size(), ' ');
      if (i > 0) line += "  ";
      line += alignment_[i] == Align::left ? row[i] + space : space + row[i];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
    if (&row == &rows_.front()) {
      for (std::size_t i = 0; i < widths.size(); ++i) text += (i > 0 ? "  " : "") + std::string(widths[i], '-');
      text += '\n';
    }
  }
  return text;
}

}  // namespace jitconv::tools
