// Inputs of the probes that multiply: small numbers of each type, whose sums are exact in any order.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <string_view>

#include "conformance/probes.h"

namespace jitconv::test {

/// A float from -most to most.
std::uint32_t random_integer(std::mt19937_64& random, int most);

/// The bits of an element of `type` ("tf32", "f16", "bf16"), in the low half if it has 16.
std::uint32_t bits_of(const std::string& type, int value);

/// The device file whose multiply() takes operands of `type` in shared memory.
std::string_view multiply_file(const std::string& type);

/// Appends inputs of four blocks: each item has `words` of operands, and the `sums` it starts from.
void add_operands_and_sums(Probe& probe, const std::string& type, std::size_t words, std::size_t sums);

}  // namespace jitconv::test
