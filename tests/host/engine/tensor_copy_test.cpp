// Copies of boxes by tensor maps: every element compared with one that is found by its indices, for boxes that stick
// out on every side; and what a copy may not do.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "codegen/template_text.h"
#include "host/compiler.h"
#include "host/engine.h"
#include "host/module.h"

namespace jitconv::test {
namespace {

using codegen::TensorMapShape;
using host::Landing;
using host::Rule;

constexpr int kThreads = 32;
constexpr std::uint32_t kPoolBytes = 16384;  // of shared memory, before the barrier

/// What one launch is told: where the box begins and lands, how many bytes to announce, the words to give back.
struct Order {
  std::array<int, 3> first{};
  int place = 0, announced = 0, words = 0, waits = 1;
};

const char kKernels[] = R"(
template <int kRank>
__device__ __forceinline__ void probe(const TensorMap* map, const int* order, unsigned* y) {
  extern __shared__ __align__(1024) unsigned char shared[];
  Barrier* const full = reinterpret_cast<Barrier*>(shared + kPoolBytes);
  if (threadIdx.x == 0) {
    barrier_init(full, 1);
    barrier_init_visible();
    barrier_arrive_expecting(full, order[4]);
    if (kRank == 2)
      tensor_copy_to_shared(shared + order[3], map, order[0], order[1], full);
    else
      tensor_copy_to_shared(shared + order[3], map, order[0], order[1], order[2], full);
  }
  __syncthreads();
  if (order[6] != 0) barrier_wait(full, 0);
  for (int i = threadIdx.x; i < order[5]; i += blockDim.x) y[i] = reinterpret_cast<unsigned*>(shared + order[3])[i];
}
extern "C" __global__ void probe2(const __grid_constant__ TensorMap x_map, const int* order, unsigned* y) {
  probe<2>(&x_map, order, y);
}
extern "C" __global__ void probe3(const __grid_constant__ TensorMap x_map, const int* order, unsigned* y) {
  probe<3>(&x_map, order, y);
}
)";

std::string image_for(host::Purpose purpose) {
  codegen::KernelSource source;
  for (const char* file : {"device/barrier.cuh", "device/tensor_copy.cuh"}) source.text += codegen::embedded_text(file);
  source.text += fmt::format("constexpr int kPoolBytes = {};\n", kPoolBytes) + kKernels;
  for (const int rank : {2, 3}) {
    codegen::KernelEntry entry;
    entry.name = fmt::format("probe{}", rank);
    entry.arguments = {{codegen::ArgumentRole::x, "const __grid_constant__ TensorMap", "x_map"},
                       {codegen::ArgumentRole::w, "const int*", "order"},
                       {codegen::ArgumentRole::y, "unsigned*", "y"}};
    source.entries.push_back(entry);
  }
  const host::Compiler compiler = host::find_compiler();
  return host::compile_module(compiler, source, host::compile_options(compiler, purpose)).image;
}

const host::Module& module_for(host::Purpose purpose) {
  static const host::Module check(image_for(host::Purpose::check)), count(image_for(host::Purpose::count));
  return purpose == host::Purpose::check ? check : count;
}

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

std::int64_t bytes_of(const TensorMapShape& shape) {
  return shape.element_bytes * std::int64_t{shape.box[0]} * shape.box[1] * (shape.rank == 3 ? shape.box[2] : 1);
}

class TensorCopies : public testing::Test {
 protected:
  /// A tensor without an element too many, at a multiple of 256 bytes.
  void set(const TensorMapShape& shape) {
    shape_ = shape;
    std::int64_t last = 0;
    for (std::size_t i = 0; i < index(shape.rank); ++i) last += (shape.extents[i] - 1) * shape.strides[i];
    bytes_ = (last + 1) * shape.element_bytes;
    storage_.resize(index(bytes_) + 256);
    x_ = storage_.data() + (256 - reinterpret_cast<std::uintptr_t>(storage_.data()) % 256);
    for (std::int64_t i = 0; i < bytes_; ++i) x_[i] = static_cast<unsigned char>(i * 7 + i / 251 + 1);
  }

