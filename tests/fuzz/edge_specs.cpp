// See edge_specs.h. Draws are taken from std::mt19937_64 directly: the distributions of the standard library differ
// between implementations.
#include "fuzz/edge_specs.h"

#include <algorithm>
#include <initializer_list>
#include <random>
#include <utility>

#include "jitconv/error.h"

namespace jitconv::test {
namespace {

constexpr std::int64_t kMostExtent = 400;

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : engine_(seed * 0x9e3779b97f4a7c15u + 1) {}

  std::int64_t between(std::int64_t least, std::int64_t most) {
    return least + static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(most - least + 1));
  }
  std::size_t index(std::size_t size) { return engine_() % size; }
  /// True once in `n` draws.
  bool one_in(std::int64_t n) { return between(1, n) == 1; }
  template <typename T>
  T of(std::initializer_list<T> values) {
    return values.begin()[index(values.size())];
  }

 private:
  std::mt19937_64 engine_;
};

struct Axis {
  std::int64_t extent = 1, taps = 1, stride = 1, before = 0, after = 0, dilation = 1;
  std::int64_t span() const { return dilation * (taps - 1) + 1; }
};

std::int64_t draw_extent(Draw& draw) {
  switch (draw.between(0, 9)) {
    case 0:
    case 1:
    case 2:
      return draw.between(1, 4);
    case 3:
    case 4:
    case 5:
      return draw.between(5, 20);
    case 6:
    case 7:
      return draw.of<std::int64_t>({7, 14, 16, 28, 31, 32, 33, 56, 63, 64, 65});
    case 8:
      return draw.between(21, 130);
    default:
      return draw.between(100, kMostExtent);
  }
}

/// Gradients meet more strides and dilations, and both at once, with and without a common divisor: which taps meet a
/// pixel depends on them.
Axis draw_axis(Draw& draw, Operation operation) {
  const bool is_forward = operation == Operation::forward;
  Axis axis;
  axis.taps = draw.one_in(10) ? draw.between(8, 31) : draw.of<std::int64_t>({1, 1, 2, 3, 3, 3, 3, 4, 5, 5, 7});
  axis.dilation = draw.one_in(40) ? draw.between(60, 160) : draw.one_in(is_forward ? 4 : 3) ? draw.between(2, 7) : 1;
  axis.stride = draw.one_in(is_forward ? 4 : 2) ? draw.between(2, 5) : 1;
  axis.extent = draw_extent(draw);
  switch (draw.between(0, 5)) {
    case 0:  // none
      break;
    case 1:
    case 2:
    case 3:  // as much on both sides as keeps the extent
      axis.before = axis.after = (axis.span() - 1) / 2;
      break;
    case 4:
      axis.before = draw.between(0, axis.span() / 2 + 1);
      axis.after = draw.between(0, axis.span() / 2 + 1);
      break;
    default:  // outputs that meet nothing but padding; the gradient of x crops dy
      axis.before = draw.between(0, axis.span() + 2);
      axis.after = draw.between(0, 3);
  }
  const std::int64_t missing = axis.span() - axis.extent - axis.before - axis.after;
  if (missing <= 0) return axis;
  if (draw.one_in(2)) {
    axis.before += missing / 2;
    axis.after += missing - missing / 2;
  } else {
    axis.extent += missing;
  }
  return axis;
}

/// Around the numbers of channels that fill 16 bytes, a step or a tile.
std::int64_t draw_channels(Draw& draw) {
  if (draw.one_in(3)) return draw.between(1, 8);
  if (draw.one_in(3)) return draw.between(1, 40);
  return draw.of<std::int64_t>({1, 3, 4, 8, 16, 24, 31, 32, 33, 40, 48, 63, 64, 65, 72, 96, 100, 128, 129, 136, 200});
}

void draw_channels_of(Draw& draw, ConvSpec& spec) {
  if (draw.one_in(8)) {  // depthwise
    spec.groups = draw_channels(draw);
    spec.weight.c = 1;
    std::int64_t group_k = draw.of<std::int64_t>({1, 1, 1, 2, 3});
    // The multiplier of what a data gradient computes: channels of dx for one of dy.
    if (spec.operation == Operation::data_gradient && draw.one_in(2)) std::swap(spec.weight.c, group_k);
    spec.weight.k = spec.groups * group_k;
  } else {
    spec.groups = draw.one_in(5) ? draw.between(2, 6) : 1;
    spec.weight.c = draw_channels(draw);
    spec.weight.k = spec.groups * draw_channels(draw);
  }
  spec.input.c = spec.groups * spec.weight.c;
}

