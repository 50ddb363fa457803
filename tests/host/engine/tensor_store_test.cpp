// Copies of boxes to a tensor in global memory, inside it, sticking out at the ends and behind them: what each element
// becomes, by its indices alone; and what such a copy may not do.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "codegen/text/template_text.h"
#include "host/compiler.h"
#include "host/engine.h"
#include "host/engine/tensor_copies.h"

namespace jitconv::test {
namespace {

using codegen::TensorMapShape;
using host::Landing;
using host::Rule;

constexpr std::uint32_t kPoolBytes = 8192;
constexpr unsigned char kBefore = 0xcd;  // what the tensor holds before

const char kStoreKernel[] = R"(
extern "C" __global__ void probe(const __grid_constant__ TensorMap y_map, const int* order, const unsigned* x) {
  extern __shared__ __align__(1024) unsigned char shared[];
  unsigned* const box = reinterpret_cast<unsigned*>(shared + order[4]);
  for (int i = threadIdx.x; i < order[5]; i += blockDim.x) box[i] = x[i];
  fence_async_proxy();
  __syncthreads();
  if (threadIdx.x == 0) {
    tensor_copy_to_global(&y_map, order[0], order[1], order[2], order[3], box);
    bulk_stores_commit();
    if (order[6] != 0) bulk_stores_wait_read<0>();
  }
}
)";

std::string image_for(host::Purpose purpose) {
  codegen::KernelSource source;
  for (const char* file :
       {"device/tensor_map.cuh", "device/tensor_store.cuh", "device/bulk_store.cuh", "device/warpgroup.cuh"})
    source.text += codegen::embedded_text(file);
  source.text += kStoreKernel;
  codegen::KernelEntry entry;
  entry.name = "probe";
  entry.arguments = {{codegen::Tensor::y, "const __grid_constant__ TensorMap", "y_map"},
                     {codegen::Tensor::w, "const int*", "order"},
                     {codegen::Tensor::x, "const unsigned*", "x"}};
  source.entries.push_back(entry);
  const host::Compiler compiler = host::find_compiler();
  return host::compile_module(compiler, source, host::compile_options(compiler, purpose)).image;
}

const host::Module& module_for(host::Purpose purpose) {
  static const host::Module check(image_for(host::Purpose::check)), count(image_for(host::Purpose::count));
  return purpose == host::Purpose::check ? check : count;
}

/// What one launch is told: where the box begins, where it lies, how many words of it are written, whether to wait.
struct StoreOrder {
  Indices first{};
  int place = 0, words = 0, waits = 1;
};

class TensorStores : public testing::Test {
 protected:
  /// Behind a row's last element, a store writes what is left of 16 bytes.
  std::int64_t row_end() const {
    const std::int64_t piece = 16 / shape_.element_bytes;
    return (shape_.extents[0] + piece - 1) / piece * piece;
  }
  /// A tensor without a piece too many, at a multiple of 256 bytes, and memory behind it.
  void set(const TensorMapShape& shape) {
    shape_ = shape;
    std::int64_t last = row_end() - 1;
    for (std::size_t i = 1; i < index(shape.rank); ++i) last += (shape.extents[i] - 1) * shape.strides[i];
    bytes_ = (last + 1) * shape.element_bytes;
    writable_ = true;
    storage_.resize(index(bytes_) + 512);
    y_ = storage_.data() + (256 - reinterpret_cast<std::uintptr_t>(storage_.data()) % 256);
    box_.resize(std::max<std::size_t>(index(shape.box_bytes()), 4));
    for (std::size_t i = 0; i < box_.size(); ++i) box_[i] = static_cast<unsigned char>(i * 7 + i / 251 + 1);
  }
  host::Report run(StoreOrder order, const host::Settings& settings = {},
                   host::Purpose purpose = host::Purpose::check) {
    if (order.words == 0) order.words = static_cast<int>(box_.size() / 4);
    std::fill(storage_.begin(), storage_.end(), kBefore);
    host::Launch launch;
    launch.entry = "probe";
    launch.threads = 32;
    launch.shared_bytes = kPoolBytes;
    launch.buffers = {{"y_map", y_, bytes_, writable_, shape_},
                      {"order", &order, sizeof(order), false},
                      {"x", box_.data(), static_cast<std::int64_t>(box_.size()), false}};
    return host::execute(module_for(purpose), launch, settings);
  }
  /// The memory that holds the tensor, from y_ on, when the copy is complete. Counts the bytes written.
  std::vector<unsigned char> expected(const Indices& first) {
    std::vector<unsigned char> y(static_cast<std::size_t>(storage_.data() + storage_.size() - y_), kBefore);
    const std::int64_t element = shape_.element_bytes, row_bytes = shape_.box[0] * element;
    written_ = 0;
    for (std::int64_t i = 0; i < shape_.box_bytes() / element; ++i) {
      std::int64_t rest = i, offset = 0;
      bool inside = true;
      for (std::size_t axis = 0; axis < 4; rest /= shape_.box[axis++]) {
        const std::int64_t at = first[axis] + rest % shape_.box[axis];
        inside = inside && at >= 0 && at < (axis == 0 ? row_end() : shape_.extents[axis]);
        offset += at * shape_.strides[axis];
      }
      if (!inside) continue;
      const std::int64_t row = i / shape_.box[0], byte = i % shape_.box[0] * element;
      const std::int64_t by = shape_.swizzle_bytes == 128  ? row % 8
                              : shape_.swizzle_bytes == 64 ? row / 2 % 4
                              : shape_.swizzle_bytes == 32 ? row / 4 % 2
                                                           : 0;
      const std::int64_t place = row * row_bytes + (byte / 16 ^ by) * 16 + byte % 16;
      std::memcpy(&y[index(offset * element)], &box_[index(place)], index(element));
      written_ += element;
    }
    return y;
  }
  void expect_stored(const StoreOrder& order, const host::Settings& settings) {
    const host::Report report = run(order, settings);
    for (const host::Finding& finding : report.findings) ADD_FAILURE() << to_string(finding);
    const std::vector<unsigned char> want = expected(order.first);
    EXPECT_EQ(std::memcmp(y_, want.data(), want.size()), 0)
        << order.first[0] << ", " << order.first[1] << ", " << order.first[2] << ", " << order.first[3];
    EXPECT_TRUE(std::all_of(storage_.data(), y_, [](unsigned char byte) { return byte == kBefore; }));
  }
  void expect_finding(const StoreOrder& order, Rule rule, const std::string& words) {
    for (const Landing landing : {Landing::early, Landing::late}) {
      const host::Report report = run(order, {.landing = landing});
      ASSERT_EQ(report.findings.size(), 1u) << words;
      EXPECT_EQ(report.findings.front().rule, rule) << to_string(report.findings.front());
      EXPECT_NE(to_string(report.findings.front()).find(words), std::string::npos)
          << to_string(report.findings.front());
    }
  }

