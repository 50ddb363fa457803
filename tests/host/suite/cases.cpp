// See cases.h.
#include "host/suite/cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <stdexcept>

#include "support/case_lists.h"
#include "support/documented_gradients.h"
#include "support/random_specs.h"
#include "tools/documented.h"
#include "tools/reduce.h"

namespace jitconv::test {
namespace {

/// Multiply-adds that the blocks of a case execute: 0.1 s at most for each of its launches. Documented configurations
/// get more: they are few.
constexpr tools::WorkLimits kLimits{2'000'000, 4'000'000};
constexpr tools::WorkLimits kDocumentedLimits{8'000'000, 24'000'000};

constexpr std::size_t kRandomSpecs = 400;
/// Small enough that few of them need to be reduced.
constexpr SpecLimits kRandomLimits{3, 20, 6, 7, 4, 5, 9, 60};

/// Generations that generate different code: cp.async or not, and two sizes of shared memory.
const std::vector<Target>& targets() {
  static const std::vector<Target> all = {Target::host(parse_target("sm_90a")), Target::host(parse_target("sm_80")),
                                          Target::host(parse_target("sm_75"))};
  return all;
}

const Target& target_of_turn(std::size_t turn) { return targets()[turn % targets().size()]; }

class ListBuilder {
 public:
  explicit ListBuilder(const std::string& name, bool has_documented = false) {
    list_.name = name;
    list_.has_documented = has_documented;
  }

  /// The convolution, made smaller until it fits `limits`, with the plan of what was given.
  void add_reduced(const std::string& name, const ConvSpec& spec, const Target& target,
                   const tools::WorkLimits& limits) {
    tools::Reduction reduction = tools::reduce(spec, target, limits);
    if (reduction.plan.family() == codegen::Family::none) {
      ++list_.given;
      return;
    }
    Case next{fmt::format("{} for {}", name, target.arch()), reduction.plan.spec, std::nullopt, reduction.reduced, {}};
    next.plan = std::move(reduction.plan);
    add(std::move(next));
  }

  /// A case that has its plan. Runs on exact and on random data: the runner gives each of them another landing.
  void add(Case next) {
    ++list_.given;
    next.kinds = {check::DataKind::exact, check::DataKind::random};
    if (seen_.insert(next.plan->target.arch() + to_string(next.plan->spec) + codegen::to_string(*next.plan)).second)
      list_.cases.push_back(std::move(next));
  }

  HostList take() { return std::move(list_); }

 private:
  HostList list_;
  std::set<std::string> seen_;
};

/// Eight epilogues by turns, all exact on integer data but one.
Epilogue epilogue_of_turn(std::size_t turn) {
  Epilogue epilogue;
  epilogue.slope = 0.25f;
  epilogue.clamp_min = -2.0f;
  epilogue.clamp_max = 5.0f;
  epilogue.bias = turn % 8 >= 2;
  epilogue.residual = turn % 8 == 1 || turn % 8 >= 5;
  constexpr Activation kActivations[] = {Activation::none,       Activation::none, Activation::none, Activation::relu,
                                         Activation::leaky_relu, Activation::relu, Activation::silu, Activation::clamp};
  epilogue.activation = kActivations[turn % 8];
  return epilogue;
}

/// Every documented configuration on every architecture, in f32 and NCHW as it is documented; with all its channels on
/// the first.
HostList documented_list() {
  ListBuilder list("documented", /*has_documented=*/true);
  for (const tools::DocumentedConfiguration& one : tools::documented_configurations()) {
    list.add_reduced(one.name, one.spec, targets().front(), kDocumentedLimits);
    for (std::size_t i = 1; i < targets().size(); ++i)
      list.add_reduced(one.name, with_fewer_channels(one.spec), targets()[i], kDocumentedLimits);
  }
  return list.take();
}

/// Their gradients, as the forward convolutions are documented; architectures by turns.
HostList documented_gradients_list() {
  ListBuilder list("documented gradients", /*has_documented=*/true);
  std::size_t turn = 0;
  for (const tools::DocumentedConfiguration& one : documented_gradients())
    list.add_reduced(one.name, with_fewer_channels(one.spec), target_of_turn(turn++), kLimits);
  return list.take();
}

/// One case in `every`; which one moves on, so that no period of the list is missed.
bool is_kept(std::size_t index, std::size_t every) { return (index + index / 13) % every == 0; }

/// Rows of tests/shapes, as given and as one of the other lists of types and layouts; architecture, epilogue and
/// alignment by turns that share no period.
HostList shapes_list(const std::string& name, const std::function<std::vector<Case>(std::vector<Case>)>& change,
                     bool epilogues, std::size_t every) {
  ListBuilder list(name);
  const std::vector<Case> rows = change(shape_cases(INT64_MAX));
  std::size_t turn = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!is_kept(i, every)) continue;
    const Case& row = rows[i];
    ConvSpec spec = with_fewer_channels(row.spec);
    if (epilogues) spec.epilogue = epilogue_of_turn(turn);
    if (turn % 11 == 10) spec.alignment = element_bytes(spec.dtype);
    list.add_reduced(row.name, spec, target_of_turn(turn), kLimits);
    ++turn;
  }
  return list.take();
}

