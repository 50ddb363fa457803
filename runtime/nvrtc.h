// NVRTC, opened with dlopen at first use: source text in, cubin out. Also says which NVRTC would be used without
// loading it, because the cache key needs that on a hit too. Knows nothing of convolutions or of the driver.
#pragma once

#include <string>
#include <vector>

#include "runtime/image.h"

namespace jitconv::runtime {

/// Searches JITCONV_NVRTC_PATH (a library or a directory; if set, nothing else is tried), libraries already loaded,
/// Python wheels (nvidia-cuda-nvrtc, -cu12, of the running Python, VIRTUAL_ENV, CONDA_PREFIX or the python3 on PATH),
/// the loader path, CUDA_HOME and CUDA_PATH, /usr/local/cuda. Throws CompileError (compiler_missing) listing every
/// place tried. The library's ELF notes are read, it is not loaded; the version is that in its name or in the name of
/// its builtins library ("13" if neither says more). The answer is kept until the library that is loaded turns out to
/// be another one; a failure is not kept.
const CompilerIdentity& find_compiler();

struct CompiledImage {
  std::string cubin;
  std::string log;  ///< registers, spills and shared memory of every kernel, and warnings
  std::string ptx;  ///< only if asked for
};

/// Compiles to a cubin. Adds options that leave the image as it is: ptxas's statistics for the log, and --no-cache
/// where NVRTC has a cache of its own (12.9). Throws CompileError: compile_failed with log, options and numbered
/// source, unsupported if this NVRTC does not know the architecture, compiler_missing if NVRTC or its builtins cannot
/// be loaded. Concurrent calls run in parallel.
CompiledImage compile_source(const std::string& source, const std::string& program_name,
                             const std::vector<std::string>& options, bool want_ptx = false);

/// "sm_75", "sm_80", ... as nvrtcGetSupportedArchs reports them.
std::vector<std::string> supported_architectures();

}  // namespace jitconv::runtime
