// Pixels that TMA brings as operand rows (Pixels::im2col): every tap of every stored output meets the pixel
// of x that the convolution means, copies start where the hardware lets them and lie inside their runs. Restates
// templates/wgmma/copy_im2col.cu.in, producer_copied.cu.in, the order of an im2col tensor map, and how
// multiplications read swizzled rows.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

#include "codegen/arithmetic.h"
#include "codegen/source.h"
#include "codegen/transpose_input/tiling.h"
#include "codegen/wgmma/memory.h"
#include "fmt/format.h"
#include "unit/codegen/wgmma_runs.h"

namespace jitconv::codegen {
namespace {

using test::im2col_tensor;
using test::map_of;
using test::Run;
using test::run_of;
using test::visit_outputs;
using test::WgmmaCandidate;

/// 16 bytes of channels of a pixel of x, or zeros.
struct Piece {
  bool exists = false;
  std::int64_t n = 0, h = 0, w = 0, channel = 0;  ///< the first, of all groups'
  bool operator==(const Piece&) const = default;
};

Piece piece_of(const Problem& problem, std::int64_t n, std::int64_t h, std::int64_t w, std::int64_t channel) {
  const bool exists = n >= 0 && n < problem.n && h >= 0 && h < problem.rows.input && w >= 0 &&
                      w < problem.columns.input && channel < problem.input_channels();
  return exists ? Piece{true, n, h, w, channel} : Piece{};
}

/// A request to TMA.
struct Request {
  std::int64_t c, w, h, n, right, down;
};

/// What it brings, by places of 16 bytes from the destination.
std::vector<Piece> pixels_copied(const Problem& problem, const TensorMapShape& map, const Request& request) {
  const auto& [lower, upper, stride] = *map.im2col;
  const std::int64_t end_w = problem.columns.input + upper[0], end_h = problem.rows.input + upper[1];
  std::int64_t w = request.w, h = request.h, n = request.n;
  RC_ASSERT(w >= lower[0] && w < end_w && (w - lower[0]) % stride[0] == 0);
  RC_ASSERT(h >= lower[1] && h < end_h && (h - lower[1]) % stride[1] == 0);
  RC_ASSERT(n >= 0 && n < problem.n && request.c >= 0 && request.c < problem.input_channels());
  RC_ASSERT(request.right >= 0 && request.right < 256 && request.down >= 0 && request.down < 256);
  const std::int64_t bytes = map.element_bytes, row = map.box[0] * bytes;
  std::vector<Piece> pieces(static_cast<std::size_t>(map.box[1] * row / test::kRowBytes));
  for (std::int64_t pixel = 0; pixel < map.box[1]; ++pixel) {
    for (std::int64_t at = 0; at < row; at += test::kRowBytes) {
      const std::int64_t byte = pixel * row + at,
                         swizzled = byte ^ (byte / 128 % (row / test::kRowBytes) * test::kRowBytes);
      pieces.at(static_cast<std::size_t>(swizzled / test::kRowBytes)) =
          piece_of(problem, n, h + request.down, w + request.right, request.c + at / bytes);
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
std::vector<Piece> filled_run(const WgmmaCandidate& one, const TensorMapShape& map, Run run, std::int64_t group,
                              std::int64_t step) {
  const WgmmaTiling& t = one.tiling;
  const Problem& problem = one.problem;
  const WgmmaGeometry g = one.geometry();
  const std::int64_t row = g.run_row();
  if (run.first >= problem.rows.output * row) run.first = 0;
  if (run.image >= problem.n) run.image = 0;
  std::vector<Piece> pieces(static_cast<std::size_t>(g.pixels().run_bytes() / test::kRowBytes));
  std::int64_t bytes = 0;
  for (int phase = 0; phase < g.phases(); ++phase) {
    const std::int64_t r = t.pipeline.filter_rows == 1 ? step % problem.rows.taps : 0,
                       chunk = t.pipeline.filter_rows == 1 ? step / problem.rows.taps : step;
    const std::vector<Piece> brought = pixels_copied(
        problem, map,
        {group * problem.c + chunk * g.chunk_channels(), run.first % row * problem.columns.stride - problem.columns.pad,
         run.first / row * problem.rows.stride - problem.rows.pad, run.image, phase, r * problem.rows.dilation});
    const std::int64_t destination = phase * g.pixels().phase_bytes();
    RC_ASSERT(destination % 1024 == 0 &&
              static_cast<std::int64_t>(brought.size()) * test::kRowBytes <= g.pixels().phase_bytes());
    std::copy(brought.begin(), brought.end(), pieces.begin() + destination / test::kRowBytes);
    bytes += static_cast<std::int64_t>(brought.size()) * test::kRowBytes;
  }
  RC_ASSERT(bytes * t.runs() == g.pixels().im2col_bytes());
  return pieces;
}

/// What one tap of an output of a run reads is what the definition of a convolution says.
void check_output(const WgmmaCandidate& one, const std::vector<Piece>& run, std::int64_t position, std::int64_t n,
                  std::int64_t output, std::int64_t group, std::int64_t step) {
  const WgmmaTiling& t = one.tiling;
  const Problem& problem = one.problem;
  const WgmmaGeometry g = one.geometry();
  const std::int64_t width = problem.columns.output, p = output / width, q = output % width;
  RC_ASSERT(position >= 0 && position < t.tile.columns);
  for (std::int64_t row = 0; row < t.pipeline.filter_rows; ++row) {
    const std::int64_t r = t.pipeline.filter_rows == 1 ? step % problem.rows.taps : row,
                       chunk = t.pipeline.filter_rows == 1 ? step / problem.rows.taps : step;
    for (std::int64_t s = 0; s < problem.columns.taps; ++s) {
      for (std::int64_t slice = 0; slice < t.pipeline.slices; ++slice) {
        const std::int64_t pixel =
            position + row * problem.rows.dilation * g.pitch() + s * problem.columns.dilation / problem.columns.stride;
        const std::int64_t byte = g.phase_of(s) * g.pixels().phase_bytes() +
                                  (pixel * t.pipeline.slices + slice) * test::kRowBytes,
                           read = byte ^ (byte / 128 % t.pipeline.slices * test::kRowBytes);
        const std::int64_t in_group = chunk * g.chunk_channels() + slice * g.slice_channels();
        const Piece wanted =
            piece_of(problem, n, p * problem.rows.stride - problem.rows.pad + r * problem.rows.dilation,
                     q * problem.columns.stride - problem.columns.pad + s * problem.columns.dilation,
                     group * problem.c + in_group);
        RC_ASSERT(in_group < problem.c || problem.groups == 1);
        RC_ASSERT(run.at(static_cast<std::size_t>(read / test::kRowBytes)) == wanted);
      }
    }
  }
}

void check_run(const WgmmaCandidate& one, const TensorMapShape& map, const Run& run, std::int64_t group,
               std::int64_t step) {
  const std::vector<Piece> pieces = filled_run(one, map, run, group, step);
  visit_outputs(one, run, [&](std::int64_t position, std::int64_t image, std::int64_t output) {
    check_output(one, pieces, position, image, output, group, step);
  });
}

RC_GTEST_PROP(WgmmaIm2colProperty, EachTapReadsItsPixel, ()) {
  test::SpecLimits limits;
  limits.groups = 3, limits.taps = 5, limits.outputs = 40;
  const std::vector<WgmmaCandidate> some = test::some_with_im2col(limits);
  if (some.empty()) return;
  const WgmmaCandidate& one = some[*rc::gen::inRange<std::size_t>(0, some.size())];
  const TensorMapShape map = map_of(one, im2col_tensor(one));
  const std::int64_t tiles = one.geometry().tiles_of_images();
  // Any tile, and the last one.
  for (const std::int64_t tile : {*rc::gen::inRange<std::int64_t>(0, tiles), tiles - 1}) {
    const std::int64_t group = *rc::gen::inRange<std::int64_t>(0, one.problem.groups),
                       step = *rc::gen::inRange<std::int64_t>(0, one.geometry().steps());
    for (int run = 0; run < one.tiling.runs(); ++run) check_run(one, map, run_of(one, tile, run), group, step);
  }
}

// What the driver takes: cuTensorMapEncodeIm2col's rules.
RC_GTEST_PROP(WgmmaIm2colProperty, AreOfMapsThatTheDriverTakes, ()) {
  for (const WgmmaCandidate& one : test::some_with_im2col()) {
    const TensorMapShape map = map_of(one, im2col_tensor(one));
    const Problem& problem = one.problem;
    const std::int64_t n = problem.n, c = problem.input_channels(), h = problem.rows.input, w = problem.columns.input;
    RC_ASSERT(map.rank == 4 && map.im2col.has_value());
    RC_ASSERT((map.extents == std::array<std::int64_t, 4>{c, w, h, n}));
    const std::int64_t pixel = map.strides[1];
    RC_ASSERT((map.strides == std::array<std::int64_t, 4>{1, pixel, pixel * w, pixel * w * h}));
    RC_ASSERT(pixel * map.element_bytes % test::kRowBytes == 0 && pixel >= c);
    const bool made = one.tiling.transposes_input() || one.tiling.gathers_patches();  // by a kernel before
    RC_ASSERT(pixel == c || made);
    RC_ASSERT(is_scratch(problem.input.tensor) == made);
    if (one.tiling.transposes_input())
      RC_ASSERT(TransposeInputTiling::transposed_bytes(problem) >= pixel * w * h * n * map.element_bytes);
    RC_ASSERT(map.box[0] * map.element_bytes == map.swizzle_bytes && map.box[1] > 0 && map.box[1] <= 1024);
    // What is made is rounded then.
    RC_ASSERT(map.rounds_to_tf32 == (one.problem.input.type == DataType::f32 && !made));
    for (std::size_t i = 0; i < 2; ++i) {
      RC_ASSERT(std::min(map.im2col->lower[i], map.im2col->upper[i]) >= -128);
      RC_ASSERT(std::max(map.im2col->lower[i], map.im2col->upper[i]) <= 127);
      RC_ASSERT(map.im2col->stride[i] >= 1 && map.im2col->stride[i] <= 8);
    }
  }
}

RC_GTEST_PROP(WgmmaIm2colProperty, LeaveStagesWhereSwizzlesCanStart, ()) {
  for (const WgmmaCandidate& one : test::some_wgmma_candidates()) {
    const WgmmaTiling& t = one.tiling;
    const WgmmaGeometry g = one.geometry();
    if (!t.uses_im2col()) continue;
    RC_ASSERT(one.problem.input.layout() == Layout::nhwc && t.pipeline.slices > 1);
    RC_ASSERT(g.pixels().run_bytes() % 1024 == 0 && WgmmaMemory(g).stage_bytes() % 1024 == 0);
    RC_ASSERT(g.pixels().phase_bytes() >= g.run_pixels() * t.pipeline.slices * test::kRowBytes);
  }
}

// A thread that waits for stages and arrives nowhere could miss a phase: nobody would wait for it.
RC_GTEST_PROP(WgmmaIm2colProperty, EveryThreadThatAsksArrives, ()) {
  for (const WgmmaCandidate& one : test::some_with_im2col()) {
    const std::string text = generate(one.plan).text;
    const bool pixels_alone = text.find("if (threadIdx.x != 0) return;") != std::string::npos;
    RC_ASSERT(pixels_alone == one.tiling.keeps_weights());
    RC_ASSERT(pixels_alone != (text.find("if (lane != 0 || warp > 1) return;") != std::string::npos));
    const std::size_t loads = text.find("// The producer warpgroup."),
                      multiplies = text.find("// A consumer warpgroup");
    RC_ASSERT(loads != std::string::npos && multiplies != std::string::npos);
    const std::string loop = text.substr(text.find("barrier_wait(empty + stage, parity ^ 1);", loads));
    const std::string arrival = "barrier_arrive_expecting(full + stage, ";
    RC_ASSERT((loop.find(arrival + "kWeightBytes);") != std::string::npos) == !one.tiling.keeps_weights());
    RC_ASSERT(loop.find(arrival + "kIm2colBytes);") != std::string::npos);
    RC_ASSERT(text.find(fmt::format("constexpr int kFullArrivals = {};", one.tiling.keeps_weights() ? 1 : 2)) !=
              std::string::npos);
    RC_ASSERT(text.find("barrier_init(full + i, kFullArrivals);") != std::string::npos);
  }
}

TEST(WgmmaIm2col, TakeNoChannelsOfAnotherGroup) {
  // 40 channels of a group are two and a half times 16: a third copy would bring eight of the next group.
  const auto uses_im2col = [](const char* text) {
    std::vector<WgmmaCandidate> all = test::wgmma_candidates(parse_spec(text));
    std::erase_if(all, [](const WgmmaCandidate& one) { return !one.tiling.uses_im2col(); });
    return all;
  };
  const std::vector<WgmmaCandidate> grouped =
      uses_im2col("input=2,80,20,20 weight=128,40,3,3 groups=2 math=tf32 input_layout=nhwc output_layout=nhwc");
  ASSERT_FALSE(grouped.empty());
  for (const WgmmaCandidate& one : grouped) EXPECT_EQ(one.tiling.pipeline.slices, 2);
  for (const WgmmaCandidate& one :
       uses_im2col("input=2,40,20,20 weight=64,40,3,3 math=tf32 input_layout=nhwc output_layout=nhwc"))
    if (one.tiling.pipeline.slices == 8) return;
  FAIL() << "without groups there are zeros behind the last channel, and a chunk may have more";
}

TEST(WgmmaIm2col, KeepToWhatAMapCanSay) {
  const auto uses_im2col = [](const char* text) {
    for (const WgmmaCandidate& one : test::wgmma_candidates(parse_spec(text)))
      if (one.tiling.uses_im2col() && !one.tiling.transposes_input()) return true;
    return false;
  };
  // Corners are from -128 to 127, offsets end at 255, strides at 8; pixels must be whole vectors of 16 bytes.
  EXPECT_TRUE(uses_im2col("input=2,32,300,30 weight=32,32,2,3 dilation=128,1 math=tf32 input_layout=nhwc"));
  EXPECT_FALSE(uses_im2col("input=2,32,300,30 weight=32,32,2,3 dilation=129,1 math=tf32 input_layout=nhwc"));
  EXPECT_TRUE(
      uses_im2col("input=2,32,90,90 weight=32,32,3,1 dilation=127,1 padding=127,0 math=tf32 input_layout=nhwc"));
  EXPECT_FALSE(
      uses_im2col("input=2,32,90,90 weight=32,32,3,1 dilation=128,1 padding=128,0 math=tf32 input_layout=nhwc"));
  EXPECT_TRUE(uses_im2col("input=2,32,90,90 weight=32,32,1,1 stride=8 math=tf32 input_layout=nhwc"));
  EXPECT_FALSE(uses_im2col("input=2,32,90,90 weight=32,32,1,1 stride=9 math=tf32 input_layout=nhwc"));
  EXPECT_TRUE(uses_im2col("input=2,32,20,20 weight=32,32,1,1 padding=127,0 math=tf32 input_layout=nhwc"));
  EXPECT_FALSE(uses_im2col("input=2,32,20,20 weight=32,32,1,1 padding=128,0 math=tf32 input_layout=nhwc"));
  EXPECT_FALSE(uses_im2col("input=2,33,20,20 weight=32,33,1,1 math=tf32 input_layout=nhwc"));
  EXPECT_FALSE(uses_im2col("input=2,32,20,20 weight=32,32,1,1 math=tf32"));
}

}  // namespace
}  // namespace jitconv::codegen
