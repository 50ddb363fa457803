// A libcuda.so.1 without a GPU: records calls, checks how it is used, and returns the errors a test asks for. It models
// handles, contexts and attributes, not time or memory. Tests control it through this header.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace fake_driver {

/// What a tensor map was made of.
struct TensorMap {
  int data_type = 0, interleave = 0, swizzle = 0, l2_promotion = 0, fill = 0;
  void* address = nullptr;
  std::vector<std::uint64_t> extents, strides;
  std::vector<std::uint32_t> box, element_strides;
  std::vector<int> lower, upper;  ///< of an im2col map, whose box is channels and pixels; else empty
};

struct Launch {
  std::string kernel;
  std::array<unsigned, 3> grid{};
  unsigned threads = 0, shared_bytes = 0;
  void* stream = nullptr;
  bool may_overlap = false;      ///< cuLaunchKernelEx, programmatic stream serialization allowed
  std::vector<void*> arguments;  ///< as many as expect_arguments() said; of a tensor map its address
  std::vector<TensorMap> maps;   ///< of each argument; without extents where it is a pointer
};

/// Forgets recordings and requested failures, makes the calling thread's context null. Loaded libraries stay.
void reset();

/// The n-th call from now (1 is the next) returns `result` and does nothing. Not counted: queries of error texts, and
/// cuThreadExchangeStreamCaptureMode, whose failure when a mode is restored nobody can act on.
void fail_call_number(int n, int result);
/// Whether fewer than n calls were made since; withdraws the request.
bool failure_was_not_reached();
/// The next `times` calls of one entry point return `result` and do nothing.
void fail(const std::string& call, int result, int times = 1);

/// Names of the calls since reset(), in order; empty while recording is off.
std::vector<std::string> calls();
int count(const std::string& call);
std::vector<Launch> launches();
/// How many pointers to copy from a launch's parameters.
void expect_arguments(std::size_t count);
/// Off for measurements: a call then costs one comparison and no memory.
void record(bool on);

/// The calling thread's current context: that of a device, or none for -1.
void set_current_device(int device);
void set_device_count(int count);
/// Compute capability of every device; 9.0 unless changed.
void set_capability(int major, int minor);
void set_driver_version(int version);
void set_capturing(bool capturing);

int live_libraries();
int retained_primary_contexts();
/// What a real driver would have refused or crashed on: a launch beyond the allowed shared memory, a dead handle,
/// an unbalanced capture mode.
std::vector<std::string> violations();

}  // namespace fake_driver
