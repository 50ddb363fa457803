// The format of one cache file: magic, schema, the full key, kind, lengths, SHA-256 of the rest, metadata, payload.
// An entry names its own key, so a valid file under the wrong name is a miss. docs/cache.md has the byte layout.
#pragma once

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

std::string encode(const Entry& entry);

/// Why bytes are not the entry of a key; printable.
struct DecodeFailure {
  std::string reason;
};

std::variant<Entry, DecodeFailure> decode(std::string_view bytes, const Key& expected);

/// As above without an expected key, for tools that list or verify files.
std::variant<Entry, DecodeFailure> decode(std::string_view bytes);

}  // namespace jitconv::cache
