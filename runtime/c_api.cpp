// The C interface over the C++ one: translates structs, catches everything, keeps the thread's last error. It decides
// nothing of its own.
#include <pthread.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codegen/spec_fields.h"
#include "jitconv/jitconv.h"
#include "jitconv/jitconv.hpp"

struct jitconv_kernel {
  explicit jitconv_kernel(jitconv::Kernel the_kernel) : kernel(std::move(the_kernel)) {}

  /// Texts that Kernel makes on demand, made once here so that their pointers can be handed out.
  struct Texts {
    std::string spec, plan, explain, cache_key;
  };
  const Texts& texts() const {
    const std::lock_guard lock(mutex);  // not std::call_once, which ends the program when memory is short
    if (!made) made = Texts{to_string(kernel.spec()), kernel.plan(), kernel.explain(), kernel.cache_key()};
    return *made;
  }

  const jitconv::Kernel kernel;
  mutable std::mutex mutex;
  mutable std::optional<Texts> made;
};

namespace {

using namespace jitconv;

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
static_assert(JITCONV_GELU_ERF == static_cast<int>(Activation::gelu_erf));
static_assert(JITCONV_CLAMP == static_cast<int>(Activation::clamp));

// Sizes of the first version of each struct: less was never valid.
constexpr std::size_t kFirstSpec = 192, kFirstArgs = 56, kFirstResources = 32, kFirstStats = 48;
constexpr std::size_t kFirstCompileOptions = 16, kFirstPrepareOptions = 32;
static_assert(sizeof(jitconv_spec) >= kFirstSpec && sizeof(jitconv_launch_args) >= kFirstArgs);
static_assert(sizeof(jitconv_resources) >= kFirstResources && sizeof(jitconv_stats) >= kFirstStats);
static_assert(sizeof(jitconv_compile_options) >= kFirstCompileOptions);
static_assert(sizeof(jitconv_prepare_options) >= kFirstPrepareOptions);

/// The thread's last error: a text of its own on the heap, or one that needs no memory. Not an object with a
/// destructor: registering that ends the program when memory is short, and it may run before the last call of a thread
/// that ends.
struct LastError {
  const char* text = "";
  char* owned = nullptr;
};
thread_local LastError last_error;

/// A key of pthread's whose destructor frees the texts of threads that end. False if there can be none.
bool freed_with_thread(char* text) noexcept {
  static pthread_key_t key;
  static const bool created = pthread_key_create(&key, [](void* owned) {
                                last_error = {};
                                std::free(owned);
                              }) == 0;
  return created && pthread_setspecific(key, text) == 0;
}

jitconv_status fail(jitconv_status status, std::string_view message, std::string_view log = {}) noexcept {
  std::free(std::exchange(last_error.owned, nullptr));
  last_error.text = "out of memory";
  const std::size_t bytes = message.size() + (log.empty() ? 0 : log.size() + 1) + 1;
  char* const text = static_cast<char*>(std::malloc(bytes));
  if (!freed_with_thread(text)) {
    std::free(text);
    return status;
  }
  if (text == nullptr) return status;
  char* end = std::copy(message.begin(), message.end(), text);
  if (!log.empty()) {
    *end++ = '\n';
    end = std::copy(log.begin(), log.end(), end);
  }
  *end = '\0';
  last_error = {text, text};
  return status;
}

[[noreturn]] void refuse(const char* field, const std::string& message) {
  throw SpecError(ErrorCode::invalid_argument, field, message);
}

template <typename T>
T* required(T* pointer, const char* name) {
  if (pointer == nullptr) refuse(name, std::string(name) + " is null");
  return pointer;
}

/// Runs `body` and turns what it throws into a status and the thread's last error.
template <typename Body>
jitconv_status guarded(Body body) noexcept {
  try {
    body();
    return JITCONV_OK;
  } catch (const CompileError& error) {
    return fail(static_cast<jitconv_status>(error.code()), error.what(), error.log());
  } catch (const Error& error) {
    return fail(static_cast<jitconv_status>(error.code()), error.what());
  } catch (const std::bad_alloc&) {
    return fail(JITCONV_INTERNAL, "out of memory");
  } catch (const std::exception& error) {
    return fail(JITCONV_INTERNAL, error.what());
  } catch (...) {
    return fail(JITCONV_INTERNAL, "unknown exception");
  }
}

void check_struct_size(std::size_t size, std::size_t smallest, const char* name) {
  if (size >= smallest && size <= JITCONV_MAX_STRUCT_SIZE) return;
  refuse(name, std::string(name) + ".struct_size is " + std::to_string(size) + ", must be from " +
                   std::to_string(smallest) + " to " + std::to_string(JITCONV_MAX_STRUCT_SIZE));
}

/// A caller's struct, whatever its version, as this library's. Fields the caller does not have are zero; fields this
/// library does not have must be.
template <typename T>
T read_struct(const T* from, std::size_t smallest, const char* name) {
  const std::size_t size = required(from, name)->struct_size;
  check_struct_size(size, smallest, name);
  const char* bytes = reinterpret_cast<const char*>(from);
  if (size > sizeof(T) && std::any_of(bytes + sizeof(T), bytes + size, [](char byte) { return byte != 0; })) {
    throw SpecError(ErrorCode::unsupported, name,
                    std::string(name) + " sets a field that this version of jitconv, " + version() + ", does not have");
  }
  T copy{};
  std::memcpy(&copy, bytes, std::min(size, sizeof(T)));
  return copy;
}

/// Fills as much of the caller's struct as both sides know, and zeroes what only the caller knows.
template <typename T>
void write_struct(T value, T* to, std::size_t smallest, const char* name) {
  const std::uint32_t size = required(to, name)->struct_size;
  check_struct_size(size, smallest, name);
  std::memset(static_cast<void*>(to), 0, size);
  value.struct_size = size;
  std::memcpy(to, &value, std::min<std::size_t>(size, sizeof(T)));
}

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

void require_zero(std::int64_t value, const char* name) {
  if (value != 0) refuse("reserved", std::string(name) + " is " + std::to_string(value) + ", must be 0");
}

ConvSpec to_spec(const jitconv_spec* from) {
  const jitconv_spec c = read_struct(from, kFirstSpec, "spec");
  require_zero(c.reserved, "spec.reserved");
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
          0};
}

