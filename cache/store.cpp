// The store: load, save, and the upkeep of the directory. Every operation opens the root anew, so a cache that is
// removed, replaced or shared at any moment costs a recompilation and nothing else. No lock is ever waited for.
#include "cache/store.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "cache/files.h"
#include "cache/scan.h"

namespace jitconv::cache {

namespace {

constexpr std::int64_t kTouchIntervalNs = std::int64_t{24} * 3600 * 1'000'000'000;
/// save() looks at the whole directory once per this fraction of the size limit that it stores.
constexpr std::uint64_t kScansPerLimit = 32;
constexpr int kSaveAttempts = 3;

void warn_on_stderr(const std::string& message) { std::fprintf(stderr, "jitconv: %s\n", message.c_str()); }

/// Without the "/" and "/." at the end, through which open() would follow a symbolic link.
std::string without_trailing_slashes(std::string path) {
  while (path.size() > 1 && (path.back() == '/' || path.ends_with("/."))) path.pop_back();
  return path;
}

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
Outcome<FileDescriptor> open_folder(const FileDescriptor& root, const Key& key, Create create) {
  auto schema = open_directory(root, schema_directory(kSchema), create);
  if (std::holds_alternative<Problem>(schema)) return schema;
  return open_directory(std::get<FileDescriptor>(schema), fan_out_directory(key), create);
}

/// The bytes of an entry file; the size is that of the file, so it bounds what is allocated.
std::variant<std::string, DecodeFailure, Problem> read_entry(const OpenFile& open) {
  const std::uint64_t file_bytes = open.identity.bytes;
  std::array<char, kHeaderBytes> header{};
  const auto header_bytes = static_cast<std::size_t>(std::min<std::uint64_t>(file_bytes, header.size()));
  if (auto problem = read_exactly(open.file, header.data(), header_bytes)) return std::move(*problem);
  if (auto failure = check_header({header.data(), header_bytes}, file_bytes)) return std::move(*failure);

  std::string bytes(header.data(), header_bytes);
  bytes.resize(static_cast<std::size_t>(file_bytes));
  if (auto problem = read_exactly(open.file, bytes.data() + header_bytes, bytes.size() - header_bytes)) {
    return std::move(*problem);
  }
  return bytes;
}

std::variant<Entry, DecodeFailure, Problem> read_and_decode(const OpenFile& open, const Key& key) {
  auto bytes = read_entry(open);
  if (auto* failure = std::get_if<DecodeFailure>(&bytes)) return std::move(*failure);
  if (auto* problem = std::get_if<Problem>(&bytes)) return std::move(*problem);
  auto decoded = decode(std::get<std::string>(bytes), key);
  if (auto* failure = std::get_if<DecodeFailure>(&decoded)) return std::move(*failure);
  return std::get<Entry>(std::move(decoded));
}

/// What verify() says of an entry; the name of its file is the hex form of its key.
std::optional<std::string> problem_of(const OpenFile& open, const std::string& name) {
  auto bytes = read_entry(open);
  if (const auto* failure = std::get_if<DecodeFailure>(&bytes)) return failure->reason;
  if (const auto* problem = std::get_if<Problem>(&bytes)) return problem->text;
  const auto decoded = decode(std::get<std::string>(bytes));
  if (const auto* failure = std::get_if<DecodeFailure>(&decoded)) return failure->reason;
  const std::string key = std::get<Entry>(decoded).key.hex();
  if (key != name) return "is the entry of key " + key;
  return std::nullopt;
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
  std::atomic<bool> warned_of_trouble{false}, warned_of_corruption{false};
  std::atomic<std::uint64_t> hits{0}, misses{0}, corrupt{0}, stored{0}, errors{0}, evicted{0};
  std::atomic<std::uint64_t> unscanned_bytes{0};  ///< counted by make_room() since the last scan, at most one interval
  std::atomic<std::uint64_t> unpublished_bytes{0};  ///< of entries that save() is busy with
  /// A flag and not a mutex: a child forked while it is set scans for every entry, but never hangs.
  std::atomic<bool> scanning{false};

  std::uint64_t scan_interval() const { return config.max_bytes / kScansPerLimit; }
  bool may_read() const { return config.mode != Mode::off && !off; }
  bool may_write() const { return config.mode == Mode::read_write && !off; }

  void turn_off(const std::string& reason) {
    ++errors;
    if (!off.exchange(true)) warn("disk cache is off: " + reason);
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
  std::optional<FileDescriptor> open_store(Create create);
  std::optional<Entry> load(const Key& key);
  std::optional<Problem> publish(const Key& key, std::string_view bytes);
  bool save(const Entry& entry);
  /// Called before an entry is published; once it has scanned, a process does not pass the limit.
  void make_room(std::uint64_t bytes);
  std::uint64_t prune(std::uint64_t max_bytes);
  std::vector<FileReport> reports(bool verify);

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

std::optional<FileDescriptor> Store::State::open_store(Create create) {
  if (root.empty() || root.front() != '/' || root.find('\0') != std::string::npos) {
    turn_off("the directory '" + root + "' is not an absolute path");
    return std::nullopt;
  }
  auto opened = open_root(root, create);
  if (auto* directory = std::get_if<FileDescriptor>(&opened)) return std::move(*directory);
  const Problem& problem = std::get<Problem>(opened);
  if (is_lasting(problem)) {
    turn_off(problem.text);
  } else {
    report(problem);
  }
  return std::nullopt;
}

std::optional<Entry> Store::State::load(const Key& key) {
  const auto directory = open_store(Create::no);
  if (!directory) return std::nullopt;
  const auto folder = open_folder(*directory, key, Create::no);
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
  auto read = read_and_decode(file, key);
  if (const auto* problem = std::get_if<Problem>(&read)) {
    report(*problem);
    return std::nullopt;
  }
  if (const auto* failure = std::get_if<DecodeFailure>(&read)) {
    report_corrupt(name, *failure);
    if (may_write()) remove_unchanged(std::get<FileDescriptor>(folder), name, file.identity);
    return std::nullopt;
  }
  // Eviction goes by modification time because access times are often not kept. Once a day is as good as every time.
  if (may_write() && std::abs(now_ns() - file.identity.modified_ns) > kTouchIntervalNs) touch(file.file);
  return std::get<Entry>(std::move(read));
}

std::optional<Problem> Store::State::publish(const Key& key, std::string_view bytes) {
  const auto directory = open_store(Create::yes);
  if (!directory) return Problem{Problem::Kind::absent, 0, {}};
  auto folder = open_folder(*directory, key, Create::yes);
  if (auto* problem = std::get_if<Problem>(&folder)) return std::move(*problem);
  return publish_file(std::get<FileDescriptor>(folder), temporary_name(), key.hex(), bytes);
}

bool Store::State::save(const Entry& entry) {
  const std::uint64_t size = encoded_bytes(entry);
  if (size > config.max_bytes || size > kMaxEntryBytes) return false;
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
  prune(config.max_bytes - std::min<std::uint64_t>(config.max_bytes, 2 * scan_interval() + unpublished_bytes));
  if (!first) return;  // the scan that began before lets the counter start anew
  unscanned_bytes -= counted;
  scanning = false;
}

std::uint64_t Store::State::prune(std::uint64_t max_bytes) {
  return guarded([&]() -> std::uint64_t {
    const auto directory = open_store(Create::no);
    if (!directory) return 0;
    const Removed removed = remove_oldest(*directory, max_bytes);
    evicted += removed.files;
    return removed.bytes;
  });
}

std::vector<FileReport> Store::State::reports(bool verify) {
  std::vector<FileReport> found;
  const auto directory = open_store(Create::no);
  if (!directory) return found;
  for_each_file(*directory, [&](const FileDescriptor& folder, const FoundFile& file) {
    if (file.temporary || file.schema != schema_directory(kSchema)) return;
    FileReport report{file.schema + "/" + file.fan_out + "/" + file.name, file.name, file.status.identity.bytes,
                      file.status.identity.modified_ns / 1'000'000'000, std::nullopt};
    if (verify) {
      const auto opened = open_file(folder, file.name);
      const auto* problem = std::get_if<Problem>(&opened);
      if (problem && problem->kind == Problem::Kind::absent) return;
      report.problem = problem ? problem->text : problem_of(std::get<OpenFile>(opened), file.name);
    }
    found.push_back(std::move(report));
  });
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

std::vector<FileReport> Store::list() const {
  if (!state_->may_read()) return {};
  return state_->guarded([&] { return state_->reports(false); });
}

std::vector<FileReport> Store::verify() const {
  if (!state_->may_read()) return {};
  return state_->guarded([&] { return state_->reports(true); });
}

std::uint64_t Store::prune(std::uint64_t max_bytes) { return state_->may_write() ? state_->prune(max_bytes) : 0; }

std::uint64_t Store::clear() {
  if (!state_->may_write()) return 0;
  return state_->guarded([&]() -> std::uint64_t {
    const auto directory = state_->open_store(Create::no);
    return directory ? remove_all(*directory).bytes : 0;
  });
}

StoreStatistics Store::statistics() const {
  return {state_->hits, state_->misses, state_->corrupt, state_->stored, state_->errors, state_->evicted};
}

const StoreConfig& Store::config() const { return state_->config; }

}  // namespace jitconv::cache
