// See memory.h.
#include "codegen/wgmma/memory.h"

#include "codegen/arithmetic.h"

namespace jitconv::codegen {
namespace {

constexpr std::int64_t kBarrierBytes = 8;

std::int64_t barriers(const WgmmaTiling& tiling) {
  return (tiling.splits_im2col() ? 3 : 2) * tiling.pipeline.stages + 4 * tiling.producer.copies_ahead +
         (tiling.keeps_weights() ? 1 : 0) + schedule_barriers(tiling.schedule);
}

}  // namespace

WgmmaMemory::WgmmaMemory(const WgmmaGeometry& geometry) : store_(geometry) {
  const WgmmaTiling& tiling = geometry.tiling();
  const std::int64_t pixel_bytes = tiling.operand_parts() * geometry.pixels().input_bytes();
  weight_offset_ = tiling.packs_weights() ? pixel_bytes : round_up(pixel_bytes, kSwizzledBoxAlignment);
  stage_bytes_ = weight_offset_ + geometry.stage_weight_bytes();
  weights_first_byte_ = round_up(tiling.pipeline.stages * stage_bytes_, 128);
  raw_first_byte_ = round_up(weights_first_byte_ + geometry.kept_weight_bytes(), 128);
  const std::int64_t raw_bytes =
      tiling.copies_pixels() ? 4 * tiling.producer.copies_ahead * geometry.pixels().raw_bytes() : 0;
  staging_first_byte_ = round_up(raw_first_byte_ + raw_bytes, tiling.stores_boxes() ? kSwizzledBoxAlignment : 128);
  zeros_first_byte_ = staging_first_byte_ + store_.staging_bytes();
  barriers_first_byte_ =
      zeros_first_byte_ + (geometry.has_zeros() ? tiling.tile.columns * WgmmaGeometry::kRowBytes : 0);
  shared_bytes_ = barriers_first_byte_ + barriers(tiling) * kBarrierBytes;
}

int schedule_barriers(WgmmaTiling::Schedule schedule) {
  switch (schedule) {
    case WgmmaTiling::Schedule::cooperative:
      return 0;
    case WgmmaTiling::Schedule::pingpong:
      return 2;
    case WgmmaTiling::Schedule::sliced_k:
      return 4;
  }
  return 0;
}

}  // namespace jitconv::codegen
