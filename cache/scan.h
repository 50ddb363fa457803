// Walks the files of a store: which names are its own, and removal of the oldest. Names that jitconv does not give are
// never reported, so nothing built on this touches them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "cache/files.h"
#include "cache/key.h"

namespace jitconv::cache {

/// "v2".
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

using Trouble = std::function<void(const Problem&)>;

/// Calls `visit` with every file of this schema and of older ones that share the layout, and the directory it lies in.
/// Directories and files that cannot be examined, or must not be trusted, are left out and given to `trouble`.
void for_each_file(const FileDescriptor& root,
                   const std::function<void(const FileDescriptor&, const FoundFile&)>& visit, const Trouble& trouble);

struct Removed {
  std::uint64_t files = 0;  ///< entries
  std::uint64_t bytes = 0;  ///< entries and temporary files
  std::uint64_t left = 0;   ///< files that should have gone, but the system refused
};

/// Removes temporary files older than an hour, then entries until at most max_bytes of them are left: first those dated
/// in the future, then the least recently modified. A file that changes meanwhile is kept.
Removed remove_oldest(const FileDescriptor& root, std::uint64_t max_bytes, const Trouble& trouble);

/// Removes every entry, whatever it holds, and temporary files older than an hour.
Removed remove_all(const FileDescriptor& root, const Trouble& trouble);

}  // namespace jitconv::cache
