// The options that describe a convolution, one table row per field of ConvSpec.
#include "tools/spec_options.h"

#include <fmt/format.h>
#include <llvm/Support/CommandLine.h>

#include <algorithm>

#include "jitconv/error.h"
#include "tools/documented.h"
#include "tools/options.h"
#include "tools/tool.h"

namespace jitconv::tools {
namespace {

namespace cl = llvm::cl;

/// One field: how parse_spec() spells it, and how to carry it from a parsed spec into another.
struct Field {
  const char* flag;
  const char* key;
  const char* shape;
  const char* help;
  void (*copy)(ConvSpec& to, const ConvSpec& from);
};

// In an order in which a later flag may refine an earlier one.
constexpr Field kFields[] = {
    {"input", "input", "N,C,H,W", "Input extents, whatever the memory layout",
     [](ConvSpec& to, const ConvSpec& from) { to.input = from.input; }},
    {"weight", "weight", "K,C/groups,R,S", "Filter extents",
     [](ConvSpec& to, const ConvSpec& from) { to.filter = from.filter; }},
    {"stride", "stride", "n|h,w", "Stride", [](ConvSpec& to, const ConvSpec& from) { to.stride = from.stride; }},
    {"padding", "padding", "n|h,w|t,b,l,r", "Zeros around the input",
     [](ConvSpec& to, const ConvSpec& from) { to.padding = from.padding; }},
    {"dilation", "dilation", "n|h,w", "Distance between filter taps",
     [](ConvSpec& to, const ConvSpec& from) { to.dilation = from.dilation; }},
    {"groups", "groups", "n", "Groups of channels; the input's C for depthwise",
     [](ConvSpec& to, const ConvSpec& from) { to.groups = from.groups; }},
    {"dtype", "dtype", "type", "f32, f16 or bf16; sums are fp32",
     [](ConvSpec& to, const ConvSpec& from) { to.dtype = from.dtype; }},
    {"layout", "layout", "layout", "nchw or nhwc, of input and output",
     [](ConvSpec& to, const ConvSpec& from) {
       to.input_layout = from.input_layout;
       to.output_layout = from.output_layout;
     }},
    {"input-layout", "input_layout", "layout", "nchw or nhwc, of the input",
     [](ConvSpec& to, const ConvSpec& from) { to.input_layout = from.input_layout; }},
    {"output-layout", "output_layout", "layout", "nchw or nhwc, of the output",
     [](ConvSpec& to, const ConvSpec& from) { to.output_layout = from.output_layout; }},
    {"math", "math", "mode", "ieee, fp32 or tf32: what the arithmetic promises",
     [](ConvSpec& to, const ConvSpec& from) { to.math = from.math; }},
    {"activation", "activation", "name",
     "none, relu, leaky_relu, gelu_erf, gelu_tanh, silu, sigmoid, tanh, hardswish or clamp",
     [](ConvSpec& to, const ConvSpec& from) { to.epilogue.activation = from.epilogue.activation; }},
    {"slope", "slope", "x", "Slope of leaky_relu",
     [](ConvSpec& to, const ConvSpec& from) { to.epilogue.slope = from.epilogue.slope; }},
    {"clamp-min", "clamp_min", "x", "Lower bound of clamp",
     [](ConvSpec& to, const ConvSpec& from) { to.epilogue.clamp_min = from.epilogue.clamp_min; }},
    {"clamp-max", "clamp_max", "x", "Upper bound of clamp",
     [](ConvSpec& to, const ConvSpec& from) { to.epilogue.clamp_max = from.epilogue.clamp_max; }},
    {"alignment", "alignment", "bytes", "What every pointer is a multiple of",
     [](ConvSpec& to, const ConvSpec& from) { to.alignment = from.alignment; }},
};

/// parse_spec() of one flag's value; what cannot be read is a usage error.
ConvSpec read_text(const std::string& flag, const std::string& text) {
  try {
    return parse_spec(text);
  } catch (const SpecError& error) {
    throw UsageError(fmt::format("--{}: {}", flag, error.what()));
  }
}

ConvSpec read_field(const Field& field, const std::string& value) {
  if (value.empty() || value.find_first_of(" \t\n=") != std::string::npos) {
    throw UsageError(fmt::format("--{}: '{}' is not of the form {}", field.flag, value, field.shape));
  }
  return read_text(field.flag, fmt::format("{}={}", field.key, value));
}

NamedSpec documented(const std::string& name) {
  if (const DocumentedConfiguration* configuration = find_documented(name)) {
    return {configuration->name, configuration->spec};
  }
  throw UsageError(fmt::format("--config: '{}' is not a documented configuration; --list names them", name));
}

}  // namespace

struct SpecOptions::State {
  Choice choice;
  cl::list<std::string> configs;
  cl::opt<bool> list{"list", cl::desc("Print the documented configurations"), cl::cat(spec_category())};
  std::unique_ptr<cl::opt<bool>> all;
  cl::opt<std::string> text{"spec", cl::desc("The one-line form that jitconv-dump --emit=spec prints"),
                            cl::value_desc("text"), cl::cat(spec_category())};
  std::vector<std::unique_ptr<cl::opt<std::string>>> values;  // as kFields
  cl::opt<bool> bias{"bias", cl::desc("Add a bias per output channel"), cl::cat(spec_category())};
  cl::opt<bool> residual{"residual", cl::desc("Add a tensor shaped like the output"), cl::cat(spec_category())};
  cl::opt<std::string> arch{"arch", cl::desc("GPU to compile for, e.g. sm_90a"), cl::value_desc("sm_XY"),
                            cl::cat(spec_category())};

