// Copies of pixels by maps in im2col mode, from every pixel on; and where no copy begins.
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "host/engine/tensor_copies.h"

namespace jitconv::test {
namespace {

using codegen::TensorMapShape;
using host::Landing;
using host::Rule;

TEST_F(TensorCopies, OfIm2colModeBringEveryPixelInTurn) {
  for (const TensorMapShape& shape : im2col_maps()) {
    set(shape);
    const TensorMapShape::Im2col& im2col = *shape.im2col;
    for (int n = 0; n < shape.extents[3]; ++n)
      for (int h = im2col.lower[1]; h < shape.extents[2] + im2col.upper[1]; h += im2col.stride[1])
        for (int w = im2col.lower[0]; w < shape.extents[1] + im2col.upper[0]; w += im2col.stride[0])
          expect_box({.first = {8, w, h, n}, .place = 1024, .offset = {n, 2 - n}},
                     {.landing = n % 2 == 0 ? Landing::early : Landing::late});
  }
}

TEST_F(TensorCopies, OfIm2colModeAreOfChannelsAndAtOffsets) {
  for (const TensorMapShape& shape : im2col_maps()) {
    set(shape);
    const TensorMapShape::Im2col& im2col = *shape.im2col;
    for (const int c : {-40, -8, 0, 8, 16, 32, 80})
      for (const std::array<int, 2>& offset : {std::array{0, 0}, {2, 1}, {1, 2}, {6, 0}, {0, 255}, {255, 3}})
        expect_box({.first = {c, im2col.lower[0], im2col.lower[1], 1}, .place = 1024, .offset = offset}, {});
  }
}

TEST_F(TensorCopies, OfIm2colModeHaveUpTo1024Pixels) {
  TensorMapShape shape = im2col_maps().back();
  for (const int pixels : {1, 255, 257, 500}) {
    shape.box[1] = pixels;
    set(shape);
    expect_box({.first = {16, -1, 2, 0}}, {});
  }
  shape.box = {8, 1024};
  shape.swizzle_bytes = 0;
  set(shape);
  expect_box({.first = {0, -1, 2, 0}}, {});
}

TEST_F(TensorCopies, OfIm2colModeBeginOnIt) {
  set(im2col_maps()[0]);
  const auto refuses = [this](const Order& order, Rule rule, const std::string& words) {
    expect_finding(order, rule, words);
  };
  refuses({.first = {0, -2, 0, 0}}, Rule::out_of_bounds,
          "from w -2 on, outside the im2col corners from -1 to before 4");
  refuses({.first = {0, 4, 0, 0}}, Rule::out_of_bounds, "from w 4 on, outside the im2col corners from -1 to before 4");
  refuses({.first = {0, 0, -2, 0}}, Rule::out_of_bounds,
          "from h -2 on, outside the im2col corners from -1 to before 3");
  refuses({.first = {0, 0, 3, 0}}, Rule::out_of_bounds, "from h 3 on");
  refuses({.first = {0, 0, 0, -1}}, Rule::out_of_bounds, "from image -1 of 3 on");
  refuses({.first = {0, 0, 0, 3}}, Rule::out_of_bounds, "from image 3 of 3 on");
  refuses({.first = {2, 0, 0, 0}}, Rule::misaligned, "from index 2 on, at no multiple of 16 bytes");
  refuses({.offset = {-1, 0}}, Rule::out_of_bounds, "at an offset along w of -1: it is 0 to 255");
  refuses({.offset = {256, 0}}, Rule::out_of_bounds, "at an offset along w of 256");
  refuses({.offset = {0, 256}}, Rule::out_of_bounds, "at an offset along h of 256");
  refuses({.place = 512}, Rule::misaligned, "in shared memory at no multiple of 1024");
  set(im2col_maps()[2]);
  refuses({.first = {0, -2, 0, 0}}, Rule::misaligned, "from w -2 on, where im2col mode from -3 by 2 does not come");
  refuses({.first = {0, -1, 1, 0}}, Rule::misaligned, "from h 1 on, where im2col mode from -2 by 2 does not come");
}

TEST_F(TensorCopies, OfIm2colModeReadOnlyWhatIsInTheTensor) {
  for (const TensorMapShape& shape : im2col_maps()) {
    set(shape);
    const TensorMapShape::Im2col& im2col = *shape.im2col;
    const auto bytes_read = [this](const Order& order) {
      return run(order, {}, host::Purpose::count).counters.global_loads.bytes;
    };
    const std::uint64_t none = bytes_read({.first = {800, im2col.lower[0], im2col.lower[1], 0}, .words = 1});
    for (const int n : {0, 1}) {
      Order order{.first = {16, im2col.lower[0], im2col.lower[1], n}, .words = 1, .offset = {n, 1}};
      expected(order);
      EXPECT_GT(inside_, 0);
      EXPECT_EQ(bytes_read(order) - none, static_cast<std::uint64_t>(inside_));
    }
  }
  set(im2col_maps()[0]);
  bytes_ -= 4;  // the tensor's last element
  expect_box({.first = {-16, 3, 2, 2}}, {});
  expect_box({.first = {0, 3, 1, 2}}, {});
  expect_box({.first = {0, 3, 1, 2}, .offset = {2, 0}}, {});
  expect_box({.first = {0, 3, 1, 2}, .offset = {0, 1}}, {});
  expect_finding({.first = {0, 3, 1, 2}, .offset = {1, 2}}, Rule::out_of_bounds,
                 "tensor copy of 80 bytes outside the buffers of the launch");
}

}  // namespace
}  // namespace jitconv::test
