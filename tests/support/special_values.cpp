// See special_values.h.
#include "support/special_values.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "runtime/compile.h"
#include "support/runner.h"
#include "tools/check/number.h"

namespace jitconv::test {
namespace {

void plant(const ConvSpec& spec, std::vector<float>& x) {
  const float values[] = {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()};
  const TensorShape& in = spec.input;
  const bool nchw = spec.input_layout == Layout::nchw;
  const std::int64_t places[][4] = {{0, 0, 0, 0},
                                    {0, in.c - 1, 0, in.w - 1},
                                    {in.n - 1, 0, in.h - 1, 0},
                                    {in.n - 1, in.c - 1, in.h - 1, in.w - 1},
                                    {0, in.c / 2, in.h / 2, 0},
                                    {in.n - 1, in.c / 2, in.h / 2, in.w / 2}};
  std::size_t turn = 0;
  for (const auto& [n, c, h, w] : places) {
    const std::int64_t at = nchw ? ((n * in.c + c) * in.h + h) * in.w + w : ((n * in.h + h) * in.w + w) * in.c + c;
    x[static_cast<std::size_t>(at)] = values[turn++ % 3];
  }
}

bool same_value(DataType type, double expected, float actual) {
  if (std::isnan(expected)) return std::isnan(actual);
  return static_cast<double>(actual) == check::round_to(type, expected);
}

/// "" or how many outputs are wrong, and the first of them.
std::string wrong_outputs(DataType type, const std::vector<check::Expected>& expected,
                          const std::vector<float>& actual) {
  std::int64_t wrong = 0;
  std::string first;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (same_value(type, expected[i].y, actual[i])) continue;
    if (wrong++ == 0) first = fmt::format("first at {}: {}, expected {}", i, actual[i], expected[i].y);
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

  std::vector<float> x = check::values_of(data.x, check::element_count(spec.input));
  std::vector<float> bias = check::values_of(data.bias, spec.weight.k);
  const std::vector<float> w = check::values_of(data.w, check::element_count(spec.weight));
  plant(spec, x);
  bias.back() = std::numeric_limits<float>::quiet_NaN();
  const auto upload = [&](const void* to, const std::vector<float>& values) {
    const std::vector<std::byte> bytes = check::encode(spec.dtype, values);
    device.upload(const_cast<void*>(to), bytes.data(), static_cast<std::int64_t>(bytes.size()));
  };
  upload(args.x, x);
  upload(args.bias, bias);
  kernel.launch(nullptr, args);
  device.synchronize();

  check::Operands operands(data);
  operands.x = x, operands.w = w, operands.bias = bias;
  const std::vector<check::Expected> expected = check::reference(spec, operands);
  const std::vector<float> actual = check::decode(spec.dtype, output_bytes(device, spec, args));
  ++counts.kernels, ++counts.launches;
  ++counts.families[std::string(codegen::to_string(runtime::plan_of(kernel).family()))];
  counts.outputs += static_cast<std::int64_t>(actual.size());
  if (actual.size() != expected.size()) return fmt::format("{} outputs, expected {}", actual.size(), expected.size());
  // Both kinds of outputs must exist for this to show anything.
  std::int64_t not_finite = 0;
  for (const check::Expected& one : expected) not_finite += std::isfinite(one.y) ? 0 : 1;
  if (not_finite == 0 || not_finite >= static_cast<std::int64_t>(expected.size()) * 9 / 10)
    return fmt::format("{} of {} outputs are not finite by definition: shows nothing", not_finite, expected.size());
  std::string wrong = wrong_outputs(spec.dtype, expected, actual);
  if (!wrong.empty()) ++counts.failed;
  return wrong.empty() ? arena.damage() : wrong;
}

}  // namespace jitconv::test
