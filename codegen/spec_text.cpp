// The text form of a ConvSpec, `key=value key=value ...`, in both directions. It is what tools accept, what generated
// sources carry in their header and what error messages quote. PyTorch's words are read as what they mean and never
// written. Independent of the locale; apart from `padding=same` meaning is not checked here.
#include <algorithm>
#include <charconv>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "codegen/spec_fields.h"
#include "jitconv/error.h"
#include "jitconv/spec.h"

namespace jitconv {
namespace {

using codegen::for_each_field;
using codegen::names_of;

/// Another word for a name, mostly PyTorch's.
struct Alias {
  std::string_view word, name;
};

constexpr Alias kDataTypeAliases[] = {{"fp32", "f32"},    {"float32", "f32"}, {"float", "f32"},    {"fp16", "f16"},
                                      {"float16", "f16"}, {"half", "f16"},    {"bfloat16", "bf16"}};
constexpr Alias kLayoutAliases[] = {
    {"channels_last", "nhwc"}, {"channels_first", "nchw"}, {"contiguous", "nchw"}, {"contiguous_format", "nchw"}};
constexpr Alias kActivationAliases[] = {
    {"identity", "none"}, {"leakyrelu", "leaky_relu"}, {"gelu", "gelu_erf"}, {"swish", "silu"}};

std::span<const Alias> aliases_of(Operation) { return {}; }
std::span<const Alias> aliases_of(DataType) { return kDataTypeAliases; }
std::span<const Alias> aliases_of(OutputType) { return kDataTypeAliases; }
std::span<const Alias> aliases_of(Layout) { return kLayoutAliases; }
std::span<const Alias> aliases_of(MathMode) { return {}; }
std::span<const Alias> aliases_of(Activation) { return kActivationAliases; }

template <typename Enum>
std::string_view name_of(Enum value) {
  return codegen::is_known(value) ? names_of(value)[static_cast<std::size_t>(value)] : std::string_view("invalid");
}

std::string join(const std::vector<std::string_view>& items) {
  std::string text;
  for (std::string_view item : items) {
    if (!text.empty()) text += ", ";
    text += item;
  }
  return text;
}

template <typename T>
void append_value(std::string& text, T value) {
  if constexpr (std::is_same_v<T, bool>) {
    text += value ? "true" : "false";
  } else if constexpr (std::is_enum_v<T>) {
    text += name_of(value);
  } else {
    // to_chars prints a float with the fewest digits that read back as the same float.
    char buffer[64];
    const std::to_chars_result result = std::to_chars(buffer, buffer + sizeof buffer, value);
    text.append(buffer, result.ptr);
  }
}

[[noreturn]] void fail(std::string_view key, std::string_view value, const std::string& rule) {
  const std::string field(key);
  throw SpecError(field, field + " is \"" + std::string(value) + "\", must be " + rule);
}

/// ASCII only, whatever the locale.
std::string lower_case(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

/// The value that a name or an alias stands for, in capitals or not, also as PyTorch prints it (`torch.float16`).
template <typename Enum>
Enum parse_name(std::string_view key, std::string_view text) {
  constexpr std::string_view kModule = "torch.";
  std::string word = lower_case(text);
  if (word.starts_with(kModule)) word.erase(0, kModule.size());
  for (const Alias& alias : aliases_of(Enum{}))
    if (word == alias.word) word = alias.name;
  const auto& names = names_of(Enum{});
  const auto found = std::find(names.begin(), names.end(), word);
  if (found == names.end()) fail(key, text, "one of " + join({names.begin(), names.end()}));
  return static_cast<Enum>(found - names.begin());
}

template <typename T>
T parse_value(std::string_view key, std::string_view text) {
  if constexpr (std::is_same_v<T, bool>) {
    const std::string word = lower_case(text);
    if (word == "true" || word == "1") return true;
    if (word == "false" || word == "0") return false;
    fail(key, text, "true or false");
  } else if constexpr (std::is_enum_v<T>) {
    return parse_name<T>(key, text);
  } else {
    T value{};
    const char* end = text.data() + text.size();
    const std::from_chars_result result = std::from_chars(text.data(), end, value);
    if (result.ec != std::errc{} || result.ptr != end) {
      fail(key, text, std::is_same_v<T, float> ? "a number that fits a 32-bit float" : "a 64-bit integer");
    }
    return value;
  }
}

std::vector<std::string_view> split(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> items;
  std::size_t begin = 0;
  while (true) {
    const std::size_t end = text.find_first_of(separators, begin);
    items.push_back(text.substr(begin, end - begin));
    if (end == std::string_view::npos) return items;
    begin = end + 1;
  }
}

/// As many items as the field has values: one number sets both axes, two set a height and a width (padding).
std::vector<std::string_view> expand(std::string_view key, std::string_view text, std::size_t count) {
  const std::vector<std::string_view> items = split(text, ",");
  if (items.size() == count) return items;
  const bool is_shape = key == "input" || key == "weight";
  if (!is_shape && items.size() == 1) return std::vector<std::string_view>(count, items[0]);
  if (!is_shape && count == 4 && items.size() == 2) return {items[0], items[0], items[1], items[1]};
  const std::string counts = is_shape ? "4" : count == 4 ? "1, 2 or 4" : count == 2 ? "1 or 2" : "1";
  fail(key, text, counts + " values separated by commas");
}

std::vector<std::string_view> known_keys() {
  std::vector<std::string_view> keys;
  const ConvSpec spec;
  for_each_field(spec, [&keys](std::string_view name, const auto&...) { keys.push_back(name); });
  keys.push_back("layout");
  return keys;
}

/// What PyTorch's padding='same' adds to one axis, before and behind: the output is as large as the input, and an odd
/// total has its larger half behind.
std::pair<std::int64_t, std::int64_t> same_padding(std::int64_t taps, std::int64_t dilation) {
  // Beyond these limits validate() refuses the extents themselves.
  constexpr std::int64_t kLargest = INT32_MAX;
  if (taps > kLargest || dilation < 1 || dilation > kLargest) return {0, 0};
  const std::int64_t total = dilation * (taps - 1);
  return {total / 2, total - total / 2};
}

/// Sets the padding of `padding=same`, which depends on other fields, once all of these are read.
void set_same_padding(ConvSpec& spec) {
  const std::string text = "padding is \"same\", which ";
  if (spec.stride != Size2(1)) {
    throw SpecError("padding", text + "needs stride 1; the stride is " + std::to_string(spec.stride.h) + "," +
                                   std::to_string(spec.stride.w));
  }
  if (spec.weight.r < 1 || spec.weight.s < 1)
    throw SpecError("padding", text + "depends on the filter's extents; give weight=K,C/groups,R,S too");
  std::tie(spec.padding.top, spec.padding.bottom) = same_padding(spec.weight.r, spec.dilation.h);
  std::tie(spec.padding.left, spec.padding.right) = same_padding(spec.weight.s, spec.dilation.w);
}

/// Sets the field `key` of `spec`; false if there is none.
bool set_field(ConvSpec& spec, std::string_view key, std::string_view text) {
  bool found = false;
  for_each_field(spec, [&](std::string_view name, auto&... values) {
    if (name != key) return;
    found = true;
    const std::vector<std::string_view> items = expand(key, text, sizeof...(values));
    std::size_t next = 0;
    ((values = parse_value<std::remove_reference_t<decltype(values)>>(key, items[next++])), ...);
  });
  return found;
}

}  // namespace

std::string_view to_string(Operation value) { return name_of(value); }
std::string_view to_string(DataType value) { return name_of(value); }
std::string_view to_string(OutputType value) { return name_of(value); }
std::string_view to_string(Layout value) { return name_of(value); }
std::string_view to_string(MathMode value) { return name_of(value); }
std::string_view to_string(Activation value) { return name_of(value); }

std::string to_string(const ConvSpec& spec) {
  std::string text;
  for_each_field(spec, [&text](std::string_view name, const auto&... values) {
    if (!text.empty()) text += ' ';
    text += name;
    char separator = '=';
    ((text += separator, append_value(text, values), separator = ','), ...);
  });
  return text;
}

ConvSpec parse_spec(std::string_view text) {
  ConvSpec spec;
  std::set<std::string_view> seen;
  bool same = false;
  const auto set_once = [&](std::string_view key, std::string_view value) {
    if (!set_field(spec, key, value)) {
      throw SpecError(std::string(key),
                      "unknown key \"" + std::string(key) + "\"; known keys are " + join(known_keys()));
    }
    if (!seen.insert(key).second) throw SpecError(std::string(key), std::string(key) + " is given twice");
  };
  for (std::string_view token : split(text, " \t\r\n")) {
    if (token.empty()) continue;
    const std::size_t equals = token.find('=');
    const std::string_view key = token.substr(0, equals);
    if (equals == std::string_view::npos) {
      // `bias` and `residual` may stand alone, as they do on a command line.
      if (key != "bias" && key != "residual") {
        throw SpecError(std::string(key), "\"" + std::string(key) + "\" is not of the form key=value");
      }
      set_once(key, "true");
      continue;
    }
    const std::string_view value = token.substr(equals + 1);
    if (key == "layout") {
      set_once("input_layout", value);
      set_once("output_layout", value);
    } else if (key == "padding" && (lower_case(value) == "same" || lower_case(value) == "valid")) {
      set_once(key, "0");
      same = lower_case(value) == "same";
    } else {
      set_once(key, value);
    }
  }
  if (same) set_same_padding(spec);
  return spec;
}

}  // namespace jitconv
