// Tells one shared library file from another without loading it: the GNU build id in its ELF notes, read with pread.
#pragma once

#include <string>

namespace jitconv::runtime {

/// Hex digits of the GNU build id, or "size-sha256" of the whole file where it has none. Empty if the file cannot be
/// read or is not a 64-bit little-endian ELF file.
std::string library_identity(const std::string& path);

}  // namespace jitconv::runtime
