// See packed_weights.h.
#include "support/packed_weights.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <random>
#include <utility>

#include "codegen/plan.h"
#include "codegen/wgmma/geometry.h"
#include "runtime/compile.h"
#include "support/runner.h"
#include "tools/check/number.h"
#include "tools/reduce.h"

namespace jitconv::test {
namespace {

using codegen::ConvPlan;

/// The wgmma plan that executes least of those that pack weights and split their reduction or transpose pixels, or do
/// not.
std::optional<ConvPlan> smallest_plan(const ConvSpec& spec, const Target& target, bool split, bool transposes) {
  std::optional<ConvPlan> smallest;
  for (ConvPlan& plan : codegen::enumerate_plans(spec, target, SIZE_MAX)) {
    const auto* tiling = plan.tiling<codegen::WgmmaTiling>();
    if (tiling == nullptr || !tiling->packs_weights() || (tiling->split_k > 1) != split) continue;
    if (tiling->transposes_input() != transposes) continue;
    if (tiling->f16_pairs != (spec.math == MathMode::fp16x3)) continue;
    if (!smallest || tools::executed_multiply_adds(plan) < tools::executed_multiply_adds(*smallest))
      smallest = std::move(plan);
  }
  return smallest;
}

/// What one of the last two taps of a filter row has of a weight that both have: half of it, or what the other leaves.
std::uint32_t part_of_weight(DataType type, std::uint32_t bits, bool last) {
  const double weight = check::from_bits(type, bits), half = check::round_to(type, weight / 2),
               part = last && 2 * half != weight ? weight - half : half;
  if (type == DataType::f32) return std::bit_cast<std::uint32_t>(static_cast<float>(part));
  return type == DataType::f16 ? check::to_f16(part) : check::to_bf16(part);
}

}  // namespace

std::vector<PackingCase> packing_cases(const Target& target) {
  constexpr const char* kShape = "input=2,72,9,30 weight=72,72,3,3 padding=1,1,2,1 bias residual activation=relu ";
  constexpr struct {
    const char *name, *fields;
    bool split, transposes = false;
  } kCases[] = {{"tf32", "math=tf32", false},
                {"tf32, split", "math=tf32", true},
                {"fp16", "dtype=f16", false},
                {"fp16, split", "dtype=f16", true},
                {"bf16", "dtype=bf16", false},
                {"bf16, split", "dtype=bf16", true},
                {"transposed pixels", "math=tf32", false, true},
                {"transposed pixels, split", "dtype=bf16", true, true},
                {"pairs of fp16 numbers", "math=fp16x3", false}};
  std::vector<PackingCase> cases;
  for (const auto& [name, fields, split, transposes] : kCases) {
    if (std::optional<ConvPlan> plan =
            smallest_plan(parse_spec(std::string(kShape) + fields), target, split, transposes))
      cases.push_back({name, *std::move(plan)});
  }
  return cases;
}

std::string packing_fault(tools::Device& device, const Kernel& kernel, Report::Category& counts) {
  const ConvSpec& spec = kernel.spec();
  const Reference reference = make_reference(spec, check::DataKind::random, /*seed=*/11, {});
  Arena arena(device);
  const auto run = [&](const LaunchArgs& tensors, const LaunchArgs& launched, std::int64_t workspace_bytes) {
    fill_tensors(device, spec, reference.data, tensors, workspace_bytes);
    kernel.launch(nullptr, launched);
    return judge(device, spec, reference, tensors, arena, counts);
  };

  ++counts.kernels;
  LaunchArgs tensors = place_tensors(arena, spec, kernel.workspace_bytes());
  if (const std::string wrong = run(tensors, tensors, kernel.workspace_bytes()); !wrong.empty())
    return "with w: " + wrong;
  const std::vector<std::byte> expected = output_bytes(device, spec, tensors);

  const std::int64_t workspace_bytes = kernel.workspace_bytes_with_packed_weights();
  tensors = place_tensors(arena, spec, workspace_bytes, kernel.packed_weight_bytes());
  fill_tensors(device, spec, reference.data, tensors, workspace_bytes);
  device.set_bytes(const_cast<void*>(tensors.packed_w), kNanByte, kernel.packed_weight_bytes());
  kernel.pack_weights(nullptr, tensors.w, const_cast<void*>(tensors.packed_w));
  LaunchArgs launched = tensors;
  launched.w = nullptr;
  for (const char* const which : {"first", "second"}) {
    const std::string prefix = std::string(which) + " launch with packed_w: ";
    if (const std::string wrong = run(tensors, launched, workspace_bytes); !wrong.empty()) return prefix + wrong;
    if (output_bytes(device, spec, tensors) != expected) return prefix + "not the bits of the launch with w";
  }
  return {};
}

std::vector<ConvPlan> layout_plans(const Target& target) {
  constexpr const char* kSpecs[] = {
      "input=1,72,9,30 weight=72,72,3,3 math=tf32",
      "input=1,3,40,40 weight=70,3,7,7 math=tf32",
      "input=1,3,99,99 weight=96,3,11,11 stride=4 padding=2 dtype=f16",
      "input=1,5,40,40 weight=130,5,3,5 dtype=bf16",
      "input=1,24,30,30 weight=40,24,2,3 stride=3,5 dilation=4,2 dtype=f16 input_layout=nhwc",
      "input=1,96,31,29 weight=96,48,3,3 groups=2 stride=2 math=tf32",
      "input=1,200,8,8 weight=300,200,1,1 math=tf32",
      "input=1,520,8,8 weight=1030,520,1,1 dtype=bf16",
      "input=1,300,9,9 weight=260,300,5,5 math=tf32",
      "input=1,20,99,99 weight=20,20,31,31 dtype=f16",
      "input=1,20,30,400 weight=16,20,3,3 math=tf32",
      "input=1,40,30,400 weight=25,40,2,7 dilation=1,3 math=tf32",
      "input=1,3,30,400 weight=3,3,3,11 math=tf32",
  };
  std::vector<ConvPlan> plans;
  for (const char* text : kSpecs) {
    bool row_by_row = false, all_rows = false, folded = false;
    for (ConvPlan& plan : codegen::enumerate_plans(parse_spec(text), target, SIZE_MAX)) {
      const auto* tiling = plan.tiling<codegen::WgmmaTiling>();
      if (tiling == nullptr || !tiling->packs_weights() ||
          std::exchange(tiling->folds_columns()             ? folded
                        : tiling->pipeline.filter_rows == 1 ? row_by_row
                                                            : all_rows,
                        true))
        continue;
      plans.push_back(std::move(plan));
    }
  }
  return plans;
}

std::string packed_bytes_fault(tools::Device& device, const Kernel& kernel) {
  const ConvSpec& spec = kernel.spec();
  const WeightShape& filter = spec.weight;
  const codegen::KernelPlan& convolution = runtime::plan_of(kernel).convolution();
  const codegen::WgmmaGeometry geometry(convolution.problem, std::get<codegen::WgmmaTiling>(convolution.tiling));
  const int filter_rows = geometry.tiling().pipeline.filter_rows, slices = geometry.tiling().pipeline.slices;
  const int tile_rows = geometry.tiling().tile.channels, folded = geometry.tiling().tile.folded_columns;
  const codegen::ColumnFold fold = geometry.fold();
  const bool words = spec.dtype == DataType::f32;
  const std::size_t bytes = words ? 4 : 2;
  std::mt19937 random(17);
  std::vector<std::byte> w(static_cast<std::size_t>(filter.k * filter.c * filter.r * filter.s) * bytes);
  std::vector<std::uint32_t> packed_bits(w.size() / bytes);  // of each weight, as they are to be packed
  for (std::size_t i = 0; i < packed_bits.size(); ++i) {
    // Finite, and of all low bits; of f16 and bf16, also subnormal. TF32 is rounded to nearest, ties to even.
    const auto drawn = static_cast<std::uint32_t>(random());
    const std::uint32_t bits = words ? (drawn & 0x8fffffffu) | 0x30000000u : drawn & 0x8fffu;
    std::memcpy(w.data() + i * bytes, &bits, bytes);
    packed_bits[i] = words ? (bits + 0xfffu + (bits >> 13 & 1u)) & ~0x1fffu : bits & 0xffffu;
  }

  const std::int64_t packed_bytes = kernel.packed_weight_bytes();
  tools::Buffer from(device, static_cast<std::int64_t>(w.size())), to(device, packed_bytes);
  device.upload(from.data(), w.data(), from.bytes());
  device.set_bytes(to.data(), kNanByte, packed_bytes);
  kernel.pack_weights(nullptr, from.data(), to.data());
  std::vector<std::byte> packed(static_cast<std::size_t>(packed_bytes));
  device.download(packed.data(), to.data(), packed_bytes);

  const std::vector<int> order = geometry.tap_order();
  const std::int64_t slice_channels = geometry.slice_channels(), group_k = filter.k / spec.groups;
  const std::byte* at = packed.data();
  for (std::int64_t tile = 0; tile < spec.groups * geometry.tiles_k(); ++tile)
    for (std::int64_t step = 0; step < geometry.steps(); ++step)
      for (std::int64_t unit = 0; unit < geometry.units(); ++unit)
        for (std::int64_t row = 0; row < tile_rows; ++row)
          for (std::int64_t i = 0; i < slice_channels; ++i, at += bytes) {
            // In a warp's 16 rows, each channel has one row for every folded column.
            const std::int64_t warp_k = 16 / folded, column = row % 16 / warp_k;
            const std::int64_t k = tile % geometry.tiles_k() * (tile_rows / folded) + row / 16 * warp_k + row % warp_k;
            const std::int64_t steps = filter.r / filter_rows;  // of a chunk
            const auto place = static_cast<std::size_t>(unit / slices);
            const std::int64_t tap = place < order.size() ? order[place] : 0;  // of the step
            const std::int64_t r = step % steps * filter_rows + tap / fold.taps(),
                               s = fold.first_column(tap % fold.taps()) + column;
            const std::int64_t c = (step / steps * slices + unit % slices) * slice_channels + i;
            std::uint32_t expected = 0, found = 0;
            if (k < group_k && c < filter.c && s < filter.s && unit < geometry.taps() * slices)
              expected = packed_bits[static_cast<std::size_t>(
                  (((tile / geometry.tiles_k() * group_k + k) * filter.c + c) * filter.r + r) * filter.s + s)];
            if (s >= fold.last_column() && s < fold.last_column() + fold.shared_columns())
              expected = part_of_weight(spec.dtype, expected, tap % fold.taps() == fold.taps() - 1);
            std::memcpy(&found, at, bytes);
            if (found != expected)
              return fmt::format("tile {} step {} unit {} row {} channel {}: {:x} instead of {:x}", tile, step, unit,
                                 row, c, found, expected);
          }
  return {};
}

}  // namespace jitconv::test
