// See special_values.h.
#include "support/special_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "runtime/compile.h"
#include "support/runner.h"
#include "tools/check/number.h"
#include "tools/check/tensors.h"

namespace jitconv::test {
namespace {

/// Where special values are planted in a tensor: indices by their names.
std::array<TensorShape, 6> places_of(const TensorShape& shape) {
  return {{{0, 0, 0, 0},
           {0, shape.c - 1, 0, shape.w - 1},
           {shape.n - 1, 0, shape.h - 1, 0},
           {shape.n - 1, shape.c - 1, shape.h - 1, shape.w - 1},
           {0, shape.c / 2, shape.h / 2, 0},
           {shape.n - 1, shape.c / 2, shape.h / 2, shape.w / 2}}};
}

void plant(const TensorShape& shape, Layout layout, std::vector<float>& values) {
  const float special[] = {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                           -std::numeric_limits<float>::infinity()};
  const check::Strides strides = check::strides_of(shape, layout);
  std::size_t turn = 0;
  for (const TensorShape& at : places_of(shape))
    values[static_cast<std::size_t>(strides.offset(at.n, at.c, at.h, at.w))] = special[turn++ % 3];
}

/// Whether pixel `i` of dx and pixel `p` of dy are no further apart than the window of all phases reaches.
bool in_window(std::int64_t i, std::int64_t p, std::int64_t taps, std::int64_t stride, std::int64_t pad,
               std::int64_t dilation) {
  const std::int64_t reach = (taps - 1) * dilation + stride, between = i + pad - p * stride;
  return between >= -reach && between <= 2 * reach;
}

/// Whether output `p` has a tap on pixel `i` of x.
bool meets_tap(std::int64_t p, std::int64_t i, std::int64_t taps, std::int64_t stride, std::int64_t pad,
               std::int64_t dilation) {
  const std::int64_t reach = i + pad - p * stride;
  return reach >= 0 && reach <= (taps - 1) * dilation && reach % dilation == 0;
}

/// Whether a NaN is allowed at `position` whatever the definition says: beside an infinity or a NaN that it does not
/// read, but multiplies by a zero of padding, of a phase's window, or between groups that are joined.
bool may_be_nan(const codegen::ConvPlan& plan, std::int64_t position) {
  const ConvSpec& spec = plan.spec;
  const TensorShape y = output_shape(spec);
  if (spec.operation == Operation::weight_gradient) {
    if (position >= check::element_count(result_shape(spec))) return false;  // db
    const TensorShape at = check::coordinates(spec, position);
    const std::int64_t channel = at.n / (y.c / spec.groups) * spec.weight.c + at.c;
    return std::ranges::any_of(places_of(y), [&at](const TensorShape& dy) { return dy.c == at.n; }) ||
           std::ranges::any_of(places_of(spec.input), [channel](const TensorShape& x) { return x.c == channel; });
  }
  const codegen::Problem& problem = plan.convolution().problem;
  const std::int64_t groups = spec.groups / problem.joined_groups, of_x = spec.input.c / groups, of_y = y.c / groups;
  const TensorShape at = check::coordinates(spec, position);
  if (spec.operation != Operation::data_gradient)
    return problem.joined_groups > 1 && std::ranges::any_of(places_of(spec.input), [&](const TensorShape& x) {
             return x.n == at.n && x.c / of_x == at.c / of_y &&
                    meets_tap(at.h, x.h, spec.weight.r, spec.stride.h, spec.padding.top, spec.dilation.h) &&
                    meets_tap(at.w, x.w, spec.weight.s, spec.stride.w, spec.padding.left, spec.dilation.w);
           });
  if (!problem.is_sub_pixel() && problem.joined_groups == 1) return false;
  return std::ranges::any_of(places_of(y), [&](const TensorShape& dy) {
    return dy.n == at.n && dy.c / of_y == at.c / of_x &&
           in_window(at.h, dy.h, spec.weight.r, spec.stride.h, spec.padding.top, spec.dilation.h) &&
           in_window(at.w, dy.w, spec.weight.s, spec.stride.w, spec.padding.left, spec.dilation.w);
  });
}

/// What the launch reads, with special values in pixels and bias.
std::vector<float> planted_values(const ConvSpec& spec, const check::Input& input, const check::Data& data) {
  std::vector<float> values = check::values_of(data.*input.fill, input.count);
  if (input.pointer == &LaunchArgs::x) plant(spec.input, spec.input_layout, values);
  if (input.pointer == &LaunchArgs::dy) plant(output_shape(spec), spec.output_layout, values);
  if (input.pointer == &LaunchArgs::bias) values.back() = std::numeric_limits<float>::quiet_NaN();
  return values;
}

bool same_value(DataType type, double expected, float actual) {
  if (std::isnan(expected)) return std::isnan(actual);
  return static_cast<double>(actual) == check::round_to(type, expected);
}

/// "" or how many outputs are wrong, and the first of them.
std::string wrong_outputs(const codegen::ConvPlan& plan, const std::vector<check::Expected>& expected,
                          const std::vector<float>& actual) {
  std::int64_t wrong = 0;
  std::string first;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (same_value(output_type(plan.spec), expected[i].y, actual[i])) continue;
    const auto position = static_cast<std::int64_t>(i);
    if (std::isnan(actual[i]) && may_be_nan(plan, position)) continue;
    if (wrong++ == 0)
      first =
          fmt::format("first {}: {}, expected {}", check::element_name(plan.spec, position), actual[i], expected[i].y);
  }
  return wrong == 0 ? "" : fmt::format("{} outputs are wrong, {}", wrong, first);
}

}  // namespace

