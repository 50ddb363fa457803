// A libcuda.so.1 whose device is the host: memory is malloc's, the tools' data kernels run as C++, and any other kernel
// computes the reference of the spec in JITCONV_FAKE_SPEC, spoilt as JITCONV_FAKE_FAULT says. With it the tests walk
// all of jitconv-run without a GPU and see every check fire. It says nothing about generated kernels.
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "codegen/plan.h"
#include "codegen/source.h"
#include "runtime/launch_rules.h"
#include "tools/check/data.h"
#include "tools/check/number.h"
#include "tools/check/reference.h"

namespace {

#include "unit/tools/cli_device_kernels_on_host.h"

using namespace jitconv;
using Clock = std::chrono::steady_clock;

constexpr int kMultiprocessors = 4;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

template <typename T>
T argument(void** arguments, int index) {
  T value;
  std::memcpy(&value, arguments[index], sizeof value);
  return value;
}

void fill(const std::string& name, void** a) {
  const auto call = [a](auto kernel, auto* out) {
    kernel(out, argument<i64>(a, 1), argument<u64>(a, 2), argument<int>(a, 3), argument<u32>(a, 4), argument<u32>(a, 5),
           argument<float>(a, 6), argument<float>(a, 7));
  };
  if (name == "fill_f32") return call(fill_f32, argument<float*>(a, 0));
  call(name == "fill_f16" ? fill_f16 : fill_bf16, argument<u16*>(a, 0));
}

/// True if `name` was one of the tools' own kernels.
bool run_data_kernel(const std::string& name, void** a) {
  if (name.starts_with("fill_")) {
    fill(name, a);
  } else if (name == "gather_32") {
    gather_32(argument<u32*>(a, 0), argument<i64*>(a, 1), argument<u32*>(a, 2), argument<i64>(a, 3));
  } else if (name == "gather_16") {
    gather_16(argument<u16*>(a, 0), argument<i64*>(a, 1), argument<u32*>(a, 2), argument<i64>(a, 3));
  } else if (name == "count_nan_32") {
    count_nan_32(argument<u32*>(a, 0), argument<i64>(a, 1), argument<u32>(a, 2), argument<u64*>(a, 3));
  } else if (name == "count_nan_16") {
    count_nan_16(argument<u16*>(a, 0), argument<i64>(a, 1), argument<u32>(a, 2), argument<u64*>(a, 3));
  } else if (name == "count_other_bytes") {
    count_other_bytes(argument<unsigned char*>(a, 0), argument<i64>(a, 1), argument<u32>(a, 2), argument<u64*>(a, 3));
  } else {
    return false;
  }
  return true;
}

std::vector<float> tensor(const ConvSpec& spec, const void* data, std::int64_t count) {
  const std::size_t bytes = static_cast<std::size_t>(count * element_bytes(spec.dtype));
  return check::decode(spec.dtype, {static_cast<const std::byte*>(data), data != nullptr ? bytes : 0});
}

/// The entry that a kernel is. Plans with one entry all take the same arguments, whatever their names.
const codegen::KernelEntry& entry_of(const codegen::KernelSource& source, const std::string& name) {
  if (source.entries.size() == 1) return source.entries.front();
  for (const codegen::KernelEntry& entry : source.entries) {
    if (entry.name == name) return entry;
  }
  std::fprintf(stderr, "the fake driver does not know %s\n", name.c_str());
  std::abort();
}

void run_convolution(const std::string& name, void** arguments) {
  const ConvSpec spec = parse_spec(variable("JITCONV_FAKE_SPEC"));
  const std::string fault = variable("JITCONV_FAKE_FAULT");
  Target target = parse_target("sm_90a");
  target.sm_count = kMultiprocessors;
  const auto source = codegen::generate(codegen::make_plan(spec, target));
  const codegen::KernelEntry& entry = entry_of(source, name);
  // Kept from entry to entry: the one that writes y need not be the one that reads w.
  static std::array<void*, runtime::kTensors> pointers{};
  int index = 0;
  bool writes_y = false;
  for (const auto& one : entry.arguments) {
    pointers[static_cast<std::size_t>(one.tensor)] = argument<void*>(arguments, index++);
    writes_y |= one.tensor == codegen::Tensor::y;
  }
  if (!writes_y) return;
  const auto at = [&](codegen::Tensor tensor) { return pointers[static_cast<std::size_t>(tensor)]; };
  using enum codegen::Tensor;
  const std::int64_t outputs = check::element_count(output_shape(spec));
  const std::vector<float> x_values = tensor(spec, at(x), check::element_count(spec.input));
  const std::vector<float> w_values = tensor(spec, at(w), check::element_count(spec.weight));
  const std::vector<float> bias_values = tensor(spec, at(bias), spec.weight.k);
  const std::vector<float> residual_values = tensor(spec, at(residual), outputs);
  std::vector<float> result;
  for (const auto& one : check::reference(spec, {x_values, w_values, bias_values, residual_values})) {
    result.push_back(static_cast<float>(one.y));
  }
  if (fault == "value") result[result.size() / 2] += 0.01f;
  if (fault == "bit") result.back() = std::nextafter(result.back(), 1e9f);
  std::vector<std::byte> bytes = check::encode(spec.dtype, result);
  if (fault == "skip") bytes.resize(bytes.size() - static_cast<std::size_t>(element_bytes(spec.dtype)));
  std::memcpy(at(y), bytes.data(), bytes.size());
  if (fault == "before") static_cast<char*>(at(y))[-1] = 0;
  if (fault == "behind") static_cast<char*>(at(y))[bytes.size()] = 0;
}

struct Event {
  Clock::time_point time;
};

}  // namespace

