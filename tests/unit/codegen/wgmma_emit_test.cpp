// What the wgmma family's emitter prints: the kernels of a launch and their parameters, one line per multiplication,
// the order of taps, and only the parts that a plan needs.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <regex>
#include <sstream>

#include "codegen/arithmetic.h"
#include "codegen/source.h"
#include "codegen/text/emitter.h"
#include "codegen/text/kernel_name.h"
#include "codegen/wgmma/store.h"
#include "unit/codegen/kernel_bodies.h"
#include "unit/codegen/squeezed.h"
#include "unit/codegen/wgmma_candidates.h"

namespace jitconv::codegen {
namespace {

using test::body_of;
using test::times;
using test::waits_before;
using test::wgmma_candidates;
using test::WgmmaCandidate;

/// The cheapest plan of the family for which `holds`.
template <typename Predicate>
WgmmaCandidate first_with(const char* spec, Predicate holds) {
  for (WgmmaCandidate& one : wgmma_candidates(parse_spec(spec)))
    if (holds(one.tiling)) return one;
  throw std::logic_error(std::string("no such plan for ") + spec);
}
WgmmaCandidate first(const char* spec) {
  return first_with(spec, [](const WgmmaTiling&) { return true; });
}
/// All that a kernel before the convolution makes are weights.
bool packs_weights_alone(const WgmmaTiling& tiling) { return tiling.packs_weights() && !tiling.transposes_input(); }
WgmmaCandidate first_split(const char* spec) {
  return first_with(spec, [](const WgmmaTiling& tiling) { return tiling.split_k > 1 && packs_weights_alone(tiling); });
}

/// What a kernel's parameters lead to.
using Tensors = std::vector<std::string>;
Tensors tensors_of(const KernelSource& source, std::size_t entry) {
  Tensors tensors;
  for (const Argument& argument : source.entries[entry].arguments)
    tensors.push_back(test::name_of(argument.tensor, source.scratch));
  return tensors;
}

constexpr const char* kSmall = "input=1,72,9,10 weight=24,72,3,3 padding=1 math=tf32";
constexpr const char* kSmallWithAll =
    "input=1,72,9,10 weight=24,72,3,3 padding=1 math=tf32 bias residual activation=silu";

TEST(WgmmaSource, PacksAndConvolves) {
  const auto whole = [](const WgmmaTiling& tiling) { return tiling.split_k == 1 && packs_weights_alone(tiling); };
  const KernelSource plain = generate(first_with(kSmall, whole).plan);
  ASSERT_EQ(plain.entries.size(), 2u);
  EXPECT_EQ(tensors_of(plain, 0), (Tensors{"w", "packed_w"}));
  EXPECT_EQ(tensors_of(plain, 1), (Tensors{"x", "packed_w", "y"}));
  const KernelSource all = generate(first_with(kSmallWithAll, whole).plan);
  EXPECT_EQ(tensors_of(all, 1), (Tensors{"x", "packed_w", "bias", "residual", "y"}));
  EXPECT_EQ(times(all.text, "__global__"), 2u);
}

TEST(WgmmaSource, OfUnpackedWeightsThereIsNothingToPack) {
  const auto takes = [](bool splits, bool transposes) {
    return generate(first_with(test::kStridedPointwise, [=](const WgmmaTiling& tiling) {
                      return !tiling.packs_weights() && (tiling.split_k > 1) == splits &&
                             tiling.transposes_input() == transposes;
                    }).plan);
  };
  const KernelSource one = takes(false, false);
  ASSERT_EQ(one.entries.size(), 1u);
  EXPECT_EQ(tensors_of(one, 0), (Tensors{"x", "w", "y"}));
  EXPECT_EQ(test::scratch_bytes(one.scratch, "packed_w"), 0);
  EXPECT_EQ(test::scratch_bytes(one.scratch, "transposed_x"), 0);
  // Nothing comes before it in its launch, so it has nothing to wait for.
  EXPECT_EQ(times(one.text, "wait_for_previous_kernel();"), 0u);
  const KernelSource pixels = takes(false, true);
  ASSERT_EQ(pixels.entries.size(), 2u);
  EXPECT_EQ(tensors_of(pixels, 0), (Tensors{"x", "transposed_x"}));
  EXPECT_EQ(tensors_of(pixels, 1), (Tensors{"transposed_x", "w", "y"}));
  EXPECT_EQ(test::scratch_bytes(pixels.scratch, "packed_w"), 0);
  EXPECT_GT(test::scratch_bytes(pixels.scratch, "transposed_x"), 0);
  const KernelSource split = takes(true, false);
  ASSERT_EQ(split.entries.size(), 2u);
  EXPECT_EQ(tensors_of(split, 0), (Tensors{"x", "w", "partial_sums"}));
  EXPECT_EQ(tensors_of(split, 1), (Tensors{"partial_sums", "y"}));
}

TEST(WgmmaSource, ASplitReductionHasTheEpilogueInItsThirdKernel) {
  const WgmmaCandidate one = first_split(kSmallWithAll);
  const KernelSource source = generate(one.plan);
  ASSERT_EQ(source.entries.size(), 3u);
  EXPECT_EQ(tensors_of(source, 0), (Tensors{"w", "packed_w"}));
  EXPECT_EQ(tensors_of(source, 1), (Tensors{"x", "packed_w", "partial_sums"}));
  EXPECT_EQ(tensors_of(source, 2), (Tensors{"partial_sums", "bias", "residual", "y"}));
  // What adds sums of other blocks must not be applied to each of them.
  const std::size_t reduce = source.text.find("\nnamespace reduce {");
  ASSERT_NE(reduce, std::string::npos);
  for (const char* part : {"value = activate(value)", "to_float(residual[", "to_float(bias["}) {
    EXPECT_GT(source.text.find(part), reduce) << part;
    EXPECT_NE(source.text.find(part), std::string::npos) << part;
  }
}

RC_GTEST_PROP(WgmmaSourceProperty, SignaturesAndLaunchesComeFromOneList, ()) {
  for (const WgmmaCandidate& one : test::some_wgmma_candidates()) {
    const KernelSource source = generate(one.plan);
    const std::string name = kernel_name(one.plan);
    std::vector<std::string> names;
    if (one.tiling.packs_weights()) names.push_back(name + "_pack_weights");
    if (one.tiling.transposes_input()) names.push_back(name + "_transpose_input");
    if (one.tiling.gathers_patches()) names.push_back(name + "_gather_patches");
    const std::size_t before = names.size();  // the kernels before the convolution
    names.push_back(name);
    if (one.tiling.split_k > 1) names.push_back(name + "_reduce");
    RC_ASSERT(source.entries.size() == names.size());
    RC_ASSERT(times(source.text, "__global__") == source.entries.size());
    for (std::size_t i = 0; i < source.entries.size(); ++i) {
      const KernelEntry& entry = source.entries[i];
      RC_ASSERT(entry.name == names[i]);
      const bool pass = i != before;
      RC_ASSERT(entry.scope == (pass ? entry.name.substr(name.size() + 1) + "::" : ""));
      const std::string declaration = entry.name + "(" + parameter_list(entry.arguments) + ") {\n";
      RC_ASSERT(times(test::squeezed(source.text), test::squeezed(declaration)) == 1u);
      RC_ASSERT(entry.packs_weights == (entry.name == name + "_pack_weights"));
      RC_ASSERT(entry.starts_early == (i != 0));
      RC_ASSERT(entry.threads % kWarpSize == 0 && entry.threads <= 1024);
    }
    const KernelEntry& convolution = source.entries[before];
    RC_ASSERT(convolution.grid == (std::array<std::uint32_t, 3>{one.plan.convolution().launch.blocks, 1, 1}));
    RC_ASSERT(convolution.threads == one.plan.convolution().launch.threads);
    RC_ASSERT(convolution.shared_bytes == one.plan.convolution().launch.shared_bytes);
    if (one.tiling.split_k == 1) continue;
    // Adding has a thread for each output, and no idle block.
    const KernelEntry& adds = source.entries.back();
    const std::int64_t outputs = one.problem.output_elements(), threads = std::int64_t{adds.grid[0]} * adds.threads;
    RC_ASSERT(threads >= outputs && threads - outputs < adds.threads);
  }
}

// The one place where the text says what a kernel that starts early waits for.
TEST(WgmmaSource, WaitsBeforeItReadsWhatTheKernelBeforeWrites) {
  for (const bool resident : {false, true}) {
    const KernelSource source =
        generate(first_with(kSmall, [&](const WgmmaTiling& tiling) {
                   return tiling.split_k == 1 && tiling.keeps_weights() == resident && packs_weights_alone(tiling);
                 }).plan);
    EXPECT_NE(body_of(source, 0).find("let_next_kernel_start();"), std::string::npos);
    EXPECT_EQ(times(body_of(source, 1), "wait_for_previous_kernel();"), 1u);
    EXPECT_TRUE(waits_before(body_of(source, 1), "bulk_copy_to_shared(")) << resident;
    // The caller's next kernel has no business to start early: nobody says that it waits.
    EXPECT_EQ(body_of(source, 1).find("let_next_kernel_start();"), std::string::npos);
  }
  const KernelSource split = generate(first_split(kSmall).plan);
  EXPECT_TRUE(waits_before(body_of(split, 1), "bulk_copy_to_shared("));
  EXPECT_NE(body_of(split, 1).find("let_next_kernel_start();"), std::string::npos);
  EXPECT_TRUE(waits_before(body_of(split, 2), "partial_sums["));
  EXPECT_EQ(body_of(split, 2).find("let_next_kernel_start();"), std::string::npos);
  // Loads through a pointer to const __restrict__ could be moved before the wait.
  EXPECT_EQ(split.entries[2].arguments.front().type, "const float*");
}

/// A unit as the lines of taps have it.
struct Unit {
  std::int64_t r, s, slice, pixel_row;
};

/// Reads the text between "begin taps" and "end taps"; places of weights must be those of the units in order, of raw
/// weights in the order of w: wgmma_unpacked_weights_test.cpp says where they are.
std::vector<Unit> units_of(const WgmmaCandidate& one) {
  const WgmmaTiling& t = one.tiling;
  const WgmmaGeometry g = one.geometry();
  const std::string text = test::convolution_text(one).text;  // with a line for each multiplication
  const std::size_t begin = text.find("// begin taps\n"), end = text.find("// end taps\n");
  RC_ASSERT(begin != std::string::npos && end != std::string::npos);
  std::istringstream lines(text.substr(begin, end - begin));
  static const std::regex two_slices(
      R"(multiply\(sum, weights \+ (\d+) \* kBlockK, pixels \+ (\d+), .*\);  // (?:r(\d+))?s(\d+)(?:\.\.\d+)? c(\d+)\.\.(\d+))");
  static const std::regex two_taps(
      R"(multiply\(sum, weights \+ (\d+) \* kBlockK, matrix_operand\(pixels \+ kOperandRowBytes \* (\d+), kOperandRowBytes \* (\d+)\), .*\);  // (?:r(\d+))?s(\d+)(?:\.\.\d+)? (?:r(\d+))?s(\d+))");
  static const std::regex a_tap_and_zeros(
      R"(multiply\(sum, weights \+ (\d+) \* kBlockK, matrix_operand\(pixels \+ kOperandRowBytes \* (\d+), zeros - \(pixels \+ kOperandRowBytes \* (\d+)\)\), .*\);  // (?:r(\d+))?s(\d+))");
  static const std::regex two_raw_slices(
      R"(multiply\(sum, a\[(\d+)\], pixels \+ (\d+), .*\);  // (?:r(\d+))?s(\d+), (\d+) of (\d+))");
  static const std::regex two_slices_of_rows(
      R"(multiply\(sum, weights \+ (\d+), pixels \+ (\d+), .*\);  // c(\d+)\.\.(\d+))");
  // A row is named where a step has several.
  const auto number = [](const std::smatch& match, std::size_t i) {
    return match[i].matched ? std::int64_t{std::stoll(match[i])} : 0;
  };
  const std::int64_t slice_step = t.multiplies_planes() ? 64 : t.uses_im2col() ? 1 : g.pixels().slice_pitch();
  std::vector<Unit> units;
  std::size_t multiplications = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("multiply(") == std::string::npos) continue;
    std::smatch match;
    const std::int64_t channels = g.slice_channels();
    if (g.swizzles_weights()) {
      RC_ASSERT(std::regex_search(line, match, two_slices_of_rows));
      const std::int64_t slice = number(match, 3) / channels;
      RC_ASSERT(number(match, 4) == (slice + 2) * channels - 1 && number(match, 1) == slice);
      units.push_back({0, 0, slice, number(match, 2)});
      units.push_back({0, 0, slice + 1, number(match, 2) + slice_step});
    } else if (!t.packs_weights()) {
      RC_ASSERT(std::regex_search(line, match, two_raw_slices));
      const std::int64_t r = number(match, 3), s = number(match, 4), pair = number(match, 5) - 1;
      RC_ASSERT(number(match, 6) == t.pipeline.slices / 2);
      RC_ASSERT(number(match, 1) == (r * one.problem.columns.taps + s) * (t.pipeline.slices / 2) + pair);
      units.push_back({r, s, 2 * pair, number(match, 2)});
      units.push_back({r, s, 2 * pair + 1, number(match, 2) + slice_step});
    } else if (std::regex_search(line, match, two_slices)) {
      const std::int64_t slice = number(match, 5) / channels;
      RC_ASSERT(number(match, 6) == (slice + 2) * channels - 1);
      units.push_back({number(match, 3), number(match, 4), slice, number(match, 2)});
      units.push_back({number(match, 3), number(match, 4), slice + 1, number(match, 2) + slice_step});
    } else if (std::regex_search(line, match, two_taps)) {
      units.push_back({number(match, 4), number(match, 5), 0, number(match, 2)});
      units.push_back({number(match, 6), number(match, 7), 0, number(match, 2) + number(match, 3)});
      RC_ASSERT(number(match, 3) >= 0);
    } else {
      RC_ASSERT(std::regex_search(line, match, a_tap_and_zeros));
      RC_ASSERT(g.has_zeros() && number(match, 2) == number(match, 3));
      units.push_back({number(match, 4), number(match, 5), 0, number(match, 2)});
    }
    if (t.packs_weights()) RC_ASSERT(number(match, 1) == static_cast<std::int64_t>(2 * multiplications));
    // Only the first multiplication of a tile's first step starts a sum.
    RC_ASSERT((line.find("step != ") != std::string::npos) == (multiplications == 0));
    ++multiplications;
  }
  RC_ASSERT(static_cast<std::int64_t>(2 * multiplications) == g.units());
  return units;
}