SpecialValuesCase special_values_case(const FamilyCase& family, DataType type, const Target& target) {
  ConvSpec spec = family.spec;
  spec.dtype = type;
  spec.epilogue.bias = true;
  spec.epilogue.activation = Activation::relu;
  return {family.name + ": " + to_string(spec), require_plan_for(family, spec, target)};
}

std::string special_values_fault(tools::Device& device, const Kernel& kernel, Report::Category& counts) {
  const ConvSpec& spec = kernel.spec();
  Arena arena(device);
  const LaunchArgs args = place_tensors(arena, spec, kernel.workspace_bytes());
  const check::Data data = check::make_data(spec, check::DataKind::exact, 11);
  fill_tensors(device, spec, data, args, kernel.workspace_bytes());

  check::Operands operands;
  std::vector<std::vector<float>> values;
  for (const check::Input& input : check::inputs_of(spec)) {
    values.push_back(planted_values(spec, input, data));
    operands.*input.operand = values.back();
    const std::vector<std::byte> bytes = check::encode(input.type, values.back());
    device.upload(const_cast<void*>(args.*input.pointer), bytes.data(), static_cast<std::int64_t>(bytes.size()));
  }
  kernel.launch(nullptr, args);
  device.synchronize();

  const std::vector<check::Expected> expected = check::reference(spec, operands);
  const std::vector<float> actual = check::decode(output_type(spec), output_bytes(device, spec, args));
  ++counts.kernels, ++counts.launches;
  ++counts.families[std::string(codegen::to_string(runtime::plan_of(kernel).family()))];
  counts.outputs += static_cast<std::int64_t>(actual.size());
  if (actual.size() != expected.size()) return fmt::format("{} outputs, expected {}", actual.size(), expected.size());
  // Both kinds of outputs must exist for this to show anything.
  std::int64_t not_finite = 0;
  for (const check::Expected& one : expected) not_finite += std::isfinite(one.y) ? 0 : 1;
  if (not_finite == 0 || not_finite >= static_cast<std::int64_t>(expected.size()) * 9 / 10)
    return fmt::format("{} of {} outputs are not finite by definition: shows nothing", not_finite, expected.size());
  std::string wrong = wrong_outputs(runtime::plan_of(kernel), expected, actual);
  if (!wrong.empty()) ++counts.failed;
  return wrong.empty() ? arena.damage() : wrong;
}

}  // namespace jitconv::test
