// What host execution found wrong with a kernel: one rule, one place.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace jitconv::host {

enum class Rule : std::uint8_t {
  out_of_bounds,              ///< outside the buffers of the launch, or beyond the block's shared memory
  misaligned,                 ///< address not a multiple of the access's size
  read_only,                  ///< a store to an input
  uninitialised,              ///< shared memory read before anything wrote it in this block
  race,                       ///< two threads, at least one writes, nothing orders them; names both
  unfinished_copy,            ///< what an asynchronous copy writes touched, or what it reads changed, before the wait
  divergent_barrier,          ///< a barrier, warp or warpgroup operation that not all its threads reach, or not alike
  unfinished_multiplication,  ///< an operand or accumulator of a multiplication touched before it was waited for
  barrier_misuse,             ///< a barrier object used before it is one, or with more arrivals or bytes than it takes
  registers,                  ///< a number of registers that a warpgroup cannot ask for
  overflow,                   ///< undefined arithmetic: signed overflow, shift, array index
};
std::string to_string(Rule rule);

struct Finding {
  Rule rule{};
  std::string kernel;  ///< entry
  int line = 0;        ///< of the generated source; 0 if unknown
  std::array<std::uint32_t, 3> block{};
  std::uint32_t thread = 0;
  std::string address;  ///< "y + 0x40 (4 bytes)", "shared + 0x1f0"; empty where there is none
  std::string text;     ///< what happened, one line
};
std::string to_string(const Finding& finding);

}  // namespace jitconv::host
