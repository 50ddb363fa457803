// Layout, poison and check of one convolution's tensors.
#include "tools/problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "tools/check/number.h"

namespace jitconv::tools {
namespace {

constexpr std::int64_t kGuardBytes = 4096;  // on either side of y; a multiple of every alignment
constexpr std::uint8_t kPoison = 0xff;

/// Distance of a tensor from the start of its allocation, which the device aligns to 256 bytes or more. Specs that
/// allow less than the usual 16 get exactly what they allow.
std::int64_t misalignment(const ConvSpec& spec) { return spec.alignment < 16 ? spec.alignment : 0; }

float value_of(DataType type, std::uint32_t bits) {
  if (type == DataType::f16) return check::from_f16(static_cast<std::uint16_t>(bits));
  if (type == DataType::bf16) return check::from_bf16(static_cast<std::uint16_t>(bits));
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace

std::string OutputCheck::text() const {
  std::string line = comparison.text();
  if (unwritten > 0) line += fmt::format("; {} outputs are NaN or were not written", unwritten);
  if (guards_hit > 0) line += fmt::format("; {} bytes outside y were written", guards_hit);
  return line;
}

Problem::Problem(Device& device, const ConvSpec& spec, check::DataKind kind, std::uint64_t seed)
    : device_(device), spec_(spec), kind_(kind), seed_(seed), data_(check::make_data(spec, kind, seed)) {
  const std::int64_t outputs = check::element_count(output_shape(spec));
  x_ = make(check::element_count(spec.input), data_.x);
  w_ = make(check::element_count(spec.weight), data_.w);
  if (spec.epilogue.bias) bias_ = make(spec.weight.k, data_.bias);
  if (spec.epilogue.residual) residual_ = make(outputs, data_.residual);
  y_bytes_ = outputs * element_bytes(spec.dtype);
  y_.buffer = Buffer(device, y_bytes_ + 2 * kGuardBytes + misalignment(spec));
  y_.data = y_.buffer.at(kGuardBytes + misalignment(spec));
}

Problem::Tensor Problem::make(std::int64_t count, const check::Fill& fill) {
  Tensor tensor;
  tensor.buffer = Buffer(device_, count * element_bytes(spec_.dtype) + misalignment(spec_));
  if (tensor.buffer.data() == nullptr) return tensor;
  tensor.data = tensor.buffer.at(misalignment(spec_));
  device_.generate(tensor.data, count, fill);
  return tensor;
}

std::int64_t Problem::bytes_needed(const ConvSpec& spec, std::int64_t workspace_bytes) {
  const std::int64_t outputs = check::element_count(output_shape(spec));
  const std::int64_t elements = check::element_count(spec.input) + check::element_count(spec.weight) + outputs +
                                (spec.epilogue.bias ? spec.weight.k : 0) + (spec.epilogue.residual ? outputs : 0);
  return elements * element_bytes(spec.dtype) + workspace_bytes + 8 * kGuardBytes;
}

LaunchArgs Problem::arguments(const Kernel& kernel) {
  if (workspace_.bytes() < kernel.workspace_bytes()) workspace_ = Buffer(device_, kernel.workspace_bytes());
  LaunchArgs args;
  args.x = x_.data;
  args.w = w_.data;
  args.bias = bias_.data;
  args.residual = residual_.data;
  args.y = y_.data;
  args.workspace = kernel.workspace_bytes() > 0 ? workspace_.data() : nullptr;
  return args;
}

void Problem::poison() {
  for (const Buffer* buffer : {&y_.buffer, &workspace_}) device_.set_bytes(buffer->data(), kPoison, buffer->bytes());
}

void Problem::prepare_reference(std::int64_t budget) {
  if (!expected_.empty()) return;
  const std::int64_t length = std::max<std::int64_t>(1, check::reduction_length(spec_));
  // An expected output takes 40 bytes.
  const std::int64_t fewest = 256, most = std::max<std::int64_t>(1 << 20, budget / 256);
  positions_ = check::sample_positions(spec_, std::clamp(budget / length, fewest, most), seed_);
  // Values that many outputs need are made once: all weights, and x unless a sample touches little of it.
  const std::vector<float> w = check::values_of(data_.w, check::element_count(spec_.weight));
  const std::int64_t inputs = check::element_count(spec_.input);
  std::vector<float> x;
  if (inputs <= static_cast<std::int64_t>(positions_.size()) * length) x = check::values_of(data_.x, inputs);
  expected_ = check::reference_at(
      spec_, check::Operands(x.empty() ? check::Operand(data_.x) : x, w, data_.bias, data_.residual), positions_);
}

OutputCheck Problem::check(std::int64_t budget) {
  prepare_reference(budget);
  const std::int64_t outputs = check::element_count(output_shape(spec_));
  std::vector<std::uint32_t> bits(positions_.size());
  device_.gather(y_.data, spec_.dtype, positions_, bits);
  std::vector<float> actual(bits.size());
  std::transform(bits.begin(), bits.end(), actual.begin(),
                 [this](std::uint32_t one) { return value_of(spec_.dtype, one); });
  OutputCheck result;
  result.comparison = check::compare(spec_, kind_, positions_, expected_, actual);
  result.every_output = static_cast<std::int64_t>(positions_.size()) == outputs;
  result.unwritten = device_.count_nan(y_.data, spec_.dtype, outputs);
  const std::int64_t before = kGuardBytes + misalignment(spec_);
  result.guards_hit = device_.count_other_bytes(y_.buffer.data(), kPoison, before) +
                      device_.count_other_bytes(y_.buffer.at(before + y_bytes_), kPoison, kGuardBytes);
  return result;
}

bool Problem::data_agree() const {
  const std::int64_t count = std::min<std::int64_t>(check::element_count(spec_.input), 1 << 16);
  std::vector<std::byte> host(static_cast<std::size_t>(count * element_bytes(spec_.dtype))), made(host.size());
  check::fill_elements(data_.x, 0, host);
  if (count > 0) device_.download(made.data(), x_.data, static_cast<std::int64_t>(made.size()));
  return host == made;
}

}  // namespace jitconv::tools
