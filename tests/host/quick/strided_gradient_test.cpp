// Data gradients with a stride, computed by every family that can: dense convolutions of dy whose output channels are
// the phases of dx (codegen/phases.h), which store its pixels or leave them to a pass that interleaves sums; and
// depthwise kernels, whose threads have pixels of all phases. Small integers, so that every sum is exact.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "codegen/plan.h"
#include "codegen/wgmma/store.h"
#include "host/quick/small_integers.h"
#include "runtime/compile.h"
#include "support/fresh_cache.h"
#include "support/plan_kernels.h"
#include "tools/check/data.h"
#include "tools/check/positions.h"
#include "tools/host_device.h"
#include "tools/reduce.h"

namespace jitconv::test {
namespace {

using codegen::ConvPlan;

/// The operands of a data gradient, and the gradient by its definition.
struct Gradient {
  explicit Gradient(const ConvSpec& wanted)
      : spec(wanted),
        y(output_shape(wanted)),
        at_x(check::strides_of(wanted.input, wanted.input_layout)),
        at_y(check::strides_of(y, wanted.output_layout)),
        dy(small_integers(check::element_count(y), 1, 2)),
        w(small_integers(check::element_count(spec.weight), 2, 1)),
        bias(small_integers(spec.input.c, 3, 3)),
        residual(small_integers(check::element_count(spec.input), 4, 3)),
        dx(residual.size()) {
    scatter();
    finish();
  }

  ConvSpec spec;
  TensorShape y;
  check::Strides at_x, at_y;
  std::vector<float> dy, w, bias, residual;
  std::vector<double> dx;

 private:
  /// Adds what each dy brings to the pixels that the forward convolution reads for it.
  void scatter() {
    const std::int64_t group_k = spec.weight.k / spec.groups;
    for (std::int64_t n = 0; n < y.n; ++n)
      for (std::int64_t k = 0; k < y.c; ++k)
        for (std::int64_t p = 0; p < y.h; ++p)
          for (std::int64_t q = 0; q < y.w; ++q) scatter(n, k, p, q, k / group_k * spec.weight.c);
  }

  void scatter(std::int64_t n, std::int64_t k, std::int64_t p, std::int64_t q, std::int64_t first_channel) {
    const double value = dy[static_cast<std::size_t>(at_y.offset(n, k, p, q))];
    const WeightShape& filter = spec.weight;
    for (std::int64_t r = 0; r < filter.r; ++r)
      for (std::int64_t s = 0; s < filter.s; ++s) {
        const std::int64_t row = p * spec.stride.h + r * spec.dilation.h - spec.padding.top;
        const std::int64_t column = q * spec.stride.w + s * spec.dilation.w - spec.padding.left;
        if (row < 0 || row >= spec.input.h || column < 0 || column >= spec.input.w) continue;
        for (std::int64_t c = 0; c < filter.c; ++c)
          dx[static_cast<std::size_t>(at_x.offset(n, first_channel + c, row, column))] +=
              value * w[static_cast<std::size_t>(((k * filter.c + c) * filter.r + r) * filter.s + s)];
      }
  }

