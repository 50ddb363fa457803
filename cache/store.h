// Cache entries on disk. One rule: the cache can make jitconv slower, never wrong, never dead, never stuck. Every file
// problem is a miss or a dropped store, counted and said once on stderr; nothing here throws for the state of a disk.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cache/entry.h"

namespace jitconv::cache {

enum class Mode : std::uint8_t { read_write, read_only, off };

struct StoreConfig {
  std::string root;  ///< empty: JITCONV_CACHE is off, or no directory could be found
  Mode mode = Mode::read_write;
  std::uint64_t max_bytes = std::uint64_t{1} << 30;
};

/// From JITCONV_CACHE_DIR, JITCONV_CACHE (rw, ro, off), JITCONV_CACHE_MAXSIZE (bytes, or with K, M, G), else
/// $XDG_CACHE_HOME/jitconv or ~/.cache/jitconv. Ignores the environment in set-uid programs. A value it cannot read
/// turns the cache off and is reported through the warning callback. An empty value counts as unset.
StoreConfig store_config_from_environment(const std::function<void(const std::string&)>& warn);

struct StoreStatistics {
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;   ///< every load that was not a hit, unless the store is off
  std::uint64_t corrupt = 0;  ///< misses because of a file that was not the entry it should be
  std::uint64_t stored = 0;
  std::uint64_t errors = 0;   ///< file operations that failed or were refused
  std::uint64_t evicted = 0;  ///< entries removed to keep the size limit
};

/// What list and verify say of one file.
struct FileReport {
  std::string path;  ///< relative to the root
  std::string key;   ///< hex, from the file name
  std::uint64_t bytes = 0;
  std::int64_t modified_unix_s = 0;   ///< the last use, give or take a day
  std::optional<EntrySummary> entry;  ///< as the start of the file has it; nothing if that is not an entry's
  /// Why the file would not be used. list() sees only what is wrong with the start of the file.
  std::optional<std::string> problem;
};

/// What prune and clear did.
struct Removal {
  std::uint64_t bytes = 0;             ///< removed
  std::uint64_t left = 0;              ///< files that should have gone and could not be removed
  std::optional<std::string> problem;  ///< the first reason why a file was left, or a directory was not looked into
};

/// Thread-safe. What root owns and nobody else may write to is read by every user, and written by root alone; all else
/// must belong to the effective user, and nobody else may write to it. Directory layout: root/v<schema>/<first 2 hex
/// digits>/<64 hex digits>.
class Store {
 public:
  /// `warn` gets each kind of trouble once, without a line end, from whichever thread met it; by default it goes to
  /// stderr. Nothing is opened or created before it is needed.
  explicit Store(StoreConfig config, std::function<void(const std::string&)> warn = {});
  ~Store();

  std::optional<Entry> load(const Key& key);
  /// Publishes atomically; false if it could not. The caller keeps using its own bytes either way.
  bool save(const Entry& entry);

  /// Entries of this schema whose key in hex begins with `prefix`, ordered by path. Reads the start of each.
  std::vector<FileReport> list(const std::string& prefix = {}) const;
  /// As list(), after reading and checking every one.
  std::vector<FileReport> verify(const std::string& prefix = {}) const;
  /// Removes the least recently used entries until at most max_bytes are left, and temporary files older than an hour.
  /// save() does the same when the size limit is about to be passed.
  Removal prune(std::uint64_t max_bytes);
  /// Removes every entry. Only files this class names are ever touched.
  Removal clear();

  StoreStatistics statistics() const;
  /// As given to the constructor.
  const StoreConfig& config() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace jitconv::cache
