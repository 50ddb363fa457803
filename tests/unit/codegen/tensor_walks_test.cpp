// Pixels that the copy engine brings as operand rows (Pixels::walked): every tap of every stored output meets the pixel
// of x that the convolution means, walks start where the hardware lets them and lie inside their runs. Restates
// templates/tensor_walk_pixels.cu.in, tensor_tiles_walked.cu.in, the walk of an im2col tensor map, and how
// multiplications read swizzled rows.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

#include "codegen/arithmetic.h"
#include "codegen/source.h"
#include "fmt/format.h"
#include "unit/codegen/tensor_runs.h"

namespace jitconv::codegen {
namespace {

using test::map_of;
using test::Run;
using test::run_of;
using test::TensorCandidate;
using test::visit_outputs;
using test::walked_role;

constexpr std::int64_t kPiece = 16;

/// 16 bytes of channels of a pixel of x, or zeros.
struct Piece {
  bool exists = false;
  std::int64_t n = 0, h = 0, w = 0, channel = 0;  ///< the first, of all groups'
  bool operator==(const Piece&) const = default;
};

Piece piece_of(const ConvSpec& spec, std::int64_t n, std::int64_t h, std::int64_t w, std::int64_t channel) {
  const TensorShape& x = spec.input;
  if (n < 0 || n >= x.n || h < 0 || h >= x.h || w < 0 || w >= x.w || channel >= x.c) return {};
  return {true, n, h, w, channel};
}

/// A request to the copy engine.
struct Request {
  std::int64_t c, w, h, n, right, down;
};

/// What it brings, by places of 16 bytes from the destination.
std::vector<Piece> walked(const ConvSpec& spec, const TensorMapShape& map, const Request& request) {
  const auto& [lower, upper, stride] = *map.walk;
  const std::int64_t end_w = spec.input.w + upper[0], end_h = spec.input.h + upper[1];
  std::int64_t w = request.w, h = request.h, n = request.n;
  RC_ASSERT(w >= lower[0] && w < end_w && (w - lower[0]) % stride[0] == 0);
  RC_ASSERT(h >= lower[1] && h < end_h && (h - lower[1]) % stride[1] == 0);
  RC_ASSERT(n >= 0 && n < spec.input.n && request.c >= 0 && request.c < spec.input.c);
  RC_ASSERT(request.right >= 0 && request.right < 256 && request.down >= 0 && request.down < 256);
  const std::int64_t bytes = map.element_bytes, row = map.box[0] * bytes;
  std::vector<Piece> pieces(static_cast<std::size_t>(map.box[1] * row / kPiece));
  for (std::int64_t pixel = 0; pixel < map.box[1]; ++pixel) {
    for (std::int64_t at = 0; at < row; at += kPiece) {
      const std::int64_t byte = pixel * row + at, swizzled = byte ^ (byte / 128 % (row / kPiece) * kPiece);
      pieces.at(static_cast<std::size_t>(swizzled / kPiece)) =
          piece_of(spec, n, h + request.down, w + request.right, request.c + at / bytes);
    }
    w += stride[0];
    if (w < end_w) continue;
    w = lower[0], h += stride[1];
    if (h < end_h) continue;
    h = lower[1], ++n;
  }
  return pieces;
}

/// The pixels of a run in a stage, which is what all phases brought.
std::vector<Piece> filled_run(const TensorCandidate& one, const TensorMapShape& map, Run run, std::int64_t group,
                              std::int64_t step) {
  const WgmmaTiling& t = one.tiling;
  const ConvSpec& spec = one.spec;
  const std::int64_t row = t.run_row(spec);
  if (run.first >= output_shape(spec).h * row) run.first = 0;
  if (run.image >= spec.input.n) run.image = 0;
  std::vector<Piece> pieces(static_cast<std::size_t>(t.run_bytes(spec) / kPiece));
  std::int64_t bytes = 0;
  for (int phase = 0; phase < WgmmaTiling::phases(spec); ++phase) {
    const std::int64_t r = t.filter_rows == 1 ? step % spec.weight.r : 0,
                       chunk = t.filter_rows == 1 ? step / spec.weight.r : step;
    const std::vector<Piece> brought = walked(
        spec, map,
        {group * spec.weight.c + chunk * t.chunk_channels(spec), run.first % row * spec.stride.w - spec.padding.left,
         run.first / row * spec.stride.h - spec.padding.top, run.image, phase, r * spec.dilation.h});
    const std::int64_t destination = phase * t.phase_bytes(spec);
    RC_ASSERT(destination % 1024 == 0 && static_cast<std::int64_t>(brought.size()) * kPiece <= t.phase_bytes(spec));
    std::copy(brought.begin(), brought.end(), pieces.begin() + destination / kPiece);
    bytes += static_cast<std::int64_t>(brought.size()) * kPiece;
  }
  RC_ASSERT(bytes * t.runs() == t.walked_bytes(spec));
  return pieces;
}

/// What one tap of an output of a run reads is what the definition of a convolution says.
void check_output(const TensorCandidate& one, const std::vector<Piece>& run, std::int64_t position, std::int64_t n,
                  std::int64_t output, std::int64_t group, std::int64_t step) {
  const WgmmaTiling& t = one.tiling;
  const ConvSpec& spec = one.spec;
  const std::int64_t width = output_shape(spec).w, p = output / width, q = output % width;
  RC_ASSERT(position >= 0 && position < t.columns);
  for (std::int64_t row = 0; row < t.filter_rows; ++row) {
    const std::int64_t r = t.filter_rows == 1 ? step % spec.weight.r : row,
                       chunk = t.filter_rows == 1 ? step / spec.weight.r : step;
    for (std::int64_t s = 0; s < spec.weight.s; ++s) {
      for (std::int64_t slice = 0; slice < t.slices; ++slice) {
        const std::int64_t pixel =
            position + row * spec.dilation.h * WgmmaTiling::pitch(spec) + s * spec.dilation.w / spec.stride.w;
        const std::int64_t byte = WgmmaTiling::phase_of(spec, s) * t.phase_bytes(spec) +
                                  (pixel * t.slices + slice) * kPiece,
                           read = byte ^ (byte / 128 % t.slices * kPiece);
        const std::int64_t in_group = chunk * t.chunk_channels(spec) + slice * WgmmaTiling::slice_channels(spec);
        const Piece wanted =
            piece_of(spec, n, p * spec.stride.h - spec.padding.top + r * spec.dilation.h,
                     q * spec.stride.w - spec.padding.left + s * spec.dilation.w, group * spec.weight.c + in_group);
        RC_ASSERT(in_group < spec.weight.c || spec.groups == 1);
        RC_ASSERT(run.at(static_cast<std::size_t>(read / kPiece)) == wanted);
      }
    }
  }
}

void check_run(const TensorCandidate& one, const TensorMapShape& map, const Run& run, std::int64_t group,
               std::int64_t step) {
  const std::vector<Piece> pieces = filled_run(one, map, run, group, step);
  visit_outputs(one, run, [&](std::int64_t position, std::int64_t image, std::int64_t output) {
    check_output(one, pieces, position, image, output, group, step);
  });
}

RC_GTEST_PROP(TensorWalksProperty, EachTapReadsItsPixel, ()) {
  test::SpecLimits limits;
  limits.groups = 3, limits.taps = 5, limits.outputs = 40;
  const std::vector<TensorCandidate> some = test::some_that_walk(limits);
  if (some.empty()) return;
  const TensorCandidate& one = some[*rc::gen::inRange<std::size_t>(0, some.size())];
  const TensorMapShape map = map_of(one, walked_role(one));
  const std::int64_t tiles = one.tiling.tiles_of_images(one.spec);
  // Of a tile somewhere, and of the last one.
  for (const std::int64_t tile : {*rc::gen::inRange<std::int64_t>(0, tiles), tiles - 1}) {
    const std::int64_t group = *rc::gen::inRange<std::int64_t>(0, one.spec.groups),
                       step = *rc::gen::inRange<std::int64_t>(0, one.tiling.steps(one.spec));
    for (int run = 0; run < one.tiling.runs(); ++run) check_run(one, map, run_of(one, tile, run), group, step);
  }
}

// What the driver takes: cuTensorMapEncodeIm2col's rules.
RC_GTEST_PROP(TensorWalksProperty, AreOfMapsThatTheDriverTakes, ()) {
  for (const TensorCandidate& one : test::some_that_walk()) {
    const TensorMapShape map = map_of(one, walked_role(one));
    const TensorShape& x = one.spec.input;
    RC_ASSERT(map.rank == 4 && map.walk.has_value());
    RC_ASSERT((map.extents == std::array<std::int64_t, 4>{x.c, x.w, x.h, x.n}));
    const std::int64_t pixel = map.strides[1];
    RC_ASSERT((map.strides == std::array<std::int64_t, 4>{1, pixel, pixel * x.w, pixel * x.w * x.h}));
    RC_ASSERT(pixel * map.element_bytes % kPiece == 0 && pixel >= x.c);
    RC_ASSERT(pixel == x.c || one.tiling.transposes_pixels());
    RC_ASSERT(one.tiling.packed_pixel_bytes(one.spec) >=
              (one.tiling.transposes_pixels() ? pixel * x.w * x.h * x.n * map.element_bytes : 0));
    RC_ASSERT(map.box[0] * map.element_bytes == map.swizzle_bytes && map.box[1] > 0 && map.box[1] <= 1024);
    // What is transposed is rounded then.
    RC_ASSERT(map.rounds_to_tf32 == (one.spec.dtype == DataType::f32 && !one.tiling.transposes_pixels()));
    for (std::size_t i = 0; i < 2; ++i) {
      RC_ASSERT(std::min(map.walk->lower[i], map.walk->upper[i]) >= -128);
      RC_ASSERT(std::max(map.walk->lower[i], map.walk->upper[i]) <= 127);
      RC_ASSERT(map.walk->stride[i] >= 1 && map.walk->stride[i] <= 8);
    }
  }
}

RC_GTEST_PROP(TensorWalksProperty, LeaveStagesWhereSwizzlesCanStart, ()) {
  for (const TensorCandidate& one : test::some_tensor_candidates()) {
    const WgmmaTiling& t = one.tiling;
    if (!t.walks_pixels()) continue;
    RC_ASSERT(one.spec.input_layout == Layout::nhwc && t.slices > 1);
    RC_ASSERT(t.run_bytes(one.spec) % 1024 == 0 && t.stage_bytes(one.spec) % 1024 == 0);
    RC_ASSERT(t.phase_bytes(one.spec) >= t.run_pixels(one.spec) * t.slices * kPiece);
  }
}

// A thread that waits for stages and arrives nowhere could miss a phase: nobody would wait for it.
RC_GTEST_PROP(TensorWalksProperty, EveryThreadThatAsksArrives, ()) {
  for (const TensorCandidate& one : test::some_that_walk()) {
    const std::string text = generate(one.plan).text;
    const bool pixels_alone = text.find("if (threadIdx.x != 0) return;") != std::string::npos;
    RC_ASSERT(pixels_alone == one.tiling.resident);
    RC_ASSERT(pixels_alone != (text.find("if (lane != 0 || warp > 1) return;") != std::string::npos));
    const std::size_t loads = text.find("// The loading warpgroup."),
                      multiplies = text.find("// A multiplying warpgroup");
    RC_ASSERT(loads != std::string::npos && multiplies != std::string::npos);
    const std::string loop = text.substr(text.find("barrier_wait(empty + stage, parity ^ 1);", loads));
    const std::string arrival = "barrier_arrive_expecting(full + stage, ";
    RC_ASSERT((loop.find(arrival + "kWeightBytes);") != std::string::npos) == !one.tiling.resident);
    RC_ASSERT(loop.find(arrival + "kWalkedBytes);") != std::string::npos);
    RC_ASSERT(text.find(fmt::format("barrier_init(full + i, {});", one.tiling.resident ? 1 : 2)) != std::string::npos);
  }
}

TEST(TensorWalks, TakeNoChannelsOfAnotherGroup) {
  // 40 channels of a group are two and a half times 16: a third copy would bring eight of the next group.
  const auto walks = [](const char* text) {
    std::vector<TensorCandidate> all = test::tensor_candidates(parse_spec(text));
    std::erase_if(all, [](const TensorCandidate& one) { return !one.tiling.walks_pixels(); });
    return all;
  };
  const std::vector<TensorCandidate> grouped =
      walks("input=2,80,20,20 weight=64,40,3,3 groups=2 math=tf32 input_layout=nhwc output_layout=nhwc");
  ASSERT_FALSE(grouped.empty());
  for (const TensorCandidate& one : grouped) EXPECT_EQ(one.tiling.slices, 2);
  for (const TensorCandidate& one :
       walks("input=2,40,20,20 weight=64,40,3,3 math=tf32 input_layout=nhwc output_layout=nhwc"))
    if (one.tiling.slices == 8) return;
  FAIL() << "without groups there are zeros behind the last channel, and a chunk may have more";
}

TEST(TensorWalks, KeepToWhatAMapCanSay) {
  const auto walks = [](const char* text) {
    for (const TensorCandidate& one : test::tensor_candidates(parse_spec(text)))
      if (one.tiling.pixels == WgmmaTiling::Pixels::walked) return true;
    return false;
  };
  // Corners are from -128 to 127, offsets end at 255, strides at 8; pixels must be whole vectors of 16 bytes.
  EXPECT_TRUE(walks("input=2,32,300,30 weight=32,32,2,3 dilation=128,1 math=tf32 input_layout=nhwc"));
  EXPECT_FALSE(walks("input=2,32,300,30 weight=32,32,2,3 dilation=129,1 math=tf32 input_layout=nhwc"));
  EXPECT_TRUE(walks("input=2,32,90,90 weight=32,32,3,1 dilation=127,1 padding=127,0 math=tf32 input_layout=nhwc"));
  EXPECT_FALSE(walks("input=2,32,90,90 weight=32,32,3,1 dilation=128,1 padding=128,0 math=tf32 input_layout=nhwc"));
  EXPECT_TRUE(walks("input=2,32,90,90 weight=32,32,1,1 stride=8 math=tf32 input_layout=nhwc"));
  EXPECT_FALSE(walks("input=2,32,90,90 weight=32,32,1,1 stride=9 math=tf32 input_layout=nhwc"));
  EXPECT_TRUE(walks("input=2,32,20,20 weight=32,32,1,1 padding=127,0 math=tf32 input_layout=nhwc"));
  EXPECT_FALSE(walks("input=2,32,20,20 weight=32,32,1,1 padding=128,0 math=tf32 input_layout=nhwc"));
  EXPECT_FALSE(walks("input=2,33,20,20 weight=32,33,1,1 math=tf32 input_layout=nhwc"));
  EXPECT_FALSE(walks("input=2,32,20,20 weight=32,32,1,1 math=tf32"));
}

}  // namespace
}  // namespace jitconv::codegen
