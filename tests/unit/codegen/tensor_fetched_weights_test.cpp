// Weights that the multiplying threads fetch for themselves (weight_slots): which weight meets which pixel, that all of
// w is fetched once, and when a slot is filled and read. Restates templates/tensor_fetch_*.cu.in.
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
#include "codegen/source.h"
#include "unit/codegen/tensor_candidates.h"

namespace jitconv::codegen {
namespace {

using test::some_that_fetch_weights;
using test::TensorCandidate;

constexpr std::int64_t kPieceBytes = 16, kMultiplyingThreads = 256;
constexpr int kWarpsOfConsumer = 4, kRowsOfWarp = 16;

/// Of a thread's 16 bytes: which of its warp's 16 output channels, and the first of four channels of a chunk.
struct Piece {
  int row, first_channel;
};
Piece piece_of(int lane, int number) { return {lane / 4 + number % 2 * 8, number / 2 * 16 + lane % 4 * 4}; }

/// A weight in a register: an output channel of a warp's 16, an input channel of a chunk.
struct Weight {
  int row, channel;
  bool operator==(const Weight&) const = default;
};

/// a[][] of a thread after load_weights() of the 16 channels `batch`.
std::array<std::array<Weight, 4>, 2> registers_of(int lane, int batch) {
  std::array<std::array<Weight, 4>, 2> a{};
  for (int half = 0; half < 2; ++half) {
    const auto [row, channel] = piece_of(lane, 2 * batch + half);
    const auto at = static_cast<std::size_t>(half);
    a[0][at] = {row, channel};
    a[0][at + 2] = {row, channel + 1};
    a[1][at] = {row, channel + 2};
    a[1][at + 2] = {row, channel + 3};
  }
  return a;
}

RC_GTEST_PROP(TensorFetchedWeightsProperty, ChannelsAreAPermutationOfTheirChunk, ()) {
  for (const TensorCandidate& one : test::some_tensor_candidates()) {
    const std::int64_t chunk = one.tiling.chunk_channels(one.spec);
    std::set<std::int64_t> channels;
    for (std::int64_t place = 0; place < chunk; ++place) {
      const std::int64_t channel = one.tiling.channel_at(place);
      RC_ASSERT(channel >= 0 && channel < chunk);
      channels.insert(channel);
      if (one.tiling.packs_weights()) RC_ASSERT(channel == place);
      // Of the next chunk, the same channels of that chunk.
      RC_ASSERT(one.tiling.channel_at(place + chunk) == channel + chunk);
    }
    RC_ASSERT(static_cast<std::int64_t>(channels.size()) == chunk);
  }
}

// Registers 0 and 1 of a multiplication are a thread's rows lane / 4 and lane / 4 + 8 of column lane % 4, registers 2
// and 3 the same of column lane % 4 + 4; its pixels are eight places of two slices.
TEST(TensorFetchedWeights, MeetThePixelsOfTheirChannels) {
  const TensorTiling tiling{.slices = 8, .weight_slots = 4};
  const int chunk = 32;
  std::map<std::pair<int, int>, int> times;  // a weight of a warp is multiplied
  for (int multiplication = 0; multiplication < tiling.slices / 2; ++multiplication) {
    for (int lane = 0; lane < kWarpSize; ++lane) {
      const auto a = registers_of(lane, multiplication / 2)[static_cast<std::size_t>(multiplication % 2)];
      for (int i = 0; i < 4; ++i) {
        const int column = lane % 4 + i / 2 * 4, row = lane / 4 + i % 2 * 8;
        const Weight& weight = a[static_cast<std::size_t>(i)];
        ASSERT_EQ(weight.row, row) << lane;
        ASSERT_EQ(weight.channel, tiling.channel_at(8 * multiplication + column)) << lane << " " << multiplication;
        ++times[{weight.row, weight.channel}];
      }
    }
  }
  EXPECT_EQ(times.size(), static_cast<std::size_t>(kRowsOfWarp * chunk));
  for (const auto& [weight, count] : times) EXPECT_EQ(count, 1) << weight.first << " " << weight.second;
}

/// How often blocks of one tile of pixels fetch each weight, by its place in w.
std::vector<int> fetches(const TensorCandidate& one) {
  const TensorTiling& t = one.tiling;
  const ConvSpec& spec = one.spec;
  const std::int64_t channels = spec.filter.c, group_k = spec.filter.k / spec.groups, chunk = t.chunk_channels(spec),
                     pieces = chunk / 8;
  std::vector<int> counts(static_cast<std::size_t>(spec.filter.k * channels), 0);
  for (std::int64_t tile = 0; tile < spec.groups * t.tiles_k(spec); ++tile)
    for (int consumer = 0; consumer < (t.runs() == 1 ? 2 : 1); ++consumer)  // with a run each, both fetch the same
      for (int thread = 0; thread < 128; ++thread) {
        const std::int64_t group = tile / t.tiles_k(spec), k_consumer = t.runs() == 1 ? consumer * 64 : 0;
        const int warp = thread / kWarpSize, lane = thread % kWarpSize;
        const std::int64_t k_thread =
            tile % t.tiles_k(spec) * t.block_k + k_consumer + warp % kWarpsOfConsumer * kRowsOfWarp + lane / 4;
        const std::int64_t w_thread = (group * group_k + k_thread) * channels + lane % 4 * 4;
        for (std::int64_t step = 0; step < t.steps(spec); ++step)
          for (std::int64_t i = 0; i < pieces; ++i) {
            if (i % 2 * 8 >= group_k - k_thread) continue;  // zeros
            const std::int64_t place = w_thread + step * chunk + i % 2 * (8 * channels) + i / 2 * 16;
            RC_ASSERT(place % 4 == 0 && place / channels / group_k == group);
            for (std::int64_t c = place; c < place + 4; ++c) ++counts.at(static_cast<std::size_t>(c));
          }
      }
  return counts;
}

RC_GTEST_PROP(TensorFetchedWeightsProperty, EachIsFetchedOnce, ()) {
  test::SpecLimits limits;
  limits.channels_per_group = 200, limits.groups = 3;
  const std::vector<TensorCandidate> some = some_that_fetch_weights(limits);
  if (some.empty()) return;
  const std::vector<int> counts = fetches(some[*rc::gen::inRange<std::size_t>(0, some.size())]);
  RC_ASSERT(std::all_of(counts.begin(), counts.end(), [](int count) { return count == 1; }));
}

// A thread waits for its own copies only, by how many groups of them may still be on their way.
RC_GTEST_PROP(TensorFetchedWeightsProperty, SlotsHoldTheStepThatIsMultiplied, ()) {
  for (const TensorCandidate& one : some_that_fetch_weights()) {
    const TensorTiling& t = one.tiling;
    const std::int64_t slots = t.weight_slots;
    for (int split = 0; split < t.splits; ++split) {
      const std::int64_t first = split * t.steps_of_split(one.spec),
                         end = std::min(t.steps(one.spec), first + t.steps_of_split(one.spec));
      std::vector<std::int64_t> held(static_cast<std::size_t>(slots), -1);
      std::vector<std::int64_t> groups;  // the step of each group of copies, -1 if it has none
      const auto fetch = [&](std::int64_t step) {
        groups.push_back(step < end ? step : -1);
        if (step >= end) return;
        std::int64_t& slot = held[static_cast<std::size_t>(step % slots)];
        RC_ASSERT(slot < step - slots + 1 || slot == -1);  // multiplied before
        slot = step;
      };
      for (std::int64_t i = 0; i < slots - 1; ++i) fetch(first + i);
      for (std::int64_t step = first; step < end; ++step) {
        fetch(step + slots - 1);
        RC_ASSERT(held[static_cast<std::size_t>(step % slots)] == step);
        const auto arrived = groups.end() - (slots - 1);
        RC_ASSERT(std::find(groups.begin(), arrived, step) != arrived);
      }
    }
  }
}

RC_GTEST_PROP(TensorFetchedWeightsProperty, LieBehindTheStages, ()) {
  for (const TensorCandidate& one : some_that_fetch_weights()) {
    const TensorTiling& t = one.tiling;
    const ConvSpec& spec = one.spec;
    RC_ASSERT(t.weight_slots >= 1 && t.weight_slots <= t.steps(spec));
    // A thread's pieces of a step lie as far apart as all threads' pieces are long.
    const std::int64_t pieces = t.chunk_channels(spec) / 8;
    RC_ASSERT(t.slot_bytes(spec) == pieces * kMultiplyingThreads * kPieceBytes);
    RC_ASSERT(t.kept_weight_bytes(spec) == t.weight_slots * t.slot_bytes(spec));
    RC_ASSERT(t.weights_first_byte(spec) % kPieceBytes == 0);
    RC_ASSERT(t.weights_first_byte(spec) >= t.stages * t.stage_bytes(spec));
    RC_ASSERT(t.raw_first_byte(spec) >= t.weights_first_byte(spec) + t.weight_slots * t.slot_bytes(spec));
    RC_ASSERT(t.staging_first_byte(spec) >= t.weights_first_byte(spec) + t.weight_slots * t.slot_bytes(spec));
    RC_ASSERT(t.stage_bytes(spec) == t.runs() * t.run_bytes(spec));  // pixels alone
    RC_ASSERT(!t.resident && !t.weights_come_with_steps());
    RC_ASSERT(t.packed_weight_bytes(spec) == 0 && one.plan.workspace.packed_weights == 0);
    // Sums, and weights of 32 channels.
    RC_ASSERT(t.consumer_registers(spec) >= t.columns / 2 + 16);
  }
}

RC_GTEST_PROP(TensorFetchedWeightsProperty, AreThoseOfMatricesOfWholeChunks, ()) {
  for (const TensorCandidate& one : test::some_tensor_candidates()) {
    const TensorTiling& t = one.tiling;
    const ConvSpec& spec = one.spec;
    RC_ASSERT(t.packs_weights() == (t.weight_slots == 0));
    if (t.packs_weights()) continue;
    RC_ASSERT(t.can_fetch_weights(spec));
    RC_ASSERT(spec.dtype == DataType::f32 && spec.input_layout == Layout::nchw);
    RC_ASSERT(spec.filter.r == 1 && spec.filter.s == 1 && spec.alignment >= kPieceBytes);
    RC_ASSERT(t.slices == 8 && spec.filter.c % t.chunk_channels(spec) == 0);
  }
}

TEST(TensorFetchedWeights, OtherConvolutionsPackThem) {
  TensorTiling tiling{.slices = 8};
  const std::string matrix = "input=2,64,9,11 weight=72,64,1,1 math=tf32";
  EXPECT_TRUE(tiling.can_fetch_weights(parse_spec(matrix)));
  EXPECT_FALSE(tiling.can_fetch_weights(parse_spec(matrix + " dtype=f16")));
  EXPECT_FALSE(tiling.can_fetch_weights(parse_spec(matrix + " input_layout=nhwc")));
  EXPECT_FALSE(tiling.can_fetch_weights(parse_spec("input=2,64,9,11 weight=72,64,1,2 math=tf32")));
  EXPECT_FALSE(tiling.can_fetch_weights(parse_spec("input=2,64,9,11 weight=72,64,3,1 math=tf32")));
  EXPECT_FALSE(tiling.can_fetch_weights(parse_spec("input=2,68,9,11 weight=72,68,1,1 math=tf32")));
  tiling.slices = 4;
  EXPECT_FALSE(tiling.can_fetch_weights(parse_spec(matrix)));
}

// Registers are loaded anew only when no multiplication that reads them is in flight.
RC_GTEST_PROP(TensorFetchedWeightsProperty, RegistersHoldWhatIsMultiplied, ()) {
  static const std::regex load(R"(load_weights\(a\[(\d)\], weights \+ (\d+) \* kPieceBytes\);)"),
      multiply(R"(multiply\(sum, a\[(\d)\]\[(\d)\], )");
  for (const TensorCandidate& one : some_that_fetch_weights()) {
    const std::string text = generate(one.plan).text;
    const std::size_t begin = text.find("// begin taps\n"), end = text.find("// end taps\n");
    RC_ASSERT(text.rfind("load_weights(a[0], weights);", begin) != std::string::npos);
    std::istringstream lines(text.substr(begin, end - begin));
    std::array<std::int64_t, 2> held = {0, -1};  // the 16 channels of each half
    // Halves that multiplications in flight read: of this group, and of the one before, which began in the step before.
    std::set<std::size_t> reads_now, reads_committed = {static_cast<std::size_t>(one.tiling.slices / 4 - 1) % 2};
    RC_ASSERT(!reads_committed.contains(0));
    std::int64_t multiplications = 0;
    for (std::string line; std::getline(lines, line);) {
      std::smatch match;
      if (line.find("multiply_commit();") != std::string::npos) {
        reads_committed.insert(reads_now.begin(), reads_now.end());
      } else if (line.find("multiply_wait<1>();") != std::string::npos) {
        reads_committed = reads_now;  // but the latest group has arrived
        reads_now.clear();
      } else if (std::regex_search(line, match, load)) {
        const auto half = static_cast<std::size_t>(std::stoi(match[1]));
        RC_ASSERT(!reads_committed.contains(half) && !reads_now.contains(half));
        RC_ASSERT(std::stoi(match[2]) % 2 == 0);
        held.at(half) = std::stoi(match[2]) / 2;
      } else if (std::regex_search(line, match, multiply)) {
        const auto half = static_cast<std::size_t>(std::stoi(match[1]));
        RC_ASSERT(held.at(half) == multiplications / 2 && std::stoi(match[2]) == multiplications % 2);
        reads_now.insert(half);
        ++multiplications;
      }
    }
    RC_ASSERT(2 * multiplications == one.tiling.units(one.spec));
  }
}

}  // namespace
}  // namespace jitconv::codegen
