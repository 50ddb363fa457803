// Parameters that are tensor maps, on the fake driver: what a map is made of, that every launch makes its own, and that
// a map TMA could not use is refused when the kernel is made.
#include <functional>

#include "runtime/cuda_backend.h"
#include "runtime/kernel_access.h"
#include "runtime/kernel_state.h"
#include "runtime_test_support.h"

namespace jitconv::runtime_test {
namespace {

using codegen::Tensor;
using codegen::TensorMapShape;

constexpr char kMapType[] = "const __grid_constant__ TensorMap";

/// x, 2 x 8 x 16 x 64 elements: rows of a channel, and rows of all channels and images.
TensorMapShape rows_of_channels() {
  return {.rank = 3, .extents = {64, 16, 16}, .strides = {1, 64, 1024}, .box = {32, 4, 8}, .swizzle_bytes = 128};
}
TensorMapShape rows() { return {.rank = 2, .extents = {50, 255}, .strides = {1, 64}, .box = {64, 16}}; }

/// x read as 2 images of 16 x 8 pixels with 64 channels: 300 pixels at a time, 16 of their channels.
TensorMapShape walk() {
  return {.rank = 4,
          .extents = {64, 8, 16, 2},
          .strides = {1, 64, 512, 8192},
          .box = {16, 300},
          .swizzle_bytes = 64,
          .im2col = TensorMapShape::Im2col{.lower = {-1, -2}, .upper = {-3, 4}, .stride = {2, 5}}};
}

/// y, 2 x 16 x 14 x 62 elements, as if it were one row of each image: 16 of its positions and channels.
TensorMapShape boxes_of_y() {
  return {
      .rank = 4, .extents = {16, 1, 868, 2}, .strides = {1, 16, 16, 13888}, .box = {16, 1, 16, 1}, .swizzle_bytes = 64};
}

class TensorMapsTest : public RuntimeTest {
 protected:
  void SetUp() override {
    RuntimeTest::SetUp();
    fake_driver::set_current_device(0);
    fake_driver::expect_arguments(4);
    spec_.input = {2, 8, 16, 64};
    spec_.weight = {16, 8, 3, 3};
    args_ = addresses_for(spec_);
    entry_.name = "probe";
    entry_.threads = 128;
    entry_.arguments = {{Tensor::w, "const float* __restrict__", "w"},
                        {Tensor::x, kMapType, "x_map", rows_of_channels()},
                        {Tensor::x, kMapType, "x_rows", rows()},
                        {Tensor::y, "float* __restrict__", "y"}};
  }
  void TearDown() override {
    fake_driver::expect_arguments(0);
    RuntimeTest::TearDown();
  }
  Kernel kernel() const {
    codegen::ConvPlan plan;
    plan.spec = spec_;
    plan.target = current_target();
    codegen::KernelSource source;
    source.entries = {entry_};
    return detail::KernelAccess::make(std::make_shared<detail::KernelState>(
        runtime::cuda_backend(), plan, std::move(source), "key", runtime::Binary{"cubin", "", false}, nullptr));
  }
  std::string refused(const TensorMapShape& map) {
    return refused([&](codegen::KernelEntry& entry) { entry.arguments[1].map = map; });
  }
  /// What the InternalError says that making the kernel throws, or "" if it does not.
  std::string refused(const std::function<void(codegen::KernelEntry&)>& change) {
    const codegen::KernelEntry before = entry_;
    change(entry_);
    std::string text;
    try {
      kernel();
    } catch (const InternalError& error) {
      text = error.what();
    }
    entry_ = before;
    return text;
  }

