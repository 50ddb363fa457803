// KernelSource -> the C++ text that the machine's compiler takes: the generated CUDA, unchanged, between a prelude and
// one wrapper per entry, with the CPU models of models/ in place of the device functions that have one. Pure text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "codegen/source.h"
#include "codegen/text/template_text.h"

namespace jitconv::host {

/// Text for the C++ compiler. Every line that came from the generated text keeps its number and is of the file that
/// source_file() names. Throws CompileError (unsupported), naming the instruction, if the text holds `asm` that has no
/// model, and for shared memory other than the dynamic.
std::string translate(const codegen::KernelSource& source);

/// "<first entry>.cu"
std::string source_file(const codegen::KernelSource& source);

/// Name of the wrapper that calls an entry.
std::string wrapper_name(const std::string& entry);

/// The text with line numbers, for reading a compiler's log.
std::string with_line_numbers(std::string_view text);

/// module_abi.h and models/*, put into the library by the build, named relative to host/.
const std::vector<codegen::EmbeddedFile>& embedded_files();

/// SHA-256 (hex) over everything of host/ that decides what a module is, computed by the build: part of cache keys.
std::string_view fingerprint();

}  // namespace jitconv::host
