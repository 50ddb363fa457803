// Integer arithmetic that plans and emitters share.
#pragma once

#include <cstdint>

namespace jitconv::codegen {

inline constexpr int kWarpSize = 32;

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
constexpr std::int64_t round_up(std::int64_t a, std::int64_t multiple) { return ceil_div(a, multiple) * multiple; }

/// The remainder in [0, b), for negative a too.
constexpr std::int64_t positive_modulo(std::int64_t a, std::int64_t b) { return (a % b + b) % b; }

}  // namespace jitconv::codegen
