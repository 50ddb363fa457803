// Weights that come as they lie in w (Weights::unpacked): which weight meets which pixel, that boxes bring all of w
// once, and where they lie. Restates templates/wgmma/unpacked_weights.cu.in, how instructions read swizzled rows, and
// what weight_holes() asks for.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <regex>
#include <set>
#include <sstream>
#include <vector>

#include "codegen/arithmetic.h"
#include "codegen/source.h"
#include "codegen/wgmma/limits.h"
#include "codegen/wgmma/memory.h"
#include "codegen/wgmma/registers.h"
#include "unit/codegen/wgmma_candidates.h"

namespace jitconv::codegen {
namespace {

using test::map_of;
using test::some_with_unpacked_weights;
using test::WgmmaCandidate;

constexpr std::int64_t kPieceBytes = 16, kSwizzledRow = 128, kBanks = 32;
constexpr int kWarpsOfConsumer = 4, kRowsOfWarp = 16;

/// An element of w: an output channel, and a place in its row of channels and taps. Or a zero outside of w.
struct Weight {
  std::int64_t k = -1, place = -1;
  bool operator==(const Weight&) const = default;
};

/// Where a step's box starts: its first place in rows of w, and its first row.
std::array<std::int64_t, 2> box_first(const WgmmaCandidate& one, std::int64_t tile, std::int64_t step) {
  const WgmmaTiling& t = one.tiling;
  const WgmmaGeometry g = one.geometry();
  const std::int64_t tiles_k = g.tiles_k(), chunk = t.pipeline.filter_rows == 1 ? step / one.problem.rows.taps : step;
  return {chunk * (g.chunk_channels() * g.taps()), tile / tiles_k * (one.problem.k) + tile % tiles_k * t.tile.channels};
}

/// What lies in shared memory, element by element, when a step's box has come.
std::vector<Weight> words_of(const WgmmaCandidate& one, const TensorMapShape& map, std::int64_t tile,
                             std::int64_t step) {
  const auto [place, row] = box_first(one, tile, step);
  std::vector<Weight> words(static_cast<std::size_t>(map.box[0]) * static_cast<std::size_t>(map.box[1]));
  for (std::int64_t i = 0; i < map.box[1]; ++i) {
    for (std::int64_t j = 0; j < map.box[0]; ++j) {
      if (row + i >= map.extents[1] || place + j >= map.extents[0]) continue;
      std::int64_t byte = (i * map.box[0] + j) * map.element_bytes;
      if (map.swizzle_bytes != 0) byte = (byte / kPieceBytes ^ i % 8) * kPieceBytes + byte % kPieceBytes;
      words.at(static_cast<std::size_t>(byte / map.element_bytes)) = {row + i, place + j};
    }
  }
  return words;
}

/// Bytes of one load of a lane: its address in the box, and what follows.
std::int64_t vector_of(const WgmmaCandidate& one) {
  return one.geometry().lane_channels() * one.geometry().taps() % 4 == 0 ? 4 : 2;
}
std::int64_t load_address(const WgmmaCandidate& one, std::int64_t row, int lane, std::int64_t i) {
  const std::int64_t channels = one.geometry().lane_channels(), taps = one.geometry().taps();
  const std::int64_t of_row = row * one.geometry().chunk_channels() * taps * 4;
  return of_row + lane % 4 * (channels * taps * 4) + i * 4;
}

/// a[][] of a lane whose first row of the box is `row`.
std::vector<std::array<Weight, 4>> registers_of(const WgmmaCandidate& one, const std::vector<Weight>& words,
                                                std::int64_t row, int lane) {
  const std::int64_t channels = one.geometry().lane_channels(), taps = one.geometry().taps();
  std::vector<std::array<Weight, 4>> a(static_cast<std::size_t>(one.geometry().units() / 2));
  for (std::int64_t half = 0; half < 2; ++half) {
    std::vector<Weight> value;
    for (std::int64_t i = 0; i < channels * taps; i += vector_of(one)) {
      const std::int64_t address = load_address(one, row + half * 8, lane, i);
      RC_ASSERT(address % (4 * vector_of(one)) == 0);
      for (std::int64_t e = 0; e < vector_of(one); ++e)
        value.push_back(words.at(static_cast<std::size_t>(address / 4 + e)));
    }
    for (std::int64_t i = 0; i < channels * taps; ++i) {
      const std::int64_t channel = i / taps, tap = i % taps;
      a.at(static_cast<std::size_t>(tap * (channels / 2) + channel / 2))
          .at(static_cast<std::size_t>(half + channel % 2 * 2)) = value.at(static_cast<std::size_t>(i));
    }
  }
  return a;
}

/// What an instruction takes of a swizzled row: 32 bytes, `pieces` of 16 bytes behind its start.
Weight of_swizzled(const std::vector<Weight>& words, int element_bytes, std::int64_t row, std::int64_t pieces,
                   std::int64_t column) {
  const std::int64_t elements = kPieceBytes / element_bytes, piece = (pieces + column / elements) ^ (row % 8);
  return words.at(
      static_cast<std::size_t>((row * kSwizzledRow + piece * kPieceBytes) / element_bytes + column % elements));
}

/// A multiplication of the text: which registers, or what is added to the weights' operand; the tap and the first slice
/// of its pixels.
struct Multiplication {
  std::int64_t weights, r, s, slice;
};

std::vector<Multiplication> multiplications_of(const WgmmaCandidate& one) {
  static const std::regex line_of(
      R"(multiply\(sum, a\[(\d+)\], pixels \+ (\d+), .*\);  // (?:r(\d+))?s(\d+), (\d+) of (\d+))");
  static const std::regex line_of_rows(
      R"(multiply\(sum, weights \+ (\d+), pixels \+ (\d+), .*\);  // c(\d+)\.\.(\d+))");
  const std::string text = test::convolution_text(one).text;
  const std::size_t begin = text.find("// begin taps\n"), end = text.find("// end taps\n");
  RC_ASSERT(begin != std::string::npos && end != std::string::npos);
  std::istringstream lines(text.substr(begin, end - begin));
  std::vector<Multiplication> found;
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (std::regex_search(line, match, line_of_rows)) {
      const std::int64_t channels = one.geometry().slice_channels(), slice = std::stoll(match[3]) / channels;
      RC_ASSERT(std::stoll(match[4]) == (slice + 2) * channels - 1);
      RC_ASSERT(std::stoll(match[2]) == slice * (one.tiling.multiplies_planes() ? 64
                                                 : one.tiling.uses_im2col()     ? 1
                                                                            : one.geometry().pixels().slice_pitch()));
      found.push_back({std::stoll(match[1]), 0, 0, slice});
      continue;
    }
    if (!std::regex_search(line, match, line_of)) continue;
    const std::int64_t r = match[3].matched ? std::stoll(match[3]) : 0, s = std::stoll(match[4]);
    const std::int64_t slice = 2 * (std::stoll(match[5]) - 1);
    // Its pixels are those of the tap that the line names.
    const std::int64_t place = (one.geometry().phase_of(s) * one.tiling.pipeline.slices + slice);
    RC_ASSERT(std::stoll(match[2]) == place * one.geometry().pixels().slice_pitch() +
                                          r * one.problem.rows.dilation * one.geometry().pitch() +
                                          s * one.problem.columns.dilation / one.problem.columns.stride);
    found.push_back({std::stoll(match[1]), r, s, slice});
  }
  return found;
}

RC_GTEST_PROP(WgmmaUnpackedWeightsProperty, ChannelsAreAPermutationOfTheirChunk, ()) {
  for (const WgmmaCandidate& one : test::some_wgmma_candidates()) {
    const std::int64_t chunk = one.geometry().chunk_channels();
    std::set<std::int64_t> channels;
    for (std::int64_t place = 0; place < chunk; ++place) {
      const std::int64_t channel = one.geometry().channel_at(place);
      RC_ASSERT(channel >= 0 && channel < chunk);
      channels.insert(channel);
      if (!one.geometry().multiplies_registers()) RC_ASSERT(channel == place);
      // The next chunk has the same channels of that chunk.
      RC_ASSERT(one.geometry().channel_at(place + chunk) == channel + chunk);
    }
    RC_ASSERT(static_cast<std::int64_t>(channels.size()) == chunk);
  }
}

// Registers 0 and 1 of a multiplication are a lane's rows lane / 4 and lane / 4 + 8 of column lane % 4, registers 2 and
// 3 the same of column lane % 4 + 4; its pixels are eight places of two slices.
RC_GTEST_PROP(WgmmaUnpackedWeightsProperty, MeetThePixelsOfTheirChannelsAndTaps, ()) {
  for (const WgmmaCandidate& one : some_with_unpacked_weights()) {
    const WgmmaTiling& t = one.tiling;
    const Problem& problem = one.problem;
    const WgmmaGeometry g = one.geometry();
    const std::int64_t group_k = problem.k, chunk = g.chunk_channels(), taps = g.taps();
    const std::int64_t tiles = problem.groups * g.tiles_k();
    const TensorMapShape map = map_of(one, Tensor::w);
    const std::vector<Multiplication> multiplications = multiplications_of(one);
    RC_ASSERT(static_cast<std::int64_t>(multiplications.size()) == g.units() / 2);
    const std::int64_t tile = *rc::gen::inRange<std::int64_t>(0, tiles);
    const std::int64_t step = *rc::gen::inRange<std::int64_t>(0, g.steps());
    const std::vector<Weight> words = words_of(one, map, tile, step);
    std::vector<std::pair<std::int64_t, std::int64_t>> multiplied;  // weights of the tile
    const auto multiply = [&](const Multiplication& multiplication, std::int64_t k_of_tile, std::int64_t column,
                              const Weight& weight) {
      const std::int64_t k_of_group = tile % g.tiles_k() * t.tile.channels + k_of_tile;
      if (k_of_group >= group_k) return;  // is not stored
      const std::int64_t place = multiplication.slice * g.slice_channels() + column;
      const std::int64_t channel = step * chunk + g.channel_at(place);
      if (channel >= problem.c) {
        RC_ASSERT(weight == Weight{});
        return;
      }
      RC_ASSERT(weight.k == tile / g.tiles_k() * group_k + k_of_group);
      RC_ASSERT(weight.place == channel * taps + multiplication.r * problem.columns.taps + multiplication.s);
      multiplied.emplace_back(weight.k, weight.place);
    };
    for (const Multiplication& multiplication : multiplications) {
      if (!g.swizzles_weights()) break;
      for (std::int64_t k_of_tile = 0; k_of_tile < t.tile.channels; ++k_of_tile)
        for (std::int64_t column = 0; column < 32 / map.element_bytes; ++column)
          multiply(multiplication, k_of_tile, column,
                   of_swizzled(words, map.element_bytes, k_of_tile, multiplication.weights, column));
    }
    for (int consumer = 0; g.multiplies_registers() && consumer < t.tile.channels / 64; ++consumer) {
      for (int thread = 0; thread < kWarpsOfConsumer * kWarpSize; ++thread) {
        const int warp = thread / kWarpSize, lane = thread % kWarpSize;
        const std::int64_t row = consumer * 64 + warp * kRowsOfWarp + lane / 4;
        const std::vector<std::array<Weight, 4>> a = registers_of(one, words, row, lane);
        for (const Multiplication& multiplication : multiplications)
          for (int i = 0; i < 4; ++i)
            multiply(multiplication, row + i % 2 * 8, lane % 4 + i / 2 * 4,
                     a.at(static_cast<std::size_t>(multiplication.weights)).at(static_cast<std::size_t>(i)));
      }
    }
    const std::int64_t rows = std::min<std::int64_t>(t.tile.channels, group_k - tile % g.tiles_k() * t.tile.channels);
    const std::int64_t channels = std::min(chunk, problem.c - step * chunk);
    RC_ASSERT(static_cast<std::int64_t>(multiplied.size()) == rows * channels * taps);
    std::ranges::sort(multiplied);
    RC_ASSERT(std::ranges::adjacent_find(multiplied) == multiplied.end());
  }
}

RC_GTEST_PROP(WgmmaUnpackedWeightsProperty, BoxesBringEachOnce, ()) {
  test::SpecLimits limits;
  limits.channels_per_group = 300, limits.groups = 3;
  const std::vector<WgmmaCandidate> some = some_with_unpacked_weights(limits);
  if (some.empty()) return;
  const WgmmaCandidate& one = some[*rc::gen::inRange<std::size_t>(0, some.size())];
  const Problem& problem = one.problem;
  const WgmmaGeometry g = one.geometry();
  const TensorMapShape map = map_of(one, Tensor::w);
  const std::int64_t row = problem.c * problem.taps(), group_k = problem.k;
  // As w lies in memory.
  RC_ASSERT(map.rank == 2 && map.element_bytes == element_bytes(problem.input.type));
  RC_ASSERT(map.extents[0] == row && map.extents[1] == problem.output_channels() && map.strides[0] == 1 &&
            map.strides[1] == row);
  std::vector<int> counts(static_cast<std::size_t>(problem.output_channels() * row), 0);
  for (std::int64_t tile = 0; tile < problem.groups * g.tiles_k(); ++tile)
    for (std::int64_t step = 0; step < g.steps(); ++step)
      for (const Weight& weight : words_of(one, map, tile, step))
        // Rows behind the group's last are multiplied and not stored.
        if (weight.k >= 0 && weight.k / group_k == tile / g.tiles_k())
          ++counts.at(static_cast<std::size_t>(weight.k * row + weight.place));
  RC_ASSERT(std::all_of(counts.begin(), counts.end(), [](int count) { return count == 1; }));
}

/// Times that shared memory is accessed for one load of a warp: lanes whose words together are 128 bytes come at once.
std::int64_t wavefronts(const WgmmaCandidate& one, std::int64_t half, std::int64_t i) {
  const int lanes = static_cast<int>(kBanks / vector_of(one));
  std::int64_t all = 0;
  for (int first = 0; first < kWarpSize; first += lanes) {
    std::array<std::set<std::int64_t>, kBanks> words;
    for (int lane = first; lane < first + lanes; ++lane)
      for (std::int64_t e = 0; e < vector_of(one); ++e) {
        const std::int64_t word = load_address(one, lane / 4 + half * 8, lane, i) / 4 + e;
        words.at(static_cast<std::size_t>(word % kBanks)).insert(word);
      }
    std::size_t most = 0;
    for (const auto& of_bank : words) most = std::max(most, of_bank.size());
    all += static_cast<std::int64_t>(most);
  }
  return all;
}

RC_GTEST_PROP(WgmmaUnpackedWeightsProperty, LanesHaveNoBankConflicts, ()) {
  for (const WgmmaCandidate& one : some_with_unpacked_weights()) {
    if (!one.geometry().multiplies_registers()) continue;
    const std::int64_t loads = one.geometry().lane_channels() * one.geometry().taps();
    for (std::int64_t half = 0; half < 2; ++half)
      for (std::int64_t i = 0; i < loads; i += vector_of(one)) RC_ASSERT(wavefronts(one, half, i) == vector_of(one));
  }
}

RC_GTEST_PROP(WgmmaUnpackedWeightsProperty, LieBehindTheirStepsPixels, ()) {
  for (const WgmmaCandidate& one : some_with_unpacked_weights()) {
    const WgmmaTiling& t = one.tiling;
    const Problem& problem = one.problem;
    const WgmmaGeometry g = one.geometry();
    const WgmmaMemory memory(g);
    const TensorMapShape map = map_of(one, Tensor::w);
    const std::int64_t bytes = std::int64_t{map.box[0]} * map.box[1] * map.element_bytes;
    RC_ASSERT(map.box[0] == g.chunk_channels() * g.taps() && map.box[1] == t.tile.channels);
    RC_ASSERT((map.swizzle_bytes == 128) == (map.box[0] * map.element_bytes == kSwizzledRow));
    RC_ASSERT((map.swizzle_bytes == 128) == g.swizzles_weights());
    RC_ASSERT(g.swizzles_weights() != g.multiplies_registers());
    // The instruction would cut off what nobody rounds, which no bound of an error shows.
    RC_ASSERT(map.rounds_to_tf32 == (map.swizzle_bytes == 128 && problem.input.type == DataType::f32));
    // What the barrier of a stage expects is what comes.
    RC_ASSERT(g.weight_bytes() == bytes);
    RC_ASSERT(memory.weight_offset() >= t.runs() * g.pixels().run_bytes());
    for (int stage = 0; stage < t.pipeline.stages; ++stage) {
      const std::int64_t first = stage * memory.stage_bytes() + memory.weight_offset();
      RC_ASSERT(first % (map.swizzle_bytes != 0 ? 1024 : 128) == 0);
      RC_ASSERT(first + bytes <= (stage + 1) * memory.stage_bytes());
    }
    RC_ASSERT(!t.keeps_weights() && g.stage_weight_bytes() == g.weight_bytes() && g.kept_weight_bytes() == 0);
    RC_ASSERT(g.packed_rows() == 0 && one.plan.packed_weight_bytes() == 0);
  }
}

RC_GTEST_PROP(WgmmaUnpackedWeightsProperty, ThreadsHaveRegistersForThem, ()) {
  for (const WgmmaCandidate& one : some_with_unpacked_weights()) {
    const WgmmaTiling& t = one.tiling;
    const WgmmaGeometry g = one.geometry();
    const WgmmaRegisters registers(g);
    RC_ASSERT(registers.fit());
    // Sums, four weights of each multiplication, and as many others as the same kernel has with packed weights.
    WgmmaTiling packed = t;
    packed.weights = WgmmaTiling::Weights::packed;
    const std::int64_t weights = g.multiplies_registers() ? g.units() / 2 * 4 : 0;
    const std::int64_t more =
        registers.consumer() - WgmmaRegisters(WgmmaGeometry(one.problem, packed)).wanted_by_consumer();
    RC_ASSERT(more >= weights && (weights > 0 || more == 0));
    RC_ASSERT(registers.consumer() >= t.tile.columns / 2 + weights + 64);
    RC_ASSERT(registers.consumer() % 8 == 0 && registers.producer() % 8 == 0);
    RC_ASSERT(registers.producer() >= 24 && registers.producer() <= 240);
    RC_ASSERT(registers.producer() + 2 * registers.consumer() <= 3 * WgmmaTiling::kLaunchRegisters);
  }
}

RC_GTEST_PROP(WgmmaUnpackedWeightsProperty, AreThoseOfAllFilterRows, ()) {
  for (const WgmmaCandidate& one : test::some_wgmma_candidates()) {
    const WgmmaTiling& t = one.tiling;
    const Problem& problem = one.problem;
    const WgmmaGeometry g = one.geometry();
    RC_ASSERT(t.packs_weights() == (t.weights != WgmmaTiling::Weights::unpacked));
    if (t.packs_weights()) continue;
    RC_ASSERT(can_take_unpacked_weights(g));
    RC_ASSERT(problem.alignment >= kPieceBytes);
    if (g.multiplies_registers())
      RC_ASSERT(problem.input.type == DataType::f32 && problem.input.layout() == Layout::nchw);
    else
      RC_ASSERT(problem.input.layout() == Layout::nchw || t.uses_im2col());
    RC_ASSERT(t.pipeline.filter_rows == problem.rows.taps && !g.has_zeros());
  }
}

TEST(WgmmaUnpackedWeights, OtherConvolutionsPackThem) {
  WgmmaTiling tiling;
  tiling.pipeline.slices = 8;
  const auto takes = [&tiling](const std::string& spec) {
    const Problem problem = lower(parse_spec(spec + " math=tf32"));
    return can_take_unpacked_weights(WgmmaGeometry(problem, tiling));
  };
  const std::string matrix = "input=2,64,9,11 weight=72,64,1,1";
  EXPECT_TRUE(takes(matrix));
  EXPECT_TRUE(takes("input=2,68,9,11 weight=72,68,1,1"));  // zeros behind the last channel
  EXPECT_TRUE(takes(matrix + " dtype=f16"));
  EXPECT_TRUE(takes(matrix + " input_layout=nhwc"));
  EXPECT_FALSE(takes("input=2,68,9,11 weight=72,68,1,1 dtype=f16"));  // rows of w are no vectors
  EXPECT_FALSE(takes("input=2,66,9,11 weight=72,66,1,1"));            // rows of w are no vectors
  EXPECT_FALSE(takes("input=2,64,9,11 weight=72,64,1,2"));
  tiling.pipeline.slices = 4;
  EXPECT_FALSE(takes(matrix));
  tiling.pipeline.filter_rows = 3;
  EXPECT_TRUE(takes("input=2,64,9,11 weight=72,64,3,3"));
  EXPECT_FALSE(takes("input=2,64,9,11 weight=72,64,3,3 dtype=f16"));
  EXPECT_FALSE(takes("input=2,64,9,11 weight=72,64,3,3 input_layout=nhwc"));
  EXPECT_FALSE(takes("input=2,64,9,11 weight=72,64,3,2"));
  EXPECT_FALSE(takes("input=2,66,9,11 weight=72,66,3,3"));
  EXPECT_FALSE(takes("input=2,64,9,11 weight=72,64,1,3"));
  EXPECT_FALSE(takes("input=2,64,19,21 weight=72,64,3,7"));  // rows of a box would have 336 weights
  tiling.pipeline.slices = 2;
  EXPECT_TRUE(takes("input=2,64,19,21 weight=72,64,3,7"));
  tiling.pipeline.slices = 1;
  EXPECT_FALSE(takes("input=2,4,9,11 weight=72,4,3,3"));
  tiling.pipeline.slices = 4, tiling.pipeline.filter_rows = 1;
  EXPECT_FALSE(takes("input=2,64,9,11 weight=72,64,3,3"));  // a step's weights of an output channel are no neighbours
}

// Registers are loaded anew only when what they held has been multiplied, and not before the weights have come.
RC_GTEST_PROP(WgmmaUnpackedWeightsProperty, AreLoadedBetweenTheirArrivalAndTheirMultiplications, ()) {
  for (const WgmmaCandidate& one : some_with_unpacked_weights()) {
    const std::string text = generate(one.plan).text;
    if (!one.geometry().multiplies_registers()) {
      RC_ASSERT(text.find("load_weights(a, ") == std::string::npos);
      static const std::regex rows(
          R"(weights =\s+swizzled_operand<kWeightRowBytes>\(input \+ kWeightOffset \+ k_consumer \* kWeightRowBytes\);)");
      RC_ASSERT(std::regex_search(text, rows));
      continue;
    }
    const std::size_t arrival = text.find("barrier_wait(full + stage, parity);"),
                      done = text.find("multiply_wait<0>();", arrival), load = text.find("load_weights(a, ", done),
                      begin = text.find("multiply_begin();", load), multiply = text.find("multiply(sum, ", begin);
    RC_ASSERT(arrival < done && done < load && load < begin && begin < multiply && multiply != std::string::npos);
    RC_ASSERT(text.find("load_weights(a, ") == load && text.find("load_weights(a, ", load + 1) == std::string::npos);
    RC_ASSERT(text.find("multiply_begin();", arrival) == begin);
    // The instruction would cut them off, which no bound of an error shows.
    RC_ASSERT(text.find("[half + channel % 2 * 2] = round_to_tf32(value[i]);") != std::string::npos);
  }
}

}  // namespace
}  // namespace jitconv::codegen
