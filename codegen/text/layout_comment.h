// The comment before a kernel that maps its shared memory and lists its barriers. Places and counts are the names and
// expressions that the kernel itself uses.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace jitconv::codegen {

class LayoutComment {
 public:
  /// `unit` is what places in shared memory count.
  explicit LayoutComment(std::string_view unit = "byte") : unit_(unit) {}
  /// What begins at `place` of shared memory; in ascending order, but for what takes the place of others.
  LayoutComment& memory(std::string_view place, std::string_view what);
  /// A barrier, whose phase is complete after `arrivals`.
  LayoutComment& barrier(std::string_view name, std::string_view arrivals, std::string_view who_arrives,
                         std::string_view who_waits);
  /// Tables with aligned columns.
  std::string text() const;

 private:
  std::string unit_;
  std::vector<std::array<std::string, 2>> memory_;
  std::vector<std::array<std::string, 4>> barriers_;
};

}  // namespace jitconv::codegen
