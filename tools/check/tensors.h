// Which tensors a launch of a spec takes: the one list that whoever lays them out, fills, poisons or reads them goes
// through. Knows LaunchArgs; allocates nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "jitconv/kernel.h"
#include "jitconv/spec.h"
#include "tools/check/data.h"
#include "tools/check/reference.h"

namespace jitconv::check {

/// A tensor that the launch reads.
struct Input {
  const char* name;
  const void* LaunchArgs::*pointer;
  std::int64_t count;  ///< elements; 0 of no images: the pointer is then null
  DataType type;
  Fill Data::*fill;
  Operand Operands::*operand;
  std::int64_t bytes() const { return count * element_bytes(type); }
};

/// A tensor that the launch writes.
struct Result {
  const char* name;
  void* LaunchArgs::*pointer;
  std::int64_t count, first;  ///< elements, and the position of the first: see positions in reference.h
  DataType type;
  std::int64_t bytes() const { return count * element_bytes(type); }
};

std::vector<Input> inputs_of(const ConvSpec& spec);

/// The operation's result, then db if there is one.
std::vector<Result> results_of(const ConvSpec& spec);

/// Bytes of all inputs and results.
std::int64_t tensor_bytes(const ConvSpec& spec);

}  // namespace jitconv::check
