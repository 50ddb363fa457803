// Tensors of more than 2^31 elements, without the time and the memory: the buffers are address space whose pages exist
// where they are touched, and only the last blocks of the launch run. What they read lies beyond the reach of 32 bits.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <cstdint>
#include <string>

#include "codegen/plan.h"
#include "host/backend.h"
#include "runtime/backend.h"
#include "support/family_cases.h"

namespace jitconv::test {
namespace {

/// Zeros that take no memory until they are written.
class SparseFloats {
 public:
  explicit SparseFloats(std::int64_t count) : bytes_(4 * count) {
    void* data = mmap(nullptr, static_cast<std::size_t>(bytes_), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    data_ = data == MAP_FAILED ? nullptr : static_cast<float*>(data);
  }
  ~SparseFloats() {
    if (data_ != nullptr) munmap(data_, static_cast<std::size_t>(bytes_));
  }
  SparseFloats(const SparseFloats&) = delete;
  SparseFloats& operator=(const SparseFloats&) = delete;
  float* data() const { return data_; }
  std::int64_t bytes() const { return bytes_; }
  float& operator[](std::int64_t index) const { return data_[index]; }

 private:
  std::int64_t bytes_;
  float* data_;
};

std::int64_t elements(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) { return a * b * c * d; }

/// The place of an element of a tensor.
std::int64_t place(const TensorShape& of, Layout layout, std::int64_t n, std::int64_t c, std::int64_t h,
                   std::int64_t w) {
  return layout == Layout::nchw ? ((n * of.c + c) * of.h + h) * of.w + w : ((n * of.h + h) * of.w + w) * of.c + c;
}

/// A small integer that depends on the place.
float value_at(std::int64_t index) { return static_cast<float>(index % 7 - 3); }

/// y[n][k][p][q], by definition; there is no padding.
float expected(const ConvSpec& spec, const SparseFloats& x, const SparseFloats& w, std::int64_t n, std::int64_t k,
               std::int64_t p, std::int64_t q) {
  const std::int64_t first_channel = k / (spec.weight.k / spec.groups) * spec.weight.c;
  float sum = 0;
  for (std::int64_t c = 0; c < spec.weight.c; ++c)
    for (std::int64_t r = 0; r < spec.weight.r; ++r)
      for (std::int64_t s = 0; s < spec.weight.s; ++s) {
        const std::int64_t h = p * spec.stride.h + r * spec.dilation.h,
                           column = q * spec.stride.w + s * spec.dilation.w;
        sum += x[place(spec.input, spec.input_layout, n, first_channel + c, h, column)] *
               w[((k * spec.weight.c + c) * spec.weight.r + r) * spec.weight.s + s];
      }
  return sum;
}

void run_last_blocks(codegen::KernelSource source, std::uint32_t blocks, const SparseFloats& x, const SparseFloats& w,
                     const SparseFloats& y, const Target& target) {
  codegen::KernelEntry& entry = source.entries.front();
  ASSERT_LE(blocks, entry.grid[0]);
  const std::string place = "blockIdx.x", moved = fmt::format("(blockIdx.x + {}u)", entry.grid[0] - blocks);
  std::size_t at = source.text.find(place);
  ASSERT_NE(at, std::string::npos);
  for (; at != std::string::npos; at = source.text.find(place, at + moved.size()))
    source.text.replace(at, place.size(), moved);
  entry.grid[0] = blocks;

  const runtime::Backend& backend = runtime::backend_for(target);
  const runtime::Binary binary = backend.compile(source, backend.options(source, {}));
  const std::shared_ptr<runtime::LoadedImage> image = backend.load(binary.image);
  runtime::LaunchStep step;
  step.entry = &entry;
  step.kernel = backend.kernel(*image, entry.name);
  step.info = backend.prepare(step.kernel, backend.ensure_context(), entry.shared_bytes);
  step.parameters = 3;
  step.extents[0] = {x.bytes(), false}, step.extents[1] = {w.bytes(), false}, step.extents[2] = {y.bytes(), true};
  std::array<void*, 3> pointers = {x.data(), w.data(), y.data()};
  std::array<void*, 3> parameters = {&pointers[0], &pointers[1], &pointers[2]};
  const host::Session session(host::Settings{});
  backend.launch(step, nullptr, parameters.data(), /*overlap=*/false);
  for (const host::Report& report : session.reports())
    for (const host::Finding& finding : report.findings) ADD_FAILURE() << to_string(finding);
}

/// Runs the last blocks of the family's cheapest plan and looks at the last outputs.
void check_far_end(const char* text, codegen::Family family, std::uint32_t blocks) {
  const ConvSpec spec = codegen::canonical(parse_spec(text));
  const Target target = Target::host();
  codegen::ConvPlan plan;
  if (family == codegen::Family::fallback) {
    plan = fallback_plan(spec, target);
  } else {
    for (codegen::ConvPlan& one : codegen::enumerate_plans(spec, target, SIZE_MAX))
      if (one.family() == family) {
        plan = std::move(one);
        break;
      }
  }
  ASSERT_EQ(plan.family(), family);
  const TensorShape in = spec.input, out = output_shape(spec);
  const SparseFloats x(elements(in.n, in.c, in.h, in.w)),
      w(elements(spec.weight.k, spec.weight.c, spec.weight.r, spec.weight.s)), y(elements(out.n, out.c, out.h, out.w));
  ASSERT_GT(x.bytes() / 4, INT32_MAX);
  if (x.data() == nullptr || y.data() == nullptr) GTEST_SKIP() << "no " << x.bytes() << " bytes of address space";
  for (std::int64_t i = 0; i < w.bytes() / 4; ++i) w[i] = value_at(i);
  // The corner of each channel of the last image that the last outputs see.
  const std::int64_t rows = (spec.weight.r - 1) * spec.dilation.h + 1,
                     columns = (spec.weight.s - 1) * spec.dilation.w + 4;
  for (std::int64_t c = 0; c < in.c; ++c)
    for (std::int64_t h = in.h - rows; h < in.h; ++h)
      for (std::int64_t column = in.w - columns; column < in.w; ++column) {
        const std::int64_t at = place(in, spec.input_layout, in.n - 1, c, h, column);
        x[at] = value_at(at);
      }

  run_last_blocks(codegen::generate(plan), std::min(blocks, plan.convolution().launch.blocks), x, w, y, target);
  int zeros = 0;
  for (std::int64_t k = out.c - 1; k >= out.c - std::min<std::int64_t>(out.c / spec.groups, 4); --k) {
    const float want = expected(spec, x, w, out.n - 1, k, out.h - 1, out.w - 1);
    EXPECT_EQ(y[place(out, spec.output_layout, out.n - 1, k, out.h - 1, out.w - 1)], want) << "channel " << k;
    zeros += want == 0 ? 1 : 0;
  }
  EXPECT_LE(zeros, 1) << "outputs of zero show nothing";
}

TEST(Huge, DirectReadsBeyond32Bits) {
  check_far_end("input=5,512,1024,1026 weight=4,512,3,3", codegen::Family::direct, 2);
}

TEST(Huge, DepthwiseReadsBeyond32Bits) {
  check_far_end("input=1,600,2048,2048 weight=600,1,3,3 groups=600 stride=8 padding=0", codegen::Family::depthwise, 2);
}

TEST(Huge, DepthwiseNhwcReadsBeyond32Bits) {
  check_far_end("input=5,65,2048,4100 weight=65,1,3,3 groups=65 stride=8 layout=nhwc", codegen::Family::depthwise_nhwc,
                2);
}

TEST(Huge, FallbackReadsBeyond32Bits) {
  check_far_end("input=1,1,46400,46400 weight=2,1,2,2 stride=23199 padding=0", codegen::Family::fallback, 4);
}

}  // namespace
}  // namespace jitconv::test
