// Findings as text.
#include "host/finding.h"

#include <fmt/format.h>

namespace jitconv::host {

std::string to_string(Rule rule) {
  switch (rule) {
    case Rule::out_of_bounds:
      return "out of bounds";
    case Rule::misaligned:
      return "misaligned";
    case Rule::read_only:
      return "read only";
    case Rule::uninitialised:
      return "uninitialised";
    case Rule::race:
      return "race";
    case Rule::unfinished_copy:
      return "unfinished copy";
    case Rule::divergent_barrier:
      return "divergent barrier";
    case Rule::unfinished_multiplication:
      return "unfinished multiplication";
    case Rule::barrier_misuse:
      return "barrier misuse";
    case Rule::registers:
      return "registers";
    case Rule::overflow:
      return "overflow";
  }
  return "unknown rule";
}

std::string to_string(const Finding& finding) {
  std::string text = fmt::format("{}:{}: {}: block ({}, {}, {}) thread {}", finding.kernel,
                                 finding.line == 0 ? "?" : std::to_string(finding.line), to_string(finding.rule),
                                 finding.block[0], finding.block[1], finding.block[2], finding.thread);
  if (!finding.address.empty()) text += ", " + finding.address;
  return text + ": " + finding.text;
}

}  // namespace jitconv::host
