// Walks the files of a store: which names are its own, and removal of the oldest. Names that jitconv does not give are
// never reported, so nothing built on this touches them.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "cache/files.h"
#include "cache/key.h"

namespace jitconv::cache {

/// "v1".
std::string schema_directory(std::uint64_t schema);
/// The first two hex digits: 256 directories keep lookups fast with any number of entries.
std::string fan_out_directory(const Key& key);
/// A name no other writer uses, for a file that becomes an entry once it is whole.
std::string temporary_name();

/// One file with a name of ours.
struct FoundFile {
  std::string schema, fan_out, name;
  FileStatus status;
  bool temporary = false;  ///< otherwise an entry
};

/// Calls `visit` with every file of this schema and of older ones that share the layout, and the directory it lies in.
/// Directories that cannot be read, or must not be trusted, are left out.
void for_each_file(const FileDescriptor& root,
                   const std::function<void(const FileDescriptor&, const FoundFile&)>& visit);

struct Removed {
  std::uint64_t files = 0;  ///< entries
  std::uint64_t bytes = 0;  ///< entries and temporary files
};

/// Removes temporary files older than an hour, then entries, least recently modified first, until at most max_bytes of
/// entries are left. A file that changes meanwhile is kept.
Removed remove_oldest(const FileDescriptor& root, std::uint64_t max_bytes);

/// Removes every entry, whatever it holds, and temporary files older than an hour.
Removed remove_all(const FileDescriptor& root);

}  // namespace jitconv::cache
