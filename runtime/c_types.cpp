// See c_types.h.
#include "runtime/c_types.h"

#include "codegen/spec_fields.h"

namespace jitconv::c {
namespace {

static_assert(JITCONV_INVALID_SPEC == static_cast<int>(ErrorCode::invalid_spec));
static_assert(JITCONV_INVALID_ARGUMENT == static_cast<int>(ErrorCode::invalid_argument));
static_assert(JITCONV_UNSUPPORTED == static_cast<int>(ErrorCode::unsupported));
static_assert(JITCONV_COMPILE_FAILED == static_cast<int>(ErrorCode::compile_failed));
static_assert(JITCONV_COMPILER_MISSING == static_cast<int>(ErrorCode::compiler_missing));
static_assert(JITCONV_NO_DRIVER == static_cast<int>(ErrorCode::no_driver));
static_assert(JITCONV_NO_DEVICE == static_cast<int>(ErrorCode::no_device));
static_assert(JITCONV_CUDA == static_cast<int>(ErrorCode::cuda));
static_assert(JITCONV_INTERNAL == static_cast<int>(ErrorCode::internal));
static_assert(JITCONV_KERNEL_FAULT == static_cast<int>(ErrorCode::kernel_fault));
static_assert(JITCONV_WEIGHT_GRADIENT == static_cast<int>(Operation::weight_gradient));
static_assert(JITCONV_OUTPUT_BF16 == static_cast<int>(OutputType::bf16));
static_assert(JITCONV_NO_KERNEL == static_cast<int>(Origin::failed));
static_assert(JITCONV_BF16 == static_cast<int>(DataType::bf16) && JITCONV_NHWC == static_cast<int>(Layout::nhwc));
static_assert(JITCONV_MATH_TF32 == static_cast<int>(MathMode::tf32));
static_assert(JITCONV_MATH_FP16X3 == static_cast<int>(MathMode::fp16x3));
static_assert(JITCONV_GELU_ERF == static_cast<int>(Activation::gelu_erf));
static_assert(JITCONV_CLAMP == static_cast<int>(Activation::clamp));

/// validate() knows the enumerators; here only what no enumerator can be is refused.
template <typename Enum>
Enum to_enum(std::int32_t value, const char* name) {
  if (value < 0 || value > 255) {
    throw SpecError(name, std::string(name) + " has the unknown value " + std::to_string(value) + ", must be below " +
                              std::to_string(codegen::names_of(Enum{}).size()));
  }
  return static_cast<Enum>(value);
}

bool to_bool(std::int32_t value, const char* name) {
  if (value != 0 && value != 1) {
    throw SpecError(name, std::string(name) + " is " + std::to_string(value) + ", must be 0 or 1");
  }
  return value == 1;
}

}  // namespace

void refuse(const char* field, const std::string& message) {
  throw SpecError(ErrorCode::invalid_argument, field, message);
}

void check_struct_size(std::size_t size, std::size_t smallest, const char* name) {
  if (size >= smallest && size <= JITCONV_MAX_STRUCT_SIZE) return;
  refuse(name, std::string(name) + ".struct_size is " + std::to_string(size) + ", must be from " +
                   std::to_string(smallest) + " to " + std::to_string(JITCONV_MAX_STRUCT_SIZE));
}

void require_zero(std::int64_t value, const char* name) {
  if (value != 0) refuse("reserved", std::string(name) + " is " + std::to_string(value) + ", must be 0");
}

ConvSpec to_spec(const jitconv_spec* from) {
  const jitconv_spec c = read_struct(from, kFirstSpec, "spec");
  ConvSpec spec;
  spec.operation = to_enum<Operation>(c.operation, "operation");
  spec.input = {c.input[0], c.input[1], c.input[2], c.input[3]};
  spec.weight = {c.weight[0], c.weight[1], c.weight[2], c.weight[3]};
  spec.stride = {c.stride[0], c.stride[1]};
  spec.padding = {c.padding[0], c.padding[1], c.padding[2], c.padding[3]};
  spec.dilation = {c.dilation[0], c.dilation[1]};
  spec.groups = c.groups;
  spec.dtype = to_enum<DataType>(c.dtype, "dtype");
  spec.output_dtype = to_enum<OutputType>(c.output_dtype, "output_dtype");
  spec.input_layout = to_enum<Layout>(c.input_layout, "input_layout");
  spec.output_layout = to_enum<Layout>(c.output_layout, "output_layout");
  spec.math = to_enum<MathMode>(c.math, "math");
  spec.epilogue.bias = to_bool(c.bias, "bias");
  spec.epilogue.residual = to_bool(c.residual, "residual");
  spec.epilogue.activation = to_enum<Activation>(c.activation, "epilogue.activation");
  spec.epilogue.slope = c.slope;
  spec.epilogue.clamp_min = c.clamp_min;
  spec.epilogue.clamp_max = c.clamp_max;
  spec.alignment = c.alignment;
  spec.dy_activation = to_enum<Activation>(c.dy_activation, "dy_activation");
  return spec;
}

jitconv_spec from_spec(const ConvSpec& spec) {
  return {sizeof(jitconv_spec),
          static_cast<std::int32_t>(spec.dtype),
          {spec.input.n, spec.input.c, spec.input.h, spec.input.w},
          {spec.weight.k, spec.weight.c, spec.weight.r, spec.weight.s},
          {spec.stride.h, spec.stride.w},
          {spec.padding.top, spec.padding.bottom, spec.padding.left, spec.padding.right},
          {spec.dilation.h, spec.dilation.w},
          spec.groups,
          static_cast<std::int32_t>(spec.input_layout),
          static_cast<std::int32_t>(spec.output_layout),
          static_cast<std::int32_t>(spec.math),
          spec.epilogue.bias,
          spec.epilogue.residual,
          static_cast<std::int32_t>(spec.epilogue.activation),
          spec.epilogue.slope,
          spec.epilogue.clamp_min,
          spec.epilogue.clamp_max,
          static_cast<std::int32_t>(spec.operation),
          spec.alignment,
          static_cast<std::int32_t>(spec.output_dtype),
          static_cast<std::int32_t>(spec.dy_activation)};
}

void write_spec(const ConvSpec& from, jitconv_spec* to) {
  const jitconv_spec all = from_spec(from);
  const std::size_t size = required(to, "spec")->struct_size;
  check_struct_size(size, kFirstSpec, "spec");
  const char* bytes = reinterpret_cast<const char*>(&all);
  if (size < sizeof all && std::any_of(bytes + size, bytes + sizeof all, [](char byte) { return byte != 0; })) {
    throw SpecError(ErrorCode::unsupported, "spec",
                    "spec.struct_size is " + std::to_string(size) + ", which is too small for " + to_string(from) +
                        ": the program was built with an older jitconv.h");
  }
  write_struct(all, to, kFirstSpec, "spec");
}

CompileOptions to_options(const jitconv_compile_options* from, const std::string& name) {
  if (from == nullptr) return {};
  const jitconv_compile_options c = read_struct(from, kFirstCompileOptions, name.c_str());
  require_zero(c.reserved, (name + ".reserved").c_str());
  return {to_bool(c.line_info, "line_info"), to_bool(c.counters, "counters")};
}

PrepareOptions to_options(const jitconv_prepare_options* from) {
  if (from == nullptr) return {};
  const jitconv_prepare_options c = read_struct(from, kFirstPrepareOptions, "options");
  PrepareOptions options{to_options(c.compile, "options.compile"), c.threads, nullptr};
  if (c.progress == nullptr) return options;
  options.progress = [report = c.progress, user_data = c.user_data](const Progress& now) {
    const jitconv_progress progress{sizeof(jitconv_progress), static_cast<std::int32_t>(now.origin), now.done,
                                    now.total, now.index};
    report(&progress, user_data);
  };
  return options;
}

TuneOptions to_options(const jitconv_tune_options* from) {
  if (from == nullptr) return {};
  const jitconv_tune_options c = read_struct(from, kFirstTuneOptions, "options");
  TuneOptions options;
  options.compile = to_options(c.compile, "options.compile");
  if (c.candidates != 0) options.candidates = c.candidates;
  if (c.launches != 0) options.launches = c.launches;
  options.again = to_bool(c.again, "again");
  return options;
}

std::vector<ConvSpec> to_specs(const jitconv_spec* from, std::size_t count) {
  std::vector<ConvSpec> specs;
  if (count == 0) return specs;
  const std::uint32_t size = required(from, "specs")->struct_size;
  check_struct_size(size, kFirstSpec, "specs[0]");
  if (size % alignof(jitconv_spec) != 0) {
    refuse("specs[0]", "specs[0].struct_size is " + std::to_string(size) + ", must be a multiple of " +
                           std::to_string(alignof(jitconv_spec)));
  }
  for (std::size_t i = 0; i < count; ++i) {
    const auto* spec = reinterpret_cast<const jitconv_spec*>(reinterpret_cast<const char*>(from) + i * size);
    if (spec->struct_size != size) {
      refuse("specs", "specs[" + std::to_string(i) + "].struct_size is " + std::to_string(spec->struct_size) +
                          ", must be " + std::to_string(size) + ", as that of specs[0]");
    }
    specs.push_back(to_spec(spec));
  }
  return specs;
}

Target to_target(std::string_view arch) {
  constexpr std::string_view kHost = "host";
  if (arch == kHost) return Target::host();
  try {
    if (!arch.starts_with("host-")) return parse_target(arch);
    return Target::host(parse_target(arch.substr(kHost.size() + 1)));
  } catch (const SpecError& error) {
    throw SpecError(error.code(), error.field(),
                    std::string(error.what()) +
                        "; before each may stand \"host-\", and \"host\" is host-sm_90a (arch is \"" +
                        std::string(arch) + "\")");
  }
}

void copy_shape(const TensorShape& shape, std::int64_t* to) {
  const std::int64_t extents[] = {shape.n, shape.c, shape.h, shape.w};
  std::copy(std::begin(extents), std::end(extents), required(to, "shape"));
}

}  // namespace jitconv::c
