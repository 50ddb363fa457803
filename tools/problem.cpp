// Layout, poison and check of one operation's tensors.
#include "tools/problem.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/check/tensors.h"
#include "tools/results.h"

namespace jitconv::tools {
namespace {

constexpr std::int64_t kGuardBytes = 4096;  // on either side of a result; a multiple of every alignment
constexpr std::uint8_t kPoison = 0xff;

/// Distance of a tensor from the start of its allocation, which the device aligns to 256 bytes or more. Specs that
/// allow less than the usual 16 get exactly what they allow.
std::int64_t misalignment(const ConvSpec& spec) { return spec.alignment < 16 ? spec.alignment : 0; }

}  // namespace

std::string OutputCheck::text() const {
  std::string line = comparison.text();
  if (unwritten > 0) line += fmt::format("; {} outputs are NaN or were not written", unwritten);
  if (guards_hit > 0) line += fmt::format("; {} bytes outside the results were written", guards_hit);
  return line;
}

Problem::Problem(Device& device, const ConvSpec& spec, check::DataKind kind, std::uint64_t seed)
    : device_(device), spec_(spec), kind_(kind), seed_(seed), data_(check::make_data(spec, kind, seed)) {
  for (const check::Input& input : check::inputs_of(spec)) {
    if (input.count == 0) continue;
    const Buffer& buffer = inputs_.emplace_back(device, input.bytes() + misalignment(spec));
    void* const at = buffer.at(misalignment(spec));
    device.generate(at, input.count, data_.*input.fill);
    tensors_.*input.pointer = at;
  }
  for (const check::Result& result : check::results_of(spec)) {
    if (result.count == 0) continue;
    results_.push_back({Buffer(device, guard_before() + result.bytes() + kGuardBytes), result.bytes()});
    tensors_.*result.pointer = results_.back().buffer.at(guard_before());
  }
}

std::int64_t Problem::guard_before() const { return kGuardBytes + misalignment(spec_); }

std::int64_t Problem::guards_hit(const Guarded& result) const {
  return device_.count_other_bytes(result.buffer.data(), kPoison, guard_before()) +
         device_.count_other_bytes(result.buffer.at(guard_before() + result.bytes), kPoison, kGuardBytes);
}

std::int64_t Problem::bytes_needed(const ConvSpec& spec, std::int64_t workspace_bytes) {
  return check::tensor_bytes(spec) + workspace_bytes + 8 * kGuardBytes;
}

LaunchArgs Problem::arguments(const Kernel& kernel) {
  if (workspace_.bytes() < kernel.workspace_bytes()) workspace_ = Buffer(device_, kernel.workspace_bytes());
  LaunchArgs args = tensors_;
  args.workspace = kernel.workspace_bytes() > 0 ? workspace_.data() : nullptr;
  return args;
}

void Problem::poison() {
  for (const Guarded& result : results_) device_.set_bytes(result.buffer.data(), kPoison, result.buffer.bytes());
  device_.set_bytes(workspace_.data(), kPoison, workspace_.bytes());
}

void Problem::prepare_reference(std::int64_t budget) {
  if (!expected_.empty()) return;
  const std::int64_t length = std::max<std::int64_t>(1, check::reduction_length(spec_));
  // An expected output takes 40 bytes.
  const std::int64_t fewest = 256, most = std::max<std::int64_t>(1 << 20, budget / 256);
  positions_ = check::sample_positions(spec_, std::clamp(budget / length, fewest, most), seed_);
  // Values that many sums need are made once, unless a sample touches little of a tensor.
  const std::int64_t used = static_cast<std::int64_t>(positions_.size()) * length;
  check::Operands operands(data_);
  std::vector<std::vector<float>> kept;
  for (const check::Input& input : check::inputs_of(spec_)) {
    if (input.count > used) continue;
    kept.push_back(check::values_of(data_.*input.fill, input.count));
    operands.*input.operand = kept.back();
  }
  expected_ = check::reference_at(spec_, operands, positions_);
}

OutputCheck Problem::check(std::int64_t budget) {
  prepare_reference(budget);
  OutputCheck result;
  result.comparison =
      check::compare(spec_, kind_, positions_, expected_, results_at(device_, spec_, tensors_, positions_));
  result.every_output = static_cast<std::int64_t>(positions_.size()) == check::position_count(spec_);
  result.unwritten = count_nan_results(device_, spec_, tensors_);
  for (const Guarded& one : results_) result.guards_hit += guards_hit(one);
  return result;
}

bool Problem::data_agree() const {
  const check::Input input = check::inputs_of(spec_).front();
  const std::int64_t count = std::min<std::int64_t>(input.count, 1 << 16);
  std::vector<std::byte> host(static_cast<std::size_t>(count * element_bytes(input.type))), made(host.size());
  check::fill_elements(data_.*input.fill, 0, host);
  if (count > 0) device_.download(made.data(), tensors_.*input.pointer, static_cast<std::int64_t>(made.size()));
  return host == made;
}

}  // namespace jitconv::tools
