// See random_specs.h.
#include "support/random_specs.h"

#include <algorithm>
#include <cstdlib>

#include "support/full_run.h"

namespace jitconv::test {
namespace {

// RapidCheck reads its configuration when the first property starts.
[[maybe_unused]] const int kManyCases =
    setenv("RC_PARAMS", is_full_run() ? "max_success=1000" : "max_success=250", /*overwrite=*/0);

std::int64_t up_to(std::int64_t least, std::int64_t most) {
  // One draw in three at the lower edge, where most special cases are.
  return *rc::gen::weightedOneOf<std::int64_t>(
      {{1, rc::gen::just(least)}, {2, rc::gen::inRange<std::int64_t>(least, most + 1)}});
}

template <typename Enum>
Enum any_of(Enum last) {
  return static_cast<Enum>(*rc::gen::inRange(0, static_cast<int>(last) + 1));
}

struct Axis {
  std::int64_t extent, taps, stride, before, after, dilation;
};

Axis any_axis(const SpecLimits& limits) {
  Axis axis{};
  axis.taps = up_to(1, limits.taps);
  axis.dilation = up_to(1, limits.dilation);
  axis.stride = up_to(1, limits.stride);
  axis.before = up_to(0, limits.padding);
  axis.after = up_to(0, limits.padding);
  const std::int64_t span = axis.dilation * (axis.taps - 1) + 1;
  const std::int64_t least = std::max<std::int64_t>(1, span - axis.before - axis.after);
  axis.extent = up_to(least, least + limits.outputs - 1);
  return axis;
}

}  // namespace

rc::Gen<ConvSpec> valid_specs(const SpecLimits& limits) {
  return rc::gen::exec([limits] {
    ConvSpec spec;
    const Axis y = any_axis(limits), x = any_axis(limits);
    spec.groups = up_to(1, limits.groups);
    const std::int64_t in = up_to(1, limits.channels_per_group), out = up_to(1, limits.channels_per_group);
    spec.input = {*rc::gen::inRange<std::int64_t>(0, limits.batch + 1), in * spec.groups, y.extent, x.extent};
    spec.weight = {out * spec.groups, in, y.taps, x.taps};
    spec.stride = {y.stride, x.stride};
    spec.padding = {y.before, y.after, x.before, x.after};
    spec.dilation = {y.dilation, x.dilation};
    spec.dtype = any_of(DataType::bf16);
    spec.input_layout = any_of(Layout::nhwc);
    spec.output_layout = any_of(Layout::nhwc);
    spec.math = any_of(MathMode::fp16x3);
    spec.epilogue.bias = *rc::gen::arbitrary<bool>();
    spec.epilogue.residual = *rc::gen::arbitrary<bool>();
    spec.epilogue.activation = any_of(Activation::clamp);
    spec.epilogue.slope = static_cast<float>(*rc::gen::inRange(-40, 40)) / 16.0f;
    spec.epilogue.clamp_min = static_cast<float>(*rc::gen::inRange(-40, 40)) / 8.0f;
    spec.epilogue.clamp_max = spec.epilogue.clamp_min + static_cast<float>(*rc::gen::inRange(0, 40)) / 8.0f;
    const int least = spec.dtype == DataType::f32 ? 2 : 1;
    spec.alignment = std::int64_t{1} << *rc::gen::inRange(least, 9);
    return spec;
  });
}

rc::Gen<ConvSpec> valid_operations(const SpecLimits& limits) {
  return rc::gen::exec([limits] {
    ConvSpec spec = *valid_specs(limits);
    spec.operation = any_of(Operation::weight_gradient);
    if (spec.operation == Operation::forward) return spec;
    if (*rc::gen::inRange(0, 3) == 0) spec.dy_activation = any_of(Activation::clamp);
    if (spec.dy_activation == Activation::leaky_relu && spec.epilogue.slope <= 0) spec.epilogue.slope = 0.25f;
    if (spec.operation == Operation::data_gradient) return spec;
    spec.epilogue.activation = Activation::none;
    if (*rc::gen::arbitrary<bool>()) {
      spec.output_dtype = OutputType::f32;
      spec.alignment = std::max<std::int64_t>(spec.alignment, 4);
    }
    return spec;
  });
}

}  // namespace jitconv::test
