// Directories in which NVRTC may be, by what the environment says of Python, the loader and CUDA toolkits. Lists them
// and nothing else: which library is taken is nvrtc_search.cpp's business.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace jitconv::runtime {

/// Looks up an environment variable; empty if unset.
using Environment = std::function<std::string(const char* name)>;

/// In order of preference: Python wheels, the loader path, CUDA toolkits. Not all of them exist.
std::vector<std::filesystem::path> nvrtc_directories(const Environment& environment);

/// Each directory once, under the first of the names it has among them.
std::vector<std::filesystem::path> without_repetitions(const std::vector<std::filesystem::path>& directories);

/// The entries whose names start with `prefix`, last name first; none if the directory cannot be read. Throws
/// CompileError (compiler_missing) if too many files are open.
std::vector<std::filesystem::path> entries_of(const std::filesystem::path& directory, std::string_view prefix);

}  // namespace jitconv::runtime
