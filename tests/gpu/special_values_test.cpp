// NaN and infinity go where the definition says and nowhere else: outputs that do not read them keep their bits,
// whatever lies in padding, tile borders and unused channels.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "gpu/gpu.h"
#include "runtime/compile.h"
#include "support/case_lists.h"
#include "tools/check/number.h"

namespace jitconv::test {
namespace {

class SpecialValues : public GpuTest {
 protected:
  /// Uploads `values` as the tensor at `to`.
  void upload(const ConvSpec& spec, const void* to, const std::vector<float>& values) {
    const std::vector<std::byte> bytes = check::encode(spec.dtype, values);
    device().upload(const_cast<void*>(to), bytes.data(), static_cast<std::int64_t>(bytes.size()));
  }
};

/// NaN, infinity and minus infinity at corners, on edges and inside; in the first and last channel and image.
void plant(const ConvSpec& spec, std::vector<float>& x) {
  const float values[] = {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()};
  const TensorShape& in = spec.input;
  const bool nchw = spec.input_layout == Layout::nchw;
  const std::int64_t places[][4] = {{0, 0, 0, 0},
                                    {0, in.c - 1, 0, in.w - 1},
                                    {in.n - 1, 0, in.h - 1, 0},
                                    {in.n - 1, in.c - 1, in.h - 1, in.w - 1},
                                    {0, in.c / 2, in.h / 2, 0},
                                    {in.n - 1, in.c / 2, in.h / 2, in.w / 2}};
  std::size_t turn = 0;
  for (const auto& [n, c, h, w] : places) {
    const std::int64_t at = nchw ? ((n * in.c + c) * in.h + h) * in.w + w : ((n * in.h + h) * in.w + w) * in.c + c;
    x[static_cast<std::size_t>(at)] = values[turn++ % 3];
  }
}

bool same_value(DataType type, double expected, float actual) {
  if (std::isnan(expected)) return std::isnan(actual);
  return static_cast<double>(actual) == check::round_to(type, expected);
}

TEST_F(SpecialValues, ReachOnlyTheOutputsThatReadThem) {
  Arena arena(device());
  Report::Category counts;
  std::int64_t planned = 0;
  for (const FamilyCase& family : family_cases(target())) {
    planned += static_cast<std::int64_t>(types_of(family).size());
    for (const DataType type : types_of(family)) {
      ConvSpec spec = family.spec;
      spec.dtype = type;
      spec.epilogue.bias = true;
      spec.epilogue.activation = Activation::relu;  // NaN must pass it
      SCOPED_TRACE(family.name + ": " + to_string(spec));
      const std::optional<codegen::ConvPlan> plan = plan_for(family, spec, target());
      ASSERT_TRUE(plan);
      const Kernel kernel = runtime::compile_plan(*plan);
      const LaunchArgs args = place_tensors(arena, spec, kernel.workspace_bytes());
      const check::Data data = check::make_data(spec, check::DataKind::exact, 11);
      fill_tensors(device(), spec, data, args, kernel.workspace_bytes());
      std::vector<float> x = check::values_of(data.x, check::element_count(spec.input));
      std::vector<float> bias = check::values_of(data.bias, spec.filter.k);
      const std::vector<float> w = check::values_of(data.w, check::element_count(spec.filter));
      plant(spec, x);
      bias.back() = std::numeric_limits<float>::quiet_NaN();
      upload(spec, args.x, x);
      upload(spec, args.bias, bias);
      kernel.launch(nullptr, args);
      device().synchronize();

      check::Operands operands(data);
      operands.x = x, operands.w = w, operands.bias = bias;
      const std::vector<check::Expected> expected = check::reference(spec, operands);
      const std::vector<float> actual = check::decode(type, output_bytes(device(), spec, args.y));
      ASSERT_EQ(actual.size(), expected.size());
      std::int64_t wrong = 0, not_finite = 0, first = -1;
      for (std::size_t i = 0; i < actual.size(); ++i) {
        if (!std::isfinite(expected[i].y)) ++not_finite;
        if (same_value(type, expected[i].y, actual[i])) continue;
        if (wrong++ == 0) first = static_cast<std::int64_t>(i);
      }
      EXPECT_EQ(wrong, 0) << "first at " << first << ": "
                          << (first < 0 ? 0.0f : actual[static_cast<std::size_t>(first)]) << ", expected "
                          << (first < 0 ? 0.0 : expected[static_cast<std::size_t>(first)].y);
      // Both kinds of outputs must exist for this to show anything.
      EXPECT_GT(not_finite, 0);
      EXPECT_LT(not_finite, static_cast<std::int64_t>(actual.size()) * 9 / 10);
      EXPECT_EQ(arena.damage(), "");
      ++counts.kernels, ++counts.launches, ++counts.families[std::string(codegen::to_string(plan->family))];
      counts.outputs += static_cast<std::int64_t>(actual.size());
      counts.failed += wrong > 0 ? 1 : 0;
    }
  }
  EXPECT_EQ(counts.kernels, planned);
  Report::get().add("special values", counts);
}

}  // namespace
}  // namespace jitconv::test
