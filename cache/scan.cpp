// See scan.h. Other processes create, touch and remove files during every walk here; whatever vanished is skipped.
#include "cache/scan.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

namespace jitconv::cache {

namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";
constexpr std::string_view kDecimalDigits = "0123456789";
constexpr std::string_view kTemporaryPrefix = "tmp-";
constexpr std::size_t kRandomDigits = 16;
// A writer needs seconds at most; an hour allows for a slow network and a suspended process.
constexpr std::int64_t kStaleTemporaryNs = std::int64_t{3600} * 1'000'000'000;

bool consists_of(std::string_view text, std::string_view characters) {
  return !text.empty() && text.find_first_not_of(characters) == std::string_view::npos;
}

bool is_schema_directory(std::string_view name) {
  if (name.size() < 2 || name.size() > 10 || name[0] != 'v' || !consists_of(name.substr(1), kDecimalDigits)) {
    return false;
  }
  const std::uint64_t schema = std::stoull(std::string(name.substr(1)));
  return schema <= kSchema && name == schema_directory(schema);
}

bool is_fan_out_directory(std::string_view name) { return name.size() == 2 && consists_of(name, kHexDigits); }

bool is_entry(std::string_view name, std::string_view fan_out) {
  return name.size() == 2 * sizeof(Sha256) && consists_of(name, kHexDigits) && name.substr(0, 2) == fan_out;
}

bool is_temporary(std::string_view name) {
  if (name.substr(0, kTemporaryPrefix.size()) != kTemporaryPrefix) return false;
  name.remove_prefix(kTemporaryPrefix.size());
  const std::size_t dash = name.find('-');
  return dash != std::string_view::npos && consists_of(name.substr(0, dash), kDecimalDigits) &&
         name.size() == dash + 1 + kRandomDigits && consists_of(name.substr(dash + 1), kHexDigits);
}

void visit_fan_out(const FileDescriptor& schema, FoundFile file,
                   const std::function<void(const FileDescriptor&, const FoundFile&)>& visit) {
  const auto opened = open_directory(schema, file.fan_out, Create::no);
  const auto* directory = std::get_if<FileDescriptor>(&opened);
  if (!directory) return;
  for_each_name(*directory, [&](const std::string& name) {
    file.temporary = is_temporary(name);
    if (!file.temporary && !is_entry(name, file.fan_out)) return;
    const auto status = examine(*directory, name);
    if (!status) return;
    file.name = name;
    file.status = *status;
    visit(*directory, file);
  });
}

enum class Fate : std::uint8_t { removed, gone_already, kept };

Fate remove_found(const FileDescriptor& root, const FoundFile& file) {
  const auto schema = open_directory(root, file.schema, Create::no);
  if (!std::holds_alternative<FileDescriptor>(schema)) return Fate::gone_already;
  const auto directory = open_directory(std::get<FileDescriptor>(schema), file.fan_out, Create::no);
  if (!std::holds_alternative<FileDescriptor>(directory)) return Fate::gone_already;
  if (remove_unchanged(std::get<FileDescriptor>(directory), file.name, file.status.identity)) return Fate::removed;
  return examine(std::get<FileDescriptor>(directory), file.name) ? Fate::kept : Fate::gone_already;
}

/// Bytes removed. A clock that jumped leaves files of the future; they must not stay for ever.
std::uint64_t remove_if_stale(const FileDescriptor& directory, const FoundFile& file) {
  const FileIdentity& identity = file.status.identity;
  const bool stale = file.status.regular && std::abs(now_ns() - identity.modified_ns) > kStaleTemporaryNs;
  return stale && remove_unchanged(directory, file.name, identity) ? identity.bytes : 0;
}

}  // namespace

std::string schema_directory(std::uint64_t schema) { return "v" + std::to_string(schema); }

std::string fan_out_directory(const Key& key) { return key.hex().substr(0, 2); }

std::string temporary_name() {
  std::string random;
  const std::uint64_t number = random_number();
  for (std::size_t i = 0; i < kRandomDigits; ++i) random += kHexDigits[(number >> (4 * i)) & 15];
  return std::string(kTemporaryPrefix) + std::to_string(getpid()) + "-" + random;
}

void for_each_file(const FileDescriptor& root,
                   const std::function<void(const FileDescriptor&, const FoundFile&)>& visit) {
  for_each_name(root, [&](const std::string& schema_name) {
    if (!is_schema_directory(schema_name)) return;
    const auto opened = open_directory(root, schema_name, Create::no);
    const auto* schema = std::get_if<FileDescriptor>(&opened);
    if (!schema) return;
    for_each_name(*schema, [&](const std::string& fan_out) {
      if (!is_fan_out_directory(fan_out)) return;
      FoundFile file;
      file.schema = schema_name;
      file.fan_out = fan_out;
      visit_fan_out(*schema, file, visit);
    });
  });
}

Removed remove_oldest(const FileDescriptor& root, std::uint64_t max_bytes) {
  Removed removed;
  std::uint64_t total = 0;
  std::vector<FoundFile> entries;
  for_each_file(root, [&](const FileDescriptor& directory, const FoundFile& file) {
    if (!file.status.regular) return;
    if (file.temporary) {
      removed.bytes += remove_if_stale(directory, file);
    } else {
      total += file.status.identity.bytes;
      entries.push_back(file);
    }
  });
  if (total <= max_bytes) return removed;

  std::sort(entries.begin(), entries.end(), [](const FoundFile& a, const FoundFile& b) {
    return a.status.identity.modified_ns < b.status.identity.modified_ns;
  });
  for (const FoundFile& entry : entries) {
    if (total <= max_bytes) break;
    const std::uint64_t bytes = entry.status.identity.bytes;
    const Fate fate = remove_found(root, entry);
    if (fate == Fate::kept) continue;
    total -= bytes;
    if (fate == Fate::removed) {
      ++removed.files;
      removed.bytes += bytes;
    }
  }
  return removed;
}

Removed remove_all(const FileDescriptor& root) {
  Removed removed;
  for_each_file(root, [&](const FileDescriptor& directory, const FoundFile& file) {
    if (file.temporary) {
      removed.bytes += remove_if_stale(directory, file);
    } else if (remove_unchanged(directory, file.name, file.status.identity)) {
      ++removed.files;
      removed.bytes += file.status.identity.bytes;
    }
  });
  return removed;
}

}  // namespace jitconv::cache
