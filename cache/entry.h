// The format of one cache file: magic, schema, the full key, kind, lengths, description, metadata, payload, SHA-256 of
// all that precedes. An entry names its own key, so a valid file under the wrong name is a miss. docs/cache.md has the
// byte layout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "cache/key.h"

namespace jitconv::cache {

/// `choice` is no image: the plan that tuning found to be the fastest, as text.
enum class EntryKind : std::uint32_t { cubin = 1, ptx = 2, host = 3, choice = 4 };

/// One thing worth knowing about an entry, for people: {"target", "sm_90a"}. The cache gives it no meaning.
struct Property {
  std::string name, value;
  bool operator==(const Property&) const = default;
};

struct Entry {
  Key key;
  EntryKind kind = EntryKind::cubin;
  std::string metadata;  ///< what the writer wants back besides the payload: the compiler's log
  std::string payload;
  std::vector<Property> description = {};  ///< how the image was made
  bool operator==(const Entry&) const = default;
};

/// An entry without its two large parts.
struct EntrySummary {
  Key key;
  EntryKind kind = EntryKind::cubin;
  std::vector<Property> description;
  std::uint64_t metadata_bytes = 0, payload_bytes = 0;
};

/// Bytes before the description.
inline constexpr std::size_t kHeaderBytes = 80;
/// No entry has a longer description, so that listing a cache takes little memory whatever the files claim.
inline constexpr std::uint64_t kMaxDescriptionBytes = 64 << 10;
/// No entry is larger; a file that is was not written by jitconv.
inline constexpr std::uint64_t kMaxEntryBytes = std::uint64_t{1} << 30;

/// Size of encode(entry).
std::uint64_t encoded_bytes(const Entry& entry);

/// Whether decode() would take it back: neither it nor its description is too long.
bool fits_format(const Entry& entry);

std::string encode(const Entry& entry);

/// Why bytes are not the entry of a key; printable.
struct DecodeFailure {
  std::string reason;
};

/// Checks the header of a file of `file_bytes` bytes before memory is spent on the rest: magic, schema, and lengths
/// that add up to exactly file_bytes. `start` is the first kHeaderBytes of the file, or all of it if it is shorter.
std::optional<DecodeFailure> check_header(std::string_view start, std::uint64_t file_bytes);

/// Bytes of the header and the description, from a header that passed check_header().
std::size_t front_bytes(std::string_view header);

/// What the first front_bytes() of a file say, from a header that passed check_header(). The digest is not checked:
/// this is what the file claims to be, for listing many files quickly.
std::variant<EntrySummary, DecodeFailure> summarize(std::string_view front);

std::variant<Entry, DecodeFailure> decode(std::string_view bytes, const Key& expected);

/// As above without an expected key, for tools that list or verify files.
std::variant<Entry, DecodeFailure> decode(std::string_view bytes);

}  // namespace jitconv::cache
