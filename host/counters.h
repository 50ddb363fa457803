// What the warps of a kernel asked of memory, counted while it ran on the CPU: requests are warp-wide instructions, as
// a GPU's profiler counts them.
#pragma once

#include <cstdint>
#include <string>

namespace jitconv::host {

/// Counts loads or stores of global memory. A sector is 32 aligned bytes.
struct GlobalCounters {
  std::uint64_t requests = 0;  ///< instructions of a warp
  std::uint64_t sectors = 0;   ///< touched by them, each counted once per request
  std::uint64_t bytes = 0;     ///< asked for, each once per request however many lanes want it
  /// Requested bytes over the bytes of the sectors they came in; 1 is perfect, 0.125 is one float per sector.
  double efficiency() const {
    return sectors == 0 ? 1.0 : static_cast<double>(bytes) / (32.0 * static_cast<double>(sectors));
  }
  bool operator==(const GlobalCounters&) const = default;
};

/// Counts loads or stores of shared memory. A wavefront is one pass over the 32 banks of 4 bytes.
struct SharedCounters {
  std::uint64_t requests = 0;
  std::uint64_t wavefronts = 0;  ///< needed
  std::uint64_t ideal = 0;       ///< needed if no two lanes wanted different words of a bank
  std::uint64_t bytes = 0;       ///< asked for, by every lane
  std::uint64_t conflicts() const { return wavefronts - ideal; }
  bool operator==(const SharedCounters&) const = default;
};

struct Counters {
  GlobalCounters global_loads, global_stores;
  SharedCounters shared_loads, shared_stores;
  std::uint64_t fmas = 0;           ///< of single threads
  std::uint64_t multiply_adds = 0;  ///< of warpgroups' multiplications, whose reads of shared memory are not counted
  bool operator==(const Counters&) const = default;
};

/// Several lines, `name: value`.
std::string to_string(const Counters& counters);

}  // namespace jitconv::host
