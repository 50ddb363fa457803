// Pixels that a kernel before the convolution packs (Pixels::packed): every tap of every stored output meets the pixel
// of x that the convolution means, and copies stay inside what was packed and inside their runs. Restates
// templates/tensor_pack_pixels.cu.in, tensor_copy_packed.cu.in and tensor_tiles_packed.cu.in.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

#include "codegen/arithmetic.h"
#include "unit/codegen/tensor_runs.h"

namespace jitconv::codegen {
namespace {

using test::Run;
using test::run_of;
using test::some_that_pack_pixels;
using test::TensorCandidate;
using test::visit_outputs;

constexpr std::int64_t kRow = 16;  // bytes of a slice of a pixel
constexpr int kAskingThreads = 4;

/// A slice of a pixel of x, or zeros.
struct Pixel {
  bool exists = false;
  std::int64_t n = 0, slice = 0, h = 0, w = 0;  ///< of all groups' slices, those beyond the last channel included
  bool operator==(const Pixel&) const = default;
};

Pixel pixel_of(const ConvSpec& spec, std::int64_t n, std::int64_t slice, std::int64_t h, std::int64_t w) {
  if (h < 0 || h >= spec.input.h || w < 0 || w >= spec.input.w) return {};
  return {true, n, slice, h, w};
}

/// What the thread for a place of the packed pixels makes.
Pixel packed_at(const TensorCandidate& one, std::int64_t place) {
  const ConvSpec& spec = one.spec;
  const std::int64_t pitch = TensorTiling::pitch(spec), height = TensorTiling::packed_image(spec) / pitch,
                     phases = TensorTiling::phases(spec), all_phases = TensorTiling::row_phases(spec) * phases;
  const std::int64_t column = place % pitch, line = place / pitch;
  const std::int64_t row = line % height, grid = line / height;
  const std::int64_t n = grid % spec.input.n, residues = grid / spec.input.n % all_phases,
                     slice = grid / spec.input.n / all_phases;
  if (slice >= spec.groups * one.tiling.packed_slices(spec)) return {};
  return pixel_of(spec, n, slice, row * spec.stride.h + residues / phases - spec.padding.top,
                  column * spec.stride.w + residues % phases - spec.padding.left);
}

/// A bulk copy of packed pixels to a slice of a run.
struct Copy {
  std::int64_t source, destination, pixels;
};

/// The copies that a thread asks for, for a run and a step.
std::vector<Copy> copies_of(const TensorCandidate& one, std::int64_t first, std::int64_t image, std::int64_t group,
                            std::int64_t step, int warp) {
  const TensorTiling& t = one.tiling;
  const ConvSpec& spec = one.spec;
  const std::int64_t phases = TensorTiling::phases(spec), all_phases = TensorTiling::row_phases(spec) * phases,
                     pitch = TensorTiling::pitch(spec), q = output_shape(spec).w, run = t.run_pixels(spec);
  const std::int64_t row = step % spec.filter.r * spec.dilation.h, first_slice = step / spec.filter.r * t.slices;
  const std::int64_t pixel = (t.images > 0 ? 0 : first / q * pitch + first % q) + row / spec.stride.h * pitch;
  std::vector<Copy> copies;
  for (std::int64_t phase = 0; phase < phases; ++phase) {
    for (int i = 0; i < t.slices; i += kAskingThreads) {
      const std::int64_t residues = row % spec.stride.h * phases + phase,
                         slice = group * t.packed_slices(spec) + first_slice + warp + i;
      const std::int64_t source =
          ((slice * all_phases + residues) * spec.input.n + image) * TensorTiling::packed_image(spec) + pixel;
      const std::int64_t destination = (phase * t.slices + warp + i) * run, positions = t.image_positions(spec);
      if (t.images == 0) copies.push_back({source, destination, run});
      for (int k = 0; k < t.images; ++k)
        copies.push_back({source + k * TensorTiling::packed_image(spec), destination + k * positions,
                          k + 1 < t.images ? positions : run - k * positions});
    }
  }
  return copies;
}

/// Places of packed pixels by their places in a run; -1 is none.
std::vector<std::int64_t> filled_run(const TensorCandidate& one, const Run& run, std::int64_t group,
                                     std::int64_t step) {
  const TensorTiling& t = one.tiling;
  std::vector<std::int64_t> places(static_cast<std::size_t>(t.run_bytes(one.spec) / kRow), -1);
  for (int warp = 0; warp < kAskingThreads; ++warp) {
    std::int64_t pixels = 0;
    for (const Copy& copy : copies_of(one, run.first, run.image, group, step, warp)) {
      RC_ASSERT(copy.pixels > 0 && copy.source >= 0 && copy.source + copy.pixels <= t.packed_pixels(one.spec));
      // Inside one slice's pixels of the run.
      const std::int64_t in_slice = copy.destination % t.run_pixels(one.spec);
      RC_ASSERT(in_slice + copy.pixels <= t.run_pixels(one.spec));
      RC_ASSERT(copy.destination + copy.pixels <= static_cast<std::int64_t>(places.size()));
      for (std::int64_t i = 0; i < copy.pixels; ++i) {
        std::int64_t& place = places[static_cast<std::size_t>(copy.destination + i)];
        RC_ASSERT(place == -1);
        place = copy.source + i;
      }
      pixels += copy.pixels;
    }
    // What its barrier expects of each thread.
    RC_ASSERT(pixels * kRow == t.run_bytes(one.spec) / kAskingThreads);
  }
  return places;
}

/// What one tap of an output of a run reads is what the definition of a convolution says.
void check_output(const TensorCandidate& one, const std::vector<std::int64_t>& places, std::int64_t position,
                  std::int64_t n, std::int64_t output, std::int64_t group, std::int64_t step) {
  const TensorTiling& t = one.tiling;
  const ConvSpec& spec = one.spec;
  const std::int64_t width = output_shape(spec).w, p = output / width, q = output % width, r = step % spec.filter.r;
  RC_ASSERT(position >= 0 && position < t.columns);
  for (std::int64_t s = 0; s < spec.filter.s; ++s) {
    for (std::int64_t slice = 0; slice < t.slices; ++slice) {
      const std::int64_t row = (TensorTiling::phase_of(spec, s) * t.slices + slice) * t.slice_pitch(spec) +
                               s * spec.dilation.w / spec.stride.w;
      const std::int64_t place = places.at(static_cast<std::size_t>(row + position));
      const Pixel wanted = pixel_of(spec, n, group * t.packed_slices(spec) + step / spec.filter.r * t.slices + slice,
                                    p * spec.stride.h - spec.padding.top + r * spec.dilation.h,
                                    q * spec.stride.w - spec.padding.left + s * spec.dilation.w);
      RC_ASSERT(packed_at(one, place) == wanted);
    }
  }
}

void check_run(const TensorCandidate& one, const Run& run, std::int64_t group, std::int64_t step) {
  const std::vector<std::int64_t> places = filled_run(one, run, group, step);
  visit_outputs(one, run, [&](std::int64_t position, std::int64_t image, std::int64_t output) {
    check_output(one, places, position, image, output, group, step);
  });
}

RC_GTEST_PROP(TensorPackedPixelsProperty, EachTapReadsItsPixel, ()) {
  test::SpecLimits limits;
  limits.groups = 3, limits.taps = 5, limits.outputs = 40;
  const std::vector<TensorCandidate> some = some_that_pack_pixels(limits);
  if (some.empty()) return;
  const TensorCandidate& one = some[*rc::gen::inRange<std::size_t>(0, some.size())];
  const std::int64_t tiles = one.tiling.tiles_of_images(one.spec);
  // Of a tile somewhere, and of the last one.
  for (const std::int64_t tile : {*rc::gen::inRange<std::int64_t>(0, tiles), tiles - 1}) {
    const std::int64_t group = *rc::gen::inRange<std::int64_t>(0, one.spec.groups),
                       step = *rc::gen::inRange<std::int64_t>(0, one.tiling.steps(one.spec));
    for (int run = 0; run < one.tiling.runs(); ++run) check_run(one, run_of(one, tile, run), group, step);
  }
}

// Runs of the last image's last slice reach furthest, into what lies behind it.
RC_GTEST_PROP(TensorPackedPixelsProperty, NoCopyReadsBehindThem, ()) {
  for (const TensorCandidate& one : some_that_pack_pixels()) {
    const TensorTiling& t = one.tiling;
    const ConvSpec& spec = one.spec;
    const std::int64_t tiles = t.tiles_of_images(spec), steps = t.steps(spec);
    for (std::int64_t tile = std::max<std::int64_t>(0, tiles - t.tiles_of_plane(spec)); tile < tiles; ++tile)
      for (int run = 0; run < t.runs(); ++run)
        for (std::int64_t step = steps - spec.filter.r; step < steps; ++step) {
          const Run at = run_of(one, tile, run);
          for (const Copy& copy : copies_of(one, at.first, at.image, spec.groups - 1, step, kAskingThreads - 1))
            RC_ASSERT(copy.source + copy.pixels <= t.packed_pixels(spec));
        }
  }
}

// Every pixel that a tap may need is packed: all residues of rows and columns, all slices of all groups.
RC_GTEST_PROP(TensorPackedPixelsProperty, HoldAllOfTheirPartOfTheWorkspace, ()) {
  for (const TensorCandidate& one : some_that_pack_pixels()) {
    const TensorTiling& t = one.tiling;
    const ConvSpec& spec = one.spec;
    RC_ASSERT(TensorTiling::row_phases(spec) <= spec.stride.h);
    for (std::int64_t r = 0; r < spec.filter.r; ++r) {
      RC_ASSERT(r * spec.dilation.h % spec.stride.h < TensorTiling::row_phases(spec));
      const std::int64_t rows = output_shape(spec).h + r * spec.dilation.h / spec.stride.h;
      RC_ASSERT(rows * TensorTiling::pitch(spec) <= TensorTiling::packed_image(spec));
    }
    RC_ASSERT(TensorTiling::packed_image(spec) % TensorTiling::pitch(spec) == 0);
    const std::int64_t grids = spec.groups * t.packed_slices(spec) * TensorTiling::row_phases(spec) *
                               TensorTiling::phases(spec) * spec.input.n;
    RC_ASSERT(t.packed_tail(spec) >= 0);
    RC_ASSERT(t.packed_pixels(spec) == grids * TensorTiling::packed_image(spec) + t.packed_tail(spec));
    RC_ASSERT(t.packed_pixels(spec) <= INT32_MAX);
    RC_ASSERT(t.packed_pixel_bytes(spec) >= t.packed_pixels(spec) * kRow && t.packed_pixel_bytes(spec) % 256 == 0);
    RC_ASSERT(one.plan.workspace.packed_pixels == t.packed_pixel_bytes(spec));
    // All that lies behind the last slice is zero.
    RC_ASSERT(packed_at(one, t.packed_pixels(spec) - 1) == Pixel{} || t.packed_tail(spec) == 0);
  }
}

RC_GTEST_PROP(TensorPackedPixelsProperty, AreOfStepsThatFourThreadsShare, ()) {
  for (const TensorCandidate& one : test::some_tensor_candidates()) {
    const TensorTiling& t = one.tiling;
    if (!t.packs_pixels()) {
      RC_ASSERT(t.transposes_pixels() || (t.packed_pixels(one.spec) == 0 && one.plan.workspace.packed_pixels == 0));
      continue;
    }
    RC_ASSERT(one.spec.input_layout == Layout::nchw && t.filter_rows == 1);
    RC_ASSERT(t.slices % kAskingThreads == 0 && t.run_bytes(one.spec) % kAskingThreads == 0);
    RC_ASSERT(t.slice_pitch(one.spec) == t.run_pixels(one.spec));
  }
}

}  // namespace
}  // namespace jitconv::codegen
