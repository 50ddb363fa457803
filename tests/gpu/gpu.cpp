// See gpu.h.
#include "gpu/gpu.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "jitconv/error.h"

namespace jitconv::test {
namespace {

struct Found {
  std::unique_ptr<tools::Device> device;
  std::string why_not;
};

const Found& found() {
  // Never destroyed: the driver may be gone when static objects are.
  static const Found* const result = [] {
    auto* const one = new Found;
    try {
      one->device = tools::open_cuda_device();
    } catch (const CudaError& error) {
      if (error.code() != ErrorCode::no_driver && error.code() != ErrorCode::no_device) throw;
      one->why_not = error.what();
    }
    return one;
  }();
  return *result;
}

constexpr unsigned kNonBlocking = 1;  // CU_STREAM_NON_BLOCKING
constexpr int kCaptureGlobal = 0;     // CU_STREAM_CAPTURE_MODE_GLOBAL

template <typename Function>
void resolve(void* library, const char* name, Function& function) {
  void* const symbol = dlsym(library, name);
  if (symbol == nullptr) throw CudaError(ErrorCode::no_driver, 0, name, fmt::format("libcuda.so.1 has no {}", name));
  function = reinterpret_cast<Function>(symbol);
}

CudaCalls resolve_all() {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw CudaError(ErrorCode::no_driver, 0, "dlopen", "libcuda.so.1 cannot be loaded");
  CudaCalls calls;
  resolve(library, "cuStreamCreate", calls.stream_create);
  resolve(library, "cuStreamDestroy_v2", calls.stream_destroy);
  resolve(library, "cuStreamSynchronize", calls.stream_synchronize);
  resolve(library, "cuStreamBeginCapture_v2", calls.stream_begin_capture);
  resolve(library, "cuStreamEndCapture", calls.stream_end_capture);
  resolve(library, "cuGraphInstantiateWithFlags", calls.graph_instantiate);
  resolve(library, "cuGraphLaunch", calls.graph_launch);
  resolve(library, "cuGraphExecDestroy", calls.graph_exec_destroy);
  resolve(library, "cuGraphDestroy", calls.graph_destroy);
  resolve(library, "cuMemcpyDtoDAsync_v2", calls.memcpy_dtod_async);
  resolve(library, "cuMemsetD8Async", calls.memset_d8_async);
  resolve(library, "cuLaunchKernel", calls.launch_kernel);
  return calls;
}

}  // namespace

tools::Device* gpu() { return found().device.get(); }
const std::string& why_no_gpu() { return found().why_not; }

std::string device_text() {
  if (gpu() == nullptr) return "none: " + why_no_gpu();
  const tools::DeviceProperties& device = gpu()->properties();
  return fmt::format("{}, {}, {}", device.name, device.driver, to_string(device.target));
}

const CudaCalls& CudaCalls::get() {
  static const CudaCalls calls = resolve_all();
  return calls;
}

void check_cuda(int result, const char* call) {
  if (result == 0) return;
  throw CudaError(ErrorCode::cuda, result, call, fmt::format("{} failed with CUresult {}", call, result));
}

Stream::Stream() { check_cuda(CudaCalls::get().stream_create(&stream_, kNonBlocking), "cuStreamCreate"); }
Stream::~Stream() { CudaCalls::get().stream_destroy(stream_); }
void Stream::synchronize() const { check_cuda(CudaCalls::get().stream_synchronize(stream_), "cuStreamSynchronize"); }

Graph::Graph(const Stream& stream) : stream_(stream) {
  check_cuda(CudaCalls::get().stream_begin_capture(stream.get(), kCaptureGlobal), "cuStreamBeginCapture");
}

void Graph::end_capture() {
  const CudaCalls& calls = CudaCalls::get();
  check_cuda(calls.stream_end_capture(stream_.get(), &graph_), "cuStreamEndCapture");
  check_cuda(calls.graph_instantiate(&exec_, graph_, 0), "cuGraphInstantiateWithFlags");
}

Graph::~Graph() {
  const CudaCalls& calls = CudaCalls::get();
  if (graph_ == nullptr) calls.stream_end_capture(stream_.get(), &graph_);  // a test failed half way
  if (exec_ != nullptr) calls.graph_exec_destroy(exec_);
  if (graph_ != nullptr) calls.graph_destroy(graph_);
}

void Graph::launch() const { check_cuda(CudaCalls::get().graph_launch(exec_, stream_.get()), "cuGraphLaunch"); }

}  // namespace jitconv::test
