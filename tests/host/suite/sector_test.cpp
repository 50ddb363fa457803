// What memory-bound kernels ask of global memory, counted request by request as a profiler would: a sector (32 bytes)
// that two instructions share is moved twice, and one of which a warp wants half is moved for nothing. The numbers
// follow from the shapes alone; a store pattern that writes half sectors cannot reach them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include "codegen/plan.h"
#include "host/backend.h"
#include "runtime/backend.h"
#include "support/tensors.h"
#include "tools/documented.h"
#include "tools/host_device.h"
#include "tools/reduce.h"

namespace jitconv::test {
namespace {

constexpr std::int64_t kSectorFloats = 8;

tools::HostDevice& cpu() {
  static tools::HostDevice device{Target::host()};
  return device;
}

/// A documented configuration with fewer images, channels or rows and all else kept, and the plan of the full size.
struct Small {
  const char* config;
  const char* spec;
  std::int64_t segment;  ///< columns of a row that one warp writes
  double stores;         ///< expected efficiency
  double loads;          ///< least efficiency
};

void PrintTo(const Small& small, std::ostream* stream) { *stream << small.spec; }

/// Buffers of one launch, each at a multiple of 256 bytes, as GPU allocations are.
class Tensors {
 public:
  explicit Tensors(const ConvSpec& spec, std::int64_t y_offset = 0)
      : x_(cpu(), 4 * check::element_count(spec.input)),
        w_(cpu(), 4 * check::element_count(spec.weight)),
        y_(cpu(), 4 * output_count(spec) + y_offset),
        offset_(y_offset),
        data_(check::make_data(spec, check::DataKind::exact, 5)) {
    cpu().generate(x_.data(), check::element_count(spec.input), data_.x);
    cpu().generate(w_.data(), check::element_count(spec.weight), data_.w);
  }
  void* y() const { return y_.at(offset_); }
  void* parameter(codegen::Tensor tensor) const {
    return tensor == codegen::Tensor::x ? x_.data() : tensor == codegen::Tensor::w ? w_.data() : y();
  }
  std::int64_t bytes(codegen::Tensor tensor) const {
    return tensor == codegen::Tensor::x ? x_.bytes() : tensor == codegen::Tensor::w ? w_.bytes() : y_.bytes() - offset_;
  }

