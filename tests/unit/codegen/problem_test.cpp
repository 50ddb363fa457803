// From specs to problems: what lower() says of every layout, axis and type, and what beyond_dense_forward() refuses.
#include "codegen/problem.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "codegen/plan.h"
#include "support/random_specs.h"

namespace jitconv::codegen {
namespace {

Problem lowered(const std::string& text) { return lower(parse_spec(text)); }

TEST(Lower, StridesFollowTheLayouts) {
  const std::string shape = "input=2,6,10,12 weight=9,6,3,5";
  const Problem plain = lowered(shape);
  EXPECT_EQ(plain.input, (View{Tensor::x, DataType::f32, {720, 120, 12, 1}, 0}));
  EXPECT_EQ(plain.weight, (View{Tensor::w, DataType::f32, {90, 15, 5, 1}, 0, 810}));
  EXPECT_EQ(plain.output, (View{Tensor::y, DataType::f32, {9 * 64, 64, 8, 1}, 0}));
  EXPECT_EQ(plain.input.layout(), Layout::nchw);
  EXPECT_EQ(plain.output.layout(), Layout::nchw);

  const Problem input = lowered(shape + " input_layout=nhwc");
  EXPECT_EQ(input.input.stride, (View::Strides{720, 1, 72, 6}));
  EXPECT_EQ(input.input.layout(), Layout::nhwc);
  EXPECT_EQ(input.weight, plain.weight) << "the weight's layout is its own";
  EXPECT_EQ(input.output, plain.output);

  const Problem output = lowered(shape + " output_layout=nhwc");
  EXPECT_EQ(output.input, plain.input);
  EXPECT_EQ(output.output.stride, (View::Strides{9 * 64, 1, 72, 9}));
  EXPECT_EQ(output.output.layout(), Layout::nhwc);
}

TEST(Lower, AxesAreRowsAndColumns) {
  const Problem problem = lowered("input=2,6,21,27 weight=9,6,3,5 stride=2,1 padding=1,2,3,4 dilation=2,3");
  EXPECT_EQ(problem.rows, (Axis{.input = 21, .output = 10, .taps = 3, .stride = 2, .dilation = 2, .pad = 1}));
  EXPECT_EQ(problem.columns, (Axis{.input = 27, .output = 22, .taps = 5, .stride = 1, .dilation = 3, .pad = 3}));
  EXPECT_EQ(problem.rows.reach(), 4);
  EXPECT_EQ(problem.columns.reach(), 12);
}

TEST(Lower, AFilterOfOneTap) {
  const Problem problem = lowered("input=4,16,7,9 weight=8,16,1,1");
  EXPECT_EQ(problem.weight.stride, (View::Strides{16, 1, 1, 1}));
  EXPECT_EQ(problem.taps(), 1);
  EXPECT_EQ(problem.rows.reach(), 0);
  EXPECT_EQ(problem.rows, (Axis{.input = 7, .output = 7}));
  EXPECT_EQ(problem.columns, (Axis{.input = 9, .output = 9}));
  EXPECT_EQ(problem.output_plane(), problem.input_plane());
}

TEST(Lower, ChannelsAreThoseOfAGroup) {
  const Problem problem = lowered("input=2,12,8,8 weight=20,3,3,3 groups=4 input_layout=nhwc output_layout=nhwc");
  EXPECT_EQ(problem.groups, 4);
  EXPECT_EQ(problem.c, 3);
  EXPECT_EQ(problem.k, 5);
  EXPECT_EQ(problem.input_channels(), 12);
  EXPECT_EQ(problem.output_channels(), 20);
  EXPECT_EQ(problem.input.stride, (View::Strides{768, 1, 96, 12})) << "of all groups";
  EXPECT_EQ(problem.weight.stride, (View::Strides{27, 9, 3, 1})) << "of a group";
  EXPECT_EQ(problem.output.stride, (View::Strides{720, 1, 120, 20}));
  EXPECT_EQ(problem.weight_elements(), 20 * 27);
}

TEST(Lower, ArithmeticFollowsTypeAndMath) {
  const struct {
    const char *dtype, *math;
    Arithmetic arithmetic;
  } rows[] = {
      {"f32", "ieee", Arithmetic::fp32},    {"f32", "fp32", Arithmetic::tf32x3}, {"f32", "tf32", Arithmetic::tf32},
      {"f16", "ieee", Arithmetic::fp32},    {"f16", "fp32", Arithmetic::f16},    {"f16", "tf32", Arithmetic::f16},
      {"bf16", "ieee", Arithmetic::fp32},   {"bf16", "fp32", Arithmetic::bf16},  {"bf16", "tf32", Arithmetic::bf16},
      {"f32", "fp16x3", Arithmetic::f16x3}, {"f16", "fp16x3", Arithmetic::f16},  {"bf16", "fp16x3", Arithmetic::bf16},
  };
  for (const auto& row : rows) {
    const Problem problem =
        lowered(std::string("input=1,8,9,9 weight=8,8,3,3 dtype=") + row.dtype + " math=" + row.math);
    EXPECT_EQ(to_string(problem.arithmetic), to_string(row.arithmetic)) << row.dtype << " " << row.math;
    for (const View& view : {problem.input, problem.weight, problem.output}) EXPECT_EQ(to_string(view.type), row.dtype);
  }
  std::set<std::string_view> names;
  for (const auto& row : rows) names.insert(to_string(row.arithmetic));
  EXPECT_EQ(names.size(), 6u);
}

TEST(Lower, EpilogueAndAlignmentAreTheSpecs) {
  const ConvSpec spec = parse_spec("input=1,8,9,9 weight=8,8,3,3 bias residual activation=silu alignment=4");
  EXPECT_EQ(lower(spec).epilogue, spec.epilogue);
  EXPECT_EQ(lower(spec).alignment, 4);
  EXPECT_EQ(lower(spec).reduction, Reduction::taps);
}

// Two groups of three input and two output channels, 2x3 taps; dx is 2,6,9,10, dy 2,4,4,9.
constexpr const char* kGrouped =
    "input=2,6,9,10 weight=4,3,2,3 groups=2 stride=2,1 padding=1,0,2,1 dilation=3,2 output_layout=nhwc bias ";

TEST(Lower, ADataGradientExchangesTheTensors) {
  const Problem problem = lowered(std::string(kGrouped) + "operation=data_gradient");
  EXPECT_EQ(problem.n, 2);
  EXPECT_EQ(problem.groups, 2);
  EXPECT_EQ(problem.c, 2) << "output channels of the convolution";
  EXPECT_EQ(problem.k, 3);
  EXPECT_EQ(problem.input, (View{Tensor::dy, DataType::f32, {144, 1, 36, 4}, 0}));
  EXPECT_EQ(problem.output, (View{Tensor::dx, DataType::f32, {540, 90, 10, 1}, 0}));
  EXPECT_EQ(problem.reduction, Reduction::taps);
  EXPECT_EQ(&problem.result(), &problem.output);
}

TEST(Lower, ADataGradientsTapsRunBackwards) {
  const Problem problem = lowered(std::string(kGrouped) + "operation=data_gradient");
  // w[k][c][1-r][2-s] with k and c exchanged: the last tap is 1*3 + 2 elements behind the first.
  EXPECT_EQ(problem.weight, (View{Tensor::w, DataType::f32, {6, 18, -3, -1}, 5, 36}));
  EXPECT_EQ(problem.rows,
            (Axis{.input = 4, .output = 9, .taps = 2, .stride = 1, .dilation = 3, .pad = 2, .upsampling = 2}));
  EXPECT_EQ(problem.columns,
            (Axis{.input = 9, .output = 10, .taps = 3, .stride = 1, .dilation = 2, .pad = 2, .upsampling = 1}));
}

TEST(Lower, PaddingBeyondTheFilterCropsTheGradient) {
  const Problem problem = lowered("input=1,1,4,6 weight=1,1,2,3 padding=3,0,5,1 operation=data_gradient");
  EXPECT_EQ(problem.rows, (Axis{.input = 6, .output = 4, .taps = 2, .pad = -2}));
  EXPECT_EQ(problem.columns, (Axis{.input = 10, .output = 6, .taps = 3, .pad = -3}));
}

TEST(Lower, AWeightGradientSumsOverPixels) {
  const std::string text = std::string(kGrouped) + "dtype=bf16 operation=weight_gradient";
  const Problem forward = lowered(std::string(kGrouped) + "dtype=bf16"), problem = lowered(text);
  EXPECT_EQ(problem.reduction, Reduction::pixels);
  EXPECT_EQ(&problem.result(), &problem.weight);
  EXPECT_EQ(problem.result_elements(), 4 * 3 * 2 * 3);
  EXPECT_EQ(problem.input, forward.input);
  EXPECT_EQ(problem.weight, (View{Tensor::dw, DataType::bf16, forward.weight.stride, 0, forward.weight.group}));
  EXPECT_EQ(problem.output, (View{Tensor::dy, DataType::bf16, forward.output.stride, 0}));
  EXPECT_EQ(problem.rows, forward.rows);
  EXPECT_EQ(problem.columns, forward.columns);
  EXPECT_EQ(lowered(text + " output_dtype=f32").weight.type, DataType::f32);
}

std::vector<std::int64_t> addresses_of_weights(const Problem& problem) {
  const View& view = problem.weight;
  std::vector<std::int64_t> addresses;
  for (std::int64_t g = 0; g < problem.groups; ++g)
    for (std::int64_t k = 0; k < problem.k; ++k)
      for (std::int64_t c = 0; c < problem.c; ++c)
        for (std::int64_t r = 0; r < problem.rows.taps; ++r)
          for (std::int64_t s = 0; s < problem.columns.taps; ++s)
            addresses.push_back(view.first + g * view.group + k * view.stride.n + c * view.stride.c +
                                r * view.stride.h + s * view.stride.w);
  return addresses;
}

RC_GTEST_PROP(LowerProperty, TheWeightsViewMeetsEachElementOnce, ()) {
  const ConvSpec spec = *test::valid_operations(test::kTinyLimits);
  std::vector<std::int64_t> addresses = addresses_of_weights(lower(spec));
  std::sort(addresses.begin(), addresses.end());
  RC_ASSERT(static_cast<std::int64_t>(addresses.size()) ==
            spec.weight.k * spec.weight.c * spec.weight.r * spec.weight.s);
  for (std::size_t i = 0; i < addresses.size(); ++i) RC_ASSERT(addresses[i] == static_cast<std::int64_t>(i));
}

// Which pixels of dy and which taps meet in a pixel of dx follows from the problem's axis as from the definition.
RC_GTEST_PROP(LowerProperty, ADataGradientsAxesAreTheDefinitions, ()) {
  ConvSpec spec = *test::valid_specs(test::kTinyLimits);
  spec.operation = Operation::data_gradient;
  const Axis axis = lower(spec).rows;
  const std::int64_t p_extent = output_shape(spec).h;
  RC_ASSERT(axis.input == p_extent);
  RC_ASSERT(axis.output == spec.input.h);
  for (std::int64_t i = 0; i < axis.output; ++i) {
    std::set<std::pair<std::int64_t, std::int64_t>> met, defined;  // p and r
    for (std::int64_t t = 0; t < axis.taps; ++t) {
      const std::int64_t at = i * axis.stride + t * axis.dilation - axis.pad;
      if (at % axis.upsampling == 0 && at >= 0 && at / axis.upsampling < axis.input)
        met.emplace(at / axis.upsampling, axis.taps - 1 - t);
    }
    for (std::int64_t p = 0; p < p_extent; ++p)
      for (std::int64_t r = 0; r < spec.weight.r; ++r)
        if (p * spec.stride.h - spec.padding.top + r * spec.dilation.h == i) defined.emplace(p, r);
    RC_ASSERT(met == defined);
  }
}

RC_GTEST_PROP(LowerProperty, ElementsAreThoseOfTheTensors, ()) {
  const ConvSpec spec = *test::valid_specs();
  const Problem problem = lower(spec);
  const TensorShape &x = spec.input, y = output_shape(spec);
  const WeightShape& w = spec.weight;
  RC_ASSERT(problem.input_elements() == x.n * x.c * x.h * x.w);
  RC_ASSERT(problem.weight_elements() == w.k * w.c * w.r * w.s);
  RC_ASSERT(problem.output_elements() == y.n * y.c * y.h * y.w);
  // The last element of a dense tensor is the last of its strides.
  const auto last = [](const View& view, std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w_) {
    const View::Strides& s = view.stride;
    return view.first + (n - 1) * s.n + (c - 1) * s.c + (h - 1) * s.h + (w_ - 1) * s.w;
  };
  if (x.n > 0) RC_ASSERT(last(problem.input, x.n, x.c, x.h, x.w) + 1 == problem.input_elements());
  RC_ASSERT(last(problem.weight, w.k, w.c, w.r, w.s) + 1 == problem.weight_elements());
  if (x.n > 0) RC_ASSERT(last(problem.output, y.n, y.c, y.h, y.w) + 1 == problem.output_elements());
}

// Whatever a spec says, its forward convolution is what every family may be asked for. Of one channel, a tensor's
// layout can be read both ways: the canonical form has the one that view.layout() sees.
RC_GTEST_PROP(BeyondDenseForwardProperty, IsNothingOfASpec, ()) {
  RC_ASSERT(beyond_dense_forward(lower(canonical(*test::valid_specs()))).empty());
}

struct Change {
  std::function<void(Problem&)> apply;
  const char* rule;
};

TEST(BeyondDenseForward, NamesTheRuleThatIsBroken) {
  const char* const input = "the input is no dense tensor";
  const char* const weight = "the weight is no dense tensor";
  const char* const output = "the output is no dense tensor";
  const char* const cropped = "the input is cropped";
  const Change changes[] = {
      {[](Problem& p) { p.reduction = Reduction::pixels; }, "the sums run over pixels"},
      {[](Problem& p) { p.rows.upsampling = 2; }, "the input is upsampled by a stride"},
      {[](Problem& p) { p.columns.upsampling = 3; }, "the input is upsampled by a stride"},
      {[](Problem& p) { p.rows.pad = -1; }, cropped},
      {[](Problem& p) { p.columns.pad = -1; }, cropped},
      {[](Problem& p) { p.input.first = 1; }, input},
      {[](Problem& p) { p.input.stride.n *= 2; }, input},
      {[](Problem& p) { p.input.stride.c *= 2; }, input},
      {[](Problem& p) { p.input.stride.h = -p.input.stride.h; }, input},
      {[](Problem& p) { p.input.stride.w = -1; }, input},
      {[](Problem& p) { p.weight.first = 1; }, weight},
      {[](Problem& p) { p.weight.group += 1; }, weight},
      {[](Problem& p) {
         p.weight.stride = {9, 72, 3, 1};
       },
       weight},  // of a transposed convolution
      {[](Problem& p) {
         p.weight.stride = {72, 9, -3, -1};
       },
       weight},  // taps from last to first
      {[](Problem& p) { p.output.first = 1; }, output},
      {[](Problem& p) { p.output.stride.h *= 2; }, output},
      {[](Problem& p) { p.output.stride.w = 2; }, output},
  };
  for (const Change& change : changes) {
    Problem problem = lowered("input=2,8,9,9 weight=4,8,3,3 padding=1");
    ASSERT_EQ(beyond_dense_forward(problem), "");
    change.apply(problem);
    EXPECT_EQ(beyond_dense_forward(problem), change.rule) << &change - changes;
  }
}

TEST(BeyondDenseOrUpsampled, TakesStridedGradientsAsTheyAre) {
  const auto rule = [](const std::string& text) {
    return beyond_dense_or_upsampled(lowered("input=2,8,9,9 weight=8,1,3,3 groups=8 " + text));
  };
  EXPECT_EQ(rule("stride=2 operation=data_gradient"), "");
  EXPECT_EQ(rule("stride=1,2 padding=4 operation=data_gradient"), "") << "with a crop";
  EXPECT_EQ(rule("padding=4 operation=data_gradient"), "the input is cropped");
  EXPECT_EQ(rule("stride=2 operation=weight_gradient"), "the sums run over pixels");
}

/// By the definition of an axis: of so many outputs, those inputs that are met are the ones that are counted.
RC_GTEST_PROP(AxisProperty, InputsThatOutputsMeetAreCounted, ()) {
  Axis axis;
  axis.upsampling = *rc::gen::inRange<std::int64_t>(1, 6);
  axis.stride = axis.upsampling > 1 ? 1 : *rc::gen::inRange<std::int64_t>(1, 5);
  axis.taps = *rc::gen::inRange<std::int64_t>(1, 9), axis.dilation = *rc::gen::inRange<std::int64_t>(1, 5);
  axis.pad = *rc::gen::inRange<std::int64_t>(-7, 12);
  const std::int64_t count = *rc::gen::inRange<std::int64_t>(1, 5) * axis.upsampling;
  const std::int64_t first_output = *rc::gen::inRange<std::int64_t>(0, 4) * axis.upsampling;
  const std::int64_t first = axis.first_input() + first_output * axis.stride / axis.upsampling;
  RC_ASSERT(axis.lead() >= 0 && axis.lead() < axis.upsampling);
  for (std::int64_t o = 0; o < count; ++o) {
    for (std::int64_t t = 0; t < axis.taps; ++t) {
      const std::int64_t place = (first_output + o) * axis.stride + t * axis.dilation - axis.pad;
      if (place % axis.upsampling != 0) continue;
      const std::int64_t input = place / axis.upsampling;
      RC_ASSERT(input >= first && input < first + axis.inputs_met(count));
      RC_ASSERT((o * axis.stride + t * axis.dilation - axis.lead()) == (input - first) * axis.upsampling);
    }
  }
  // None more than an undilated filter of all phases' taps meets.
  if (axis.upsampling == 1) RC_ASSERT(axis.inputs_met(count) == (count - 1) * axis.stride + axis.reach() + 1);
  RC_ASSERT((axis.inputs_met(count) - 1) * axis.upsampling <= (count - 1) * axis.stride + axis.reach());
}

}  // namespace
}  // namespace jitconv::codegen
