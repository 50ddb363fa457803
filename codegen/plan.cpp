// From spec to plan: every family's candidates, the cheapest wins. to_string() prints what was decided.
#include "codegen/plan.h"

#include <algorithm>
#include <iterator>

#include "codegen/cost_text.h"
#include "codegen/heuristics.h"
#include "fmt/format.h"
#include "jitconv/error.h"

namespace jitconv::codegen {
namespace {

static_assert(std::variant_size_v<Tiling> == static_cast<std::size_t>(Family::fallback) + 1,
              "a tiling's place in the variant is its family");

Family family_of(const Candidate& candidate) { return static_cast<Family>(candidate.tiling.index()); }

struct Candidates {
  std::vector<Candidate> all;
  std::vector<Note> notes;
};

/// What the model of FMA kernels leaves out, most of it where there is little work. Of 76 convolutions for which it saw
/// them within a few per cent of tensor cores, measured on an H200, tensor cores were faster in 75, mostly by far.
constexpr std::int64_t kBesideTensorCoresPercent = 25;

Candidates all_candidates(const ConvSpec& spec, const Target& target) {
  Candidates result;
  const auto take = [&](std::vector<Candidate> candidates, Family family, const std::string& why) {
    if (candidates.empty()) result.notes.push_back({std::string(to_string(family)), "not possible: " + why});
    std::move(candidates.begin(), candidates.end(), std::back_inserter(result.all));
  };
  std::string why;
  take(pointwise_candidates(spec, target, why), Family::pointwise, why);
  take(tensor_candidates(spec, target, why), Family::tensor, why);
  const bool tensor_cores = !result.all.empty();
  take(depthwise_candidates(spec, target, why), Family::depthwise, why);
  std::vector<Candidate> direct = direct_candidates(spec, target, why);
  // Few channels and one tap are a matter of memory, which the model knows.
  const bool memory_decides = spec.weight.r * spec.weight.s == 1 && spec.weight.c <= 4;
  if (tensor_cores && !memory_decides)
    for (Candidate& candidate : direct) candidate.cost += candidate.cost * kBesideTensorCoresPercent / 100;
  take(std::move(direct), Family::direct, why);
  if (result.all.empty()) {
    result.all = fallback_candidates(spec, target);
    result.notes.push_back({"fallback", "slow path: operands are read from global memory for every tap"});
  }
  if (spec.math != MathMode::ieee && !tensor_cores)
    result.notes.push_back({"math", fmt::format("{} is served by fp32 FMA kernels, which keep more than it promises",
                                                to_string(spec.math))});
  return result;
}

bool cheaper(const Candidate& a, const Candidate& b) { return a.cost < b.cost; }

ConvPlan empty_plan(const ConvSpec& spec, const Target& target) {
  ConvPlan plan;
  plan.spec = spec;
  plan.target = target;
  plan.notes.push_back({"none", "the output has no elements, nothing is launched"});
  return plan;
}

/// What is asked for, in canonical form; throws if it cannot be.
ConvSpec accepted(const ConvSpec& spec, const Target& target) {
  validate(spec);
  validate(target);
  return canonical(spec);
}

bool has_no_outputs(const ConvSpec& spec) {
  const TensorShape out = output_shape(spec);
  return out.n * out.c * out.h * out.w == 0;
}

}  // namespace

Workspace workspace_of(const Tiling& tiling, const ConvSpec& spec) {
  if (const auto* tensor = std::get_if<TensorTiling>(&tiling)) {
    const ConvSpec convolved = tensor->convolved_spec(spec);
    return {tensor->packed_weight_bytes(convolved), tensor->partial_sum_bytes(convolved),
            tensor->packed_pixel_bytes(convolved)};
  }
  if (const auto* pointwise = std::get_if<PointwiseTiling>(&tiling))
    return {.partial_sums = pointwise->partial_sum_bytes(spec)};
  return {};
}

ConvPlan make_plan(const Candidate& candidate, const ConvSpec& spec, const Target& target) {
  const BlockWork& work = candidate.work;
  ConvPlan plan;
  plan.spec = spec;
  plan.target = target;
  plan.family = family_of(candidate);
  plan.tiling = candidate.tiling;
  plan.blocks = static_cast<std::uint32_t>(work.blocks);
  plan.threads = static_cast<std::uint32_t>(work.threads);
  plan.shared_bytes = static_cast<std::uint32_t>(work.shared_bytes);
  plan.min_blocks_per_sm = std::min(resident_blocks(work, target), work.launch_blocks);
  Overhang over;
  if (const auto* direct = std::get_if<DirectTiling>(&candidate.tiling)) over = overhang(*direct, spec);
  if (const auto* depthwise = std::get_if<DepthwiseTiling>(&candidate.tiling)) over = overhang(*depthwise, spec);
  plan.workspace = workspace_of(candidate.tiling, spec);
  plan.wide_index = needs_wide_index(spec, over);
  plan.cost = candidate.cost;
  return plan;
}

namespace {

/// What the best candidate of each family that was not chosen would have cost.
void note_losers(const Candidates& candidates, ConvPlan& chosen) {
  for (const Family family : {Family::pointwise, Family::tensor, Family::depthwise, Family::direct}) {
    if (family == chosen.family) continue;
    const Candidate* best = nullptr;
    for (const Candidate& candidate : candidates.all)
      if (family_of(candidate) == family && (best == nullptr || cheaper(candidate, *best))) best = &candidate;
    if (best == nullptr) continue;
    chosen.notes.push_back(
        {std::string(to_string(family)), fmt::format("modelled at {}, {} at {}", cost_text(best->cost),
                                                     to_string(chosen.family), cost_text(chosen.cost))});
  }
}

std::string describe(const PointwiseTiling& t, const ConvSpec&) {
  std::string text = fmt::format(
      "tile of a block: {} pixels, {} channels; of a warpgroup: {} pixels, {} channels\n"
      "pipeline: {} stages of {} channels, {} at a time to registers\n",
      t.block_pixels(), t.block_k(), t.consumer_pixels(), t.columns, t.stages, t.chunk_channels, t.batch_steps * 8);
  if (t.splits > 1)
    text += fmt::format("reduction: split over {} blocks, partial sums added by another kernel\n", t.splits);
  return text;
}

std::string loading(const TensorTiling& t, const ConvSpec& spec) {
  using Pixels = TensorTiling::Pixels;
  switch (t.pixels) {
    case Pixels::loaded:
      return fmt::format("{} team(s) of {} warp(s), {} {} of a lane in flight", 4 / t.team_warps, t.team_warps,
                         t.load_batch,
                         TensorTiling::loads_vectors(spec) ? "vector(s)"
                         : TensorTiling::loads_pairs(spec) ? "pair(s) of pixels"
                                                           : "pixel(s)");
    case Pixels::copied:
      return fmt::format("by the copy engine, {} step(s) ahead of each of 4 warps", t.copies_ahead);
    case Pixels::walked:
      return "as operand rows, by the copy engine";
    case Pixels::transposed:
      return "transposed before, as operand rows, by the copy engine";
  }
  return {};
}

/// How pixels come, and how outputs leave.
std::string traffic(const TensorTiling& t, const ConvSpec& spec) {
  const std::string_view stores = t.stores_boxes()                     ? "boxes of outputs, by the copy engine"
                                  : spec.output_layout == Layout::nhwc ? "vectors of channels"
                                  : t.images > 0                       ? "planes of whole images"
                                  : t.stores_bulk(spec)                ? "runs, by the copy engine"
                                                                       : "runs, as vectors";
  return fmt::format("loading: {}\nstoring: {}\n", loading(t, spec), stores);
}

std::string describe(const TensorTiling& t, const ConvSpec& spec) {
  std::string text = fmt::format(
      "tile of a block: {} channels, {} run(s) of {} positions{}\n"
      "pipeline: {} stages of {} slice(s) of 16 bytes of channels and {}\n",
      t.block_k, t.runs(), t.columns, t.stores_boxes() ? "" : fmt::format(", each for {} outputs", t.window), t.stages,
      t.slices, t.filter_rows == 1 ? "one filter row" : "all filter rows");
  text += traffic(t, spec);
  if (t.share == TensorTiling::Share::turns)
    text += "multiplying: two warpgroups take tiles in turn, and one stores while the other multiplies\n";
  if (t.share == TensorTiling::Share::steps)
    text += "multiplying: two warpgroups take the steps of a tile in turn, and add their sums\n";
  if (t.images > 0) text += fmt::format("images of a run: {}\n", t.images);
  text += fmt::format("weights: {}\n", t.resident          ? "all in shared memory"
                                       : t.packs_weights() ? "loaded with each step"
                                                           : "loaded with each step as they lie in w");
  if (t.splits > 1)
    text += fmt::format("reduction: split over {} blocks, partial sums added by another kernel\n", t.splits);
  return text;
}

std::string describe(const DirectTiling& t, const ConvSpec&) {
  return fmt::format(
      "outputs of a thread: {} channels, {} rows, {} columns\n"
      "lanes of a warp: {} rows, {} columns\n"
      "warps of a block: {} along channels, {} along rows, {} along columns\n"
      "tile of a block: {} channels, {} rows, {} columns\n"
      "pipeline: {} stages of {} input channels, {}\n"
      "body: {}, {} channel(s) per iteration\n",
      t.thread_k, t.thread_p, t.thread_q, t.lanes_p, t.lanes_q, t.warps_k, t.warps_p, t.warps_q, t.block_k(),
      t.block_p(), t.block_q(), t.stages, t.chunk_c, t.async_copy ? "cp.async" : "copies through registers",
      t.unroll_rows ? "all filter rows" : "one filter row", t.unroll_c);
}

std::string describe(const DepthwiseTiling& t, const ConvSpec&) {
  constexpr std::string_view kStores[] = {"vectors from registers", "one flat run through shared memory",
                                          "row by row through shared memory"};
  return fmt::format(
      "outputs of a thread: {} rows, {} columns\n"
      "tile of a block: {} plane(s), {} rows, {} columns\n"
      "copies: {} element(s), {}\n"
      "body: {}, weights in {}\n"
      "store: {}\n",
      t.thread_p, t.thread_q, t.planes, t.tile_p(), t.tile_q(), t.copy_vector,
      t.async_copy ? "cp.async" : "through registers", t.unroll_rows ? "all filter rows" : "one filter row",
      t.weights_in_registers ? "registers" : "shared memory", kStores[static_cast<int>(t.store)]);
}

std::string describe(const FallbackTiling& t, const ConvSpec&) {
  return fmt::format("outputs of a thread: {} channels, {} pixels\nlanes over: {}\n", t.thread_k, t.thread_pixels,
                     t.lanes_over_channels ? "channels" : "pixels");
}

std::string describe(std::monostate, const ConvSpec&) { return {}; }

}  // namespace

std::string_view to_string(Family family) {
  switch (family) {
    case Family::none:
      return "none";
    case Family::pointwise:
      return "pointwise";
    case Family::tensor:
      return "tensor";
    case Family::direct:
      return "direct";
    case Family::depthwise:
      return "depthwise";
    case Family::fallback:
      return "fallback";
  }
  throw InternalError("unknown family");
}

ConvPlan make_plan(const ConvSpec& spec, const Target& target) {
  const ConvSpec wanted = accepted(spec, target);
  if (has_no_outputs(wanted)) return empty_plan(wanted, target);
  const Candidates candidates = all_candidates(wanted, target);
  // The first of the cheapest: equal costs are decided by the order of enumeration, which is the same everywhere.
  const auto best = std::min_element(candidates.all.begin(), candidates.all.end(), cheaper);
  ConvPlan chosen = make_plan(*best, wanted, target);
  chosen.notes = candidates.notes;
  note_losers(candidates, chosen);
  return chosen;
}

std::vector<ConvPlan> enumerate_plans(const ConvSpec& spec, const Target& target, std::size_t limit) {
  const ConvSpec wanted = accepted(spec, target);
  if (has_no_outputs(wanted)) return {empty_plan(wanted, target)};
  std::vector<Candidate> all = all_candidates(wanted, target).all;
  std::stable_sort(all.begin(), all.end(), cheaper);
  if (all.size() > limit) all.resize(limit);
  std::vector<ConvPlan> plans;
  for (const Candidate& candidate : all) plans.push_back(make_plan(candidate, wanted, target));
  return plans;
}

std::string to_string(const ConvPlan& plan) {
  std::string text = fmt::format("family: {}\ntarget: {}\n", to_string(plan.family), plan.target.arch());
  if (plan.family == Family::none) return text;
  text += fmt::format("grid: {} blocks of {} threads, {} bytes of shared memory, at least {} block(s) per SM\n",
                      plan.blocks, plan.threads, plan.shared_bytes, plan.min_blocks_per_sm);
  if (!uses_tensor_cores(plan.family)) text += fmt::format("offsets: {} bits\n", plan.wide_index ? 64 : 32);
  return text + std::visit([&](const auto& tiling) { return describe(tiling, plan.spec); }, plan.tiling);
}

}  // namespace jitconv::codegen
