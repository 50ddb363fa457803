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
constexpr std::size_t kMetadataLengthAt = 56;
constexpr std::size_t kPayloadLengthAt = 64;
constexpr std::size_t kDigestBytes = 32;
static_assert(kPayloadLengthAt + 8 == kHeaderBytes);

void append(std::string& bytes, std::uint64_t number) {
  const auto encoded = little_endian(number);
  bytes.append(encoded.data(), encoded.size());
}

void append(std::string& bytes, const Sha256& digest) {
  bytes.append(reinterpret_cast<const char*>(digest.data()), digest.size());
}

Sha256 read_digest(std::string_view bytes, std::size_t offset) {
  Sha256 digest{};
  std::memcpy(digest.data(), bytes.data() + offset, digest.size());
  return digest;
}

bool known(std::uint64_t kind) {
  return kind == std::uint64_t{static_cast<std::uint32_t>(EntryKind::cubin)} ||
         kind == std::uint64_t{static_cast<std::uint32_t>(EntryKind::ptx)} ||
         kind == std::uint64_t{static_cast<std::uint32_t>(EntryKind::host)};
}

}  // namespace

std::uint64_t encoded_bytes(const Entry& entry) {
  return std::uint64_t{kHeaderBytes} + entry.metadata.size() + entry.payload.size() + kDigestBytes;
}

std::string encode(const Entry& entry) {
  std::string bytes;
  bytes.reserve(encoded_bytes(entry));
  bytes.append(kMagic);
  append(bytes, kSchema);
  append(bytes, entry.key.digest);
  append(bytes, std::uint64_t{static_cast<std::uint32_t>(entry.kind)});
  append(bytes, std::uint64_t{entry.metadata.size()});
  append(bytes, std::uint64_t{entry.payload.size()});
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
  const std::uint64_t metadata = read_little_endian(start, kMetadataLengthAt);
  const std::uint64_t payload = read_little_endian(start, kPayloadLengthAt);
  if (metadata > body || payload != body - metadata) {
    return DecodeFailure{"claims " + std::to_string(metadata) + " + " + std::to_string(payload) +
                         " bytes of metadata and payload, has " + std::to_string(body)};
  }
  return std::nullopt;
}

std::variant<Entry, DecodeFailure> decode(std::string_view bytes) {
  if (auto failure = check_header(bytes.substr(0, kHeaderBytes), bytes.size())) return std::move(*failure);
  const std::size_t end = bytes.size() - kDigestBytes;
  if (sha256(bytes.substr(0, end)) != read_digest(bytes, end)) return DecodeFailure{"SHA-256 does not match"};
  const std::uint64_t kind = read_little_endian(bytes, kKindAt);
  if (!known(kind)) return DecodeFailure{"unknown kind " + std::to_string(kind)};

  const auto metadata_bytes = static_cast<std::size_t>(read_little_endian(bytes, kMetadataLengthAt));
  const std::string_view body = bytes.substr(kHeaderBytes, end - kHeaderBytes);
  Entry entry;
  entry.key.digest = read_digest(bytes, kKeyAt);
  entry.kind = static_cast<EntryKind>(kind);
  entry.metadata = body.substr(0, metadata_bytes);
  entry.payload = body.substr(metadata_bytes);
  return entry;
}

std::variant<Entry, DecodeFailure> decode(std::string_view bytes, const Key& expected) {
  auto decoded = decode(bytes);
  if (const Entry* entry = std::get_if<Entry>(&decoded); entry && entry->key != expected) {
    return DecodeFailure{"is the entry of key " + entry->key.hex()};
  }
  return decoded;
}

}  // namespace jitconv::cache
