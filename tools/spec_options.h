// How a command line says which convolution: --config=NAME, --spec=TEXT, or flags in PyTorch's terms. Flags given next
// to --config or --spec change that one field. Every value is read by parse_spec(), so flags and text share a grammar.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "jitconv/spec.h"
#include "jitconv/target.h"

namespace jitconv::tools {

/// One convolution to work on: its name in --list, or "spec" for one described by flags or text.
struct NamedSpec {
  std::string name;
  ConvSpec spec;
};

/// Characters of the longest name.
std::size_t widest_name(const std::vector<NamedSpec>& specs);

class SpecOptions {
 public:
  /// `many` adds --all and lists in --config.
  enum class Choice { one, many };

  /// Registers the options; make one, before parse_command_line().
  explicit SpecOptions(Choice choice);
  ~SpecOptions();
  SpecOptions(const SpecOptions&) = delete;
  SpecOptions& operator=(const SpecOptions&) = delete;

  /// --list was given: print list_text() and stop.
  bool list_requested() const;
  static std::string list_text();

  /// A shape was described with --spec, --input or --weight rather than named.
  bool shape_given() const;

  /// The convolutions asked for, in order, validated. What names or describes some narrows --all to these. Throws
  /// UsageError for unreadable values and unknown names, SpecError for convolutions that cannot be computed.
  std::vector<NamedSpec> chosen() const;

  /// --arch, if given. Throws SpecError for an unknown one.
  std::optional<Target> target() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Target of programs that need none of a present device.
inline constexpr const char* kDefaultArch = "sm_90a";

}  // namespace jitconv::tools
