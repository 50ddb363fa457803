// A folder for one run of a compiler: private, gone when it is done, and if its process dies before that, removed by
// the next one that makes such a folder. What is in it is the caller's.
#pragma once

#include <filesystem>

#include "cache/files.h"

namespace jitconv::host {

class ScratchFolder {
 public:
  /// Made with mode 0700 in TMPDIR, else in /tmp. Throws CompileError (compile_failed).
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }  ///< absolute

 private:
  std::filesystem::path path_;
  cache::FileDescriptor lock_{-1};
};

}  // namespace jitconv::host
