// See fp32_accuracy.h.
#include "support/fp32_accuracy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <span>

#include "codegen/wgmma/geometry.h"
#include "runtime/compile.h"
#include "support/tensors.h"
#include "tools/check/number.h"
#include "tools/check/reference.h"
#include "tools/check/tensors.h"

namespace jitconv::test {
namespace {

/// What products are of: pixels, and weights or, of a weight gradient, dy.
struct Tensors {
  std::vector<float> x, w;
};

bool is_weight_gradient(const ConvSpec& spec) { return spec.operation == Operation::weight_gradient; }

Tensors tensors_for(const ConvSpec& spec) {
  Tensors tensors;
  tensors.x.resize(static_cast<std::size_t>(check::element_count(spec.input)));
  tensors.w.resize(static_cast<std::size_t>(is_weight_gradient(spec) ? check::element_count(output_shape(spec))
                                                                     : check::element_count(spec.weight)));
  return tensors;
}

/// The second half of the images has the first's pixels, and takes away what those have summed up, but for a
/// thousandth.
void cancel_images(Tensors& tensors, const std::function<float()>& uniform) {
  const std::size_t half_x = tensors.x.size() / 2, half_dy = tensors.w.size() / 2;
  for (std::size_t i = 0; i < half_x; ++i) tensors.x[half_x + i] = tensors.x[i];
  for (std::size_t i = 0; i < half_dy; ++i) tensors.w[half_dy + i] = -tensors.w[i] * (1.0f + uniform() * 0x1p-10f);
}

Tensors tensors_of(const ConvSpec& spec, Numbers numbers) {
  std::mt19937 random(static_cast<unsigned>(numbers) + 1);
  std::normal_distribution<float> normal;
  std::uniform_real_distribution<float> uniform(0.0f, 1.0f);
  Tensors tensors = tensors_for(spec);
  for (float& value : tensors.x) {
    if (numbers == Numbers::zero_mean || numbers == Numbers::planted) value = normal(random);
    if (numbers == Numbers::positive) value = uniform(random);
    if (numbers == Numbers::lognormal)
      value = std::exp(8.85f * normal(random)) * (uniform(random) < 0.5f ? -1.0f : 1.0f);
    if (numbers == Numbers::cancelling) value = 0.5f + uniform(random);
  }
  for (float& value : tensors.w)
    value = numbers == Numbers::positive || numbers == Numbers::cancelling ? 0.5f + uniform(random) : normal(random);
  if (numbers == Numbers::planted) tensors.x.back() = tensors.w.back() = 4096;
  if (numbers != Numbers::cancelling) return tensors;
  if (is_weight_gradient(spec)) {
    cancel_images(tensors, [&] { return uniform(random); });
    return tensors;
  }
  const std::int64_t half = spec.weight.c / 2;
  const check::Strides of_x = check::strides_of(spec.input, spec.input_layout);
  for (std::int64_t n = 0; n < spec.input.n; ++n)
    for (std::int64_t c = 0; c < half; ++c)
      for (std::int64_t h = 0; h < spec.input.h; ++h)
        for (std::int64_t w = 0; w < spec.input.w; ++w)
          tensors.x[static_cast<std::size_t>(of_x.offset(n, half + c, h, w))] =
              tensors.x[static_cast<std::size_t>(of_x.offset(n, c, h, w))];
  const std::int64_t taps = spec.weight.r * spec.weight.s;
  for (std::int64_t k = 0; k < spec.weight.k; ++k)
    for (std::int64_t i = 0; i < half * taps; ++i)
      tensors.w[static_cast<std::size_t>((k * spec.weight.c + half) * taps + i)] =
          -tensors.w[static_cast<std::size_t>(k * spec.weight.c * taps + i)] * (1.0f + uniform(random) * 0x1p-10f);
  return tensors;
}

/// One output, its products added up in the order c, r, s. Without padding, stride, dilation and groups.
float fma_loop(const ConvSpec& spec, const Tensors& tensors, const TensorShape& at) {
  const check::Strides of_x = check::strides_of(spec.input, spec.input_layout);
  const WeightShape& filter = spec.weight;
  float sum = 0;
  for (std::int64_t c = 0; c < filter.c; ++c)
    for (std::int64_t r = 0; r < filter.r; ++r)
      for (std::int64_t s = 0; s < filter.s; ++s)
        sum = std::fma(tensors.x[static_cast<std::size_t>(of_x.offset(at.n, c, at.h + r, at.w + s))],
                       tensors.w[static_cast<std::size_t>(((at.c * filter.c + c) * filter.r + r) * filter.s + s)], sum);
  return sum;
}

/// An element of dw, its products added up in the order n, p, q. Under the same conditions.
float weight_gradient_fma_loop(const ConvSpec& spec, const Tensors& tensors, const TensorShape& at) {
  const TensorShape y = output_shape(spec);
  const check::Strides of_x = check::strides_of(spec.input, spec.input_layout),
                       of_dy = check::strides_of(y, spec.output_layout);
  float sum = 0;
  for (std::int64_t n = 0; n < y.n; ++n)
    for (std::int64_t p = 0; p < y.h; ++p)
      for (std::int64_t q = 0; q < y.w; ++q)
        sum = std::fma(tensors.x[static_cast<std::size_t>(of_x.offset(n, at.c, p + at.h, q + at.w))],
                       tensors.w[static_cast<std::size_t>(of_dy.offset(n, at.n, p, q))], sum);
  return sum;
}

/// The result's element at a position, by the loop that it is compared with.
float fma_loop(const ConvSpec& spec, const Tensors& tensors, std::int64_t position) {
  const TensorShape at = check::coordinates(spec, position);
  return is_weight_gradient(spec) ? weight_gradient_fma_loop(spec, tensors, at) : fma_loop(spec, tensors, at);
}

/// Each with each is a product of x and w. Those of x are so far apart that no output reads two.
constexpr float kSpecial[] = {0.0f,
                              1.0f,
                              0x1.002p0f,
                              std::numeric_limits<float>::infinity(),
                              std::numeric_limits<float>::quiet_NaN(),
                              FLT_MAX,
                              0x1.ffdffep127f,
                              0x1.ffep127f,
                              0x1.000002p127f,
                              0x1.003p100f,
                              0x1.8p64f,
                              0x1.001p63f,
                              0x1.fffffep-64f,
                              0x1.2468acp-110f,
                              0x1.000002p-126f,
                              0x1.fffffcp-127f,
                              0x1p-136f,
                              0x1.8p-137f,
                              0x1p-137f,
                              0x1p-149f};

/// The same where the largest decides on how small others may be.
constexpr float kSpecialPairs[] = {0.0f,
                                   1.0f,
                                   0x1.002p0f,
                                   std::numeric_limits<float>::infinity(),
                                   std::numeric_limits<float>::quiet_NaN(),
                                   0x1.fffffep5f,
                                   0x1.ffep5f,
                                   0x1.2468acp-3f,
                                   0x1.fffffep-9f,
                                   0x1.800002p-10f,
                                   0x1.001p-12f,
                                   0x1.2468acp-18f,
                                   0x1.8p-19f,
                                   0x1p-40f,
                                   0x1.fffffep-64f,
                                   0x1p-126f,
                                   0x1p-149f};
constexpr double kLargestOfPairs = 64;

float special(const ConvSpec& spec, std::int64_t i) {
  const std::span<const float> values =
      spec.math == MathMode::fp16x3 ? std::span<const float>(kSpecialPairs) : std::span<const float>(kSpecial);
  const float value = values[static_cast<std::size_t>(i / 2) % values.size()];
  return i % 2 == 0 ? value : -value;
}

/// Of 1x1 filters: dy is the same in all pixels of a channel, and x is special in one.
Tensors special_gradient_tensors(const ConvSpec& spec, float others) {
  Tensors tensors = tensors_for(spec);
  std::fill(tensors.x.begin(), tensors.x.end(), others);
  const TensorShape y = output_shape(spec);
  const check::Strides of_x = check::strides_of(spec.input, spec.input_layout),
                       of_dy = check::strides_of(y, spec.output_layout);
  for (std::int64_t c = 0; c < spec.input.c; ++c) {
    const std::int64_t pixel = c * 7 % (y.h * y.w);
    tensors.x[static_cast<std::size_t>(of_x.offset(c % y.n, c, pixel / y.w, pixel % y.w))] = special(spec, c);
  }
  for (std::int64_t n = 0; n < y.n; ++n)
    for (std::int64_t k = 0; k < y.c; ++k)
      for (std::int64_t pixel = 0; pixel < y.h * y.w; ++pixel)
        tensors.w[static_cast<std::size_t>(of_dy.offset(n, k, pixel / y.w, pixel % y.w))] = special(spec, k);
  return tensors;
}

Tensors special_tensors(const ConvSpec& spec, float others) {
  if (is_weight_gradient(spec)) return special_gradient_tensors(spec, others);
  Tensors tensors = tensors_for(spec);
  std::fill(tensors.x.begin(), tensors.x.end(), others);
  const std::int64_t weights = spec.weight.c * spec.weight.r * spec.weight.s;
  for (std::size_t i = 0; i < tensors.w.size(); ++i)
    tensors.w[i] = special(spec, static_cast<std::int64_t>(i) / weights);
  const check::Strides of_x = check::strides_of(spec.input, spec.input_layout);
  std::int64_t turn = 0;
  for (std::int64_t n = 0; n < spec.input.n; ++n)
    for (std::int64_t h = 0; h < spec.input.h; h += spec.weight.r)
      for (std::int64_t w = 0; w < spec.input.w; w += spec.weight.s, ++turn)
        tensors.x[static_cast<std::size_t>(of_x.offset(n, turn % spec.input.c, h, w))] = special(spec, turn);
  return tensors;
}

/// Multiplications, or what is proportional to their number, of a step of the plan's convolution.
std::int64_t step_units(const codegen::ConvPlan& plan) {
  if (const auto* wgrad = plan.tiling<codegen::WgradWgmmaTiling>()) return wgrad->promotion_interval();
  return codegen::WgmmaGeometry(plan.convolution().problem, *plan.tiling<codegen::WgmmaTiling>()).units();
}

/// A weight gradient's plan with all pixels of a tile in one sum of one block, so that a missing promotion would show.
codegen::ConvPlan with_long_sums(const codegen::ConvPlan& plan) {
  const auto* wgrad = plan.tiling<codegen::WgradWgmmaTiling>();
  if (wgrad == nullptr) return plan;
  codegen::WgradWgmmaTiling tiling = *wgrad;
  const codegen::WgradGeometry geometry(plan.convolution().problem, tiling);
  tiling.splits = 1;
  tiling.summed_strips = static_cast<int>(geometry.strips());
  tiling.piece_rows = tiling.strip_rows;
  codegen::Launch launch = plan.convolution().launch;
  launch.blocks = static_cast<std::uint32_t>(geometry.tiles());
  return codegen::plan_with(plan.spec, plan.target, {tiling, launch, 0});
}

/// What the kernel makes of x and w.
std::vector<float> outputs_of(tools::Device& device, const Kernel& kernel, const Tensors& tensors) {
  const ConvSpec& spec = kernel.spec();
  Arena arena(device);
  const LaunchArgs args = place_tensors(arena, spec, kernel.workspace_bytes());
  const auto upload = [&device](const void* to, const std::vector<float>& values) {
    device.upload(const_cast<void*>(to), values.data(), static_cast<std::int64_t>(4 * values.size()));
  };
  upload(args.x, tensors.x);
  upload(is_weight_gradient(spec) ? args.dy : args.w, tensors.w);
  kernel.launch(nullptr, args);
  device.synchronize();
  return check::decode(DataType::f32, output_bytes(device, spec, args));
}

std::vector<check::Expected> reference(const ConvSpec& spec, const std::vector<float>& x, const std::vector<float>& w) {
  if (is_weight_gradient(spec))
    return check::reference(spec, check::Operands(x, check::Operand(), check::Operand(), check::Operand(), w));
  return check::reference(spec, check::Operands(x, w, check::Operand(), check::Operand()));
}

/// What docs/accuracy.md says of special values. `factors` is the sum of the magnitudes of all factors.
bool is_as_promised(const ConvSpec& spec, float actual, float loop, const check::Expected& expected, double factors) {
  if (std::isnan(loop)) return std::isnan(actual);
  // Products of smaller parts may overflow, too, with the other sign.
  if (std::isinf(loop))
    return std::isfinite(expected.y) && expected.magnitude > 0x1p138 ? !std::isfinite(actual) : actual == loop;
  constexpr double kSubnormalError = 0x1.01p-137;  // of a factor, whose last place in TF32 is 2^-136
  const auto products = static_cast<double>(expected.terms);
  const double of_pairs = spec.math == MathMode::fp16x3 ? 0x1p-38 * kLargestOfPairs * kLargestOfPairs : 0;
  const double bound = products * (0x1p-24 * expected.magnitude + 0x1p-150 + of_pairs) + kSubnormalError * factors;
  return std::fabs(static_cast<double>(actual) - expected.y) <= bound;
}

}  // namespace

std::string_view to_string(Numbers numbers) {
  constexpr std::string_view kNames[] = {"zero-mean", "positive", "lognormal", "cancelling", "planted"};
  return kNames[static_cast<std::size_t>(numbers)];
}

namespace {

/// Of each spec the plan with the longest steps that is `wanted`.
std::vector<codegen::ConvPlan> longest_steps(std::initializer_list<const char*> specs, const Target& target,
                                             const std::function<bool(const codegen::ConvPlan&)>& wanted) {
  std::vector<codegen::ConvPlan> longest;
  for (const char* text : specs) {
    std::vector<codegen::ConvPlan> plans = codegen::enumerate_plans(parse_spec(text), target, SIZE_MAX);
    std::erase_if(plans, [&](const codegen::ConvPlan& plan) { return !wanted(plan); });
    if (plans.empty()) continue;
    longest.push_back(with_long_sums(*std::max_element(
        plans.begin(), plans.end(), [](const auto& a, const auto& b) { return step_units(a) < step_units(b); })));
  }
  return longest;
}

}  // namespace

std::vector<codegen::ConvPlan> fp32_plans(const Target& target) {
  return longest_steps(
      {"input=2,64,20,30 weight=40,64,1,1", "input=1,8,40,60 weight=32,8,3,3", "input=1,16,22,42 weight=64,16,3,3",
       "input=1,144,17,18 weight=64,144,5,1", "input=2,128,9,30 weight=32,128,1,1 input_layout=nhwc output_layout=nhwc",
       "input=2,16,11,12 weight=24,16,1,3 operation=weight_gradient",
       "input=2,40,16,42 weight=40,40,1,1 operation=weight_gradient"},
      target, [](const codegen::ConvPlan& plan) {
        return plan.tiling<codegen::WgmmaTiling>() != nullptr || plan.tiling<codegen::WgradWgmmaTiling>() != nullptr;
      });
}

std::vector<codegen::ConvPlan> fp16x3_plans(const Target& target) {
  return longest_steps(
      {"input=2,64,20,30 weight=40,64,1,1 math=fp16x3", "input=1,16,22,42 weight=64,16,3,3 math=fp16x3",
       "input=1,17,21,41 weight=65,17,3,3 math=fp16x3", "input=1,144,17,18 weight=64,144,5,1 math=fp16x3",
       "input=2,128,9,30 weight=32,128,1,1 layout=nhwc math=fp16x3"},
      target, [](const codegen::ConvPlan& plan) {
        const auto* const wgmma = plan.tiling<codegen::WgmmaTiling>();
        return wgmma != nullptr && wgmma->f16_pairs;
      });
}

LargestErrors largest_errors(tools::Device& device, const Kernel& kernel, Numbers numbers) {
  const ConvSpec& spec = kernel.spec();
  const Tensors tensors = tensors_of(spec, numbers);
  const std::vector<float> actual = outputs_of(device, kernel, tensors);
  const std::vector<check::Expected> expected = reference(spec, tensors.x, tensors.w);
  LargestErrors largest;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const check::Expected& one = expected[i];
    const auto error = [&one](float y) { return std::fabs(static_cast<double>(y) - one.y) / one.magnitude * 0x1p24; };
    const float loop = fma_loop(spec, tensors, static_cast<std::int64_t>(i));
    largest.kernel = std::max(largest.kernel, error(actual[i]));
    largest.fma_loop = std::max(largest.fma_loop, error(loop));
  }
  return largest;
}

std::string special_value_faults(tools::Device& device, const Kernel& kernel, float others) {
  const ConvSpec& spec = kernel.spec();
  const Tensors tensors = special_tensors(spec, others);
  const std::vector<float> actual = outputs_of(device, kernel, tensors);
  const std::vector<check::Expected> expected = reference(spec, tensors.x, tensors.w);
  const std::vector<check::Expected> pixels = reference(spec, tensors.x, std::vector<float>(tensors.w.size(), 1.0f));
  std::int64_t faults = 0;
  std::string first;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const auto position = static_cast<std::int64_t>(i);
    const TensorShape at = check::coordinates(spec, position);
    const float loop = fma_loop(spec, tensors, position),
                weight = special(spec, is_weight_gradient(spec) ? at.n : at.c);
    const double factors = pixels[i].magnitude + static_cast<double>(expected[i].terms) * std::fabs(weight);
    if (is_as_promised(spec, actual[i], loop, expected[i], factors)) continue;
    if (faults++ == 0)
      first = fmt::format("{}: {} instead of {}, weights of {}", check::element_name(spec, position), actual[i], loop,
                          weight);
  }
  return faults == 0 ? "" : fmt::format("{} outputs differ, first {}", faults, first);
}

}  // namespace jitconv::test
