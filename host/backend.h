// Host execution as the runtime sees it: the Backend of Execution::host. The one header of this folder that runtime/
// includes; tools and tests also take a Session to see what the engine found.
#pragma once

#include <vector>

#include "host/engine.h"
#include "runtime/backend.h"

namespace jitconv::host {

/// Compiles with the machine's C++ compiler and runs with host::execute(). There is one device, 0, and no stream but
/// the null one. A launch returns when the kernel has ended and throws KernelFault for findings, unless there is a
/// Session.
const runtime::Backend& backend();

/// While one lives, launches of the thread that made it use its settings and keep their reports here; findings then do
/// not throw. Sessions nest: the innermost counts.
class Session {
 public:
  explicit Session(Settings settings);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// One per kernel that ran, in order.
  const std::vector<Report>& reports() const { return reports_; }

  const Settings& settings() const { return settings_; }
  void add(Report report) { reports_.push_back(std::move(report)); }
  /// The calling thread's, or nullptr.
  static Session* current();

 private:
  const Settings settings_;
  std::vector<Report> reports_;
  Session* const outer_;
};

}  // namespace jitconv::host
