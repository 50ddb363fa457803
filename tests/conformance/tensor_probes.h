// Probes of what the kernels for tensor cores use: barrier objects, bulk copies, warpgroup multiplications, and the
// functions that bring elements to and from them.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "conformance/probes.h"

namespace jitconv::test {

/// The compute capability of what only Hopper has.
inline constexpr int kHopper = 90;

/// A generator of its own for each probe, so that a new probe leaves the inputs of the others alone.
std::mt19937_64 random_of_probe(const std::string& name);

/// Of any bits, or floats where roundings to TF32 differ.
Words random_words(const std::string& name, std::size_t count);
Words words_to_round(const std::string& name, std::size_t count);

std::vector<Probe> tensor_probes();

}  // namespace jitconv::test
