// The GPU of this process, or the reason why there is none; and the driver calls that only these tests make (streams,
// graphs, raw launches), under libcuda's exported names because nothing here includes a CUDA header.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>

#include "tools/device.h"

namespace jitconv::test {

/// Device 0, opened at the first call. Null if the machine has no driver or no device, and why_no_gpu() says which; any
/// other failure throws.
tools::Device* gpu();
const std::string& why_no_gpu();
/// "NVIDIA H200, CUDA driver 13.0, sm_90a ...", or why there is none.
std::string device_text();

/// Skips its tests, with the reason, on a machine without a GPU.
class GpuTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (gpu() == nullptr) GTEST_SKIP() << why_no_gpu();
  }
  tools::Device& device() const { return *gpu(); }
  const Target& target() const { return gpu()->properties().target; }
};

/// Entry points of libcuda. Throws CudaError (no_driver) if one is missing.
struct CudaCalls {
  using Handle = void*;
  using DevicePointer = unsigned long long;
  int (*stream_create)(Handle*, unsigned flags) = nullptr;
  int (*stream_destroy)(Handle) = nullptr;
  int (*stream_synchronize)(Handle) = nullptr;
  int (*stream_begin_capture)(Handle, int mode) = nullptr;
  int (*stream_end_capture)(Handle, Handle* graph) = nullptr;
  int (*graph_instantiate)(Handle* exec, Handle graph, unsigned long long flags) = nullptr;
  int (*graph_launch)(Handle exec, Handle stream) = nullptr;
  int (*graph_exec_destroy)(Handle) = nullptr;
  int (*graph_destroy)(Handle) = nullptr;
  int (*memcpy_dtod_async)(DevicePointer to, DevicePointer from, std::size_t, Handle stream) = nullptr;
  int (*memset_d8_async)(DevicePointer, unsigned char, std::size_t, Handle stream) = nullptr;
  int (*launch_kernel)(Handle function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned shared,
                       Handle stream, void** parameters, void** extra) = nullptr;
  static const CudaCalls& get();
};

/// Throws CudaError unless `result` is 0.
void check_cuda(int result, const char* call);

/// A stream that does not wait for the default stream.
class Stream {
 public:
  Stream();
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  void* get() const { return stream_; }
  void synchronize() const;

 private:
  void* stream_ = nullptr;
};

/// What is enqueued on a stream between begin and end, to be launched again and again.
class Graph {
 public:
  /// Starts the capture; in its strictest mode, in which unsafe calls of any thread break it.
  explicit Graph(const Stream& stream);
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  void end_capture();
  void launch() const;

 private:
  const Stream& stream_;
  void* graph_ = nullptr;
  void* exec_ = nullptr;
};

}  // namespace jitconv::test
