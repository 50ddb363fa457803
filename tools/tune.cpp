// Candidates, compiled in parallel and measured in turn on one set of tensors.
#include "tools/tune.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "runtime/compile.h"
#include "tools/check/parallel.h"
#include "tools/json.h"
#include "tools/priced.h"
#include "tools/table.h"

namespace jitconv::tools {
namespace {

/// Compiles in as many threads as there are cores; what cannot be compiled gets a note and no kernel.
std::vector<std::optional<Kernel>> compile_candidates(std::vector<Candidate>& candidates) {
  std::vector<std::optional<Kernel>> kernels(candidates.size());
  check::parallel_for(static_cast<std::int64_t>(candidates.size()), 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      try {
        kernels[i] = runtime::compile_plan(candidates[i].plan);
      } catch (const Error& error) {
        candidates[i].note = error.what();
      }
    }
  });
  return kernels;
}

void measure_candidate(Device& device, Problem& problem, const Kernel& kernel, const MeasureOptions& options,
                       Candidate& candidate, bool& wrong) {
  try {
    device.prepare(kernel);
    if (options.check) {
      const LaunchArgs arguments = problem.arguments(kernel);
      problem.poison();
      device.launch(kernel, arguments);
      device.synchronize();
      const OutputCheck check = problem.check(options.check_budget);
      if (!check.passed()) {
        wrong = true;
        candidate.note = "WRONG: " + check.text();
        return;
      }
    }
    candidate.ms = time_kernel(device, problem, kernel, options).median();
  } catch (const CudaError&) {
    throw;
  } catch (const Error& error) {
    candidate.note = error.what();
  }
}

using Lines = std::vector<std::pair<std::string, std::string>>;

Lines lines_of(const std::string& text) {
  Lines lines;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    const std::size_t first = line.find_first_not_of(' ');
    lines.emplace_back(line.substr(first, colon - first), line.substr(colon + 2));
  }
  return lines;
}

std::string plan_without_notes(codegen::ConvPlan plan) {
  plan.notes.clear();
  plan.cost = 0;
  return codegen::to_string(plan);
}

std::vector<std::string> plan_lines(const TuneResult& result) {
  std::vector<std::string> texts;
  for (const Candidate& candidate : result.candidates) texts.push_back(plan_without_notes(candidate.plan));
  return distinguishing_lines(texts);
}

}  // namespace

std::vector<std::string> distinguishing_lines(const std::vector<std::string>& texts) {
  // How many texts have this name with this value.
  std::map<std::pair<std::string, std::string>, std::size_t> seen;
  for (const std::string& text : texts) {
    for (const auto& line : lines_of(text)) ++seen[line];
  }
  std::vector<std::string> result;
  for (const std::string& text : texts) {
    std::string joined;
    for (const auto& line : lines_of(text)) {
      if (seen[line] >= texts.size()) continue;
      joined += fmt::format("{}{}: {}", joined.empty() ? "" : "; ", line.first, line.second);
    }
    result.push_back(joined);
  }
  return result;
}

bool TuneResult::any_measured() const {
  return std::any_of(candidates.begin(), candidates.end(), [](const Candidate& one) { return one.ms.has_value(); });
}

double TuneResult::ratio() const {
  if (!any_measured() || !candidates.front().ms) return 0;
  return *candidates.front().ms / *candidates[best].ms;
}

TuneResult tune(Device& device, const NamedSpec& named, const MeasureOptions& options, std::size_t limit,
                const std::function<void(const std::string&)>& progress) {
  TuneResult result;
  result.named = named;
  for (codegen::ConvPlan& plan : codegen::enumerate_plans(named.spec, device.properties().target, limit)) {
    result.candidates.push_back({std::move(plan), {}, {}});
  }
  result.note = lack_of_memory(device, named.spec, 0);
  if (!result.note.empty()) return result;
  Problem problem(device, named.spec, options.kind, options.seed);
  progress(fmt::format("{}: compiling {} candidates", named.name, result.candidates.size()));
  const std::vector<std::optional<Kernel>> kernels = compile_candidates(result.candidates);
  for (std::size_t i = 0; i < result.candidates.size(); ++i) {
    if (!kernels[i]) continue;
    progress(fmt::format("{}: candidate {} of {}", named.name, i + 1, result.candidates.size()));
    measure_candidate(device, problem, *kernels[i], options, result.candidates[i], result.any_wrong);
    const auto& best = result.candidates[result.best];
    const auto& here = result.candidates[i];
    if (here.ms && (!best.ms || *here.ms < *best.ms)) result.best = i;
  }
  return result;
}

std::string tune_text(const TuneResult& result) {
  using enum Align;
  Table table({"rank", "family", "modelled ms", "ms", "of best", "plan"}, {right, left, right, right, right, left});
  const std::vector<std::string> plans = plan_lines(result);
  const double best = result.any_measured() ? *result.candidates[result.best].ms : 0;
  std::string notes;
  for (std::size_t i = 0; i < result.candidates.size(); ++i) {
    const Candidate& candidate = result.candidates[i];
    table.add({std::to_string(i + 1), std::string(codegen::to_string(candidate.plan.family())),
               fmt::format("{:.4f}", modelled_ms(candidate.plan)),
               candidate.ms ? fmt::format("{:.4f}", *candidate.ms) : "-",
               candidate.ms ? fmt::format("{:.3f}", *candidate.ms / best) : "-", plans[i]});
    if (!candidate.note.empty()) notes += fmt::format("candidate {}: {}\n", i + 1, candidate.note);
  }
  std::string text = fmt::format("{}: {}\n{}{}", result.named.name, to_string(result.named.spec), table.text(), notes);
  if (result.ratio() > 0) {
    text += fmt::format("the model's choice takes {:.4f} ms, the best (rank {}) {:.4f} ms: {:.3f} times as long\n",
                        *result.candidates.front().ms, result.best + 1, best, result.ratio());
  } else {
    text += fmt::format("the model's choice was not measured{}{}\n", result.note.empty() ? "" : ": ", result.note);
  }
  return text;
}

json::Object tune_json(const TuneResult& result) {
  const std::vector<std::string> plans = plan_lines(result);
  std::vector<std::vector<codegen::CostTerm>> terms(plans.size());
  if (result.any_measured()) {
    const codegen::ConvPlan& first = result.candidates.front().plan;
    terms = codegen::cost_terms(first.spec, first.target, plans.size());
  }
  json::Array candidates;
  for (std::size_t i = 0; i < result.candidates.size(); ++i) {
    const Candidate& candidate = result.candidates[i];
    candidates.push_back(json::Object{{"family", std::string(codegen::to_string(candidate.plan.family()))},
                                      {"modelled_ms", modelled_ms(candidate.plan)},
                                      {"ms", candidate.ms ? json::Value(*candidate.ms) : json::Value(nullptr)},
                                      {"plan", plans[i]},
                                      {"terms", terms_json(terms[i])},
                                      {"note", candidate.note}});
  }
  return json::Object{{"config", result.named.name},
                      {"spec", to_string(result.named.spec)},
                      {"best", static_cast<std::int64_t>(result.best)},
                      {"choice_over_best", result.ratio()},
                      {"note", result.note},
                      {"candidates", std::move(candidates)}};
}

}  // namespace jitconv::tools