  void finish() {
    for (std::int64_t n = 0; n < spec.input.n; ++n)
      for (std::int64_t c = 0; c < spec.input.c; ++c)
        for (std::int64_t row = 0; row < spec.input.h; ++row)
          for (std::int64_t column = 0; column < spec.input.w; ++column) {
            const auto place = static_cast<std::size_t>(at_x.offset(n, c, row, column));
            if (spec.epilogue.bias) dx[place] += bias[static_cast<std::size_t>(c)];
            if (spec.epilogue.residual) dx[place] += residual[place];
            if (spec.epilogue.activation == Activation::relu) dx[place] = std::max(dx[place], 0.0);
          }
  }
};

/// What is wrong with the plan's result: empty if nothing is.
std::string fault(tools::HostDevice& device, const ConvPlan& plan, const Gradient& expected) {
  const DataType type = plan.spec.dtype;
  Memory dy(type, expected.dy), w(type, expected.w), bias(type, expected.bias), residual(type, expected.residual),
      dx(type, std::vector<float>(expected.dx.size(), -999.0F));
  const Kernel kernel = runtime::compile_plan(plan);
  const tools::Buffer workspace(device, std::max<std::int64_t>(kernel.workspace_bytes(), 1));
  device.set_bytes(workspace.data(), 0xff, kernel.workspace_bytes());
  LaunchArgs args;
  args.dy = dy.data();
  args.w = w.data();
  args.dx = dx.data();
  if (plan.spec.epilogue.bias) args.bias = bias.data();
  if (plan.spec.epilogue.residual) args.residual = residual.data();
  args.workspace = workspace.data();
  kernel.launch(nullptr, args);
  const std::vector<float> values = dx.values();
  for (std::size_t i = 0; i < expected.dx.size(); ++i)
    if (static_cast<double>(values[i]) != expected.dx[i])
      return fmt::format("element {} of {} is {}, expected {}\n{}", i, expected.dx.size(), values[i], expected.dx[i],
                         to_string(plan));
  return {};
}

/// The plan that executes least, for each list of kernels, split or not, with boxes or without, with zero taps left out
/// or not; of depthwise kernels, for each store and each patch of a thread.
std::vector<ConvPlan> plans_of(const ConvSpec& spec) {
  std::map<std::string, std::pair<std::int64_t, ConvPlan>> least;
  for (ConvPlan& plan : codegen::enumerate_plans(spec, Target::host(parse_target("sm_90a")), SIZE_MAX)) {
    std::string kind = kernels_of(plan);
    if (const auto* tiling = plan.tiling<codegen::WgmmaTiling>())
      kind +=
          fmt::format(" {} {} {} {}", static_cast<int>(tiling->schedule), tiling->split_k > 1, tiling->stores_boxes(),
                      codegen::WgmmaGeometry(plan.convolution().problem, *tiling).skips_zero_taps());
    if (const auto* tiling = plan.tiling<codegen::DepthwiseTiling>())
      kind += fmt::format(" {} {} {}", static_cast<int>(tiling->store), tiling->thread_q, tiling->planes > 1);
    if (const auto* tiling = plan.tiling<codegen::DepthwisePlanesTiling>())
      kind += fmt::format(" {}", tiling->thread_p);
    if (const auto* tiling = plan.tiling<codegen::PointwiseTiling>()) kind += fmt::format(" {}", tiling->splits > 1);
    const std::int64_t work = tools::executed_multiply_adds(plan);
    const auto found = least.find(kind);
    if (found == least.end() || work < found->second.first)
      least.insert_or_assign(kind, std::pair{work, std::move(plan)});
  }
  std::vector<ConvPlan> plans;
  for (auto& [kind, plan] : least) plans.push_back(std::move(plan.second));
  return plans;
}

struct WantedFamilies {
  const char* spec;
  std::vector<std::string> families;  ///< that must be among those of the plans
};

/// The plans of these families.
std::vector<ConvPlan> plans_of(const ConvSpec& spec, const std::vector<std::string>& families) {
  std::vector<ConvPlan> plans = plans_of(spec);
  std::erase_if(plans, [&families](const ConvPlan& plan) {
    return std::ranges::find(families, to_string(plan.family())) == families.end();
  });
  return plans;
}

/// Runs every second kind of plan of each spec, beginning with the first and the second by turns.
void run_families(const std::vector<WantedFamilies>& list) {
  const FreshCache cache("strided-gradients");
  tools::HostDevice device{Target::host()};
  std::size_t kernels = 0, turn = 0;
  for (const WantedFamilies& wanted : list) {
    const ConvSpec spec = parse_spec(std::string("operation=data_gradient ") + wanted.spec);
    const Gradient expected(spec);
    const std::vector<ConvPlan> plans = plans_of(spec, wanted.families);
    for (const std::string& family : wanted.families)
      EXPECT_TRUE(std::ranges::any_of(plans, [&](const ConvPlan& plan) { return to_string(plan.family()) == family; }))
          << wanted.spec << " has no plan of " << family;
    for (std::size_t i = plans.size() > 1 ? turn++ % 2 : 0; i < plans.size(); i += 2) {
      ++kernels;
      EXPECT_EQ(fault(device, plans[i], expected), "") << wanted.spec << ": " << kernels_of(plans[i]);
    }
  }
  std::printf("%zu plans\n", kernels);
}

TEST(StridedGradient, Floats) {
  run_families({
      {"input=2,16,9,11 weight=24,16,3,3 stride=2 padding=1", {"direct"}},
      {"input=2,5,9,11 weight=7,5,3,3 stride=2 padding=1 bias residual activation=relu", {"direct"}},
      {"input=1,3,14,15 weight=8,3,7,7 stride=2 padding=3", {"direct"}},
      {"input=1,3,23,23 weight=8,3,11,11 stride=4 padding=2", {"direct"}},
      {"input=2,4,9,8 weight=6,4,4,4 stride=2 padding=1 bias", {"direct"}},
      {"input=2,4,9,8 weight=6,4,2,2 stride=2", {"direct"}},
      {"input=2,4,9,8 weight=6,4,1,1 stride=2 bias residual", {"direct"}},
      {"input=2,8,9,8 weight=12,2,3,3 stride=2 padding=1 groups=4 bias", {"direct"}},
      {"input=2,8,40,32 weight=8,1,3,3 stride=2 padding=1 groups=8 residual", {"depthwise"}},
      {"input=2,8,9,8 weight=16,1,5,3 stride=2,3 padding=1 groups=8", {"direct"}},
      // Strides and dilations with a common divisor and without: dilated windows, empty phases.
      {"input=1,4,13,14 weight=5,4,3,3 stride=2 dilation=2 padding=2", {"direct"}},
      {"input=1,4,13,14 weight=5,4,3,3 stride=2 dilation=3 padding=3", {"direct"}},
      {"input=1,4,17,18 weight=5,4,3,4 stride=4,6 dilation=2,4 padding=1 bias activation=relu", {"direct"}},
      {"input=1,4,17,18 weight=5,4,3,3 stride=6,4 dilation=4,6 padding=3,2", {"direct"}},
      {"input=1,4,17,19 weight=5,4,5,2 stride=3 dilation=2,5 padding=4,0", {"direct"}},
      // More padding than the filter reaches, more stride than taps, rows that no window touches.
      {"input=1,4,6,7 weight=5,4,1,1 stride=2 padding=2,3 bias", {"direct"}},
      {"input=1,4,6,7 weight=5,4,2,3 stride=3,2 padding=5,4", {"direct"}},
      {"input=1,4,6,7 weight=5,4,1,2 padding=2,3 bias", {"direct"}},
      {"input=1,4,11,12 weight=5,4,2,2 stride=5 bias residual activation=relu", {"direct"}},
      {"input=1,4,10,12 weight=5,4,3,3 stride=4 padding=0,1,1,0", {"direct"}},
      {"input=1,4,3,2 weight=5,4,3,3 stride=7 padding=1", {"direct"}},
      {"input=1,4,1,9 weight=5,4,1,3 stride=1,2 padding=0,1", {"direct"}},
      {"input=1,4,1,64 weight=5,4,1,8 stride=1,4 padding=0,2", {"direct"}},
      {"input=1,4,9,8 weight=5,4,3,3 stride=2,1 padding=1", {"direct"}},
      {"input=1,4,9,8 weight=5,4,3,3 stride=1,2 padding=0,1", {"direct"}},
      // Sums of 16-bit tensors.
      {"input=2,5,9,11 weight=7,5,3,3 stride=2 padding=1 bias residual activation=relu dtype=f16 math=ieee",
       {"direct"}},
      {"input=2,8,9,8 weight=8,8,3,3 stride=2 padding=1 dtype=bf16 math=ieee layout=nhwc", {"direct"}},
      {"input=2,8,40,32 weight=8,1,3,3 stride=2 padding=1 groups=8 bias dtype=f16", {"depthwise"}},
      {"input=2,8,41,37 weight=8,1,5,5 stride=2 padding=2 groups=8 dtype=bf16", {"depthwise"}},
      {"input=2,8,11,12 weight=8,1,3,3 stride=2 padding=1 groups=8 dtype=f16 layout=nhwc", {"direct"}},
      // Layouts.
      {"input=2,6,9,8 weight=8,6,3,3 stride=2 padding=1 bias residual input_layout=nhwc output_layout=nhwc",
       {"direct"}},
      {"input=2,5,9,8 weight=8,5,3,3 stride=2 padding=1 bias input_layout=nhwc output_layout=nchw", {"direct"}},
      {"input=2,8,9,8 weight=8,4,3,3 stride=2 padding=1 groups=2 input_layout=nchw output_layout=nhwc", {"direct"}},
  });
}

TEST(StridedGradient, DepthwiseInOneKernel) {
  run_families({
      // Typical filters; planes that are even and odd, with padding that keeps the middle and padding that does not.
      {"input=2,8,14,14 weight=8,1,3,3 stride=2 padding=1 groups=8", {"depthwise", "depthwise_planes"}},
      {"input=2,8,14,14 weight=8,1,5,5 stride=2 padding=2 groups=8 bias residual activation=relu",
       {"depthwise", "depthwise_planes"}},
      {"input=2,8,13,15 weight=8,1,5,5 stride=2 padding=2 groups=8 bias", {"depthwise", "depthwise_planes"}},
      {"input=2,8,15,13 weight=8,1,3,3 stride=2 padding=0 groups=8", {"depthwise", "depthwise_planes"}},
      {"input=2,8,16,18 weight=8,1,3,3 stride=2 padding=0,1,0,1 groups=8 residual", {"depthwise", "depthwise_planes"}},
      {"input=2,8,28,28 weight=8,1,7,7 stride=2 padding=3 groups=8", {"depthwise", "depthwise_planes"}},
      {"input=1,8,56,56 weight=8,1,3,3 stride=2 padding=1 groups=8 bias", {"depthwise"}},
      {"input=1,4,57,112 weight=4,1,5,5 stride=2 padding=2 groups=4 bias residual", {"depthwise"}},
      {"input=1,3,25,139 weight=3,1,3,3 stride=2 padding=1 groups=3 bias residual", {"depthwise"}},
      // Strides of one axis, strides of 3 and more; rows and columns that meet no tap.
      {"input=2,8,14,12 weight=8,1,3,3 stride=2,1 padding=1 groups=8", {"depthwise", "depthwise_planes"}},
      {"input=2,8,13,14 weight=8,1,3,5 stride=1,2 padding=1,2 groups=8 bias", {"depthwise", "depthwise_planes"}},
      {"input=2,8,14,17 weight=8,1,3,3 stride=3 padding=1 groups=8", {"depthwise", "depthwise_planes"}},
      {"input=2,8,17,36 weight=8,1,5,3 stride=3,4 padding=2,0 groups=8 bias residual", {"depthwise"}},
      {"input=2,8,14,12 weight=8,1,1,1 stride=2 groups=8 bias", {"depthwise", "depthwise_planes"}},
      {"input=2,8,13,14 weight=8,1,2,3 stride=4,5 padding=0,1 groups=8 bias activation=relu",
       {"depthwise", "depthwise_planes"}},
      {"input=2,8,20,20 weight=8,1,3,3 stride=8 padding=1 groups=8", {"depthwise"}},
      // Dilation, with a common divisor and without; more padding than the filter reaches.
      {"input=2,8,14,16 weight=8,1,3,3 stride=2 dilation=2 padding=2 groups=8", {"depthwise", "depthwise_planes"}},
      {"input=2,8,14,16 weight=8,1,3,3 stride=2 dilation=2 padding=1 groups=8 bias", {"depthwise", "depthwise_planes"}},
      {"input=2,8,15,16 weight=8,1,3,3 stride=2,3 dilation=3,2 padding=3 groups=8", {"depthwise", "depthwise_planes"}},
      {"input=2,8,9,10 weight=8,1,2,3 stride=2,3 padding=3,4 groups=8 bias", {"depthwise", "depthwise_planes"}},
      // Several channels of dx for one of dy.
      {"input=2,8,14,13 weight=4,2,3,5 stride=2,1 padding=1 groups=4 bias", {"depthwise"}},
      {"input=2,6,22,22 weight=2,3,4,5 stride=3,2 dilation=4 padding=1,1,2,0 groups=2 residual", {"depthwise"}},
      {"input=2,6,13,14 weight=2,3,3,3 stride=2 padding=1 groups=2 bias layout=nhwc", {"depthwise_nhwc"}},
      // Filters beyond what registers hold; a stride along rows alone does not unroll them.
      {"input=1,4,30,33 weight=4,1,21,21 stride=2 padding=10 groups=4", {"depthwise"}},
      {"input=1,4,40,44 weight=4,1,31,31 stride=1,2 padding=15 groups=4", {"depthwise"}},
      // Pointers of one element.
      {"input=2,3,14,15 weight=3,1,3,3 stride=2 padding=1 groups=3 alignment=4", {"depthwise"}},
  });
}

TEST(StridedGradient, DepthwiseOf16Bits) {
  run_families({
      {"input=2,8,14,14 weight=8,1,5,5 stride=2 padding=2 groups=8 dtype=bf16", {"depthwise", "depthwise_planes"}},
      {"input=2,16,14,14 weight=16,1,3,3 stride=2 padding=1 groups=16 dtype=f16 bias residual activation=relu",
       {"depthwise", "depthwise_planes"}},
      {"input=2,8,13,11 weight=8,1,3,3 stride=2 padding=1 groups=8 dtype=f16", {"depthwise", "depthwise_planes"}},
      {"input=1,8,56,56 weight=8,1,5,5 stride=2 padding=2 groups=8 dtype=bf16 bias residual", {"depthwise"}},
      {"input=1,4,57,61 weight=4,1,7,7 stride=2 padding=3 groups=4 dtype=f16", {"depthwise"}},
      {"input=2,8,12,14 weight=8,1,3,3 stride=3,2 dilation=1,2 padding=2,1 groups=8 dtype=bf16",
       {"depthwise", "depthwise_planes"}},
      {"input=2,8,14,12 weight=8,1,3,3 stride=2,1 padding=1 groups=8 dtype=bf16 bias",
       {"depthwise", "depthwise_planes"}},
      {"input=2,3,14,15 weight=3,1,3,3 stride=2 padding=1 groups=3 dtype=bf16 alignment=2", {"depthwise"}},
  });
}

TEST(StridedGradient, TensorCores) {
  run_families({
      {"input=2,16,9,11 weight=24,16,3,3 stride=2 padding=1 math=tf32", {"wgmma", "direct"}},
      {"input=2,24,8,8 weight=32,24,3,3 stride=2 padding=1 bias residual activation=relu math=tf32", {"wgmma"}},
      {"input=2,16,8,8 weight=32,16,1,1 stride=2 bias math=tf32", {"wgmma", "pointwise"}},
      {"input=2,16,8,8 weight=32,16,2,2 stride=2 math=tf32", {"wgmma", "pointwise"}},
      {"input=2,12,9,7 weight=20,12,4,4 stride=2 padding=1 math=tf32", {"wgmma"}},
      {"input=1,3,18,20 weight=16,3,7,7 stride=2 padding=3 math=tf32", {"wgmma"}},
      {"input=2,40,7,9 weight=48,20,3,3 stride=2 padding=1 groups=2 math=tf32", {"wgmma"}},
      {"input=1,8,13,14 weight=16,8,3,3 stride=2 dilation=3 padding=3 math=tf32", {"wgmma"}},
      {"input=1,8,13,14 weight=16,8,3,3 stride=4 dilation=2 padding=1 bias math=tf32", {"wgmma"}},
      {"input=1,8,6,7 weight=16,8,1,2 stride=2 padding=3 math=tf32", {"wgmma"}},
      {"input=2,32,8,8 weight=32,32,3,3 stride=2 padding=1 math=tf32 input_layout=nhwc output_layout=nhwc bias",
       {"wgmma"}},
      {"input=2,32,8,8 weight=32,32,2,2 stride=2 math=tf32 input_layout=nhwc output_layout=nchw", {"wgmma"}},
      {"input=2,16,9,11 weight=24,16,3,3 stride=2 padding=1 dtype=f16", {"wgmma"}},
      {"input=2,16,8,8 weight=32,16,3,3 stride=2 padding=1 dtype=bf16 bias residual activation=relu", {"wgmma"}},
      {"input=2,16,8,8 weight=32,16,4,4 stride=2 padding=1 dtype=f16 bias residual input_layout=nhwc "
       "output_layout=nhwc",
       {"wgmma"}},
      {"input=2,10,9,9 weight=24,10,3,3 stride=2 padding=1 dtype=bf16 input_layout=nhwc output_layout=nhwc", {"wgmma"}},
      {"input=2,16,8,8 weight=24,16,1,1 stride=2 dtype=f16 input_layout=nhwc output_layout=nhwc", {"wgmma"}},
      {"input=1,8,1,40 weight=16,8,1,4 stride=1,2 padding=0,1 dtype=f16", {"wgmma"}},
  });
}

/// Tiles of one phase, of odd and even planes, of rows that are shifted, of several images; what a tile of two phases
/// has to know of channels.
TEST(StridedGradient, PixelsStoredByTensorCores) {
  run_families({
      {"input=2,64,9,11 weight=16,64,3,3 stride=2 padding=1 math=tf32 layout=nhwc", {"wgmma"}},
      {"input=2,64,9,11 weight=16,64,3,3 stride=2 padding=1 math=tf32 layout=nhwc bias residual", {"wgmma"}},
      {"input=2,32,9,11 weight=16,32,3,3 stride=2 padding=1 math=tf32", {"wgmma"}},
      {"input=2,32,9,11 weight=16,32,3,3 stride=2 padding=1 math=tf32 bias activation=relu", {"wgmma"}},
      {"input=2,32,8,40 weight=16,32,3,3 stride=2 padding=1 dtype=bf16 bias residual", {"wgmma"}},
      {"input=2,32,8,40 weight=16,32,3,3 stride=2 padding=1 dtype=bf16", {"wgmma"}},
      {"input=1,128,9,70 weight=16,128,3,3 stride=2,1 padding=1 dtype=f16 layout=nhwc", {"wgmma"}},
      {"input=1,128,9,70 weight=16,128,3,3 stride=2,1 padding=1 dtype=f16 layout=nhwc bias", {"wgmma"}},
      {"input=1,16,13,45 weight=16,16,5,7 stride=3,4 padding=2,1 math=tf32 bias", {"wgmma"}},
      {"input=1,16,13,45 weight=16,16,5,7 stride=3,4 padding=2,1 math=tf32", {"wgmma"}},
      {"input=1,72,13,14 weight=16,72,3,3 stride=2 dilation=3 padding=0,1 math=tf32 layout=nhwc", {"wgmma"}},
      {"input=1,36,13,14 weight=64,36,3,3 stride=2 dilation=3 padding=0,1 math=fp32 residual", {"wgmma"}},
      {"input=1,36,13,14 weight=16,36,3,3 stride=2 dilation=3 padding=0,1 dtype=f16", {"wgmma"}},
      {"input=2,64,11,9 weight=32,32,3,3 stride=2 padding=3 groups=2 math=tf32 bias", {"wgmma"}},
      // Several steps; groups of whole tiles; 16 phases; vectors of 4 pixels, and of half of a position's 8.
      {"input=1,128,5,9 weight=128,64,3,3 stride=2 padding=1 groups=2 math=tf32 layout=nhwc", {"wgmma"}},
      {"input=1,64,9,17 weight=32,64,5,5 stride=4 padding=2 dtype=bf16 layout=nhwc", {"wgmma"}},
      {"input=2,64,9,16 weight=48,64,5,4 stride=2,4 math=tf32", {"wgmma"}},
      {"input=1,16,9,64 weight=32,16,2,8 stride=2,8 math=tf32", {"wgmma"}},
  });
}

/// Pixels that meet no tap are written as zeros with those of the only phase: rows and columns, the last of them
/// missing, several images of a run.
TEST(StridedGradient, ZerosStoredByTensorCores) {
  run_families({
      {"input=2,64,9,11 weight=16,64,1,1 stride=2 math=tf32 layout=nhwc", {"wgmma"}},
      {"input=2,64,9,12 weight=16,64,1,1 stride=2 dtype=bf16", {"wgmma"}},
      {"input=2,32,9,12 weight=32,16,1,1 stride=3,2 groups=2 dtype=f16 layout=nhwc", {"wgmma"}},
      {"input=2,32,9,16 weight=24,32,1,1 stride=3,4 math=tf32", {"wgmma"}},
      {"input=3,64,5,4 weight=16,64,1,1 stride=2 math=tf32", {"wgmma"}},
      {"input=3,64,5,4 weight=16,64,1,1 stride=2 dtype=bf16 layout=nhwc", {"wgmma"}},
      {"input=1,32,9,12 weight=16,32,3,1 stride=2 padding=1,0 math=tf32", {"wgmma"}},
      {"input=1,32,9,12 weight=16,32,1,3 stride=2 padding=0,1 math=tf32 layout=nhwc", {"wgmma"}},
      {"input=1,32,11,12 weight=16,32,3,3 stride=2 dilation=2 padding=2 dtype=f16 layout=nhwc", {"wgmma"}},
      {"input=1,32,11,12 weight=16,32,3,3 stride=2 dilation=2 padding=1 dtype=f16 layout=nhwc", {"wgmma"}},
      {"input=1,64,9,12 weight=256,64,1,1 stride=2 math=fp32", {"wgmma"}},
  });
}

/// Sums in scratch, stored through a tensor map: of gradients some of whose pixels meet no tap.
TEST(StridedGradient, BoxesOfSums) {
  const FreshCache cache("strided-gradients");
  tools::HostDevice device{Target::host()};
  for (const char* text : {"input=1,64,9,64 weight=16,64,3,3 stride=2 dilation=2 padding=2 bias",
                           "input=2,64,8,64 weight=16,64,1,1 stride=2"}) {
    const ConvSpec spec = parse_spec(std::string(text) + " operation=data_gradient layout=nhwc math=tf32");
    const Gradient expected(spec);
    std::vector<ConvPlan> plans = plans_of(spec);
    std::erase_if(plans, [](const ConvPlan& plan) {
      const auto* tiling = plan.tiling<codegen::WgmmaTiling>();
      return tiling == nullptr || !tiling->stores_boxes();
    });
    EXPECT_FALSE(plans.empty()) << text;
    for (const ConvPlan& plan : plans) EXPECT_EQ(fault(device, plan, expected), "") << text;
  }
}

// A consumer that has more boxes than it stages waits for those that TMA still reads.
TEST(StridedGradient, MoreBoxesThanAreStaged) {
  const FreshCache cache("strided-gradients");
  tools::HostDevice device{Target::host()};
  const ConvSpec spec = parse_spec(
      "input=1,64,5,512 weight=16,64,3,3 stride=2 dilation=2 padding=2 operation=data_gradient layout=nhwc math=tf32");
  const Gradient expected(spec);
  std::vector<ConvPlan> plans = codegen::enumerate_plans(spec, Target::host(parse_target("sm_90a")), SIZE_MAX);
  std::erase_if(plans, [](const ConvPlan& plan) {
    const auto* tiling = plan.tiling<codegen::WgmmaTiling>();
    if (tiling == nullptr || !tiling->stores_boxes()) return true;
    const codegen::WgmmaGeometry geometry(plan.convolution().problem, *tiling);
    return tiling->tile.columns <= tiling->staged_boxes * codegen::WgmmaStore(geometry).store_columns();
  });
  ASSERT_FALSE(plans.empty());
  EXPECT_EQ(fault(device, plans.front(), expected), "");
}

}  // namespace
}  // namespace jitconv::test
