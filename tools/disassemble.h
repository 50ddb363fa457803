// Cubin to SASS with NVIDIA's own disassembler, run without a shell.
#pragma once

#include <string>

namespace jitconv::tools {

/// The disassembly of a cubin. Looks for nvdisasm, then cuobjdump, on PATH, in CUDA_HOME and CUDA_PATH, in
/// /usr/local/cuda and beside the NVRTC that jitconv uses. Throws ToolError (kCompile) if neither is there or it fails.
std::string disassemble(const std::string& cubin);

}  // namespace jitconv::tools
