// The store: load, save, and the upkeep of the directory. Every operation opens the root anew, so a cache that is
// removed, replaced or shared at any moment costs a recompilation and nothing else. No lock is ever waited for.
#include "cache/store.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <exception>

#include "cache/entry_file.h"
#include "cache/files.h"
#include "cache/scan.h"

namespace jitconv::cache {

namespace {

constexpr std::int64_t kTouchIntervalNs = std::int64_t{24} * 3600 * 1'000'000'000;
/// save() looks at the whole directory once per this fraction of the size limit that it stores.
constexpr std::uint64_t kScansPerLimit = 32;
constexpr int kSaveAttempts = 3;

void warn_on_stderr(const std::string& message) { std::fprintf(stderr, "jitconv: %s\n", message.c_str()); }

/// Adds to a counter for the length of a scope.
class Counted {
 public:
  Counted(std::atomic<std::uint64_t>& counter, std::uint64_t count) : counter_(counter), count_(count) {
    counter_ += count_;
  }
  ~Counted() { counter_ -= count_; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  std::atomic<std::uint64_t>& counter_;
  std::uint64_t count_;
};

/// Troubles with the root that do not pass by themselves.
bool is_lasting(const Problem& problem) {
  constexpr std::array kLasting = {EACCES, EPERM, EROFS, ENAMETOOLONG, ENOTDIR, ELOOP};
  return problem.kind == Problem::Kind::refused ||
         std::find(kLasting.begin(), kLasting.end(), problem.error) != kLasting.end();
}

/// The directory that holds the entry of a key.
Outcome<FileDescriptor> open_folder(const FileDescriptor& root, const Key& key, Access access) {
  auto schema = open_directory(root, schema_directory(kSchema), access);
  if (std::holds_alternative<Problem>(schema)) return schema;
  return open_directory(std::get<FileDescriptor>(schema), fan_out_directory(key), access);
}

}  // namespace

struct Store::State {
  State(StoreConfig given, std::function<void(const std::string&)> warn_with)
      : config(std::move(given)),
        warn(warn_with ? std::move(warn_with) : warn_on_stderr),
        root(without_trailing_slashes(config.root)) {
    // Where a process starts between two scans is random, so that many short ones together scan as often as a long one.
    unscanned_bytes = random_number() % (scan_interval() + 1);
  }

  const StoreConfig config;
  const std::function<void(const std::string&)> warn;
  const std::string root;

  std::atomic<bool> off{false};
  std::atomic<bool> foreign{false};  ///< the root belongs to root, and this is another user
  std::atomic<bool> warned_of_trouble{false}, warned_of_corruption{false};
  std::atomic<std::uint64_t> hits{0}, misses{0}, corrupt{0}, stored{0}, errors{0}, evicted{0};
  std::atomic<std::uint64_t> unscanned_bytes{0};  ///< counted by make_room() since the last scan, at most one interval
  std::atomic<std::uint64_t> unpublished_bytes{0};  ///< of entries that save() is busy with
  /// A flag and not a mutex: a child forked while it is set scans for every entry, but never hangs.
  std::atomic<bool> scanning{false};

  std::uint64_t scan_interval() const { return config.max_bytes / kScansPerLimit; }
  bool may_read() const { return config.mode != Mode::off && !off; }
  bool may_write() const { return config.mode == Mode::read_write && !off && !foreign; }

  void turn_off(const std::string& reason) {
    ++errors;
    if (!off.exchange(true)) warn("disk cache is off: " + reason);
  }

  void turn_read_only(const std::string& reason) {
    ++errors;
    if (!foreign.exchange(true)) warn("disk cache: " + reason + " (JITCONV_CACHE=ro says that this is intended)");
  }

  void report(const Problem& problem) {
    if (problem.kind == Problem::Kind::absent) return;
    ++errors;
    if (!warned_of_trouble.exchange(true)) {
      warn("disk cache: " + problem.text + " (going on without; further trouble is not reported)");
    }
  }

  void report_corrupt(const std::string& name, const DecodeFailure& failure) {
    ++corrupt;
    if (!warned_of_corruption.exchange(true)) {
      warn("disk cache: ignoring entry " + name + " in " + root + ": " + failure.reason +
           " (further ones are not reported)");
    }
  }