  host::Report run(Order order, const host::Settings& settings = {}, host::Purpose purpose = host::Purpose::check) {
    if (order.announced == 0) order.announced = static_cast<int>(bytes_of(shape_));
    if (order.words == 0) order.words = static_cast<int>(bytes_of(shape_) / 4);
    y_.assign(kPoolBytes / 4, 0xabababab);
    host::Launch launch;
    launch.entry = fmt::format("probe{}", rank_ != 0 ? rank_ : shape_.rank);
    launch.threads = kThreads;
    launch.shared_bytes = kPoolBytes + 8;
    launch.buffers = {{"x_map", x_, bytes_, false, shape_},
                      {"order", &order, sizeof(order), false},
                      {"y", y_.data(), static_cast<std::int64_t>(y_.size() * 4), true}};
    return host::execute(module_for(purpose), launch, settings);
  }

  std::vector<unsigned char> expected(const std::array<int, 3>& first) const {
    const std::int64_t element = shape_.element_bytes;
    std::vector<unsigned char> box(index(bytes_of(shape_)));
    for (std::int64_t e = 0; e < bytes_of(shape_) / element; ++e) {
      const std::array<std::int64_t, 3> at = {first[0] + e % shape_.box[0],
                                              first[1] + e / shape_.box[0] % shape_.box[1],
                                              first[2] + e / shape_.box[0] / shape_.box[1]};
      bool inside = true;
      std::int64_t offset = 0;
      for (std::size_t i = 0; i < index(shape_.rank); ++i) {
        inside = inside && at[i] >= 0 && at[i] < shape_.extents[i];
        offset += at[i] * shape_.strides[i];
      }
      std::int64_t place = e * element;
      if (shape_.swizzled) {
        const std::int64_t row = place / 128, piece = place % 128 / 16;
        place = row * 128 + (piece ^ row % 8) * 16 + place % 16;
      }
      if (inside) std::memcpy(&box[index(place)], x_ + offset * element, index(element));
    }
    return box;
  }

  void expect_box(const Order& order, const host::Settings& settings) {
    const host::Report report = run(order, settings);
    for (const host::Finding& finding : report.findings) ADD_FAILURE() << to_string(finding);
    const std::vector<unsigned char> want = expected(order.first);
    EXPECT_EQ(std::memcmp(y_.data(), want.data(), want.size()), 0)
        << order.first[0] << ", " << order.first[1] << ", " << order.first[2];
    EXPECT_EQ(y_[want.size() / 4], 0xababababu);
  }

  /// The one finding of a launch.
  void expect_finding(const Order& order, Rule rule, const std::string& words) {
    for (const Landing landing : {Landing::early, Landing::late}) {
      const host::Report report = run(order, {.landing = landing});
      ASSERT_FALSE(report.findings.empty());
      EXPECT_EQ(report.findings.front().rule, rule) << to_string(report.findings.front());
      EXPECT_NE(to_string(report.findings.front()).find(words), std::string::npos)
          << to_string(report.findings.front());
    }
  }

