// Reads entries from files that are open: all of one for its user, or as much as a report needs. Which file it is and
// what to do about a bad one is the store's business.
#pragma once

#include <optional>
#include <string>
#include <variant>

#include "cache/entry.h"
#include "cache/files.h"

namespace jitconv::cache {

std::variant<Entry, DecodeFailure, Problem> read_entry(const OpenFile& open, const Key& key);

struct Inspection {
  std::optional<EntrySummary> entry;   ///< what the start of the file says, true or not
  std::optional<std::string> problem;  ///< why the file is not the entry that its name promises
};

enum class Depth : std::uint8_t { start, whole };

/// `name` is that of the file, the key in hex. Depth::start reads a few hundred bytes and sees only what is wrong
/// there.
Inspection inspect_entry(const OpenFile& open, const std::string& name, Depth depth);

}  // namespace jitconv::cache
