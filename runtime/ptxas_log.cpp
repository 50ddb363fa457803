// The lines of interest, in the order ptxas prints them for each kernel:
//   ptxas info    : Compiling entry function 'name' for 'sm_90a'
//   ptxas info    : Function properties for name
//       16 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads
//   ptxas info    : Used 40 registers, used 1 barriers, 16 bytes cumulative stack size, 8192 bytes smem
// and before all of them, what became of asynchronous multiplications:
//   ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to ...
#include "runtime/ptxas_log.h"

#include <fmt/format.h>

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

/// The remark of a line without what comes before it and without the function it is about.
std::string remark(std::string_view line) {
  line.remove_prefix(std::min(line.find('('), line.size()));
  for (const std::string_view place : {" in the function '", " in function '"}) line = line.substr(0, line.find(place));
  return std::string(line);
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

std::optional<std::string> defect(const std::string& log, const std::vector<codegen::KernelEntry>& entries) {
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    // An injected warpgroup.arrive costs next to nothing, and the compiler adds one where it finds none: no defect.
    for (const char* const words : {"Potential Performance Loss", "warpgroup.wait is injected"})
      if (line.find(words) != std::string::npos) return remark(line);
  }
  const std::vector<Resources> resources = resources_from_log(log, entries);
  for (std::size_t i = 0; i < entries.size(); ++i)
    if (resources[i].local_bytes > 0)
      return fmt::format("{} bytes of a thread's values are in local memory", resources[i].local_bytes);
  return std::nullopt;
}

}  // namespace jitconv::runtime
