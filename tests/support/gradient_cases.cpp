// See gradient_cases.h.
#include "support/gradient_cases.h"

#include <fmt/format.h>

#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "codegen/spec_fields.h"
#include "support/family_cases.h"

namespace jitconv::test {
namespace {

using codegen::Family;

struct Gradient {
  Family family;
  const char* what;
  const char* spec;
};

constexpr Gradient kDataGradients[] = {
    {Family::direct, "", "input=2,10,19,23 weight=14,10,3,3 padding=1 bias residual"},
    {Family::direct, "nhwc", "input=2,10,19,23 weight=14,10,3,3 padding=1 bias layout=nhwc"},
    {Family::direct, "phases", "input=2,10,19,23 weight=14,10,3,3 stride=2 padding=1 bias residual activation=relu"},
    {Family::direct, "phases, nhwc",
     "input=2,10,19,23 weight=14,10,4,3 stride=2,3 padding=1 bias residual layout=nhwc"},
    {Family::depthwise, "", "input=2,7,29,37 weight=7,1,3,3 groups=7 padding=1 residual"},
    {Family::depthwise, "phases", "input=2,8,40,32 weight=8,1,3,3 groups=8 stride=2 padding=1 bias"},
    {Family::depthwise, "phases, odd rows, bf16",
     "input=2,5,29,37 weight=5,1,5,3 groups=5 stride=2,3 padding=2,0 bias residual dtype=bf16"},
    {Family::depthwise, "phases, multiplier",
     "input=2,9,29,37 weight=3,3,3,5 groups=3 stride=2,3 padding=1 bias residual"},
    {Family::depthwise_planes, "phases",
     "input=3,24,14,13 weight=24,1,5,3 groups=24 stride=2 padding=2,1 bias residual"},
    {Family::depthwise_planes, "phases, f16",
     "input=3,24,13,14 weight=24,1,3,3 groups=24 stride=3,2 dilation=1,2 padding=1 residual dtype=f16"},
    {Family::depthwise_planes, "", "input=3,24,14,12 weight=24,1,3,5 groups=24 padding=1,2 residual"},
    {Family::depthwise_nhwc, "", "input=2,12,29,37 weight=12,1,3,3 groups=12 padding=1 residual layout=nhwc"},
    {Family::depthwise_nhwc, "phases",
     "input=2,8,40,32 weight=8,1,3,3 groups=8 stride=2 padding=1 bias layout=nhwc dtype=bf16"},
    {Family::fallback, "", "input=2,6,23,31 weight=21,6,3,3 stride=1,2 padding=1 bias residual"},
    {Family::wgmma, "", "input=2,16,17,23 weight=40,16,3,3 padding=1 bias residual math=tf32"},
    {Family::wgmma, "bf16", "input=2,16,17,24 weight=40,16,3,3 padding=1 residual dtype=bf16"},
    {Family::wgmma, "nhwc", "input=2,24,17,23 weight=40,24,3,3 padding=1 bias layout=nhwc dtype=f16"},
    {Family::wgmma, "phases", "input=2,24,18,16 weight=32,24,3,3 stride=2 padding=1 bias residual math=tf32"},
    {Family::wgmma, "phases, nhwc", "input=2,16,18,16 weight=32,16,4,4 stride=2 padding=1 bias layout=nhwc dtype=bf16"},
    {Family::wgmma, "zeros", "input=2,64,17,16 weight=40,64,1,1 stride=2 dtype=bf16"},
    {Family::wgmma, "zeros, nhwc", "input=2,64,17,16 weight=40,64,1,1 stride=2 layout=nhwc math=tf32"},
    {Family::wgmma, "joined", "input=2,64,17,20 weight=64,4,3,3 padding=1 groups=16 bias residual math=tf32"},
    {Family::wgmma, "joined, phases",
     "input=2,64,18,20 weight=64,4,3,3 stride=2 padding=1 groups=16 residual dtype=f16"},
    {Family::wgmma, "joined, phases, nhwc",
     "input=2,128,18,20 weight=128,8,3,3 stride=2 padding=1 groups=16 bias dtype=bf16 layout=nhwc"},
    {Family::pointwise, "", "input=3,37,7,12 weight=48,37,1,1 bias residual math=tf32"},
};

constexpr Gradient kWeightGradients[] = {
    {Family::wgrad, "", "input=3,10,19,23 weight=14,10,3,3 padding=1 bias residual"},
    {Family::wgrad, "nhwc", "input=3,10,19,23 weight=14,5,3,3 groups=2 stride=2 padding=1 bias layout=nhwc"},
    {Family::wgrad, "f16 to f32", "input=3,10,19,23 weight=14,10,3,3 padding=1 residual dtype=f16 output_dtype=f32"},
    {Family::wgrad_depthwise, "", "input=3,6,24,48 weight=6,1,3,3 groups=6 padding=1 bias residual"},
    {Family::wgrad_depthwise, "nhwc", "input=3,8,24,45 weight=8,1,3,3 groups=8 padding=1 bias residual layout=nhwc"},
    {Family::wgrad_depthwise, "bf16", "input=3,6,25,48 weight=6,1,5,3 groups=6 stride=2 residual dtype=bf16"},
    {Family::wgrad_wgmma, "", "input=2,16,17,20 weight=40,16,3,3 padding=1 bias residual math=tf32"},
    {Family::wgrad_wgmma, "strided", "input=2,16,18,23 weight=80,16,3,3 stride=2 padding=1 bias residual math=tf32"},
    {Family::wgrad_wgmma, "phases, rows joined",
     "input=8,64,20,20 weight=128,64,3,3 stride=2 padding=1 bias residual math=tf32"},
    {Family::wgrad_wgmma, "rows joined", "input=9,64,7,7 weight=72,64,3,3 padding=1 bias residual math=tf32"},
    {Family::wgrad_wgmma, "rows joined, bf16", "input=9,64,8,8 weight=72,64,3,3 stride=2 padding=1 bias dtype=bf16"},
    {Family::wgrad_wgmma, "exchanged", "input=2,40,17,20 weight=3,40,3,3 padding=1 bias residual math=tf32"},
    {Family::wgrad_wgmma, "exchanged, groups, f16, nhwc",
     "input=2,64,17,18 weight=16,32,3,2 groups=2 padding=1 dilation=2 bias dtype=f16 layout=nhwc"},
    {Family::wgrad_wgmma, "joined groups",
     "input=2,32,17,20 weight=32,4,3,3 padding=1 groups=8 bias residual math=tf32"},
    {Family::wgrad_wgmma, "joined groups, bf16, nhwc",
     "input=2,64,17,18 weight=64,8,3,3 stride=2 padding=1 groups=8 bias dtype=bf16 layout=nhwc"},
    {Family::wgrad_wgmma, "exchanged, 1x1", "input=3,44,7,7 weight=9,44,1,1 bias math=tf32"},
    {Family::wgrad_wgmma, "bf16", "input=2,16,16,16 weight=40,16,3,3 padding=1 bias residual dtype=bf16"},
    // Operands that are split; fp32_plans() has those whose rows of x are loaded as vectors or as runs.
    {Family::wgrad_wgmma, "tf32x3, boxes", "input=2,16,17,20 weight=40,16,2,3 padding=1 bias residual"},
    {Family::wgrad_wgmma, "tf32x3, pixels",
     "input=2,24,18,23 weight=40,12,2,3 groups=2 stride=2 padding=1 bias residual layout=nhwc"},
    {Family::wgrad_wgmma, "tf32x3, few channels", "input=2,3,29,27 weight=20,3,3,5 stride=2 padding=1 residual"},
    {Family::wgrad_wgmma, "nhwc, f16 to f32",
     "input=2,24,17,23 weight=40,12,3,3 groups=2 padding=1 bias residual layout=nhwc dtype=f16 output_dtype=f32"},
};

// Behind the pass that multiplies dy by an activation's derivative: exact ones, so that data are compared for equality.
constexpr Gradient kActivatedDataGradients[] = {
    {Family::direct, "relu",
     "input=2,8,9,11 weight=12,8,3,3 padding=1 activation=leaky_relu slope=0.5 dy_activation=relu"},
    {Family::direct, "phases", "input=2,8,9,11 weight=12,8,3,3 stride=2 padding=1 bias dy_activation=clamp"},
    {Family::depthwise, "relu, f16", "input=2,6,9,16 weight=6,1,3,3 groups=6 padding=1 dtype=f16 dy_activation=relu"},
    {Family::depthwise, "phases, relu",
     "input=2,6,9,16 weight=6,1,3,3 groups=6 stride=2 padding=1 activation=relu dy_activation=relu"},
    {Family::depthwise_planes, "phases, clamp, bf16",
     "input=2,8,14,14 weight=8,1,3,3 groups=8 stride=2 padding=1 bias dtype=bf16 dy_activation=clamp"},
    {Family::wgmma, "leaky relu",
     "input=2,24,9,11 weight=40,24,3,3 padding=1 bias math=tf32 dy_activation=leaky_relu slope=0.25"},
    {Family::wgmma, "relu, bf16, nhwc",
     "input=2,24,9,11 weight=40,24,3,3 padding=1 residual layout=nhwc dtype=bf16 dy_activation=relu"},
    {Family::wgmma, "phases",
     "input=2,24,9,11 weight=40,24,3,3 stride=2 padding=1 activation=relu math=tf32 dy_activation=relu"},
    {Family::pointwise, "clamp", "input=2,64,8,8 weight=64,64,1,1 math=tf32 dy_activation=clamp"},
};

constexpr Gradient kActivatedWeightGradients[] = {
    {Family::wgrad, "relu, pointers of one element",
     "input=1,5,7,7 weight=6,5,3,3 dtype=bf16 alignment=2 dy_activation=relu"},
    {Family::wgrad_depthwise, "clamp", "input=2,6,9,16 weight=6,1,3,3 groups=6 padding=1 bias dy_activation=clamp"},
    {Family::wgrad_wgmma, "relu", "input=2,24,9,16 weight=24,24,3,3 padding=1 bias math=tf32 dy_activation=relu"},
    {Family::wgrad_wgmma, "leaky relu, bf16, nhwc",
     "input=2,24,9,16 weight=24,24,3,3 padding=1 bias layout=nhwc dtype=bf16 dy_activation=leaky_relu slope=0.25"},
};

codegen::ConvPlan plan_of(const ConvSpec& spec, Family family, const Target& target) {
  if (family == Family::fallback) return fallback_plan(spec, target);
  for (codegen::ConvPlan& plan : codegen::enumerate_plans(spec, target, SIZE_MAX))
    if (plan.family() == family) return std::move(plan);
  throw std::logic_error(fmt::format("no plan of {} for {}", to_string(family), to_string(spec)));
}

void add(std::vector<Case>& cases, ConvSpec spec, Operation operation, Family family, std::string_view what,
         const Target& target) {
  spec.operation = operation;
  Case next{fmt::format("{} by {}{}{}", to_string(operation), to_string(family), what.empty() ? "" : ", ", what),
            spec,
            plan_of(spec, family, target),
            false,
            {}};
  next.kinds = {check::DataKind::exact, check::DataKind::random};
  cases.push_back(std::move(next));
}

void add(std::vector<Case>& cases, Operation operation, std::span<const Gradient> list, const Target& target) {
  for (const Gradient& one : list)
    if (!codegen::uses_tensor_cores(one.family) || has_wgmma_family(target))
      add(cases, parse_spec(one.spec), operation, one.family, one.what, target);
}

/// The tensors have an odd number of vectors, and end in a part of one if elements have 16 bits.
ConvSpec activated(Activation activation, bool sixteen_bits) {
  ConvSpec spec = parse_spec("input=2,5,9,11 weight=6,5,3,3 padding=1 slope=0.25 clamp_min=-2 clamp_max=5");
  spec.dy_activation = activation;
  if (sixteen_bits) spec.dtype = DataType::bf16;
  if (sixteen_bits) spec.input_layout = spec.output_layout = Layout::nhwc;
  return spec;
}

}  // namespace

std::vector<Case> gradient_cases(const Target& target) {
  std::vector<Case> cases;
  add(cases, Operation::data_gradient, kDataGradients, target);
  add(cases, Operation::weight_gradient, kWeightGradients, target);
  return cases;
}

std::vector<Case> activation_gradient_cases(const Target& target) {
  std::vector<Case> cases;
  for (std::size_t i = 1; i < codegen::kActivationNames.size(); ++i) {
    const std::string_view name = codegen::kActivationNames[i];
    ConvSpec spec = activated(static_cast<Activation>(i), i % 2 == 0);
    add(cases, spec, Operation::data_gradient, Family::fallback, name, target);
    spec = activated(static_cast<Activation>(i), i % 2 != 0);
    spec.epilogue.bias = true;
    add(cases, spec, Operation::weight_gradient, Family::wgrad, name, target);
  }
  add(cases, Operation::data_gradient, kActivatedDataGradients, target);
  add(cases, Operation::weight_gradient, kActivatedWeightGradients, target);
  return cases;
}

}  // namespace jitconv::test
