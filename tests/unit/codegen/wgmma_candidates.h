// Candidates of the wgmma family for tests: random specs that the family can compute, and all the ways it would.
#pragma once

#include <rapidcheck.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "codegen/plan.h"
#include "codegen/problem.h"
#include "codegen/source.h"
#include "codegen/text/emitter.h"
#include "codegen/text/kernel_name.h"
#include "codegen/wgmma/family.h"
#include "codegen/wgmma/geometry.h"
#include "support/random_specs.h"

namespace jitconv::test {

constexpr std::int64_t kRowBytes = 16;  ///< of a slice of a pixel, and of a unit of an output channel
constexpr int kProducerWarps = 4;

/// Its weights are a matrix as they lie, and pixels are transposed before or read as they are.
constexpr const char* kStridedPointwise = "input=2,64,9,11 weight=72,64,1,1 stride=2 math=tf32";

struct WgmmaCandidate {
  codegen::Problem problem;  ///< what the convolution's kernel computes, after transposition if there is one
  codegen::WgmmaTiling tiling;
  codegen::ConvPlan plan;
  /// Looks at this object's problem: it must outlive the geometry.
  codegen::WgmmaGeometry geometry() const { return {problem, tiling}; }
};

inline std::vector<WgmmaCandidate> wgmma_candidates(const ConvSpec& spec,
                                                    const Target& target = parse_target("sm_90a")) {
  std::vector<WgmmaCandidate> found;
  for (codegen::ConvPlan& plan : codegen::enumerate_plans(spec, target, SIZE_MAX))
    if (const auto* tiling = plan.tiling<codegen::WgmmaTiling>())
      found.push_back({plan.convolution().problem, *tiling, std::move(plan)});
  return found;
}

/// Which tensor a candidate that uses im2col reads.
inline codegen::Tensor im2col_tensor(const WgmmaCandidate& one) { return one.problem.input.tensor; }

/// The kernel that convolves, with a line for each multiplication however long.
inline codegen::KernelText convolution_text(const WgmmaCandidate& one) {
  return codegen::wgmma::emit(one.plan.convolution(), codegen::kernel_name(one.plan));
}

/// Parameters of all kernels of a launch.
inline std::vector<codegen::Argument> all_arguments(const codegen::ConvPlan& plan) {
  std::vector<codegen::Argument> all;
  for (const codegen::KernelPlan& kernel : plan.kernels)
    for (codegen::Argument& argument : codegen::functions_of(kernel.family()).emit(kernel, "kernel").arguments)
      all.push_back(std::move(argument));
  return all;
}

/// How TMA sees that tensor.
inline codegen::TensorMapShape map_of(const WgmmaCandidate& one, codegen::Tensor tensor) {
  for (const codegen::Argument& argument : all_arguments(one.plan))
    if (argument.tensor == tensor && argument.map.rank > 0) return argument.map;
  throw std::logic_error("no such map");
}

/// Changed in those fields that decide whether tensor cores may and can be used at all.
inline ConvSpec for_tensor_cores(ConvSpec spec) {
  spec.input.n = std::max<std::int64_t>(spec.input.n, 1);
  spec.math = MathMode::tf32;
  spec.alignment = std::max<std::int64_t>(spec.alignment, 16);
  if (spec.groups > 1 && spec.weight.c < 16) {
    spec.weight.c += 16;
    spec.input.c = spec.weight.c * spec.groups;
  }
  return spec;
}

/// 16-bit NCHW pixels of 1x1 filters: the rows of an operand may be channels.
inline ConvSpec for_rows_of_channels(ConvSpec spec) {
  spec = for_tensor_cores(spec);
  spec.dtype = *rc::gen::arbitrary<bool>() ? DataType::f16 : DataType::bf16;
  spec.math = MathMode::fp32;
  spec.input_layout = Layout::nchw;
  spec.weight.r = spec.weight.s = 1;
  spec.stride = {1, 1}, spec.dilation = {1, 1}, spec.padding = {};
  return spec;
}

/// And in those that decide whether consumer threads can round weights: the filter, and where rows of w start.
inline ConvSpec for_unpacked_weights(ConvSpec spec) {
  spec = for_tensor_cores(spec);
  spec.dtype = DataType::f32;
  spec.input_layout = Layout::nchw;
  // One row of any stride, or several rows that a step covers. Of one tap, any type and layout.
  if (*rc::gen::inRange(0, 3) == 0) {
    spec.weight.r = spec.weight.s = 1;
    spec.dtype = static_cast<DataType>(*rc::gen::inRange(0, 3));
    spec.input_layout = static_cast<Layout>(*rc::gen::inRange(0, 2));
  } else if (*rc::gen::inRange(0, 2) == 0) {
    spec.weight.r = 1;
    spec.weight.s = 3 + 2 * *rc::gen::inRange<std::int64_t>(0, 3);
  } else {
    spec.weight.r = 3;
    spec.weight.s = 1 + 2 * *rc::gen::inRange<std::int64_t>(0, 3);
    spec.stride = {1, 1};
  }
  spec.input.h += spec.weight.r * spec.dilation.h;
  spec.input.w += spec.weight.s * spec.dilation.w;
  spec.weight.c = 4 * *rc::gen::inRange<std::int64_t>(spec.groups > 1 ? 4 : 1, 40);
  spec.input.c = spec.weight.c * spec.groups;
  return spec;
}

/// And in those that decide whether TMA can bring pixels as boxes of x, of rows where they are strided.
inline ConvSpec for_boxes(ConvSpec spec) {
  spec = *rc::gen::inRange(0, 2) == 0 ? for_unpacked_weights(spec) : for_tensor_cores(spec);
  spec.input_layout = Layout::nchw;
  if (*rc::gen::inRange(0, 4) == 0) {  // one slice
    spec.groups = 1;
    spec.input.c = spec.weight.c = *rc::gen::inRange<std::int64_t>(1, 5);
  }
  if (*rc::gen::inRange(0, 2) == 0) {
    spec.weight.r = 1;
    spec.stride.h = 2 + *rc::gen::inRange<std::int64_t>(0, 2);
    spec.stride.w = 1 + *rc::gen::inRange<std::int64_t>(0, 2);
    spec.padding.top = spec.stride.h * *rc::gen::inRange<std::int64_t>(0, 3);
  }
  spec.input.h += spec.weight.r * spec.dilation.h + *rc::gen::inRange<std::int64_t>(0, 40);
  spec.input.w = (spec.input.w + spec.weight.s * spec.dilation.w + *rc::gen::inRange<std::int64_t>(0, 40)) / 8 * 8 + 8;
  return spec;
}

/// And in those that decide whether TMA can copy pixels in im2col mode, or, in NCHW tensors, can if they are
/// transposed.
inline ConvSpec for_im2col(ConvSpec spec, Layout layout) {
  spec = for_tensor_cores(spec);
  spec.input_layout = layout;
  if (layout == Layout::nchw && spec.groups == 1) return spec;  // of any number of channels
  spec.weight.c = 8 * *rc::gen::inRange<std::int64_t>(spec.groups > 1 ? 2 : 1, 17);
  spec.input.c = spec.weight.c * spec.groups;
  if (*rc::gen::inRange(0, 4) == 0) spec.input.h += spec.weight.r * spec.dilation.h, spec.weight.r = 1;
  return spec;
}

/// And in those that decide whether TMA can store boxes of outputs.
inline ConvSpec for_stored_boxes(ConvSpec spec) {
  spec = *rc::gen::inRange(0, 2) == 0 ? for_im2col(spec, Layout::nhwc) : for_tensor_cores(spec);
  spec.output_layout = Layout::nhwc;
  spec.epilogue.residual = false;
  spec.weight.k = *rc::gen::inRange<std::int64_t>(1, 4) * (spec.groups > 1 || spec.dtype != DataType::f32 ? 64 : 32);
  spec.weight.k *= spec.groups;
  if (*rc::gen::inRange(0, 2) == 0) spec.input.w += *rc::gen::inRange<std::int64_t>(0, 300);
  return spec;
}

/// And in those that decide whether filter columns can be folded into rows.
inline ConvSpec for_folds(ConvSpec spec) {
  spec = for_tensor_cores(spec);
  spec.stride.w = 1;
  spec.weight.s = *rc::gen::inRange<std::int64_t>(2, 12);
  spec.weight.k = spec.groups * *rc::gen::inRange<std::int64_t>(1, 33);
  spec.input.w += spec.weight.s * spec.dilation.w;
  return spec;
}

/// A few of all candidates: looking at all of them would be most of the time of the program.
inline std::vector<WgmmaCandidate> some_of(const std::vector<WgmmaCandidate>& all) {
  RC_CLASSIFY(all.empty(), "no candidates");
  if (all.empty()) return {};
  std::vector<WgmmaCandidate> some = {all.front()};
  for (int i = 0; i < 6; ++i) some.push_back(all[*rc::gen::inRange<std::size_t>(0, all.size())]);
  return some;
}

/// Candidates of a random spec. Some specs are made for weights or pixels that come by tensor maps, which few specs
/// have by chance.
inline std::vector<WgmmaCandidate> some_wgmma_candidates(const SpecLimits& limits = {}) {
  const ConvSpec spec = *valid_specs(limits);
  const int kind = *rc::gen::inRange(0, 10);
  return some_of(wgmma_candidates(kind == 0   ? for_unpacked_weights(spec)
                                  : kind == 1 ? for_boxes(spec)
                                  : kind == 2 ? for_im2col(spec, Layout::nhwc)
                                  : kind == 3 ? for_stored_boxes(spec)
                                  : kind == 4 ? for_folds(spec)
                                              : for_tensor_cores(spec)));
}

inline std::vector<WgmmaCandidate> some_that_fold(const SpecLimits& limits = {}) {
  std::vector<WgmmaCandidate> all = wgmma_candidates(for_folds(*valid_specs(limits)));
  std::erase_if(all, [](const WgmmaCandidate& one) { return !one.tiling.folds_columns(); });
  return some_of(all);
}

inline std::vector<WgmmaCandidate> some_with_unpacked_weights(const SpecLimits& limits = {}) {
  std::vector<WgmmaCandidate> all = wgmma_candidates(for_unpacked_weights(*valid_specs(limits)));
  std::erase_if(all, [](const WgmmaCandidate& one) { return one.tiling.packs_weights(); });
  return some_of(all);
}

inline std::vector<WgmmaCandidate> some_that_copy_boxes(const SpecLimits& limits = {}) {
  std::vector<WgmmaCandidate> all = wgmma_candidates(for_boxes(*valid_specs(limits)));
  std::erase_if(all, [](const WgmmaCandidate& one) { return !one.geometry().pixels().copies_boxes(); });
  return some_of(all);
}

inline std::vector<WgmmaCandidate> some_that_store_boxes(const SpecLimits& limits = {}) {
  std::vector<WgmmaCandidate> all = wgmma_candidates(for_stored_boxes(*valid_specs(limits)));
  std::erase_if(all, [](const WgmmaCandidate& one) { return !one.tiling.stores_boxes(); });
  return some_of(all);
}

inline std::vector<WgmmaCandidate> some_with_im2col(const SpecLimits& limits = {}) {
  const Layout layout = static_cast<Layout>(*rc::gen::inRange(0, 2));
  std::vector<WgmmaCandidate> all = wgmma_candidates(for_im2col(*valid_specs(limits), layout));
  std::erase_if(all, [](const WgmmaCandidate& one) { return !one.tiling.uses_im2col(); });
  return some_of(all);
}

/// Shapes of every kind that the family serves: none of them may be without candidates.
inline constexpr const char* kWgmmaSpecs[] = {
    "input=8,64,512,1024 weight=128,64,3,3 math=tf32",
    "input=8,32,512,512 weight=64,32,5,9 padding=2,4 dilation=2,3 math=tf32",
    "input=16,64,512,512 weight=128,64,1,1 math=tf32",
    "input=256,3,224,224 weight=96,3,11,11 stride=4 padding=2 math=tf32",
    "input=64,3,224,224 weight=64,3,7,7 stride=2 padding=3 dtype=f16",
    "input=32,256,14,14 weight=256,256,3,3 padding=1 dtype=bf16",
    "input=1,512,7,7 weight=512,512,3,3 padding=1 math=tf32",
    "input=4,64,31,29 weight=96,32,3,3 groups=2 math=tf32",
    "input=1,1,1,5000 weight=1,1,1,3 math=tf32",
    "input=1,40,5000,1 weight=8,40,3,1 math=tf32",
    "input=3,17,9,9 weight=65,17,9,9 math=tf32",
    "input=2,24,30,30 weight=40,24,2,3 stride=3,5 dilation=4,2 dtype=f16 input_layout=nhwc",
    "input=8,64,512,1024 weight=128,64,3,3 dtype=bf16 input_layout=nhwc output_layout=nhwc",
    "input=16,16,1024,1024 weight=128,16,3,3 bias math=tf32 input_layout=nhwc output_layout=nhwc",
    "input=3,17,29,31 weight=37,17,3,3 math=tf32 input_layout=nhwc output_layout=nhwc",
    "input=2,36,30,30 weight=44,18,3,3 groups=2 stride=2 dtype=bf16 output_layout=nhwc",
    "input=2,192,15,13 weight=144,96,1,1 groups=2 stride=2 math=tf32",
};

}  // namespace jitconv::test
