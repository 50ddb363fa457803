// See case_lists.h.
#include "support/case_lists.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <stdexcept>

#include "codegen/heuristics.h"
#include "support/shape_lists.h"
#include "tools/documented.h"

namespace jitconv::test {
namespace {

using codegen::DepthwiseTiling;
using codegen::Family;

std::string layouts_of(const ConvSpec& spec) {
  return fmt::format("{} to {}", to_string(spec.input_layout), to_string(spec.output_layout));
}

std::vector<FamilyCase> make_family_cases() {
  using Store = DepthwiseTiling::Store;
  using Share = codegen::TensorTiling::Share;
  std::vector<FamilyCase> cases;
  const auto add = [&cases](const std::string& name, const std::string& text, Family family,
                            Store store = Store::flat) {
    cases.push_back({name, parse_spec(text), family, store});
  };
  // Channels and pixels that no tile divides, padding on all sides, several tiles each way.
  add("direct", "input=2,13,37,75 weight=37,13,3,3 padding=1,2,2,0", Family::direct);
  add("direct, strided", "input=2,5,41,67 weight=19,5,5,3 stride=2,3 padding=2,2,1,1 dilation=1,2", Family::direct);
  add("direct, grouped", "input=2,12,19,33 weight=30,4,3,5 groups=3 padding=1,2", Family::direct);
  // Tiles of more than 1024 columns, once by stride and once by dilation.
  add("direct, wide tile", "input=1,4,24,2001 weight=8,4,3,3 stride=1,17", Family::direct);
  add("direct, wide window", "input=1,4,24,2001 weight=8,4,3,5 dilation=1,200", Family::direct);
  add("direct, nhwc", "input=2,13,37,35 weight=37,13,3,3 padding=1 input_layout=nhwc output_layout=nhwc",
      Family::direct);
  add("direct, nhwc vectors", "input=2,16,17,35 weight=32,16,3,3 padding=1 input_layout=nhwc output_layout=nhwc",
      Family::direct);
  add("direct, nchw to nhwc", "input=2,9,21,35 weight=24,9,3,3 stride=2 padding=1 output_layout=nhwc", Family::direct);
  add("direct, nhwc to nchw", "input=2,9,21,35 weight=24,9,3,3 padding=1 input_layout=nhwc", Family::direct);
  add("depthwise, flat store", "input=3,7,29,37 weight=7,1,3,3 groups=7 padding=1,1,1,2", Family::depthwise,
      Store::flat);
  add("depthwise, small planes", "input=5,9,7,7 weight=9,1,3,3 groups=9 padding=1", Family::depthwise, Store::flat);
  add("depthwise, vector store", "input=2,6,33,64 weight=6,1,5,3 groups=6 padding=2,1", Family::depthwise,
      Store::vector);
  add("depthwise, row store", "input=2,3,19,2502 weight=3,1,3,3 groups=3 padding=1,1,0,1", Family::depthwise,
      Store::rows);
  add("depthwise, multiplier", "input=2,6,23,31 weight=12,1,3,5 groups=6 padding=1,2 dilation=1,2", Family::depthwise,
      Store::flat);
  add("depthwise, strided", "input=2,8,45,53 weight=8,1,7,7 groups=8 stride=2 padding=3", Family::depthwise,
      Store::flat);
  add("fallback", "input=2,6,23,31 weight=21,6,3,3 padding=1,2,0,1 stride=1,2", Family::fallback);
  add("fallback, nhwc", "input=2,6,23,31 weight=21,6,3,3 padding=1 input_layout=nhwc output_layout=nhwc",
      Family::fallback);
  add("fallback, far apart", "input=2,4,300,310 weight=10,4,3,3 dilation=130,140 padding=20", Family::fallback);
  // Channels that fill neither a step nor a tile, planes that start in the middle of a sector.
  add("tensor", "input=2,13,17,23 weight=37,13,3,3 padding=1,2,2,0 math=tf32", Family::tensor);
  add("tensor, strided", "input=2,3,29,41 weight=19,3,5,7 stride=2 padding=2,3 math=tf32", Family::tensor);
  add("tensor, grouped", "input=2,36,15,14 weight=40,18,3,3 groups=2 padding=1,2 dilation=1,2 math=tf32",
      Family::tensor);
  // Planes of whole lines of 128 bytes, which the copy engine stores.
  add("tensor, whole lines", "input=2,20,26,34 weight=37,20,3,3 math=tf32", Family::tensor);
  add("tensor, nhwc",
      "input=2,24,17,23 weight=44,24,3,3 padding=1,2,2,0 math=tf32 input_layout=nhwc output_layout=nhwc",
      Family::tensor);
  add("tensor, split", "input=1,72,9,10 weight=24,72,3,3 padding=1 math=tf32", Family::tensor);
  cases.back().split = true;
  add("tensor, split, whole lines", "input=1,72,16,36 weight=24,72,3,3 padding=1,0 math=tf32", Family::tensor);
  cases.back().split = true;
  // Weights as they lie in w, of matrices and of all filter rows; channels that fill neither a step nor a tile.
  add("tensor, raw weights", "input=2,68,9,13 weight=72,68,1,1 math=tf32", Family::tensor);
  cases.back().raw_weights = true;
  add("tensor, raw weights of any type", "input=2,72,9,13 weight=72,72,1,1 math=tf32", Family::tensor);
  cases.back().raw_weights = true;
  add("tensor, raw weights of 3x3 taps", "input=2,40,11,13 weight=150,20,3,3 groups=2 padding=1 math=tf32",
      Family::tensor);
  cases.back().raw_weights = true;
  // Boxes of a part of each plane, and of rows of x; a stride, and residues of it.
  add("tensor, boxes", "input=2,20,15,16 weight=40,20,3,3 padding=1 math=tf32", Family::tensor);
  cases.back().boxes = true;
  add("tensor, boxes of rows", "input=2,40,37,32 weight=40,40,1,1 stride=2 padding=2,0 math=tf32", Family::tensor);
  cases.back().boxes = true;
  // Tiles that are multiplied in turn: pixels loaded by lanes, as boxes with raw weights, and of whole images.
  add("tensor, turns", "input=2,24,17,23 weight=70,24,3,3 padding=1 math=tf32", Family::tensor);
  cases.back().share = Share::turns;
  add("tensor, turns, raw weights", "input=2,40,13,16 weight=75,40,3,3 padding=1 math=tf32", Family::tensor);
  cases.back().share = Share::turns;
  cases.back().raw_weights = cases.back().boxes = true;
  add("tensor, turns, nhwc",
      "input=2,24,17,23 weight=70,24,3,3 padding=1,2,2,0 math=tf32 input_layout=nhwc output_layout=nhwc",
      Family::tensor);
  cases.back().share = Share::turns;
  // Steps that are multiplied in turn: runs, whole images, splits.
  add("tensor, shared steps", "input=2,44,17,23 weight=70,44,3,3 padding=1 math=tf32", Family::tensor);
  cases.back().share = Share::steps;
  add("tensor, shared steps, raw weights", "input=3,132,7,8 weight=75,132,1,1 math=tf32", Family::tensor);
  cases.back().share = Share::steps;
  cases.back().raw_weights = true;
  add("tensor, shared steps, split", "input=1,140,9,10 weight=24,140,3,3 padding=1 math=tf32", Family::tensor);
  cases.back().share = Share::steps;
  cases.back().split = true;
  add("tensor, packed pixels", "input=3,32,15,14 weight=40,32,3,3 stride=2 padding=1 math=tf32", Family::tensor);
  cases.back().packs_pixels = true;
  add("tensor, packed pixels, split", "input=1,96,9,10 weight=24,96,3,3 padding=1,2,0,1 math=tf32", Family::tensor);
  cases.back().packs_pixels = cases.back().split = true;
  add("tensor, packed pixels and raw weights", "input=2,192,15,13 weight=144,96,1,1 groups=2 stride=2 math=tf32",
      Family::tensor);
  cases.back().packs_pixels = cases.back().raw_weights = true;
  // Walks over pixels: padding, a stride with residues, channels that end inside a chunk, groups; weights as they lie.
  const auto add_walk = [&](const char* name, const std::string& spec) -> FamilyCase& {
    add(name, spec + " math=tf32 input_layout=nhwc output_layout=nhwc", Family::tensor);
    cases.back().walks_pixels = true;
    return cases.back();
  };
  add_walk("tensor, walks", "input=2,24,17,23 weight=44,24,3,3 padding=1,2,2,0");
  add_walk("tensor, walks, strided", "input=2,64,19,22 weight=72,32,3,5 groups=2 stride=2,3 padding=2");
  add_walk("tensor, walks, raw weights", "input=3,72,9,13 weight=72,72,1,1").raw_weights = true;
  add_walk("tensor, walks, split", "input=1,72,9,10 weight=24,72,3,3 padding=1").split = true;
  add_walk("tensor, walks, turns", "input=2,40,17,23 weight=70,40,3,3 padding=1,2,2,0").share = Share::turns;
  // Tiles that span images and end behind the last, channels that fill no tile.
  add("pointwise", "input=3,48,7,12 weight=37,48,1,1 math=tf32", Family::pointwise);
  add("pointwise, grouped", "input=2,48,4,70 weight=50,24,1,1 groups=2 math=tf32", Family::pointwise);
  add("pointwise, split", "input=2,64,6,6 weight=24,64,1,1 math=tf32", Family::pointwise);
  cases.back().split = true;
  return cases;
}

bool has_tensor_family(const Target& target) { return target.compute_capability() == 90 && target.arch_specific; }

/// Vectors are stored to aligned addresses only; with less another store or family has the same shape.
std::int64_t least_alignment(const FamilyCase& family) {
  const bool vectors = family.family == Family::depthwise && family.store == DepthwiseTiling::Store::vector;
  return vectors || codegen::uses_tensor_cores(family.family) ? 16 : 1;
}

bool fits(const FamilyCase& wanted, const codegen::ConvPlan& plan) {
  if (plan.family != wanted.family) return false;
  if (const auto* tensor = std::get_if<codegen::TensorTiling>(&plan.tiling))
    return (tensor->splits > 1) == wanted.split && tensor->raw_weights == wanted.raw_weights &&
           tensor->packs_pixels() == wanted.packs_pixels && tensor->walks_pixels() == wanted.walks_pixels &&
           tensor->share == wanted.share && (!wanted.boxes || tensor->copies_boxes(plan.spec));
  if (const auto* pointwise = std::get_if<codegen::PointwiseTiling>(&plan.tiling))
    return (pointwise->splits > 1) == wanted.split;
  const auto* depthwise = std::get_if<DepthwiseTiling>(&plan.tiling);
  return depthwise == nullptr || depthwise->store == wanted.store;
}

/// The fallback's plan, which the planner makes only where no other family can.
codegen::ConvPlan fallback_plan(const ConvSpec& spec, const Target& target) {
  const ConvSpec canonical = codegen::canonical(spec);
  return codegen::make_plan(codegen::fallback_candidates(canonical, target).front(), canonical, target);
}

constexpr DataType kTypes[] = {DataType::f32, DataType::f16, DataType::bf16};

/// The case with another spec and a plan of its family.
void add_case(std::vector<Case>& cases, const FamilyCase& family, const ConvSpec& spec, const std::string& what,
              const Target& target) {
  std::optional<codegen::ConvPlan> plan = plan_for(family, spec, target);
  if (!plan) throw std::logic_error(fmt::format("no plan for {}: {}", family.name, to_string(spec)));
  cases.push_back({family.name + ", " + what, spec, std::move(plan), false, {}});
  cases.back().kinds = {check::DataKind::exact, check::DataKind::random};
}

std::vector<codegen::ConvPlan> some_plans(const ConvSpec& spec, const Target& target, std::size_t first,
                                          std::size_t spread) {
  std::vector<codegen::ConvPlan> all = codegen::enumerate_plans(spec, target, SIZE_MAX), some;
  const std::size_t others = all.size() > first ? all.size() - first : 0;
  const std::size_t step = std::max<std::size_t>(1, others / std::max<std::size_t>(1, spread));
  for (std::size_t i = 0; i < all.size(); ++i)
    if (i < first || (spread > 0 && (i - first) % step == 0)) some.push_back(std::move(all[i]));
  return some;
}

/// A third, such that each walks over several tiles; blocks of the pointwise family come in sets.
std::uint32_t fewer_blocks(const codegen::ConvPlan& plan) {
  const auto* pointwise = std::get_if<codegen::PointwiseTiling>(&plan.tiling);
  const std::uint32_t set = pointwise == nullptr ? 1 : static_cast<std::uint32_t>(pointwise->slabs(plan.spec));
  return (plan.blocks / set + 2) / 3 * set;
}

/// Images of a run (several count as two), filter rows of a step, copies ahead and whether they are boxes, who stores,
/// what is packed before, whether pixels are walked over, and, of floats alone, which lists enough as it is, how wide
/// rows of walks are and what warpgroups share: what a tensor kernel's text depends on.
using Form = std::array<int, 9>;
Form form_of(const codegen::ConvPlan& plan) {
  const auto* tiling = std::get_if<codegen::TensorTiling>(&plan.tiling);
  if (tiling == nullptr) return {};
  return {std::min(tiling->images, 2),
          tiling->filter_rows,
          tiling->copies_ahead,
          tiling->stores_bulk(plan.spec) ? 1 : 0,
          tiling->packs_pixels() ? 1 : 0,
          !tiling->walks_pixels()            ? 0
          : plan.spec.dtype == DataType::f32 ? tiling->slices
                                             : 1,
          tiling->packs_weights() ? 1 : 0,
          tiling->copies_boxes(plan.spec) ? 1 : 0,
          plan.spec.dtype == DataType::f32 ? static_cast<int>(tiling->share) : 0};
}

}  // namespace

std::vector<Case> documented_cases() {
  std::vector<Case> cases;
  for (const tools::DocumentedConfiguration& one : tools::documented_configurations()) {
    Case next{one.name, one.spec, {}, false, {}};
    next.kinds = {check::DataKind::exact, check::DataKind::random, check::DataKind::positive};
    cases.push_back(next);
  }
  return cases;
}

std::vector<Case> shape_cases(std::int64_t most_bytes) {
  std::vector<Case> cases;
  std::set<std::string> seen;
  for (const ShapeRow& row : forward_shapes(JITCONV_TEST_DATA "/shapes")) {
    Case next;
    next.name = fmt::format("{}:{} {}", row.list, row.line, row.name);
    next.spec = row.spec;
    while (next.spec.input.n > 1 && tensor_bytes(next.spec) > most_bytes) {
      next.spec.input.n /= 2;
      next.reduced = true;
    }
    if (seen.insert(to_string(next.spec)).second) cases.push_back(std::move(next));
  }
  return cases;
}

std::vector<Case> with_16_bit_types(std::vector<Case> cases) {
  for (std::size_t i = 0; i < cases.size(); ++i) {
    cases[i].spec.dtype = i % 2 == 0 ? DataType::f16 : DataType::bf16;
    cases[i].name += fmt::format(" {}", to_string(cases[i].spec.dtype));
  }
  return cases;
}

std::vector<Case> with_nhwc_layouts(std::vector<Case> cases) {
  for (std::size_t i = 0; i < cases.size(); ++i) {
    ConvSpec& spec = cases[i].spec;
    spec.dtype = static_cast<DataType>(i % 3);
    const std::size_t layouts = 1 + i / 3 % 3;
    spec.input_layout = static_cast<Layout>(layouts & 1);
    spec.output_layout = static_cast<Layout>(layouts >> 1);
    cases[i].name += fmt::format(" {} {}", to_string(spec.dtype), layouts_of(spec));
  }
  return cases;
}

std::vector<FamilyCase> family_cases(const Target& target) {
  std::vector<FamilyCase> cases = make_family_cases();
  if (!has_tensor_family(target))
    std::erase_if(cases, [](const auto& one) { return codegen::uses_tensor_cores(one.family); });
  return cases;
}

std::optional<codegen::ConvPlan> plan_for(const FamilyCase& wanted, const ConvSpec& spec, const Target& target) {
  if (wanted.family == Family::fallback) return fallback_plan(spec, target);
  for (const codegen::ConvPlan& plan : codegen::enumerate_plans(spec, target, SIZE_MAX))
    if (fits(wanted, plan)) return plan;
  return {};
}

std::vector<DataType> types_of(const FamilyCase& family) {
  const FilterShape& filter = family.spec.filter;
  const bool shared_sums = family.share == codegen::TensorTiling::Share::steps && !family.split;
  // Of one tap, weights of any type are taken as they lie, if their rows are vectors.
  const bool raw_floats = family.raw_weights && (filter.r * filter.s > 1 || filter.c % 8 != 0);
  if (family.family == Family::pointwise || raw_floats || family.boxes || shared_sums) return {DataType::f32};
  return {std::begin(kTypes), std::end(kTypes)};
}

std::vector<Case> epilogue_cases(const Target& target) {
  std::vector<Case> cases;
  for (const FamilyCase& family : family_cases(target)) {
    for (const DataType type : types_of(family)) {
      ConvSpec spec = family.spec;
      spec.dtype = type;
      spec.epilogue.slope = 0.25f;  // exact in every type, so that integer data stay exact
      spec.epilogue.clamp_min = -2.0f;
      spec.epilogue.clamp_max = 5.0f;
      for (const auto& [bias, residual] : {std::pair(false, false), std::pair(true, false), std::pair(false, true)}) {
        spec.epilogue.bias = bias, spec.epilogue.residual = residual;
        add_case(cases, family, spec, fmt::format("{} bias {} residual {}", to_string(type), bias, residual), target);
      }
      spec.epilogue.bias = true;
      for (int activation = 0; activation <= static_cast<int>(Activation::clamp); ++activation) {
        // Each with a residual in some types and without in others: their stores differ.
        spec.epilogue.residual = (activation + static_cast<int>(type)) % 2 == 0;
        spec.epilogue.activation = static_cast<Activation>(activation);
        add_case(cases, family, spec, fmt::format("{} {}", to_string(type), to_string(spec.epilogue.activation)),
                 target);
      }
    }
  }
  return cases;
}

std::vector<Case> alignment_cases(const Target& target) {
  std::vector<Case> cases;
  for (const FamilyCase& family : family_cases(target)) {
    for (const DataType type : types_of(family)) {
      for (std::int64_t alignment = element_bytes(type); alignment <= 256; alignment *= 2) {
        if (alignment < least_alignment(family)) continue;
        ConvSpec spec = family.spec;
        spec.dtype = type;
        spec.alignment = alignment;
        spec.epilogue.bias = spec.epilogue.residual = true;
        add_case(cases, family, spec, fmt::format("{} at multiples of {}", to_string(type), alignment), target);
      }
    }
  }
  // The shape of the vector store, planned freely.
  for (const FamilyCase& family : family_cases(target)) {
    for (const DataType type : kTypes) {
      Case next{family.name + ", planned, misaligned by one element", family.spec, {}, false, {}};
      next.spec.dtype = type;
      next.spec.alignment = element_bytes(type);
      next.plan = codegen::make_plan(next.spec, target);
      next.kinds = {check::DataKind::exact, check::DataKind::random};
      cases.push_back(next);
    }
  }
  return cases;
}

std::vector<Case> tensor_cases(const Target& target, std::size_t spread) {
  if (!has_tensor_family(target)) return {};
  struct Shape {
    const char *name, *text;
    Family family = Family::tensor;
  };
  constexpr Shape kShapes[] = {
      {"one channel", "input=2,1,9,40 weight=5,1,3,3 padding=1"},
      {"two channels, even row", "input=1,2,12,32 weight=64,2,3,4"},
      {"five channels", "input=2,5,11,19 weight=9,5,3,3"},
      {"eight channels", "input=2,8,10,24 weight=65,8,1,3"},
      {"a chunk and one channel", "input=1,33,8,24 weight=130,33,3,3 padding=1"},
      {"pointwise", "input=3,40,7,9 weight=70,40,1,1"},
      {"pointwise, strided", "input=2,20,15,17 weight=70,20,1,1 stride=2"},
      {"pointwise of whole chunks", "input=3,64,7,9 weight=72,64,1,1"},
      {"pointwise of whole chunks, groups", "input=2,192,8,24 weight=270,96,1,1 groups=2"},
      {"pointwise of whole chunks, strided", "input=2,96,15,17 weight=70,96,1,1 stride=2,3 padding=1,0"},
      {"pointwise of many chunks", "input=1,256,5,12 weight=40,256,1,1"},
      {"pointwise of whole chunks, images", "input=11,64,8,6 weight=70,64,1,1"},
      {"strided, whole slices", "input=2,32,15,17 weight=72,32,3,3 stride=2 padding=1"},
      {"strided, whole slices, images", "input=9,48,9,8 weight=24,48,3,3 stride=2 padding=1"},
      {"more rows' residues than columns'", "input=2,40,23,17 weight=20,20,4,2 groups=2 stride=3,2 padding=2,1"},
      {"first layer", "input=2,3,43,47 weight=20,3,11,11 stride=4 padding=2"},
      {"stride above the filter", "input=2,6,23,41 weight=20,6,2,3 stride=3,5"},
      {"stride and dilation without common divisor", "input=1,6,23,41 weight=20,6,3,4 stride=2,4 dilation=2,3"},
      {"stride a multiple of dilation", "input=1,6,23,41 weight=20,6,3,3 stride=2,4 dilation=2"},
      {"several rows end inside a run", "input=2,12,31,11 weight=20,12,3,3 padding=1 dilation=2,3"},
      {"one row", "input=2,20,1,300 weight=20,20,1,5 padding=0,2"},
      {"one column", "input=2,20,300,1 weight=20,20,5,1 padding=2,0"},
      {"one output", "input=5,20,3,3 weight=20,20,3,3"},
      {"planes smaller than a sector", "input=7,20,4,3 weight=20,20,2,2"},
      {"a plane of a few windows", "input=2,10,21,64 weight=16,10,3,3 padding=1"},
      {"rows of whole windows", "input=1,10,6,512 weight=16,10,3,3 padding=1"},
      {"only padding at the edges", "input=2,10,5,6 weight=16,10,3,3 padding=4,5,3,6"},
      {"three groups", "input=2,60,9,10 weight=201,20,3,3 groups=3 padding=1"},
      {"nhwc input", "input=2,20,13,15 weight=24,20,3,3 padding=1 input_layout=nhwc"},
      {"nhwc input of groups, strided", "input=2,32,13,15 weight=24,16,3,3 groups=2 stride=2 input_layout=nhwc"},
      {"images of several tiles", "input=9,20,7,7 weight=70,20,3,3 padding=1"},
      {"images apart by no whole vectors", "input=21,20,8,7 weight=70,20,3,1 padding=1,0"},
      {"pointwise images of several tiles", "input=11,24,8,6 weight=72,24,1,1"},
      {"many steps", "input=1,130,5,7 weight=24,130,5,3 padding=2,1"},
      {"nhwc", "input=2,32,13,15 weight=136,32,3,3 padding=1 input_layout=nhwc output_layout=nhwc"},
      {"nhwc, long rows", "input=1,16,4,300 weight=64,16,3,3 padding=1 input_layout=nhwc output_layout=nhwc"},
      {"nhwc, odd channels", "input=2,19,13,15 weight=21,19,3,3 padding=1 input_layout=nhwc output_layout=nhwc"},
      {"nhwc, half a vector", "input=2,40,9,11 weight=68,40,1,3 input_layout=nhwc output_layout=nhwc"},
      {"nhwc, pointwise", "input=3,48,7,9 weight=72,48,1,1 input_layout=nhwc output_layout=nhwc"},
      {"nhwc, groups, strided",
       "input=2,64,17,19 weight=20,32,5,3 groups=2 stride=2 dilation=1,2 padding=2 input_layout=nhwc "
       "output_layout=nhwc"},
      {"nhwc, many steps", "input=1,136,5,7 weight=24,136,5,3 padding=2,1 input_layout=nhwc output_layout=nhwc"},
      {"nhwc, one slice", "input=2,8,12,31 weight=40,8,3,4 stride=1,3 input_layout=nhwc output_layout=nhwc"},
      {"nhwc, images of several tiles",
       "input=9,24,7,7 weight=70,24,3,3 padding=1 input_layout=nhwc output_layout=nhwc"},
      {"nhwc, pointwise images", "input=11,24,8,6 weight=72,24,1,1 input_layout=nhwc output_layout=nhwc"},
      {"nchw to nhwc, images", "input=11,18,8,6 weight=20,18,3,3 padding=1 output_layout=nhwc"},
      {"nchw to nhwc", "input=2,18,10,24 weight=72,18,3,3 padding=1 output_layout=nhwc"},
      {"nhwc to nchw", "input=2,32,13,15 weight=40,32,3,3 padding=1 input_layout=nhwc"},
      {"a plane of whole tiles", "input=2,32,16,32 weight=96,32,1,1", Family::pointwise},
      {"planes of four pixels", "input=9,16,2,2 weight=20,16,1,1", Family::pointwise},
      {"steps of eight channels", "input=2,88,6,10 weight=70,88,1,1", Family::pointwise},
      {"an odd number of batches", "input=2,72,5,12 weight=33,72,1,1", Family::pointwise},
      {"many channels", "input=1,256,4,36 weight=200,256,1,1", Family::pointwise},
      {"three groups of pixels", "input=3,72,6,14 weight=39,24,1,1 groups=3", Family::pointwise},
  };
  std::vector<Case> cases;
  for (const Shape& shape : kShapes) {
    FamilyCase family;
    family.family = shape.family;
    for (const DataType type : types_of(family)) {
      ConvSpec spec = parse_spec(shape.text);
      spec.math = MathMode::tf32;
      spec.dtype = type;
      // Every second case has what a tile ends with, every activation in turn.
      spec.epilogue.bias = cases.size() % 2 == 1;
      spec.epilogue.residual = cases.size() % 4 == 3;
      spec.epilogue.activation = static_cast<Activation>(cases.size() % (static_cast<int>(Activation::clamp) + 1));
      spec.epilogue.slope = 0.25f, spec.epilogue.clamp_min = -2.0f, spec.epilogue.clamp_max = 5.0f;
      std::vector<codegen::ConvPlan> plans = codegen::enumerate_plans(spec, target, SIZE_MAX);
      std::erase_if(plans, [&shape](const codegen::ConvPlan& plan) { return plan.family != shape.family; });
      const std::string_view family_name = codegen::to_string(shape.family);
      if (plans.empty())
        throw std::logic_error(fmt::format("no {} plan for {}: {}", family_name, shape.name, to_string(spec)));
      // Some of all, and the cheapest of each form of runs, steps and loads.
      const std::size_t more = shape.family == Family::pointwise ? spread + 15 : spread;  // its shapes are few
      const std::size_t step = std::max<std::size_t>(1, plans.size() / (more + 1));
      std::set<Form> forms;
      for (std::size_t i = 0; i < plans.size(); ++i) {
        codegen::ConvPlan& plan = plans[i];
        const bool spreads = i % step == 0 && i <= more * step;
        if (!forms.insert(form_of(plan)).second && !spreads) continue;
        if (spreads && i / step % 2 == 1) plan.blocks = fewer_blocks(plan);
        cases.push_back(
            {fmt::format("{}, {}, {}, candidate {}", family_name, shape.name, to_string(type), i), plan.spec, plan});
        cases.back().kinds = {check::DataKind::exact, check::DataKind::random};
      }
    }
  }
  return cases;
}

std::vector<Case> candidate_cases(const Target& target, std::size_t first, std::size_t spread) {
  std::vector<Case> cases;
  std::set<std::string> shapes;
  for (const FamilyCase& family : family_cases(target)) {
    if (!shapes.insert(to_string(family.spec)).second) continue;
    std::vector<codegen::ConvPlan> plans = some_plans(family.spec, target, first, spread);
    FamilyCase fallback = family;
    fallback.family = Family::fallback;
    plans.push_back(*plan_for(fallback, family.spec, target));
    for (std::size_t i = 0; i < plans.size(); ++i)
      cases.push_back({fmt::format("{}, candidate {}", family.name, i),
                       family.spec,
                       std::move(plans[i]),
                       false,
                       {check::DataKind::exact}});
  }
  return cases;
}

}  // namespace jitconv::test
