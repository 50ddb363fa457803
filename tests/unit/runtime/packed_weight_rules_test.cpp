// The checks on a launch's pointers where a kernel packs its weights, adds partial sums or transposes its input: who
// may bring packed weights, and where the regions of scratch are. No driver.
#include "launch_rules_support.h"

namespace jitconv::runtime_test {
namespace {

constexpr std::int64_t kPackedRegion = 1024, kSumsRegion = kWorkspaceBytes - kPackedRegion;

/// A kernel that packs weights, and pointers for a launch of it that has packed them.
struct Packing {
  ConvSpec spec = full_spec();
  runtime::LaunchRules rules = rules_for(spec, scratch_of(kPackedRegion, kSumsRegion));
  LaunchArgs args = addresses_for(spec);
  Packing() {
    args.packed_w = reinterpret_cast<const void*>(std::uintptr_t{7} << 34);
    args.w = nullptr;
  }
  std::string packing_refused(const void* w, const void* packed_w) const {
    return refused([&] { rules.check_packing(w, packed_w); });
  }
};

/// The words with which `check` refuses.
std::string words(const std::function<void()>& check) {
  try {
    check();
    return "";
  } catch (const SpecError& error) {
    return error.what();
  }
}

std::string words(const runtime::LaunchRules& rules, const LaunchArgs& args) {
  return words([&] { rules.check(runtime::given_pointers(args)); });
}

const void* of(const runtime::TensorPointers& pointers, Tensor tensor) {
  return pointers[static_cast<std::size_t>(tensor)];
}

TEST(PackedWeightRules, TakeOneOfTheTwo) {
  Packing p;
  EXPECT_EQ(refused(p.rules, p.args), "");
  EXPECT_TRUE(p.rules.packed(runtime::given_pointers(p.args)));
  p.args.w = addresses_for(p.spec).w;
  EXPECT_EQ(refused(p.rules, p.args), "w") << "both";
  p.args.packed_w = nullptr;
  EXPECT_EQ(refused(p.rules, p.args), "");
  EXPECT_FALSE(p.rules.packed(runtime::given_pointers(p.args)));
  p.args.w = nullptr;
  EXPECT_EQ(refused(p.rules, p.args), "w") << "neither";
}

TEST(PackedWeightRules, EveryOtherPointerIsNeededInBothModes) {
  const Packing good;
  for (const bool packed : {false, true}) {
    LaunchArgs args = good.args;
    if (!packed) {
      args.packed_w = nullptr;
      args.w = addresses_for(good.spec).w;
    }
    const auto without = [&](auto member) {
      LaunchArgs less = args;
      less.*member = nullptr;
      return refused(good.rules, less);
    };
    EXPECT_EQ(refused(good.rules, args), "");
    EXPECT_EQ(without(&LaunchArgs::x), "x");
    EXPECT_EQ(without(&LaunchArgs::bias), "bias");
    EXPECT_EQ(without(&LaunchArgs::residual), "residual");
    EXPECT_EQ(without(&LaunchArgs::y), "y");
    EXPECT_EQ(without(&LaunchArgs::workspace), "workspace");
  }
}

TEST(PackedWeightRules, RefusalsSayWhatToDo) {
  Packing p;
  p.args.w = at(0x1000);
  EXPECT_EQ(words(p.rules, p.args), "w is 0x1000, must be null: the launch has packed_w");
  p.args.w = p.args.packed_w = nullptr;
  EXPECT_EQ(words(p.rules, p.args), "w is null, must point to 4608 bytes, or packed_w to 1024");
  p.args.packed_w = at(0x1080);
  EXPECT_EQ(words(p.rules, p.args), "packed_w is 0x1080, must be a multiple of 256");
  p.args.packed_w = p.args.workspace;
  EXPECT_EQ(words(p.rules, p.args),
            "workspace at 0x1800000000 (3072 bytes) overlaps packed_w at 0x1800000000 (1024 bytes)");
  p.args.packed_w = p.args.y;
  EXPECT_EQ(words(p.rules, p.args).substr(0, 19), "y at 0x1400000000 (");
  EXPECT_NE(words(p.rules, p.args).find(" overlaps packed_w at 0x1400000000 (1024 bytes); only residual may be y"),
            std::string::npos);

  p.rules = rules_for(p.spec, scratch_of(0, kWorkspaceBytes));
  p.args.packed_w = at(0x1000);
  EXPECT_EQ(words(p.rules, p.args), "w is null, must point to 4608 bytes");
  p.args.w = addresses_for(p.spec).w;
  EXPECT_EQ(words(p.rules, p.args), "packed_w is 0x1000, must be null: this kernel takes w as it is");
}

TEST(PackedWeightRules, RefusalsOfPackingSayWhatToDo) {
  const Packing p;
  const auto packing = [&p](const void* w, const void* packed_w) {
    return words([&] { p.rules.check_packing(w, packed_w); });
  };
  EXPECT_EQ(packing(nullptr, at(0x1000)), "w is null, must point to 4608 bytes");
  EXPECT_EQ(packing(at(0x1000), nullptr), "packed_w is null, must point to 1024 bytes");
  EXPECT_EQ(packing(at(0x1008), at(0x8000)), "w is 0x1008, must be a multiple of 16 (spec.alignment)");
  EXPECT_EQ(packing(at(0x1000), at(0x8010)), "packed_w is 0x8010, must be a multiple of 256");
  EXPECT_EQ(packing(at(0x1000), at(0x1100)), "packed_w at 0x1100 (1024 bytes) overlaps w at 0x1000 (4608 bytes)");
}

TEST(PackedWeightRules, PackedWeightsAreAnInput) {
  const Packing good;
  const auto with = [&good](const void* packed_w) {
    LaunchArgs args = good.args;
    args.packed_w = packed_w;
    return refused(good.rules, args);
  };
  EXPECT_EQ(with(good.args.y), "y");
  EXPECT_EQ(with(moved(good.args.y, -kPackedRegion)), "");
  EXPECT_EQ(with(moved(good.args.y, 256 - kPackedRegion)), "y");
  EXPECT_EQ(with(good.args.workspace), "workspace");
  EXPECT_EQ(with(moved(good.args.workspace, kSumsRegion - 256)), "workspace");
  EXPECT_EQ(with(moved(good.args.workspace, kSumsRegion)), "") << "the workspace is smaller without packing";
  EXPECT_EQ(with(good.args.x), "") << "inputs may be one another";
}

TEST(PackedWeightRules, WorkspaceOfALaunchThatPacksHoldsBoth) {
  Packing p;
  p.args.packed_w = nullptr;
  p.args.w = moved(p.args.workspace, kWorkspaceBytes - 16);
  EXPECT_EQ(refused(p.rules, p.args), "workspace");
  p.args.w = moved(p.args.workspace, kWorkspaceBytes);
  EXPECT_EQ(refused(p.rules, p.args), "");
}

TEST(PackedWeightRules, PackingWithoutPartialSumsNeedsAWorkspaceAndPackedWeightsNone) {
  Packing p;
  p.rules = rules_for(p.spec, scratch_of(kPackedRegion, 0));
  p.args.workspace = nullptr;
  EXPECT_EQ(refused(p.rules, p.args), "");
  p.args.workspace = moved(p.args.y, 1);  // any value: nobody looks at it
  EXPECT_EQ(refused(p.rules, p.args), "");
  p.args.packed_w = nullptr;
  p.args.w = addresses_for(p.spec).w;
  EXPECT_EQ(refused(p.rules, p.args), "workspace");
  p.args.workspace = nullptr;
  EXPECT_EQ(refused(p.rules, p.args), "workspace");
}

TEST(PackedWeightRules, PackingNeedsTheTwoAlone) {
  const Packing p;
  const void* const w = addresses_for(p.spec).w;
  const void* const packed_w = p.args.packed_w;
  EXPECT_EQ(p.packing_refused(w, packed_w), "");
  EXPECT_EQ(p.packing_refused(moved(packed_w, kPackedRegion), packed_w), "") << "right behind it";
  EXPECT_EQ(p.packing_refused(moved(packed_w, kPackedRegion - 16), packed_w), "packed_w") << "over w";
  EXPECT_EQ(p.packing_refused(moved(packed_w, -4608), packed_w), "") << "right before it";
  EXPECT_EQ(p.packing_refused(moved(packed_w, 16 - 4608), packed_w), "packed_w");
}

TEST(PackedWeightRules, ThereIsNothingToPackForAKernelThatTakesWeightsAsTheyAre) {
  const runtime::LaunchRules rules = rules_for(full_spec(), scratch_of(0, kWorkspaceBytes));
  try {
    rules.check_packing(at(0x1000), at(0x8000));
    FAIL() << "accepted";
  } catch (const SpecError& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_EQ(error.field(), "packed_w");
    EXPECT_NE(std::string(error.what()).find("packed_weight_bytes() is 0"), std::string::npos) << error.what();
  }
}

TEST(PackedWeightRules, PartsHaveTheirPlacesInTheWorkspace) {
  Packing p;
  const runtime::TensorPointers given = p.rules.resolved(runtime::given_pointers(p.args));
  EXPECT_EQ(of(given, kPackedW), p.args.packed_w);
  EXPECT_EQ(of(given, kPartialSums), p.args.workspace);

  p.args.packed_w = nullptr;
  p.args.w = addresses_for(p.spec).w;
  const runtime::TensorPointers placed = p.rules.resolved(runtime::given_pointers(p.args));
  EXPECT_EQ(of(placed, kPackedW), p.args.workspace);
  EXPECT_EQ(of(placed, kPartialSums), moved(p.args.workspace, kPackedRegion));
  EXPECT_EQ(of(placed, Tensor::x), p.args.x);
  EXPECT_EQ(of(placed, Tensor::w), p.args.w);
  EXPECT_EQ(of(placed, Tensor::bias), p.args.bias);
  EXPECT_EQ(of(placed, Tensor::residual), p.args.residual);
  EXPECT_EQ(of(placed, Tensor::y), p.args.y);
}

TEST(PackedWeightRules, SizesOfParametersAreThoseOfTheParts) {
  const Packing p;
  EXPECT_EQ(p.rules.bytes(kPackedW), kPackedRegion);
  EXPECT_EQ(p.rules.bytes(kPartialSums), kSumsRegion);
  EXPECT_EQ(p.rules.bytes(codegen::scratch_tensor(2)), 0) << "no parameter leads to more than a region";
}

TEST(PackedWeightRules, PartsThatWouldMisalignTheNextAreABug) {
  EXPECT_THROW(rules_for(full_spec(), scratch_of(1000, 0)), InternalError);
  EXPECT_THROW(rules_for(full_spec(), scratch_of(1024, 100)), InternalError);
  EXPECT_THROW(rules_for(full_spec(), scratch_of(1024, 256, 128)), InternalError);
  EXPECT_THROW(rules_for(full_spec(), {{"empty", 0}}), InternalError);
}

TEST(PackedWeightRules, RegionsThatTheCallerCouldNotTellApartAreABug) {
  const codegen::Scratch weights{"packed_w", kPackedRegion, /*is_packed_weights=*/true};
  EXPECT_THROW(rules_for(full_spec(), {weights, weights}), InternalError);
}

TEST(PackedWeightRules, ThereIsAMostOfRegions) {
  std::vector<codegen::Scratch> regions(runtime::kMostScratch, {"sums", kSumsRegion});
  EXPECT_EQ(rules_for(full_spec(), regions).bytes(codegen::scratch_tensor(runtime::kMostScratch - 1)), kSumsRegion);
  regions.push_back(regions.front());
  EXPECT_THROW(rules_for(full_spec(), regions), InternalError);
}

constexpr std::int64_t kPixelRegion = 2048;

TEST(TransposedPixelRules, TheyLieBehindPartialSums) {
  const Packing p;
  LaunchArgs with_w = p.args;
  with_w.packed_w = nullptr;
  with_w.w = addresses_for(p.spec).w;
  const auto placed = [](const runtime::LaunchRules& rules, const LaunchArgs& args, Tensor tensor) {
    return of(rules.resolved(runtime::given_pointers(args)), tensor);
  };
  for (const std::int64_t sums : {std::int64_t{0}, kSumsRegion}) {
    const Tensor pixels = codegen::scratch_tensor(sums == 0 ? 1 : 2);
    const runtime::LaunchRules rules = rules_for(p.spec, scratch_of(kPackedRegion, sums, kPixelRegion));
    EXPECT_EQ(rules.bytes(pixels), kPixelRegion);
    EXPECT_EQ(placed(rules, with_w, kPackedW), with_w.workspace);
    EXPECT_EQ(placed(rules, with_w, pixels), moved(with_w.workspace, kPackedRegion + sums));
    EXPECT_EQ(placed(rules, p.args, kPackedW), p.args.packed_w);
    EXPECT_EQ(placed(rules, p.args, kPartialSums), p.args.workspace);
    EXPECT_EQ(placed(rules, p.args, pixels), moved(p.args.workspace, sums));
    // The kernel takes w as it is.
    const runtime::LaunchRules fetching = rules_for(p.spec, scratch_of(0, sums, kPixelRegion));
    EXPECT_EQ(placed(fetching, with_w, codegen::scratch_tensor(0)), with_w.workspace);
    EXPECT_EQ(placed(fetching, with_w, codegen::scratch_tensor(sums == 0 ? 0 : 1)), moved(with_w.workspace, sums));
  }
}

TEST(TransposedPixelRules, TheWorkspaceHoldsThemToo) {
  Packing p;
  p.rules = rules_for(p.spec, scratch_of(kPackedRegion, kSumsRegion, kPixelRegion));
  const auto with_x = [&p](std::ptrdiff_t from_workspace) {
    LaunchArgs args = p.args;
    args.x = moved(args.workspace, from_workspace);
    return refused(p.rules, args);
  };
  EXPECT_EQ(with_x(kSumsRegion + kPixelRegion - 16), "workspace");
  EXPECT_EQ(with_x(kSumsRegion + kPixelRegion), "") << "the workspace is smaller without packing weights";
  p.args.packed_w = nullptr;
  p.args.w = addresses_for(p.spec).w;
  EXPECT_EQ(with_x(kPackedRegion + kSumsRegion + kPixelRegion - 16), "workspace");
  EXPECT_EQ(with_x(kPackedRegion + kSumsRegion + kPixelRegion), "");
}

TEST(TransposedPixelRules, TheyAloneNeedAWorkspace) {
  const ConvSpec spec = full_spec();
  LaunchArgs args = addresses_for(spec);
  args.workspace = nullptr;
  EXPECT_EQ(refused(rules_for(spec, scratch_of(0, 0)), args), "");
  EXPECT_EQ(refused(rules_for(spec, scratch_of(0, 0, kPixelRegion)), args), "workspace");
}

}  // namespace
}  // namespace jitconv::runtime_test