// Signatures as libcuda's callers here declare them; names are the interface.
#define FAKE extern "C" __attribute__((visibility("default"))) int
using Pointer = unsigned long long;

FAKE cuInit(unsigned) { return variable("JITCONV_FAKE_FAULT") == "no_device" ? 100 : 0; }
FAKE cuDriverGetVersion(int* version) {
  *version = 13000;
  return 0;
}
FAKE cuGetErrorName(int, const char** text) {
  *text = "CUDA_ERROR_FAKE";
  return 0;
}
FAKE cuGetErrorString(int, const char** text) {
  *text = "made up";
  return 0;
}
FAKE cuDeviceGetCount(int* count) {
  *count = 1;
  return 0;
}
FAKE cuDeviceGetName(char* name, int size, int) {
  std::strncpy(name, "Fake GPU", static_cast<std::size_t>(size));
  return 0;
}
FAKE cuDeviceGetAttribute(int* value, int attribute, int) {
  const Target target = parse_target("sm_90a");
  switch (attribute) {
    case 13:
      *value = 1'000'000;
      break;  // kHz
    case 16:
      *value = kMultiprocessors;
      break;
    case 36:
      *value = 1'000'000;
      break;  // kHz, memory
    case 37:
      *value = 256;
      break;  // bits
    case 38:
      *value = 1024;
      break;  // L2
    case 39:
      *value = target.threads_per_sm;
      break;
    case 75:
      *value = 9;
      break;
    case 76:
      *value = 0;
      break;
    case 81:
      *value = static_cast<int>(target.shared_bytes_per_sm);
      break;
    case 82:
      *value = target.registers_per_sm;
      break;
    case 97:
      *value = static_cast<int>(target.shared_bytes_per_block);
      break;
    case 106:
      *value = target.blocks_per_sm;
      break;
    default:
      return 1;
  }
  return 0;
}
FAKE cuDevicePrimaryCtxRetain(void** context, int) {
  static int one;
  *context = &one;
  return 0;
}
static bool has_context = false;
FAKE cuCtxSetCurrent(void*) {
  has_context = true;
  return 0;
}
FAKE cuCtxGetDevice(int* device) {
  *device = 0;
  return has_context ? 0 : 201;
}
FAKE cuCtxSynchronize() { return variable("JITCONV_FAKE_FAULT") == "sticky" ? 700 : 0; }
FAKE cuLibraryLoadData(void** library, const void*, int*, void**, unsigned, int*, void**, unsigned) {
  *library = new int;
  return 0;
}
FAKE cuLibraryUnload(void* library) {
  delete static_cast<int*>(library);
  return 0;
}
FAKE cuLibraryGetKernel(void** kernel, void*, const char* name) {
  *kernel = new std::string(name);  // a kernel lives as long as the process: few are made
  return 0;
}
FAKE cuKernelGetFunction(void** function, void* kernel) {
  *function = kernel;
  return 0;
}
FAKE cuKernelGetAttribute(int* value, int, void*, int) {
  *value = 32;
  return 0;
}
FAKE cuKernelSetAttribute(int, int, void*, int) { return 0; }
FAKE cuFuncLoad(void*) { return 0; }
FAKE cuStreamIsCapturing(void*, int* status) {
  *status = 0;
  return 0;
}
FAKE cuThreadExchangeStreamCaptureMode(int*) { return 0; }
/// Maps begin with the address, so that kernels find it where a pointer would be.
FAKE cuTensorMapEncodeTiled(void* map, int, std::uint32_t, void* address, const std::uint64_t*, const std::uint64_t*,
                            const std::uint32_t*, const std::uint32_t*, int, int, int, int) {
  std::memcpy(map, &address, sizeof address);
  return 0;
}
FAKE cuTensorMapEncodeIm2col(void* map, int, std::uint32_t, void* address, const std::uint64_t*, const std::uint64_t*,
                             const int*, const int*, std::uint32_t, std::uint32_t, const std::uint32_t*, int, int, int,
                             int) {
  std::memcpy(map, &address, sizeof address);
  return 0;
}
FAKE cuLaunchKernel(void* function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*,
                    void** parameters, void**) {
  const std::string& name = *static_cast<std::string*>(function);
  if (!run_data_kernel(name, parameters)) run_convolution(name, parameters);
  return 0;
}
FAKE cuLaunchKernelEx(const void*, void* function, void** parameters, void**) {
  return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr);
}
FAKE cuMemGetInfo_v2(std::size_t* free_bytes, std::size_t* total) {
  const bool small = variable("JITCONV_FAKE_FAULT") == "memory";
  *free_bytes = *total = small ? 1000 : std::size_t{1} << 32;
  return 0;
}
FAKE cuMemAlloc_v2(Pointer* data, std::size_t bytes) {
  *data = reinterpret_cast<Pointer>(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
  return 0;
}
FAKE cuMemFree_v2(Pointer data) {
  std::free(reinterpret_cast<void*>(data));
  return 0;
}
FAKE cuMemcpyHtoD_v2(Pointer to, const void* from, std::size_t bytes) {
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  return 0;
}
FAKE cuMemcpyDtoDAsync_v2(Pointer to, Pointer from, std::size_t bytes, void*) {
  std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
  return 0;
}
FAKE cuMemcpyDtoH_v2(void* to, Pointer from, std::size_t bytes) {
  std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
  return 0;
}
FAKE cuMemsetD8Async(Pointer to, unsigned char value, std::size_t bytes, void*) {
  std::memset(reinterpret_cast<void*>(to), value, bytes);
  return 0;
}
FAKE cuEventCreate(void** event, unsigned) {
  *event = new Event;
  return 0;
}
FAKE cuEventDestroy_v2(void* event) {
  delete static_cast<Event*>(event);
  return 0;
}
FAKE cuEventRecord(void* event, void*) {
  static_cast<Event*>(event)->time = Clock::now();
  return 0;
}
FAKE cuEventElapsedTime(float* ms, void* begin, void* end) {
  *ms = std::chrono::duration<float, std::milli>(static_cast<Event*>(end)->time - static_cast<Event*>(begin)->time)
            .count();
  return 0;
}
