// The cost model: prices a candidate in picoseconds from what it issues, moves and wastes. Integer arithmetic, so the
// order of candidates is the same on every machine. The absolute figures are meant for ranking only.
#pragma once

#include <cstdint>
#include <string>

#include "codegen/costs/fma.h"
#include "codegen/problem.h"
#include "jitconv/target.h"

namespace jitconv::codegen {

/// What one block does, in counts that the model turns into time.
struct BlockWork {
  std::int64_t blocks = 0;           ///< of the whole grid
  std::int64_t threads = 0;          ///< of one block
  std::int64_t warps = 0;            ///< of one block
  std::int64_t fma_per_warp = 0;     ///< FMA instructions
  std::int64_t other_per_warp = 0;   ///< every other instruction
  std::int64_t shared_per_warp = 0;  ///< shared-memory wavefronts (128 bytes each)
  std::int64_t latency_cycles = 0;   ///< start-up and end of a block that only other blocks can hide
  std::int64_t dram_bytes = 0;       ///< of the whole launch
  int registers = 0;                 ///< estimate per thread
  std::int64_t shared_bytes = 0;
  std::int64_t wanted_warps = 16;  ///< resident on an SM to cover latencies
  std::int64_t wanted_blocks = 1;  ///< on an SM, whose phases of loading, computing and storing then overlap
  int launch_blocks = 32;          ///< most blocks per SM that __launch_bounds__ should make room for
};

struct Launch {
  std::uint32_t blocks = 0;   ///< grid size; flattened into x
  std::uint32_t threads = 0;  ///< per block
  std::uint32_t shared_bytes = 0;
  int min_blocks_per_sm = 1;  ///< second argument of __launch_bounds__
  bool operator==(const Launch&) const = default;
};

/// The launch of the work: as many blocks per SM as fit, up to what it wants.
Launch launch_of(const BlockWork& work, const Target& target);

/// Blocks of `work` that fit on one SM.
int resident_blocks(const BlockWork& work, const Target& target);

/// Time of two parts of a launch, or of a block, that overlap, in the unit of both: the longer one, which decides, and
/// what it leaves unhidden of the shorter one. This is the roofline model (Williams, Waterman and Patterson, 2009),
/// where the shorter part is free, but with incomplete overlap: 0 permille is the roofline, 1000 one part after the
/// other. The tables in costs/ have the share for each pair of parts.
std::int64_t overlapped(std::int64_t a, std::int64_t b, std::int64_t unhidden_permille);

/// Modelled time of the launch in picoseconds.
std::int64_t price(const BlockWork& work, const Target& target, const FmaCosts& costs);

/// Modelled time in picoseconds of a pass beside the convolution that only moves memory: a launch, and its bytes.
std::int64_t pass_price(std::int64_t dram_bytes, const FmaCosts& costs);

/// Why a family that could compute the spec has no candidate: "no tile of a 3x3 filter ...".
std::string no_tile_fits(const Problem& problem, const Target& target);

/// Elements by which a tiling's tiles reach past the ends of x and w: addresses that are formed, not accessed.
struct Overhang {
  std::int64_t input = 0, weight = 0;
};

/// Whether some element offset a kernel forms does not fit 32 bits.
bool needs_wide_index(const Problem& problem, const Overhang& overhang);

}  // namespace jitconv::codegen
