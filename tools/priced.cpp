// See priced.h.
#include "tools/priced.h"

namespace jitconv::tools {
namespace {

constexpr double kMillisecondsPerPicosecond = 1e-9;

std::string on_one_line(const std::string& text) {
  std::string line;
  for (const char c : text) line += c == '\n' ? std::string("; ") : std::string(1, c);
  while (line.ends_with("; ")) line.resize(line.size() - 2);
  return line;
}

}  // namespace

double modelled_ms(const codegen::ConvPlan& plan) {
  return static_cast<double>(plan.cost) * kMillisecondsPerPicosecond;
}

json::Object terms_json(const std::vector<codegen::CostTerm>& terms) {
  json::Object object;
  for (const codegen::CostTerm& term : terms) object[term.entry] = term.picoseconds * kMillisecondsPerPicosecond;
  return object;
}

json::Object candidates_json(const ConvSpec& spec, const Target& target, std::size_t limit) {
  const std::vector<codegen::ConvPlan> plans = codegen::enumerate_plans(spec, target, limit);
  const std::vector<std::vector<codegen::CostTerm>> terms = codegen::cost_terms(spec, target, limit);
  json::Array candidates;
  for (std::size_t i = 0; i < plans.size(); ++i)
    candidates.push_back(json::Object{{"family", std::string(codegen::to_string(plans[i].family()))},
                                      {"modelled_ms", modelled_ms(plans[i])},
                                      {"plan", on_one_line(codegen::to_string(plans[i]))},
                                      {"terms", terms_json(terms[i])}});
  return json::Object{
      {"spec", to_string(spec)}, {"arch", std::string(target.arch())}, {"candidates", std::move(candidates)}};
}

}  // namespace jitconv::tools
