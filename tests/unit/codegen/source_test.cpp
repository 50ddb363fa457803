// Statements about every generated source, by reading it: what it must not contain, that its signature and the
// launcher's list are one, and that each field of a spec reaches the code or has a reason not to.
#include "codegen/source.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "codegen/spec_fields.h"
#include "codegen/text/device_text.h"
#include "codegen/text/emitter.h"
#include "codegen/text/template_text.h"
#include "jitconv/error.h"
#include "support/documented_gradients.h"
#include "support/random_specs.h"
#include "tools/documented.h"
#include "unit/codegen/found.h"
#include "unit/codegen/squeezed.h"

namespace jitconv::codegen {
namespace {

/// The text without comments and with empty string literals.
std::string code_of(std::string_view text) {
  std::string code;
  for (std::size_t i = 0; i < text.size();) {
    if (text.substr(i, 2) == "//") {
      i = std::min(text.find('\n', i), text.size());
    } else if (text.substr(i, 2) == "/*") {
      i = std::min(text.find("*/", i + 2), text.size() - 2) + 2;
    } else if (text[i] == '"') {
      code += "\"\"";
      for (++i; i < text.size() && text[i] != '"'; ++i)
        if (text[i] == '\\') ++i;
      ++i;
    } else {
      code += text[i++];
    }
  }
  return code;
}

std::vector<std::string> tokens_of(const std::string& code) {
  std::vector<std::string> words;
  bool inside = false;
  for (const char c : code) {
    const bool part = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    if (part && !inside) words.emplace_back();
    if (part) words.back() += c;
    inside = part;
  }
  return words;
}

/// The text between the holes of a template.
std::vector<std::string> pieces_of(std::string_view part) {
  static const std::regex hole("@[a-z_]+@");
  return {std::cregex_token_iterator(part.data(), part.data() + part.size(), hole, -1), {}};
}

/// The text without what it has from templates/device; what filled the holes of a device file stays.
std::string without_device_parts(std::string text) {
  for (const EmbeddedFile& file : embedded_files()) {
    if (!file.name.starts_with("device/")) continue;
    for (const Declaration& part : declarations_of(file.text)) {
      std::string rest = text;
      std::size_t at = 0;
      for (const std::string& piece : pieces_of(part.text)) {
        at = rest.find(piece, at);
        if (at == std::string::npos) break;
        rest.erase(at, piece.size());
      }
      if (at != std::string::npos) text = std::move(rest);
    }
  }
  return text;
}

/// "" or what a generated text must not contain.
std::string fault_of(const std::string& text) {
  for (const char c : text)
    if ((c < ' ' || c > '~') && c != '\n') return "a character that is not printable ASCII";
  if (text.find(" \n") != std::string::npos) return "blanks at the end of a line";
  if (text.back() != '\n') return "no line end at the end";
  const std::string code = code_of(text);
  if (code.find('@') != std::string::npos) return "a hole";
  for (std::size_t at = code.find('#'); at != std::string::npos; at = code.find('#', at + 1))
    if (code.substr(at, 14) != "#pragma unroll") return "a preprocessor line other than #pragma unroll";
  for (const std::string& word : tokens_of(code_of(without_device_parts(text))))
    if (word == "asm" || word == "__asm__") return "asm outside templates/device";
  for (const char* word : {"nan", "inf"})
    if (code.find(std::string("= ") + word) != std::string::npos) return "a number that is not finite";
  return {};
}

RC_GTEST_PROP(SourceProperty, TextHasNothingItMustNot, ()) {
  const std::vector<ConvPlan> plans = enumerate_plans(test::any_spec_with_images(), parse_target("sm_90a"), SIZE_MAX);
  const KernelSource source = generate(plans[*rc::gen::inRange<std::size_t>(0, plans.size())]);
  RC_ASSERT(fault_of(source.text) == "");
}

TEST(Source, DocumentedConfigurationsHaveNothingTheyMustNot) {
  for (const tools::DocumentedConfiguration& one : tools::documented_configurations())
    for (const char* arch : {"sm_75", "sm_90a"})
      EXPECT_EQ(fault_of(generate(make_plan(one.spec, parse_target(arch))).text), "") << one.name << " " << arch;
}

// NVRTC says the same, and takes minutes.
TEST(Source, InstructionsAreThoseOfTheTarget) {
  std::vector<tools::DocumentedConfiguration> all = test::documented_gradients();
  const std::vector<tools::DocumentedConfiguration> others = tools::documented_configurations();
  all.insert(all.end(), others.begin(), others.end());
  for (const tools::DocumentedConfiguration& one : all)
    for (const char* arch : {"sm_75", "sm_89"}) {
      const std::string text = generate(make_plan(one.spec, parse_target(arch))).text;
      for (const char* of_sm_90 : {"griddepcontrol", "mbarrier", "cp.async.bulk", "wgmma", "setmaxnreg"})
        EXPECT_EQ(text.find(of_sm_90), std::string::npos) << one.name << " " << arch;
      EXPECT_TRUE(std::string(arch) != "sm_75" || text.find("\"cp.async.") == std::string::npos) << one.name;
    }
}

TEST(Source, TheReaderOfThisTestSeesFaults) {
  const std::string good = generate(make_plan(parse_spec("input=1,4,9,9 weight=4,4,3,3"), parse_target("sm_90a"))).text;
  EXPECT_EQ(fault_of(good), "");
  EXPECT_NE(fault_of(good + "#include <cuda.h>\n"), "");
  EXPECT_NE(fault_of(good + "asm(\"nop;\");\n"), "");
  EXPECT_EQ(fault_of(good + "// asm and \"#include\"\n"), "");
  EXPECT_NE(fault_of(good + "// caf\xc3\xa9\n"), "");
  EXPECT_NE(fault_of(good + "@hole@\n"), "");
  EXPECT_NE(fault_of(good + "int a; \n"), "");
  // Only the text of device files themselves is taken out where they have holes.
  const std::string tensor =
      generate(make_plan(parse_spec("input=8,68,56,58 weight=72,68,3,3 math=tf32"), parse_target("sm_90a"))).text;
  ASSERT_NE(tensor.find("wgmma.mma_async"), std::string::npos);
  EXPECT_EQ(fault_of(tensor), "");
  EXPECT_NE(fault_of(tensor + "asm(\"nop;\");\n"), "");
  std::string filled = tensor;
  filled.insert(filled.find("\"+f\"(sum[1])"), "asm(\"\"), ");
  EXPECT_NE(fault_of(filled), "");
}

RC_GTEST_PROP(SourceProperty, SamePlanSameBytes, ()) {
  const ConvPlan plan = make_plan(test::any_spec_with_images(), parse_target("sm_90a"));
  RC_ASSERT(generate(plan) == generate(plan));
}

// Kernels that are launched alone; plans for tensor cores have up to four entries.
RC_GTEST_PROP(SourceProperty, SignatureAndLaunchComeFromOneList, ()) {
  const ConvPlan plan = make_plan(test::any_spec_with_images(), parse_target("sm_80"));
  const KernelSource source = generate(plan);
  RC_ASSERT(source.entries.size() == 1u);
  const KernelEntry& entry = source.entries.front();
  RC_ASSERT(entry.arguments == arguments(plan.convolution().problem));
  // Declared once, with exactly these parameters.
  const std::string code = code_of(source.text);
  const std::string squeezed = test::squeezed(code),
                    declaration = test::squeezed(entry.name + "(" + parameter_list(entry.arguments) + ") {\n");
  const std::size_t at = squeezed.find(declaration);
  RC_ASSERT(at != std::string::npos);
  RC_ASSERT(squeezed.find(declaration, at + 1) == std::string::npos);
  const std::vector<std::string> words = tokens_of(code);
  RC_ASSERT(std::count(words.begin(), words.end(), "__global__") == 1);
  RC_ASSERT(entry.grid == (std::array<std::uint32_t, 3>{plan.convolution().launch.blocks, 1, 1}));
  RC_ASSERT(entry.threads == plan.convolution().launch.threads);
  RC_ASSERT(entry.shared_bytes == plan.convolution().launch.shared_bytes);
}

RC_GTEST_PROP(SourceProperty, LinesThatAPersonReads, ()) {
  const KernelSource source = generate(make_plan(test::any_spec_with_images(), parse_target("sm_90a")));
  // Unrolled text has a budget; what is longer is a loop.
  RC_ASSERT(std::count(source.text.begin(), source.text.end(), '\n') < 2000);
  RC_ASSERT(source.text.starts_with("// Generated by jitconv "));
}

TEST(Source, OptionsNameTheArchitectureAndNoPath) {
  for (const char* arch : {"sm_75", "sm_90a", "sm_120a"}) {
    const KernelSource source = generate(make_plan(parse_spec("input=1,4,9,9 weight=4,4,3,3"), parse_target(arch)));
    EXPECT_EQ(std::count(source.options.begin(), source.options.end(), std::string("--gpu-architecture=") + arch), 1);
    for (const std::string& option : source.options) {
      EXPECT_EQ(option.find('/'), std::string::npos) << option;
      EXPECT_EQ(option.find("fast-math"), std::string::npos) << option;
      EXPECT_TRUE(option.starts_with("-")) << option;
    }
  }
}

TEST(Source, AnEmptyOutputHasNoText) {
  const KernelSource source = generate(make_plan(parse_spec("input=0,4,9,9 weight=4,4,3,3"), parse_target("sm_90a")));
  EXPECT_EQ(source, KernelSource());
}

TEST(Source, GeneratorFingerprintIsADigest) {
  EXPECT_EQ(generator_fingerprint().size(), 64u);
  EXPECT_EQ(generator_fingerprint().find_first_not_of("0123456789abcdef"), std::string_view::npos);
}

// One field changed.

/// A change of one field, in the text form of specs; what must become of it.
enum class Effect {
  code,     ///< the code changes, or the grid
  comment,  ///< only the comment that names the spec changes: the kernel would do, and is compiled again all the same
  nothing,  ///< canonicalised away: the same kernel
  refused   ///< the field cannot change alone
};

struct TextChange {
  const char* field;   ///< as in the text form
  const char* change;  ///< appended to the base
  Effect effect;
  const char* reason;  ///< unless the effect is on the code
};

constexpr const char* kBase =
    "input=2,8,21,27 weight=12,4,3,5 stride=2,1 padding=1,2,3,2 dilation=2,3 groups=2 bias activation=relu";

constexpr TextChange kTextChanges[] = {
    {"input", "input=3,8,21,27", Effect::code, ""},
    {"input", "input=2,12,21,27", Effect::refused, "C = groups * C/groups"},
    {"input", "input=2,8,23,27", Effect::code, ""},
    {"input", "input=2,8,21,28", Effect::code, ""},
    {"weight", "weight=14,4,3,5", Effect::code, ""},
    {"weight", "weight=12,3,3,5", Effect::refused, "C = groups * C/groups"},
    {"weight", "weight=12,4,4,5", Effect::code, ""},
    {"weight", "weight=12,4,3,4", Effect::code, ""},
    {"stride", "stride=1,1", Effect::code, ""},
    {"stride", "stride=2,2", Effect::code, ""},
    {"padding", "padding=2,2,3,2", Effect::code, ""},
    {"padding", "padding=1,4,3,2", Effect::code, ""},
    {"padding", "padding=1,1,3,2", Effect::nothing, "no window reaches the last row of zeros with stride 2"},
    {"padding", "padding=1,2,2,2", Effect::code, ""},
    {"padding", "padding=1,2,3,3", Effect::code, ""},
    {"dilation", "dilation=1,3", Effect::code, ""},
    {"dilation", "dilation=2,2", Effect::code, ""},
    {"groups", "groups=4", Effect::refused, "C = groups * C/groups"},
    {"dtype", "dtype=f16", Effect::code, ""},
    {"dtype", "dtype=bf16", Effect::code, ""},
    {"input_layout", "input_layout=nhwc", Effect::code, ""},
    {"output_layout", "output_layout=nhwc", Effect::code, ""},
    {"math", "math=ieee", Effect::comment, "too few products for tensor cores"},
    {"math", "math=tf32", Effect::code, ""},
    {"bias", "bias=false", Effect::code, ""},
    {"residual", "residual=true", Effect::code, ""},
    {"activation", "activation=none", Effect::code, ""},
    {"activation", "activation=leaky_relu", Effect::code, ""},
    {"activation", "activation=gelu_erf", Effect::code, ""},
    {"activation", "activation=gelu_tanh", Effect::code, ""},
    {"activation", "activation=silu", Effect::code, ""},
    {"activation", "activation=sigmoid", Effect::code, ""},
    {"activation", "activation=tanh", Effect::code, ""},
    {"activation", "activation=hardswish", Effect::code, ""},
    {"activation", "activation=clamp", Effect::code, ""},
    {"slope", "slope=0.5", Effect::nothing, "used by leaky_relu only"},
    {"clamp_min", "clamp_min=-1", Effect::nothing, "used by clamp only"},
    {"clamp_max", "clamp_max=7", Effect::nothing, "used by clamp only"},
    {"alignment", "alignment=32", Effect::comment, "no access is wider than 16 bytes"},
    {"operation", "operation=data_gradient", Effect::code, ""},
    {"operation", "operation=weight_gradient", Effect::refused, "it has no activation"},
    {"output_dtype", "output_dtype=f32", Effect::nothing, "dtype is f32"},
    {"output_dtype", "output_dtype=f16", Effect::refused, "no kernel stores another type"},
    {"dy_activation", "dy_activation=relu", Effect::refused, "forward has no dy"},
};

/// Changes of other bases, which the one above cannot show.
struct SpecialChange {
  const char *base, *change;
  Effect effect;
};

constexpr SpecialChange kSpecialChanges[] = {
    {"input=2,8,21,27 weight=12,8,3,5 activation=leaky_relu", "slope=0.5", Effect::code},
    {"input=2,8,21,27 weight=12,8,3,5 activation=clamp", "clamp_min=-1", Effect::code},
    {"input=2,8,21,27 weight=12,8,3,5 activation=clamp", "clamp_max=7", Effect::code},
    {"input=2,8,21,28 weight=12,8,1,1", "dilation=2,3", Effect::nothing},
    {"input=2,8,16,28 weight=16,8,3,3 output_layout=nhwc", "alignment=4", Effect::code},
    {"input=2,8,16,28 weight=8,1,3,3 groups=8", "alignment=4", Effect::code},
    {"input=2,1,16,28 weight=16,1,3,3", "input_layout=nhwc", Effect::nothing},
    {"input=2,8,21,27 weight=12,4,3,5 groups=2", "input=2,16,21,27 groups=4", Effect::code},
    {"input=2,8,21,27 weight=12,4,3,5 groups=2", "input=2,16,21,27 weight=12,8,3,5", Effect::code},
    {"input=2,8,21,27 weight=12,8,3,5", "operation=weight_gradient", Effect::code},
    {"input=2,8,21,27 weight=12,8,3,5 operation=data_gradient", "operation=weight_gradient", Effect::code},
    {"input=2,8,21,27 weight=12,8,3,5 operation=weight_gradient", "bias=true", Effect::code},
    {"input=2,8,21,27 weight=12,8,3,5 operation=weight_gradient dtype=f16", "output_dtype=f32", Effect::code},
    {"input=2,8,21,27 weight=12,8,3,5 operation=data_gradient", "dy_activation=relu", Effect::code},
    {"input=2,8,21,27 weight=12,8,3,5 operation=weight_gradient", "dy_activation=relu", Effect::code},
    {"input=2,8,21,27 weight=12,8,3,5 operation=weight_gradient dy_activation=relu", "dy_activation=clamp",
     Effect::code},
    {"input=2,8,21,27 weight=12,8,3,5 operation=data_gradient dy_activation=leaky_relu", "slope=0.5", Effect::code},
    {"input=2,8,21,27 weight=12,8,3,5 operation=data_gradient dy_activation=clamp", "clamp_max=7", Effect::code},
    {"input=8,68,56,58 weight=72,68,3,3 padding=1", "math=tf32", Effect::code},
    {"input=8,68,56,58 weight=72,68,3,3 padding=1", "math=ieee", Effect::code},
};

/// Code and grids without the kernels' names, which have fields that change nothing else.
std::string code_without_names(const KernelSource& source) {
  std::string code = code_of(source.text);
  for (const KernelEntry& entry : source.entries) code += std::to_string(entry.grid[0]) + ' ';
  for (const KernelEntry& entry : source.entries)
    for (std::size_t at = code.find(entry.name); at != std::string::npos; at = code.find(entry.name, at))
      code.erase(at, entry.name.size());
  return code;
}

Effect effect_of(const std::string& base, const std::string& change) {
  const Target target = parse_target("sm_90a");
  const KernelSource before = generate(make_plan(parse_spec(base), target));
  // Later keys of the text form replace earlier ones only where they differ by name, so the key is taken out first.
  std::map<std::string, std::string> fields;
  std::vector<std::string> order;
  for (const std::string& text : {base, change}) {
    std::size_t at = 0;
    while (at < text.size()) {
      const std::size_t end = std::min(text.find(' ', at), text.size());
      const std::string word = text.substr(at, end - at), key = word.substr(0, word.find('='));
      if (fields.insert_or_assign(key, word).second) order.push_back(key);
      at = end + 1;
    }
  }
  std::string changed;
  for (const std::string& key : order) changed += fields[key] + ' ';
  changed.pop_back();
  KernelSource after;
  try {
    after = generate(make_plan(parse_spec(changed), target));
  } catch (const SpecError&) {
    return Effect::refused;
  }
  if (before == after) return Effect::nothing;
  return code_without_names(before) != code_without_names(after) ? Effect::code : Effect::comment;
}

TEST(KeyPerturbation, EachFieldReachesTheCodeOrHasAReason) {
  for (const TextChange& change : kTextChanges) {
    EXPECT_EQ(static_cast<int>(effect_of(kBase, change.change)), static_cast<int>(change.effect))
        << change.change << " (0 code, 1 comment, 2 nothing, 3 refused); " << change.reason;
    EXPECT_EQ(change.effect == Effect::code, std::string(change.reason).empty()) << change.change;
  }
  for (const SpecialChange& change : kSpecialChanges)
    EXPECT_EQ(static_cast<int>(effect_of(change.base, change.change)), static_cast<int>(change.effect))
        << change.base << " with " << change.change;
}

TEST(KeyPerturbation, NoFieldIsForgotten) {
  std::map<std::string, std::size_t> changes;
  for (const TextChange& change : kTextChanges) ++changes[change.field];
  ConvSpec spec;
  for_each_field(spec, [&changes](std::string_view name, const auto&... values) {
    EXPECT_GE(changes[std::string(name)], sizeof...(values)) << name << " has too few changes in the list";
  });
  EXPECT_EQ(changes.size(), 20u) << "a change of a field that does not exist";
}

TEST(KeyPerturbation, TheTargetReachesTheOptions) {
  const ConvSpec spec = parse_spec(kBase);
  std::set<std::vector<std::string>> options;
  for (const char* arch : {"sm_75", "sm_80", "sm_86", "sm_90", "sm_90a", "sm_100a", "sm_120a"})
    options.insert(generate(make_plan(spec, parse_target(arch))).options);
  EXPECT_EQ(options.size(), 7u);
}

}  // namespace
}  // namespace jitconv::codegen
