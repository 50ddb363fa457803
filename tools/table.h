// A plain-text table with columns as wide as their widest cell. Nothing else.
#pragma once

#include <string>
#include <vector>

namespace jitconv::tools {

enum class Align { left, right };

class Table {
 public:
  Table(std::vector<std::string> titles, std::vector<Align> alignment);
  void add(std::vector<std::string> cells);
  /// Header, rule, rows; every line ends in a newline and none in a space.
  std::string text() const;

 private:
  std::vector<Align> alignment_;
  std::vector<std::vector<std::string>> rows_;  // the titles first
};

}  // namespace jitconv::tools