/// write_struct() of a spec, unless that would leave out what a smaller struct cannot say.
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

/// An array of specs, each as large as the caller's header says.
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

/// "sm_90a" for a GPU, "host" or "host-sm_90a" for this machine's CPU.
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

/// A text of the kernel, or null where there is no kernel or no memory for the text.
template <typename Text>
const char* text_of(const jitconv_kernel* kernel, Text text) noexcept {
  const char* result = nullptr;
  if (kernel != nullptr) guarded([&] { result = text(*kernel).c_str(); });
  return result;
}

}  // namespace

int32_t jitconv_abi_version(void) { return JITCONV_ABI_VERSION; }

const char* jitconv_version(void) { return version(); }

const char* jitconv_status_name(jitconv_status status) {
  switch (status) {
    case JITCONV_OK:
      return "ok";
    case JITCONV_INVALID_SPEC:
      return "invalid_spec";
    case JITCONV_INVALID_ARGUMENT:
      return "invalid_argument";
    case JITCONV_UNSUPPORTED:
      return "unsupported";
    case JITCONV_COMPILE_FAILED:
      return "compile_failed";
    case JITCONV_COMPILER_MISSING:
      return "compiler_missing";
    case JITCONV_NO_DRIVER:
      return "no_driver";
    case JITCONV_NO_DEVICE:
      return "no_device";
    case JITCONV_CUDA:
      return "cuda";
    case JITCONV_INTERNAL:
      return "internal";
    case JITCONV_KERNEL_FAULT:
      return "kernel_fault";
  }
  return "unknown";
}

const char* jitconv_last_error(void) { return last_error.text; }

jitconv_status jitconv_spec_init(jitconv_spec* spec, size_t struct_size) {
  return guarded([&] {
    required(spec, "spec");
    check_struct_size(struct_size, kFirstSpec, "spec");
    spec->struct_size = static_cast<std::uint32_t>(struct_size);
    write_struct(from_spec(ConvSpec{}), spec, kFirstSpec, "spec");
  });
}

jitconv_status jitconv_spec_parse(const char* text, jitconv_spec* spec) {
  return guarded([&] { write_spec(parse_spec(required(text, "text")), spec); });
}

jitconv_status jitconv_output_shape(const jitconv_spec* spec, int64_t shape[4]) {
  return guarded([&] { copy_shape(output_shape(to_spec(spec)), shape); });
}

jitconv_status jitconv_compile(const jitconv_spec* spec, const char* arch, jitconv_kernel** kernel) {
  return jitconv_compile_with(spec, arch, nullptr, kernel);
}

jitconv_status jitconv_compile_with(const jitconv_spec* spec, const char* arch, const jitconv_compile_options* options,
                                    jitconv_kernel** kernel) {
  return guarded([&] {
    *required(kernel, "kernel") = nullptr;
    const ConvSpec wanted = to_spec(spec);
    const CompileOptions how = to_options(options, "options");
    *kernel = new jitconv_kernel(arch == nullptr ? compile(wanted, how) : compile(wanted, to_target(arch), how));
  });
}

jitconv_status jitconv_prepare(const jitconv_spec* specs, size_t count, const char* arch,
                               const jitconv_prepare_options* options, jitconv_kernel** kernels) {
  return guarded([&] {
    if (count > 0) std::fill_n(required(kernels, "kernels"), count, nullptr);
    const std::vector<ConvSpec> wanted = to_specs(specs, count);
    const PrepareOptions how = to_options(options);
    std::vector<std::unique_ptr<jitconv_kernel>> made;
    made.reserve(count);
    for (Kernel& kernel : arch == nullptr ? prepare(wanted, how) : prepare(wanted, to_target(arch), how))
      made.push_back(std::make_unique<jitconv_kernel>(std::move(kernel)));
    for (std::unique_ptr<jitconv_kernel>& kernel : made) *kernels++ = kernel.release();
  });
}