 private:
  tools::Buffer x_, w_, y_;
  std::int64_t offset_;
  check::Data data_;
};

/// Runs the source, compiled to count.
host::Counters count(const codegen::KernelSource& source, const Tensors& tensors) {
  const runtime::Backend& backend = runtime::backend_for(cpu().properties().target);
  CompileOptions options;
  options.counters = true;
  const runtime::Binary binary = backend.compile(source, backend.options(source, options));
  const std::shared_ptr<runtime::LoadedImage> image = backend.load(binary.image);
  runtime::LaunchStep step;
  step.entry = &source.entries.front();
  step.kernel = backend.kernel(*image, step.entry->name);
  step.info = backend.prepare(step.kernel, backend.ensure_context(), step.entry->shared_bytes);
  std::array<void*, runtime::LaunchStep::kMostParameters> pointers{}, parameters{};
  for (std::size_t i = 0; i < step.entry->arguments.size(); ++i) {
    const codegen::Tensor tensor = step.entry->arguments[i].tensor;
    pointers[i] = tensors.parameter(tensor);
    parameters[i] = &pointers[i];
    step.extents[i] = {tensors.bytes(tensor), tensor == codegen::Tensor::y};
  }
  const host::Session session(host::Settings{});
  backend.launch(step, nullptr, parameters.data(), /*overlap=*/false);
  const std::vector<host::Report> reports = session.reports();
  EXPECT_EQ(reports.size(), 1u);
  for (const host::Finding& finding : reports.front().findings) ADD_FAILURE() << to_string(finding);
  return reports.front().counters;
}

/// The plan of the documented configuration, for the smaller one.
std::optional<codegen::ConvPlan> plan_like_documented(const char* config, const ConvSpec& spec) {
  const Target& target = cpu().properties().target;
  ConvSpec documented = tools::find_documented(config)->spec;
  documented.math = spec.math;
  const codegen::ConvPlan full = codegen::make_plan(documented, target);
  for (codegen::ConvPlan& plan : codegen::enumerate_plans(spec, target, SIZE_MAX))
    if (plan.convolution().tiling == full.convolution().tiling) return std::move(plan);
  return {};
}

/// Sectors that y's rows touch, each row cut into segments of `segment` columns that different instructions write.
std::int64_t sectors_of_rows(const ConvSpec& spec, const void* y, std::int64_t segment) {
  const TensorShape out = output_shape(spec);
  const std::int64_t base = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(y) / sizeof(float));
  std::int64_t sectors = 0;
  for (std::int64_t row = 0; row < out.n * out.c * out.h; ++row) {
    for (std::int64_t q = 0; q < out.w; q += segment) {
      const std::int64_t first = base + row * out.w + q;
      const std::int64_t last = first + std::min(segment, out.w - q) - 1;
      sectors += last / kSectorFloats - first / kSectorFloats + 1;
    }
  }
  return sectors;
}

// Rows that end in the middle of a sector share it with the next row, and segments of a row that start in the middle of
// one share theirs with their neighbour. Nothing else is lost:
//
// 510 columns, whole rows (82, 84). Rows start at phases 0, 6, 4, 2 of a sector in turn and so touch 64, 65, 65, 64
// sectors, 64.5 on average, of which 510 / 8 = 63.75 are asked for: 0.98837.
// 250 columns, whole rows (85). Phases 0, 2, 4, 6; 32 sectors each for 31.25: 0.97656.
// 1022 columns in segments of 128 (B). A row at phase 0 touches 7 * 16 + 16 sectors; at phase 2 its segments touch 17
// each but the last, of 126, which touches 16: 135; at phases 4 and 6 all touch 17: 136. On average 133.75 for 127.75:
// 0.95514.
// 512 and 1024 columns (83, 86, 87): nothing is shared, 1.
//
// Loads are copies of 16 bytes a lane along the rows of a tile, 512 bytes a warp. Depthwise rows of 32 copies (83) and
// of 66, the last two of them padding (85), let every warp start on a sector, so nothing is lost but what 3 to 21
// weights lose, which are read one by one. Rows of 129 copies (82, 84: 512 columns and padding) make warps start in the
// middle of a sector in every other row, where they touch 17 sectors for 16: 16 / 16.5 = 0.97. Tiles of 128 columns
// with a halo on either side (86) have rows of 34 copies that start and end in the middle of a sector: 18 for 17, and
// every other row is cut in the middle of one by the end of a warp: 17 / 18.5 = 0.92, less at the left and right edges
// of the image: 0.90. Pointwise tiles have no halo and start on 1 KB: whole sectors only, and the weights come 32 bytes
// at a time. B's rows of 258 columns end with 2 columns copied as 4, half a sector after 32 whole ones, and its weights
// come 32 bytes at a time from places 288 bytes apart: 0.99.
constexpr Small kSmall[] = {
    {"KB_L1_82", "input=1,2,512,512 weight=2,1,3,3 groups=2", 512, 0.98837, 0.965},
    {"KB_L1_83", "input=1,2,512,512 weight=2,1,3,1 groups=2", 128, 1.0, 0.995},
    {"KB_L1_84", "input=1,2,256,512 weight=2,1,3,3 groups=2", 512, 0.98837, 0.965},
    {"KB_L1_85", "input=1,2,128,256 weight=2,1,3,7 groups=2", 256, 0.97656, 0.995},
    {"KB_L1_86_dw", "input=1,2,512,512 weight=2,1,3,3 groups=2 padding=1", 128, 1.0, 0.90},
    {"KB_L1_86_pw", "input=1,64,2,512 weight=128,64,1,1 math=ieee", 128, 1.0, 1.0},
    {"KB_L1_87", "input=1,64,2,1024 weight=128,64,1,1 math=ieee", 128, 1.0, 1.0},
    {"B", "input=1,16,8,1024 weight=32,16,3,3 math=ieee", 128, 0.95514, 0.985},
};

class Sectors : public ::testing::TestWithParam<Small> {};

TEST_P(Sectors, AreUsedWhole) {
  const Small& small = GetParam();
  const ConvSpec spec = parse_spec(small.spec);
  const std::optional<codegen::ConvPlan> plan = plan_like_documented(small.config, spec);
  ASSERT_TRUE(plan) << "the tiling of " << small.config << " does not fit " << small.spec;
  const Tensors tensors(spec);
  const host::Counters counters = count(codegen::generate(*plan), tensors);
  std::printf("%s: stores %.5f (%llu sectors in %llu requests), loads %.5f (%llu sectors in %llu requests)\n",
              small.config, counters.global_stores.efficiency(),
              static_cast<unsigned long long>(counters.global_stores.sectors),
              static_cast<unsigned long long>(counters.global_stores.requests), counters.global_loads.efficiency(),
              static_cast<unsigned long long>(counters.global_loads.sectors),
              static_cast<unsigned long long>(counters.global_loads.requests));

  // Every output is stored once, and the sectors are those that its rows cannot do without.
  EXPECT_EQ(counters.global_stores.bytes, static_cast<std::uint64_t>(4 * output_count(spec)));
  EXPECT_EQ(counters.global_stores.sectors,
            static_cast<std::uint64_t>(sectors_of_rows(spec, tensors.y(), small.segment)));
  EXPECT_NEAR(counters.global_stores.efficiency(), small.stores, 5e-4);
  EXPECT_GE(counters.global_loads.efficiency(), small.loads);
  EXPECT_EQ(counters.fmas, static_cast<std::uint64_t>(tools::executed_multiply_adds(*plan)));
}

INSTANTIATE_TEST_SUITE_P(Documented, Sectors, ::testing::ValuesIn(kSmall),
                         [](const auto& one) { return std::string(one.param.config); });

// The alignment that matters is that of the address, not of the offset: a tensor that starts in the middle of a sector
// costs no more than its rows do.
TEST(SectorsOfMisalignedTensors, AreThoseOfTheRows) {
  const ConvSpec spec = parse_spec("input=1,2,66,512 weight=2,1,3,3 groups=2");
  const std::optional<codegen::ConvPlan> plan = plan_like_documented("KB_L1_82", spec);
  ASSERT_TRUE(plan);
  const codegen::KernelSource source = codegen::generate(*plan);
  for (const std::int64_t offset : {0, 16}) {
    const Tensors tensors(spec, offset);
    EXPECT_EQ(count(source, tensors).global_stores.sectors,
              static_cast<std::uint64_t>(sectors_of_rows(spec, tensors.y(), 512)))
        << "y starts " << offset << " bytes into a sector";
  }
}

// The same kernel without its alignment to sectors: every request but the first of a row takes one sector more.
TEST(SectorsOfABadStore, AreMore) {
  const ConvSpec spec = parse_spec("input=1,2,66,512 weight=2,1,3,3 groups=2");
  const std::optional<codegen::ConvPlan> plan = plan_like_documented("KB_L1_82", spec);
  ASSERT_TRUE(plan);
  codegen::KernelSource source = codegen::generate(*plan);
  const std::string aligned = "(kSectorElements - 1);";
  const std::size_t at = source.text.find(aligned);
  ASSERT_NE(at, std::string::npos);
  source.text.replace(at, aligned.size(), "0;");
  const Tensors tensors(spec);
  const host::Counters counters = count(source, tensors);
  EXPECT_EQ(counters.global_stores.bytes, static_cast<std::uint64_t>(4 * output_count(spec)));
  // Three rows of four start in the middle of a sector, and so do their 16 requests: 15 sectors more than a row needs.
  const std::int64_t rows = 2 * 64, expected = sectors_of_rows(spec, tensors.y(), 512) + rows / 4 * 3 * 15;
  EXPECT_EQ(counters.global_stores.sectors, static_cast<std::uint64_t>(expected));
  EXPECT_LT(counters.global_stores.efficiency(), 0.87);
}

}  // namespace
}  // namespace jitconv::test
