// Prints a map of shared memory and a table of barriers, see layout_comment.h.
#include "codegen/text/layout_comment.h"

#include <algorithm>

#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

template <std::size_t kColumns>
std::string table(const std::vector<std::array<std::string, kColumns>>& rows) {
  std::array<std::size_t, kColumns> width{};
  for (const auto& row : rows)
    for (std::size_t i = 0; i < kColumns; ++i) width[i] = std::max(width[i], row[i].size());
  std::string text;
  for (const auto& row : rows) {
    text += "//   ";
    for (std::size_t i = 0; i + 1 < kColumns; ++i) text += fmt::format("{:<{}}", row[i], width[i] + 2);
    text += row.back() + '\n';
  }
  return text;
}

}  // namespace

LayoutComment& LayoutComment::memory(std::string_view place, std::string_view what) {
  memory_.push_back({std::string(place), std::string(what)});
  return *this;
}

LayoutComment& LayoutComment::barrier(std::string_view name, std::string_view arrivals, std::string_view who_arrives,
                                      std::string_view who_waits) {
  if (barriers_.empty()) barriers_.push_back({"name", "arrivals", "who arrives", "who waits"});
  barriers_.push_back({std::string(name), std::string(arrivals), std::string(who_arrives), std::string(who_waits)});
  return *this;
}

std::string LayoutComment::text() const {
  std::string text;
  if (!memory_.empty()) text += fmt::format("// Shared memory, by first {}:\n", unit_) + table(memory_);
  if (!barriers_.empty()) text += "// Barriers:\n" + table(barriers_);
  return text;
}

}  // namespace jitconv::codegen
