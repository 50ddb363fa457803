// Shared memory serves 32 banks of 4 bytes at a time: all lanes of a request of up to 4 bytes, 16 lanes of one of 8
// bytes, 8 lanes of one of 16. Lanes that want the same word share it; different words of one bank take one wavefront
// each.
#include "host/warp_requests.h"

#include <algorithm>
#include <bit>

namespace jitconv::host {

void WarpRequests::add(RequestKind kind, unsigned lane, std::uintptr_t address, unsigned bytes, const void* pc) {
  if (bytes > 16) {  // a copy of a structure: several instructions
    for (unsigned done = 0; done < bytes; done += 16) add(kind, lane, address + done, std::min(bytes - done, 16u), pc);
    return;
  }
  const std::uint32_t bit = 1u << lane;
  std::size_t i = next_;
  while (i < used_ && !(requests_[i].pc == pc && requests_[i].kind == kind && (requests_[i].lanes & bit) == 0)) ++i;
  if (i == used_) {  // not where it was expected: perhaps an instruction the lane before skipped, or a new one
    for (i = 0; i < std::min(next_, used_); ++i)
      if (requests_[i].pc == pc && requests_[i].kind == kind && (requests_[i].lanes & bit) == 0) break;
    if (i == std::min(next_, used_)) {
      i = used_++;
      if (used_ > requests_.size()) requests_.emplace_back();
      Request& request = requests_[i];
      request.pc = pc;
      request.kind = kind;
      request.bytes = static_cast<std::uint8_t>(bytes);
      request.lanes = 0;
    }
  }
  requests_[i].lanes |= bit;
  requests_[i].address[lane] = address;
  next_ = i + 1;
}

void WarpRequests::flush(Counters& counters) {
  for (std::size_t i = 0; i < used_; ++i) {
    const Request& request = requests_[i];
    switch (request.kind) {
      case RequestKind::global_load:
        count_global(counters.global_loads, request.lanes, request.address, request.bytes);
        break;
      case RequestKind::global_store:
        count_global(counters.global_stores, request.lanes, request.address, request.bytes);
        break;
      case RequestKind::shared_load:
        count_shared(counters.shared_loads, request.lanes, request.address, request.bytes);
        break;
      case RequestKind::shared_store:
        count_shared(counters.shared_stores, request.lanes, request.address, request.bytes);
        break;
    }
  }
  used_ = 0;
  next_ = 0;
}

void count_global(GlobalCounters& counters, std::uint32_t lanes, const std::array<std::uintptr_t, 32>& address,
                  unsigned bytes) {
  std::array<std::uintptr_t, 32> starts;
  std::size_t count = 0;
  for (std::uint32_t l = lanes; l != 0; l &= l - 1) starts[count++] = address[std::countr_zero(l)];
  std::sort(starts.begin(), starts.begin() + count);
  std::uintptr_t end = 0;          // of the bytes counted so far
  std::uintptr_t next_sector = 0;  // the first that is not counted yet
  for (std::size_t i = 0; i < count; ++i) {
    const std::uintptr_t first = std::max(starts[i], end), last = starts[i] + bytes;
    if (last > first) counters.bytes += last - first;
    end = std::max(end, last);
    const std::uintptr_t sector = std::max(starts[i] / 32, next_sector), sector_end = (last - 1) / 32 + 1;
    if (sector_end > sector) counters.sectors += sector_end - sector;
    next_sector = std::max(next_sector, sector_end);
  }
  ++counters.requests;
}

void count_shared(SharedCounters& counters, std::uint32_t lanes, const std::array<std::uintptr_t, 32>& address,
                  unsigned bytes) {
  const unsigned lanes_at_once = bytes <= 4 ? 32 : bytes <= 8 ? 16 : 8;
  for (unsigned first = 0; first < 32; first += lanes_at_once) {
    std::array<std::uintptr_t, 32 * 4> words;
    std::size_t count = 0;
    for (unsigned lane = first; lane < first + lanes_at_once; ++lane) {
      if ((lanes >> lane & 1u) == 0) continue;
      for (std::uintptr_t word = address[lane] / 4; word <= (address[lane] + bytes - 1) / 4; ++word)
        words[count++] = word;
      counters.bytes += bytes;
    }
    if (count == 0) continue;
    std::sort(words.begin(), words.begin() + count);
    const auto end = std::unique(words.begin(), words.begin() + count);
    std::array<std::uint8_t, 32> of_bank{};
    std::uint8_t most = 0;
    for (auto word = words.begin(); word != end; ++word) most = std::max(most, ++of_bank[*word % 32]);
    counters.wavefronts += most;
    counters.ideal += 1;
  }
  ++counters.requests;
}

}  // namespace jitconv::host
