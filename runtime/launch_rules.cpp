// The checks of launch_rules.h: one branch-free pass that says yes, and a slow one that finds the words for no.
#include "runtime/launch_rules.h"

#include <fmt/format.h>

#include <algorithm>

namespace jitconv::runtime {
namespace {

using codegen::Tensor;

constexpr std::size_t index_of(Given given) { return static_cast<std::size_t>(given); }
constexpr std::size_t kX = index_of(Given::x), kDy = index_of(Given::dy), kDw = index_of(Given::dw);
constexpr std::size_t kW = index_of(Given::w), kResidual = index_of(Given::residual), kDb = index_of(Given::db);
constexpr std::size_t kSaved = index_of(Given::saved), kPackedW = index_of(Given::packed_w);
constexpr std::size_t kWorkspace = index_of(Given::workspace);
constexpr std::size_t kScratch = static_cast<std::size_t>(Tensor::scratch);
static_assert(kPackedW == kScratch && kDb == static_cast<std::size_t>(Tensor::db) &&
              kResidual == static_cast<std::size_t>(Tensor::residual) &&
              kSaved == static_cast<std::size_t>(Tensor::saved));

constexpr std::array<const char*, kGiven> kNames = {"x",  "w",  "bias", "residual", "y",        "dy",
                                                    "dx", "dw", "db",   "saved",    "packed_w", "workspace"};
constexpr std::uint64_t kWorkspaceAlignment = 256;

std::uint64_t address(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

bool overlap(std::uint64_t a, std::uint64_t a_bytes, std::uint64_t b, std::uint64_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes && a_bytes != 0 && b_bytes != 0;
}

/// Why a launch of some spec has no such tensor.
std::string reason_without(std::size_t role, bool has_images) {
  const bool is_optional = role == static_cast<std::size_t>(Tensor::bias) || role == kResidual || role == kDb;
  if (!has_images && (role == kX || role == kDy || role == kSaved)) return "the spec has no images";
  if (role == kSaved) return "the spec has no dy_activation";
  if (is_optional) return fmt::format("the spec has no {}", role == kDb ? "bias" : kNames[role]);
  return "the spec's operation has no part for it";
}

}  // namespace

LaunchRules::LaunchRules(const codegen::ConvPlan& plan) {
  const ConvSpec& spec = plan.spec;
  const TensorShape w{spec.weight.k, spec.weight.c, spec.weight.r, spec.weight.s}, y = output_shape(spec);
  const DataType result_type = output_type(spec);
  const auto set = [this](Tensor tensor, const TensorShape& shape, DataType type) {
    const std::int64_t bytes = shape.n * shape.c * shape.h * shape.w * element_bytes(type);
    tensor_bytes_[static_cast<std::size_t>(tensor)] = static_cast<std::uint64_t>(bytes);
    return static_cast<std::size_t>(tensor);
  };
  const auto channels = [](std::int64_t count) { return TensorShape{1, count, 1, 1}; };
  switch (spec.operation) {
    case Operation::forward:
      set(Tensor::x, spec.input, spec.dtype);
      set(Tensor::w, w, spec.dtype);
      if (spec.epilogue.bias) set(Tensor::bias, channels(spec.weight.k), spec.dtype);
      result_ = set(Tensor::y, y, result_type);
      break;
    case Operation::data_gradient:
      set(Tensor::dy, y, spec.dtype);
      set(Tensor::w, w, spec.dtype);
      if (spec.epilogue.bias) set(Tensor::bias, channels(spec.input.c), spec.dtype);
      result_ = set(Tensor::dx, spec.input, result_type);
      break;
    case Operation::weight_gradient:
      set(Tensor::x, spec.input, spec.dtype);
      set(Tensor::dy, y, spec.dtype);
      if (spec.epilogue.bias) set(Tensor::db, channels(spec.weight.k), result_type);
      result_ = set(Tensor::dw, w, result_type);
      break;
  }
  if (spec.dy_activation != Activation::none) set(Tensor::saved, y, spec.dtype);
  if (spec.epilogue.residual) set(Tensor::residual, result_shape(spec), result_type);
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
  const std::uint64_t result = address(pointers[result_]), db = address(pointers[kDb]);
  const std::uint64_t workspace = address(pointers[kWorkspace]);
  bool wrong = false;
  for (std::size_t role = 0; role < kWorkspace; ++role) {
    const std::uint64_t at = address(pointers[role]);
    wrong |= (at != 0) != (bytes[role] != 0);
    wrong |= (at & alignment_mask_[role]) != 0;
    const bool is_result = role == result_ || (role == kResidual && at == result);
    wrong |= !is_result && overlap(at, bytes[role], result, bytes[result_]);
    wrong |= role != kDb && overlap(at, bytes[role], db, bytes[kDb]);
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
      const bool reads_w = with_w_[kW] != 0;
      const bool has_images = result_ != kDw || with_w_[kX] != 0;  // others look at no pointer if there are none
      const std::string why = role == kW && reads_w         ? "the launch has packed_w"
                              : role == kPackedW && reads_w ? "this kernel takes w as it is"
                                                            : reason_without(role, has_images);
      refuse(role, fmt::format("{} is {:#x}, must be null: {}", kNames[role], at, why));
    }
    if ((at & alignment_mask_[role]) != 0 && bytes[role] != 0) {
      refuse(role, fmt::format("{} is {:#x}, must be a multiple of {}{}", kNames[role], at, alignment_mask_[role] + 1,
                               role == kWorkspace || role == kPackedW ? "" : " (spec.alignment)"));
    }
  }
  for (const std::size_t written : {result_, kDb, kWorkspace, kPackedW}) {
    const std::uint64_t at = address(pointers[written]);
    for (std::size_t role = 0; role < kGiven; ++role) {
      const bool same = role == written || (written == result_ && role == kResidual && address(pointers[role]) == at);
      if (same || !overlap(address(pointers[role]), bytes[role], at, bytes[written])) continue;
      refuse(written,
             fmt::format("{} at {:#x} ({} bytes) overlaps {} at {:#x} ({} bytes){}", kNames[written], at,
                         bytes[written], kNames[role], address(pointers[role]), bytes[role],
                         written == result_ ? fmt::format("; only residual may be {} itself", kNames[written]) : ""));
    }
  }
  throw InternalError("a launch was refused for no reason that can be named");
}

}  // namespace jitconv::runtime
