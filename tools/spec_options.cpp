// The options that describe a convolution, one table row per field of ConvSpec.
#include "tools/spec_options.h"

#include <fmt/format.h>
#include <llvm/Support/CommandLine.h>

#include <algorithm>
#include <sstream>

#include "jitconv/error.h"
#include "tools/documented.h"
#include "tools/options.h"
#include "tools/tool.h"

namespace jitconv::tools {
namespace {

namespace cl = llvm::cl;

/// One field: its flag, and how parse_spec() spells it.
struct Field {
  const char* flag;
  const char* key;
  const char* shape;
  const char* help;
};

// In an order in which a later flag may refine an earlier one; what `padding=same` adds depends on those before it.
constexpr Field kFields[] = {
    {"input", "input", "N,C,H,W", "Input extents, whatever the memory layout"},
    {"weight", "weight", "K,C/groups,R,S", "Filter extents"},
    {"stride", "stride", "n|h,w", "Stride"},
    {"dilation", "dilation", "n|h,w", "Distance between filter taps"},
    {"padding", "padding", "n|h,w|t,b,l,r|same|valid", "Zeros around the input"},
    {"groups", "groups", "n", "Groups of channels; the input's C for depthwise"},
    {"dtype", "dtype", "type", "f32, f16 or bf16, or PyTorch's names of them; sums are fp32"},
    {"output-dtype", "output_dtype", "type",
     "same, f32, f16 or bf16: the type of the result; kernels have same, and f32 for weight_gradient"},
    {"layout", "layout", "layout", "nchw or nhwc (channels_last), of input and output"},
    {"input-layout", "input_layout", "layout", "nchw or nhwc, of the input"},
    {"output-layout", "output_layout", "layout", "nchw or nhwc, of the output"},
    {"math", "math", "mode", "ieee, fp32, tf32 or fp16x3: what the arithmetic promises"},
    {"activation", "activation", "name",
     "none, relu, leaky_relu, gelu_erf, gelu_tanh, silu, sigmoid, tanh, hardswish or clamp"},
    {"slope", "slope", "x", "Slope of leaky_relu"},
    {"clamp-min", "clamp_min", "x", "Lower bound of clamp"},
    {"clamp-max", "clamp_max", "x", "Upper bound of clamp"},
    {"dy-activation", "dy_activation", "name",
     "Of a gradient: the activation by whose derivative dy is multiplied first; as --activation, with its slope and "
     "bounds"},
    {"alignment", "alignment", "bytes", "What every pointer is a multiple of"},
    {"operation", "operation", "name", "forward, data_gradient (dx of dy and w) or weight_gradient (dw of x and dy)"},
};

/// parse_spec() of one flag's value; what cannot be read is a usage error.
ConvSpec read_text(const std::string& flag, const std::string& text) {
  try {
    return parse_spec(text);
  } catch (const SpecError& error) {
    throw UsageError(fmt::format("--{}: {}", flag, error.what()));
  }
}

/// Whether a flag with this key replaces the field that a token of to_string() gives.
bool replaces(std::string_view key, std::string_view token) {
  const std::string_view field = token.substr(0, token.find('='));
  return field == key || (key == "layout" && (field == "input_layout" || field == "output_layout"));
}

/// `spec` with the field that a flag gives. The text form is the only grammar: the flag's value replaces the field's.
ConvSpec with_field(const ConvSpec& spec, const Field& field, const std::string& value) {
  if (value.empty() || value.find_first_of(" \t\n=") != std::string::npos) {
    throw UsageError(fmt::format("--{}: '{}' is not of the form {}", field.flag, value, field.shape));
  }
  std::istringstream tokens(to_string(spec));
  std::string text;
  for (std::string token; tokens >> token;)
    if (!replaces(field.key, token)) text += token + ' ';
  return read_text(field.flag, fmt::format("{}{}={}", text, field.key, value));
}

NamedSpec documented(const std::string& name) {
  if (const DocumentedConfiguration* configuration = find_documented(name)) {
    return {configuration->name, configuration->spec};
  }
  throw UsageError(fmt::format("--config: '{}' is not a configuration; --list names them", name));
}

std::vector<NamedSpec> documented_alone() {
  std::vector<NamedSpec> result;
  for (const auto& one : documented_configurations()) result.push_back({one.name, one.spec});
  return result;
}

/// The documented configurations, each headline case followed by what tensor cores make of it.
std::vector<NamedSpec> all_configurations() {
  std::vector<NamedSpec> result;
  for (const NamedSpec& one : documented_alone()) {
    result.push_back(one);
    for (const auto& variant : tensor_core_configurations())
      if (variant.name.starts_with(one.name + "_")) result.push_back({variant.name, variant.spec});
  }
  return result;
}

}  // namespace

struct SpecOptions::State {
  Choice choice;
  cl::list<std::string> configs;
  cl::opt<bool> list{"list", cl::desc("Print the configurations that have a name"), cl::cat(spec_category())};
  std::unique_ptr<cl::opt<bool>> all;
  cl::opt<std::string> text{"spec", cl::desc("The one-line form that jitconv-dump --emit=spec prints"),
                            cl::value_desc("text"), cl::cat(spec_category())};
  std::vector<std::unique_ptr<cl::opt<std::string>>> values;  // as kFields
  cl::opt<bool> bias{"bias", cl::desc("Add a bias per output channel; of weight_gradient, compute db too"),
                     cl::cat(spec_category())};
  cl::opt<bool> residual{"residual", cl::desc("Add a tensor shaped like the result"), cl::cat(spec_category())};
  cl::opt<std::string> arch{"arch", cl::desc("GPU to compile for, e.g. sm_90a"), cl::value_desc("sm_XY"),
                            cl::cat(spec_category())};

