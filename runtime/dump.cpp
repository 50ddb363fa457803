// Writes the files of JITCONV_DUMP_DIR. See dump.h.
#include "runtime/dump.h"

#include <fcntl.h>

#include <atomic>
#include <filesystem>
#include <string>

#include "cache/files.h"
#include "cache/write_all.h"
#include "runtime/env.h"
#include "runtime/log.h"

namespace jitconv::runtime {

void dump(const codegen::KernelSource& source, const cache::Key& key, std::string_view suffix, std::string_view bytes) {
  const std::string directory = dump_directory();
  if (directory.empty() || source.entries.empty()) return;
  std::error_code ignored;
  std::filesystem::create_directories(directory, ignored);
  const std::string path =
      directory + "/" + source.entries.front().name + "_" + key.hex().substr(0, 8) + std::string(suffix);
  const cache::FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  const bool written = file.get() >= 0 && cache::write_all(file.get(), bytes) == 0;
  static std::atomic<bool> warned{false};
  if (!written && !warned.exchange(true)) log(LogLevel::warn, "cannot write " + path + " (JITCONV_DUMP_DIR)");
}

}  // namespace jitconv::runtime
