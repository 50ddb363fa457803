// From spec to plan: every family's candidates, the cheapest wins, and its passes are added. to_string() prints what
// was decided.
#include "codegen/plan.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <optional>

#include "codegen/activation_gradient/pass.h"
#include "codegen/convolution_name.h"
#include "codegen/cost_text.h"
#include "codegen/costs/costs.h"
#include "codegen/phases.h"
#include "codegen/reduce/pass.h"
#include "codegen/transpose_weights/pass.h"
#include "fmt/format.h"
#include "jitconv/error.h"

namespace jitconv::codegen {
namespace {

struct Candidates {
  std::vector<Candidate> all;
  std::vector<Note> notes;
  bool tensor_cores = false;  ///< a family of tensor cores has one
};

Family family_of(const Candidate& candidate) { return codegen::family_of(candidate.tiling); }

/// The convolution of dense tensors that families compute in place of what is asked for, if they know no others.
Problem dense_problem(const Problem& asked) {
  return with_dense_weight(needs_phases(asked) ? sub_pixel_problem(asked) : asked);
}

bool stores_pixels(const Tiling& tiling) {
  const FamilyFunctions& functions = functions_of(codegen::family_of(tiling));
  return functions.stores_pixels != nullptr && functions.stores_pixels(tiling);
}

std::string phases_text(const Problem& problem) {
  return fmt::format("{} phase(s) of pixels in a window of {}x{} taps, {} % of which are zero for a phase",
                     problem.phases.count(), problem.rows.taps, problem.columns.taps, zero_percent(problem));
}

constexpr std::string_view kNotPossible = "not possible: ";

/// Asks each family that may compute the problem for its candidates; `dense` is the convolution in place of `problem`.
Candidates enumerate_families(const Problem& problem, const Problem& dense, const Target& target,
                              CandidateList::Keep keep, const Costs& costs) {
  Candidates result;
  // Few planes and one tap are a matter of memory, which the model knows.
  const bool memory_decides = problem.taps() == 1 && problem.c <= 4 && problem.input.layout() == Layout::nchw;
  const std::optional<Problem> storing = pixel_storing_problem(problem, dense);
  for (const Family family : competing_families()) {
    // Two lists: the cheapest before the price of interleaving is added need not be the cheapest after it.
    CandidateList list(keep, costs), storing_list(keep, costs);
    const FamilyFunctions& functions = functions_of(family);
    const Problem& enumerated = computes_as_asked(family, problem) ? problem : dense;
    const std::string why = functions.enumerate(enumerated, target, list);
    if (storing && functions.stores_pixels != nullptr) functions.enumerate(*storing, target, storing_list);
    const bool none = list.empty() && storing_list.empty();
    // Phases have another filter and more channels than the convolution that was asked for.
    const std::string_view whose = enumerated.is_sub_pixel() ? " (in the dense convolution of its phases)" : "";
    if (none) result.notes.push_back({std::string(to_string(family)), fmt::format("{}{}{}", kNotPossible, why, whose)});
    if (uses_tensor_cores(family) && !none) result.tensor_cores = true;
    if (functions.price_beside_tensor_cores != nullptr && result.tensor_cores && !memory_decides)
      for (Candidate& candidate : list.candidates())
        candidate.cost = functions.price_beside_tensor_cores(problem, costs, candidate.cost);
    std::ranges::move(list.candidates(), std::back_inserter(result.all));
    std::ranges::move(storing_list.candidates(), std::back_inserter(result.all));
  }
  return result;
}

/// Adds the passes that candidates need which compute `dense` in place of `problem`.
void price_dense_passes(const Problem& problem, const Problem& dense, const Costs& costs, Candidates& candidates) {
  if (!dense.asked_weight) return;
  const std::int64_t interleaving = dense.is_sub_pixel() ? interleaving_cost(problem, dense, costs.fma) : 0,
                     transposing = weight_transposition_cost(dense, costs.fma);
  bool any = false;
  for (Candidate& candidate : candidates.all) {
    const Family family = family_of(candidate);
    if (computes_as_asked(family, problem)) continue;
    candidate.cost +=
        (stores_pixels(candidate.tiling) ? 0 : interleaving) + (functions_of(family).prices_packing ? 0 : transposing);
    any = true;
  }
  if (any && dense.is_sub_pixel()) candidates.notes.push_back({"sub-pixel", phases_text(dense)});
}

/// Says which limit each family has that computes such operations; those that do not say what the last resort says.
[[noreturn]] void throw_unsupported(const ConvSpec& spec, const std::vector<Note>& notes, const std::string& last) {
  std::string limits;
  for (const Note& note : notes)
    if (const std::string_view why = std::string_view(note.text).substr(kNotPossible.size()); why != last)
      limits += fmt::format("{}{}: {}", limits.empty() ? "" : "; ", note.topic, why);
  throw SpecError(ErrorCode::unsupported, "operation",
                  fmt::format("operation is {}, and no kernel computes it for this convolution: {}",
                              to_string(spec.operation), limits.empty() ? last : limits));
}

void add_last_resort(const ConvSpec& spec, const Problem& problem, const Target& target, Candidates& candidates) {
  std::string why;
  candidates.all = candidates_of(kLastResort, problem, target, why);
  if (candidates.all.empty()) throw_unsupported(spec, candidates.notes, why);
  candidates.notes.push_back(
      {std::string(to_string(kLastResort)), "slow path: operands are read from global memory for every tap"});
}

void price_activation_gradient(const Problem& problem, const Costs& costs, Candidates& candidates) {
  const std::int64_t activating = activation_gradient_cost(problem, costs.fma);
  for (Candidate& candidate : candidates.all) candidate.cost += activating;
  candidates.notes.push_back(
      {"dy_activation", fmt::format("a pass before the gradient multiplies dy by the derivative of {}, modelled at "
                                    "{}; it is not fused into the gradient's loads",
                                    to_string(problem.dy_activation), cost_text(activating))});
}

Candidates find_candidates(const ConvSpec& spec, const Problem& problem, const Target& target, CandidateList::Keep keep,
                           const Costs& costs) {
  const Problem dense = dense_problem(problem);
  Candidates result = enumerate_families(problem, dense, target, keep, costs);
  price_dense_passes(problem, dense, costs, result);
  if (result.all.empty()) add_last_resort(spec, problem, target, result);
  if (problem.dy_activation != Activation::none) price_activation_gradient(problem, costs, result);
  if (spec.math != MathMode::ieee && !result.tensor_cores)
    result.notes.push_back({"math", fmt::format("{} is served by fp32 FMA kernels, which keep more than it promises",
                                                to_string(spec.math))});
  return result;
}

bool cheaper(const Candidate& a, const Candidate& b) { return a.cost < b.cost; }

/// What all plans of a canonical spec have in common, without a kernel.
ConvPlan begun_plan(const ConvSpec& spec, const Target& target) {
  ConvPlan plan;
  plan.spec = spec;
  plan.spec_text = to_string(spec);
  plan.convolution_name = convolution_name(spec);
  plan.target = target;
  return plan;
}

ConvPlan empty_plan(const ConvSpec& spec, const Target& target) {
  ConvPlan plan = begun_plan(spec, target);
  plan.notes.push_back({"none", "the output has no elements, nothing is launched"});
  return plan;
}

/// What is asked for, in canonical form; throws if it cannot be.
ConvSpec accepted(const ConvSpec& spec, const Target& target) {
  validate(target);
  return canonical(spec);
}

/// What the best candidate of each family that was not chosen would have cost.
void note_losers(const Candidates& candidates, ConvPlan& chosen) {
  for (const Family family : competing_families()) {
    if (family == chosen.family()) continue;
    const Candidate* best = nullptr;
    for (const Candidate& candidate : candidates.all)
      if (family_of(candidate) == family && (best == nullptr || cheaper(candidate, *best))) best = &candidate;
    if (best == nullptr) continue;
    chosen.notes.push_back(
        {std::string(to_string(family)), fmt::format("modelled at {}, {} at {}", cost_text(best->cost),
                                                     to_string(chosen.family()), cost_text(chosen.cost))});
  }
}

/// Lets a kernel of the plan read the weights as `asked` has them: the one that packs them, or one that makes them
/// dense.
void read_asked_weight(ConvPlan& plan, const Problem& asked) {
  for (KernelPlan& kernel : plan.kernels) {
    if (!functions_of(kernel.family()).reads_any_weight) continue;
    kernel.problem.weight = asked.weight;
    return;
  }
  add_weight_transposition(plan, asked);
}

/// The plan of one kernel, and the passes that it needs.
ConvPlan complete_plan(ConvPlan plan, KernelPlan kernel) {
  const FamilyFunctions& functions = functions_of(kernel.family());
  const Problem wanted = kernel.problem;
  const bool as_asked = computes_as_asked(kernel.family(), wanted);
  const bool has_phases = needs_phases(wanted) && !as_asked, interleaves = has_phases && !stores_pixels(kernel.tiling);
  Problem asked = has_phases ? sub_pixel_problem(wanted) : wanted;
  if (has_phases && !interleaves) {
    const std::optional<Problem> storing = pixel_storing_problem(wanted, asked);
    if (!storing) throw InternalError("a plan that stores pixels of phases, of a gradient that lacks some");
    asked = *storing;
  }
  const bool reads_asked =
      as_asked || (functions.reads_asked_weight != nullptr && functions.reads_asked_weight(kernel.tiling));
  if (!reads_asked) kernel.problem = with_dense_weight(asked);
  if (functions.joins_groups != nullptr)
    kernel.problem = join_groups(kernel.problem, functions.joins_groups(kernel.tiling));
  const bool is_reordered = kernel.problem.weight != asked.weight;
  kernel.wide_index = functions.needs_wide_index != nullptr ? functions.needs_wide_index(kernel.problem, kernel.tiling)
                                                            : needs_wide_index(kernel.problem, {});
  // Before the others are added: they read what it writes.
  const bool activates = wanted.dy_activation != Activation::none;
  if (activates) kernel.problem.dy().tensor = add_dz(plan, wanted);
  plan.kernels.push_back(kernel);
  if (functions.add_passes != nullptr) functions.add_passes(plan);
  if (interleaves) add_interleaving(plan, wanted);
  if (is_reordered) read_asked_weight(plan, asked);
  if (activates) add_activation_gradient(plan, wanted);
  return plan;
}

ConvPlan complete_plan(const ConvPlan& begun, const Problem& problem, const Candidate& candidate) {
  ConvPlan plan = complete_plan(begun, {problem, candidate.tiling, candidate.launch});
  plan.cost = candidate.cost;
  return plan;
}

}  // namespace

const KernelPlan& ConvPlan::convolution() const {
  for (const KernelPlan& kernel : kernels)
    if (functions_of(kernel.family()).enumerate != nullptr) return kernel;
  throw InternalError("a plan without a kernel that convolves");
}

std::int64_t ConvPlan::packed_weight_bytes() const {
  std::int64_t bytes = 0;
  for (const Scratch& region : scratch)
    if (region.is_packed_weights) bytes += region.bytes;
  return bytes;
}

std::int64_t ConvPlan::workspace_bytes() const {
  std::int64_t bytes = 0;
  for (const Scratch& region : scratch) bytes += region.bytes;
  return bytes;
}

ConvPlan plan_with(const ConvSpec& spec, const Target& target, const Candidate& candidate) {
  return complete_plan(begun_plan(spec, target), lower(spec), candidate);
}

ConvPlan plan_like(const ConvPlan& plan, const ConvSpec& spec, std::uint32_t blocks) {
  KernelPlan kernel{lower(spec), plan.convolution().tiling, plan.convolution().launch};
  kernel.launch.blocks = blocks;
  ConvPlan like = complete_plan(begun_plan(spec, plan.target), kernel);
  // As long as the planner has not said so of this spec, offsets are as wide as they were.
  for (std::size_t i = 0; i < std::min(like.kernels.size(), plan.kernels.size()); ++i)
    like.kernels[i].wide_index = plan.kernels[i].wide_index;
  like.cost = plan.cost;
  like.notes = plan.notes;
  return like;
}

ConvPlan make_plan(const ConvSpec& spec, const Target& target) {
  const ConvSpec wanted = accepted(spec, target);
  const Problem problem = lower(wanted);
  if (problem.result_elements() == 0) return empty_plan(wanted, target);
  const Candidates candidates =
      find_candidates(wanted, problem, target, CandidateList::Keep::cheapest, costs_of(target));
  // The first of the cheapest: equal costs are decided by the order of enumeration, which is the same everywhere.
  const auto best = std::min_element(candidates.all.begin(), candidates.all.end(), cheaper);
  ConvPlan chosen = complete_plan(begun_plan(wanted, target), problem, *best);
  chosen.notes = candidates.notes;
  note_losers(candidates, chosen);
  return chosen;
}

std::vector<ConvPlan> enumerate_plans(const ConvSpec& spec, const Target& target, std::size_t limit) {
  const ConvSpec wanted = accepted(spec, target);
  const Problem problem = lower(wanted);
  if (problem.result_elements() == 0) return {empty_plan(wanted, target)};
  std::vector<Candidate> all = find_candidates(wanted, problem, target, CandidateList::Keep::all, costs_of(target)).all;
  std::stable_sort(all.begin(), all.end(), cheaper);
  if (all.size() > limit) all.resize(limit);
  const ConvPlan begun = begun_plan(wanted, target);
  std::vector<ConvPlan> plans;
  for (const Candidate& candidate : all) plans.push_back(complete_plan(begun, problem, candidate));
  return plans;
}

std::vector<std::int64_t> candidate_costs(const ConvSpec& spec, const Target& target, const Costs& costs) {
  const ConvSpec wanted = accepted(spec, target);
  const Problem problem = lower(wanted);
  std::vector<std::int64_t> all;
  if (problem.result_elements() == 0) return all;
  for (const Candidate& candidate : find_candidates(wanted, problem, target, CandidateList::Keep::all, costs).all)
    all.push_back(candidate.cost);
  return all;
}

std::vector<std::size_t> cheapest_first(const std::vector<std::int64_t>& costs) {
  std::vector<std::size_t> order(costs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return costs[a] < costs[b]; });
  return order;
}

