// Copies of boxes by tensor maps that stick out on every side, swizzled and rounded; and what a copy may not do.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <vector>

#include "host/engine/tensor_copies.h"
#include "host/tensor_box.h"

namespace jitconv::test {
namespace {

using codegen::TensorMapShape;
using host::Landing;
using host::Rule;

TensorMapShape plane() { return {.rank = 2, .extents = {37, 11}, .strides = {1, 40}, .box = {32, 5}}; }
TensorMapShape volume() {
  return {.rank = 3, .element_bytes = 2, .extents = {13, 6, 4}, .strides = {1, 16, 104}, .box = {8, 3, 2}};
}
TensorMapShape swizzled(TensorMapShape shape, int row_bytes = 128) {
  shape.box[0] = row_bytes / shape.element_bytes;
  shape.box[1] = 21;
  shape.swizzle_bytes = row_bytes;
  return shape;
}

TEST_F(TensorCopies, OfAPlaneBringZerosOnEverySide) {
  for (const TensorMapShape& shape : {plane(), swizzled(plane()), swizzled(plane(), 64), swizzled(plane(), 32)}) {
    set(shape);
    for (const Landing landing : {Landing::early, Landing::late})
      for (const int i1 : {-100, -21, -5, -4, -1, 0, 3, 7, 10, 11, 1000})
        for (const int i0 : {-1000, -32, -28, -4, 0, 4, 8, 20, 36, 40, 1 << 30})
          expect_box({.first = {i0, i1}}, {.landing = landing});
  }
}

TEST_F(TensorCopies, OfAVolumeBringZerosOnEverySide) {
  for (const TensorMapShape& shape : {volume(), swizzled(volume()), swizzled(volume(), 64), swizzled(volume(), 32)}) {
    set(shape);
    for (const int i2 : {-2, -1, 0, 2, 3, 4})
      for (const int i1 : {-21, -2, 0, 4, 6})
        for (const int i0 : {-64, -56, -8, 0, 8, 16}) expect_box({.first = {i0, i1, i2}, .place = 1024}, {});
  }
}

// No device function brings one of four axes.
TEST(TensorBoxes, HaveFourAxes) {
  const TensorMapShape shape{.rank = 4, .extents = {9, 4, 3, 2}, .strides = {1, 12, 52, 160}, .box = {8, 3, 2, 2}};
  std::vector<float> x(3 * 160);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i + 1);
  for (const Indices& first : {Indices{0, 0, 0, 0}, {4, 2, 1, 1}, {-4, -1, -1, -1}}) {
    std::vector<float> box(8 * 3 * 2 * 2, -1.0f);
    ASSERT_EQ(static_cast<std::int64_t>(box.size() * 4), shape.box_bytes());
    host::TensorBox(shape, x.data(), {.first = first}).land(reinterpret_cast<char*>(box.data()));
    for (int i = 0; i < 8 * 3 * 2 * 2; ++i) {
      const Indices at{first[0] + i % 8, first[1] + i / 8 % 3, first[2] + i / 24 % 2, first[3] + i / 48};
      bool inside = true;
      for (std::size_t axis = 0; axis < 4; ++axis) inside = inside && at[axis] >= 0 && at[axis] < shape.extents[axis];
      const int offset = at[0] + at[1] * 12 + at[2] * 52 + at[3] * 160;
      ASSERT_EQ(box[index(i)], inside ? static_cast<float>(offset + 1) : 0.0f) << i;
    }
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
  const TensorMapShape rows{
      .rank = 2, .extents = {words, 3}, .strides = {1, words}, .box = {32, 8}, .rounds_to_tf32 = true};
  TensorMapShape swizzled = rows, im2col = rows;
  swizzled.swizzle_bytes = im2col.swizzle_bytes = 128;
  im2col.rank = 4;
  im2col.extents = {words, 3, 1, 1};
  im2col.strides = {1, words, 3 * words, 3 * words};
  im2col.im2col = TensorMapShape::Im2col{.lower = {-6, 0}};
  for (const TensorMapShape& shape : {rows, swizzled, im2col}) {
    ASSERT_EQ(words, shape.box[0]);
    for (const Indices& first : {Indices{0, 0}, {4, 1}, {-12, -6}}) {
      // What comes is what would come, if the tensor held the rounded words.
      set(shape);
      const auto fill = [&](std::uint32_t Rounded::*member) {
        for (std::int64_t i = 0; i < bytes_ / 4; ++i)
          std::memcpy(x_ + i * 4, &(kRounded[index((i + i / words) % words)].*member), 4);
      };
      fill(&Rounded::to);
      const std::vector<unsigned char> want = expected({.first = first});
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

TEST_F(TensorCopies, AreOfTheKindOfTheMap) {
  set(plane());
  rank_ = 3;
  expect_finding({}, Rule::out_of_bounds, "by what is no map of 3 axes of the launch");
  rank_ = 4;
  expect_finding({}, Rule::out_of_bounds, "by what is no im2col map of 4 axes of the launch");
  set(volume());
  rank_ = 2;
  expect_finding({}, Rule::out_of_bounds, "by what is no map of 2 axes of the launch");
  TensorMapShape shape = im2col_maps()[0];
  set(shape);
  expect_finding({}, Rule::out_of_bounds, "by what is no map of 2 axes of the launch");
  shape.im2col.reset();
  shape.box = {8, 5, 4, 3};
  set(shape);
  rank_ = 0;
  expect_finding({}, Rule::out_of_bounds, "by what is no im2col map of 4 axes of the launch");
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
