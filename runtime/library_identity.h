// Tells one shared library from another by the GNU build id in its ELF notes: of a file, read with pread and not
// loaded, or of what is loaded already. Also whether a file can be loaded at all.
#pragma once

#include <string>

namespace jitconv::runtime {

/// Hex digits of the GNU build id, or "size-sha256" of the whole file where it has none. Empty if the file cannot be
/// read or is not a 64-bit little-endian ELF file.
std::string library_identity(const std::string& path);

/// Why the loader cannot map the library at `path`; empty if it can. Reads headers only.
std::string library_defect(const std::string& path);

/// Hex digits of the GNU build id of the loaded library that holds `symbol`; empty where it has none.
std::string loaded_build_id(const void* symbol);

}  // namespace jitconv::runtime