/// The gradient that `turn` asks of a convolution: types, layouts and epilogues by turns that share no period.
ConvSpec gradient_of_turn(ConvSpec spec, Operation operation, std::size_t turn) {
  spec.operation = operation;
  spec.dtype = static_cast<DataType>(turn % 3);
  spec.input_layout = static_cast<Layout>(turn / 3 % 2);
  spec.output_layout = turn % 7 == 6 ? static_cast<Layout>(turn % 2) : spec.input_layout;
  spec.math = turn % 5 == 4 ? MathMode::ieee : MathMode::tf32;
  spec.epilogue = epilogue_of_turn(turn);
  if (operation == Operation::weight_gradient) {
    spec.epilogue.activation = Activation::none;
    if (turn % 4 == 1) spec.output_dtype = OutputType::f32;
  }
  if (turn % 11 == 10) spec.alignment = element_bytes(output_type(spec));
  return spec;
}

/// Both gradients of the documented configurations and of one row of tests/shapes in so many.
HostList gradients_list() {
  constexpr std::size_t kEvery = 24;
  ListBuilder list("gradients");
  std::vector<Case> rows = documented_cases();
  const std::vector<Case> shapes = shape_cases(INT64_MAX);
  for (std::size_t i = 0; i < shapes.size(); ++i)
    if (is_kept(i, kEvery)) rows.push_back(shapes[i]);
  std::size_t turn = 0;
  for (const Case& row : rows) {
    for (const Operation operation : {Operation::data_gradient, Operation::weight_gradient}) {
      const ConvSpec spec = gradient_of_turn(with_fewer_channels(row.spec), operation, turn);
      list.add_reduced(fmt::format("{} of {}", to_string(operation), row.name), spec, target_of_turn(turn), kLimits);
    }
    // Those families of weight gradients that take few turns: of tensor cores, and of one channel per group.
    ConvSpec spec = gradient_of_turn(with_fewer_channels(row.spec), Operation::weight_gradient, turn);
    if (spec.math == MathMode::ieee) spec.math = MathMode::tf32;
    list.add_reduced(fmt::format("weight_gradient of {} on Hopper", row.name), spec,
                     Target::host(parse_target("sm_90a")), kLimits);
    ++turn;
  }
  return list.take();
}

/// Both gradients with the derivative of every activation, in types and layouts that its pass tells apart: dy ends
/// inside a vector of 16-bit elements.
HostList activation_gradients_list() {
  ListBuilder list("activation gradients");
  std::size_t turn = 0;
  for (int activation = 1; activation <= static_cast<int>(Activation::clamp); ++activation) {
    for (const Operation operation : {Operation::data_gradient, Operation::weight_gradient}) {
      for (const DataType type : {DataType::f32, DataType::bf16}) {
        for (const Layout layout : {Layout::nchw, Layout::nhwc}) {
          ConvSpec spec = parse_spec("input=2,5,9,11 weight=6,5,3,3 padding=1 slope=0.25 clamp_min=-2 clamp_max=5");
          spec.operation = operation;
          spec.dtype = type;
          spec.input_layout = spec.output_layout = layout;
          spec.dy_activation = static_cast<Activation>(activation);
          spec.epilogue.bias = operation == Operation::weight_gradient;
          list.add_reduced(fmt::format("{} of {}", to_string(operation), to_string(spec.dy_activation)), spec,
                           target_of_turn(turn++), kLimits);
        }
      }
    }
  }
  return list.take();
}

/// The lists that the GPU suite runs on its GPU, one after the other for the architectures.
HostList variants_list(const std::string& name, const std::function<std::vector<Case>(const Target&)>& cases_for,
                       std::size_t every) {
  ListBuilder list(name);
  std::vector<std::vector<Case>> all;
  for (const Target& target : targets()) all.push_back(cases_for(target));
  std::size_t turn = 0;
  for (std::size_t i = 0; i < all.front().size(); ++i) {
    if (!is_kept(i, every)) continue;
    std::vector<Case>& cases = all[turn++ % all.size()];
    // What the first architecture alone has comes last.
    list.add(std::move(i < cases.size() ? cases[i] : all.front()[i]));
  }
  return list.take();
}

