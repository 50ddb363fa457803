// Puts the accesses of single lanes together to the requests a warp makes, and counts what those cost: sectors of
// global memory, wavefronts of shared memory. Lanes that execute one basic block together make one request per
// instruction.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "host/counters.h"

namespace jitconv::host {

enum class RequestKind : std::uint8_t { global_load, global_store, shared_load, shared_store };

class WarpRequests {
 public:
  /// An access of a lane, at a global address or an offset in shared memory. The instruction is known by its `pc`.
  void add(RequestKind kind, unsigned lane, std::uintptr_t address, unsigned bytes, const void* pc);
  /// The lane that calls add() next starts, or goes on with, the current block.
  void begin_lane() { next_ = 0; }
  /// The lanes leave the block: counts its requests.
  void flush(Counters& counters);

 private:
  struct Request {
    const void* pc = nullptr;
    RequestKind kind{};
    std::uint8_t bytes = 0;  // of the first lane; wider accesses of other lanes do not occur
    std::uint32_t lanes = 0;
    std::array<std::uintptr_t, 32> address{};
  };
  std::vector<Request> requests_;  // the first used_ are this block's
  std::size_t used_ = 0;
  std::size_t next_ = 0;  // where the running lane's next access is expected: lanes run the same instructions
};

/// Counts one request: lane l of `lanes` accesses `bytes` (1 .. 16) bytes at address[l].
void count_global(GlobalCounters& counters, std::uint32_t lanes, const std::array<std::uintptr_t, 32>& address,
                  unsigned bytes);
void count_shared(SharedCounters& counters, std::uint32_t lanes, const std::array<std::uintptr_t, 32>& address,
                  unsigned bytes);

}  // namespace jitconv::host
