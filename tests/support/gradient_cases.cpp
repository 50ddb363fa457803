// See gradient_cases.h.
#include "support/gradient_cases.h"

#include <fmt/format.h>

#include <stdexcept>
#include <string>

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
    {Family::fallback, "", "input=2,6,23,31 weight=21,6,3,3 stride=1,2 padding=1 bias residual"},
    {Family::wgmma, "", "input=2,16,17,23 weight=40,16,3,3 padding=1 bias residual math=tf32"},
    {Family::wgmma, "bf16", "input=2,16,17,24 weight=40,16,3,3 padding=1 residual dtype=bf16"},
    {Family::wgmma, "nhwc", "input=2,24,17,23 weight=40,24,3,3 padding=1 bias layout=nhwc dtype=f16"},
    {Family::wgmma, "phases", "input=2,24,18,16 weight=32,24,3,3 stride=2 padding=1 bias residual math=tf32"},
    {Family::wgmma, "phases, nhwc", "input=2,16,18,16 weight=32,16,4,4 stride=2 padding=1 bias layout=nhwc dtype=bf16"},
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
    {Family::wgrad_wgmma, "bf16", "input=2,16,16,16 weight=40,16,3,3 padding=1 bias residual dtype=bf16"},
    {Family::wgrad_wgmma, "nhwc, f16 to f32",
     "input=2,24,17,23 weight=40,12,3,3 groups=2 padding=1 bias residual layout=nhwc dtype=f16 output_dtype=f32"},
};

codegen::ConvPlan plan_of(const ConvSpec& spec, Family family, const Target& target) {
  if (family == Family::fallback) return fallback_plan(spec, target);
  for (codegen::ConvPlan& plan : codegen::enumerate_plans(spec, target, SIZE_MAX))
    if (plan.family() == family) return std::move(plan);
  throw std::logic_error(fmt::format("no plan of {} for {}", to_string(family), to_string(spec)));
}

template <std::size_t count>
void add(std::vector<Case>& cases, Operation operation, const Gradient (&list)[count], const Target& target) {
  for (const Gradient& one : list) {
    if (codegen::uses_tensor_cores(one.family) && !has_wgmma_family(target)) continue;
    ConvSpec spec = parse_spec(one.spec);
    spec.operation = operation;
    Case next{
        fmt::format("{} by {}{}{}", to_string(operation), to_string(one.family), *one.what != 0 ? ", " : "", one.what),
        spec,
        plan_of(spec, one.family, target),
        false,
        {}};
    next.kinds = {check::DataKind::exact, check::DataKind::random};
    cases.push_back(std::move(next));
  }
}

}  // namespace

std::vector<Case> gradient_cases(const Target& target) {
  std::vector<Case> cases;
  add(cases, Operation::data_gradient, kDataGradients, target);
  add(cases, Operation::weight_gradient, kWeightGradients, target);
  return cases;
}

}  // namespace jitconv::test
