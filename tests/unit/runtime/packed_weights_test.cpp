// Kernels of several entries: which of them run in a launch with w, in one with packed_w and in pack_weights(), and
// what each parameter then leads to. A source made up here, on a backend that records.
#include <functional>

#include "fake_backend.h"
#include "runtime/kernel_access.h"
#include "runtime/kernel_state.h"
#include "runtime_test_support.h"

namespace jitconv::runtime_test {
namespace {

using codegen::Tensor;

constexpr std::int64_t kPackedBytes = 3 * 256, kPartialBytes = 5 * 256, kPixelBytes = 7 * 256;

using Regions = std::vector<codegen::Scratch>;
constexpr Tensor kPackedW = codegen::scratch_tensor(0), kPartialSums = codegen::scratch_tensor(1),
                 kTransposedX = codegen::scratch_tensor(2);
Regions three_parts() { return scratch_of(kPackedBytes, kPartialBytes); }
Regions four_parts() { return scratch_of(kPackedBytes, kPartialBytes, kPixelBytes); }

const void* behind(const void* pointer, std::int64_t bytes) { return static_cast<const char*>(pointer) + bytes; }

codegen::KernelEntry entry(const std::string& name, std::vector<codegen::Argument> arguments) {
  codegen::KernelEntry result;
  result.name = name;
  result.packs_weights = name == "pack";
  result.starts_early = name != "pack";
  result.arguments = std::move(arguments);
  return result;
}

codegen::KernelSource three_entries() {
  codegen::KernelSource source;
  source.text = "made up";
  source.entries = {
      entry("pack", {{Tensor::w, "const float* __restrict__", "w"}, {kPackedW, "uint4* __restrict__", "packed_w"}}),
      entry("convolve", {{Tensor::x, "const float* __restrict__", "x"},
                         {kPackedW, "const uint4* __restrict__", "packed_w"},
                         {kPartialSums, "float* __restrict__", "partial_sums"}}),
      entry("reduce", {{kPartialSums, "const float* __restrict__", "partial_sums"},
                       {Tensor::bias, "const float* __restrict__", "bias"},
                       {Tensor::y, "float* __restrict__", "y"}})};
  return source;
}

/// The same, with pixels that are transposed between the packing and the convolution.
codegen::KernelSource four_entries() {
  codegen::KernelSource source = three_entries();
  source.entries[1].arguments[0] = {kTransposedX, "const uint4* __restrict__", "transposed_x"};
  source.entries.insert(source.entries.begin() + 1,
                        entry("pixels", {{Tensor::x, "const float* __restrict__", "x"},
                                         {kTransposedX, "uint4* __restrict__", "transposed_x"}}));
  return source;
}

class PackedWeightsTest : public RuntimeTest {
 protected:
  PackedWeightsTest() : spec_(new_spec()) {
    spec_.epilogue.bias = true;
    with_w_ = with_packed_ = addresses_for(spec_);
    with_packed_.w = nullptr;
    with_packed_.packed_w = at(std::uintptr_t{7} << 34);
  }

  Kernel kernel_of(codegen::KernelSource source, const Regions& scratch = three_parts()) const {
    codegen::ConvPlan plan;
    plan.spec = spec_;
    plan.scratch = scratch;
    return detail::KernelAccess::make(std::make_shared<detail::KernelState>(
        backend_, plan, std::move(source), "key", runtime::Binary{"fake image ", "", false}, nullptr));
  }

  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const RecordedLaunch& launch : backend_.launches) all.push_back(launch.kernel);
    return all;
  }

  /// The field of the SpecError that `call` throws, or "" if it does not.
  template <typename Call>
  static std::string refused(Call call, ErrorCode code = ErrorCode::invalid_argument) {
    try {
      call();
      return "";
    } catch (const SpecError& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      return error.field();
    }
  }

  ConvSpec spec_;
  LaunchArgs with_w_, with_packed_;
  FakeBackend backend_;
};

using Pointers = std::vector<const void*>;

TEST_F(PackedWeightsTest, LaunchWithWeightsRunsAllEntriesInTheWorkspace) {
  int stream = 0;
  kernel_of(three_entries()).launch(&stream, with_w_);
  ASSERT_EQ(names(), (std::vector<std::string>{"pack", "convolve", "reduce"}));
  const void* packed = with_w_.workspace;
  const void* sums = behind(with_w_.workspace, kPackedBytes);
  EXPECT_EQ(backend_.launches[0].pointers, (Pointers{with_w_.w, packed}));
  EXPECT_EQ(backend_.launches[1].pointers, (Pointers{with_w_.x, packed, sums}));
  EXPECT_EQ(backend_.launches[2].pointers, (Pointers{sums, with_w_.bias, with_w_.y}));
  for (const RecordedLaunch& launch : backend_.launches) EXPECT_EQ(launch.stream, &stream) << launch.kernel;
}

