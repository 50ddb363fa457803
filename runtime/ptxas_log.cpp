// The lines of interest, in the order ptxas prints them for each kernel:
//   ptxas info    : Compiling entry function 'name' for 'sm_90a'
//   ptxas info    : Function properties for name
//       16 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads
//   ptxas info    : Used 40 registers, used 1 barriers, 16 bytes cumulative stack size, 8192 bytes smem
#include "runtime/ptxas_log.h"

#include <algorithm>
#include <charconv>
#include <sstream>
#include <string_view>

namespace jitconv::runtime {
namespace {

/// The number right before `unit`: 40 for "Used 40 registers" and " registers".
std::int64_t number_before(std::string_view line, std::string_view unit) {
  const std::size_t end = line.find(unit);
  if (end == std::string_view::npos) return 0;
  std::size_t begin = end;
  while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9') --begin;
  std::int64_t value = 0;
  std::from_chars(line.data() + begin, line.data() + end, value);
  return value;
}

std::string_view quoted(std::string_view line) {
  const std::size_t begin = line.find('\'');
  const std::size_t end = begin == std::string_view::npos ? begin : line.find('\'', begin + 1);
  return end == std::string_view::npos ? std::string_view() : line.substr(begin + 1, end - begin - 1);
}

}  // namespace

std::vector<Resources> resources_from_log(const std::string& log, const std::vector<codegen::KernelEntry>& entries) {
  std::vector<Resources> all(entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    all[i].threads = static_cast<int>(entries[i].threads);
    all[i].shared_bytes = entries[i].shared_bytes;
  }
  Resources* current = nullptr;
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    if (line.find("Compiling entry function") != std::string::npos) {
      const auto found = std::find_if(entries.begin(), entries.end(),
                                      [name = quoted(line)](const auto& entry) { return entry.name == name; });
      current = found == entries.end() ? nullptr : &all[static_cast<std::size_t>(found - entries.begin())];
    }
    if (current == nullptr) continue;
    current->local_bytes += number_before(line, " bytes stack frame");
    if (line.find("Used ") == std::string::npos) continue;
    current->registers = static_cast<int>(number_before(line, " registers"));
    current->shared_bytes += number_before(line, " bytes smem");
    current = nullptr;
  }
  return all;
}

}  // namespace jitconv::runtime
