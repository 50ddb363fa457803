// JITCONV_DUMP_DIR: what is compiled, written where a person can read it. Best effort: nothing depends on these files.
#pragma once

#include <string_view>

#include "cache/key.h"
#include "codegen/source.h"

namespace jitconv::runtime {

/// Writes <name of the first kernel>_<8 digits of the key><suffix> into JITCONV_DUMP_DIR, if that is set: kernels of
/// one name differ in their keys. Makes the directory if there is none. Never writes through a link: one that has the
/// file's name is replaced, and a directory that is a symbolic link is refused. Says once if writing is impossible.
void dump(const codegen::KernelSource& source, const cache::Key& key, std::string_view suffix, std::string_view bytes);

}  // namespace jitconv::runtime
