// The table of targets against the facts it restates, and its error messages.
#include "jitconv/target.h"

#include <gtest/gtest.h>

#include <string>

#include "codegen/plan.h"
#include "codegen/source.h"
#include "jitconv/error.h"
#include "jitconv/spec.h"

namespace jitconv {
namespace {

std::string message_for(const std::string& arch) {
  try {
    parse_target(arch);
  } catch (const SpecError& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_EQ(error.field(), "arch");
    return error.what();
  }
  ADD_FAILURE() << arch << " was accepted";
  return {};
}

TEST(Target, DefaultIsAnH200) {
  EXPECT_EQ(parse_target("sm_90a"), Target{});
  EXPECT_EQ(Target{}.arch(), "sm_90a");
  EXPECT_EQ(Target{}.compute_capability(), 90);
}

TEST(Target, EveryNameReadsBack) {
  for (const char* arch : {"sm_75", "sm_80", "sm_86", "sm_87", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_100a",
                           "sm_103", "sm_103a", "sm_110", "sm_110a", "sm_120", "sm_120a", "sm_121", "sm_121a"}) {
    EXPECT_EQ(parse_target(arch).arch(), arch);
  }
}

TEST(Target, LimitsOfTheProgrammingGuide) {
  struct Row {
    const char* arch;
    std::int64_t shared_per_block, shared_per_sm;
    int threads, blocks;
  };
  const Row rows[] = {
      {"sm_75", 65536, 65536, 1024, 16},    {"sm_80", 166912, 167936, 2048, 32},  {"sm_86", 101376, 102400, 1536, 16},
      {"sm_87", 166912, 167936, 1536, 16},  {"sm_89", 101376, 102400, 1536, 24},  {"sm_90", 232448, 233472, 2048, 32},
      {"sm_100", 232448, 233472, 2048, 32}, {"sm_103", 232448, 233472, 2048, 32}, {"sm_110", 232448, 233472, 1536, 24},
      {"sm_120", 101376, 102400, 1536, 24}, {"sm_121", 101376, 102400, 1536, 24},
  };
  for (const Row& row : rows) {
    const Target target = parse_target(row.arch);
    EXPECT_EQ(target.shared_bytes_per_block, row.shared_per_block) << row.arch;
    EXPECT_EQ(target.shared_bytes_per_sm, row.shared_per_sm) << row.arch;
    EXPECT_EQ(target.threads_per_sm, row.threads) << row.arch;
    EXPECT_EQ(target.blocks_per_sm, row.blocks) << row.arch;
    EXPECT_EQ(target.registers_per_sm, 65536) << row.arch;
    EXPECT_FALSE(target.arch_specific) << row.arch;
  }
}

TEST(Target, SpecificVariantHasTheSameLimits) {
  Target general = parse_target("sm_100");
  general.arch_specific = true;
  EXPECT_EQ(general, parse_target("sm_100a"));
}

TEST(Target, NoSpecificNameBeforeHopper) {
  Target target;
  target.major = 8;
  target.minor = 6;
  EXPECT_EQ(target.arch(), "sm_86");
  EXPECT_NE(message_for("sm_86a").find("not supported"), std::string::npos);
}

TEST(Target, OldArchitecturesNameTheirLastToolkit) {
  EXPECT_NE(message_for("sm_70").find("arch \"sm_70\" (CUDA 12.9 was the last toolkit"), std::string::npos);
  EXPECT_NE(message_for("sm_61").find("CUDA 12.9"), std::string::npos);
  EXPECT_NE(message_for("sm_37").find("CUDA 11.8"), std::string::npos);
  EXPECT_NE(message_for("sm_30").find("CUDA 10.2"), std::string::npos);
  EXPECT_NE(message_for("sm_21").find("CUDA 8.0"), std::string::npos);
  EXPECT_NE(message_for("sm_101a").find("sm_110"), std::string::npos);
}

TEST(Target, UnknownNamesListTheKnownOnes) {
  for (const char* arch : {"", "sm_", "sm_a", "sm_90b", "sm_9", "sm_090", "sm_+90", "sm_90aa", "SM_90", "compute_90",
                           "sm_99999999999999999999", "sm_90 ", "sm_91"}) {
    EXPECT_NE(message_for(arch).find("known are sm_75, sm_80, sm_86, sm_87, sm_89, sm_90, sm_90a, sm_100"),
              std::string::npos)
        << arch;
  }
}

TEST(Target, TextNamesEveryLimit) {
  EXPECT_EQ(to_string(Target{}),
            "sm_90a sm_count=132 shared_bytes_per_block=232448 shared_bytes_per_sm=233472 registers_per_sm=65536 "
            "threads_per_sm=2048 blocks_per_sm=32 l2_bytes=62914560");
}

TEST(Target, ALimitThatBreaksItsRuleIsNamed) {
  const ConvSpec spec = parse_spec("input=2,16,20,24 weight=32,16,3,3 math=tf32");
  const auto expect_refused = [&](const Target& target, const char* field, const std::string& value) {
    for (const bool all : {false, true}) {
      try {
        if (all) {
          codegen::enumerate_plans(spec, target, 1);
        } else {
          codegen::make_plan(spec, target);
        }
        ADD_FAILURE() << field << " was accepted";
      } catch (const SpecError& error) {
        EXPECT_EQ(error.code(), ErrorCode::invalid_spec);
        EXPECT_EQ(error.field(), std::string("target.") + field);
        EXPECT_NE(std::string(error.what()).find(" is " + value + ", must be "), std::string::npos) << error.what();
      }
    }
  };
  struct Field {
    const char* name;
    int Target::*count;
  };
  for (const auto& [name, count] :
       {Field{"sm_count", &Target::sm_count}, Field{"registers_per_sm", &Target::registers_per_sm},
        Field{"threads_per_sm", &Target::threads_per_sm}, Field{"blocks_per_sm", &Target::blocks_per_sm}}) {
    for (const int value : {0, -1, INT32_MAX}) {
      Target target;
      target.*count = value;
      expect_refused(target, name, std::to_string(value));
    }
  }
  for (const auto& [name, bytes] :
       {std::pair{"shared_bytes_per_block", &Target::shared_bytes_per_block},
        std::pair{"shared_bytes_per_sm", &Target::shared_bytes_per_sm}, std::pair{"l2_bytes", &Target::l2_bytes}}) {
    Target target;
    target.*bytes = -1;
    expect_refused(target, name, "-1");
    target.*bytes = 0;
    codegen::make_plan(spec, target);
  }
}

TEST(Target, HostStandsInForAnyGpu) {
  EXPECT_EQ(Target{}.execution, Execution::gpu);
  EXPECT_EQ(parse_target("sm_80").execution, Execution::gpu);
  EXPECT_EQ(Target::host(), Target::host(Target{}));
  EXPECT_NE(Target::host(), Target{});

  Target host = Target::host(parse_target("sm_80"));
  EXPECT_EQ(host.execution, Execution::host);
  EXPECT_EQ(host.arch(), "sm_80") << "the architecture is the generated code's";
  EXPECT_EQ(to_string(host).substr(0, 27), "sm_80 on the host sm_count=");
  EXPECT_EQ(Target::host(host), host);
  host.execution = Execution::gpu;
  EXPECT_EQ(host, parse_target("sm_80")) << "every limit is kept";
}

// What runs on the CPU is what the GPU would get, to the byte.
TEST(Target, HostChangesNeitherPlanNorSource) {
  for (const char* text : {"input=2,16,20,24 weight=32,16,3,3 padding=1", "input=1,8,33,17 weight=8,1,5,5 groups=8",
                           "input=2,32,16,16 weight=8,32,1,1 dtype=f16 bias=1 activation=relu",
                           "input=1,3,40,40 weight=16,3,5,9 dilation=2,3 input_layout=nhwc output_layout=nhwc"}) {
    const ConvSpec spec = parse_spec(text);
    for (const char* arch : {"sm_75", "sm_90a"}) {
      const Target gpu = parse_target(arch);
      const codegen::ConvPlan expected = codegen::make_plan(spec, gpu);
      codegen::ConvPlan plan = codegen::make_plan(spec, Target::host(gpu));
      EXPECT_EQ(codegen::generate(plan), codegen::generate(expected)) << arch << ": " << text;
      EXPECT_EQ(codegen::to_string(plan), codegen::to_string(expected)) << arch << ": " << text;
      EXPECT_EQ(plan.target.execution, Execution::host);
      plan.target.execution = Execution::gpu;
      EXPECT_EQ(plan, expected) << arch << ": " << text;
    }
  }
}

}  // namespace
}  // namespace jitconv
