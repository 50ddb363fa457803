// A weight gradient on the host: operands of small integers, whose sums are exact, the gradients by their definition,
// and what a plan's results have wrong.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "codegen/plan.h"
#include "host/quick/small_integers.h"
#include "runtime/compile.h"
#include "tools/check/data.h"
#include "tools/check/positions.h"
#include "tools/host_device.h"

namespace jitconv::test {

using codegen::ConvPlan;

/// Operands, and the gradients by their definition.
struct Gradient {
  explicit Gradient(const ConvSpec& wanted)
      : spec(wanted),
        y(output_shape(wanted)),
        at_x(check::strides_of(wanted.input, wanted.input_layout)),
        at_y(check::strides_of(y, wanted.output_layout)),
        x_values(small_integers(check::element_count(spec.input), 1, 1)),
        dy_values(small_integers(check::element_count(y), 2, 1)),
        dw(static_cast<std::size_t>(check::element_count(spec.weight))),
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
    const std::int64_t group = k / (y.c / spec.groups);
    for (std::int64_t r = 0; r < spec.weight.r; ++r)
      for (std::int64_t s = 0; s < spec.weight.s; ++s) {
        const std::int64_t h = p * spec.stride.h + r * spec.dilation.h - spec.padding.top;
        const std::int64_t w = q * spec.stride.w + s * spec.dilation.w - spec.padding.left;
        if (h < 0 || h >= spec.input.h || w < 0 || w >= spec.input.w) continue;
        for (std::int64_t c = 0; c < spec.weight.c; ++c)
          dw[static_cast<std::size_t>(((k * spec.weight.c + c) * spec.weight.r + r) * spec.weight.s + s)] +=
              value * x_values[static_cast<std::size_t>(at_x.offset(n, group * spec.weight.c + c, h, w))];
      }
  }
};

inline std::string difference(const Memory& memory, const std::vector<double>& expected, const char* name) {
  const std::vector<float> values = memory.values();
  for (std::size_t i = 0; i < expected.size(); ++i)
    if (static_cast<double>(values[i]) != expected[i])
      return fmt::format("{}[{}] is {}, expected {}\n", name, i, values[i], expected[i]);
  return {};
}

/// What is wrong with the plan's results: empty if nothing is.
inline std::string fault(tools::HostDevice& device, const ConvPlan& plan, const Gradient& expected) {
  const DataType type = plan.spec.dtype, sums = output_type(plan.spec);
  Memory x(type, expected.x_values), dy(type, expected.dy_values);
  Memory dw(sums, std::vector<float>(expected.dw.size(), -999.0F));
  Memory db(sums, std::vector<float>(expected.db.size(), -999.0F));
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

}  // namespace jitconv::test
