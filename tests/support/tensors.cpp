// See tensors.h.
#include "support/tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "tools/check/number.h"

namespace jitconv::test {
namespace {

using check::element_count;

/// More values than this are made one by one, when they are used.
constexpr std::int64_t kMostKept = 1 << 25;

std::vector<float> values(const check::Fill& fill, std::int64_t count) {
  std::vector<float> result(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) result[static_cast<std::size_t>(i)] = fill(i);
  return result;
}

/// The reference is parallel for large counts; in pieces this small it stays in the calling thread.
std::vector<check::Expected> serial_reference(const ConvSpec& spec, const check::Operands& operands,
                                              std::span<const std::int64_t> positions) {
  const std::size_t piece =
      static_cast<std::size_t>(std::max<std::int64_t>(1, 100'000 / check::reduction_length(spec)));
  std::vector<check::Expected> all;
  all.reserve(positions.size());
  for (std::size_t at = 0; at < positions.size(); at += piece) {
    const auto some =
        check::reference_at(spec, operands, positions.subspan(at, std::min(piece, positions.size() - at)));
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

bool mostly_zero(const std::vector<check::Expected>& expected) {
  std::int64_t with_terms = 0, zero = 0;
  for (const check::Expected& one : expected) {
    if (one.terms == 0) continue;
    ++with_terms;
    if (one.z == 0) ++zero;
  }
  return 2 * zero > with_terms;
}

float value_of(DataType type, std::uint32_t bits) {
  if (type == DataType::f16) return check::from_f16(static_cast<std::uint16_t>(bits));
  if (type == DataType::bf16) return check::from_bf16(static_cast<std::uint16_t>(bits));
  return std::bit_cast<float>(bits);
}

struct Input {
  const char* name;
  const void* at;
  std::int64_t count;
  const check::Fill* fill;
};

std::vector<Input> inputs_of(const ConvSpec& spec, const check::Data& data, const LaunchArgs& args) {
  std::vector<Input> inputs = {{"x", args.x, element_count(spec.input), &data.x},
                               {"w", args.w, element_count(spec.weight), &data.w}};
  if (spec.epilogue.bias) inputs.push_back({"bias", args.bias, spec.weight.k, &data.bias});
  if (spec.epilogue.residual) inputs.push_back({"residual", args.residual, output_count(spec), &data.residual});
  return inputs;
}

}  // namespace

std::int64_t output_count(const ConvSpec& spec) { return element_count(output_shape(spec)); }

std::int64_t tensor_bytes(const ConvSpec& spec) {
  const std::int64_t outputs = output_count(spec);
  return element_bytes(spec.dtype) *
         (element_count(spec.input) + element_count(spec.weight) + outputs + (spec.epilogue.bias ? spec.weight.k : 0) +
          (spec.epilogue.residual ? outputs : 0));
}

LaunchArgs place_tensors(Arena& arena, const ConvSpec& spec, std::int64_t workspace_bytes,
                         std::int64_t packed_weight_bytes) {
  const std::int64_t size = element_bytes(spec.dtype), outputs = output_count(spec);
  arena.reset(tensor_bytes(spec) + workspace_bytes + packed_weight_bytes, /*tensors=*/7);
  LaunchArgs args;
  args.x = arena.add("x", element_count(spec.input) * size, spec.alignment);
  args.w = arena.add("w", element_count(spec.weight) * size, spec.alignment);
  args.y = arena.add("y", outputs * size, spec.alignment);
  if (spec.epilogue.bias) args.bias = arena.add("bias", spec.weight.k * size, spec.alignment);
  if (spec.epilogue.residual) args.residual = arena.add("residual", outputs * size, spec.alignment);
  args.workspace = arena.add("workspace", workspace_bytes, 256);
  args.packed_w = arena.add("packed_w", packed_weight_bytes, 256);
  arena.seal();
  return args;
}

void fill_tensors(tools::Device& device, const ConvSpec& spec, const check::Data& data, const LaunchArgs& args,
                  std::int64_t workspace_bytes) {
  for (const Input& input : inputs_of(spec, data, args))
    device.generate(const_cast<void*>(input.at), input.count, *input.fill);
  device.set_bytes(args.y, kNanByte, output_count(spec) * element_bytes(spec.dtype));
  device.set_bytes(args.workspace, kNanByte, workspace_bytes);
}

std::string input_difference(tools::Device& device, const ConvSpec& spec, const check::Data& data,
                             const LaunchArgs& args) {
  constexpr std::int64_t kPlaces = 64;
  for (const Input& input : inputs_of(spec, data, args)) {
    if (input.count == 0) continue;
    std::vector<std::int64_t> places;
    for (std::int64_t i = 0; i < kPlaces; ++i)
      places.push_back(static_cast<std::int64_t>(static_cast<double>(input.count - 1) * static_cast<double>(i) /
                                                 static_cast<double>(kPlaces - 1)));
    places.back() = input.count - 1;
    std::vector<std::uint32_t> bits(places.size());
    device.gather(input.at, spec.dtype, places, bits);
    for (std::size_t i = 0; i < places.size(); ++i) {
      const float got = value_of(spec.dtype, bits[i]), want = (*input.fill)(places[i]);
      if (got == want) continue;
      return fmt::format("{}[{}] is {:.9g} on the device, {:.9g} on the host", input.name, places[i], got, want);
    }
  }
  return {};
}

std::vector<float> outputs_at(tools::Device& device, const ConvSpec& spec, const void* y,
                              std::span<const std::int64_t> positions) {
  std::vector<std::uint32_t> bits(positions.size());
  device.gather(y, spec.dtype, positions, bits);
  std::vector<float> result(bits.size());
  std::transform(bits.begin(), bits.end(), result.begin(),
                 [&](std::uint32_t one) { return value_of(spec.dtype, one); });
  return result;
}

std::vector<std::byte> output_bytes(tools::Device& device, const ConvSpec& spec, const void* y) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(output_count(spec) * element_bytes(spec.dtype)));
  if (!bytes.empty()) device.download(bytes.data(), y, static_cast<std::int64_t>(bytes.size()));
  return bytes;
}

Reference make_reference(const ConvSpec& spec, check::DataKind kind, std::uint64_t seed,
                         const ReferenceLimits& limits) {
  const std::int64_t outputs = output_count(spec), length = check::reduction_length(spec);
  const bool all = outputs <= limits.outputs && outputs * length <= limits.multiplications;
  Reference result;
  result.kind = kind;
  result.positions = check::sample_positions(spec, all ? outputs : limits.sample, seed);

  const std::int64_t used = static_cast<std::int64_t>(result.positions.size()) * length;
  const auto worth_keeping = [used](std::int64_t count) { return count <= used && count <= kMostKept; };
  constexpr std::uint64_t kTries = 16;
  for (std::uint64_t attempt = 0; attempt < kTries; ++attempt) {
    result.data = check::make_data(spec, kind, seed * kTries + attempt);
    std::vector<float> x, w;
    check::Operands operands(result.data);
    if (worth_keeping(element_count(spec.input))) operands.x = x = values(result.data.x, element_count(spec.input));
    if (worth_keeping(element_count(spec.weight))) operands.w = w = values(result.data.w, element_count(spec.weight));
    result.expected = serial_reference(spec, operands, result.positions);
    if (!mostly_zero(result.expected)) break;
  }
  return result;
}

}  // namespace jitconv::test
