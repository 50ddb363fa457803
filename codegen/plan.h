// ConvPlan: every number the generator prints, decided before a line of CUDA is written. Plain values with == and a
// printer; no CUDA, no I/O. Plans come from make_plan(), which prices the candidates of every family.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/families.h"
#include "codegen/problem.h"
#include "jitconv/spec.h"
#include "jitconv/target.h"

namespace jitconv::codegen {

/// Why a family, or a property of the chosen plan, is as it is; for explain().
struct Note {
  std::string topic;  ///< a family name, "math", "store", ...
  std::string text;
  bool operator==(const Note&) const = default;
};

struct KernelPlan {
  Problem problem;  ///< of a pass: that of the convolution it serves
  Tiling tiling;
  Launch launch;
  bool wide_index = false;  ///< element offsets need 64 bits; proved per candidate
  /// May start before the kernel before it has finished: it waits by itself before it reads what that one writes, and
  /// all of its blocks wait, so that when it has finished, so has the one before.
  bool starts_early = false;
  Family family() const { return family_of(tiling); }
  bool operator==(const KernelPlan&) const = default;
};

/// A region of the workspace. Regions follow each other in it, in the order of the plan.
struct Scratch {
  std::string name;        ///< of the kernels' parameter
  std::int64_t bytes = 0;  ///< a multiple of 256
  /// Made of w alone: a caller may have it made once, keep it and hand it in.
  bool is_packed_weights = false;
  bool operator==(const Scratch&) const = default;
};

struct ConvPlan {
  ConvSpec spec;                 ///< canonical: see canonical()
  std::string spec_text;         ///< to_string(spec), for the banner: generate() reads no spec
  std::string convolution_name;  ///< convolution_name(spec), a part of kernels' names
  Target target;
  std::vector<KernelPlan> kernels;  ///< in launch order; none if the output has no elements
  std::vector<Scratch> scratch;
  std::int64_t cost = 0;  ///< modelled time in picoseconds; only its order matters
  std::vector<Note> notes;

  /// The kernel that convolves. There must be one.
  const KernelPlan& convolution() const;
  KernelPlan& convolution() { return const_cast<KernelPlan&>(static_cast<const ConvPlan&>(*this).convolution()); }
  /// Its place in the list.
  std::vector<KernelPlan>::iterator convolution_place() { return kernels.begin() + (&convolution() - kernels.data()); }
  /// The family of the kernel that convolves; none without one.
  Family family() const { return kernels.empty() ? Family::none : convolution().family(); }
  /// The convolution's tiling, null if it is of another family.
  template <typename FamilyTiling>
  const FamilyTiling* tiling() const {
    return kernels.empty() ? nullptr : std::get_if<FamilyTiling>(&convolution().tiling);
  }
  std::int64_t packed_weight_bytes() const;
  std::int64_t workspace_bytes() const;
  /// The workspace of a launch that brings packed weights.
  std::int64_t workspace_bytes_with_packed_weights() const { return workspace_bytes() - packed_weight_bytes(); }
  bool operator==(const ConvPlan&) const = default;
};

/// The spec with fields that cannot matter set to one value (dilation of a 1-tap axis, slope without leaky ReLU ...),
/// so that specs that need the same kernel share one.
ConvSpec canonical(const ConvSpec& spec);

/// Validates, canonicalises and chooses. Throws SpecError.
ConvPlan make_plan(const ConvSpec& spec, const Target& target);

/// All candidates the model looked at, its choice and then the others, cheapest first, at most `limit`: what tuning
/// measures.
std::vector<ConvPlan> enumerate_plans(const ConvSpec& spec, const Target& target, std::size_t limit);

/// The modelled times of all candidates with these tables, in picoseconds, in the order of enumeration, which does not
/// depend on the tables. None if the output has no elements.
std::vector<std::int64_t> candidate_costs(const ConvSpec& spec, const Target& target, const Costs& costs);

/// The indices of candidate_costs() in the order of enumerate_plans(): cheapest first, equal ones as they are.
std::vector<std::size_t> cheapest_first(const std::vector<std::int64_t>& costs);

/// The plan that computes `spec`, which is canonical, in this way.
ConvPlan plan_with(const ConvSpec& spec, const Target& target, const Candidate& candidate);

/// The same convolution kernel for another spec: its tiling and launch, and passes that fit the spec.
ConvPlan plan_like(const ConvPlan& plan, const ConvSpec& spec, std::uint32_t blocks);

/// Several lines, `name: value`.
std::string to_string(const ConvPlan& plan);

/// That of its problem, and what dy's activation reads.
Work work(const ConvSpec& spec);

}  // namespace jitconv::codegen