RC_GTEST_PROP(WgmmaSourceProperty, EachTapOfEachSliceIsMultipliedOnce, ()) {
  test::SpecLimits limits;
  limits.channels_per_group = 80;
  const std::vector<WgmmaCandidate> some = test::some_wgmma_candidates(limits);
  if (some.empty()) return;
  const WgmmaCandidate& one = some[*rc::gen::inRange<std::size_t>(0, some.size())];
  const WgmmaTiling& t = one.tiling;
  const Problem& problem = one.problem;
  const WgmmaGeometry g = one.geometry();
  const std::vector<int> order = g.tap_order();
  const std::vector<Unit> units = units_of(one);
  RC_ASSERT(units.size() == static_cast<std::size_t>(t.pipeline.slices) * order.size());
  for (std::size_t i = 0; i < units.size(); ++i) {
    // The order in which the packing kernel numbers units: slices of a tap are neighbours.
    const std::size_t tap = i / static_cast<std::size_t>(t.pipeline.slices);
    RC_ASSERT(units[i].s == g.fold().first_column(order[tap] % g.fold().taps()));
    RC_ASSERT(units[i].r == order[tap] / g.fold().taps());
    RC_ASSERT(units[i].slice == static_cast<std::int64_t>(i) % t.pipeline.slices);
    const std::int64_t pixel =
        units[i].s * problem.columns.dilation / problem.columns.stride + units[i].r * problem.rows.dilation * g.pitch();
    const std::int64_t phase = g.phase_of(units[i].s);
    if (t.multiplies_planes())  // [channel][64 pixels], the first part of a run
      RC_ASSERT(units[i].pixel_row == units[i].slice * 64);
    else if (t.uses_im2col())  // [phase][pixel][slice], phases on multiples of 1024 bytes
      RC_ASSERT(units[i].pixel_row ==
                phase * round_up(g.run_pixels() * t.pipeline.slices, 64) + pixel * t.pipeline.slices + units[i].slice);
    else
      RC_ASSERT(units[i].pixel_row == (phase * t.pipeline.slices + units[i].slice) * g.pixels().slice_pitch() + pixel);
  }
}