/// The same specs in every run: fixed seeds, type and layouts by turns; one in five is depthwise, and one in seven is
/// left to the fallback, which the planner would choose for none of them.
HostList random_list() {
  ListBuilder list("random");
  const rc::Gen<ConvSpec> generator = valid_specs(kRandomLimits);
  for (std::uint64_t seed = 0; seed < kRandomSpecs; ++seed) {
    ConvSpec spec = generator(rc::Random(seed), /*size=*/100).value();
    if (spec.input.n == 0) spec.input.n = 1;
    spec.dtype = static_cast<DataType>(seed % 3);
    spec.input_layout = static_cast<Layout>(seed / 3 % 2);
    spec.output_layout = static_cast<Layout>(seed / 6 % 2);
    spec.alignment = std::max(spec.alignment, element_bytes(spec.dtype));
    if (seed % 5 == 4) {  // a filter for each channel of what are now that many groups
      spec.groups = spec.input.c;
      spec.weight.c = 1;
      spec.weight.k = spec.groups * (1 + static_cast<std::int64_t>(seed / 5 % 3));
      spec.input_layout = spec.output_layout = Layout::nchw;
    }
    const Target& target = target_of_turn(seed / 12);
    const std::string name = fmt::format("seed {}", seed);
    if (seed % 7 == 6) {
      const ConvSpec small = tools::reduce(spec, target, kLimits).plan.spec;
      list.add({name, small, plan_for({name, small, codegen::Family::fallback}, small, target), false, {}});
    } else {
      list.add_reduced(name, spec, target, kLimits);
    }
  }
  return list.take();
}

/// Every path of the wgmma family, on the one architecture that has it. Those of 16 bits in one of their types, by
/// turns: kernels differ in the names of instructions only, and a GPU runs both.
HostList wgmma_list() {
  ListBuilder list("wgmma");
  std::map<DataType, std::size_t> turns;
  for (Case& next : wgmma_cases(targets().front(), /*spread=*/1)) {
    const DataType type = next.spec.dtype;
    const std::size_t turn = turns[type]++ + (type == DataType::f16 ? 1 : 0);
    if (type == DataType::f32 || turn % 2 == 0) list.add(std::move(next));
  }
  return list.take();
}

std::vector<Case> as_given(std::vector<Case> cases) { return cases; }

/// What is left of `count` channels: at most `most`, a multiple of `step`, with the same remainder by `step`.
std::int64_t fewer(std::int64_t count, std::int64_t most, std::int64_t step) {
  if (count <= most) return count;
  const std::int64_t rest = count % step;
  return rest == 0 ? most : most - step + rest;
}

}  // namespace

ConvSpec with_fewer_channels(const ConvSpec& spec) {
  const std::int64_t taps = spec.weight.r * spec.weight.s;
  const std::int64_t most_channels = std::clamp<std::int64_t>(512 / taps / 32 * 32, 32, 64);
  const std::int64_t group_k = fewer(spec.weight.k / spec.groups, 64, 32);
  ConvSpec less = spec;
  less.groups = spec.weight.c <= 4 ? fewer(spec.groups, 16, 8) : fewer(spec.groups, 4, 2);
  less.weight.c = fewer(spec.weight.c, most_channels, 32);
  less.weight.k = group_k * less.groups;
  less.input.c = less.weight.c * less.groups;
  return less;
}

std::string documented_name(const Case& of_documented) {
  return of_documented.name.substr(0, of_documented.name.find(" for "));
}

const std::vector<std::string>& host_list_names() {
  static const std::vector<std::string> names = {
      "documented", "documented gradients", "shapes f32", "shapes 16 bits", "shapes nhwc", "epilogues",
      "alignments", "candidates",           "random",     "wgmma",          "gradients",   "activation gradients"};
  return names;
}

HostList host_list(const std::string& name) {
  if (name == "documented") return documented_list();
  if (name == "documented gradients") return documented_gradients_list();
  if (name == "shapes f32") return shapes_list(name, as_given, /*epilogues=*/false, /*every=*/1);
  if (name == "shapes 16 bits") return shapes_list(name, with_16_bit_types, /*epilogues=*/true, /*every=*/2);
  if (name == "shapes nhwc") return shapes_list(name, with_nhwc_layouts, /*epilogues=*/true, /*every=*/2);
  if (name == "epilogues") return variants_list(name, epilogue_cases, /*every=*/3);
  if (name == "alignments") return variants_list(name, alignment_cases, /*every=*/2);
  if (name == "random") return random_list();
  if (name == "wgmma") return wgmma_list();
  if (name == "gradients") return gradients_list();
  if (name == "activation gradients") return activation_gradients_list();
  if (name == "candidates") {
    const auto candidates = [](const Target& target) { return candidate_cases(target, /*first=*/10, /*spread=*/8); };
    return variants_list(name, candidates, /*every=*/1);
  }
  throw std::invalid_argument("there is no list " + name);
}

}  // namespace jitconv::test
