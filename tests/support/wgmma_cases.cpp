// The list of wgmma, wgmma_rows and pointwise kernels, see case_lists.h: shapes, and which of their plans.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <stdexcept>

#include "codegen/plan.h"
#include "codegen/wgmma/geometry.h"
#include "codegen/wgmma/store.h"
#include "codegen/wgmma_rows/tiling.h"
#include "support/case_lists.h"

namespace jitconv::test {
namespace {

using codegen::Family;

/// A third, such that each walks over several tiles; blocks of the pointwise family come in sets.
std::uint32_t fewer_blocks(const codegen::ConvPlan& plan) {
  const auto* pointwise = plan.tiling<codegen::PointwiseTiling>();
  const std::uint32_t set =
      pointwise == nullptr ? 1 : static_cast<std::uint32_t>(pointwise->slabs(plan.convolution().problem));
  return (plan.convolution().launch.blocks / set + 2) / 3 * set;
}

/// Images of a run (several count as two), filter rows of a step, copies ahead and which boxes they are, who stores,
/// what is packed before, whether pixels come in im2col mode or as boxes of planes, and, of floats alone, which lists
/// enough as it is, how wide rows of such pixels are, how warpgroups share and how many filter columns are folded: what
/// a wgmma kernel's text depends on. Of wgmma_rows, whether weights stay and how many filter columns are folded. Of
/// transposed pixels and patches, whose convolution is one of NHWC pixels, only runs and weights.
using Form = std::array<int, 9>;
Form form_of(const codegen::ConvPlan& plan) {
  if (const auto* rows = plan.tiling<codegen::WgmmaRowsTiling>())
    return {rows->keeps_weights ? 1 : 0, rows->folded_columns};
  const auto* tiling = plan.tiling<codegen::WgmmaTiling>();
  if (tiling == nullptr) return {};
  const int images = std::min(tiling->tile.images, 2);
  const codegen::WgmmaGeometry geometry(plan.convolution().problem, *tiling);
  const codegen::WgmmaStore store(geometry);
  const bool floats = plan.spec.dtype == DataType::f32;
  const int storing = tiling->stores_boxes() ? 2 : store.stores_bulk() ? 1 : store.stores_planes() ? 3 : 0;
  if (tiling->transposes_input() || tiling->gathers_patches())
    return {images, tiling->transposes_input() ? -1 : -2, tiling->packs_weights() ? 1 : 0, storing == 3 ? 1 : 0};
  const int im2col = tiling->uses_planes() ? -1 : !tiling->uses_im2col() ? 0 : floats ? tiling->pipeline.slices : 1;
  return {images,
          tiling->pipeline.filter_rows,
          tiling->producer.copies_ahead,
          storing,
          im2col,
          tiling->packs_weights() ? 1 : 0,
          geometry.pixels().copies_periods() ? 2
          : geometry.pixels().copies_boxes() ? 1
                                             : 0,
          floats ? static_cast<int>(tiling->schedule) : 0,
          floats ? tiling->tile.folded_columns : 1};
}

}  // namespace

std::vector<Case> wgmma_cases(const Target& target, std::size_t spread) {
  if (!has_wgmma_family(target)) return {};
  struct Shape {
    const char *name, *text;
    Family family = Family::wgmma;
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
      {"strided, even rows", "input=2,20,9,46 weight=72,20,3,3 stride=2 padding=1"},
      {"strided, even rows and padding", "input=2,33,8,40 weight=40,33,4,5 stride=2 padding=2"},
      {"strided, even rows, images", "input=9,12,8,8 weight=24,12,3,3 stride=2 padding=1"},
      {"strided, even rows, dilated", "input=1,8,6,62 weight=20,8,1,3 stride=1,2 dilation=1,3 padding=0,3"},
      {"more rows' residues than columns'", "input=2,40,23,17 weight=20,20,4,2 groups=2 stride=3,2 padding=2,1"},
      {"first layer", "input=2,3,43,47 weight=20,3,11,11 stride=4 padding=2"},
      {"patches", "input=3,3,12,16 weight=72,3,4,4 stride=4"},
      {"patches, nhwc", "input=2,5,11,17 weight=24,5,3,5 stride=3,4 padding=1,2 input_layout=nhwc output_layout=nhwc"},
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
      {"nhwc, boxes in rows", "input=2,32,7,90 weight=192,32,3,3 padding=1 input_layout=nhwc output_layout=nhwc"},
      {"nhwc, boxes across rows", "input=2,40,7,46 weight=192,40,1,1 input_layout=nhwc output_layout=nhwc"},
      {"nhwc, boxes of groups, strided",
       "input=1,64,7,121 weight=128,32,3,3 groups=2 stride=2 padding=1 input_layout=nhwc output_layout=nhwc"},
      {"nchw to nhwc, boxes", "input=2,20,6,61 weight=64,20,3,3 output_layout=nhwc"},
      {"nhwc to nchw", "input=2,32,13,15 weight=40,32,3,3 padding=1 input_layout=nhwc"},
      {"a plane of whole tiles", "input=2,32,16,32 weight=96,32,1,1", Family::pointwise},
      {"planes of four pixels", "input=9,16,2,2 weight=20,16,1,1", Family::pointwise},
      {"steps of eight channels", "input=2,88,6,10 weight=70,88,1,1", Family::pointwise},
      {"an odd number of batches", "input=2,72,5,12 weight=33,72,1,1", Family::pointwise},
      {"many channels", "input=1,256,4,36 weight=200,256,1,1", Family::pointwise},
      {"three groups of pixels", "input=3,72,6,14 weight=39,24,1,1 groups=3", Family::pointwise},
      {"a filter row reaches past the next row", "input=2,3,300,1 weight=20,3,5,5 padding=2"},
      {"a filter row reaches past the next row, images", "input=3,3,17,2 weight=20,3,3,7 padding=1,6 dilation=1,2"},
      {"a filter row reaches past the next row, nhwc",
       "input=2,3,70,2 weight=16,3,3,7 padding=1,3 input_layout=nhwc output_layout=nhwc"},
      {"whole sectors", "input=2,24,19,144 weight=16,24,3,3 padding=1", Family::wgmma_rows},
      {"rows amid sectors", "input=2,20,13,131 weight=23,20,3,3 padding=1,2,2,0", Family::wgmma_rows},
      {"64 channels", "input=1,40,9,70 weight=64,40,3,3", Family::wgmma_rows},
      {"64 channels, whole sectors", "input=2,40,13,144 weight=61,40,3,3 padding=1", Family::wgmma_rows},
      {"three channels", "input=2,33,17,90 weight=3,33,3,3 padding=1", Family::wgmma_rows},
      {"two rows, one column", "input=2,16,11,75 weight=9,16,2,1", Family::wgmma_rows},
      {"four rows, dilated", "input=1,18,21,101 weight=12,18,4,5 padding=3,4 dilation=2,3", Family::wgmma_rows},
      {"fewer rows than the dilation", "input=2,12,9,66 weight=30,12,3,2 padding=2,0 dilation=6,1", Family::wgmma_rows},
      {"a row", "input=3,20,1,133 weight=20,20,3,5 padding=1,2", Family::wgmma_rows},
      {"narrow", "input=2,20,31,6 weight=11,20,3,3 padding=1", Family::wgmma_rows},
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
      std::erase_if(plans, [&shape](const codegen::ConvPlan& plan) { return plan.family() != shape.family; });
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
        if (spreads && i / step % 2 == 1) plan.convolution().launch.blocks = fewer_blocks(plan);
        cases.push_back(
            {fmt::format("{}, {}, {}, candidate {}", family_name, shape.name, to_string(type), i), plan.spec, plan});
        cases.back().kinds = {check::DataKind::exact, check::DataKind::random};
      }
    }
  }
  return cases;
}

}  // namespace jitconv::test
