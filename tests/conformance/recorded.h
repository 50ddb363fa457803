// What the device functions gave on a real GPU: written there once, kept in recorded.json, replayed everywhere.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "conformance/probes.h"

namespace jitconv::test {

/// One item, its words as they went in and came out.
struct Example {
  Words in, out;
  bool operator==(const Example&) const = default;
};

struct RecordedProbe {
  std::string name;
  std::size_t items = 0;
  std::string text_sha256;     ///< text_digest() of what ran
  std::string inputs_sha256;   ///< digest_of() the inputs: shows a generator that changed
  std::string outputs_sha256;  ///< digest_of() everything that came out
  std::vector<Example> examples;
  bool operator==(const RecordedProbe&) const = default;
};

struct Recording {
  std::string device, driver, compiler, date;
  std::uint64_t seed = 0;
  std::vector<RecordedProbe> probes;
  /// Null if the probe was not recorded.
  const RecordedProbe* find(const std::string& name) const;
  bool operator==(const Recording&) const = default;
};

/// SHA-256 (hex) of the words in little-endian order.
std::string digest_of(const Words& words);

/// A probe's outputs as they are recorded.
RecordedProbe record(const Probe& probe, const Words& outputs);

std::string to_json(const Recording& recording);
/// Throws std::runtime_error, naming what is wrong.
Recording recording_from_json(std::string_view text);
Recording read_recording(const std::filesystem::path& file);

/// The inputs of the examples, in whole blocks.
Words example_inputs(const Probe& probe, const RecordedProbe& recorded);

/// Why `outputs`, which the CPU's models gave for all inputs, and `example_outputs`, for example_inputs(), are not what
/// was recorded; empty if they are.
std::string difference(const Probe& probe, const RecordedProbe& recorded, const Words& outputs,
                       const Words& example_outputs);

/// Where two outputs differ: how many items, and the first in words. Empty if nowhere.
std::string difference(const Probe& probe, const Words& inputs, const Words& expected, const Words& actual);

}  // namespace jitconv::test
