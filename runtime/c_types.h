// What the C interface's structs say, as C++ values, and back. Throws SpecError where a struct cannot be read. For
// c_api.cpp alone.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "jitconv/jitconv.h"
#include "jitconv/jitconv.hpp"

namespace jitconv::c {

// Sizes of the first version of each struct: less was never valid.
inline constexpr std::size_t kFirstSpec = 192, kFirstArgs = 56, kFirstResources = 32, kFirstStats = 48;
inline constexpr std::size_t kFirstCompileOptions = 16, kFirstPrepareOptions = 32, kFirstTuneOptions = 24;
static_assert(sizeof(jitconv_spec) >= kFirstSpec && sizeof(jitconv_launch_args) >= kFirstArgs);
static_assert(sizeof(jitconv_resources) >= kFirstResources && sizeof(jitconv_stats) >= kFirstStats);
static_assert(sizeof(jitconv_compile_options) >= kFirstCompileOptions);
static_assert(sizeof(jitconv_prepare_options) >= kFirstPrepareOptions);
static_assert(sizeof(jitconv_tune_options) >= kFirstTuneOptions);

/// Throws SpecError (invalid_argument).
[[noreturn]] void refuse(const char* field, const std::string& message);

template <typename T>
T* required(T* pointer, const char* name) {
  if (pointer == nullptr) refuse(name, std::string(name) + " is null");
  return pointer;
}

void check_struct_size(std::size_t size, std::size_t smallest, const char* name);
void require_zero(std::int64_t value, const char* name);

/// A caller's struct, whatever its version, as this library's. Fields the caller does not have are zero; fields this
/// library does not have must be.
template <typename T>
T read_struct(const T* from, std::size_t smallest, const char* name) {
  const std::size_t size = required(from, name)->struct_size;
  check_struct_size(size, smallest, name);
  const char* bytes = reinterpret_cast<const char*>(from);
  if (size > sizeof(T) && std::any_of(bytes + sizeof(T), bytes + size, [](char byte) { return byte != 0; })) {
    throw SpecError(ErrorCode::unsupported, name,
                    std::string(name) + " sets a field that this version of jitconv, " + version() + ", does not have");
  }
  T copy{};
  std::memcpy(&copy, bytes, std::min(size, sizeof(T)));
  return copy;
}

/// Fills as much of the caller's struct as both sides know, and zeroes what only the caller knows.
template <typename T>
void write_struct(T value, T* to, std::size_t smallest, const char* name) {
  const std::uint32_t size = required(to, name)->struct_size;
  check_struct_size(size, smallest, name);
  std::memset(static_cast<void*>(to), 0, size);
  value.struct_size = size;
  std::memcpy(to, &value, std::min<std::size_t>(size, sizeof(T)));
}

ConvSpec to_spec(const jitconv_spec* from);
jitconv_spec from_spec(const ConvSpec& spec);
/// write_struct() of a spec, unless that would leave out what a smaller struct cannot say.
void write_spec(const ConvSpec& from, jitconv_spec* to);
CompileOptions to_options(const jitconv_compile_options* from, const std::string& name);
PrepareOptions to_options(const jitconv_prepare_options* from);
TuneOptions to_options(const jitconv_tune_options* from);
/// An array of specs, each as large as the caller's header says.
std::vector<ConvSpec> to_specs(const jitconv_spec* from, std::size_t count);
/// "sm_90a" for a GPU, "host" or "host-sm_90a" for this machine's CPU.
Target to_target(std::string_view arch);
void copy_shape(const TensorShape& shape, std::int64_t* to);

}  // namespace jitconv::c
