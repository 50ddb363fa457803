// See scan.h. Other processes create, touch and remove files during every walk here; whatever vanished is skipped.
#include "cache/scan.h"

#include <unistd.h>

#include <algorithm>
#include <utility>
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

using Visit = std::function<void(const FileDescriptor&, const FoundFile&)>;

/// The value of an outcome; null after `trouble` has been told why there is none, unless the file is merely absent.
template <class T>
const T* value_or_tell(const Outcome<T>& outcome, const Trouble& trouble) {
  const auto* problem = std::get_if<Problem>(&outcome);
  if (problem && problem->kind != Problem::Kind::absent) trouble(*problem);
  return std::get_if<T>(&outcome);
}

void list_names(const FileDescriptor& directory, const std::function<void(const std::string&)>& visit,
                const Trouble& trouble) {
  const auto problem = for_each_name(directory, visit);
  if (problem && problem->kind != Problem::Kind::absent) trouble(*problem);
}

void visit_fan_out(const FileDescriptor& schema, FoundFile file, const Visit& visit, const Trouble& trouble) {
  const auto opened = open_directory(schema, file.fan_out, Access::read);
  const auto* directory = value_or_tell(opened, trouble);
  if (!directory) return;
  const auto visit_name = [&](const std::string& name) {
    file.temporary = is_temporary(name);
    if (!file.temporary && !is_entry(name, file.fan_out)) return;
    const auto examined = examine(*directory, name);
    const auto* status = value_or_tell(examined, trouble);
    if (!status) return;
    file.name = name;
    file.status = *status;
    visit(*directory, file);
  };
  list_names(*directory, visit_name, trouble);
}

/// Removes files of one walk and keeps account of them.
class Remover {
 public:
  explicit Remover(const Trouble& trouble) : trouble_(trouble) {}

  /// Removes the version that was found; true if it takes up no space any more, by this call or another process's.
  bool remove(const FileDescriptor& directory, const FoundFile& file) {
    const auto outcome = remove_unchanged(directory, file.name, file.status.identity);
    if (const bool* by_us = std::get_if<bool>(&outcome)) {
      if (*by_us) {
        removed.files += file.temporary ? 0 : 1;
        removed.bytes += file.status.identity.bytes;
      }
      return *by_us;
    }
    return failed(std::get<Problem>(outcome));
  }

  /// The same for a file whose directory is no longer open.
  bool remove_below(const FileDescriptor& root, const FoundFile& file) {
    const auto schema = open_directory(root, file.schema, Access::write);
    if (const auto* problem = std::get_if<Problem>(&schema)) return failed(*problem);
    const auto directory = open_directory(std::get<FileDescriptor>(schema), file.fan_out, Access::write);
    if (const auto* problem = std::get_if<Problem>(&directory)) return failed(*problem);
    return remove(std::get<FileDescriptor>(directory), file);
  }

  /// A clock that jumped leaves files of the future; they must not stay for ever.
  void remove_if_stale(const FileDescriptor& directory, const FoundFile& file) {
    const std::int64_t modified_ns = file.status.identity.modified_ns, now = now_ns();
    const bool stale = now - modified_ns > kStaleTemporaryNs || in_future(modified_ns, now);
    if (file.status.regular && stale) remove(directory, file);
  }

  Removed removed;

 private:
  bool failed(const Problem& problem) {
    if (problem.kind == Problem::Kind::absent) return true;
    ++removed.left;
    trouble_(problem);
    return false;
  }

  const Trouble& trouble_;
};

}  // namespace

std::string schema_directory(std::uint64_t schema) { return "v" + std::to_string(schema); }

std::string fan_out_directory(const Key& key) { return key.hex().substr(0, 2); }

std::string temporary_name() {
  std::string random;
  const std::uint64_t number = random_number();
  for (std::size_t i = 0; i < kRandomDigits; ++i) random += kHexDigits[(number >> (4 * i)) & 15];
  return std::string(kTemporaryPrefix) + std::to_string(getpid()) + "-" + random;
}

void for_each_file(const FileDescriptor& root, const Visit& visit, const Trouble& trouble) {
  const auto visit_schema = [&](const std::string& schema_name) {
    if (!is_schema_directory(schema_name)) return;
    const auto opened = open_directory(root, schema_name, Access::read);
    const auto* schema = value_or_tell(opened, trouble);
    if (!schema) return;
    const auto visit_name = [&](const std::string& fan_out) {
      if (!is_fan_out_directory(fan_out)) return;
      FoundFile file;
      file.schema = schema_name;
      file.fan_out = fan_out;
      visit_fan_out(*schema, file, visit, trouble);
    };
    list_names(*schema, visit_name, trouble);
  };
  list_names(root, visit_schema, trouble);
}

Removed remove_oldest(const FileDescriptor& root, std::uint64_t max_bytes, const Trouble& trouble) {
  Remover remover(trouble);
  std::uint64_t total = 0;
  std::vector<FoundFile> entries;
  const auto visit = [&](const FileDescriptor& directory, const FoundFile& file) {
    if (file.temporary) return remover.remove_if_stale(directory, file);
    if (!file.status.regular) return;
    total += file.status.identity.bytes;
    entries.push_back(file);
  };
  for_each_file(root, visit, trouble);
  if (total <= max_bytes) return remover.removed;

  // A time in the future says nothing of an entry's use, and entries dated so would never be the oldest.
  const auto order = [now = now_ns()](const FoundFile& file) {
    const std::int64_t modified_ns = file.status.identity.modified_ns;
    return std::pair(!in_future(modified_ns, now), modified_ns);
  };
  std::sort(entries.begin(), entries.end(),
            [&](const FoundFile& a, const FoundFile& b) { return order(a) < order(b); });
  for (const FoundFile& entry : entries) {
    if (total <= max_bytes) break;
    if (remover.remove_below(root, entry)) total -= entry.status.identity.bytes;
  }
  return remover.removed;
}

Removed remove_all(const FileDescriptor& root, const Trouble& trouble) {
  Remover remover(trouble);
  const auto visit = [&](const FileDescriptor& directory, const FoundFile& file) {
    file.temporary ? remover.remove_if_stale(directory, file) : static_cast<void>(remover.remove(directory, file));
  };
  for_each_file(root, visit, trouble);
  return remover.removed;
}

}  // namespace jitconv::cache