  explicit State(Choice c)
      : choice(c),
        configs(
            "config",
            cl::desc(c == Choice::many ? "Configurations of --list, by name" : "A configuration of --list, by name"),
            cl::value_desc(c == Choice::many ? "name,..." : "name"), cl::CommaSeparated, cl::cat(spec_category())) {
    if (c == Choice::many) {
      all = std::make_unique<cl::opt<bool>>("all", cl::desc("Every configuration of --list"), cl::cat(spec_category()));
    }
    for (const Field& field : kFields) {
      values.push_back(std::make_unique<cl::opt<std::string>>(llvm::StringRef(field.flag), cl::desc(field.help),
                                                              cl::value_desc(field.shape), cl::cat(spec_category())));
    }
  }

  bool given(std::string_view flag) const {
    for (std::size_t i = 0; i < values.size(); ++i)
      if (kFields[i].flag == flag) return values[i]->getNumOccurrences() > 0;
    return false;
  }

  /// What flags alone choose: one convolution by its shape, or all.
  std::vector<NamedSpec> described_or_all() const {
    const bool input = given("input"), weight = given("weight");
    if (input && weight) return {{"spec", ConvSpec{}}};
    if (input || weight) {
      throw UsageError(fmt::format("--{} without --{}: a convolution needs both, or --config or --spec",
                                   input ? "input" : "weight", input ? "weight" : "input"));
    }
    if (!all || !*all)
      throw UsageError("no convolution given: use --config=NAME, --spec=TEXT or --input=... --weight=...");
    // With one type or math mode for all, the variants of the headline cases have nothing of their own.
    return given("dtype") || given("math") ? documented_alone() : all_configurations();
  }

  void apply_flags(ConvSpec& spec) const {
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values[i]->getNumOccurrences() > 0) spec = with_field(spec, kFields[i], values[i]->getValue());
    }
    if (bias.getNumOccurrences() > 0) spec.epilogue.bias = bias;
    if (residual.getNumOccurrences() > 0) spec.epilogue.residual = residual;
  }
};

std::size_t widest_name(const std::vector<NamedSpec>& specs) {
  std::size_t width = 0;
  for (const NamedSpec& one : specs) width = std::max(width, one.name.size());
  return width;
}

SpecOptions::SpecOptions(Choice choice) : state_(std::make_unique<State>(choice)) {}

SpecOptions::~SpecOptions() = default;

bool SpecOptions::list_requested() const { return state_->list; }

bool SpecOptions::shape_given() const {
  return state_->text.getNumOccurrences() > 0 || state_->given("input") || state_->given("weight");
}

std::string SpecOptions::list_text() {
  const std::vector<NamedSpec> all = all_configurations();
  const std::size_t width = widest_name(all);
  std::string text;
  for (const NamedSpec& one : all) text += fmt::format("{:<{}}  {}\n", one.name, width, to_string(one.spec));
  return text;
}

std::vector<NamedSpec> SpecOptions::chosen() const {
  const State& state = *state_;
  const bool text_given = state.text.getNumOccurrences() > 0;
  if (text_given && !state.configs.empty()) throw UsageError("--config and --spec exclude each other");
  if (state.choice == Choice::one && state.configs.size() > 1) throw UsageError("--config: one name only");

  std::vector<NamedSpec> chosen;
  for (const std::string& name : state.configs) chosen.push_back(documented(name));
  if (text_given) chosen.push_back({"spec", read_text("spec", state.text)});
  if (chosen.empty()) chosen = state.described_or_all();
  for (NamedSpec& one : chosen) {
    state.apply_flags(one.spec);
    if (one.spec.weight == WeightShape{}) throw UsageError("--spec: the text has no weight=K,C/groups,R,S");
    if (one.spec.input == TensorShape{}) throw UsageError("--spec: the text has no input=N,C,H,W");
    validate(one.spec);
  }
  return chosen;
}

std::optional<Target> SpecOptions::target() const {
  if (state_->arch.getNumOccurrences() == 0) return std::nullopt;
  return parse_target(state_->arch);
}

}  // namespace jitconv::tools
