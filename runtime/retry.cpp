// What compile() does when the compiler makes less of a tensor-core kernel than its plan counts on: it tries a few
// other candidates. Only the log of the compiler, ptxas, can tell.
#include <fmt/format.h>

#include <set>
#include <utility>
#include <vector>

#include "codegen/cost_text.h"
#include "runtime/build.h"
#include "runtime/compile.h"
#include "runtime/log.h"
#include "runtime/ptxas_log.h"

namespace jitconv::runtime {
namespace {

/// The candidates after `best` that might have been chosen, cheapest first. Those that differ from an earlier one only
/// in how tiles and steps are dealt out are left out: the compiler would make the same of them.
std::vector<codegen::ConvPlan> other_candidates(const codegen::ConvPlan& best, std::size_t most) {
  const auto body = [](const codegen::ConvPlan& plan) {
    return std::pair(plan.family(), codegen::functions_of(plan.family()).body(plan.convolution()));
  };
  std::set<std::pair<codegen::Family, std::vector<int>>> seen = {body(best)};
  std::vector<codegen::ConvPlan> others;
  for (codegen::ConvPlan& plan : codegen::enumerate_plans(best.spec, best.target, SIZE_MAX)) {
    if (others.size() == most) break;
    if (!codegen::uses_tensor_cores(plan.family())) continue;
    if (seen.insert(body(plan)).second) others.push_back(std::move(plan));
  }
  return others;
}

}  // namespace

Kernel compile_best(const codegen::ConvPlan& best, const CompileOptions& options) {
  return compile_best(best, options, backend_for(best.target));
}

Kernel compile_best(const codegen::ConvPlan& best, const CompileOptions& options, const Backend& backend) {
  constexpr std::size_t kMostOthers = 4;  // each costs a compilation
  Built first = build(best, options, backend);
  codegen::ConvPlan plan = best;
  if (!codegen::uses_tensor_cores(best.family()))
    return make_kernel(std::move(plan), std::move(first), options, backend);

  const std::string family(to_string(best.family()));
  std::vector<codegen::Note> notes = best.notes;
  // Whether the kernel is what the plan says; else a note says why not.
  const auto is_sound = [&notes](const codegen::ConvPlan& candidate, const Built& built) {
    const std::optional<std::string> reason = defect(built.binary.log, built.source.entries);
    if (reason) {
      notes.push_back({std::string(to_string(candidate.family())),
                       fmt::format("the compiler spoils the candidate modelled at {}: {}",
                                   codegen::cost_text(candidate.cost), *reason)});
      log(LogLevel::debug, notes.back().text);
    }
    return !reason;
  };
  if (is_sound(best, first)) return make_kernel(std::move(plan), std::move(first), options, backend);

  try {
    for (codegen::ConvPlan& other : other_candidates(best, kMostOthers)) {
      Built built = build(other, options, backend);
      if (!is_sound(other, built)) continue;
      other.notes = std::move(notes);
      return make_kernel(std::move(other), std::move(built), options, backend);
    }
  } catch (const CompileError& error) {
    // There is a kernel, and a slow one is better than none: compiling may be forbidden.
    notes.push_back({family, fmt::format("no other candidate could be compiled: {}", error.what())});
  }
  notes.push_back({family, "slow path: the first candidate is used as it is"});
  plan.notes = std::move(notes);
  return make_kernel(std::move(plan), std::move(first), options, backend);
}

}  // namespace jitconv::runtime
