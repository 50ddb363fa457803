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
    // The words of a request in the order in which they are met, those of a bank as a list: planners ask thousands of
    // times.
    constexpr int kNone = -1;
    std::array<std::int64_t, kWarpSize> word{};
    std::array<int, kWarpSize> previous{};
    std::array<int, kBanks> last, count{};
    last.fill(kNone);
    int met = 0, most = 1;
    for (std::int64_t lane = first; lane < std::min(first + together, lanes); ++lane) {
      const std::int64_t first_word = address(lane) / kBankBytes;
      for (std::int64_t at = first_word; at < first_word + words; ++at) {
        const auto bank = static_cast<std::size_t>(at % kBanks);
        int same = last[bank];
        while (same != kNone && word[same] != at) same = previous[same];
        if (same != kNone) continue;
        word[met] = at, previous[met] = last[bank], last[bank] = met++;
        most = std::max(most, ++count[bank]);
      }
    }
    wavefronts += most;
  }
  return wavefronts;
}

}  // namespace jitconv::codegen
