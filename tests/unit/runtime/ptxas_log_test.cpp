// Reading ptxas -v.
#include "runtime/ptxas_log.h"

#include <gtest/gtest.h>

namespace jitconv::runtime {
namespace {

TEST(PtxasLog, FindsEachKernelWhateverTheOrder) {
  const std::string log =
      "ptxas info    : 0 bytes gmem, 24 bytes cmem[3]\n"
      "ptxas info    : Compiling entry function 'second' for 'sm_90a'\n"
      "ptxas info    : Function properties for second\n"
      "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 32 registers, used 0 barriers\n"
      "ptxas info    : Compile time = 1.5 ms\n"
      "ptxas info    : Compiling entry function 'other' for 'sm_90a'\n"
      "ptxas info    : Used 1 registers\n"
      "ptxas info    : Compiling entry function 'first' for 'sm_90a'\n"
      "ptxas info    : Function properties for first\n"
      "    112 bytes stack frame, 152 bytes spill stores, 168 bytes spill loads\n"
      "ptxas info    : Used 255 registers, used 1 barriers, 112 bytes cumulative stack size, 4096 bytes smem\n";
  std::vector<codegen::KernelEntry> entries(2);
  entries[0].name = "first";
  entries[0].threads = 128;
  entries[0].shared_bytes = 1000;
  entries[1].name = "second";
  entries[1].threads = 64;
  const std::vector<Resources> expected = {{255, 112, 5096, 128}, {32, 0, 0, 64}};
  EXPECT_EQ(resources_from_log(log, entries), expected);
}

TEST(PtxasLog, ALogWithoutNumbersGivesWhatTheSourceSays) {
  std::vector<codegen::KernelEntry> entries(1);
  entries[0].name = "k";
  entries[0].threads = 32;
  entries[0].shared_bytes = 7;
  EXPECT_EQ(resources_from_log("", entries), (std::vector<Resources>{{0, 0, 7, 32}}));
  EXPECT_EQ(resources_from_log("Compiling entry function 'k\nUsed registers\n' bytes smem", entries),
            (std::vector<Resources>{{0, 0, 7, 32}}));
}

}  // namespace
}  // namespace jitconv::runtime
