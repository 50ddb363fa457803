// The checks of launch_rules.h: one branch-free pass that says yes, and a slow one that finds the words for no.
#include "runtime/launch_rules.h"

#include <fmt/format.h>

namespace jitconv::runtime {
namespace {

using codegen::ArgumentRole;

constexpr std::size_t kX = static_cast<std::size_t>(ArgumentRole::x);
constexpr std::size_t kW = static_cast<std::size_t>(ArgumentRole::w);
constexpr std::size_t kBias = static_cast<std::size_t>(ArgumentRole::bias);
constexpr std::size_t kResidual = static_cast<std::size_t>(ArgumentRole::residual);
constexpr std::size_t kY = static_cast<std::size_t>(ArgumentRole::y);
constexpr std::size_t kWorkspace = static_cast<std::size_t>(ArgumentRole::workspace);
constexpr std::size_t kPackedW = static_cast<std::size_t>(ArgumentRole::packed_w);
constexpr std::size_t kPartialSums = static_cast<std::size_t>(ArgumentRole::partial_sums);
constexpr std::size_t kPackedX = static_cast<std::size_t>(ArgumentRole::packed_x);
static_assert(kX == 0 && kW == 1 && kBias == 2 && kResidual == 3 && kY == 4 && kWorkspace == 5 && kPackedW == 6 &&
              kPartialSums == 7 && kPackedX == 8);

constexpr std::array<const char*, kRoles> kNames = {"x",         "w",        "bias",         "residual", "y",
                                                    "workspace", "packed_w", "partial_sums", "packed_x"};
constexpr std::uint64_t kWorkspaceAlignment = 256;

std::uint64_t address(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

bool overlap(std::uint64_t a, std::uint64_t a_bytes, std::uint64_t b, std::uint64_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes && a_bytes != 0 && b_bytes != 0;
}

}  // namespace

LaunchRules::LaunchRules(const codegen::ConvPlan& plan) {
  const ConvSpec& spec = plan.spec;
  const TensorShape y = output_shape(spec);
  const std::int64_t element = element_bytes(spec.dtype);
  const auto tensor_bytes = [element](const TensorShape& shape) {
    return static_cast<std::uint64_t>(shape.n * shape.c * shape.h * shape.w * element);
  };
  extents_[kX] = tensor_bytes(spec.input);
  extents_[kW] = static_cast<std::uint64_t>(spec.weight.k * spec.weight.c * spec.weight.r * spec.weight.s * element);
  extents_[kBias] = spec.epilogue.bias ? static_cast<std::uint64_t>(spec.weight.k * element) : 0;
  extents_[kResidual] = spec.epilogue.residual ? tensor_bytes(y) : 0;
  extents_[kY] = tensor_bytes(y);
  extents_[kPackedW] = static_cast<std::uint64_t>(plan.workspace.packed_weights);
  extents_[kPartialSums] = static_cast<std::uint64_t>(plan.workspace.partial_sums);
  extents_[kPackedX] = static_cast<std::uint64_t>(plan.workspace.packed_pixels);
  if ((extents_[kPackedW] | extents_[kPartialSums] | extents_[kPackedX]) % kWorkspaceAlignment != 0)
    throw InternalError("the parts of a workspace must be multiples of its alignment");

  with_w_ = extents_;
  with_w_[kWorkspace] = static_cast<std::uint64_t>(plan.workspace.bytes());
  with_w_[kPackedW] = with_w_[kPartialSums] = with_w_[kPackedX] = 0;
  with_packed_w_ = extents_;
  with_packed_w_[kWorkspace] = static_cast<std::uint64_t>(plan.workspace.bytes_with_packed_weights());
  with_packed_w_[kW] = with_packed_w_[kPartialSums] = with_packed_w_[kPackedX] = 0;
  packing_[kW] = extents_[kW];
  packing_[kPackedW] = extents_[kPackedW];

  alignment_mask_.fill(static_cast<std::uint64_t>(spec.alignment) - 1);
  for (const std::size_t role : {kWorkspace, kPackedW, kPartialSums, kPackedX})
    alignment_mask_[role] = kWorkspaceAlignment - 1;
}

bool LaunchRules::packed(const RolePointers& pointers) const {
  return extents_[kPackedW] != 0 && pointers[kPackedW] != nullptr;
}

RolePointers LaunchRules::resolved(RolePointers pointers) const {
  const auto* workspace = static_cast<const char*>(pointers[kWorkspace]);
  if (packed(pointers)) {
    pointers[kPartialSums] = workspace;
  } else {
    pointers[kPackedW] = workspace;
    pointers[kPartialSums] = workspace + extents_[kPackedW];
  }
  pointers[kPackedX] = static_cast<const char*>(pointers[kPartialSums]) + extents_[kPartialSums];
  return pointers;
}

void LaunchRules::check_packing(const void* w, const void* packed_w) const {
  if (extents_[kPackedW] == 0) {
    throw SpecError(ErrorCode::unsupported, kNames[kPackedW],
                    "packed_w cannot be made: this kernel takes w as it is, packed_weight_bytes() is 0");
  }
  RolePointers pointers{};
  pointers[kW] = w;
  pointers[kPackedW] = packed_w;
  if (!acceptable(pointers, packing_)) [[unlikely]]
    explain(pointers, packing_);
}

void LaunchRules::check(const RolePointers& pointers) const {
  const Bytes& bytes = packed(pointers) ? with_packed_w_ : with_w_;
  if (!acceptable(pointers, bytes)) [[unlikely]]
    explain(pointers, bytes);
}

bool LaunchRules::acceptable(const RolePointers& pointers, const Bytes& bytes) const {
  const std::uint64_t y = address(pointers[kY]);
  const std::uint64_t workspace = address(pointers[kWorkspace]);
  bool wrong = false;
  for (const std::size_t role : {kX, kW, kBias, kResidual, kY, kPackedW}) {
    const std::uint64_t at = address(pointers[role]);
    wrong |= (at != 0) != (bytes[role] != 0);
    wrong |= (at & alignment_mask_[role]) != 0;
    const bool is_y = role == kY || (role == kResidual && at == y);
    wrong |= !is_y && overlap(at, bytes[role], y, bytes[kY]);
    wrong |= overlap(at, bytes[role], workspace, bytes[kWorkspace]);
  }
  wrong |= overlap(address(pointers[kW]), bytes[kW], address(pointers[kPackedW]), bytes[kPackedW]);
  if (bytes[kWorkspace] != 0) wrong |= workspace == 0 || (workspace & alignment_mask_[kWorkspace]) != 0;
  return !wrong;
}

void LaunchRules::explain(const RolePointers& pointers, const Bytes& bytes) const {
  const auto refuse = [](std::size_t role, const std::string& message) {
    throw SpecError(ErrorCode::invalid_argument, kNames[role], message);
  };
  for (std::size_t role = 0; role < kRoles; ++role) {
    const std::uint64_t at = address(pointers[role]);
    if (at == 0 && bytes[role] != 0) {
      const bool may_be_packed = role == kW && extents_[kPackedW] != 0 && bytes[kPackedW] == 0;
      refuse(role, fmt::format("{} is null, must point to {} bytes{}", kNames[role], bytes[role],
                               may_be_packed ? fmt::format(", or packed_w to {}", extents_[kPackedW]) : ""));
    }
    if (at != 0 && bytes[role] == 0 && role != kWorkspace) {
      const std::string why = role == kW         ? "the launch has packed_w"
                              : role == kPackedW ? "this kernel takes w as it is"
                                                 : fmt::format("the spec has no {}", kNames[role]);
      refuse(role, fmt::format("{} is {:#x}, must be null: {}", kNames[role], at, why));
    }
    if ((at & alignment_mask_[role]) != 0 && bytes[role] != 0) {
      refuse(role, fmt::format("{} is {:#x}, must be a multiple of {}{}", kNames[role], at, alignment_mask_[role] + 1,
                               role == kWorkspace || role == kPackedW ? "" : " (spec.alignment)"));
    }
  }
  for (const std::size_t written : {kY, kWorkspace, kPackedW}) {
    const std::uint64_t at = address(pointers[written]);
    for (std::size_t role = 0; role < kRoles; ++role) {
      const bool same = role == written || (written == kY && role == kResidual && address(pointers[role]) == at);
      if (same || !overlap(address(pointers[role]), bytes[role], at, bytes[written])) continue;
      refuse(written, fmt::format("{} at {:#x} ({} bytes) overlaps {} at {:#x} ({} bytes){}", kNames[written], at,
                                  bytes[written], kNames[role], address(pointers[role]), bytes[role],
                                  written == kY ? "; only residual may be y itself" : ""));
    }
  }
  throw InternalError("a launch was refused for no reason that can be named");
}

}  // namespace jitconv::runtime
