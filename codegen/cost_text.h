// The cost model's times as people read them. Not for text that is compared between machines: digits are dropped.
#pragma once

#include <cstdint>
#include <string>

namespace jitconv::codegen {

/// Three digits in the largest unit of us, ms and s that leaves at least one before the point: "820 us", "10.6 ms".
std::string cost_text(std::int64_t picoseconds);

}  // namespace jitconv::codegen
