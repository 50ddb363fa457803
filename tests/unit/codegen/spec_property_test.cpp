// Statements about all specs: valid ones, ones with one fault, and numbers thrown together at random.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <string>

#include "codegen/plan.h"
#include "codegen/spec_fields.h"
#include "jitconv/error.h"
#include "support/random_specs.h"
#include "tools/check/reference.h"

namespace jitconv {
namespace {

using codegen::canonical;

/// Output extent by trying every window position instead of dividing.
std::int64_t count_windows(std::int64_t extent, std::int64_t before, std::int64_t after, std::int64_t taps,
                           std::int64_t dilation, std::int64_t stride) {
  std::int64_t count = 0;
  for (std::int64_t first = -before; first + dilation * (taps - 1) < extent + after; first += stride) ++count;
  return count;
}

RC_GTEST_PROP(SpecProperty, OutputShapeCountsWindows, ()) {
  const ConvSpec spec = *test::valid_specs();
  const TensorShape output = output_shape(spec);
  RC_ASSERT(output.n == spec.input.n);
  RC_ASSERT(output.c == spec.weight.k);
  RC_ASSERT(output.h == count_windows(spec.input.h, spec.padding.top, spec.padding.bottom, spec.weight.r,
                                      spec.dilation.h, spec.stride.h));
  RC_ASSERT(output.w == count_windows(spec.input.w, spec.padding.left, spec.padding.right, spec.weight.s,
                                      spec.dilation.w, spec.stride.w));
}

RC_GTEST_PROP(SpecProperty, TextReadsBack, ()) {
  const ConvSpec spec = *test::valid_specs();
  RC_ASSERT(parse_spec(to_string(spec)) == spec);
}

RC_GTEST_PROP(SpecProperty, TextReadsBackWhateverTheNumbers, ()) {
  ConvSpec spec;
  codegen::for_each_field(spec, [](std::string_view, auto&... values) {
    const auto draw = [](auto& value) {
      using T = std::remove_reference_t<decltype(value)>;
      if constexpr (std::is_same_v<T, std::int64_t> || std::is_same_v<T, bool>) {
        value = *rc::gen::arbitrary<T>();
      } else if constexpr (std::is_same_v<T, float>) {
        do {
          value = std::bit_cast<float>(*rc::gen::arbitrary<std::uint32_t>());
        } while (std::isnan(value));
      } else {
        const auto last = static_cast<int>(codegen::names_of(value).size());
        value = static_cast<T>(*rc::gen::inRange(0, last));
      }
    };
    (draw(values), ...);
  });
  const ConvSpec read = parse_spec(to_string(spec));
  RC_ASSERT(read == spec);
  RC_ASSERT(codegen::hash_value(read) == codegen::hash_value(spec));
}

RC_GTEST_PROP(SpecProperty, TextIsReadOrRefusedButNeverCrashes, ()) {
  // Pieces of the grammar in random order come closer to the edges of the parser than random characters.
  static const std::vector<std::string> pieces = {
      "input", "weight", "padding", "bias", "slope", "layout", "dtype", "=",    ",",   " ",    "1",
      "-",     "1e9",    "nan",     "f32",  "nhwc",  "=1,2",   "\t",    "\x80", "0x1", "true", "."};
  std::string text;
  const int count = *rc::gen::inRange(0, 12);
  for (int i = 0; i < count; ++i) text += *rc::gen::elementOf(pieces);
  try {
    parse_spec(text);
  } catch (const SpecError& error) {
    RC_ASSERT(std::string(error.what()).find(error.field()) != std::string::npos);
  }
}

/// One rule broken in a spec that is otherwise valid.
struct Fault {
  const char* field;
  void (*apply)(ConvSpec&, std::int64_t amount);
};

constexpr std::int64_t kLimit = std::int64_t{1} << 31;

const Fault kFaults[] = {
    {"input", [](ConvSpec& s, std::int64_t a) { s.input.n = -a; }},
    {"input", [](ConvSpec& s, std::int64_t a) { s.input.c = 1 - a; }},
    {"input", [](ConvSpec& s, std::int64_t a) { s.input.h = 1 - a; }},
    {"input", [](ConvSpec& s, std::int64_t a) { s.input.w = kLimit - 1 + a; }},
    {"weight", [](ConvSpec& s, std::int64_t a) { s.weight.k = 1 - a; }},
    {"weight", [](ConvSpec& s, std::int64_t a) { s.weight.c += a; }},
    {"weight", [](ConvSpec& s, std::int64_t a) { s.weight.r = 1 - a; }},
    {"weight", [](ConvSpec& s, std::int64_t a) { s.weight.s = kLimit - 1 + a; }},
    {"weight", [](ConvSpec& s, std::int64_t a) { s.weight.r = s.input.h + s.padding.top + s.padding.bottom + a; }},
    {"weight", [](ConvSpec& s, std::int64_t a) { s.weight.s = s.input.w + s.padding.left + s.padding.right + a; }},
    {"stride", [](ConvSpec& s, std::int64_t a) { s.stride.h = 1 - a; }},
    {"stride", [](ConvSpec& s, std::int64_t a) { s.stride.w = kLimit - 1 + a; }},
    {"padding", [](ConvSpec& s, std::int64_t a) { s.padding.top = -a; }},
    {"padding", [](ConvSpec& s, std::int64_t a) { s.padding.bottom = -a; }},
    {"padding", [](ConvSpec& s, std::int64_t a) { s.padding.left = -a; }},
    {"padding", [](ConvSpec& s, std::int64_t a) { s.padding.right = kLimit - 1 - s.input.w + a; }},
    {"dilation", [](ConvSpec& s, std::int64_t a) { s.dilation.h = 1 - a; }},
    {"dilation", [](ConvSpec& s, std::int64_t a) { s.dilation.w = 1 - a; }},
    {"groups", [](ConvSpec& s, std::int64_t a) { s.groups = 1 - a; }},
    {"groups", [](ConvSpec& s, std::int64_t a) { s.groups = s.input.c + a; }},
    {"dtype", [](ConvSpec& s, std::int64_t a) { s.dtype = static_cast<DataType>(2 + a); }},
    {"operation", [](ConvSpec& s, std::int64_t a) { s.operation = static_cast<Operation>(2 + a); }},
    {"output_dtype", [](ConvSpec& s, std::int64_t a) { s.output_dtype = static_cast<OutputType>(3 + a); }},
    {"input_layout", [](ConvSpec& s, std::int64_t a) { s.input_layout = static_cast<Layout>(1 + a); }},
    {"output_layout", [](ConvSpec& s, std::int64_t a) { s.output_layout = static_cast<Layout>(1 + a); }},
    {"math", [](ConvSpec& s, std::int64_t a) { s.math = static_cast<MathMode>(3 + a); }},
    {"epilogue.activation",
     [](ConvSpec& s, std::int64_t a) { s.epilogue.activation = static_cast<Activation>(9 + a); }},
    {"dy_activation", [](ConvSpec& s, std::int64_t a) { s.dy_activation = static_cast<Activation>(9 + a); }},
    {"epilogue.slope", [](ConvSpec& s, std::int64_t) { s.epilogue.slope = std::numeric_limits<float>::quiet_NaN(); }},
    {"epilogue.clamp_max", [](ConvSpec& s, std::int64_t) { s.epilogue.clamp_max = INFINITY; }},
    {"epilogue.clamp_min",
     [](ConvSpec& s, std::int64_t a) { s.epilogue.clamp_min = s.epilogue.clamp_max + static_cast<float>(a); }},
    {"alignment", [](ConvSpec& s, std::int64_t a) { s.alignment = 256 + a; }},
    {"alignment", [](ConvSpec& s, std::int64_t) { s.alignment = element_bytes(s.dtype) / 2; }},
    {"alignment", [](ConvSpec& s, std::int64_t a) { s.alignment = -a; }},
};

RC_GTEST_PROP(SpecProperty, OneFaultIsReportedByItsField, ()) {
  ConvSpec spec = *test::valid_specs();
  const Fault fault = kFaults[*rc::gen::inRange<std::size_t>(0, std::size(kFaults))];
  validate(spec);
  fault.apply(spec, *rc::gen::inRange<std::int64_t>(1, 100));
  try {
    validate(spec);
  } catch (const SpecError& error) {
    RC_ASSERT(error.field() == fault.field);
    RC_ASSERT(std::string(error.what()).find(error.field().substr(0, error.field().find('.'))) != std::string::npos);
    return;
  }
  RC_FAIL("accepted: " + to_string(spec));
}

TEST(SpecProperty, RandomNumbersAreRefusedOrConsistent) {
  constexpr std::array<std::int64_t, 16> values = {
      0, 1, 2, 3, 4, 7, 8, 16, -1, kLimit - 1, kLimit, -kLimit, kLimit * 2, 1ll << 62, INT64_MAX, INT64_MIN};
  std::mt19937_64 random(7);
  // Mostly small numbers in half of the specs, so that some are valid.
  const auto draw = [&](bool small) { return values[random() % (small ? 8 : values.size())]; };
  int valid = 0, invalid = 0;
  for (int i = 0; i < 200'000; ++i) {
    ConvSpec spec;
    const bool small = i % 2 == 0;
    codegen::for_each_field(spec, [&](std::string_view name, auto&... fields) {
      const auto set = [&](auto& value) {
        using T = std::remove_reference_t<decltype(value)>;
        if constexpr (std::is_same_v<T, float>) {
          value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
        } else if constexpr (std::is_same_v<T, bool>) {
          value = random() % 2 == 0;
        } else if constexpr (std::is_enum_v<T>) {
          value = static_cast<T>(random() % (codegen::names_of(value).size() + (small ? 0 : 1)));
        } else if (!small || random() % 4 == 0 || name == "input") {
          value = draw(small);
        }
      };
      (set(fields), ...);
    });
    if (small) spec.epilogue = {};
    if (small && spec.operation == Operation::forward) spec.dy_activation = Activation::none;
    if (small && random() % 2 == 0) {
      if (spec.groups > 0) spec.weight = {spec.groups, spec.input.c / spec.groups, 1 + spec.weight.r % 3, 2};
    }
    try {
      const TensorShape output = output_shape(spec);
      ++valid;
      ASSERT_GE(output.h, 1);
      ASSERT_GE(output.w, 1);
      ASSERT_EQ(output_shape(canonical(spec)), output) << to_string(spec);
      const bool has_kernels = output_type(spec) == spec.dtype ||
                               (spec.operation == Operation::weight_gradient && output_type(spec) == DataType::f32);
      if (has_kernels) {
        ASSERT_GE(codegen::work(spec).flop, 0);
      }
    } catch (const SpecError& error) {
      ++invalid;
      ASSERT_FALSE(error.field().empty());
    }
  }
  EXPECT_GE(valid, 1'000);
  EXPECT_GE(invalid, 100'000);
}

RC_GTEST_PROP(SpecProperty, CanonicalIsIdempotent, ()) {
  const ConvSpec spec = *test::valid_specs();
  const ConvSpec once = canonical(spec);
  RC_ASSERT(canonical(once) == once);
  RC_ASSERT(output_shape(once) == output_shape(spec));
  RC_ASSERT(codegen::work(once).flop == codegen::work(spec).flop);
}

RC_GTEST_PROP(SpecProperty, CanonicalKeepsTheResult, ()) {
  ConvSpec spec = *test::valid_specs(test::kTinyLimits);
  const check::Data data = check::make_data(spec, check::DataKind::random, 11);
  const std::vector<check::Expected> before = check::reference(spec, data);
  const std::vector<check::Expected> after = check::reference(canonical(spec), data);
  RC_ASSERT(before.size() == after.size());
  for (std::size_t i = 0; i < before.size(); ++i) RC_ASSERT(before[i].y == after[i].y);
}

}  // namespace
}  // namespace jitconv
