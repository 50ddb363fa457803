// Encoding and decoding of cache entries, in memory only. Decoding trusts nothing: every length is compared with the
// size of the file before it is used, and the digest covers every byte before it.
#include "cache/entry.h"

#include <cstring>

#include "cache/bytes.h"

namespace jitconv::cache {

namespace {

// The line ends reveal a file that was copied as text; the first byte is not ASCII, so no editor takes it for text.
constexpr std::string_view kMagic("\x93jitc\r\n\n", 8);

// Offsets of the header's fields.
constexpr std::size_t kSchemaAt = 8;
constexpr std::size_t kKeyAt = 16;
constexpr std::size_t kKindAt = 48;
constexpr std::size_t kDescriptionLengthAt = 56;
constexpr std::size_t kMetadataLengthAt = 64;
constexpr std::size_t kPayloadLengthAt = 72;
constexpr std::size_t kDigestBytes = 32;
static_assert(kPayloadLengthAt + 8 == kHeaderBytes);

void append(std::string& bytes, std::uint64_t number) {
  const auto encoded = little_endian(number);
  bytes.append(encoded.data(), encoded.size());
}

void append(std::string& bytes, const Sha256& digest) {
  bytes.append(reinterpret_cast<const char*>(digest.data()), digest.size());
}

void append_text(std::string& bytes, std::string_view text) {
  append(bytes, std::uint64_t{text.size()});
  bytes.append(text);
}

std::uint64_t description_bytes(const Entry& entry) {
  std::uint64_t bytes = 0;
  for (const Property& property : entry.description) bytes += 16 + property.name.size() + property.value.size();
  return bytes;
}

/// Takes a text off the front of `bytes`; nothing if it claims to be longer than they are.
std::optional<std::string> take_text(std::string_view& bytes) {
  if (bytes.size() < 8) return std::nullopt;
  const std::uint64_t length = read_little_endian(bytes, 0);
  bytes.remove_prefix(8);
  if (length > bytes.size()) return std::nullopt;
  std::string text(bytes.substr(0, static_cast<std::size_t>(length)));
  bytes.remove_prefix(text.size());
  return text;
}

Sha256 read_digest(std::string_view bytes, std::size_t offset) {
  Sha256 digest{};
  std::memcpy(digest.data(), bytes.data() + offset, digest.size());
  return digest;
}

bool known(std::uint64_t kind) {
  return kind >= std::uint64_t{static_cast<std::uint32_t>(EntryKind::cubin)} &&
         kind <= std::uint64_t{static_cast<std::uint32_t>(EntryKind::choice)};
}

}  // namespace

std::uint64_t encoded_bytes(const Entry& entry) {
  return std::uint64_t{kHeaderBytes} + description_bytes(entry) + entry.metadata.size() + entry.payload.size() +
         kDigestBytes;
}

bool fits_format(const Entry& entry) {
  return encoded_bytes(entry) <= kMaxEntryBytes && description_bytes(entry) <= kMaxDescriptionBytes;
}

std::string encode(const Entry& entry) {
  std::string bytes;
  bytes.reserve(encoded_bytes(entry));
  bytes.append(kMagic);
  append(bytes, kSchema);
  append(bytes, entry.key.digest);
  append(bytes, std::uint64_t{static_cast<std::uint32_t>(entry.kind)});
  append(bytes, description_bytes(entry));
  append(bytes, std::uint64_t{entry.metadata.size()});
  append(bytes, std::uint64_t{entry.payload.size()});
  for (const Property& property : entry.description) {
    append_text(bytes, property.name);
    append_text(bytes, property.value);
  }
  bytes.append(entry.metadata);
  bytes.append(entry.payload);
  append(bytes, sha256(bytes));
  return bytes;
}

std::optional<DecodeFailure> check_header(std::string_view start, std::uint64_t file_bytes) {
  if (file_bytes < kHeaderBytes + kDigestBytes || start.size() < kHeaderBytes) {
    return DecodeFailure{"truncated: " + std::to_string(file_bytes) + " bytes"};
  }
  if (file_bytes > kMaxEntryBytes) {
    return DecodeFailure{std::to_string(file_bytes) + " bytes, more than an entry can have"};
  }
  if (start.substr(0, kMagic.size()) != kMagic) return DecodeFailure{"not a jitconv cache entry"};
  const std::uint64_t schema = read_little_endian(start, kSchemaAt);
  if (schema != kSchema) {
    return DecodeFailure{"schema " + std::to_string(schema) + ", not " + std::to_string(kSchema)};
  }
  const std::uint64_t body = file_bytes - kHeaderBytes - kDigestBytes;
  const std::uint64_t description = read_little_endian(start, kDescriptionLengthAt);
  const std::uint64_t metadata = read_little_endian(start, kMetadataLengthAt);
  const std::uint64_t payload = read_little_endian(start, kPayloadLengthAt);
  if (description > body || metadata > body - description || payload != body - description - metadata) {
    return DecodeFailure{"claims " + std::to_string(description) + " + " + std::to_string(metadata) + " + " +
                         std::to_string(payload) + " bytes of description, metadata and payload, has " +
                         std::to_string(body)};
  }
  if (description > kMaxDescriptionBytes) {
    return DecodeFailure{std::to_string(description) + " bytes of description, more than an entry can have"};
  }
  return std::nullopt;
}

std::size_t front_bytes(std::string_view header) {
  return kHeaderBytes + static_cast<std::size_t>(read_little_endian(header, kDescriptionLengthAt));
}

std::variant<EntrySummary, DecodeFailure> summarize(std::string_view front) {
  const std::uint64_t kind = read_little_endian(front, kKindAt);
  if (!known(kind)) return DecodeFailure{"unknown kind " + std::to_string(kind)};
  EntrySummary summary;
  summary.key.digest = read_digest(front, kKeyAt);
  summary.kind = static_cast<EntryKind>(kind);
  summary.metadata_bytes = read_little_endian(front, kMetadataLengthAt);
  summary.payload_bytes = read_little_endian(front, kPayloadLengthAt);
  for (std::string_view rest = front.substr(kHeaderBytes); !rest.empty();) {
    std::optional<std::string> name = take_text(rest);
    std::optional<std::string> value = name ? take_text(rest) : std::nullopt;
    if (!value) return DecodeFailure{"the description is not a list of names and values"};
    summary.description.push_back({std::move(*name), std::move(*value)});
  }
  return summary;
}

std::variant<Entry, DecodeFailure> decode(std::string_view bytes) {
  if (auto failure = check_header(bytes.substr(0, kHeaderBytes), bytes.size())) return std::move(*failure);
  const std::size_t end = bytes.size() - kDigestBytes;
  if (sha256(bytes.substr(0, end)) != read_digest(bytes, end)) return DecodeFailure{"SHA-256 does not match"};
  const std::size_t front = front_bytes(bytes);
  auto summarized = summarize(bytes.substr(0, front));
  if (auto* failure = std::get_if<DecodeFailure>(&summarized)) return std::move(*failure);
  auto& summary = std::get<EntrySummary>(summarized);
  const std::string_view body = bytes.substr(front, end - front);
  const auto metadata_bytes = static_cast<std::size_t>(summary.metadata_bytes);
  return Entry{summary.key, summary.kind, std::string(body.substr(0, metadata_bytes)),
               std::string(body.substr(metadata_bytes)), std::move(summary.description)};
}

std::variant<Entry, DecodeFailure> decode(std::string_view bytes, const Key& expected) {
  auto decoded = decode(bytes);
  if (const Entry* entry = std::get_if<Entry>(&decoded); entry && entry->key != expected) {
    return DecodeFailure{"is the entry of key " + entry->key.hex()};
  }
  return decoded;
}

}  // namespace jitconv::cache
