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
static_assert(kX == 0 && kW == 1 && kBias == 2 && kResidual == 3 && kY == 4 && kWorkspace == 5);

constexpr std::array<const char*, kRoles> kNames = {"x", "w", "bias", "residual", "y", "workspace"};
constexpr std::uint64_t kWorkspaceAlignment = 256;

std::uint64_t address(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

bool overlap(std::uint64_t a, std::uint64_t a_bytes, std::uint64_t b, std::uint64_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes && a_bytes != 0 && b_bytes != 0;
}

}  // namespace

LaunchRules::LaunchRules(const codegen::ConvPlan& plan, std::int64_t workspace_bytes) {
  const ConvSpec& spec = plan.spec;
  const TensorShape y = output_shape(spec);
  const std::int64_t element = element_bytes(spec.dtype);
  const auto tensor_bytes = [element](const TensorShape& shape) {
    return static_cast<std::uint64_t>(shape.n * shape.c * shape.h * shape.w * element);
  };
  bytes_[kX] = tensor_bytes(spec.input);
  bytes_[kW] = static_cast<std::uint64_t>(spec.filter.k * spec.filter.c * spec.filter.r * spec.filter.s * element);
  bytes_[kBias] = spec.epilogue.bias ? static_cast<std::uint64_t>(spec.filter.k * element) : 0;
  bytes_[kResidual] = spec.epilogue.residual ? tensor_bytes(y) : 0;
  bytes_[kY] = tensor_bytes(y);
  bytes_[kWorkspace] = static_cast<std::uint64_t>(workspace_bytes);
  alignment_mask_.fill(static_cast<std::uint64_t>(spec.alignment) - 1);
  alignment_mask_[kWorkspace] = kWorkspaceAlignment - 1;
}

void LaunchRules::check(const RolePointers& pointers) const {
  if (!acceptable(pointers)) [[unlikely]]
    explain(pointers);
}

bool LaunchRules::acceptable(const RolePointers& pointers) const {
  const std::uint64_t y = address(pointers[kY]);
  const std::uint64_t workspace = address(pointers[kWorkspace]);
  bool wrong = false;
  for (std::size_t role = 0; role < kWorkspace; ++role) {
    const std::uint64_t at = address(pointers[role]);
    wrong |= (at != 0) != (bytes_[role] != 0);
    wrong |= (at & alignment_mask_[role]) != 0;
    const bool is_y = role == kY || (role == kResidual && at == y);
    wrong |= !is_y && overlap(at, bytes_[role], y, bytes_[kY]);
    wrong |= overlap(at, bytes_[role], workspace, bytes_[kWorkspace]);
  }
  if (bytes_[kWorkspace] != 0) wrong |= workspace == 0 || (workspace & alignment_mask_[kWorkspace]) != 0;
  return !wrong;
}

void LaunchRules::explain(const RolePointers& pointers) const {
  const auto refuse = [](std::size_t role, const std::string& message) {
    throw SpecError(ErrorCode::invalid_argument, kNames[role], message);
  };
  for (std::size_t role = 0; role < kRoles; ++role) {
    const std::uint64_t at = address(pointers[role]);
    if (at == 0 && bytes_[role] != 0) {
      refuse(role, fmt::format("{} is null, must point to {} bytes", kNames[role], bytes_[role]));
    }
    if (at != 0 && bytes_[role] == 0 && role != kWorkspace) {
      refuse(role, fmt::format("{} is {:#x}, must be null: the spec has no {}", kNames[role], at, kNames[role]));
    }
    if ((at & alignment_mask_[role]) != 0 && bytes_[role] != 0) {
      refuse(role, fmt::format("{} is {:#x}, must be a multiple of {}{}", kNames[role], at, alignment_mask_[role] + 1,
                               role == kWorkspace ? "" : " (spec.alignment)"));
    }
  }
  for (const std::size_t written : {kY, kWorkspace}) {
    const std::uint64_t at = address(pointers[written]);
    for (std::size_t role = 0; role < kRoles; ++role) {
      const bool same = role == written || (written == kY && role == kResidual && address(pointers[role]) == at);
      if (same || !overlap(address(pointers[role]), bytes_[role], at, bytes_[written])) continue;
      refuse(written,
             fmt::format("{} at {:#x} ({} bytes) overlaps {} at {:#x} ({} bytes); only residual may be y itself",
                         kNames[written], at, bytes_[written], kNames[role], address(pointers[role]), bytes_[role]));
    }
  }
  throw InternalError("a launch was refused for no reason that can be named");
}

}  // namespace jitconv::runtime