  /// The root, or nothing after the trouble has been dealt with.
  std::optional<FileDescriptor> open_store(Access access);
  std::optional<Entry> load(const Key& key);
  std::optional<Problem> publish(const Key& key, std::string_view bytes);
  bool save(const Entry& entry);
  /// Called before an entry is published; once it has scanned, a process does not pass the limit.
  void make_room(std::uint64_t bytes);
  Removed prune(std::uint64_t max_bytes, const Trouble& trouble);
  std::vector<FileReport> reports(const std::string& prefix, Depth depth);

  /// Runs `remove(trouble)` and keeps account of what it could not do.
  template <class Remove>
  Removal account(Remove remove) {
    Removal removal;
    const Removed removed = remove([&](const Problem& problem) {
      ++errors;
      if (!removal.problem) removal.problem = problem.text;
    });
    removal.bytes = removed.bytes;
    removal.left = removed.left;
    return removal;
  }

  /// Runs an operation that may run out of memory.
  template <class Operation>
  auto guarded(Operation operation) -> decltype(operation()) {
    try {
      return operation();
    } catch (const std::exception&) {
      ++errors;
      return {};
    }
  }
};

std::optional<FileDescriptor> Store::State::open_store(Access access) {
  if (root.empty() || root.front() != '/' || root.find('\0') != std::string::npos) {
    turn_off("the directory '" + root + "' is not an absolute path");
    return std::nullopt;
  }
  auto opened = open_root(root, access);
  if (auto* directory = std::get_if<FileDescriptor>(&opened)) return std::move(*directory);
  const Problem& problem = std::get<Problem>(opened);
  if (problem.kind == Problem::Kind::foreign) {
    turn_read_only(problem.text);
  } else if (is_lasting(problem)) {
    turn_off(problem.text);
  } else {
    report(problem);
  }
  return std::nullopt;
}

std::optional<Entry> Store::State::load(const Key& key) {
  const auto directory = open_store(Access::read);
  if (!directory) return std::nullopt;
  const auto folder = open_folder(*directory, key, Access::read);
  if (const auto* problem = std::get_if<Problem>(&folder)) {
    report(*problem);
    return std::nullopt;
  }
  const std::string name = key.hex();
  const auto opened = open_file(std::get<FileDescriptor>(folder), name);
  if (const auto* problem = std::get_if<Problem>(&opened)) {
    report(*problem);
    return std::nullopt;
  }
  const auto& file = std::get<OpenFile>(opened);
  const bool writable = may_write() && file.own;
  auto read = read_entry(file, key);
  if (const auto* problem = std::get_if<Problem>(&read)) {
    report(*problem);
    return std::nullopt;
  }
  if (const auto* failure = std::get_if<DecodeFailure>(&read)) {
    report_corrupt(name, *failure);
    if (writable) remove_unchanged(std::get<FileDescriptor>(folder), name, file.identity);
    return std::nullopt;
  }
  // Eviction goes by modification time because access times are often not kept. Once a day is as good as every time.
  const std::int64_t modified_ns = file.identity.modified_ns, now = now_ns();
  if (writable && (now - modified_ns > kTouchIntervalNs || in_future(modified_ns, now))) touch(file.file);
  return std::get<Entry>(std::move(read));
}

std::optional<Problem> Store::State::publish(const Key& key, std::string_view bytes) {
  const auto directory = open_store(Access::create);
  if (!directory) return Problem{Problem::Kind::absent, 0, {}};
  auto folder = open_folder(*directory, key, Access::create);
  if (auto* problem = std::get_if<Problem>(&folder)) return std::move(*problem);
  return publish_file(std::get<FileDescriptor>(folder), temporary_name(), key.hex(), bytes);
}

bool Store::State::save(const Entry& entry) {
  const std::uint64_t size = encoded_bytes(entry);
  if (size > config.max_bytes || !fits_format(entry)) return false;
  const Counted unpublished(unpublished_bytes, size);
  make_room(size);
  const std::string bytes = encode(entry);
  for (int attempt = 1; may_write(); ++attempt) {
    const auto problem = publish(entry.key, bytes);
    if (!problem) return true;
    // A directory or temporary file that vanishes under our hands was removed by somebody tidying up: start over.
    const bool vanished = problem->error == ENOENT || problem->error == EEXIST || problem->error == ESTALE;
    if (vanished && attempt < kSaveAttempts) continue;
    report(vanished ? Problem{Problem::Kind::failed, problem->error, "the directory vanishes while an entry is stored"}
                    : *problem);
    break;
  }
  return false;
}

void Store::State::make_room(std::uint64_t bytes) {
  std::uint64_t counted = unscanned_bytes;
  while (counted + bytes <= scan_interval()) {
    if (unscanned_bytes.compare_exchange_weak(counted, counted + bytes)) return;
  }
  const bool first = !scanning.exchange(true);
  counted = unscanned_bytes;
  // What other threads publish meanwhile is on its way already, or counted: an interval before this scan ends, one
  // after.
  prune(config.max_bytes - std::min<std::uint64_t>(config.max_bytes, 2 * scan_interval() + unpublished_bytes),
        [this](const Problem& problem) { report(problem); });
  if (!first) return;  // the scan that began before lets the counter start anew
  unscanned_bytes -= counted;
  scanning = false;
}

Removed Store::State::prune(std::uint64_t max_bytes, const Trouble& trouble) {
  return guarded([&]() -> Removed {
    const auto directory = open_store(Access::write);
    if (!directory) return {};
    const Removed removed = remove_oldest(*directory, max_bytes, trouble);
    evicted += removed.files;
    return removed;
  });
}

std::vector<FileReport> Store::State::reports(const std::string& prefix, Depth depth) {
  std::vector<FileReport> found;
  const auto directory = open_store(Access::read);
  if (!directory) return found;
  const auto visit = [&](const FileDescriptor& folder, const FoundFile& file) {
    if (file.temporary || file.schema != schema_directory(kSchema) || !file.name.starts_with(prefix)) return;
    const auto opened = open_file(folder, file.name);
    const auto* problem = std::get_if<Problem>(&opened);
    if (problem && problem->kind == Problem::Kind::absent) return;
    Inspection inspection =
        problem ? Inspection{std::nullopt, problem->text} : inspect_entry(std::get<OpenFile>(opened), file.name, depth);
    found.push_back({file.schema + "/" + file.fan_out + "/" + file.name, file.name, file.status.identity.bytes,
                     file.status.identity.modified_ns / 1'000'000'000, std::move(inspection.entry),
                     std::move(inspection.problem)});
  };
  for_each_file(*directory, visit, [this](const Problem& problem) { report(problem); });
  std::sort(found.begin(), found.end(), [](const FileReport& a, const FileReport& b) { return a.path < b.path; });
  return found;
}

Store::Store(StoreConfig config, std::function<void(const std::string&)> warn)
    : state_(std::make_unique<State>(std::move(config), std::move(warn))) {}

Store::~Store() = default;

std::optional<Entry> Store::load(const Key& key) {
  if (!state_->may_read()) return std::nullopt;
  auto entry = state_->guarded([&] { return state_->load(key); });
  ++(entry ? state_->hits : state_->misses);
  return entry;
}

bool Store::save(const Entry& entry) {
  if (!state_->may_write()) return false;
  const bool saved = state_->guarded([&] { return state_->save(entry); });
  if (saved) ++state_->stored;
  return saved;
}

std::vector<FileReport> Store::list(const std::string& prefix) const {
  if (!state_->may_read()) return {};
  return state_->guarded([&] { return state_->reports(prefix, Depth::start); });
}

std::vector<FileReport> Store::verify(const std::string& prefix) const {
  if (!state_->may_read()) return {};
  return state_->guarded([&] { return state_->reports(prefix, Depth::whole); });
}

Removal Store::prune(std::uint64_t max_bytes) {
  if (!state_->may_write()) return {};
  return state_->account([&](const Trouble& trouble) { return state_->prune(max_bytes, trouble); });
}

Removal Store::clear() {
  if (!state_->may_write()) return {};
  return state_->account([&](const Trouble& trouble) {
    return state_->guarded([&]() -> Removed {
      const auto directory = state_->open_store(Access::write);
      return directory ? remove_all(*directory, trouble) : Removed{};
    });
  });
}

StoreStatistics Store::statistics() const {
  return {state_->hits, state_->misses, state_->corrupt, state_->stored, state_->errors, state_->evicted};
}

const StoreConfig& Store::config() const { return state_->config; }

}  // namespace jitconv::cache
