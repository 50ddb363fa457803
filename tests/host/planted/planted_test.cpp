// Every rule is broken on purpose: kernels with one bug each, which must be found at its line, block, thread and
// address whatever the order of threads and the landing of copies, and whose repaired twins must run without a finding.
#include <gtest/gtest.h>

#include <ostream>
#include <set>

#include "host/planted/kernels.h"

namespace jitconv::test {
namespace {

using host::Rule;

struct Expected {
  Rule rule;
  std::string marker;  // the line has "// here: <marker>"
  std::uint32_t thread;
  std::string address;
  std::uint32_t block = 0;
};

// Which of two accesses comes second, and so is named, depends on the order of threads: then there are several, each of
// which must show up for some seed, and each run must show one.
struct Planted {
  std::string kernel;
  std::vector<Expected> expected;
  std::string words;  // in the text of the finding
  TestKernel::Shape shape{};
  bool needs_gnu = false;  // clang's hooks leave out accesses to an array on the thread's own stack
  codegen::TensorMapShape y_map = {};
};

void PrintTo(const Planted& bug, std::ostream* out) { *out << bug.kernel; }

/// All 256 floats of y, 64 of which are a box.
codegen::TensorMapShape boxes_of_y() {
  return {.rank = 4, .extents = {8, 4, 4, 2}, .strides = {1, 8, 32, 128}, .box = {8, 2, 2, 2}};
}

const std::vector<Planted>& planted() {
  static const std::vector<Planted> list = {
      {"race_missing_barrier_after_store",
       {{Rule::race, "load", 40, "shared + 0x0 (4 bytes)"}, {Rule::race, "store", 0, "shared + 0x0 (4 bytes)"}},
       "nothing orders the two"},
      {"race_missing_barrier_before_store",
       {{Rule::race, "load", 40, "shared + 0x0 (4 bytes)"}, {Rule::race, "store", 0, "shared + 0x0 (4 bytes)"}},
       "nothing orders the two"},
      {"race_missing_syncwarp",
       {{Rule::race, "load", 5, "shared + 0x0 (4 bytes)"}, {Rule::race, "store", 0, "shared + 0x0 (4 bytes)"}},
       "nothing orders the two"},
      {"race_syncwarp_between_warps",
       {{Rule::race, "load", 32, "shared + 0x0 (4 bytes)"}, {Rule::race, "store", 0, "shared + 0x0 (4 bytes)"}},
       "nothing orders the two"},
      {"race_syncwarp_of_half_a_warp",
       {{Rule::race, "load", 20, "shared + 0x0 (4 bytes)"}, {Rule::race, "store", 0, "shared + 0x0 (4 bytes)"}},
       "nothing orders the two"},
      {"race_stage_refilled_too_early",
       {{Rule::race, "copy", 0, "shared + 0x0 (4 bytes)"},
        {Rule::unfinished_copy, "load", 40, "shared + 0x0 (4 bytes)"}},
       "in line"},
      {"race_copied_without_barrier",
       {{Rule::race, "load", 1, "shared + 0x0 (4 bytes)"}, {Rule::race, "store", 0, "shared + 0x0 (4 bytes)"}},
       "nothing orders the two"},
      {"race_two_threads_one_output",
       {{Rule::race, "first", 9, "y + 0x14 (4 bytes)"}, {Rule::race, "second", 41, "y + 0x14 (4 bytes)"}},
       "nothing orders the two"},
      {"race_two_blocks_one_output",
       {{Rule::race, "store", 3, "y + 0x0 (4 bytes)", 0}, {Rule::race, "store", 3, "y + 0x0 (4 bytes)", 1}},
       "thread 3 of block (",
       {.blocks = 2}},
      {"race_output_read_by_another_block",
       {{Rule::race, "store", 0, "y + 0x0 (4 bytes)", 0}, {Rule::race, "load", 0, "y + 0x0 (4 bytes)", 1}},
       "thread 0 of block (",
       {.blocks = 2}},

      {"unfinished_copy_read_before_wait",
       {{Rule::unfinished_copy, "load", 2, "shared + 0xc (4 bytes)"}},
       "the copy that thread 2 started in line"},
      {"unfinished_copy_wait_count_too_large",
       {{Rule::unfinished_copy, "load", 33, "shared + 0x4 (4 bytes)"}},
       "the copy that thread 33 started in line"},
      {"unfinished_copy_missing_commit",
       {{Rule::unfinished_copy, "load", 33, "shared + 0x0 (4 bytes)"}},
       "has not been waited for"},
      {"unfinished_copy_overwritten",
       {{Rule::unfinished_copy, "store", 1, "shared + 0x0 (4 bytes)"}},
       "has not been waited for"},
      {"unfinished_copy_read_by_another_thread",
       {{Rule::unfinished_copy, "load", 63, "shared + 0x0 (4 bytes)"}},
       "the copy that thread 0 started in line"},

      {"divergent_barrier_early_return",
       {{Rule::divergent_barrier, "barrier", 37, ""}},
       "thread 37 returned without coming to this barrier, where 63 of 64 threads wait"},
      {"divergent_barrier_in_a_branch",
       {{Rule::divergent_barrier, "warp", 3, ""}},
       "thread 0 waits at this warp operation for thread 3, which waits at line"},
      {"divergent_barrier_different_lines",
       {{Rule::divergent_barrier, "other", 32, ""}},
       "thread 32 comes to this barrier while thread 0"},
      {"divergent_barrier_mask_without_caller",
       {{Rule::divergent_barrier, "warp", 52, ""}},
       "thread 52 is lane 20, which the mask 0xffff of this warp operation leaves out"},
      {"divergent_barrier_shuffle_after_return",
       {{Rule::divergent_barrier, "warp", 39, ""}},
       "thread 39 returned without coming to this warp operation"},

      {"uninitialised_element_never_written",
       {{Rule::uninitialised, "load", 5, "shared + 0xfc (4 bytes)"}},
       "nothing in this block has written there"},
      {"uninitialised_left_by_another_block",
       {{Rule::uninitialised, "load", 0, "shared + 0x0 (4 bytes)", 1}},
       "nothing in this block has written there",
       {.blocks = 2}},

      {"out_of_bounds_after_the_end",
       {{Rule::out_of_bounds, "store", 63, "y + 0x400 (4 bytes)"}},
       "store of 4 bytes outside the buffers of the launch; y has 1024 bytes"},
      {"out_of_bounds_before_the_start",
       {{Rule::out_of_bounds, "load", 0, "x - 0x4 (4 bytes)"}},
       "load of 4 bytes outside the buffers of the launch; x has 1000 bytes"},
      {"out_of_bounds_last_vector",
       {{Rule::out_of_bounds, "load", 8, "x + 0x3e0 (16 bytes)"}},
       "load of 16 bytes outside the buffers of the launch; x has 1000 bytes"},
      {"out_of_bounds_far_away", {{Rule::out_of_bounds, "load", 1, "y + 0x"}}, "outside the buffers"},
      {"out_of_bounds_shared_after_the_end",
       {{Rule::out_of_bounds, "store", 63, "shared + 0x100 (4 bytes)"}},
       "the block has 256 bytes of shared memory"},
      {"out_of_bounds_shared_before_the_start",
       {{Rule::out_of_bounds, "store", 12, "shared - 0x4 (4 bytes)"}},
       "the block has 256 bytes of shared memory"},
      {"out_of_bounds_copy_source",
       {{Rule::out_of_bounds, "copy", 0, "x - 0x4 (4 bytes)"}},
       "asynchronous copy of 4 bytes outside the buffers"},

      {"misaligned_float4", {{Rule::misaligned, "load", 1, "x + 0x14 (16 bytes)"}}, "at no multiple of its size"},
      {"misaligned_shared_float2",
       {{Rule::misaligned, "store", 3, "shared + 0x54 (8 bytes)"}},
       "at no multiple of its size"},
      {"read_only_store_to_input", {{Rule::read_only, "store", 17, "x + 0x44 (4 bytes)"}}, "to an input"},
      {"race_missing_proxy_fence",
       {{Rule::race, "multiply", 0, "shared + 0x0 (128 bytes)"}},
       "without a fence for the async proxy",
       {.threads = 128, .shared_bytes = 4096}},
      {"race_fence_before_the_store",
       {{Rule::race, "multiply", 0, "shared + 0x8fc (4 bytes)"}},
       "thread 63 wrote there in line",
       {.threads = 128, .shared_bytes = 4096}},
      {"race_bulk_copy_over_ordinary_stores",
       {{Rule::race, "copy", 0, "shared + 0x0 (64 bytes)"}},
       "without a fence for the async proxy"},
      {"race_bulk_copy_over_a_reader",
       {{Rule::race, "copy", 0, "shared + 0x4 (60 bytes)"}},
       "thread 32 read there in line"},
      {"unfinished_copy_multiplied_before_wait",
       {{Rule::unfinished_copy, "multiply", 0, "shared + 0x800 (128 bytes)"}},
       "the copy that thread 0 started in line",
       {.threads = 128, .shared_bytes = 4096}},
      {"unfinished_copy_wrong_parity",
       {{Rule::unfinished_copy, "load", 5, "shared + 0x14 (4 bytes)"}, {Rule::divergent_barrier, "wait", 5, ""}},
       "thread "},
      {"unfinished_copy_waited_by_one_thread",
       {{Rule::unfinished_copy, "load", 40, "shared + 0x0 (4 bytes)"},
        {Rule::race, "load", 40, "shared + 0x0 (4 bytes)"}},
       "in line"},
      {"unfinished_copy_at_the_end",
       {{Rule::unfinished_copy, "copy", 9, "shared + 0x0 (64 bytes)"}},
       "the block ended, and nobody had waited for it"},
      {"unfinished_copy_store_overwritten",
       {{Rule::unfinished_copy, "wait", 3, "shared + 0x2 (126 bytes)"}},  // of the first float, the upper half
       "what the copy in line"},
      {"unfinished_copy_store_at_the_end",
       {{Rule::unfinished_copy, "copy", 5, "shared + 0x0 (64 bytes)"}},
       "the block ended, and nobody had waited for it"},
      {"race_bulk_store_without_fence",
       {{Rule::race, "copy", 0, "shared + 0x0 (128 bytes)"}},
       "without a fence for the async proxy"},
      {"race_bulk_store_reused_without_syncwarp",
       {{Rule::race, "store", 9, "shared + 0x24 (4 bytes)"}, {Rule::race, "copy", 0, "shared + 0x24 (92 bytes)"}},
       "in line"},
      {"out_of_bounds_bulk_store",
       {{Rule::out_of_bounds, "copy", 0, "y + 0x3c0 (128 bytes)"}},
       "bulk copy of 128 bytes outside the buffers of the launch; y has 1024 bytes"},
      {"race_tensor_store_without_fence",
       {{Rule::race, "copy", 0, "shared + 0x0 (256 bytes)"}},
       "without a fence for the async proxy",
       {},
       false,
       boxes_of_y()},
      {"race_tensor_stores_of_two_warps",
       {{Rule::race, "copy", 0, "y + 0x20 (32 bytes)"}, {Rule::race, "copy", 32, "y + 0x20 (32 bytes)"}},
       "wrote there in line",
       {},
       false,
       boxes_of_y()},
      {"unfinished_copy_tensor_store_overwritten",
       {{Rule::unfinished_copy, "wait", 3, "shared + 0x2 (254 bytes)"}},  // of the first float, the upper half
       "what the copy in line",
       {},
       false,
       boxes_of_y()},
      {"unfinished_copy_tensor_store_at_the_end",
       {{Rule::unfinished_copy, "copy", 5, "shared + 0x0 (256 bytes)"}},
       "the block ended, and nobody had waited for it",
       {},
       false,
       boxes_of_y()},
      {"misaligned_tensor_store",
       {{Rule::misaligned, "copy", 0, "shared + 0x40 (256 bytes)"}},
       "in shared memory at no multiple of 128",
       {.shared_bytes = 512},
       false,
       boxes_of_y()},
      {"out_of_bounds_tensor_store",
       {{Rule::out_of_bounds, "copy", 0, "shared + 0x0 (256 bytes)"}},
       "from index -1 along axis 1 on: no store begins before its tensor",
       {},
       false,
       boxes_of_y()},
      {"unfinished_multiplication_operand_overwritten",
       {{Rule::unfinished_multiplication, "store", 7, "shared + 0x810 (4 bytes)"}},
       "the multiplication of threads 0 to 127 in line",
       {.threads = 128, .shared_bytes = 4096}},
      {"unfinished_multiplication_register_operand_changed",
       {{Rule::unfinished_multiplication, "wait", 9, ""}},
       "thread 9 of the warpgroup changed its part of an operand after the multiplication in line",
       {.threads = 128, .shared_bytes = 4096}},
      {"unfinished_multiplication_stage_released_early",
       {{Rule::unfinished_multiplication, "copy", 128, "shared + 0x800 (256 bytes)"}},
       "the multiplication of threads 0 to 127 in line",
       {.threads = 256, .shared_bytes = 4096}},
      {"unfinished_multiplication_one_group_too_few",
       {{Rule::unfinished_multiplication, "store", 100, "shared + 0x900 (4 bytes)"}},
       "nothing says that it is complete",
       {.threads = 128, .shared_bytes = 4096}},
      {"unfinished_multiplication_sums_changed",
       {{Rule::unfinished_multiplication, "store", 77, ""}},
       "store of 4 bytes of the sums of the multiplication in line",
       {.threads = 128, .shared_bytes = 4096},
       true},
      {"unfinished_multiplication_sums_read",
       {{Rule::unfinished_multiplication, "load", 77, ""}},
       "load of 4 bytes of the sums of the multiplication in line",
       {.threads = 128, .shared_bytes = 4096},
       true},
      {"unfinished_multiplication_missing_begin",
       {{Rule::unfinished_multiplication, "multiply", 0, ""}},
       "and no multiply_begin() orders that before this one",
       {.threads = 128, .shared_bytes = 4096}},
      {"unfinished_multiplication_at_the_end",
       {{Rule::unfinished_multiplication, "multiply", 0, ""}},
       "this multiplication had not been waited for",
       {.threads = 128, .shared_bytes = 4096}},
      {"divergent_barrier_different_operands",
       {{Rule::divergent_barrier, "multiply", 64, ""}},
       "thread 64 of the warpgroup multiplies the operands",
       {.threads = 128, .shared_bytes = 4096}},
      {"divergent_barrier_half_a_warpgroup",
       {{Rule::divergent_barrier, "multiply", 64, ""}},
       "deadlock: thread 0 waits at this warpgroup operation for thread 64, which has returned",
       {.threads = 128, .shared_bytes = 4096}},
      {"divergent_barrier_too_few_bytes",
       {{Rule::divergent_barrier, "wait", 0, ""}},
       "shared + 0x80, whose phase 0 lacks 0 of 1 arrivals and 16 announced bytes that no copy brings"},
      {"divergent_barrier_too_many_bytes",
       {{Rule::divergent_barrier, "wait", 0, ""}},
       "shared + 0x80, whose phase 0 lacks 0 of 2 arrivals and got 16 bytes that nobody announced"},
      {"divergent_barrier_too_few_arrivals",
       {{Rule::divergent_barrier, "wait", 33, ""}},
       "deadlock: thread 33 waits for the barrier at shared + 0x80, whose phase 0 lacks 1 of 2 arrivals"},
      {"divergent_barrier_registers_never_free",
       {{Rule::divergent_barrier, "grow", 128, ""}, {Rule::divergent_barrier, "grow", 256, ""}},
       " in all: others have given back 7168",
       {.threads = 384}},
      {"registers_no_multiple_of_eight",
       {{Rule::registers, "shrink", 0, ""}},
       "42 registers: must be a multiple of 8 from 24 to 256",
       {.threads = 128}},
      {"barrier_misuse_not_initialised",
       {{Rule::barrier_misuse, "arrive", 4, "shared + 0x80 (8 bytes)"}},
       "arrival: this is no barrier yet"},
      {"barrier_misuse_not_visible",
       {{Rule::barrier_misuse, "arrive", 4, "shared + 0x80 (8 bytes)"}},
       "thread 0 made this a barrier in line"},
      {"barrier_misuse_not_ordered", {{Rule::barrier_misuse, "arrive", 4, "shared + 0x80 (8 bytes)"}}, "arrival: "},
      {"barrier_misuse_initialised_twice",
       {{Rule::barrier_misuse, "init", 1, "shared + 0x80 (8 bytes)"},
        {Rule::barrier_misuse, "init", 0, "shared + 0x80 (8 bytes)"}},
       "this is a barrier already"},
      {"barrier_misuse_too_many_arrivals",
       {{Rule::barrier_misuse, "arrive", 4, "shared + 0x80 (8 bytes)"}},
       "phase 0 takes 1 arrivals, which have all come: it waits for 64 more bytes"},
      {"barrier_misuse_overwritten",
       {{Rule::barrier_misuse, "store", 32, "shared + 0x80 (4 bytes)"}},
       "thread 0 made this a barrier in line"},

      {"overflow_signed_index", {{Rule::overflow, "add", 2, ""}}, "signed overflow in 2147483647 + 1"},
      {"overflow_shift", {{Rule::overflow, "shift", 6, ""}}, "1 by 32"},
  };
  return list;
}

// Entries `broken` and `repaired` of one text, and the lines the markers are in.
std::string with_entries(const std::string& text, bool maps_y) {
  const std::string parameters =
      maps_y ? "const float* x, const __grid_constant__ TensorMap y" : "const float* x, float* y";
  const std::string arguments = maps_y ? "(x, &y)" : "(x, y)";
  return text + "extern \"C\" __global__ void broken(" + parameters + ") { kernel<false>" + arguments + "; }\n" +
         "extern \"C\" __global__ void repaired(" + parameters + ") { kernel<true>" + arguments + "; }\n";
}

class PlantedBug : public testing::TestWithParam<Planted> {};

TEST_P(PlantedBug, IsFoundAndItsRepairIsClean) {
  const Planted& bug = GetParam();
  if (bug.needs_gnu && host::find_compiler().kind == host::Compiler::Kind::clang) GTEST_SKIP();
  const std::string text = with_entries(kernel_text(bug.kernel), bug.y_map.rank != 0);
  TestKernel kernel(text, {"broken", "repaired"}, host::Purpose::check, bug.y_map);
  std::set<std::size_t> seen;
  for (const host::Landing landing : {host::Landing::early, host::Landing::late, host::Landing::random}) {
    for (std::uint64_t seed = 1; seed <= 16; ++seed) {
      const host::Settings settings{.seed = seed, .landing = landing};
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", landing " << static_cast<int>(landing));

      const host::Report broken = kernel.run("broken", bug.shape, settings);
      ASSERT_FALSE(broken.findings.empty());
      const host::Finding& found = broken.findings.front();
      bool expected = false;
      for (std::size_t i = 0; i < bug.expected.size(); ++i) {
        const Expected& one = bug.expected[i];
        if (found.rule != one.rule || found.line != line_with(text, "// here: " + one.marker + "\n")) continue;
        if (found.thread != one.thread || found.block != std::array<std::uint32_t, 3>{one.block, 0, 0}) continue;
        if (found.address.substr(0, one.address.size()) != one.address) continue;
        if (one.address.empty() != found.address.empty()) continue;
        expected = true;
        seen.insert(i);
      }
      EXPECT_TRUE(expected) << to_string(found);
      EXPECT_EQ(found.kernel, "broken");
      EXPECT_NE(found.text.find(bug.words), std::string::npos) << to_string(found);
      EXPECT_EQ(found.text.find("{line}"), std::string::npos) << to_string(found);
      for (const host::Finding& finding : broken.findings) {
        bool of_the_bug = false;
        for (const Expected& one : bug.expected) of_the_bug = of_the_bug || one.rule == finding.rule;
        EXPECT_TRUE(of_the_bug) << "not planted: " << to_string(finding);
      }

      const host::Report repaired = kernel.run("repaired", bug.shape, settings);
      for (const host::Finding& finding : repaired.findings) ADD_FAILURE() << to_string(finding);
      EXPECT_EQ(repaired.blocks, bug.shape.blocks);
    }
  }
  EXPECT_EQ(seen.size(), bug.expected.size()) << "not every order of the two accesses came up";
}

INSTANTIATE_TEST_SUITE_P(Kernels, PlantedBug, testing::ValuesIn(planted()),
                         [](const auto& instance) { return instance.param.kernel; });

TEST(PlantedBugs, CoverEveryRule) {
  std::set<Rule> rules;
  for (const Planted& bug : planted())
    for (const Expected& one : bug.expected) rules.insert(one.rule);
  for (int rule = 0; rule <= static_cast<int>(Rule::overflow); ++rule)
    EXPECT_TRUE(rules.count(static_cast<Rule>(rule))) << to_string(static_cast<Rule>(rule));
}

}  // namespace
}  // namespace jitconv::test