  explicit State(Choice c)
      : choice(c),
        configs("config",
                cl::desc(c == Choice::many ? "Documented configurations, by name" : "A documented configuration"),
                cl::value_desc(c == Choice::many ? "name,..." : "name"), cl::CommaSeparated, cl::cat(spec_category())) {
    if (c == Choice::many) {
      all =
          std::make_unique<cl::opt<bool>>("all", cl::desc("Every documented configuration"), cl::cat(spec_category()));
    }
    for (const Field& field : kFields) {
      values.push_back(std::make_unique<cl::opt<std::string>>(llvm::StringRef(field.flag), cl::desc(field.help),
                                                              cl::value_desc(field.shape), cl::cat(spec_category())));
    }
  }

  bool any_flag() const {
    const auto given = [](const auto& value) { return value->getNumOccurrences() > 0; };
    return std::any_of(values.begin(), values.end(), given) || bias.getNumOccurrences() > 0 ||
           residual.getNumOccurrences() > 0;
  }

  void apply_flags(ConvSpec& spec) const {
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values[i]->getNumOccurrences() == 0) continue;
      kFields[i].copy(spec, read_field(kFields[i], values[i]->getValue()));
    }
    if (bias.getNumOccurrences() > 0) spec.epilogue.bias = bias;
    if (residual.getNumOccurrences() > 0) spec.epilogue.residual = residual;
  }
};

SpecOptions::SpecOptions(Choice choice) : state_(std::make_unique<State>(choice)) {}

SpecOptions::~SpecOptions() = default;

bool SpecOptions::list_requested() const { return state_->list; }

bool SpecOptions::all_requested() const { return state_->all && *state_->all; }

bool SpecOptions::shape_given() const {
  bool given = state_->text.getNumOccurrences() > 0;
  for (std::size_t i = 0; i < state_->values.size(); ++i) {
    const std::string_view flag = kFields[i].flag;
    given |= (flag == "input" || flag == "weight") && state_->values[i]->getNumOccurrences() > 0;
  }
  return given;
}

std::string SpecOptions::list_text() {
  std::size_t width = 0;
  for (const auto& configuration : documented_configurations()) width = std::max(width, configuration.name.size());
  std::string text;
  for (const auto& configuration : documented_configurations()) {
    text += fmt::format("{:<{}}  {}\n", configuration.name, width, to_string(configuration.spec));
  }
  return text;
}

std::vector<NamedSpec> SpecOptions::chosen() const {
  const State& state = *state_;
  const int sources =
      (state.configs.empty() ? 0 : 1) + (all_requested() ? 1 : 0) + (state.text.getNumOccurrences() > 0 ? 1 : 0);
  if (sources > 1) throw UsageError("--config, --spec and --all exclude each other");
  if (sources == 0 && !state.any_flag()) {
    throw UsageError("no convolution given: use --config=NAME, --spec=TEXT or --input=... --weight=...");
  }
  if (state.choice == Choice::one && state.configs.size() > 1) throw UsageError("--config: one name only");

  std::vector<NamedSpec> chosen;
  for (const std::string& name : state.configs) chosen.push_back(documented(name));
  if (all_requested()) {
    for (const auto& configuration : documented_configurations()) {
      chosen.push_back({configuration.name, configuration.spec});
    }
  }
  if (chosen.empty()) {
    chosen.push_back({"spec", state.text.getNumOccurrences() > 0 ? read_text("spec", state.text) : ConvSpec{}});
  }
  for (NamedSpec& one : chosen) {
    state.apply_flags(one.spec);
    validate(one.spec);
  }
  return chosen;
}

std::optional<Target> SpecOptions::target() const {
  if (state_->arch.getNumOccurrences() == 0) return std::nullopt;
  return parse_target(state_->arch);
}

}  // namespace jitconv::tools
