// Compiled images in general, whatever made them and whatever runs them: the words that compilers (nvrtc.h), loaders
// (driver.h) and backends (backend.h) have in common. Plain types; nothing here does anything.
#pragma once

#include <cstdint>
#include <string>

namespace jitconv::runtime {

/// Which compiler would make an image. Part of every cache key, so finding it out is cheap: NVRTC is not loaded for it,
/// a C++ compiler runs once per process.
struct CompilerIdentity {
  std::string path;      ///< absolute, links resolved
  std::string version;   ///< "13.0"
  std::string build_id;  ///< GNU build id, or size and digest of the file where it has none
  bool operator==(const CompilerIdentity&) const = default;
};

/// An image and how it was come by.
struct Binary {
  std::string image;  ///< cubin, or whatever else the backend loads
  std::string log;    ///< what the compiler said
  bool from_cache = false;
};

/// A loaded image. Unloads in the destructor of the derived class, which never throws.
class LoadedImage {
 public:
  virtual ~LoadedImage() = default;
  LoadedImage(const LoadedImage&) = delete;
  LoadedImage& operator=(const LoadedImage&) = delete;

 protected:
  LoadedImage() = default;
};

/// A kernel of a loaded image; valid as long as the image.
struct DeviceKernel {
  void* handle = nullptr;  ///< its meaning is the loader's: for CUDA a CUkernel, usable as CUfunction in every context
};

struct DeviceKernelInfo {
  int registers = 0;  ///< per thread; 0 where there are no registers to speak of
  std::int64_t local_bytes = 0;
  std::int64_t static_shared_bytes = 0;
};

}  // namespace jitconv::runtime
