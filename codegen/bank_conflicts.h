// Bank conflicts of shared memory, for plans that choose pitches and vectors by them.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "codegen/arithmetic.h"

namespace jitconv::codegen {

inline constexpr std::int64_t kBankBytes = 4, kBanks = 32;

/// Wavefronts in which the first `lanes` lanes of a warp move `bytes` each; `address(lane)` is the first of them. Lanes
/// whose words are 128 bytes together are one request; a request takes as many wavefronts as a bank has words in it.
/// CUDA C++ Programming Guide, "Shared Memory" of compute capability 5.x and later.
template <typename Address>
std::int64_t bank_wavefronts(std::int64_t bytes, std::int64_t lanes, const Address& address) {
  const std::int64_t words = std::max<std::int64_t>(1, bytes / kBankBytes);
  const std::int64_t together = kWarpSize / words;
  std::int64_t wavefronts = 0;
  for (std::int64_t first = 0; first < kWarpSize; first += together) {
    std::array<std::array<std::int64_t, kWarpSize>, kBanks> met{};
    std::array<std::size_t, kBanks> count{};
    std::size_t most = 1;
    for (std::int64_t lane = first; lane < std::min(first + together, lanes); ++lane) {
      const std::int64_t first_word = address(lane) / kBankBytes;
      for (std::int64_t word = first_word; word < first_word + words; ++word) {
        const auto bank = static_cast<std::size_t>(word % kBanks);
        const auto end = met.at(bank).begin() + static_cast<std::ptrdiff_t>(count.at(bank));
        if (std::find(met.at(bank).begin(), end, word) != end) continue;
        met.at(bank).at(count.at(bank)++) = word;
        most = std::max(most, count.at(bank));
      }
    }
    wavefronts += static_cast<std::int64_t>(most);
  }
  return wavefronts;
}

}  // namespace jitconv::codegen