  TensorMapShape shape_;
  std::int64_t bytes_ = 0, written_ = 0;  // of the tensor; of it, by the box last expected
  bool writable_ = true;
  unsigned char* y_ = nullptr;
  std::vector<unsigned char> storage_, box_;
};

/// Extents that are no multiples of anything, and gaps between rows, planes and volumes.
TensorMapShape words(int row_bytes = 0) {
  TensorMapShape shape{.rank = 4, .extents = {37, 6, 4, 3}, .strides = {1, 40, 248, 1004}, .box = {20, 5, 3, 2}};
  if (row_bytes != 0) shape.box[0] = row_bytes / shape.element_bytes;
  shape.swizzle_bytes = row_bytes;
  return shape;
}
TensorMapShape halves(int row_bytes = 0) {
  TensorMapShape shape = words(row_bytes);
  shape.element_bytes = 2;
  shape.extents[0] = 61;
  shape.strides = {1, 72, 440, 1784};
  shape.box[0] = row_bytes != 0 ? row_bytes / shape.element_bytes : 24;
  return shape;
}
std::vector<TensorMapShape> shapes() {
  return {words(), words(128), words(64), words(32), halves(), halves(128), halves(64), halves(32)};
}

TEST_F(TensorStores, WriteWhatLiesInTheTensor) {
  for (const TensorMapShape& shape : shapes()) {
    set(shape);
    for (const int i3 : {0, 1, 2, 3})
      for (const int i2 : {0, 1, 2, 4})
        for (const int i1 : {0, 1, 4, 6})
          for (const int i0 : {0, 16, 32, 64})
            expect_stored({.first = {i0, i1, i2, i3}, .place = 1024},
                          {.landing = (i0 + i1 + i2 + i3) % 2 == 0 ? Landing::early : Landing::late});
  }
}

TEST_F(TensorStores, WriteNothingBehindTheEnd) {
  for (const TensorMapShape& shape : {words(128), halves()}) {
    set(shape);
    for (const Indices& first : {Indices{64, 0, 0, 0},
                                 {1 << 30, 0, 0, 0},
                                 {0, 6, 0, 0},
                                 {0, 1 << 30, 0, 0},
                                 {0, 0, 4, 0},
                                 {0, 0, 1000, 0},
                                 {0, 0, 0, 3},
                                 {0, 0, 0, INT32_MAX}}) {
      expect_stored({.first = first}, {.landing = Landing::early});
      EXPECT_EQ(written_, 0);
    }
    expect_stored({.first = {16, 1, 1, 1}}, {.landing = Landing::early});
    EXPECT_GT(written_, 0);
  }
}

TEST_F(TensorStores, BeginAtNoNegativeIndex) {
  set(words());
  expect_finding({.first = {-4, 0, 0, 0}, .place = 128}, Rule::out_of_bounds,
                 "shared + 0x80 (2400 bytes): tensor copy of 2400 bytes from index -4 along axis 0 on: no store begins "
                 "before its tensor");
  expect_finding({.first = {0, -1, 0, 0}}, Rule::out_of_bounds, "from index -1 along axis 1 on");
  expect_finding({.first = {0, 0, -2, 0}}, Rule::out_of_bounds, "from index -2 along axis 2 on");
  expect_finding({.first = {0, 0, 0, -1}}, Rule::out_of_bounds, "from index -1 along axis 3 on");
  // Though nothing of it is in the tensor.
  expect_finding({.first = {64, 0, 0, -1}}, Rule::out_of_bounds, "from index -1 along axis 3 on");
  expect_finding({.first = {0, -1000, 0, 0}}, Rule::out_of_bounds, "from index -1000 along axis 1 on");
}

TEST_F(TensorStores, LieAtMultiplesOf128Or1024) {
  set(words());
  expect_stored({.place = 128}, {});
  expect_finding({.place = 64}, Rule::misaligned, "in shared memory at no multiple of 128");
  set(words(128));
  expect_stored({.place = 2048}, {});
  expect_finding({.place = 512}, Rule::misaligned, "in shared memory at no multiple of 1024");
}

TEST_F(TensorStores, StartAtWhole16Bytes) {
  set(words());
  expect_finding({.first = {6, 0, 0, 0}}, Rule::misaligned, "from index 6 on, at no multiple of 16 bytes");
  set(halves());
  expect_stored({.first = {8, 1, 1, 1}}, {});
  expect_finding({.first = {-4, 0, 0, 0}}, Rule::misaligned, "from index -4 on");
}

TEST_F(TensorStores, ReadSharedMemoryThatWasWritten) {
  set(words());
  expect_finding({.place = kPoolBytes - 128, .words = 1}, Rule::out_of_bounds,
                 "tensor copy of 2400 bytes outside shared memory");
  // To the last word, though what it would become lies outside.
  expect_finding({.first = {32, 4, 3, 2}, .words = 2400 / 4 - 1}, Rule::uninitialised,
                 "shared + 0x95c (4 bytes): tensor copy of 2400 bytes: nothing in this block has written there");
}

TEST_F(TensorStores, WriteOnlyToTheirBuffer) {
  set(words());
  bytes_ -= 4;  // what the last row of the tensor ends with
  expect_stored({.first = {16, 1, 1, 1}}, {});
  expect_stored({.first = {0, 5, 3, 2}}, {});
  expect_stored({.first = {20, 0, 3, 2}}, {});
  expect_finding({.first = {20, 5, 3, 2}}, Rule::out_of_bounds,
                 "y_map + 0x2e70 (80 bytes): tensor copy of 80 bytes outside the buffers of the launch");
  set(words());
  y_ += 8;
  expect_finding({}, Rule::misaligned, "of a tensor at no multiple of 16");
  set(words());
  writable_ = false;
  expect_finding({.first = {20, 1, 2, 0}}, Rule::read_only,
                 "y_map + 0x8b0 (80 bytes): tensor copy of 80 bytes to an input");
}

TEST_F(TensorStores, AreByMapsOfBoxesOfFourAxes) {
  TensorMapShape shape = words();
  shape.rank = 3;
  set(shape);
  expect_finding({}, Rule::out_of_bounds, "by what is no map of 4 axes of the launch");
  shape = words();
  shape.box = {20, 30};
  shape.im2col = TensorMapShape::Im2col{};
  set(shape);
  expect_finding({}, Rule::out_of_bounds, "by what is no map of 4 axes of the launch");
  shape = words();
  shape.rounds_to_tf32 = true;
  set(shape);
  expect_finding({}, Rule::out_of_bounds, "by a map that rounds: what that stores is not known");
}

TEST_F(TensorStores, AreWaitedForBeforeTheBlockEnds) {
  set(words());
  expect_finding({.place = 256, .waits = 0}, Rule::unfinished_copy,
                 "shared + 0x100 (2400 bytes): bulk copy of 2400 bytes: the block ended, and nobody had waited for it");
}

TEST_F(TensorStores, AreCountedByWhatIsInTheTensor) {
  const auto counted = [this](const Indices& first) {
    return run({.first = first}, {}, host::Purpose::count).counters;
  };
  set(words(128));
  const host::Counters whole = counted({0, 0, 0, 0}), outside = counted({64, 0, 0, 0}), some = counted({32, 4, 3, 2});
  EXPECT_EQ(whole.global_stores.requests, 1u);
  EXPECT_EQ(whole.global_stores.bytes, 30u * 128);
  EXPECT_EQ(outside.global_stores.requests, 1u);
  EXPECT_EQ(outside.global_stores.sectors, 0u);
  EXPECT_EQ(outside.global_stores.bytes, 0u);
  EXPECT_EQ(some.global_stores.bytes, 2u * 8 * 4);  // two rows of five elements and the rest of their 16 bytes
  EXPECT_EQ(some.global_stores.sectors, 2u);
  for (const host::Counters& each : {whole, outside, some}) {
    EXPECT_EQ(each.shared_loads.requests, 1u);
    EXPECT_EQ(each.shared_loads.bytes, 30u * 128);
    EXPECT_EQ(each.shared_loads.wavefronts, 30u);
    EXPECT_EQ(each.shared_loads.ideal, 30u);
  }
}

}  // namespace
}  // namespace jitconv::test
