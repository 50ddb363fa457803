// Why an access to memory breaks the order of threads: the answer of the shadows, before it becomes a Finding.
#pragma once

#include <cstdint>

namespace jitconv::host {

enum class Hazard : std::uint8_t {
  none,
  uninitialised,     ///< nothing wrote the bytes in this block
  written,           ///< another thread wrote them, unordered with this access
  read,              ///< another thread read them, unordered with this store
  copied,            ///< an asynchronous operation may still write them
  written_unfenced,  ///< ordered, but written through the generic proxy and not fenced for the async proxy
  multiplied         ///< a warpgroup's multiplication may still read them; `thread` is the warpgroup's first
};

struct Conflict {
  Hazard hazard = Hazard::none;
  bool other_block = false;  ///< the other access was made by another block
  std::uint16_t thread = 0;  ///< of the other access
  std::uint32_t pc = 0;      ///< low half of its return address in the kernel
  std::int32_t tick = 0;     ///< of the other access
  std::uint32_t offset = 0;  ///< first byte in conflict, from the first byte of the access
  explicit operator bool() const { return hazard != Hazard::none; }
};

}  // namespace jitconv::host