Epilogue draw_epilogue(Draw& draw) {
  Epilogue epilogue;
  epilogue.bias = draw.one_in(2);
  epilogue.residual = draw.one_in(4);
  // Exact on integers.
  epilogue.activation = draw.of({Activation::none, Activation::none, Activation::none, Activation::relu,
                                 Activation::leaky_relu, Activation::clamp});
  epilogue.slope = 0.25f;
  epilogue.clamp_min = -2.0f;
  epilogue.clamp_max = 5.0f;
  return epilogue;
}

Operation draw_operation(Draw& draw) {
  return draw.of({Operation::forward, Operation::forward, Operation::forward, Operation::forward,
                  Operation::data_gradient, Operation::data_gradient, Operation::data_gradient,
                  Operation::weight_gradient, Operation::weight_gradient, Operation::weight_gradient});
}

/// What only a weight gradient may be asked for, and what it may not.
void make_weight_gradient(Draw& draw, ConvSpec& spec) {
  spec.epilogue.activation = Activation::none;
  if (draw.one_in(3)) spec.output_dtype = OutputType::f32;
  if (draw.one_in(40)) spec.input.n = 0;
}

/// What the family of that name computes: planes of whole vectors, channels in eights.
void make_pointwise(Draw& draw, ConvSpec& spec) {
  spec.dtype = DataType::f32;
  spec.math = MathMode::tf32;
  spec.input_layout = spec.output_layout = Layout::nchw;
  spec.alignment = 16;
  if (spec.input.h * spec.input.w % 4 != 0) spec.input.w *= 4;
  const std::int64_t group_k = spec.weight.k / spec.groups;
  spec.groups = std::min<std::int64_t>(spec.groups, 3);
  spec.weight.c = 8 * draw.between(2, 12);
  spec.weight.k = spec.groups * group_k;
  spec.input.c = spec.groups * spec.weight.c;
}

/// Fewer images, channels, then rows and columns, until the limit is kept.
void limit_products(ConvSpec& spec, std::int64_t most) {
  const auto halve = [](std::int64_t& value, std::int64_t least) {
    const bool more = value > least;
    if (more) value = std::max(least, value / 2);
    return more;
  };
  const auto least_extent = [](std::int64_t taps, std::int64_t dilation, std::int64_t padding) {
    return std::max<std::int64_t>(1, dilation * (taps - 1) + 1 - padding);
  };
  while (products(spec) > most) {
    if (halve(spec.input.n, 1)) continue;
    std::int64_t group_k = spec.weight.k / spec.groups;
    const std::int64_t least_h = least_extent(spec.weight.r, spec.dilation.h, spec.padding.top + spec.padding.bottom);
    const std::int64_t least_w = least_extent(spec.weight.s, spec.dilation.w, spec.padding.left + spec.padding.right);
    const bool smaller = spec.input.h >= spec.input.w ? halve(spec.input.h, least_h) || halve(spec.input.w, least_w)
                                                      : halve(spec.input.w, least_w) || halve(spec.input.h, least_h);
    if (smaller) continue;
    if (!halve(group_k, 1) && !halve(spec.weight.c, 1) && !halve(spec.groups, 1)) {
      // Padding alone makes the outputs: a unit filter ends this.
      spec.weight.r = spec.weight.s = 1;
      spec.padding = Padding();
    }
    spec.weight.k = group_k * spec.groups;
    spec.input.c = spec.weight.c * spec.groups;
  }
}

bool is_valid(const ConvSpec& spec) {
  try {
    validate(spec);
    const TensorShape result = result_shape(spec);
    return result.n * result.c * result.h * result.w > 0;
  } catch (const SpecError&) {
    return false;
  }
}

/// Collects the valid ones of the specs that differ from `from` in one field.
class Simplification {
 public:
  explicit Simplification(const ConvSpec& from) : from_(from) {}

