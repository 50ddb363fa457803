// See recorded.h. Words are written in hexadecimal, "in in -> out", so that a changed line of the file can be read.
#include "conformance/recorded.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "cache/digest.h"
#include "support/json_reader.h"
#include "tools/json.h"

namespace jitconv::test {
namespace {

/// Examples of one probe: a warp of the smallest items, fewer of larger ones.
constexpr std::size_t kExampleWords = 32;

std::string text_of(std::span<const std::uint32_t> words) {
  std::string text;
  for (const std::uint32_t word : words) text += fmt::format("{}{:08x}", text.empty() ? "" : " ", word);
  return text;
}

std::string text_of(const Example& example) { return text_of(example.in) + " -> " + text_of(example.out); }

Example example_from(const std::string& text) {
  Example example;
  std::istringstream stream(text);
  Words* words = &example.in;
  for (std::string one; stream >> one;) {
    if (one == "->") {
      words = &example.out;
      continue;
    }
    std::size_t read = 0;
    words->push_back(static_cast<std::uint32_t>(std::stoul(one, &read, 16)));
    if (read != one.size()) throw std::runtime_error("recording: the example '" + text + "' cannot be read");
  }
  return example;
}

std::span<const std::uint32_t> item(const Words& words, std::size_t index, std::size_t size) {
  return std::span(words).subspan(index * size, size);
}

}  // namespace

const RecordedProbe* Recording::find(const std::string& name) const {
  const auto found =
      std::find_if(probes.begin(), probes.end(), [&](const RecordedProbe& one) { return one.name == name; });
  return found == probes.end() ? nullptr : &*found;
}

std::string digest_of(const Words& words) {
  std::string bytes;
  bytes.reserve(words.size() * 4);
  for (const std::uint32_t word : words)
    for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(word >> shift & 0xffu);
  return cache::to_hex(cache::sha256(bytes));
}

RecordedProbe record(const Probe& probe, const Words& outputs) {
  RecordedProbe recorded{probe.name, probe.items(), text_digest(probe), digest_of(probe.inputs), digest_of(outputs),
                         {}};
  // From the first item on: lanes of a warp that exchange values stay together.
  const std::size_t count = std::max<std::size_t>(4, kExampleWords / probe.in_words);
  for (std::size_t i = 0; i < std::min(count, probe.items()); ++i) {
    const auto in = item(probe.inputs, i, probe.in_words), out = item(outputs, i, probe.out_words);
    recorded.examples.push_back({Words(in.begin(), in.end()), Words(out.begin(), out.end())});
  }
  return recorded;
}

std::string to_json(const Recording& recording) {
  using tools::json::Array;
  using tools::json::Object;
  Array all;
  for (const RecordedProbe& probe : recording.probes) {
    Array examples;
    for (const Example& example : probe.examples) examples.push_back(text_of(example));
    all.push_back(Object{{"name", probe.name},
                         {"items", probe.items},
                         {"text_sha256", probe.text_sha256},
                         {"inputs_sha256", probe.inputs_sha256},
                         {"outputs_sha256", probe.outputs_sha256},
                         {"examples", examples}});
  }
  return tools::json::render(Object{{"device", recording.device},
                                    {"driver", recording.driver},
                                    {"compiler", recording.compiler},
                                    {"date", recording.date},
                                    {"seed", recording.seed},
                                    {"probes", all}});
}

Recording recording_from_json(std::string_view text) {
  const Json json = JsonReader::read(text);
  Recording recording;
  recording.device = json.string("device");
  recording.driver = json.string("driver");
  recording.compiler = json.string("compiler");
  recording.date = json.string("date");
  recording.seed = static_cast<std::uint64_t>(json.integer("seed"));
  for (const Json& one : json.at("probes").elements) {
    RecordedProbe probe{one.string("name"),           static_cast<std::size_t>(one.integer("items")),
                        one.string("text_sha256"),    one.string("inputs_sha256"),
                        one.string("outputs_sha256"), {}};
    for (const Json& example : one.at("examples").elements) probe.examples.push_back(example_from(example.text));
    recording.probes.push_back(std::move(probe));
  }
  return recording;
}

Recording read_recording(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  if (!(text << stream.rdbuf())) throw std::runtime_error("cannot read " + file.string());
  return recording_from_json(text.str());
}

Words example_inputs(const Probe& probe, const RecordedProbe& recorded) {
  Words inputs;
  for (const Example& example : recorded.examples) {
    if (example.in.size() != probe.in_words || example.out.size() != probe.out_words)
      throw std::runtime_error("recording: the examples of " + probe.name + " have other sizes than the probe's items");
    inputs.insert(inputs.end(), example.in.begin(), example.in.end());
  }
  if (inputs.empty()) throw std::runtime_error("recording: " + probe.name + " has no examples");
  // Where the threads of a block share memory, what one gives depends on all: the examples are the first of the block.
  if (probe.shared_bytes > 0) {
    const auto block = static_cast<std::ptrdiff_t>(kProbeThreads * probe.in_words);
    return {probe.inputs.begin(), probe.inputs.begin() + block};
  }
  while (inputs.size() % (kProbeThreads * probe.in_words) != 0)
    inputs.insert(inputs.end(), recorded.examples.back().in.begin(), recorded.examples.back().in.end());
  return inputs;
}

std::string difference(const Probe& probe, const RecordedProbe& recorded, const Words& outputs,
                       const Words& example_outputs) {
  constexpr const char* kAgain = "record again on a GPU machine: conformance_test --record FILE --date YYYY-MM-DD";
  if (recorded.text_sha256 != text_digest(probe))
    return fmt::format("the probe or its device functions changed since they were recorded; {}", kAgain);
  if (recorded.inputs_sha256 != digest_of(probe.inputs) || recorded.items != probe.items())
    return fmt::format("the inputs are not those that were recorded; {}", kAgain);
  Words examples_in, examples_out;
  for (const Example& example : recorded.examples) {
    examples_in.insert(examples_in.end(), example.in.begin(), example.in.end());
    examples_out.insert(examples_out.end(), example.out.begin(), example.out.end());
  }
  const Words actual(example_outputs.begin(),
                     example_outputs.begin() + static_cast<std::ptrdiff_t>(examples_out.size()));
  if (const std::string text = difference(probe, examples_in, examples_out, actual); !text.empty())
    return "of the recorded examples, " + text;
  if (digest_of(outputs) != recorded.outputs_sha256)
    return fmt::format("outputs of {} items differ from the recorded ones, though all {} examples agree", probe.items(),
                       recorded.examples.size());
  return {};
}

std::string difference(const Probe& probe, const Words& inputs, const Words& expected, const Words& actual) {
  if (expected.size() != actual.size()) return fmt::format("{} words came out, not {}", actual.size(), expected.size());
  std::size_t different = 0;
  std::string first;
  for (std::size_t i = 0; i * probe.out_words < expected.size(); ++i) {
    const auto want = item(expected, i, probe.out_words), got = item(actual, i, probe.out_words);
    if (std::equal(want.begin(), want.end(), got.begin())) continue;
    if (different++ == 0)
      first = fmt::format("{} -> {} where the device gave {}", text_of(item(inputs, i, probe.in_words)), text_of(got),
                          text_of(want));
  }
  if (different == 0) return {};
  return fmt::format("{} of {} items differ, first {}", different, expected.size() / probe.out_words, first);
}

}  // namespace jitconv::test