// What lanes staged is fenced before one of them asks for its copies, and staged over only once these have been read.
TEST(WgmmaSource, CopiesStagedRunsWhereTheyAreWholeLinesOrHaveTwoBytes) {
  const auto runs = [](const WgmmaTiling& tiling) { return tiling.tile.images == 0 && tiling.split_k == 1; };
  const struct {
    const char* spec;
    std::size_t copies, vectors;  // mentioned in the text: a function and its call, a call
  } cases[] = {
      {"input=2,20,26,34 weight=37,20,3,3 math=tf32", 2, 0},           // planes of 24 lines
      {"input=2,20,26,35 weight=37,20,3,3 math=tf32", 0, 1},           // 792 floats, 24 lines and 3 quarters
      {"input=2,20,26,35 weight=37,20,3,3 dtype=bf16", 2, 0},          // whatever their planes
      {"input=2,20,26,34 weight=37,20,3,3 math=tf32 residual", 0, 1},  // is added on the way
      {"input=2,24,26,34 weight=40,24,3,3 dtype=bf16 output_layout=nhwc", 0, 0},
  };
  for (const auto& [spec, copies, vectors] : cases) {
    const WgmmaCandidate one = first_with(spec, runs);
    const std::string text = generate(one.plan).text;
    EXPECT_EQ(WgmmaStore(one.geometry()).stores_bulk(), copies > 0) << spec;
    EXPECT_EQ(times(text, "bulk_copy_to_global("), copies) << spec;
    EXPECT_EQ(times(text, "store_all_if(y_lane"), vectors) << spec;
    if (copies == 0) continue;
    const std::size_t store = text.find("// Store: ");
    const std::size_t wait = text.find("bulk_stores_wait_read<0>()", store),
                      fence = text.find("fence_async_proxy()", wait), meet = text.find("__syncwarp()", fence),
                      ask = text.find("bulk_copy_to_global(", meet),
                      last = text.find("bulk_stores_wait_read<0>()", ask);
    EXPECT_TRUE(store < wait && wait < fence && fence < meet && meet < ask && ask < last) << spec;
    EXPECT_NE(last, std::string::npos) << spec;
  }
}