  ConvSpec spec_;
  LaunchArgs args_;
  codegen::KernelEntry entry_;
};

TEST_F(TensorMapsTest, HoldWhatTheShapeSaysAndTheLaunchsPointer) {
  kernel().launch(nullptr, args_);
  ASSERT_EQ(fake_driver::launches().size(), 1u);
  const fake_driver::Launch launch = fake_driver::launches().front();
  EXPECT_EQ(launch.arguments, (std::vector<void*>{const_cast<void*>(args_.w), const_cast<void*>(args_.x),
                                                  const_cast<void*>(args_.x), args_.y}));
  EXPECT_TRUE(launch.maps[0].extents.empty());
  EXPECT_TRUE(launch.maps[3].extents.empty());

  const fake_driver::TensorMap& channels = launch.maps[1];
  EXPECT_EQ(channels.data_type, 7);
  EXPECT_EQ(channels.extents, (std::vector<std::uint64_t>{64, 16, 16}));
  EXPECT_EQ(channels.strides, (std::vector<std::uint64_t>{256, 4096}));
  EXPECT_EQ(channels.box, (std::vector<std::uint32_t>{32, 4, 8}));
  EXPECT_EQ(channels.element_strides, (std::vector<std::uint32_t>{1, 1, 1}));
  EXPECT_EQ(channels.interleave, 0);
  EXPECT_EQ(channels.swizzle, 3);
  EXPECT_EQ(channels.l2_promotion, 2);
  EXPECT_EQ(channels.fill, 0);

  const fake_driver::TensorMap& rows = launch.maps[2];
  EXPECT_EQ(rows.extents, (std::vector<std::uint64_t>{50, 255}));
  EXPECT_EQ(rows.strides, std::vector<std::uint64_t>{256});
  EXPECT_EQ(rows.box, (std::vector<std::uint32_t>{64, 16}));
  EXPECT_EQ(rows.element_strides, (std::vector<std::uint32_t>{1, 1}));
  EXPECT_EQ(rows.swizzle, 0);
}

TEST_F(TensorMapsTest, WalkAsTheShapeSays) {
  entry_.arguments[1].map = walk();
  kernel().launch(nullptr, args_);
  const fake_driver::TensorMap pixels = fake_driver::launches().front().maps[1];
  EXPECT_EQ(pixels.address, args_.x);
  EXPECT_EQ(pixels.data_type, 7);
  EXPECT_EQ(pixels.extents, (std::vector<std::uint64_t>{64, 8, 16, 2}));
  EXPECT_EQ(pixels.strides, (std::vector<std::uint64_t>{256, 2048, 32768}));
  EXPECT_EQ(pixels.lower, (std::vector<int>{-1, -2}));
  EXPECT_EQ(pixels.upper, (std::vector<int>{-3, 4}));
  EXPECT_EQ(pixels.box, (std::vector<std::uint32_t>{16, 300}));
  EXPECT_EQ(pixels.element_strides, (std::vector<std::uint32_t>{1, 2, 5, 1}));
  EXPECT_EQ(pixels.interleave, 0);
  EXPECT_EQ(pixels.swizzle, 2);
  EXPECT_EQ(pixels.l2_promotion, 3);
  EXPECT_EQ(pixels.fill, 0);

  entry_.arguments[1].map.rounds_to_tf32 = true;
  kernel().launch(nullptr, args_);
  EXPECT_EQ(fake_driver::launches().back().maps[1].data_type, 11);
}

TEST_F(TensorMapsTest, BringBoxesOfFourAxes) {
  entry_.arguments[1].map = walk();
  entry_.arguments[1].map.im2col.reset();
  entry_.arguments[1].map.box = {16, 2, 4, 2};
  kernel().launch(nullptr, args_);
  const fake_driver::TensorMap images = fake_driver::launches().front().maps[1];
  EXPECT_EQ(images.extents, (std::vector<std::uint64_t>{64, 8, 16, 2}));
  EXPECT_EQ(images.strides, (std::vector<std::uint64_t>{256, 2048, 32768}));
  EXPECT_EQ(images.box, (std::vector<std::uint32_t>{16, 2, 4, 2}));
  EXPECT_EQ(images.element_strides, (std::vector<std::uint32_t>{1, 1, 1, 1}));
  EXPECT_TRUE(images.lower.empty());
}

TEST_F(TensorMapsTest, SwizzleRowsOfEachWidth) {
  const std::vector<std::pair<int, int>> widths = {{32, 1}, {64, 2}, {128, 3}};
  for (const auto& [bytes, swizzle] : widths) {
    entry_.arguments[1].map.swizzle_bytes = bytes;
    entry_.arguments[1].map.box[0] = bytes / 4;
    kernel().launch(nullptr, args_);
    EXPECT_EQ(fake_driver::launches().back().maps[1].swizzle, swizzle) << bytes;
  }
}

TEST_F(TensorMapsTest, RoundWhereTheShapeSaysSo) {
  entry_.arguments[1].map.rounds_to_tf32 = true;
  kernel().launch(nullptr, args_);
  EXPECT_EQ(fake_driver::launches().front().maps[1].data_type, 11);
  EXPECT_EQ(fake_driver::launches().front().maps[2].data_type, 7);
}

TEST_F(TensorMapsTest, OfTwoByteElementsCountInBytes) {
  spec_.dtype = DataType::f16;
  for (codegen::Argument& argument : entry_.arguments)
    if (argument.map.rank > 0) argument.map.element_bytes = 2;
  entry_.arguments[1].map.box[0] = 64;
  kernel().launch(nullptr, args_);
  const fake_driver::TensorMap channels = fake_driver::launches().front().maps[1];
  EXPECT_EQ(channels.data_type, 1);
  EXPECT_EQ(channels.strides, (std::vector<std::uint64_t>{128, 2048}));
}

TEST_F(TensorMapsTest, AreMadeAnewByEveryLaunch) {
  const Kernel kernel = this->kernel();
  LaunchArgs other = args_;
  other.x = reinterpret_cast<void*>((std::uintptr_t{8} << 34) + 16);
  kernel.launch(nullptr, args_);
  const std::size_t before = fake_driver::calls().size();
  kernel.launch(nullptr, other);
  std::vector<std::string> calls = fake_driver::calls();
  calls.erase(calls.begin(), calls.begin() + static_cast<std::ptrdiff_t>(before));
  EXPECT_EQ(calls, (std::vector<std::string>{"cuCtxGetDevice", "cuTensorMapEncodeTiled", "cuTensorMapEncodeTiled",
                                             "cuLaunchKernel"}));
  const std::vector<fake_driver::Launch> launches = fake_driver::launches();
  ASSERT_EQ(launches.size(), 2u);
  for (const std::size_t i : {1u, 2u}) {
    EXPECT_EQ(launches[0].maps[i].address, args_.x);
    EXPECT_EQ(launches[1].maps[i].address, other.x);
    EXPECT_EQ(launches[1].maps[i].box, launches[0].maps[i].box);
  }
}

TEST_F(TensorMapsTest, ThatTheDriverRefusesFailTheLaunch) {
  entry_.arguments[2].map = walk();
  const Kernel kernel = this->kernel();
  for (const std::string call : {"cuTensorMapEncodeTiled", "cuTensorMapEncodeIm2col"}) {
    fake_driver::fail(call, 1);
    try {
      kernel.launch(nullptr, args_);
      FAIL();
    } catch (const CudaError& error) {
      EXPECT_EQ(error.result(), 1);
      EXPECT_NE(std::string(error.what()).find(call), std::string::npos) << error.what();
    }
  }
  EXPECT_TRUE(fake_driver::launches().empty());
}

TEST_F(TensorMapsTest, ThatCannotBeAreABug) {
  using Change = std::function<void(TensorMapShape&)>;
  const auto of_map = [&](const Change& change) {
    return refused([&](codegen::KernelEntry& entry) { change(entry.arguments[1].map); });
  };
  EXPECT_EQ(refused([](codegen::KernelEntry&) {}), "");
  const std::vector<std::pair<Change, std::string>> changes = {
      {[](TensorMapShape& map) { map.rank = 1; }, "of rank 1"},
      {[](TensorMapShape& map) { map.rank = 5; }, "of rank 5"},
      {[](TensorMapShape& map) { map.rank = 4; }, "an extent of 0"},
      {[](TensorMapShape& map) { map.element_bytes = 8; }, "elements of 8 bytes"},
      {[](TensorMapShape& map) { map.element_bytes = 2, map.rounds_to_tf32 = true; }, "no floats are to be rounded"},
      {[](TensorMapShape& map) { map.strides[0] = 2; }, "a stride of 2 along the first axis"},
      {[](TensorMapShape& map) { map.strides[1] = 62; }, "a stride of 248 bytes"},
      {[](TensorMapShape& map) { map.strides[2] = 0; }, "a stride of 0 bytes"},
      {[](TensorMapShape& map) { map.strides[2] = std::int64_t{1} << 38; }, "a stride of 1099511627776 bytes"},
      {[](TensorMapShape& map) { map.extents[1] = 0; }, "an extent of 0"},
      {[](TensorMapShape& map) { map.box[1] = 257; }, "a box with an extent of 257"},
      {[](TensorMapShape& map) { map.box[2] = 0; }, "a box with an extent of 0"},
      {[](TensorMapShape& map) { map.box[0] = 31; }, "a box with rows of 124 bytes"},
      {[](TensorMapShape& map) { map.box[0] = 28; }, "rows of 112 bytes, swizzled as if of 128"},
      {[](TensorMapShape& map) { map.box[0] = 64; }, "rows of 256 bytes, swizzled as if of 128"},
      {[](TensorMapShape& map) { map.swizzle_bytes = 64; }, "rows of 128 bytes, swizzled as if of 64"},
      {[](TensorMapShape& map) { map.box[0] = 24, map.swizzle_bytes = 96; }, "a swizzle of 96 bytes"},
      {[](TensorMapShape& map) { map.box[0] = 4, map.swizzle_bytes = 16; }, "a swizzle of 16 bytes"},
      {[](TensorMapShape& map) {
         map.box = {32, 19, 97};
       },
       "a box of 235904 bytes"},
      {[](TensorMapShape& map) { map.extents[2] = 17; }, "it is larger than the tensor"},
      {[](TensorMapShape& map) { map.extents[1] = std::int64_t{1} << 32; }, "it is larger than the tensor"},
  };
  for (const auto& [change, reason] : changes)
    EXPECT_NE(of_map(change).find("probe has a tensor map x_map that cannot be: " + reason), std::string::npos)
        << reason << ": " << of_map(change);
  EXPECT_EQ(of_map([](TensorMapShape& map) { map.box = {32, 256, 1}; }), "");
  EXPECT_EQ(of_map([](TensorMapShape& map) { map.box = {32, 19, 96}; }), "");
  EXPECT_EQ(of_map([](TensorMapShape& map) { map.swizzle_bytes = 0, map.box[0] = 28; }), "");

  TensorMapShape images = walk();
  images.im2col.reset(), images.box = {16, 2, 4, 2};
  EXPECT_EQ(refused(images), "");
  images.box[3] = 257;
  EXPECT_NE(refused(images).find("a box with an extent of 257"), std::string::npos) << refused(images);

  const auto has = [](const std::string& text, const char* words) { return text.find(words) != std::string::npos; };
  EXPECT_EQ(refused([](codegen::KernelEntry& entry) { entry.arguments[0] = entry.arguments[1]; }), "");
  EXPECT_TRUE(has(refused([](codegen::KernelEntry& entry) {
                    entry.arguments[0] = entry.arguments[1];
                    entry.arguments[3] = {Tensor::y, kMapType, "y_map", boxes_of_y()};
                  }),
                  "too many tensor maps"));
  spec_.alignment = 8;
  EXPECT_TRUE(has(refused([](codegen::KernelEntry&) {}), "the tensor is at no multiple of 16 bytes"));
}

TEST_F(TensorMapsTest, OfWhatTheKernelWritesAreOfBoxesThatStayAsTheyAre) {
  const auto of_y = [&](const std::function<void(TensorMapShape&)>& change) {
    return refused([&](codegen::KernelEntry& entry) {
      entry.arguments[3] = {Tensor::y, kMapType, "y_map", boxes_of_y()};
      change(entry.arguments[3].map);
    });
  };
  const auto expect_refused = [&](const std::function<void(TensorMapShape&)>& change, const std::string& reason) {
    EXPECT_NE(of_y(change).find("probe has a tensor map y_map that cannot be: " + reason), std::string::npos)
        << reason << ": " << of_y(change);
  };
  EXPECT_EQ(of_y([](TensorMapShape&) {}), "");
  expect_refused([](TensorMapShape& map) { map.im2col = TensorMapShape::Im2col{}; },
                 "an im2col map of what the kernel writes");
  expect_refused([](TensorMapShape& map) { map.rounds_to_tf32 = true; }, "what the kernel writes is to be rounded");
  expect_refused([](TensorMapShape& map) { map.extents[0] = 15; },
                 "rows of 60 bytes, behind which a store would write");
  expect_refused([](TensorMapShape& map) { map.extents[3] = 3; }, "it is larger than the tensor");

  // Each launch makes it of the pointer it is given.
  entry_.arguments[3] = {Tensor::y, kMapType, "y_map", boxes_of_y()};
  kernel().launch(nullptr, args_);
  const fake_driver::TensorMap boxes = fake_driver::launches().front().maps[3];
  EXPECT_EQ(boxes.address, args_.y);
  EXPECT_EQ(boxes.data_type, 7);
  EXPECT_EQ(boxes.extents, (std::vector<std::uint64_t>{16, 1, 868, 2}));
  EXPECT_EQ(boxes.strides, (std::vector<std::uint64_t>{64, 64, 55552}));
  EXPECT_EQ(boxes.box, (std::vector<std::uint32_t>{16, 1, 16, 1}));
  EXPECT_EQ(boxes.swizzle, 2);
}

TEST_F(TensorMapsTest, WhoseWalkCannotBeAreABug) {
  using Change = std::function<void(TensorMapShape&)>;
  const auto of_im2col = [&](const Change& change) {
    TensorMapShape map = walk();
    change(map);
    return refused(map);
  };
  EXPECT_EQ(of_im2col([](TensorMapShape&) {}), "");
  const std::vector<std::pair<Change, std::string>> changes = {
      {[](TensorMapShape& map) { map.rank = 3; }, "an im2col map of rank 3"},
      {[](TensorMapShape& map) { map.extents[3] = 0; }, "an extent of 0"},
      {[](TensorMapShape& map) { map.extents[3] = (std::int64_t{1} << 32) + 1; }, "an extent of 4294967297"},
      {[](TensorMapShape& map) { map.extents[3] = 3; }, "it is larger than the tensor"},
      {[](TensorMapShape& map) { map.strides[2] = 510; }, "a stride of 2040 bytes"},
      {[](TensorMapShape& map) { map.strides[3] = std::int64_t{1} << 38; }, "a stride of 1099511627776 bytes"},
      {[](TensorMapShape& map) { map.box[0] = 0; }, "an im2col map with 0 channels"},
      {[](TensorMapShape& map) { map.box[0] = 257; }, "an im2col map with 257 channels"},
      {[](TensorMapShape& map) { map.box[0] = 14; }, "an im2col map with rows of 56 bytes"},
      {[](TensorMapShape& map) { map.box[0] = 12; }, "rows of 48 bytes, swizzled as if of 64"},
      {[](TensorMapShape& map) { map.box[1] = 0; }, "an im2col map with 0 pixels"},
      {[](TensorMapShape& map) { map.box[1] = 1025; }, "an im2col map with 1025 pixels"},
      {[](TensorMapShape& map) {
         map.swizzle_bytes = 0, map.box = {256, 229};
       },
       "an im2col map of 234496 bytes"},
      {[](TensorMapShape& map) { map.im2col->lower[0] = -129; }, "an im2col map with a corner at -129"},
      {[](TensorMapShape& map) { map.im2col->lower[1] = 128; }, "an im2col map with a corner at 128"},
      {[](TensorMapShape& map) { map.im2col->upper[0] = 128; }, "an im2col map with a corner at 128"},
      {[](TensorMapShape& map) { map.im2col->upper[1] = -129; }, "an im2col map with a corner at -129"},
      {[](TensorMapShape& map) { map.im2col->stride[0] = 0; }, "an im2col map with a stride of 0"},
      {[](TensorMapShape& map) { map.im2col->stride[1] = 9; }, "an im2col map with a stride of 9"},
      {[](TensorMapShape& map) { map.im2col->upper[0] = -9; }, "an im2col map without pixels from -1 to -9"},
      {[](TensorMapShape& map) { map.im2col->lower[1] = 20; }, "an im2col map without pixels from 20 to 4"},
  };
  for (const auto& [change, reason] : changes)
    EXPECT_NE(of_im2col(change).find("probe has a tensor map x_map that cannot be: " + reason), std::string::npos)
        << reason << ": " << of_im2col(change);
  EXPECT_EQ(of_im2col([](TensorMapShape& map) { map.swizzle_bytes = 0, map.box = {256, 228}; }), "");
  EXPECT_EQ(of_im2col([](TensorMapShape& map) { map.box[1] = 1024; }), "");
  EXPECT_EQ(of_im2col([](TensorMapShape& map) { map.im2col->lower = {-128, 19}; }), "");
  EXPECT_EQ(of_im2col([](TensorMapShape& map) { map.im2col->upper = {-8, 127}, map.im2col->stride = {8, 8}; }), "");
}

}  // namespace
}  // namespace jitconv::runtime_test