  template <typename Change>
  void add(const Change& change) {
    ConvSpec spec = from_;
    change(spec);
    if (spec != from_ && is_valid(spec)) specs_.push_back(std::move(spec));
  }
  /// `value(spec)` is set to `least`, halved, and lowered by one.
  template <typename Value>
  void lower(const Value& value, std::int64_t least) {
    ConvSpec copy = from_;
    const std::int64_t now = value(copy);
    for (const std::int64_t next : {least, now / 2, now - 1})
      if (next >= least && next < now) add([&](ConvSpec& spec) { value(spec) = next; });
  }
  /// Channels of a group, input's and output's, and groups; both tensors follow.
  void set_channels(std::int64_t c, std::int64_t group_k, std::int64_t groups) {
    if (c < 1 || group_k < 1) return;
    add([&](ConvSpec& spec) {
      spec.groups = groups;
      spec.weight.c = c;
      spec.weight.k = group_k * groups;
      spec.input.c = c * groups;
    });
  }
  std::vector<ConvSpec> take() { return std::move(specs_); }

 private:
  const ConvSpec& from_;
  std::vector<ConvSpec> specs_;
};

}  // namespace

std::int64_t products(const ConvSpec& spec) {
  const std::int64_t taps = spec.weight.r * spec.weight.s;
  if (spec.operation == Operation::data_gradient)
    return spec.input.n * spec.input.c * spec.input.h * spec.input.w * spec.weight.k / spec.groups * taps;
  const TensorShape out = output_shape(spec);
  return out.n * out.c * out.h * out.w * spec.weight.c * taps;
}

ConvSpec edge_spec(std::uint64_t seed, std::int64_t most_products) {
  Draw draw(seed);
  ConvSpec spec;
  spec.operation = draw_operation(draw);
  Axis y = draw_axis(draw, spec.operation), x = draw.one_in(6) ? Axis{} : draw_axis(draw, spec.operation);
  draw_channels_of(draw, spec);
  const bool pointwise = draw.one_in(7);
  const bool product = pointwise && !draw.one_in(3);  // of matrices: no padding, no stride
  if (product) {
    y = {.extent = y.extent};
    x = {.extent = x.extent};
  } else if (pointwise) {
    y.taps = x.taps = 1;
  }
  spec.input.n = draw.of<std::int64_t>({1, 1, 2, 3, 5, 17});
  spec.input.h = y.extent;
  spec.input.w = x.extent;
  spec.weight.r = y.taps;
  spec.weight.s = x.taps;
  spec.stride = {y.stride, x.stride};
  spec.padding = {y.before, y.after, x.before, x.after};
  spec.dilation = {y.dilation, x.dilation};
  if (draw.one_in(2)) {  // one-dimensional convolutions lie along either axis
    std::swap(spec.input.h, spec.input.w);
    std::swap(spec.weight.r, spec.weight.s);
    std::swap(spec.stride.h, spec.stride.w);
    std::swap(spec.dilation.h, spec.dilation.w);
    spec.padding = {x.before, x.after, y.before, y.after};
  }
  spec.dtype = draw.of({DataType::f32, DataType::f16, DataType::bf16});
  spec.input_layout = draw.of({Layout::nchw, Layout::nhwc});
  spec.output_layout = draw.one_in(4) ? draw.of({Layout::nchw, Layout::nhwc}) : spec.input_layout;
  spec.math = draw.of({MathMode::tf32, MathMode::tf32, MathMode::tf32, MathMode::fp32, MathMode::fp32, MathMode::fp16x3,
                       MathMode::ieee});
  spec.epilogue = draw_epilogue(draw);
  if (spec.operation == Operation::weight_gradient) make_weight_gradient(draw, spec);
  spec.alignment = std::max({element_bytes(spec.dtype), element_bytes(output_type(spec)),
                             draw.of<std::int64_t>({16, 16, 16, 16, 16, 16, 32, 256, 2, 4, 8})});
  if (product && draw.one_in(2)) make_pointwise(draw, spec);
  if (spec.operation != Operation::forward && draw.one_in(4)) {
    // Three of four are exact on integers.
    spec.dy_activation = draw.one_in(4) ? static_cast<Activation>(draw.between(1, static_cast<int>(Activation::clamp)))
                                        : draw.of({Activation::relu, Activation::leaky_relu, Activation::clamp});
  }
  limit_products(spec, most_products);
  return spec;
}

