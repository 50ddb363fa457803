// See tensors.h, which restates LaunchArgs as lists.
#include "tools/check/tensors.h"

namespace jitconv::check {

std::vector<Input> inputs_of(const ConvSpec& spec) {
  const std::int64_t x = element_count(spec.input), w = element_count(spec.weight),
                     dy = element_count(output_shape(spec));
  std::vector<Input> inputs;
  if (spec.operation != Operation::data_gradient)
    inputs.push_back({"x", &LaunchArgs::x, x, spec.dtype, &Data::x, &Operands::x});
  if (spec.operation != Operation::forward)
    inputs.push_back({"dy", &LaunchArgs::dy, dy, spec.dtype, &Data::dy, &Operands::dy});
  if (spec.dy_activation != Activation::none)
    inputs.push_back({"saved", &LaunchArgs::saved, dy, spec.dtype, &Data::saved, &Operands::saved});
  if (spec.operation != Operation::weight_gradient) {
    inputs.push_back({"w", &LaunchArgs::w, w, spec.dtype, &Data::w, &Operands::w});
    const std::int64_t channels = result_shape(spec).c;
    if (spec.epilogue.bias)
      inputs.push_back({"bias", &LaunchArgs::bias, channels, spec.dtype, &Data::bias, &Operands::bias});
  }
  if (spec.epilogue.residual) {
    inputs.push_back({"residual", &LaunchArgs::residual, element_count(result_shape(spec)), output_type(spec),
                      &Data::residual, &Operands::residual});
  }
  return inputs;
}

std::vector<Result> results_of(const ConvSpec& spec) {
  const std::int64_t count = element_count(result_shape(spec));
  const DataType type = output_type(spec);
  switch (spec.operation) {
    case Operation::forward:
      return {{"y", &LaunchArgs::y, count, 0, type}};
    case Operation::data_gradient:
      return {{"dx", &LaunchArgs::dx, count, 0, type}};
    case Operation::weight_gradient:
      break;
  }
  std::vector<Result> results = {{"dw", &LaunchArgs::dw, count, 0, type}};
  if (has_channel_sums(spec)) results.push_back({"db", &LaunchArgs::db, spec.weight.k, count, type});
  return results;
}

std::int64_t tensor_bytes(const ConvSpec& spec) {
  std::int64_t bytes = 0;
  for (const Input& input : inputs_of(spec)) bytes += input.bytes();
  for (const Result& result : results_of(spec)) bytes += result.bytes();
  return bytes;
}

}  // namespace jitconv::check
