// Plain-text tables. A RowFormat's columns have widths fixed in advance, for rows that are printed as they come; a
// Table's are as wide as their widest cell. Nothing else.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace jitconv::tools {

enum class Align { left, right };

struct Column {
  std::string title;
  Align align = Align::left;
  std::size_t width = 0;  ///< at least that of the title
};

/// Lines of a table; every one ends in a newline and none in a space. A cell wider than its column moves the rest of
/// its row to the right.
class RowFormat {
 public:
  explicit RowFormat(std::vector<Column> columns);
  /// Titles and a rule.
  std::string heading() const;
  std::string line(const std::vector<std::string>& cells) const;

 private:
  std::vector<Column> columns_;
};

class Table {
 public:
  Table(std::vector<std::string> titles, std::vector<Align> alignment);
  void add(std::vector<std::string> cells);
  /// Heading and rows.
  std::string text() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace jitconv::tools
