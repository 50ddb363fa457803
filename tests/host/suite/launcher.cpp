// See launcher.h.
#include "host/suite/launcher.h"

#include <chrono>

#include "tools/reduce.h"

namespace jitconv::test {

std::string HostLauncher::launch(const Case& wanted, const Kernel& kernel, const LaunchArgs& args) {
  if (&wanted != last_) {
    last_ = &wanted;
    ++cases_;
    launch_of_case_ = 0;
  }
  host::Settings settings;
  settings.seed = static_cast<std::uint64_t>(totals_.launches) + 1;
  // Which data meet which landing changes from case to case.
  settings.landing = (cases_ + launch_of_case_++) % 2 == 0 ? host::Landing::early : host::Landing::late;
  device_.set_settings(settings);
  ++totals_.launches;
  ++(settings.landing == host::Landing::late ? totals_.late : totals_.early);

  const auto begin = std::chrono::steady_clock::now();
  device_.launch(kernel, args);
  totals_.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  totals_.multiply_adds += tools::executed_multiply_adds(*wanted.plan);

  std::string found;
  for (const host::Report& report : device_.take_reports()) {
    totals_.blocks += static_cast<std::int64_t>(report.blocks);
    totals_.findings += static_cast<std::int64_t>(report.findings.size());
    for (const host::Finding& finding : report.findings)
      found += (found.empty() ? "" : "; ") + host::to_string(finding);
  }
  return found;
}

}  // namespace jitconv::test
