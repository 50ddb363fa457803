// Whether bytes are a shared library that this machine's loader can map, told from their ELF headers. The loader itself
// maps first: a file that is cut short then ends the process with SIGBUS. Says nothing of what the library does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace jitconv::cache {

/// Copies the `size` bytes at `offset`; false if they cannot be read.
using ReadAt = std::function<bool(std::uint64_t offset, void* to, std::size_t size)>;

/// Why a file of `bytes` bytes cannot be loaded, e.g. "cut short"; empty if it can.
std::string defect_of_shared_object(std::uint64_t bytes, const ReadAt& read_at);

/// The same of a file that is in memory.
std::string defect_of_shared_object(std::string_view image);

}  // namespace jitconv::cache
