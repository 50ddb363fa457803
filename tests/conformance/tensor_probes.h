// Probes of what the kernels for tensor cores use: barrier objects, bulk copies, warpgroup multiplications, and the
// functions that bring elements to and from them.
#pragma once

#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/probes.h"

namespace jitconv::test {

/// The compute capability of what only Hopper has.
inline constexpr int kHopper = 90;

/// A generator of its own for each probe, so that a new probe leaves the inputs of the others alone.
std::mt19937_64 random_of_probe(const std::string& name);

/// Words of any bits, by a generator or by the probe's own.
Words random_words(std::mt19937_64& random, std::size_t count);
Words random_words(const std::string& name, std::size_t count);

/// Floats where roundings to TF32 differ.
Words words_to_round(const std::string& name, std::size_t count);

/// How many items a probe of a function has, if they need no memory of their own.
inline constexpr std::size_t kProbeItems = 1 << 13;

struct ElementType {
  std::string name;  ///< "f16"
  std::string_view element;
};
inline const ElementType kF32{"f32", "device/element_f32.cuh"}, kF16{"f16", "device/element_f16.cuh"},
    kBf16{"bf16", "device/element_bf16.cuh"};

std::vector<Probe> tensor_probes();

}  // namespace jitconv::test
