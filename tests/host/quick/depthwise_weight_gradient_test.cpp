// Weight gradients with one input channel per group, computed by plans of the wgrad_depthwise family that cut the
// pixels in different ways. Small integers, so that every sum is exact.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "codegen/plan.h"
#include "host/quick/small_integers.h"
#include "runtime/compile.h"
#include "support/fresh_cache.h"
#include "tools/check/data.h"
#include "tools/check/positions.h"
#include "tools/host_device.h"

namespace jitconv::test {
namespace {

using codegen::ConvPlan;
using codegen::WgradDepthwiseTiling;

/// Operands, and the gradients by their definition.
struct Gradient {
  explicit Gradient(const ConvSpec& wanted)
      : spec(wanted),
        y(output_shape(wanted)),
        at_x(check::strides_of(wanted.input, wanted.input_layout)),
        at_y(check::strides_of(y, wanted.output_layout)),
        x_values(small_integers(check::element_count(spec.input), 1, 1)),
        dy_values(small_integers(check::element_count(y), 2, 1)),
        dw(static_cast<std::size_t>(spec.weight.k * spec.weight.r * spec.weight.s)),
        db(static_cast<std::size_t>(spec.weight.k)) {
    for (std::int64_t n = 0; n < y.n; ++n)
      for (std::int64_t k = 0; k < y.c; ++k)
        for (std::int64_t p = 0; p < y.h; ++p)
          for (std::int64_t q = 0; q < y.w; ++q) add(n, k, p, q);
  }

  ConvSpec spec;
  TensorShape y;
  check::Strides at_x, at_y;
  std::vector<float> x_values, dy_values;
  std::vector<double> dw, db;

