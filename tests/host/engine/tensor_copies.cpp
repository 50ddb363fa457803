// See tensor_copies.h.
#include "host/engine/tensor_copies.h"

#include <fmt/format.h>

#include <cstring>

#include "codegen/text/template_text.h"
#include "host/module.h"

namespace jitconv::test {
namespace {

using codegen::TensorMapShape;
using host::Landing;

constexpr int kThreads = 32;

const char kKernels[] = R"(
template <int kRank>
__device__ __forceinline__ void probe(const TensorMap* map, const int* order, unsigned* y) {
  extern __shared__ __align__(1024) unsigned char shared[];
  Barrier* const full = reinterpret_cast<Barrier*>(shared + kPoolBytes);
  if (threadIdx.x == 0) {
    barrier_init(full, 1);
    barrier_init_visible();
    barrier_arrive_expecting(full, order[5]);
    unsigned char* const box = shared + order[4];
    if (kRank == 2)
      tensor_copy_2d_to_shared(box, map, order[0], order[1], full);
    else if (kRank == 3)
      tensor_copy_3d_to_shared(box, map, order[0], order[1], order[2], full);
    else
      tensor_im2col_to_shared(box, map, order[0], order[1], order[2], order[3], order[8], order[9], full);
  }
  __syncthreads();
  if (order[7] != 0) barrier_wait(full, 0);
  for (int i = threadIdx.x; i < order[6]; i += blockDim.x) y[i] = reinterpret_cast<unsigned*>(shared + order[4])[i];
}
extern "C" __global__ void probe2(const __grid_constant__ TensorMap x_map, const int* order, unsigned* y) {
  probe<2>(&x_map, order, y);
}
extern "C" __global__ void probe3(const __grid_constant__ TensorMap x_map, const int* order, unsigned* y) {
  probe<3>(&x_map, order, y);
}
extern "C" __global__ void probe4(const __grid_constant__ TensorMap x_map, const int* order, unsigned* y) {
  probe<4>(&x_map, order, y);
}
)";

std::string image_for(host::Purpose purpose, std::uint32_t pool_bytes) {
  codegen::KernelSource source;
  for (const char* file : {"device/barrier.cuh", "device/tensor_map.cuh", "device/tensor_copy.cuh"})
    source.text += codegen::embedded_text(file);
  source.text += fmt::format("constexpr int kPoolBytes = {};\n", pool_bytes) + kKernels;
  for (const int rank : {2, 3, 4}) {
    codegen::KernelEntry entry;
    entry.name = fmt::format("probe{}", rank);
    entry.arguments = {{codegen::Tensor::x, "const __grid_constant__ TensorMap", "x_map"},
                       {codegen::Tensor::w, "const int*", "order"},
                       {codegen::Tensor::y, "unsigned*", "y"}};
    source.entries.push_back(entry);
  }
  const host::Compiler compiler = host::find_compiler();
  return host::compile_module(compiler, source, host::compile_options(compiler, purpose)).image;
}

const host::Module& module_for(host::Purpose purpose, std::uint32_t pool_bytes) {
  static const host::Module check(image_for(host::Purpose::check, pool_bytes)),
      count(image_for(host::Purpose::count, pool_bytes));
  return purpose == host::Purpose::check ? check : count;
}

std::int64_t rows_of(const TensorMapShape& shape) {
  return shape.im2col ? shape.box[1] : std::int64_t{shape.box[1]} * (shape.rank == 3 ? shape.box[2] : 1);
}
std::int64_t bytes_of(const TensorMapShape& shape) { return shape.element_bytes * shape.box[0] * rows_of(shape); }

/// The place of a byte of a row of a swizzled box, by the number of the row.
std::int64_t swizzled_place(std::int64_t row, std::int64_t byte, std::int64_t row_bytes) {
  const std::int64_t by = row_bytes == 128 ? row % 8 : row_bytes == 64 ? row / 2 % 4 : row / 4 % 2;
  return row * row_bytes + (byte / 16 ^ by) * 16 + byte % 16;
}

/// The indices of a row's first element, as the row's number alone gives them.
std::array<std::int64_t, 4> indices_of(const TensorMapShape& shape, const Order& order, std::int64_t row) {
  const Indices& first = order.first;
  if (!shape.im2col) return {first[0], first[1] + row % shape.box[1], first[2] + row / shape.box[1], 0};
  const TensorMapShape::Im2col& im2col = *shape.im2col;
  std::array<std::int64_t, 2> count{}, number{};
  for (std::size_t i = 0; i < 2; ++i) {
    count[i] = (shape.extents[i + 1] + im2col.upper[i] - im2col.lower[i] + im2col.stride[i] - 1) / im2col.stride[i];
    number[i] = (first[i + 1] - im2col.lower[i]) / im2col.stride[i];
  }
  const std::int64_t pixel = (first[3] * count[1] + number[1]) * count[0] + number[0] + row;
  return {first[0], im2col.lower[0] + pixel % count[0] * im2col.stride[0] + order.offset[0],
          im2col.lower[1] + pixel / count[0] % count[1] * im2col.stride[1] + order.offset[1],
          pixel / count[0] / count[1]};
}

}  // namespace

