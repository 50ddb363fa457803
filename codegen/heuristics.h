// The cost model: prices a candidate in picoseconds from what it issues, moves and wastes. Integer arithmetic, so the
// order of candidates is the same on every machine. The absolute figures are meant for ranking only.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/plan.h"

namespace jitconv::codegen {

/// What one block does, in counts that the model turns into time.
struct BlockWork {
  std::int64_t blocks = 0;            ///< of the whole grid
  std::int64_t warps = 0;             ///< of one block
  std::int64_t fma_per_warp = 0;      ///< FMA instructions
  std::int64_t other_per_warp = 0;    ///< every other instruction
  std::int64_t shared_per_warp = 0;   ///< shared-memory wavefronts (128 bytes each)
  std::int64_t latency_cycles = 0;    ///< start-up and end of a block that only other blocks can hide
  std::int64_t dram_bytes = 0;        ///< of the whole launch
  int registers = 0;                  ///< estimate per thread
  std::int64_t shared_bytes = 0;
};

/// Blocks of `work` that fit on one SM.
int resident_blocks(const BlockWork& work, const Target& target);

/// Modelled time of the launch in picoseconds.
std::int64_t price(const BlockWork& work, const Target& target);

/// Candidates of one family, unordered, each with cost; empty if the family cannot compute the spec, and then `why`
/// says which limit.
std::vector<ConvPlan> direct_candidates(const ConvSpec& spec, const Target& target, std::string& why);
std::vector<ConvPlan> depthwise_candidates(const ConvSpec& spec, const Target& target, std::string& why);
std::vector<ConvPlan> fallback_candidates(const ConvSpec& spec, const Target& target);

/// Whether some offset does not fit 32 bits, when tiles overhang x and w by at most so many elements.
bool needs_wide_index(const ConvSpec& spec, std::int64_t input_overhang, std::int64_t filter_overhang);

}  // namespace jitconv::codegen
