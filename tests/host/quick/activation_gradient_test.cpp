// Gradients of a convolution with an activation: every derivative for both operations, the pass before every family
// and among the other passes, and what NaN, infinities and the bends of an activation do.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "host/quick/quick.h"
#include "runtime/compile.h"
#include "support/fresh_cache.h"
#include "support/gradient_cases.h"
#include "support/special_values.h"
#include "tools/host_device.h"

namespace jitconv::test {
namespace {

TEST(ActivationGradient, OfEveryActivationAndBeforeEveryFamily) {
  run("activation gradients", activation_gradient_cases(kTarget));
}

// dz comes behind what packs weights, and before what transposes pixels; or a tensor map leads to it.
TEST(ActivationGradient, AmongTheOtherPasses) {
  const std::string spec = "input=2,24,9,11 weight=40,24,3,3 operation=data_gradient math=tf32 dy_activation=relu ";
  const auto packed = [](const codegen::WgmmaTiling& t) { return t.packs_weights() && !t.uses_im2col(); };
  const auto im2col = [](const codegen::WgmmaTiling& t) { return t.packs_weights() && t.uses_im2col(); };
  const auto any = [](const codegen::WgmmaTiling& t) { return t.packs_weights(); };
  const auto split = [](const codegen::WgmmaTiling& t) { return t.split_k > 1; };
  run("activation gradients among passes",
      {
          {"packed", spec + "padding=1 bias", 1, wgmma(packed)},
          {"im2col", spec + "padding=1 layout=nhwc", 1, wgmma(im2col)},
          {"im2col of bf16", spec + "padding=1 layout=nhwc dtype=bf16", 1, wgmma(im2col)},
          {"transposed", spec + "padding=1", 2, transposed(any)},
          {"split", spec + "padding=1 residual", 1, wgmma(split)},
          {"phases, transposed", spec + "padding=1 stride=2", 1, transposed(any)},
      });
}

/// What dy is multiplied by where saved is the first.
using Factors = std::vector<std::pair<float, float>>;

struct Special {
  const char* activation;
  Factors factors;
};

// As PyTorch's kernels for a GPU have it: threshold_backward, leaky_relu_backward, hardtanh_backward,
// hardswish_backward (as of its pull request 148049), gelu_backward, silu_backward, sigmoid_backward, tanh_backward.
const Special kSpecials[] = {
    {"relu", {{kNaN, 1}, {0, 0}, {-0.0f, 0}, {1e-40f, 1}, {-1, 0}, {kInfinity, 1}, {-kInfinity, 0}}},
    {"leaky_relu", {{kNaN, 0.25f}, {0, 0.25f}, {1e-40f, 1}, {-1, 0.25f}, {kInfinity, 1}, {-kInfinity, 0.25f}}},
    {"clamp", {{kNaN, 1}, {-2, 0}, {-1.75f, 1}, {4.75f, 1}, {5, 0}, {kInfinity, 0}, {-kInfinity, 0}}},
    {"hardswish", {{kNaN, 1}, {-3, 0}, {0, 0.5f}, {3, 1}, {4, 1}, {kInfinity, 1}, {-kInfinity, 0}}},
    {"sigmoid", {{kNaN, kNaN}, {0, 0.25f}, {kInfinity, 0}, {-kInfinity, 0}, {100, 0}}},
    {"tanh", {{kNaN, kNaN}, {0, 1}, {kInfinity, 0}, {-kInfinity, 0}, {100, 0}}},
    {"silu", {{kNaN, kNaN}, {0, 0.5f}, {kInfinity, kNaN}, {-kInfinity, kNaN}, {100, 1}}},
    {"gelu_erf", {{kNaN, kNaN}, {0, 0.5f}, {kInfinity, kNaN}, {-kInfinity, kNaN}, {100, 1}, {-100, 0}}},
    {"gelu_tanh", {{kNaN, kNaN}, {0, 0.5f}, {kInfinity, kNaN}, {-kInfinity, kNaN}, {100, 1}, {-100, 0}}},
};

TEST(ActivationGradient, OfSpecialValuesIsPyTorchs) {
  const FreshCache cache("activation-gradients");
  tools::HostDevice device{Target::host()};
  for (const Special& special : kSpecials) {
    const std::size_t count = special.factors.size();
    // A copy of dz: one tap of weight 1.
    const ConvSpec spec = parse_spec(
        fmt::format("input=1,1,1,{} weight=1,1,1,1 operation=data_gradient dy_activation={} slope=0.25 clamp_min=-2 "
                    "clamp_max=5",
                    count, special.activation));
    std::vector<float> saved;
    for (const auto& [value, factor] : special.factors) saved.push_back(value);
    const tools::Buffer dy(device, 64), kept(device, 64), w(device, 4), dx(device, 64);
    const Kernel kernel = compile(spec, Target::host());
    const tools::Buffer workspace(device, kernel.workspace_bytes());
    const std::vector<float> twos(count, 2.0f);
    const float one = 1;
    const auto bytes = static_cast<std::int64_t>(4 * count);
    device.upload(dy.data(), twos.data(), bytes);
    device.upload(kept.data(), saved.data(), bytes);
    device.upload(w.data(), &one, 4);
    LaunchArgs args;
    args.dy = dy.data(), args.saved = kept.data(), args.w = w.data(), args.dx = dx.data();
    args.workspace = workspace.data();
    device.launch(kernel, args);
    for (const host::Report& report : device.take_reports())
      for (const host::Finding& finding : report.findings) ADD_FAILURE() << to_string(finding);
    std::vector<float> results(count);
    device.download(results.data(), dx.data(), bytes);
    for (std::size_t i = 0; i < count; ++i) {
      const float want = 2 * special.factors[i].second;
      if (std::isnan(want)) {
        EXPECT_TRUE(std::isnan(results[i])) << special.activation << " of " << saved[i] << ": " << results[i];
      } else {
        EXPECT_EQ(results[i], want) << special.activation << " of " << saved[i];
      }
    }
  }
}

}  // namespace
}  // namespace jitconv::test
