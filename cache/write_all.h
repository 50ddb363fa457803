// Writing bytes to a descriptor, for every folder that writes files: the store, host modules, dumps, the log. A write
// past the limit on file sizes (RLIMIT_FSIZE) or to a pipe without a reader is an error like a full disk, although the
// kernel's own answer is a signal that kills the process. Opening, syncing and closing are the caller's.
#pragma once

#include <string_view>

namespace jitconv::cache {

/// Writes all of `bytes` at the descriptor's position. Returns 0 or an errno: EFBIG beyond RLIMIT_FSIZE.
int write_all(int descriptor, std::string_view bytes);

/// Calls write() once for all of `bytes`, so that lines of several threads do not mix. Returns 0 or an errno: EIO if
/// only a part was written.
int write_once(int descriptor, std::string_view bytes);

}  // namespace jitconv::cache
