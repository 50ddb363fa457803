// See family_cases.h.
#include "support/family_cases.h"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

#include "codegen/plan.h"
#include "codegen/wgmma/geometry.h"

namespace jitconv::test {
namespace {

using codegen::DepthwiseTiling;
using codegen::Family;
using codegen::WgmmaGeometry;

std::vector<FamilyCase> make_family_cases() {
  using Store = DepthwiseTiling::Store;
  using Schedule = codegen::WgmmaTiling::Schedule;
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
  add("depthwise, planes", "input=3,24,14,14 weight=24,1,3,3 groups=24 padding=1", Family::depthwise_planes);
  add("depthwise, planes, odd rows", "input=5,24,7,7 weight=24,1,5,3 groups=24 padding=2,1", Family::depthwise_planes);
  add("depthwise, planes, strided and dilated",
      "input=3,16,29,30 weight=16,1,3,5 groups=16 stride=2,3 dilation=3,1 padding=3,1,2,0", Family::depthwise_planes);
  add("depthwise, nhwc", "input=2,24,19,21 weight=24,1,3,3 groups=24 padding=1,2,2,0 layout=nhwc",
      Family::depthwise_nhwc);
  add("depthwise, nhwc, odd channels", "input=3,17,9,11 weight=17,1,5,3 groups=17 padding=2,1 layout=nhwc",
      Family::depthwise_nhwc);
  add("depthwise, nhwc, multiplier", "input=2,6,23,31 weight=12,1,3,5 groups=6 padding=1,2 layout=nhwc",
      Family::depthwise_nhwc);
  add("depthwise, nhwc, strided and dilated",
      "input=2,16,45,53 weight=16,1,3,7 groups=16 stride=2,3 dilation=4,2 padding=3 layout=nhwc",
      Family::depthwise_nhwc);
  add("depthwise, nhwc, large filter", "input=1,24,30,33 weight=24,1,21,23 groups=24 padding=10,11 layout=nhwc",
      Family::depthwise_nhwc);
  add("fallback", "input=2,6,23,31 weight=21,6,3,3 padding=1,2,0,1 stride=1,2", Family::fallback);
  add("fallback, nhwc", "input=2,6,23,31 weight=21,6,3,3 padding=1 input_layout=nhwc output_layout=nhwc",
      Family::fallback);
  add("fallback, far apart", "input=2,4,300,310 weight=10,4,3,3 dilation=130,140 padding=20", Family::fallback);
  // Channels that fill neither a step nor a tile, planes that start in the middle of a sector.
  add("wgmma", "input=2,13,17,23 weight=37,13,3,3 padding=1,2,2,0 math=tf32", Family::wgmma);
  add("wgmma, strided", "input=2,3,29,41 weight=19,3,5,7 stride=2 padding=2,3 math=tf32", Family::wgmma);
  add("wgmma, grouped", "input=2,36,15,14 weight=40,18,3,3 groups=2 padding=1,2 dilation=1,2 math=tf32", Family::wgmma);
  // Planes of whole lines of 128 bytes, which TMA stores.
  add("wgmma, whole lines", "input=2,20,26,34 weight=37,20,3,3 math=tf32", Family::wgmma);
  add("wgmma, nhwc", "input=2,24,17,23 weight=44,24,3,3 padding=1,2,2,0 math=tf32 input_layout=nhwc output_layout=nhwc",
      Family::wgmma);
  add("wgmma, split", "input=1,72,9,10 weight=24,72,3,3 padding=1 math=tf32", Family::wgmma);
  cases.back().split = true;
  add("wgmma, split, whole lines", "input=1,72,16,36 weight=24,72,3,3 padding=1,0 math=tf32", Family::wgmma);
  cases.back().split = true;
  // Weights as they lie in w, of matrices and of all filter rows; channels that fill neither a step nor a tile.
  add("wgmma, unpacked weights", "input=2,68,9,13 weight=72,68,1,1 math=tf32", Family::wgmma);
  cases.back().unpacked_weights = true;
  add("wgmma, unpacked weights of any type", "input=2,72,9,13 weight=72,72,1,1 math=tf32", Family::wgmma);
  cases.back().unpacked_weights = true;
  // Groups that share multiplications; the last tile of a group ends before its last row.
  add("wgmma, joined groups", "input=2,64,15,14 weight=80,4,3,3 groups=16 padding=1,2 dilation=1,2 math=tf32",
      Family::wgmma);
  add("wgmma, unpacked weights of 3x3 taps", "input=2,40,11,13 weight=150,20,3,3 groups=2 padding=1 math=tf32",
      Family::wgmma);
  cases.back().unpacked_weights = true;
  // Boxes of a part of each plane, and of rows of x; a stride, and residues of it.
  add("wgmma, boxes", "input=2,20,15,16 weight=40,20,3,3 padding=1 math=tf32", Family::wgmma);
  cases.back().boxes = true;
  add("wgmma, boxes of rows", "input=2,40,37,32 weight=40,40,1,1 stride=2 padding=2,0 math=tf32", Family::wgmma);
  cases.back().boxes = true;
  // Tiles that are multiplied in turn: pixels loaded by lanes, as boxes with unpacked weights, and of whole images.
  add("wgmma, pingpong", "input=2,24,17,23 weight=70,24,3,3 padding=1 math=tf32", Family::wgmma);
  cases.back().schedule = Schedule::pingpong;
  add("wgmma, pingpong, unpacked weights", "input=2,40,13,16 weight=75,40,3,3 padding=1 math=tf32", Family::wgmma);
  cases.back().schedule = Schedule::pingpong;
  cases.back().unpacked_weights = cases.back().boxes = true;
  add("wgmma, pingpong, nhwc",
      "input=2,24,17,23 weight=70,24,3,3 padding=1,2,2,0 math=tf32 input_layout=nhwc output_layout=nhwc",
      Family::wgmma);
  cases.back().schedule = Schedule::pingpong;
  // Steps that are multiplied in turn: runs, whole images, splits.
  add("wgmma, sliced-K", "input=2,44,17,23 weight=70,44,3,3 padding=1 math=tf32", Family::wgmma);
  cases.back().schedule = Schedule::sliced_k;
  add("wgmma, sliced-K, unpacked weights", "input=3,132,7,8 weight=75,132,1,1 math=tf32", Family::wgmma);
  cases.back().schedule = Schedule::sliced_k;
  cases.back().unpacked_weights = true;
  add("wgmma, sliced-K, split", "input=1,140,9,10 weight=24,140,3,3 padding=1 math=tf32", Family::wgmma);
  cases.back().schedule = Schedule::sliced_k;
  cases.back().split = true;
  // Filter columns in the rows of an instruction: two taps that share columns, a tap with fewer than it could have.
  add("wgmma, folded columns", "input=2,20,17,43 weight=14,20,3,5 padding=1,2 math=tf32", Family::wgmma);
  cases.back().folded = true;
  add("wgmma, folded columns, pingpong", "input=2,21,17,44 weight=15,21,3,3 padding=1,0 math=tf32", Family::wgmma);
  cases.back().folded = true;
  cases.back().schedule = Schedule::pingpong;
  // Pixels in im2col mode: padding, a stride with residues, channels that end inside a chunk, groups; weights as they
  // lie.
  const auto add_im2col = [&](const char* name, const std::string& spec, const char* layouts) -> FamilyCase& {
    add(name, fmt::format("{} math=tf32 {}", spec, layouts), Family::wgmma);
    cases.back().im2col = true;
    return cases.back();
  };
  constexpr const char* kNhwc = "input_layout=nhwc output_layout=nhwc";
  add_im2col("wgmma, im2col", "input=2,24,17,23 weight=44,24,3,3 padding=1,2,2,0", kNhwc);
  add_im2col("wgmma, im2col, strided", "input=2,64,19,22 weight=72,32,3,5 groups=2 stride=2,3 padding=2", kNhwc);
  add_im2col("wgmma, im2col, unpacked weights", "input=3,72,9,13 weight=72,72,1,1", kNhwc).unpacked_weights = true;
  add_im2col("wgmma, im2col, split", "input=1,72,9,10 weight=24,72,3,3 padding=1", kNhwc).split = true;
  add_im2col("wgmma, im2col, pingpong", "input=2,40,17,23 weight=70,40,3,3 padding=1,2,2,0", kNhwc).schedule =
      Schedule::pingpong;
  // And over NCHW pixels that are transposed before; with two residues of rows, and of one in which a stride is left.
  add_im2col("wgmma, transposed", "input=2,22,17,23 weight=44,22,3,3 padding=1,2,2,0", "");
  add_im2col("wgmma, transposed, strided", "input=2,40,19,22 weight=72,40,3,3 stride=2,3 padding=2 dilation=1,3", "");
  add_im2col("wgmma, transposed, unpacked weights", "input=3,72,19,13 weight=72,72,1,1 stride=2", "").unpacked_weights =
      true;
  add_im2col("wgmma, transposed, split", "input=1,72,9,10 weight=24,72,3,3 padding=1", "").split = true;
  // Input rows loaded once, consumers that do not come out even.
  add("wgmma_rows", "input=2,22,23,75 weight=37,22,3,3 padding=1,2,2,0 math=tf32", Family::wgmma_rows);
  add("wgmma_rows, folded", "input=2,22,19,83 weight=13,22,4,3 padding=2,1 dilation=2,1 math=tf32", Family::wgmma_rows);
  cases.back().folded = true;
  // Pixels as an MN-major operand: runs that end inside a part, channels inside a step; several images.
  add("wgmma, planes", "input=2,72,9,24 weight=70,72,1,1 dtype=bf16", Family::wgmma);
  cases.back().planes = true;
  add("wgmma, planes of images", "input=5,40,8,8 weight=70,40,1,1 dtype=f16", Family::wgmma);
  cases.back().planes = true;
  // Operands that are split, in every way in which pixels and weights come; one tap without a partner.
  add("wgmma, tf32x3", "input=2,15,17,23 weight=137,15,3,3 padding=1,2,2,0", Family::wgmma);
  add("wgmma, tf32x3, one slice", "input=2,4,19,41 weight=70,4,5,7 padding=2", Family::wgmma);
  add("wgmma, tf32x3, nhwc", "input=2,16,17,23 weight=44,16,3,3 padding=1,2,2,0 input_layout=nhwc output_layout=nhwc",
      Family::wgmma);
  add("wgmma, tf32x3, boxes", "input=2,20,15,16 weight=40,20,3,3 padding=1", Family::wgmma);
  cases.back().boxes = true;
  add("wgmma, tf32x3, sliced-K, split", "input=1,140,9,10 weight=24,140,3,3 padding=1", Family::wgmma);
  cases.back().schedule = Schedule::sliced_k;
  cases.back().split = true;
  add("wgmma, tf32x3, pingpong", "input=2,24,17,23 weight=70,24,3,3 padding=1", Family::wgmma);
  cases.back().schedule = Schedule::pingpong;
  add("wgmma, tf32x3, folded columns", "input=2,20,17,43 weight=14,20,3,5 padding=1,2", Family::wgmma);
  cases.back().folded = true;
  add("wgmma, tf32x3, im2col",
      "input=2,64,19,22 weight=72,32,3,5 groups=2 stride=2,3 padding=2 input_layout=nhwc "
      "output_layout=nhwc",
      Family::wgmma);
  cases.back().im2col = true;
  add("wgmma, tf32x3, transposed", "input=2,40,19,22 weight=72,40,3,3 stride=2,3 padding=2 dilation=1,3",
      Family::wgmma);
  cases.back().im2col = true;
  // Pairs of fp16 numbers, which producer warps make of what they load, or of what TMA brings, or a kernel before.
  add("wgmma, f16x3", "input=2,23,17,23 weight=137,23,3,3 padding=1,2,2,0 math=fp16x3", Family::wgmma);
  add("wgmma, f16x3, sliced-K, split", "input=1,140,9,10 weight=24,140,3,3 padding=1 math=fp16x3", Family::wgmma);
  cases.back().schedule = Schedule::sliced_k;
  cases.back().split = true;
  add("wgmma, f16x3, split before", "input=2,40,19,22 weight=72,40,3,3 stride=2,3 padding=2 dilation=1,3 math=fp16x3",
      Family::wgmma);
  cases.back().im2col = true;
  add("wgmma, f16x3, im2col",
      "input=2,64,19,22 weight=72,32,3,5 groups=2 stride=2,3 padding=2 input_layout=nhwc output_layout=nhwc "
      "math=fp16x3",
      Family::wgmma);
  cases.back().im2col = true;
  // Tiles that span images and end behind the last, channels that fill no tile.
  add("pointwise", "input=3,48,7,12 weight=37,48,1,1 math=tf32", Family::pointwise);
  add("pointwise, grouped", "input=2,48,4,70 weight=50,24,1,1 groups=2 math=tf32", Family::pointwise);
  add("pointwise, split", "input=2,64,6,6 weight=24,64,1,1 math=tf32", Family::pointwise);
  cases.back().split = true;
  add("pointwise, streamed weights", "input=3,96,7,12 weight=37,96,1,1 math=tf32", Family::pointwise);
  cases.back().unpacked_weights = true;
  // Tiles of whole images, of which the last has fewer, and of rows that a stride meets.
  add("pointwise, images", "input=7,48,7,7 weight=37,48,1,1 math=tf32", Family::pointwise);
  cases.back().adds_residual = false;
  add("pointwise, rows", "input=2,48,39,32 weight=37,48,1,1 stride=2 math=tf32", Family::pointwise);
  cases.back().adds_residual = false;
  return cases;
}

bool fits(const FamilyCase& wanted, const codegen::ConvPlan& plan) {
  if (plan.family() != wanted.family) return false;
  if (const auto* wgmma = plan.tiling<codegen::WgmmaTiling>())
    return (wgmma->split_k > 1) == wanted.split && wgmma->packs_weights() != wanted.unpacked_weights &&
           wgmma->uses_im2col() == wanted.im2col && wgmma->uses_planes() == wanted.planes &&
           wgmma->schedule == wanted.schedule && wgmma->folds_columns() == wanted.folded &&
           wgmma->f16_pairs == (wanted.spec.math == MathMode::fp16x3) &&
           (!wanted.boxes || WgmmaGeometry(plan.convolution().problem, *wgmma).pixels().copies_boxes());
  if (const auto* rows = plan.tiling<codegen::WgmmaRowsTiling>()) return rows->folds_columns() == wanted.folded;
  if (const auto* pointwise = plan.tiling<codegen::PointwiseTiling>())
    return (pointwise->splits > 1) == wanted.split && pointwise->streams_weights == wanted.unpacked_weights;
  const auto* depthwise = plan.tiling<DepthwiseTiling>();
  return depthwise == nullptr || depthwise->store == wanted.store;
}

}  // namespace

bool has_wgmma_family(const Target& target) { return target.compute_capability() == 90 && target.arch_specific; }

std::vector<FamilyCase> family_cases(const Target& target) {
  std::vector<FamilyCase> cases = make_family_cases();
  if (!has_wgmma_family(target))
    std::erase_if(cases, [](const auto& one) { return codegen::uses_tensor_cores(one.family); });
  return cases;
}

codegen::ConvPlan fallback_plan(const ConvSpec& spec, const Target& target) {
  const ConvSpec canonical = codegen::canonical(spec);
  std::string why;
  const std::vector<codegen::Candidate> candidates =
      codegen::candidates_of(Family::fallback, codegen::lower(canonical), target, why);
  return codegen::plan_with(canonical, target, candidates.front());
}

std::optional<codegen::ConvPlan> plan_for(const FamilyCase& wanted, const ConvSpec& spec, const Target& target) {
  if (wanted.family == Family::fallback) return fallback_plan(spec, target);
  for (const codegen::ConvPlan& plan : codegen::enumerate_plans(spec, target, SIZE_MAX))
    if (fits(wanted, plan)) return plan;
  return {};
}

codegen::ConvPlan require_plan_for(const FamilyCase& wanted, const ConvSpec& spec, const Target& target) {
  std::optional<codegen::ConvPlan> plan = plan_for(wanted, spec, target);
  if (!plan) throw std::logic_error(fmt::format("no plan for {}: {}", wanted.name, to_string(spec)));
  return *std::move(plan);
}

std::vector<DataType> types_of(const FamilyCase& family) {
  const WeightShape& filter = family.spec.weight;
  const bool added_sums = family.schedule == codegen::WgmmaTiling::Schedule::sliced_k && !family.split;
  // A 1x1 filter's weights of any type are taken as they lie, if their rows are vectors.
  const bool unpacked_floats = family.unpacked_weights && (filter.r * filter.s > 1 || filter.c % 8 != 0);
  const bool splits =
      family.family == Family::wgmma && (family.spec.math == MathMode::fp32 || family.spec.math == MathMode::fp16x3);
  if (family.planes) return {DataType::f16, DataType::bf16};
  if (family.family == Family::pointwise || splits || unpacked_floats || family.boxes || added_sums)
    return {DataType::f32};
  return {DataType::f32, DataType::f16, DataType::bf16};
}

}  // namespace jitconv::test