TEST_F(PackedWeightsTest, LaunchWithPackedWeightsLeavesThePackingOut) {
  kernel_of(three_entries()).launch(nullptr, with_packed_);
  ASSERT_EQ(names(), (std::vector<std::string>{"convolve", "reduce"}));
  const void* sums = with_packed_.workspace;
  EXPECT_EQ(backend_.launches[0].pointers, (Pointers{with_packed_.x, with_packed_.packed_w, sums}));
  EXPECT_EQ(backend_.launches[1].pointers, (Pointers{sums, with_packed_.bias, with_packed_.y}));
}

TEST_F(PackedWeightsTest, PackWeightsDoesNothingElse) {
  int stream = 0;
  void* packed = const_cast<void*>(with_packed_.packed_w);
  kernel_of(three_entries()).pack_weights(&stream, with_w_.w, packed);
  ASSERT_EQ(names(), std::vector<std::string>{"pack"});
  EXPECT_EQ(backend_.launches[0].pointers, (Pointers{with_w_.w, packed}));
  EXPECT_EQ(backend_.launches[0].stream, &stream);
  EXPECT_EQ(backend_.count("load"), 1);
}

// What a launch begins with reads tensors that the kernel before it in the stream may still be writing.
TEST_F(PackedWeightsTest, AllEntriesButTheFirstOfALaunchMayOverlap) {
  const auto overlaps = [this] {
    std::vector<bool> all;
    for (const RecordedLaunch& launch : backend_.launches) all.push_back(launch.overlap);
    backend_.launches.clear();
    return all;
  };
  const Kernel kernel = kernel_of(three_entries());
  for (int time = 0; time < 2; ++time) {
    kernel.launch(nullptr, with_w_);
    EXPECT_EQ(overlaps(), (std::vector<bool>{false, true, true}));
    kernel.launch(nullptr, with_packed_);
    EXPECT_EQ(overlaps(), (std::vector<bool>{false, true}));
    kernel.pack_weights(nullptr, with_w_.w, with_w_.workspace);
    EXPECT_EQ(overlaps(), std::vector<bool>{false});
  }
  codegen::KernelSource source = three_entries();
  source.entries[1].starts_early = false;
  kernel_of(source).launch(nullptr, with_w_);
  EXPECT_EQ(overlaps(), (std::vector<bool>{false, false, true}));
}

TEST_F(PackedWeightsTest, WhatOneEntryWritesTheNextMayOnlyRead) {
  kernel_of(three_entries()).launch(nullptr, with_w_);
  std::vector<std::vector<std::int64_t>> bytes;
  std::vector<std::vector<bool>> writable;
  for (const RecordedLaunch& launch : backend_.launches) {
    bytes.emplace_back();
    writable.emplace_back();
    for (const runtime::ParameterExtent& extent : launch.extents) {
      bytes.back().push_back(extent.bytes);
      writable.back().push_back(extent.writable);
    }
  }
  const TensorShape out = output_shape(spec_);
  const std::int64_t x_bytes = 2 * 8 * 16 * spec_.input.w * 4, y_bytes = out.n * out.c * out.h * out.w * 4;
  EXPECT_EQ(bytes, (std::vector<std::vector<std::int64_t>>{{16 * 8 * 3 * 3 * 4, kPackedBytes},
                                                           {x_bytes, kPackedBytes, kPartialBytes},
                                                           {kPartialBytes, 16 * 4, y_bytes}}));
  EXPECT_EQ(writable, (std::vector<std::vector<bool>>{{false, true}, {false, false, true}, {false, false, true}}));
}

TEST_F(PackedWeightsTest, SizesAreOfWhatALaunchNeeds) {
  const Kernel kernel = kernel_of(three_entries());
  EXPECT_EQ(kernel.workspace_bytes(), kPackedBytes + kPartialBytes);
  EXPECT_EQ(kernel.workspace_bytes_with_packed_weights(), kPartialBytes);
  EXPECT_EQ(kernel.packed_weight_bytes(), kPackedBytes);
}

