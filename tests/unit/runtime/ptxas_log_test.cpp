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

// As ptxas 13.0 says it.

std::vector<codegen::KernelEntry> two_entries() {
  std::vector<codegen::KernelEntry> entries(2);
  entries[0].name = "conv_pack";
  entries[1].name = "conv";
  return entries;
}

std::string log_with(const std::string& remark, const std::string& frame = "0 bytes stack frame, 0") {
  return remark +
         "ptxas info    : 0 bytes gmem\n"
         "ptxas info    : Compiling entry function 'conv' for 'sm_90a'\n"
         "ptxas info    : Function properties for conv\n"
         "    " +
         frame +
         " bytes spill stores, 0 bytes spill loads\n"
         "ptxas info    : Used 168 registers, used 1 barriers\n"
         "ptxas info    : Compile time = 170.273 ms\n"
         "ptxas info    : Compiling entry function 'conv_pack' for 'sm_90a'\n"
         "ptxas info    : Function properties for conv_pack\n"
         "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
         "ptxas info    : Used 13 registers, used 0 barriers\n"
         "ptxas info    : Compile time = 3.178 ms\n";
}

TEST(Defect, AKernelAsPlannedHasNone) {
  EXPECT_EQ(defect(log_with(""), two_entries()), std::nullopt);
  EXPECT_EQ(defect("", two_entries()), std::nullopt);
  EXPECT_EQ(defect(log_with("ptxas info    : (C7519) warpgroup.arrive is injected in around line 1175 by compiler to "
                            "allow use of registers in GMMA in function 'conv'\n"),
                   two_entries()),
            std::nullopt);
}

TEST(Defect, IsWhatTakesAsynchronyAway) {
  for (const char* remark :
       {"(C7507) Potential Performance Loss: 'setmaxnreg' ignored to maintain minimum register requirements.",
        "(C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to insufficient register "
        "resources for the wgmma pipeline",
        "(C7514) Potential Performance Loss: wgmma.mma_async instructions are serialized due to non wgmma instructions "
        "defining accumulator registers of a wgmma between start and end of the pipeline stage"}) {
    EXPECT_EQ(defect(log_with(std::string("ptxas info    : ") + remark + "\n"), two_entries()), remark);
    EXPECT_EQ(defect(log_with(std::string("ptxas info    : ") + remark + " in the function 'conv'\n"), two_entries()),
              remark);
  }
  EXPECT_EQ(defect(log_with("ptxas info    : (C7517) warpgroup.wait is injected in around line 1199 by compiler to "
                            "allow use of registers defined by GMMA in function 'conv'\n"),
                   two_entries()),
            "(C7517) warpgroup.wait is injected in around line 1199 by compiler to allow use of registers defined by "
            "GMMA");
}

TEST(Defect, IsASpillOfAnEntry) {
  EXPECT_EQ(defect(log_with("", "48 bytes stack frame, 40"), two_entries()),
            "48 bytes of a thread's values are in local memory");
  std::vector<codegen::KernelEntry> others(1);
  others[0].name = "another";
  EXPECT_EQ(defect(log_with("", "48 bytes stack frame, 40"), others), std::nullopt);
}

}  // namespace
}  // namespace jitconv::runtime