TEST(WgmmaSource, APlanSaysHowPixelsComeAndOutputsLeave) {
  const auto transposed = [](const WgmmaTiling& tiling) {
    return tiling.tile.images == 0 && tiling.transposes_input();
  };
  const auto loaded = [&](const WgmmaTiling& tiling) { return tiling.tile.images == 0 && tiling.loads_pixels(); };
  const auto im2col = [](const WgmmaTiling& tiling) { return tiling.tile.images == 0 && tiling.uses_im2col(); };
  const auto raw = [](const WgmmaTiling& tiling) { return tiling.tile.images == 0 && !tiling.packs_weights(); };
  const auto copied = [](const WgmmaTiling& tiling) {
    return tiling.tile.images == 0 && tiling.producer.copies_ahead == 2;
  };
  const auto images = [](const WgmmaTiling& tiling) { return tiling.tile.images > 0; };
  const auto boxes = [](const WgmmaTiling& tiling) { return tiling.stores_boxes() && tiling.loads_pixels(); };
  const struct {
    WgmmaCandidate one;
    std::string loading, storing;
  } cases[] = {
      {first_with("input=2,20,26,35 weight=37,20,3,3 math=tf32", loaded), "pixel(s) of a lane in flight",
       "runs, as vectors"},
      {first_with("input=2,20,26,34 weight=37,20,3,3 math=tf32", copied), "by TMA, 2 step(s) ahead of each of 4 warps",
       "runs, by TMA"},
      {first_with("input=2,20,26,34 weight=37,20,3,3 math=tf32", transposed),
       "loading: transposed before, as operand rows, by TMA in im2col mode", "runs, by TMA"},
      {first_with("input=2,128,26,35 weight=37,128,1,1 math=tf32", raw),
       "weights: loaded with each step as they lie in w", "runs, as vectors"},
      {first_with("input=3,48,7,9 weight=72,48,3,3 padding=1 math=tf32", images),
       "loading: ", "planes of whole images"},
      {first_with("input=2,24,26,34 weight=40,24,3,3 dtype=bf16 input_layout=nhwc output_layout=nhwc", loaded),
       "vector(s) of a lane in flight", "vectors of channels"},
      {first_with("input=2,24,26,34 weight=40,24,3,3 dtype=bf16 input_layout=nhwc output_layout=nhwc", im2col),
       "loading: as operand rows, by TMA in im2col mode", "vectors of channels"},
      {first_with("input=2,24,26,34 weight=64,24,3,3 dtype=bf16 output_layout=nhwc", boxes), "in flight",
       "boxes of outputs, by TMA"},
  };
  for (const auto& [one, loading, storing] : cases) {
    const std::string text = to_string(one.plan);
    EXPECT_NE(text.find(loading), std::string::npos) << text;
    EXPECT_NE(text.find("storing: " + storing + "\n"), std::string::npos) << text;
  }
}

