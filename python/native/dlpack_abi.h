// The part of DLPack's C interface that PyTorch offers as torch.Tensor.__dlpack_c_exchange_api__ (2.11 does), in the
// layout of its version 1: a tensor's address, extents and strides without a Python object, and the current stream.
#pragma once

#include <cstdint>

namespace jitconv::python::dlpack {

constexpr std::uint32_t kMajorVersion = 1;
constexpr std::int32_t kCpu = 1, kCuda = 2;

struct Tensor {
  void* data;
  std::int32_t device_type, device;
  std::int32_t rank;
  std::uint8_t type_code, type_bits;
  std::uint16_t lanes;
  const std::int64_t* shape;
  const std::int64_t* strides;
  std::uint64_t byte_offset;
};

struct ExchangeApi {
  std::uint32_t major, minor;
  const ExchangeApi* previous;  ///< of an older major version, or null
  void *allocate, *from_object, *to_object;
  /// Fills `view`, which is valid while the object lives. 0, or -1 with a Python exception set.
  int (*view_of_object)(void* object, Tensor* view);
  int (*current_stream)(std::int32_t device_type, std::int32_t device, void** stream);
};

}  // namespace jitconv::python::dlpack
