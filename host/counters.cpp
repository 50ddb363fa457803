// Counters as text.
#include "host/counters.h"

#include <fmt/format.h>

namespace jitconv::host {
namespace {

void print(std::string& text, const char* name, const GlobalCounters& global) {
  const double per_request =
      global.requests == 0 ? 0.0 : static_cast<double>(global.sectors) / static_cast<double>(global.requests);
  text += fmt::format("{0}: {1} requests, {2} sectors ({3:.2f} a request), {4} bytes, efficiency {5:.3f}\n", name,
                      global.requests, global.sectors, per_request, global.bytes, global.efficiency());
}

void print(std::string& text, const char* name, const SharedCounters& shared) {
  text += fmt::format("{0}: {1} requests, {2} wavefronts, {3} of them bank conflicts, {4} bytes\n", name,
                      shared.requests, shared.wavefronts, shared.conflicts(), shared.bytes);
}

}  // namespace

std::string to_string(const Counters& counters) {
  std::string text;
  print(text, "global loads", counters.global_loads);
  print(text, "global stores", counters.global_stores);
  print(text, "shared loads", counters.shared_loads);
  print(text, "shared stores", counters.shared_stores);
  text += fmt::format("fmas: {}\n", counters.fmas);
  if (counters.multiply_adds != 0) text += fmt::format("multiply-adds of warpgroups: {}\n", counters.multiply_adds);
  return text;
}

}  // namespace jitconv::host