  TensorMapShape shape_;
  int rank_ = 0;  // of the kernel's copy, if not the shape's
  std::int64_t bytes_ = 0;
  unsigned char* x_ = nullptr;
  std::vector<unsigned char> storage_;
  std::vector<std::uint32_t> y_;
};

TensorMapShape plane() { return {.rank = 2, .extents = {37, 11}, .strides = {1, 40}, .box = {32, 5}}; }
TensorMapShape volume() {
  return {.rank = 3, .element_bytes = 2, .extents = {13, 6, 4}, .strides = {1, 16, 104}, .box = {8, 3, 2}};
}
TensorMapShape swizzled(TensorMapShape shape) {
  shape.box[0] = 128 / shape.element_bytes;
  shape.box[1] = 21;
  shape.swizzled = true;
  return shape;
}

TEST_F(TensorCopies, OfAPlaneBringZerosOnEverySide) {
  for (const TensorMapShape& shape : {plane(), swizzled(plane())}) {
    set(shape);
    for (const Landing landing : {Landing::early, Landing::late})
      for (const int i1 : {-100, -21, -5, -4, -1, 0, 3, 7, 10, 11, 1000})
        for (const int i0 : {-1000, -32, -28, -4, 0, 4, 8, 20, 36, 40, 1 << 30})
          expect_box({.first = {i0, i1}}, {.landing = landing});
  }
}

TEST_F(TensorCopies, OfAVolumeBringZerosOnEverySide) {
  for (const TensorMapShape& shape : {volume(), swizzled(volume())}) {
    set(shape);
    for (const int i2 : {-2, -1, 0, 2, 3, 4})
      for (const int i1 : {-21, -2, 0, 4, 6})
        for (const int i0 : {-64, -56, -8, 0, 8, 16}) expect_box({.first = {i0, i1, i2}, .place = 1024}, {});
  }
}

// Words and what they are rounded to, written down one by one.
struct Rounded {
  std::uint32_t from, to;
};
const Rounded kRounded[] = {
    {0x00000000, 0x00000000},
    {0x80000000, 0x80000000},
    {0x3f800000, 0x3f800000},
    {0x3f802000, 0x3f802000},
    // To nearest.
    {0x3f800fff, 0x3f800000},
    {0x3f801001, 0x3f802000},
    {0xbf802fff, 0xbf802000},
    {0xbf803001, 0xbf804000},
    // Ties, to even: down and up.
    {0x3f801000, 0x3f800000},
    {0x3f803000, 0x3f804000},
    {0xc1235000, 0xc1234000},
    {0xc1237000, 0xc1238000},
    // Carries into the exponent, to infinity at last.
    {0x3fffffff, 0x40000000},
    {0x3ffff000, 0x40000000},
    {0x7f7fefff, 0x7f7fe000},
    {0x7f7ff000, 0x7f800000},
    {0xff7fffff, 0xff800000},
    {0xff7fefff, 0xff7fe000},
    {0x7f800000, 0x7f800000},
    {0xff800000, 0xff800000},
    // Every NaN is one.
    {0x7f800001, 0x7fffe000},
    {0xff800001, 0x7fffe000},
    {0x7fc00000, 0x7fffe000},
    {0xffc12345, 0x7fffe000},
    {0x7fffffff, 0x7fffe000},
    {0xffffffff, 0x7fffe000},
    // Denormals, to zero or into the normal numbers.
    {0x00000001, 0x00000000},
    {0x80001000, 0x80000000},
    {0x00001001, 0x00002000},
    {0x80003000, 0x80004000},
    {0x007fffff, 0x00800000},
    {0x807fe000, 0x807fe000},
};

TEST_F(TensorCopies, RoundFloatsToTf32) {
  const auto words = static_cast<std::int64_t>(std::size(kRounded));
  for (const bool swizzled : {false, true}) {
    TensorMapShape shape{.rank = 2, .extents = {words, 3}, .strides = {1, words}, .box = {32, 8}, .swizzled = swizzled};
    shape.rounds_to_tf32 = true;
    ASSERT_EQ(words, shape.box[0]);
    for (const std::array<int, 3>& first : {std::array{0, 0, 0}, {4, 1, 0}, {-12, -6, 0}}) {
      // What comes is what would come, if the tensor held the rounded words.
      set(shape);
      const auto fill = [&](std::uint32_t Rounded::*member) {
        for (std::int64_t i = 0; i < bytes_ / 4; ++i)
          std::memcpy(x_ + i * 4, &(kRounded[index((i + i / words) % words)].*member), 4);
      };
      fill(&Rounded::to);
      const std::vector<unsigned char> want = expected(first);
      for (const Landing landing : {Landing::early, Landing::late}) {
        fill(&Rounded::from);
        EXPECT_TRUE(run({.first = first}, {.landing = landing}).findings.empty());
        for (std::size_t i = 0; i < want.size() / 4; ++i) {
          std::uint32_t word = 0;
          std::memcpy(&word, &want[i * 4], 4);
          ASSERT_EQ(y_[i], word) << i << " of the box at " << first[0] << ", " << first[1];
        }
      }
    }
  }
}

TEST_F(TensorCopies, TellTheBarrierOfTheWholeBox) {
  set(plane());
  Order order{.first = {28, 8}};
  order.announced = 32 * 5 * 4 - 16;
  expect_finding(order, Rule::divergent_barrier, "got 16 bytes that nobody announced");
  order.announced = 32 * 5 * 4 + 16;
  expect_finding(order, Rule::divergent_barrier, "16 announced bytes that no copy brings");
}

TEST_F(TensorCopies, LandAtMultiplesOf128Or1024) {
  set(plane());
  expect_box({.place = 128}, {});
  expect_finding({.place = 64}, Rule::misaligned, "in shared memory at no multiple of 128");
  set(swizzled(plane()));
  expect_box({.place = 2048}, {});
  expect_finding({.place = 128}, Rule::misaligned, "in shared memory at no multiple of 1024");
}

TEST_F(TensorCopies, StartAtWhole16Bytes) {
  set(plane());
  expect_finding({.first = {5, 0}}, Rule::misaligned, "from index 5 on, at no multiple of 16 bytes");
  expect_finding({.first = {-2, 0}}, Rule::misaligned, "from index -2 on");
  set(volume());
  expect_box({.first = {8, 1, 1}, .place = 1024}, {});
  expect_finding({.first = {4, 1, 1}, .place = 1024}, Rule::misaligned, "from index 4 on");
}

TEST_F(TensorCopies, LandInsideSharedMemory) {
  set(plane());
  expect_finding({.place = kPoolBytes - 128}, Rule::out_of_bounds, "tensor copy of 640 bytes outside shared memory");
  expect_finding({.place = -128}, Rule::out_of_bounds, "outside shared memory");
}

TEST_F(TensorCopies, ReadOnlyWhatIsInTheTensorAndInItsBuffer) {
  set(plane());
  bytes_ -= 4;  // the tensor's last element
  expect_box({.first = {32, 5}}, {});
  expect_box({.first = {4, 6}}, {});
  expect_box({.first = {40, 6}}, {});
  expect_finding({.first = {8, 6}}, Rule::out_of_bounds,
                 "x_map + 0x660 (116 bytes): tensor copy of 116 bytes outside the buffers of the launch");
  set(plane());
  x_ += 8;
  bytes_ -= 8;
  expect_finding({}, Rule::misaligned, "of a tensor at no multiple of 16");
}

TEST_F(TensorCopies, AreThereForWhoWaits) {
  set(plane());
  expect_finding({.first = {-32, -5}, .waits = 0}, Rule::unfinished_copy, "the copy that thread 0 started in line");
}

TEST_F(TensorCopies, HaveAsManyAxesAsTheMap) {
  set(plane());
  rank_ = 3;
  expect_finding({}, Rule::out_of_bounds, "by what is no map of 3 axes of the launch");
  set(volume());
  rank_ = 2;
  expect_finding({}, Rule::out_of_bounds, "by what is no map of 2 axes of the launch");
}

TEST_F(TensorCopies, AreCountedByWhatIsInTheTensor) {
  set(plane());
  const host::Counters whole = run({.first = {0, 0}, .words = 1}, {}, host::Purpose::count).counters;
  const host::Counters outside = run({.first = {-32, 0}, .words = 1}, {}, host::Purpose::count).counters;
  EXPECT_EQ(whole.global_loads.bytes - outside.global_loads.bytes, 5u * 128);
  EXPECT_EQ(whole.global_loads.sectors - outside.global_loads.sectors, 5u * 4);
  EXPECT_EQ(whole.global_loads.requests, outside.global_loads.requests);
  EXPECT_EQ(whole.shared_stores.bytes, 5u * 128);
  EXPECT_EQ(outside.shared_stores, whole.shared_stores);
}

}  // namespace
}  // namespace jitconv::test