 private:
  void add(std::int64_t n, std::int64_t k, std::int64_t p, std::int64_t q) {
    const double value = dy_values[static_cast<std::size_t>(at_y.offset(n, k, p, q))];
    db[static_cast<std::size_t>(k)] += value;
    const std::int64_t c = k / (y.c / spec.groups);
    for (std::int64_t r = 0; r < spec.weight.r; ++r)
      for (std::int64_t s = 0; s < spec.weight.s; ++s) {
        const std::int64_t h = p * spec.stride.h + r * spec.dilation.h - spec.padding.top;
        const std::int64_t w = q * spec.stride.w + s * spec.dilation.w - spec.padding.left;
        if (h < 0 || h >= spec.input.h || w < 0 || w >= spec.input.w) continue;
        dw[static_cast<std::size_t>((k * spec.weight.r + r) * spec.weight.s + s)] +=
            value * x_values[static_cast<std::size_t>(at_x.offset(n, c, h, w))];
      }
  }
};

std::string difference(const Memory& memory, const std::vector<double>& expected, const char* name) {
  const std::vector<float> values = memory.values();
  for (std::size_t i = 0; i < expected.size(); ++i)
    if (static_cast<double>(values[i]) != expected[i])
      return fmt::format("{}[{}] is {}, expected {}\n", name, i, values[i], expected[i]);
  return {};
}

/// What is wrong with the plan's results: empty if nothing is.
std::string fault(tools::HostDevice& device, const ConvPlan& plan, const Gradient& expected) {
  const DataType type = plan.spec.dtype;
  Memory x(type, expected.x_values), dy(type, expected.dy_values);
  Memory dw(type, std::vector<float>(expected.dw.size(), -999.0F));
  Memory db(type, std::vector<float>(expected.db.size(), -999.0F));
  const Kernel kernel = runtime::compile_plan(plan);
  const tools::Buffer workspace(device, std::max<std::int64_t>(kernel.workspace_bytes(), 1));
  device.set_bytes(workspace.data(), 0xff, kernel.workspace_bytes());
  LaunchArgs args;
  args.x = x.data();
  args.dy = dy.data();
  args.dw = dw.data();
  if (plan.spec.epilogue.bias) args.db = db.data();
  args.workspace = workspace.data();
  kernel.launch(nullptr, args);
  std::string faults = difference(dw, expected.dw, "dw");
  if (plan.spec.epilogue.bias) faults += difference(db, expected.db, "db");
  return faults.empty() ? faults : faults + to_string(plan);
}

/// What a template or the generator makes a difference of.
std::string kind(const ConvPlan& plan) {
  const auto& tiling = *plan.tiling<WgradDepthwiseTiling>();
  const codegen::Problem& problem = plan.convolution().problem;
  return fmt::format("{} columns{}{}{}{}{}{}", tiling.thread_q, tiling.slots > 1 ? ", slots" : "",
                     tiling.turns > 1 ? ", turns" : "", tiling.tiles_q(problem) > 1 ? ", parts" : "",
                     tiling.bands(problem) > 1 ? ", bands" : "", tiling.periods > 1 ? ", periods" : "",
                     tiling.unroll_copies ? ", unrolled" : "");
}

/// The cheapest plan, and of the other kinds the one whose turn it is.
std::vector<ConvPlan> plans_of(const ConvSpec& spec, std::size_t turn) {
  std::vector<ConvPlan> chosen;
  std::map<std::string, ConvPlan> kinds;
  for (ConvPlan& plan : codegen::enumerate_plans(spec, Target::host(parse_target("sm_90a")), SIZE_MAX)) {
    if (plan.family() != codegen::Family::wgrad_depthwise) continue;
    if (chosen.empty()) chosen.push_back(plan);
    kinds.try_emplace(kind(plan), std::move(plan));
  }
  if (chosen.empty()) return {};
  kinds.erase(kind(chosen.front()));
  if (!kinds.empty()) chosen.push_back(std::next(kinds.begin(), static_cast<long>(turn % kinds.size()))->second);
  return chosen;
}

void run(const std::vector<std::string>& specs) {
  const FreshCache cache("depthwise-weight-gradients");
  tools::HostDevice device{Target::host()};
  std::set<std::string> kinds;
  std::size_t turn = 0;
  for (const std::string& text : specs) {
    const ConvSpec spec = parse_spec(text + " operation=weight_gradient");
    const Gradient expected(spec);
    const std::vector<ConvPlan> plans = plans_of(spec, turn += 3);
    EXPECT_FALSE(plans.empty()) << text;
    for (const ConvPlan& plan : plans) {
      EXPECT_EQ(fault(device, plan, expected), "") << text;
      kinds.insert(kind(plan));
    }
  }
  for (const char* part : {"4 columns", "8 columns", "slots", "turns", "parts", "bands", "periods", "unrolled"})
    EXPECT_TRUE(std::ranges::any_of(kinds, [part](const std::string& one) { return one.find(part) != one.npos; }))
        << "no plan has " << part;
}

TEST(DepthwiseWeightGradient, Planes) {
  run({
      "input=2,3,12,48 weight=3,1,3,3 groups=3 padding=1 bias",
      "input=3,2,13,50 weight=4,1,3,3 groups=2 padding=1 stride=2 bias",
      "input=9,2,7,7 weight=2,1,3,3 groups=2 padding=1",
      "input=1,1,5,300 weight=2,1,2,3 padding=1,0",
      // Rows in turn, with a common divisor of stride and dilation and without.
      "input=1,2,23,21 weight=2,1,5,3 groups=2 dilation=2,3 padding=1",
      "input=1,2,25,24 weight=2,1,3,3 groups=2 padding=6 stride=4,1 dilation=6,2 bias",
      "input=1,2,5,4 weight=2,1,3,3 groups=2 padding=6 stride=5",
      // Filter rows in tiles, of which the last is not full.
      "input=1,2,24,19 weight=2,1,11,11 groups=2 padding=5 bias",
      "input=2,2,12,44 weight=2,1,3,3 groups=2 padding=1 bias dtype=bf16",
      "input=1,2,9,13 weight=4,1,3,3 groups=2 padding=1 stride=1,2 dtype=bf16",
  });
}

TEST(DepthwiseWeightGradient, Channels) {
  run({
      "input=2,8,12,90 weight=8,1,3,3 groups=8 padding=1 bias layout=nhwc",
      "input=1,5,11,13 weight=15,1,3,2 groups=5 padding=1 stride=2 layout=nhwc",
      "input=5,36,7,7 weight=36,1,3,3 groups=36 padding=1 bias layout=nhwc",
      "input=1,4,14,9 weight=8,1,9,9 groups=4 padding=4 layout=nhwc bias",
      "input=1,8,13,13 weight=8,1,3,3 groups=8 padding=2 dilation=2 layout=nhwc dtype=bf16",
      "input=2,3,8,9 weight=3,1,3,3 groups=3 padding=1 layout=nhwc dtype=bf16 bias",
  });
}

}  // namespace
}  // namespace jitconv::test
