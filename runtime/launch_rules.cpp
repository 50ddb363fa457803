// The checks of launch_rules.h: one branch-free pass that says yes, and a slow one that finds the words for no.
#include "runtime/launch_rules.h"

#include <fmt/format.h>

#include <algorithm>

namespace jitconv::runtime {
namespace {

using codegen::Tensor;

constexpr std::size_t kX = static_cast<std::size_t>(Given::x);
constexpr std::size_t kW = static_cast<std::size_t>(Given::w);
constexpr std::size_t kBias = static_cast<std::size_t>(Given::bias);
constexpr std::size_t kResidual = static_cast<std::size_t>(Given::residual);
constexpr std::size_t kY = static_cast<std::size_t>(Given::y);
constexpr std::size_t kPackedW = static_cast<std::size_t>(Given::packed_w);
constexpr std::size_t kWorkspace = static_cast<std::size_t>(Given::workspace);
constexpr std::size_t kScratch = static_cast<std::size_t>(Tensor::scratch);
static_assert(kX == static_cast<std::size_t>(Tensor::x) && kW == static_cast<std::size_t>(Tensor::w) &&
              kBias == static_cast<std::size_t>(Tensor::bias) &&
              kResidual == static_cast<std::size_t>(Tensor::residual) && kY == static_cast<std::size_t>(Tensor::y));

constexpr std::array<const char*, kGiven> kNames = {"x", "w", "bias", "residual", "y", "packed_w", "workspace"};
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
  tensor_bytes_[kX] = tensor_bytes(spec.input);
  tensor_bytes_[kW] =
      static_cast<std::uint64_t>(spec.weight.k * spec.weight.c * spec.weight.r * spec.weight.s * element);
  tensor_bytes_[kBias] = spec.epilogue.bias ? static_cast<std::uint64_t>(spec.weight.k * element) : 0;
  tensor_bytes_[kResidual] = spec.epilogue.residual ? tensor_bytes(y) : 0;
  tensor_bytes_[kY] = tensor_bytes(y);
  if (plan.scratch.size() > kMostScratch) throw InternalError("a plan with too many regions of scratch");
  for (const codegen::Scratch& region : plan.scratch) {
    if (region.bytes <= 0 || static_cast<std::uint64_t>(region.bytes) % kWorkspaceAlignment != 0)
      throw InternalError("regions of scratch must be multiples of the workspace's alignment");
    if (region.is_packed_weights && packed_weights_ != kTensors)
      throw InternalError("a plan with two regions of packed weights");
    if (region.is_packed_weights) packed_weights_ = kScratch + scratch_regions_;
    tensor_bytes_[kScratch + scratch_regions_++] = static_cast<std::uint64_t>(region.bytes);
  }

  std::copy_n(tensor_bytes_.begin(), kScratch, with_w_.begin());
  with_w_[kWorkspace] = static_cast<std::uint64_t>(plan.workspace_bytes());
  with_packed_w_ = with_w_;
  with_packed_w_[kW] = 0;
  with_packed_w_[kPackedW] = static_cast<std::uint64_t>(plan.packed_weight_bytes());
  with_packed_w_[kWorkspace] = static_cast<std::uint64_t>(plan.workspace_bytes_with_packed_weights());
  packing_[kW] = with_w_[kW];
  packing_[kPackedW] = with_packed_w_[kPackedW];

  alignment_mask_.fill(static_cast<std::uint64_t>(spec.alignment) - 1);
  alignment_mask_[kPackedW] = alignment_mask_[kWorkspace] = kWorkspaceAlignment - 1;
}

std::int64_t LaunchRules::alignment(Tensor tensor) const {
  return codegen::is_scratch(tensor) ? static_cast<std::int64_t>(kWorkspaceAlignment)
                                     : static_cast<std::int64_t>(alignment_mask_[static_cast<std::size_t>(tensor)] + 1);
}

bool LaunchRules::packed(const GivenPointers& pointers) const {
  return packed_weights_ != kTensors && pointers[kPackedW] != nullptr;
}

TensorPointers LaunchRules::resolved(const GivenPointers& pointers) const {
  TensorPointers resolved{};
  std::copy_n(pointers.begin(), kScratch, resolved.begin());
  const auto* free = static_cast<const char*>(pointers[kWorkspace]);
  const bool has_packed = packed(pointers);
  for (std::size_t tensor = kScratch; tensor < kScratch + scratch_regions_; ++tensor) {
    if (has_packed && tensor == packed_weights_) {
      resolved[tensor] = pointers[kPackedW];
      continue;
    }
    resolved[tensor] = free;
    free += tensor_bytes_[tensor];
  }
  return resolved;
}

void LaunchRules::check_packing(const void* w, const void* packed_w) const {
  if (packing_[kPackedW] == 0) {
    throw SpecError(ErrorCode::unsupported, kNames[kPackedW],
                    "packed_w cannot be made: this kernel takes w as it is, packed_weight_bytes() is 0");
  }
  GivenPointers pointers{};
  pointers[kW] = w;
  pointers[kPackedW] = packed_w;
  if (!acceptable(pointers, packing_)) [[unlikely]]
    explain(pointers, packing_);
}

void LaunchRules::check(const GivenPointers& pointers) const {
  const Bytes& bytes = packed(pointers) ? with_packed_w_ : with_w_;
  if (!acceptable(pointers, bytes)) [[unlikely]]
    explain(pointers, bytes);
}

bool LaunchRules::acceptable(const GivenPointers& pointers, const Bytes& bytes) const {
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

void LaunchRules::explain(const GivenPointers& pointers, const Bytes& bytes) const {
  const auto refuse = [](std::size_t role, const std::string& message) {
    throw SpecError(ErrorCode::invalid_argument, kNames[role], message);
  };
  for (std::size_t role = 0; role < kGiven; ++role) {
    const std::uint64_t at = address(pointers[role]);
    if (at == 0 && bytes[role] != 0) {
      const bool may_be_packed = role == kW && packing_[kPackedW] != 0 && bytes[kPackedW] == 0;
      refuse(role, fmt::format("{} is null, must point to {} bytes{}", kNames[role], bytes[role],
                               may_be_packed ? fmt::format(", or packed_w to {}", packing_[kPackedW]) : ""));
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
    for (std::size_t role = 0; role < kGiven; ++role) {
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
