// The map of a wgmma kernel's shared memory, from first to last: stages, resident weights, raw pixels, staged outputs,
// zeros, barriers.
#pragma once

#include <cstdint>

#include "codegen/wgmma/geometry.h"
#include "codegen/wgmma/store.h"

namespace jitconv::codegen {

class WgmmaMemory {
 public:
  /// Works out the whole map; `geometry` must outlive the object.
  explicit WgmmaMemory(const WgmmaGeometry& geometry);

  const WgmmaStore& store() const { return store_; }

  std::int64_t weight_offset() const { return weight_offset_; }  ///< where the weights of a stage start
  std::int64_t stage_bytes() const { return stage_bytes_; }
  std::int64_t weights_first_byte() const { return weights_first_byte_; }
  std::int64_t raw_first_byte() const { return raw_first_byte_; }
  std::int64_t staging_first_byte() const { return staging_first_byte_; }
  std::int64_t zeros_first_byte() const { return zeros_first_byte_; }
  std::int64_t barriers_first_byte() const { return barriers_first_byte_; }
  std::int64_t shared_bytes() const { return shared_bytes_; }

 private:
  WgmmaStore store_;
  std::int64_t weight_offset_, stage_bytes_, weights_first_byte_, raw_first_byte_, staging_first_byte_;
  std::int64_t zeros_first_byte_, barriers_first_byte_, shared_bytes_;
};

/// Barriers of the schedule: of each warpgroup, that it has multiplied; of each pair of warps that add sums.
int schedule_barriers(WgmmaTiling::Schedule schedule);

}  // namespace jitconv::codegen
