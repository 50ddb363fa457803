// See entry_file.h. What is allocated is bounded by the size of the file, or by the longest description.
#include "cache/entry_file.h"

#include <algorithm>
#include <utility>

namespace jitconv::cache {

namespace {

/// Makes `bytes`, the start of the file, longer.
std::optional<Problem> read_up_to(const OpenFile& open, std::string& bytes, std::uint64_t end) {
  const std::size_t begin = bytes.size();
  bytes.resize(static_cast<std::size_t>(end));
  return read_exactly(open.file, bytes.data() + begin, bytes.size() - begin);
}

/// The header, checked against the size of the file.
std::variant<std::string, DecodeFailure, Problem> read_header(const OpenFile& open) {
  std::string bytes;
  if (auto problem = read_up_to(open, bytes, std::min<std::uint64_t>(open.identity.bytes, kHeaderBytes))) {
    return std::move(*problem);
  }
  if (auto failure = check_header(bytes, open.identity.bytes)) return std::move(*failure);
  return bytes;
}

}  // namespace

std::variant<Entry, DecodeFailure, Problem> read_entry(const OpenFile& open, const Key& key) {
  auto header = read_header(open);
  if (auto* failure = std::get_if<DecodeFailure>(&header)) return std::move(*failure);
  if (auto* problem = std::get_if<Problem>(&header)) return std::move(*problem);
  auto& bytes = std::get<std::string>(header);
  if (auto problem = read_up_to(open, bytes, open.identity.bytes)) return std::move(*problem);
  auto decoded = decode(bytes, key);
  if (auto* failure = std::get_if<DecodeFailure>(&decoded)) return std::move(*failure);
  return std::get<Entry>(std::move(decoded));
}

Inspection inspect_entry(const OpenFile& open, const std::string& name, Depth depth) {
  auto header = read_header(open);
  if (const auto* failure = std::get_if<DecodeFailure>(&header)) return {std::nullopt, failure->reason};
  if (const auto* problem = std::get_if<Problem>(&header)) return {std::nullopt, problem->text};
  auto& bytes = std::get<std::string>(header);
  if (const auto problem = read_up_to(open, bytes, front_bytes(bytes))) return {std::nullopt, problem->text};

  Inspection inspection;
  auto summarized = summarize(bytes);
  if (auto* summary = std::get_if<EntrySummary>(&summarized)) inspection.entry = std::move(*summary);
  if (depth == Depth::whole) {
    if (const auto problem = read_up_to(open, bytes, open.identity.bytes)) return {std::nullopt, problem->text};
    const auto decoded = decode(bytes);
    if (const auto* failure = std::get_if<DecodeFailure>(&decoded)) inspection.problem = failure->reason;
  }
  if (inspection.problem) return inspection;
  if (const auto* failure = std::get_if<DecodeFailure>(&summarized)) {
    inspection.problem = failure->reason;
  } else if (const std::string key = inspection.entry->key.hex(); key != name) {
    inspection.problem = "is the entry of key " + key;
  }
  return inspection;
}

}  // namespace jitconv::cache