TEST(WgmmaSource, ZerosAreThereOnlyForAUnitWithoutPartner) {
  const auto has_zeros = [](const char* spec) {
    return generate(first(spec).plan).text.find("kZerosFirstByte") != std::string::npos;
  };
  EXPECT_TRUE(has_zeros("input=4,3,99,99 weight=96,3,3,3 math=tf32"));
  EXPECT_FALSE(has_zeros("input=4,3,99,99 weight=96,3,3,4 math=tf32"));
  EXPECT_FALSE(has_zeros("input=4,16,99,99 weight=96,16,3,3 math=tf32"));
}

// Each type multiplies with its own instruction, and x is rounded for one of them only.
TEST(WgmmaSource, MultipliesInTheTypeOfTheTensors) {
  const std::string tail = "input=4,16,99,99 weight=96,16,3,3 math=tf32 dtype=";
  const std::map<std::string, std::string> instruction = {
      {"f32", "k8.f32.tf32.tf32"}, {"f16", "k16.f32.f16.f16"}, {"bf16", "k16.f32.bf16.bf16"}};
  for (const auto& [type, words] : instruction) {
    const WgmmaCandidate one = first((tail + type).c_str());
    const std::string text = generate(one.plan).text;
    EXPECT_NE(text.find(fmt::format("wgmma.mma_async.sync.aligned.m64n{}{}", one.tiling.tile.columns, words)),
              std::string::npos)
        << type;
    EXPECT_EQ(text.find("cvt.rn.tf32.f32") != std::string::npos, type == "f32") << type;
  }
}

}  // namespace
}  // namespace jitconv::codegen