TEST_F(PackedWeightsTest, WithoutPartialSumsPackedWeightsNeedNoWorkspace) {
  codegen::KernelSource source = three_entries();
  source.entries.pop_back();
  source.entries.back().arguments.back() = {Tensor::y, "float* __restrict__", "y"};
  const Kernel kernel = kernel_of(source, scratch_of(kPackedBytes, 0));
  EXPECT_EQ(kernel.workspace_bytes_with_packed_weights(), 0);
  with_packed_.workspace = nullptr;
  kernel.launch(nullptr, with_packed_);
  EXPECT_EQ(names(), std::vector<std::string>{"convolve"});
  with_w_.workspace = nullptr;
  EXPECT_EQ(refused([&] { kernel.launch(nullptr, with_w_); }), "workspace");
}

TEST_F(PackedWeightsTest, BothOrNeitherIsRefusedBeforeTheBackendIsAsked) {
  const Kernel kernel = kernel_of(three_entries());
  LaunchArgs args = with_packed_;
  args.w = with_w_.w;
  EXPECT_EQ(refused([&] { kernel.launch(nullptr, args); }), "w");
  args.w = args.packed_w = nullptr;
  EXPECT_EQ(refused([&] { kernel.launch(nullptr, args); }), "w");
  EXPECT_EQ(refused([&] { kernel.pack_weights(nullptr, nullptr, with_w_.workspace); }), "w");
  EXPECT_EQ(refused([&] { kernel.pack_weights(nullptr, with_w_.w, nullptr); }), "packed_w");
  EXPECT_EQ(backend_.count("load"), 0);
  EXPECT_TRUE(backend_.launches.empty());
}

TEST_F(PackedWeightsTest, AKernelThatReadsWeightsAsTheyAreRefusesPackedOnes) {
  const ConvSpec spec = new_spec();
  const Kernel kernel = runtime::compile_plan(codegen::make_plan(spec, parse_target("sm_80")), {}, backend_);
  ASSERT_EQ(kernel.packed_weight_bytes(), 0);
  EXPECT_EQ(refused([&] { kernel.pack_weights(nullptr, with_w_.w, with_w_.workspace); }, ErrorCode::unsupported),
            "packed_w");
  LaunchArgs args = addresses_for(spec);
  args.packed_w = with_packed_.packed_w;
  EXPECT_EQ(refused([&] { kernel.launch(nullptr, args); }), "packed_w");
  args.w = nullptr;
  EXPECT_NE(refused([&] { kernel.launch(nullptr, args); }), "");
  EXPECT_TRUE(backend_.launches.empty());
}

TEST_F(PackedWeightsTest, EveryEntryIsLoadedOnceAndCounted) {
  const Kernel kernel = kernel_of(three_entries());
  kernel.launch(nullptr, with_packed_);
  kernel.launch(nullptr, with_w_);
  EXPECT_EQ(backend_.count("prepare"), 3);
  EXPECT_EQ(kernel.resources().size(), 3u);
}

TEST_F(PackedWeightsTest, AColdKernelIsNotLoadedForPackingInACapture) {
  int stream = 0;
  backend_.capturing = &stream;
  const Kernel kernel = kernel_of(three_entries());
  EXPECT_THROW(kernel.pack_weights(&stream, with_w_.w, with_w_.workspace), CudaError);
  EXPECT_EQ(backend_.count("load"), 0);
}

TEST_F(PackedWeightsTest, TransposedPixelsLieBehindPartialSums) {
  const Kernel kernel = kernel_of(four_entries(), four_parts());
  kernel.launch(nullptr, with_w_);
  ASSERT_EQ(names(), (std::vector<std::string>{"pack", "pixels", "convolve", "reduce"}));
  const void* sums = behind(with_w_.workspace, kPackedBytes);
  const void* pixels = behind(sums, kPartialBytes);
  EXPECT_EQ(backend_.launches[1].pointers, (Pointers{with_w_.x, pixels}));
  EXPECT_EQ(backend_.launches[2].pointers, (Pointers{pixels, with_w_.workspace, sums}));
  EXPECT_EQ(backend_.launches[1].extents[1].bytes, kPixelBytes);
  EXPECT_TRUE(backend_.launches[1].extents[1].writable);
  EXPECT_FALSE(backend_.launches[2].extents[0].writable);
  backend_.launches.clear();

  kernel.launch(nullptr, with_packed_);
  ASSERT_EQ(names(), (std::vector<std::string>{"pixels", "convolve", "reduce"}));
  pixels = behind(with_packed_.workspace, kPartialBytes);
  EXPECT_EQ(backend_.launches[0].pointers, (Pointers{with_packed_.x, pixels}));
  EXPECT_FALSE(backend_.launches[0].overlap) << "it is what this launch begins with";
  EXPECT_EQ(backend_.launches[1].pointers, (Pointers{pixels, with_packed_.packed_w, with_packed_.workspace}));
  backend_.launches.clear();

  kernel.pack_weights(nullptr, with_w_.w, with_w_.workspace);
  EXPECT_EQ(names(), std::vector<std::string>{"pack"});
}