void jitconv_kernel_destroy(jitconv_kernel* kernel) { delete kernel; }

jitconv_status jitconv_kernel_launch(const jitconv_kernel* kernel, void* stream, const jitconv_launch_args* args) {
  return guarded([&] {
    const jitconv_launch_args a = read_struct(args, kFirstArgs, "args");
    require_zero(a.reserved, "args.reserved");
    required(kernel, "kernel")->kernel.launch(stream, {a.x, a.w, a.bias, a.residual, a.y, a.workspace, a.packed_w});
  });
}

jitconv_status jitconv_kernel_pack_weights(const jitconv_kernel* kernel, void* stream, const void* w, void* packed_w) {
  return guarded([&] { required(kernel, "kernel")->kernel.pack_weights(stream, w, packed_w); });
}

int64_t jitconv_kernel_workspace_bytes(const jitconv_kernel* kernel) {
  return kernel == nullptr ? 0 : kernel->kernel.workspace_bytes();
}

int64_t jitconv_kernel_workspace_bytes_with_packed_weights(const jitconv_kernel* kernel) {
  return kernel == nullptr ? 0 : kernel->kernel.workspace_bytes_with_packed_weights();
}

int64_t jitconv_kernel_packed_weight_bytes(const jitconv_kernel* kernel) {
  return kernel == nullptr ? 0 : kernel->kernel.packed_weight_bytes();
}

jitconv_status jitconv_kernel_output_shape(const jitconv_kernel* kernel, int64_t shape[4]) {
  return guarded([&] { copy_shape(output_shape(required(kernel, "kernel")->kernel.spec()), shape); });
}

const char* jitconv_kernel_spec(const jitconv_kernel* kernel) {
  return text_of(kernel, [](const jitconv_kernel& k) -> const std::string& { return k.texts().spec; });
}

const char* jitconv_kernel_source(const jitconv_kernel* kernel) {
  return text_of(kernel, [](const jitconv_kernel& k) -> const std::string& { return k.kernel.source(); });
}

const char* jitconv_kernel_plan(const jitconv_kernel* kernel) {
  return text_of(kernel, [](const jitconv_kernel& k) -> const std::string& { return k.texts().plan; });
}

const char* jitconv_kernel_explain(const jitconv_kernel* kernel) {
  return text_of(kernel, [](const jitconv_kernel& k) -> const std::string& { return k.texts().explain; });
}

const char* jitconv_kernel_cache_key(const jitconv_kernel* kernel) {
  return text_of(kernel, [](const jitconv_kernel& k) -> const std::string& { return k.texts().cache_key; });
}

const char* jitconv_kernel_compile_log(const jitconv_kernel* kernel) {
  return text_of(kernel, [](const jitconv_kernel& k) -> const std::string& { return k.kernel.compile_log(); });
}

const void* jitconv_kernel_image(const jitconv_kernel* kernel, size_t* bytes) {
  const std::string* image = kernel == nullptr ? nullptr : &kernel->kernel.image();
  if (bytes != nullptr) *bytes = image == nullptr ? 0 : image->size();
  return image == nullptr ? nullptr : image->data();
}

size_t jitconv_kernel_entry_count(const jitconv_kernel* kernel) {
  std::size_t count = 0;
  if (kernel != nullptr) guarded([&] { count = kernel->kernel.resources().size(); });
  return count;
}

jitconv_status jitconv_kernel_resources(const jitconv_kernel* kernel, size_t entry, jitconv_resources* resources) {
  return guarded([&] {
    const std::vector<Resources> all = required(kernel, "kernel")->kernel.resources();
    if (entry >= all.size()) {
      refuse("entry", "entry is " + std::to_string(entry) + ", must be less than " + std::to_string(all.size()));
    }
    const Resources& r = all[entry];
    write_struct(jitconv_resources{0, r.registers, r.threads, 0, r.local_bytes, r.shared_bytes}, resources,
                 kFirstResources, "resources");
  });
}

jitconv_status jitconv_release_unused_kernels(size_t* released) {
  return guarded([&] {
    const std::size_t count = release_unused_kernels();
    if (released != nullptr) *released = count;
  });
}

jitconv_status jitconv_statistics(jitconv_stats* statistics) {
  return guarded([&] {
    const Statistics now = jitconv::statistics();
    write_struct(jitconv_stats{0, 0, now.memory_hits, now.disk_hits, now.disk_misses, now.compilations, now.disk_errors,
                               now.kernels},
                 statistics, kFirstStats, "statistics");
  });
}