std::string to_string(const ConvPlan& plan) {
  std::string text = fmt::format("family: {}\ntarget: {}\n", to_string(plan.family()), plan.target.arch());
  if (plan.kernels.empty()) return text;
  const KernelPlan& convolution = plan.convolution();
  const Launch& launch = convolution.launch;
  text += fmt::format("grid: {} blocks of {} threads, {} bytes of shared memory, at least {} block(s) per SM\n",
                      launch.blocks, launch.threads, launch.shared_bytes, launch.min_blocks_per_sm);
  if (!uses_tensor_cores(plan.family())) text += fmt::format("offsets: {} bits\n", convolution.wide_index ? 64 : 32);
  text += functions_of(plan.family()).describe(convolution);
  if (convolution.problem.is_sub_pixel())
    text += fmt::format(
        "sub-pixel: {}, {}\n", phases_text(convolution.problem),
        convolution.problem.phases.stores_pixels ? "stored as the pixels of dx" : "interleaved by another kernel");
  if (plan.kernels.size() > 1) {
    std::string names;
    for (const KernelPlan& kernel : plan.kernels)
      names += fmt::format("{}{}", names.empty() ? "" : ", ", to_string(kernel.family()));
    text += fmt::format("kernels: {}\n", names);
  }
  return text;
}

Work work(const ConvSpec& spec) {
  const Problem problem = lower(spec);
  Work all = work(problem);
  if (problem.dy_activation != Activation::none)
    all.bytes += static_cast<double>(problem.dy_elements()) * static_cast<double>(problem.dy().element_bytes());
  return all;
}

}  // namespace jitconv::codegen
