// Writes the files of JITCONV_DUMP_DIR. See dump.h.
#include "runtime/dump.h"

#include <atomic>
#include <optional>
#include <string>
#include <variant>

#include "cache/files.h"
#include "cache/scan.h"
#include "runtime/env.h"
#include "runtime/log.h"

namespace jitconv::runtime {
namespace {

/// As a cache entry is published: whoever else can write to the directory chooses neither where the bytes go, nor what
/// they replace.
std::optional<cache::Problem> publish(const std::string& path, const std::string& name, std::string_view bytes) {
  auto opened = cache::open_public_directory(path);
  if (auto* problem = std::get_if<cache::Problem>(&opened)) return std::move(*problem);
  return cache::publish_file(std::get<cache::FileDescriptor>(opened), cache::temporary_name(), name, bytes,
                             cache::Readers::by_umask);
}

}  // namespace

void dump(const codegen::KernelSource& source, const cache::Key& key, std::string_view suffix, std::string_view bytes) {
  const std::string directory = cache::without_trailing_slashes(dump_directory());
  if (directory.empty() || source.entries.empty()) return;
  const std::string name = std::string(source.name()) + "_" + key.hex().substr(0, 8) + std::string(suffix);
  const auto problem = publish(directory, name, bytes);
  static std::atomic<bool> warned{false};
  if (!problem || warned.exchange(true)) return;
  const std::string reason = problem->text.empty() ? "there is no such directory" : problem->text;
  log(LogLevel::warn, "cannot write " + directory + "/" + name + " (JITCONV_DUMP_DIR): " + reason);
}

}  // namespace jitconv::runtime