codegen::ConvPlan edge_plan(std::uint64_t seed, const ConvSpec& spec, const Target& target) {
  if (seed % 2 == 0) return codegen::make_plan(spec, target);
  std::vector<codegen::ConvPlan> plans = codegen::enumerate_plans(spec, target, SIZE_MAX);
  std::vector<codegen::Family> families;
  for (const codegen::ConvPlan& plan : plans)
    if (std::find(families.begin(), families.end(), plan.family()) == families.end()) families.push_back(plan.family());
  Draw draw(~seed);
  // Families of tensor cores come first: the planner leaves most small convolutions to the others.
  const auto others = std::stable_partition(families.begin(), families.end(), codegen::uses_tensor_cores);
  const auto first = static_cast<std::size_t>(std::max<std::ptrdiff_t>(others - families.begin(), 1));
  const codegen::Family family = families[draw.index(draw.one_in(3) ? families.size() : first)];
  std::erase_if(plans, [family](const codegen::ConvPlan& plan) { return plan.family() != family; });
  return std::move(plans[draw.index(plans.size())]);
}

std::vector<ConvSpec> simpler_specs(const ConvSpec& spec) {
  Simplification simpler(spec);
  const std::int64_t group_k = spec.weight.k / spec.groups;
  for (const std::int64_t groups : {std::int64_t{1}, spec.groups / 2, spec.groups - 1})
    if (groups >= 1) simpler.set_channels(spec.weight.c, group_k, groups);
  for (const std::int64_t c : {std::int64_t{1}, spec.weight.c / 2, spec.weight.c - 1})
    simpler.set_channels(c, group_k, spec.groups);
  for (const std::int64_t k : {std::int64_t{1}, group_k / 2, group_k - 1})
    simpler.set_channels(spec.weight.c, k, spec.groups);
  simpler.lower([](ConvSpec& s) -> std::int64_t& { return s.input.n; }, 1);
  simpler.lower([](ConvSpec& s) -> std::int64_t& { return s.input.h; }, 1);
  simpler.lower([](ConvSpec& s) -> std::int64_t& { return s.input.w; }, 1);
  simpler.lower([](ConvSpec& s) -> std::int64_t& { return s.weight.r; }, 1);
  simpler.lower([](ConvSpec& s) -> std::int64_t& { return s.weight.s; }, 1);
  simpler.lower([](ConvSpec& s) -> std::int64_t& { return s.stride.h; }, 1);
  simpler.lower([](ConvSpec& s) -> std::int64_t& { return s.stride.w; }, 1);
  simpler.lower([](ConvSpec& s) -> std::int64_t& { return s.dilation.h; }, 1);
  simpler.lower([](ConvSpec& s) -> std::int64_t& { return s.dilation.w; }, 1);
  simpler.lower([](ConvSpec& s) -> std::int64_t& { return s.padding.top; }, 0);
  simpler.lower([](ConvSpec& s) -> std::int64_t& { return s.padding.bottom; }, 0);
  simpler.lower([](ConvSpec& s) -> std::int64_t& { return s.padding.left; }, 0);
  simpler.lower([](ConvSpec& s) -> std::int64_t& { return s.padding.right; }, 0);
  // A filter that needs its padding or its image shrinks together with them.
  simpler.add([](ConvSpec& s) { --s.weight.r, --s.input.h; });
  simpler.add([](ConvSpec& s) { --s.weight.s, --s.input.w; });
  simpler.add([](ConvSpec& s) { s.output_dtype = OutputType::same; });
  simpler.add([](ConvSpec& s) { s.dy_activation = Activation::none; });
  simpler.add([](ConvSpec& s) { s.epilogue.activation = Activation::none; });
  simpler.add([](ConvSpec& s) { s.epilogue.residual = false; });
  simpler.add([](ConvSpec& s) { s.epilogue.bias = false; });
  simpler.add([](ConvSpec& s) { s.input_layout = Layout::nchw; });
  simpler.add([](ConvSpec& s) { s.output_layout = Layout::nchw; });
  simpler.add([](ConvSpec& s) { s.alignment = 16; });
  return simpler.take();
}

ConvSpec shrink(const ConvSpec& failing, const std::function<bool(const ConvSpec&)>& fails, int most_tries) {
  ConvSpec smallest = failing;
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (const ConvSpec& next : simpler_specs(smallest)) {
      if (most_tries-- <= 0) return smallest;
      if (!fails(next)) continue;
      smallest = next;
      smaller = true;
      break;
    }
  }
  return smallest;
}

}  // namespace jitconv::test
