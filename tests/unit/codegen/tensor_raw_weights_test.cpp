// Weights that come as they lie in w (raw_weights): which weight meets which pixel, that boxes bring all of w once, and
// where they lie. Restates templates/tensor_raw_weights.cu.in, how instructions read swizzled rows, and what
// weight_holes() asks for.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <vector>

#include "codegen/arithmetic.h"
#include "codegen/emit.h"
#include "codegen/source.h"
#include "unit/codegen/tensor_candidates.h"

namespace jitconv::codegen {
namespace {

using test::map_of;
using test::some_with_raw_weights;
using test::TensorCandidate;

constexpr std::int64_t kPieceBytes = 16, kSwizzledRow = 128, kBanks = 32;
constexpr int kWarpsOfConsumer = 4, kRowsOfWarp = 16;

/// Of w: an output channel, and a place in its row of channels and taps. Or a zero, which lies outside of w.
struct Weight {
  std::int64_t k = -1, place = -1;
  bool operator==(const Weight&) const = default;
};

/// Where a step's box starts: its first place in rows of w, and its first row.
std::array<std::int64_t, 2> box_first(const TensorCandidate& one, std::int64_t tile, std::int64_t step) {
  const WgmmaTiling& t = one.tiling;
  const std::int64_t tiles_k = t.tiles_k(one.spec), chunk = t.filter_rows == 1 ? step / one.spec.weight.r : step;
  return {chunk * (t.chunk_channels(one.spec) * t.taps(one.spec)),
          tile / tiles_k * (one.spec.weight.k / one.spec.groups) + tile % tiles_k * t.block_k};
}

/// What lies in shared memory, element by element, when a step's box has come.
std::vector<Weight> words_of(const TensorCandidate& one, const TensorMapShape& map, std::int64_t tile,
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
std::int64_t vector_of(const TensorCandidate& one) {
  return one.tiling.lane_channels(one.spec) * one.tiling.taps(one.spec) % 4 == 0 ? 4 : 2;
}
std::int64_t load_address(const TensorCandidate& one, std::int64_t row, int lane, std::int64_t i) {
  const std::int64_t channels = one.tiling.lane_channels(one.spec), taps = one.tiling.taps(one.spec);
  const std::int64_t of_row = row * one.tiling.chunk_channels(one.spec) * taps * 4;
  return of_row + lane % 4 * (channels * taps * 4) + i * 4;
}

/// a[][] of a lane whose first row of the box is `row`.
std::vector<std::array<Weight, 4>> registers_of(const TensorCandidate& one, const std::vector<Weight>& words,
                                                std::int64_t row, int lane) {
  const std::int64_t channels = one.tiling.lane_channels(one.spec), taps = one.tiling.taps(one.spec);
  std::vector<std::array<Weight, 4>> a(static_cast<std::size_t>(one.tiling.units(one.spec) / 2));
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

std::vector<Multiplication> multiplications_of(const TensorCandidate& one) {
  static const std::regex line_of(
      R"(multiply\(sum, a\[(\d+)\], pixels \+ (\d+), .*\);  // (?:r(\d+))?s(\d+), (\d+) of (\d+))");
  static const std::regex line_of_rows(
      R"(multiply\(sum, weights \+ (\d+), pixels \+ (\d+), .*\);  // c(\d+)\.\.(\d+))");
  const std::string text = emit_tensor(one.plan);
  const std::size_t begin = text.find("// begin taps\n"), end = text.find("// end taps\n");
  RC_ASSERT(begin != std::string::npos && end != std::string::npos);
  std::istringstream lines(text.substr(begin, end - begin));
  std::vector<Multiplication> found;
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (std::regex_search(line, match, line_of_rows)) {
      const std::int64_t channels = WgmmaTiling::slice_channels(one.spec), slice = std::stoll(match[3]) / channels;
      RC_ASSERT(std::stoll(match[4]) == (slice + 2) * channels - 1);
      RC_ASSERT(std::stoll(match[2]) == slice * (one.tiling.walks_pixels() ? 1 : one.tiling.slice_pitch(one.spec)));
      found.push_back({std::stoll(match[1]), 0, 0, slice});
      continue;
    }
    if (!std::regex_search(line, match, line_of)) continue;
    const std::int64_t r = match[3].matched ? std::stoll(match[3]) : 0, s = std::stoll(match[4]);
    const std::int64_t slice = 2 * (std::stoll(match[5]) - 1);
    // Its pixels are those of the tap that the line names.
    const std::int64_t place = (WgmmaTiling::phase_of(one.spec, s) * one.tiling.slices + slice);
    RC_ASSERT(std::stoll(match[2]) == place * one.tiling.slice_pitch(one.spec) +
                                          r * one.spec.dilation.h * WgmmaTiling::pitch(one.spec) +
                                          s * one.spec.dilation.w / one.spec.stride.w);
    found.push_back({std::stoll(match[1]), r, s, slice});
  }
  return found;
}

RC_GTEST_PROP(TensorRawWeightsProperty, ChannelsAreAPermutationOfTheirChunk, ()) {
  for (const TensorCandidate& one : test::some_tensor_candidates()) {
    const std::int64_t chunk = one.tiling.chunk_channels(one.spec);
    std::set<std::int64_t> channels;
    for (std::int64_t place = 0; place < chunk; ++place) {
      const std::int64_t channel = one.tiling.channel_at(one.spec, place);
      RC_ASSERT(channel >= 0 && channel < chunk);
      channels.insert(channel);
      if (!one.tiling.multiplies_registers(one.spec)) RC_ASSERT(channel == place);
      // Of the next chunk, the same channels of that chunk.
      RC_ASSERT(one.tiling.channel_at(one.spec, place + chunk) == channel + chunk);
    }
    RC_ASSERT(static_cast<std::int64_t>(channels.size()) == chunk);
  }
}

// Registers 0 and 1 of a multiplication are a lane's rows lane / 4 and lane / 4 + 8 of column lane % 4, registers 2 and
// 3 the same of column lane % 4 + 4; its pixels are eight places of two slices.
RC_GTEST_PROP(TensorRawWeightsProperty, MeetThePixelsOfTheirChannelsAndTaps, ()) {
  for (const TensorCandidate& one : some_with_raw_weights()) {
    const WgmmaTiling& t = one.tiling;
    const ConvSpec& spec = one.spec;
    const std::int64_t group_k = spec.weight.k / spec.groups, chunk = t.chunk_channels(spec), taps = t.taps(spec);
    const std::int64_t tiles = spec.groups * t.tiles_k(spec);
    const TensorMapShape map = map_of(one, Tensor::w);
    const std::vector<Multiplication> multiplications = multiplications_of(one);
    RC_ASSERT(static_cast<std::int64_t>(multiplications.size()) == t.units(spec) / 2);
    const std::int64_t tile = *rc::gen::inRange<std::int64_t>(0, tiles);
    const std::int64_t step = *rc::gen::inRange<std::int64_t>(0, t.steps(spec));
    const std::vector<Weight> words = words_of(one, map, tile, step);
    std::map<std::pair<std::int64_t, std::int64_t>, int> times;  // a weight of the tile is multiplied
    const auto multiply = [&](const Multiplication& multiplication, std::int64_t k_of_tile, std::int64_t column,
                              const Weight& weight) {
      const std::int64_t k_of_group = tile % t.tiles_k(spec) * t.block_k + k_of_tile;
      if (k_of_group >= group_k) return;  // is not stored
      const std::int64_t place = multiplication.slice * WgmmaTiling::slice_channels(spec) + column;
      const std::int64_t channel = step * chunk + t.channel_at(spec, place);
      if (channel >= spec.weight.c) {
        RC_ASSERT(weight == Weight{});
        return;
      }
      RC_ASSERT(weight.k == tile / t.tiles_k(spec) * group_k + k_of_group);
      RC_ASSERT(weight.place == channel * taps + multiplication.r * spec.weight.s + multiplication.s);
      ++times[{weight.k, weight.place}];
    };
    for (const Multiplication& multiplication : multiplications) {
      if (!t.swizzles_weights(spec)) break;
      for (std::int64_t k_of_tile = 0; k_of_tile < t.block_k; ++k_of_tile)
        for (std::int64_t column = 0; column < 32 / map.element_bytes; ++column)
          multiply(multiplication, k_of_tile, column,
                   of_swizzled(words, map.element_bytes, k_of_tile, multiplication.weights, column));
    }
    for (int consumer = 0; t.multiplies_registers(spec) && consumer < t.block_k / 64; ++consumer) {
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
    const std::int64_t rows = std::min<std::int64_t>(t.block_k, group_k - tile % t.tiles_k(spec) * t.block_k);
    const std::int64_t channels = std::min(chunk, spec.weight.c - step * chunk);
    RC_ASSERT(static_cast<std::int64_t>(times.size()) == rows * channels * taps);
    RC_ASSERT(std::all_of(times.begin(), times.end(), [](const auto& one_of) { return one_of.second == 1; }));
  }
}

RC_GTEST_PROP(TensorRawWeightsProperty, BoxesBringEachOnce, ()) {
  test::SpecLimits limits;
  limits.channels_per_group = 300, limits.groups = 3;
  const std::vector<TensorCandidate> some = some_with_raw_weights(limits);
  if (some.empty()) return;
  const TensorCandidate& one = some[*rc::gen::inRange<std::size_t>(0, some.size())];
  const WgmmaTiling& t = one.tiling;
  const ConvSpec& spec = one.spec;
  const TensorMapShape map = map_of(one, Tensor::w);
  const std::int64_t row = spec.weight.c * spec.weight.r * spec.weight.s, group_k = spec.weight.k / spec.groups;
  // As w lies in memory.
  RC_ASSERT(map.rank == 2 && map.element_bytes == element_bytes(spec.dtype));
  RC_ASSERT(map.extents[0] == row && map.extents[1] == spec.weight.k && map.strides[0] == 1 && map.strides[1] == row);
  std::vector<int> counts(static_cast<std::size_t>(spec.weight.k * row), 0);
  for (std::int64_t tile = 0; tile < spec.groups * t.tiles_k(spec); ++tile)
    for (std::int64_t step = 0; step < t.steps(spec); ++step)
      for (const Weight& weight : words_of(one, map, tile, step))
        // Rows behind the group's last are multiplied and not stored.
        if (weight.k >= 0 && weight.k / group_k == tile / t.tiles_k(spec))
          ++counts.at(static_cast<std::size_t>(weight.k * row + weight.place));
  RC_ASSERT(std::all_of(counts.begin(), counts.end(), [](int count) { return count == 1; }));
}

/// Times that shared memory is accessed for one load of a warp: lanes whose words together are 128 bytes come at once.
std::int64_t wavefronts(const TensorCandidate& one, std::int64_t half, std::int64_t i) {
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

RC_GTEST_PROP(TensorRawWeightsProperty, LanesMeetInNoBank, ()) {
  for (const TensorCandidate& one : some_with_raw_weights()) {
    if (!one.tiling.multiplies_registers(one.spec)) continue;
    const std::int64_t loads = one.tiling.lane_channels(one.spec) * one.tiling.taps(one.spec);
    for (std::int64_t half = 0; half < 2; ++half)
      for (std::int64_t i = 0; i < loads; i += vector_of(one)) RC_ASSERT(wavefronts(one, half, i) == vector_of(one));
  }
}

RC_GTEST_PROP(TensorRawWeightsProperty, LieBehindTheirStepsPixels, ()) {
  for (const TensorCandidate& one : some_with_raw_weights()) {
    const WgmmaTiling& t = one.tiling;
    const ConvSpec& spec = one.spec;
    const TensorMapShape map = map_of(one, Tensor::w);
    const std::int64_t bytes = std::int64_t{map.box[0]} * map.box[1] * map.element_bytes;
    RC_ASSERT(map.box[0] == t.chunk_channels(spec) * t.taps(spec) && map.box[1] == t.block_k);
    RC_ASSERT((map.swizzle_bytes == 128) == (map.box[0] * map.element_bytes == kSwizzledRow));
    RC_ASSERT((map.swizzle_bytes == 128) == t.swizzles_weights(spec));
    RC_ASSERT(t.swizzles_weights(spec) != t.multiplies_registers(spec));
    // The instruction would cut off what nobody rounds, which no bound of an error shows.
    RC_ASSERT(map.rounds_to_tf32 == (map.swizzle_bytes == 128 && spec.dtype == DataType::f32));
    // What the barrier of a stage expects is what comes.
    RC_ASSERT(t.weight_bytes(spec) == bytes);
    RC_ASSERT(t.weights_in_stage(spec) >= t.runs() * t.run_bytes(spec));
    for (int stage = 0; stage < t.stages; ++stage) {
      const std::int64_t first = stage * t.stage_bytes(spec) + t.weights_in_stage(spec);
      RC_ASSERT(first % (map.swizzle_bytes != 0 ? 1024 : 128) == 0);
      RC_ASSERT(first + bytes <= (stage + 1) * t.stage_bytes(spec));
    }
    RC_ASSERT(!t.resident && t.weights_come_with_steps() && t.kept_weight_bytes(spec) == 0);
    RC_ASSERT(t.packed_weight_bytes(spec) == 0 && one.plan.packed_weight_bytes() == 0);
  }
}

RC_GTEST_PROP(TensorRawWeightsProperty, ThreadsHaveRegistersForThem, ()) {
  for (const TensorCandidate& one : some_with_raw_weights()) {
    const WgmmaTiling& t = one.tiling;
    const ConvSpec& spec = one.spec;
    RC_ASSERT(t.registers_fit(spec));
    // Sums, four weights of each multiplication, and as many others as the same kernel has with packed weights.
    WgmmaTiling packed = t;
    packed.raw_weights = false;
    const std::int64_t weights = t.multiplies_registers(spec) ? t.units(spec) / 2 * 4 : 0;
    RC_ASSERT(t.raw_weight_registers(spec) >= weights && (weights > 0 || t.raw_weight_registers(spec) == 0));
    RC_ASSERT(t.consumer_registers(spec) == packed.wanted_registers(spec) + t.raw_weight_registers(spec));
    RC_ASSERT(t.consumer_registers(spec) >= t.columns / 2 + weights + 64);
    RC_ASSERT(t.consumer_registers(spec) % 8 == 0 && t.loader_registers(spec) % 8 == 0);
    RC_ASSERT(t.loader_registers(spec) >= 24 && t.loader_registers(spec) <= 240);
    RC_ASSERT(t.loader_registers(spec) + 2 * t.consumer_registers(spec) <= 3 * WgmmaTiling::kLaunchRegisters);
  }
}

RC_GTEST_PROP(TensorRawWeightsProperty, AreThoseOfAllFilterRows, ()) {
  for (const TensorCandidate& one : test::some_tensor_candidates()) {
    const WgmmaTiling& t = one.tiling;
    const ConvSpec& spec = one.spec;
    RC_ASSERT(t.packs_weights() != t.raw_weights);
    if (t.packs_weights()) continue;
    RC_ASSERT(t.can_take_raw_weights(spec));
    RC_ASSERT(spec.alignment >= kPieceBytes);
    if (t.multiplies_registers(spec))
      RC_ASSERT(spec.dtype == DataType::f32 && spec.input_layout == Layout::nchw);
    else
      RC_ASSERT(spec.input_layout == Layout::nchw || t.walks_pixels());
    RC_ASSERT(t.filter_rows == spec.weight.r && !t.has_zeros(spec));
  }
}

TEST(TensorRawWeights, OtherConvolutionsPackThem) {
  WgmmaTiling tiling{.slices = 8};
  const auto takes = [&tiling](const std::string& spec) {
    return tiling.can_take_raw_weights(parse_spec(spec + " math=tf32"));
  };
  const std::string matrix = "input=2,64,9,11 weight=72,64,1,1";
  EXPECT_TRUE(takes(matrix));
  EXPECT_TRUE(takes("input=2,68,9,11 weight=72,68,1,1"));  // zeros behind the last channel
  EXPECT_TRUE(takes(matrix + " dtype=f16"));
  EXPECT_TRUE(takes(matrix + " input_layout=nhwc"));
  EXPECT_FALSE(takes("input=2,68,9,11 weight=72,68,1,1 dtype=f16"));  // rows of w are no vectors
  EXPECT_FALSE(takes("input=2,66,9,11 weight=72,66,1,1"));            // rows of w are no vectors
  EXPECT_FALSE(takes("input=2,64,9,11 weight=72,64,1,2"));
  tiling.slices = 4;
  EXPECT_FALSE(takes(matrix));
  tiling.filter_rows = 3;
  EXPECT_TRUE(takes("input=2,64,9,11 weight=72,64,3,3"));
  EXPECT_FALSE(takes("input=2,64,9,11 weight=72,64,3,3 dtype=f16"));
  EXPECT_FALSE(takes("input=2,64,9,11 weight=72,64,3,3 input_layout=nhwc"));
  EXPECT_FALSE(takes("input=2,64,9,11 weight=72,64,3,2"));
  EXPECT_FALSE(takes("input=2,66,9,11 weight=72,66,3,3"));
  EXPECT_FALSE(takes("input=2,64,9,11 weight=72,64,1,3"));
  EXPECT_FALSE(takes("input=2,64,19,21 weight=72,64,3,7"));  // rows of a box would have 336 weights
  tiling.slices = 2;
  EXPECT_TRUE(takes("input=2,64,19,21 weight=72,64,3,7"));
  tiling.slices = 1;
  EXPECT_FALSE(takes("input=2,4,9,11 weight=72,4,3,3"));
  tiling.slices = 4, tiling.filter_rows = 1;
  EXPECT_FALSE(takes("input=2,64,9,11 weight=72,64,3,3"));  // a step's weights of an output channel are no neighbours
}

// Registers are loaded anew only when what they held has been multiplied, and not before the weights have come.
RC_GTEST_PROP(TensorRawWeightsProperty, AreLoadedBetweenTheirArrivalAndTheirMultiplications, ()) {
  for (const TensorCandidate& one : some_with_raw_weights()) {
    const std::string text = generate(one.plan).text;
    if (!one.tiling.multiplies_registers(one.spec)) {
      RC_ASSERT(text.find("load_weights(a, ") == std::string::npos);
      static const std::regex rows(
          R"(weights =\s+swizzled_operand<kWeightRowBytes>\(input \+ kWeightsOfStage \+ k_consumer \* kWeightRowBytes\);)");
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
