// See tensors.h.
#include "support/tensors.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/check/number.h"
#include "tools/check/tensors.h"

namespace jitconv::test {
namespace {

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
  const std::size_t piece = static_cast<std::size_t>(
      std::max<std::int64_t>(1, 100'000 / std::max<std::int64_t>(1, check::reduction_length(spec))));
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

}  // namespace

std::int64_t output_count(const ConvSpec& spec) { return check::element_count(result_shape(spec)); }

LaunchArgs place_tensors(Arena& arena, const ConvSpec& spec, std::int64_t workspace_bytes,
                         std::int64_t packed_weight_bytes) {
  const std::vector<check::Input> inputs = check::inputs_of(spec);
  const std::vector<check::Result> results = check::results_of(spec);
  arena.reset(check::tensor_bytes(spec) + workspace_bytes + packed_weight_bytes,
              static_cast<int>(inputs.size() + results.size()) + 2);
  LaunchArgs args;
  for (const check::Input& input : inputs) args.*input.pointer = arena.add(input.name, input.bytes(), spec.alignment);
  for (const check::Result& result : results)
    args.*result.pointer = arena.add(result.name, result.bytes(), spec.alignment);
  args.workspace = arena.add("workspace", workspace_bytes, 256);
  args.packed_w = arena.add("packed_w", packed_weight_bytes, 256);
  arena.seal();
  return args;
}

void fill_tensors(tools::Device& device, const ConvSpec& spec, const check::Data& data, const LaunchArgs& args,
                  std::int64_t workspace_bytes) {
  for (const check::Input& input : check::inputs_of(spec))
    if (input.count > 0) device.generate(const_cast<void*>(args.*input.pointer), input.count, data.*input.fill);
  for (const check::Result& result : check::results_of(spec))
    device.set_bytes(args.*result.pointer, kNanByte, result.bytes());
  device.set_bytes(args.workspace, kNanByte, workspace_bytes);
}

std::string input_difference(tools::Device& device, const ConvSpec& spec, const check::Data& data,
                             const LaunchArgs& args) {
  constexpr std::int64_t kPlaces = 64;
  for (const check::Input& input : check::inputs_of(spec)) {
    if (input.count == 0) continue;
    std::vector<std::int64_t> places;
    for (std::int64_t i = 0; i < kPlaces; ++i)
      places.push_back(static_cast<std::int64_t>(static_cast<double>(input.count - 1) * static_cast<double>(i) /
                                                 static_cast<double>(kPlaces - 1)));
    places.back() = input.count - 1;
    std::vector<std::uint32_t> bits(places.size());
    device.gather(args.*input.pointer, input.type, places, bits);
    for (std::size_t i = 0; i < places.size(); ++i) {
      const float got = check::from_bits(input.type, bits[i]), want = (data.*input.fill)(places[i]);
      if (got == want) continue;
      return fmt::format("{}[{}] is {:.9g} on the device, {:.9g} on the host", input.name, places[i], got, want);
    }
  }
  return {};
}

std::vector<std::byte> output_bytes(tools::Device& device, const ConvSpec& spec, const LaunchArgs& args) {
  std::vector<std::byte> all;
  for (const check::Result& result : check::results_of(spec)) {
    if (result.count == 0) continue;
    const std::size_t before = all.size();
    all.resize(before + static_cast<std::size_t>(result.bytes()));
    device.download(all.data() + before, args.*result.pointer, result.bytes());
  }
  return all;
}

Reference make_reference(const ConvSpec& spec, check::DataKind kind, std::uint64_t seed,
                         const ReferenceLimits& limits) {
  const std::int64_t outputs = check::position_count(spec), length = check::reduction_length(spec);
  const bool all = outputs <= limits.outputs && outputs * length <= limits.multiplications;
  Reference result;
  result.kind = kind;
  result.positions = check::sample_positions(spec, all ? outputs : limits.sample, seed);

  const std::int64_t used = static_cast<std::int64_t>(result.positions.size()) * length;
  const auto worth_keeping = [used](std::int64_t count) { return count <= used && count <= kMostKept; };
  constexpr std::uint64_t kTries = 16;
  for (std::uint64_t attempt = 0; attempt < kTries; ++attempt) {
    result.data = check::make_data(spec, kind, seed * kTries + attempt);
    check::Operands operands(result.data);
    std::vector<std::vector<float>> kept;
    for (const check::Input& input : check::inputs_of(spec)) {
      if (!worth_keeping(input.count)) continue;
      kept.push_back(values(result.data.*input.fill, input.count));
      operands.*input.operand = kept.back();
    }
    result.expected = serial_reference(spec, operands, result.positions);
    if (!mostly_zero(result.expected)) break;
  }
  return result;
}

}  // namespace jitconv::test
