// The one list of ConvSpec's fields. Printing, parsing and hashing are visitors of it, so a field cannot be known to
// one and forgotten by another: a member that is added to a struct of jitconv/spec.h and not listed here does not
// compile. Nothing here checks values; that is validate().
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "jitconv/spec.h"

namespace jitconv::codegen {

inline constexpr std::array<std::string_view, 3> kOperationNames = {"forward", "data_gradient", "weight_gradient"};
inline constexpr std::array<std::string_view, 3> kDataTypeNames = {"f32", "f16", "bf16"};
inline constexpr std::array<std::string_view, 4> kOutputTypeNames = {"same", "f32", "f16", "bf16"};
inline constexpr std::array<std::string_view, 2> kLayoutNames = {"nchw", "nhwc"};
inline constexpr std::array<std::string_view, 4> kMathModeNames = {"ieee", "fp32", "tf32", "fp16x3"};
inline constexpr std::array<std::string_view, 10> kActivationNames = {
    "none", "relu", "leaky_relu", "gelu_erf", "gelu_tanh", "silu", "sigmoid", "tanh", "hardswish", "clamp"};

/// The names of an enum's values, in order; the argument only picks the enum.
constexpr const auto& names_of(Operation) { return kOperationNames; }
constexpr const auto& names_of(DataType) { return kDataTypeNames; }
constexpr const auto& names_of(OutputType) { return kOutputTypeNames; }
constexpr const auto& names_of(Layout) { return kLayoutNames; }
constexpr const auto& names_of(MathMode) { return kMathModeNames; }
constexpr const auto& names_of(Activation) { return kActivationNames; }

/// False for a value that was cast from a number outside the enum.
template <typename Enum>
constexpr bool is_known(Enum value) {
  return static_cast<std::size_t>(value) < names_of(value).size();
}

static_assert(kOperationNames.size() == static_cast<std::size_t>(Operation::weight_gradient) + 1);
static_assert(kDataTypeNames.size() == static_cast<std::size_t>(DataType::bf16) + 1);
static_assert(kOutputTypeNames.size() == static_cast<std::size_t>(OutputType::bf16) + 1);
static_assert(kLayoutNames.size() == static_cast<std::size_t>(Layout::nhwc) + 1);
static_assert(kMathModeNames.size() == static_cast<std::size_t>(MathMode::fp16x3) + 1);
static_assert(kActivationNames.size() == static_cast<std::size_t>(Activation::clamp) + 1);

/// Calls visit(name, value...) for every field, in the order to_string() prints them; `name` is the key of the text
/// form and the values are references into `spec`, all of one type: std::int64_t, float, bool or an enum.
template <typename Spec, typename Visitor>
constexpr void for_each_field(Spec& spec, Visitor&& visit) {
  static_assert(std::is_same_v<std::remove_const_t<Spec>, ConvSpec>);
  // The bindings must name every member of their struct, which is what makes an unlisted member an error.
  auto& [operation, input, weight, stride, padding, dilation, groups, dtype, output_dtype, input_layout, output_layout,
         math, epilogue, alignment, dy_activation] = spec;
  auto& [n, c, h, w] = input;
  auto& [k, weight_c, r, s] = weight;
  auto& [stride_h, stride_w] = stride;
  auto& [top, bottom, left, right] = padding;
  auto& [dilation_h, dilation_w] = dilation;
  auto& [bias, residual, activation, slope, clamp_min, clamp_max] = epilogue;

  visit("input", n, c, h, w);
  visit("weight", k, weight_c, r, s);
  visit("stride", stride_h, stride_w);
  visit("padding", top, bottom, left, right);
  visit("dilation", dilation_h, dilation_w);
  visit("groups", groups);
  visit("dtype", dtype);
  visit("input_layout", input_layout);
  visit("output_layout", output_layout);
  visit("math", math);
  visit("bias", bias);
  visit("residual", residual);
  visit("activation", activation);
  visit("slope", slope);
  visit("clamp_min", clamp_min);
  visit("clamp_max", clamp_max);
  visit("alignment", alignment);
  visit("operation", operation);
  visit("output_dtype", output_dtype);
  visit("dy_activation", dy_activation);
}

namespace detail {

template <typename T>
std::uint64_t hash_bits(T value) {
  if constexpr (std::is_same_v<T, float>) {
    // -0.0f == 0.0f, so both must hash alike; adding +0 turns the former into the latter.
    return std::bit_cast<std::uint32_t>(value + 0.0f);
  } else {
    return static_cast<std::uint64_t>(value);
  }
}

}  // namespace detail

/// Equal specs have equal hashes. About 30 multiplications: cheap enough for every compile(). Differs between versions
/// of jitconv, so it must not be stored.
inline std::size_t hash_value(const ConvSpec& spec) noexcept {
  std::uint64_t hash = 0x9e3779b97f4a7c15u;
  const auto mix = [&hash](std::uint64_t bits) {
    hash = (hash ^ bits) * 0xbf58476d1ce4e5b9u;
    hash ^= hash >> 29;
  };
  for_each_field(spec, [&mix](std::string_view, const auto&... value) { (mix(detail::hash_bits(value)), ...); });
  return static_cast<std::size_t>(hash ^ (hash >> 32));
}

}  // namespace jitconv::codegen