void TensorCopies::set(const TensorMapShape& shape) {
  shape_ = shape;
  std::int64_t last = 0;
  for (std::size_t i = 0; i < index(shape.rank); ++i) last += (shape.extents[i] - 1) * shape.strides[i];
  bytes_ = (last + 1) * shape.element_bytes;
  storage_.resize(index(bytes_) + 256);
  x_ = storage_.data() + (256 - reinterpret_cast<std::uintptr_t>(storage_.data()) % 256);
  for (std::int64_t i = 0; i < bytes_; ++i) x_[i] = static_cast<unsigned char>(i * 7 + i / 251 + 1);
}

host::Report TensorCopies::run(Order order, const host::Settings& settings, host::Purpose purpose) {
  if (order.announced == 0) order.announced = static_cast<int>(bytes_of(shape_));
  if (order.words == 0) order.words = static_cast<int>(bytes_of(shape_) / 4);
  y_.assign(kPoolBytes / 4 + 1, 0xabababab);
  host::Launch launch;
  launch.entry = fmt::format("probe{}", rank_ != 0 ? rank_ : shape_.rank);
  launch.threads = kThreads;
  launch.shared_bytes = kPoolBytes + 8;
  launch.buffers = {{"x_map", x_, bytes_, false, shape_},
                    {"order", &order, sizeof(order), false},
                    {"y", y_.data(), static_cast<std::int64_t>(y_.size() * 4), true}};
  return host::execute(module_for(purpose, kPoolBytes), launch, settings);
}

std::vector<unsigned char> TensorCopies::expected(const Order& order) {
  const std::int64_t element = shape_.element_bytes;
  std::vector<unsigned char> box(index(bytes_of(shape_)));
  inside_ = 0;
  for (std::int64_t row = 0; row < rows_of(shape_); ++row) {
    std::array<std::int64_t, 4> at = indices_of(shape_, order, row);
    for (std::int64_t e = 0; e < shape_.box[0]; ++e, ++at[0]) {
      bool inside = true;
      std::int64_t offset = 0;
      for (std::size_t i = 0; i < index(shape_.rank); ++i) {
        inside = inside && at[i] >= 0 && at[i] < shape_.extents[i];
        offset += at[i] * shape_.strides[i];
      }
      if (!inside) continue;
      inside_ += element;
      const std::int64_t place = shape_.swizzle_bytes != 0 ? swizzled_place(row, e * element, shape_.swizzle_bytes)
                                                           : (row * shape_.box[0] + e) * element;
      std::memcpy(&box[index(place)], x_ + offset * element, index(element));
    }
  }
  return box;
}

void TensorCopies::expect_box(const Order& order, const host::Settings& settings) {
  const host::Report report = run(order, settings);
  for (const host::Finding& finding : report.findings) ADD_FAILURE() << to_string(finding);
  const std::vector<unsigned char> want = expected(order);
  EXPECT_EQ(std::memcmp(y_.data(), want.data(), want.size()), 0)
      << order.first[0] << ", " << order.first[1] << ", " << order.first[2] << ", " << order.first[3];
  EXPECT_EQ(y_[want.size() / 4], 0xababababu);
}

void TensorCopies::expect_finding(const Order& order, host::Rule rule, const std::string& words) {
  for (const Landing landing : {Landing::early, Landing::late}) {
    const host::Report report = run(order, {.landing = landing});
    ASSERT_FALSE(report.findings.empty());
    EXPECT_EQ(report.findings.front().rule, rule) << to_string(report.findings.front());
    EXPECT_NE(to_string(report.findings.front()).find(words), std::string::npos) << to_string(report.findings.front());
  }
}

std::vector<TensorMapShape> im2col_maps() {
  const TensorMapShape words{.rank = 4, .extents = {20, 5, 4, 3}, .strides = {1, 24, 124, 500}, .box = {32, 37}};
  const TensorMapShape halves{
      .rank = 4, .element_bytes = 2, .extents = {40, 7, 6, 2}, .strides = {1, 40, 280, 1696}, .box = {32, 21}};
  const auto with = [](TensorMapShape shape, int row_bytes, const TensorMapShape::Im2col& im2col) {
    shape.im2col = im2col;
    shape.swizzle_bytes = row_bytes;
    if (row_bytes != 0) shape.box[0] = row_bytes / shape.element_bytes;
    return shape;
  };
  return {with(words, 128, {.lower = {-1, -1}, .upper = {-1, -1}}),
          with(words, 0, {.lower = {1, 0}, .upper = {2, 3}, .stride = {3, 1}}),
          with(halves, 128, {.lower = {-3, -2}, .upper = {-3, -2}, .stride = {2, 2}}),
          with(halves, 64, {.lower = {0, -1}, .upper = {-4, 1}, .stride = {1, 3}}),
          with(halves, 32, {.lower = {-2, 2}, .upper = {0, -3}})};
}

}  // namespace jitconv::test
