// One finding per rule and line: a loop that breaks a rule breaks it for every thread and iteration.
#include "host/finding_log.h"

#include <algorithm>

namespace jitconv::host {

FindingLog::FindingLog(const Module& module, std::string kernel, std::size_t most)
    : module_(module), kernel_(std::move(kernel)), most_(std::max<std::size_t>(most, 1)) {}

bool FindingLog::known(Rule rule, const void* pc) const {
  return std::find(known_.begin(), known_.end(), std::pair(rule, pc)) != known_.end();
}

void FindingLog::add(const Violation& violation, const std::array<std::uint32_t, 3>& block) {
  if (known(violation.rule, violation.pc)) return;
  known_.emplace_back(violation.rule, violation.pc);
  const int at = line(violation.pc);
  const bool seen = std::any_of(findings_.begin(), findings_.end(), [&](const Finding& finding) {
    return finding.rule == violation.rule && finding.line == at && at != 0;
  });
  if (seen || full()) return;
  std::string text = violation.text;
  if (const std::size_t place = text.find("{line}"); place != std::string::npos && violation.other_pc != nullptr)
    text.replace(place, 6, std::to_string(line(violation.other_pc)));
  findings_.push_back({violation.rule, kernel_, at, block, violation.thread, violation.address, std::move(text)});
}

}  // namespace jitconv::host
