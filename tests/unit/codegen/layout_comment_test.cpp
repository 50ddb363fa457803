// The form of the comment with the map of shared memory and the table of barriers. That kernels list the barriers they
// have, with the counts they give them, is a test of tests/golden.
#include "codegen/text/layout_comment.h"

#include <gtest/gtest.h>

namespace jitconv::codegen {
namespace {

TEST(LayoutComment, HasTablesWithAlignedColumns) {
  LayoutComment comment;
  EXPECT_EQ(comment.text(), "");
  comment.memory("0", "stages").memory("kBarriersFirstByte", "barriers");
  comment.barrier("full[kStages]", "1", "a loader", "consumers");
  EXPECT_EQ(comment.text(),
            "// Shared memory, by first byte:\n"
            "//   0                   stages\n"
            "//   kBarriersFirstByte  barriers\n"
            "// Barriers:\n"
            "//   name           arrivals  who arrives  who waits\n"
            "//   full[kStages]  1         a loader     consumers\n");
}

TEST(LayoutComment, SaysWhatItsPlacesCount) {
  EXPECT_EQ(LayoutComment("float").memory("0", "sums").text(), "// Shared memory, by first float:\n//   0  sums\n");
}

}  // namespace
}  // namespace jitconv::codegen
