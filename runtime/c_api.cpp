// The C interface over the C++ one: translates structs, catches everything, keeps the thread's last error. It decides
// nothing of its own.
#include <pthread.h>

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

#include "jitconv/jitconv.h"
#include "jitconv/jitconv.hpp"
#include "runtime/c_types.h"

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
using namespace jitconv::c;

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

jitconv_status jitconv_tune(const jitconv_spec* spec, const jitconv_tune_options* options, jitconv_kernel** kernel) {
  return guarded([&] {
    *required(kernel, "kernel") = nullptr;
    const ConvSpec wanted = to_spec(spec);
    *kernel = new jitconv_kernel(tune(wanted, to_options(options)));
  });
}

void jitconv_kernel_destroy(jitconv_kernel* kernel) { delete kernel; }

jitconv_status jitconv_kernel_launch(const jitconv_kernel* kernel, void* stream, const jitconv_launch_args* args) {
  return guarded([&] {
    const jitconv_launch_args a = read_struct(args, kFirstArgs, "args");
    require_zero(a.reserved, "args.reserved");
    required(kernel, "kernel")
        ->kernel.launch(stream,
                        {a.x, a.w, a.bias, a.residual, a.y, a.workspace, a.packed_w, a.dy, a.dx, a.dw, a.db, a.saved});
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
