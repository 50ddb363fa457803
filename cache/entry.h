// The format of one cache file: magic, schema, the full key, kind, lengths, metadata, payload, SHA-256 of all that
// precedes. An entry names its own key, so a valid file under the wrong name is a miss. docs/cache.md has the byte
// layout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "cache/key.h"

namespace jitconv::cache {

enum class EntryKind : std::uint32_t { cubin = 1, ptx = 2, host = 3 };

struct Entry {
  Key key;
  EntryKind kind = EntryKind::cubin;
  std::string metadata;  ///< what the writer wants back besides the payload: the compiler's log
  std::string payload;
  bool operator==(const Entry&) const = default;
};

/// Bytes before the metadata.
inline constexpr std::size_t kHeaderBytes = 72;
/// No entry is larger; a file that is was not written by jitconv.
inline constexpr std::uint64_t kMaxEntryBytes = std::uint64_t{1} << 30;

/// Size of encode(entry).
std::uint64_t encoded_bytes(const Entry& entry);

std::string encode(const Entry& entry);

/// Why bytes are not the entry of a key; printable.
struct DecodeFailure {
  std::string reason;
};

/// Checks the header of a file of `file_bytes` bytes before memory is spent on the rest: magic, schema, and lengths
/// that add up to exactly file_bytes. `start` is the first kHeaderBytes of the file, or all of it if it is shorter.
std::optional<DecodeFailure> check_header(std::string_view start, std::uint64_t file_bytes);

std::variant<Entry, DecodeFailure> decode(std::string_view bytes, const Key& expected);

/// As above without an expected key, for tools that list or verify files.
std::variant<Entry, DecodeFailure> decode(std::string_view bytes);

}  // namespace jitconv::cache
