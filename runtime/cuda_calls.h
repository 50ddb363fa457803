// The calls of libcuda that measuring needs, for tuning and the tools: memory, copies, events, properties.
// runtime/driver.h has none of them on purpose: a launch owns no memory. Handles are opaque; no CUDA header is
// included.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace jitconv::runtime {

/// Function pointers of an already loaded libcuda, under its exported names.
struct CudaCalls {
  using DevicePointer = unsigned long long;
  int (*get_error_name)(int, const char**) = nullptr;
  int (*driver_get_version)(int*) = nullptr;
  int (*device_get_name)(char*, int, int) = nullptr;
  int (*device_get_attribute)(int*, int, int) = nullptr;
  int (*mem_get_info)(std::size_t*, std::size_t*) = nullptr;
  int (*mem_alloc)(DevicePointer*, std::size_t) = nullptr;
  int (*mem_free)(DevicePointer) = nullptr;
  int (*memcpy_htod)(DevicePointer, const void*, std::size_t) = nullptr;
  int (*memcpy_dtod_async)(DevicePointer, DevicePointer, std::size_t, void*) = nullptr;
  int (*memcpy_dtoh)(void*, DevicePointer, std::size_t) = nullptr;
  int (*memset_d8_async)(DevicePointer, unsigned char, std::size_t, void*) = nullptr;
  int (*ctx_synchronize)() = nullptr;
  int (*event_create)(void**, unsigned) = nullptr;
  int (*event_destroy)(void*) = nullptr;
  int (*event_record)(void*, void*) = nullptr;
  int (*event_elapsed_time)(float*, void*, void*) = nullptr;

  /// Resolves every pointer; runtime::Driver::get() must have succeeded before. Throws CudaError (no_driver).
  CudaCalls();

  /// Throws CudaError naming `call` unless `result` is 0.
  void check(int result, const char* call) const;
};

/// A mark on the default stream, for times between two of them. `calls` must outlive it. Members throw CudaError.
class CudaEvent {
 public:
  explicit CudaEvent(const CudaCalls& calls) : calls_(calls) {
    calls_.check(calls_.event_create(&event_, 0), "cuEventCreate");
  }
  ~CudaEvent() { calls_.event_destroy(event_); }
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;
  void record() { calls_.check(calls_.event_record(event_, nullptr), "cuEventRecord"); }
  double ms_since(const CudaEvent& begin) const {
    float ms = 0;
    calls_.check(calls_.event_elapsed_time(&ms, begin.event_, event_), "cuEventElapsedTime");
    return static_cast<double>(ms);
  }

 private:
  const CudaCalls& calls_;
  void* event_ = nullptr;
};

}  // namespace jitconv::runtime
