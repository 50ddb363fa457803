// Collects what a launch breaks, each rule and line once, and finds the lines. Slow on purpose where it is slow: it
// runs when something is wrong.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "host/finding.h"
#include "host/module.h"

namespace jitconv::host {

/// A broken rule before its lines are known.
struct Violation {
  Rule rule{};
  const void* pc = nullptr;  ///< return address in the kernel
  std::uint32_t thread = 0;
  std::string address;
  std::string text;                ///< "{line}" stands for the line of other_pc
  const void* other_pc = nullptr;  ///< of the access or operation it collides with
};

class FindingLog {
 public:
  FindingLog(const Module& module, std::string kernel, std::size_t most);

  /// Whether add() has seen the rule broken at this address: cheap enough to ask before composing a violation.
  bool known(Rule rule, const void* pc) const;
  void add(const Violation& violation, const std::array<std::uint32_t, 3>& block);
  /// There are as many findings as were asked for.
  bool full() const { return findings_.size() >= most_; }
  std::vector<Finding> take() { return std::move(findings_); }

  int line(const void* pc) const { return module_.line_of(pc); }

 private:
  const Module& module_;
  std::string kernel_;
  std::size_t most_;
  std::vector<Finding> findings_;
  std::vector<std::pair<Rule, const void*>> known_;
};

}  // namespace jitconv::host
