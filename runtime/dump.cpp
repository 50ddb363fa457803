// Writes the files of JITCONV_DUMP_DIR. See dump.h.
#include "runtime/dump.h"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>

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
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  static std::atomic<bool> warned{false};
  if (!file && !warned.exchange(true)) log(LogLevel::warn, "cannot write " + path + " (JITCONV_DUMP_DIR)");
}

}  // namespace jitconv::runtime