TEST_F(PackedWeightsTest, TransposedPixelsArePartOfTheWorkspace) {
  const Kernel kernel = kernel_of(four_entries(), four_parts());
  EXPECT_EQ(kernel.workspace_bytes(), kPackedBytes + kPartialBytes + kPixelBytes);
  EXPECT_EQ(kernel.workspace_bytes_with_packed_weights(), kPartialBytes + kPixelBytes);
  EXPECT_EQ(kernel.packed_weight_bytes(), kPackedBytes);
  // Where threads fetch their weights, there is nothing else.
  constexpr Tensor kOnlyRegion = codegen::scratch_tensor(0);
  codegen::KernelSource source = four_entries();
  source.entries.erase(source.entries.begin());
  source.entries.pop_back();
  source.entries[0].arguments[1].tensor = kOnlyRegion;
  source.entries[1].arguments = {{kOnlyRegion, "const uint4* __restrict__", "transposed_x"},
                                 {Tensor::w, "const float* __restrict__", "w"},
                                 {Tensor::y, "float* __restrict__", "y"}};
  const Kernel fetching = kernel_of(source, scratch_of(0, 0, kPixelBytes));
  EXPECT_EQ(fetching.workspace_bytes(), kPixelBytes);
  fetching.launch(nullptr, with_w_);
  ASSERT_EQ(names(), (std::vector<std::string>{"pixels", "convolve"}));
  EXPECT_EQ(backend_.launches[1].pointers, (Pointers{with_w_.workspace, with_w_.w, with_w_.y}));
}

TEST_F(PackedWeightsTest, AParameterWithoutAPointerIsABug) {
  const auto is_a_bug = [&](const std::function<void(codegen::KernelSource&)>& change,
                            const Regions& scratch = three_parts()) {
    codegen::KernelSource source = three_entries();
    change(source);
    try {
      kernel_of(source, scratch);
      return false;
    } catch (const InternalError&) {
      return true;
    }
  };
  using Source = codegen::KernelSource;
  const auto unchanged = [](Source&) {};
  EXPECT_FALSE(is_a_bug(unchanged));
  EXPECT_TRUE(is_a_bug([](Source& s) { s.entries[1].arguments[1].tensor = Tensor::w; })) << "null with packed_w";
  EXPECT_TRUE(is_a_bug([](Source& s) { s.entries[1].arguments[1].tensor = codegen::scratch_tensor(2); }));
  EXPECT_TRUE(is_a_bug([](Source& s) { s.entries[0].arguments[0].tensor = Tensor::x; })) << "null in packing";
  EXPECT_TRUE(is_a_bug([](Source& s) { s.entries[0].arguments[1].tensor = kPartialSums; }));
  EXPECT_TRUE(is_a_bug([](Source& s) { std::swap(s.entries[0], s.entries[1]); })) << "convolves before it packs";
  EXPECT_TRUE(is_a_bug(unchanged, scratch_of(0, kPartialBytes)));
  EXPECT_TRUE(is_a_bug(unchanged, scratch_of(kPackedBytes, 0)));
  EXPECT_TRUE(is_a_bug(unchanged, scratch_of(kPackedBytes + 128, kPartialBytes))) << "partial sums would be misaligned";
  const auto transposes = [](Source& s) { s = four_entries(); };
  EXPECT_FALSE(is_a_bug(transposes, four_parts()));
  EXPECT_TRUE(is_a_bug(transposes)) << "no transposed pixels in the workspace";
  EXPECT_TRUE(is_a_bug(transposes, scratch_of(kPackedBytes, kPartialBytes, kPixelBytes + 128)))
      << "the workspace would be too short";
  EXPECT_TRUE(is_a_bug([](Source& s) { s.entries[0].arguments[0].tensor = kTransposedX; }, four_parts()))
      << "packing weights has no workspace";
}

}  // namespace
}  // namespace jitconv::runtime_test
