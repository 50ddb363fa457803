// A small generator of random numbers, the same on every machine: seeds of host execution mean something. And what
// every asynchronous operation draws from it.
#pragma once

#include <cstdint>

#include "host/engine.h"

namespace jitconv::host {

/// SplitMix64.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  /// 0 .. count - 1, near enough to uniform for counts far below 2^32.
  std::uint32_t below(std::uint32_t count) { return static_cast<std::uint32_t>(((next() >> 32) * count) >> 32); }

 private:
  std::uint64_t state_;
};

/// Whether the next asynchronous operation takes effect at once.
inline bool lands_early(Landing landing, Random& random) {
  return landing == Landing::early || (landing == Landing::random && (random.next() >> 63) != 0);
}

}  // namespace jitconv::host
