// Writing bytes to a descriptor, for every folder that writes files: the store, host modules, dumps. A write past the
// limit on file sizes (RLIMIT_FSIZE) is an error like a full disk, although the kernel's own answer is a signal that
// kills the process. Opening, syncing and closing are the caller's.
#pragma once

#include <string_view>

namespace jitconv::cache {

/// Writes all of `bytes` at the descriptor's position. Returns 0 or an errno: EFBIG beyond RLIMIT_FSIZE.
int write_all(int descriptor, std::string_view bytes);

}  // namespace jitconv::cache
