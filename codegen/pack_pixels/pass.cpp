// The pass that packs pixels as planes, as a part of a plan.
#include "codegen/pack_pixels/pass.h"

#include <algorithm>

#include "codegen/arithmetic.h"
#include "codegen/cost.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

std::string describe(const KernelPlan& kernel) {
  std::string text;
  for (const PackedPixels& tensor : std::get<PackPixelsTiling>(kernel.tiling).tensors())
    text += fmt::format("packing: {} pixels of {} channels of {}\n", tensor.pixels(), tensor.channels, tensor.name());
  return text;
}

}  // namespace

std::int64_t PackedPixels::bytes() const {
  const std::int64_t elements = (n - 1) * pitch.n + (channels - 1) * pitch.c + (rows - 1) * pitch.h +
                                (column_phases - 1) * phase_pitch + (packed_columns / column_phases - 1) * pitch.w + 1;
  return round_up(source.element_bytes() * elements, 256);
}

std::int64_t PackedPixels::pixel_tiles() const { return ceil_div(pixels(), std::int64_t{kTile}); }

std::int64_t PackedPixels::blocks() const { return pixel_tiles() * ceil_div(channels, std::int64_t{kTile}); }

void add_pixel_packing(ConvPlan& plan, PackPixelsTiling tiling) {
  const auto convolution = plan.convolution_place();
  KernelPlan pass{convolution->problem, {}, {}};
  pass.launch.threads = PackPixelsTiling::kThreads;
  for (PackedPixels& tensor : tiling.tensors()) {
    tensor.packed = scratch_tensor(plan.scratch.size());
    Problem& read = convolution->problem;
    (tensor.is_input ? read.input : read.output).tensor = tensor.packed;
    plan.scratch.push_back({fmt::format("packed_{}", tensor.name()), tensor.bytes()});
    pass.launch.blocks += static_cast<std::uint32_t>(tensor.blocks());
    pass.launch.shared_bytes = std::max(pass.launch.shared_bytes, static_cast<std::uint32_t>(tensor.shared_bytes()));
  }
  pass.tiling = tiling;
  convolution->starts_early = true;
  plan.kernels.insert(convolution, pass);
}

std::int64_t pixel_packing_cost(const PackPixelsTiling& tiling, const FmaCosts& costs) {
  std::int64_t bytes = 0;
  for (const PackedPixels& tensor : tiling.tensors()) {
    // Whole sectors are read, also if the elements that are used lie a stride apart.
    const std::int64_t read = tensor.reads_channels() ? 1 : std::min<std::int64_t>(tensor.source.stride.w, 8);
    // In rows with zeros or phases, finding an element's place takes as long as moving it. Measured on an H100.
    const std::int64_t finding = tensor.pads() ? 2 : 1;
    bytes += finding * (1 + read) * tensor.source.element_bytes() * tensor.pixels() * tensor.channels;
  }
  return pass_price(bytes, costs);
}

FamilyFunctions pack_pixels_pass() { return {.name = "pack_pixels", .emit = pack_pixels::emit, .describe = describe}; }

}  // namespace jitconv::codegen
