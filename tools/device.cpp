// Ownership of device memory.
#include "tools/device.h"

#include <utility>

namespace jitconv::tools {

Buffer::Buffer(Device& device, std::int64_t bytes)
    : device_(&device), data_(bytes > 0 ? device.allocate(bytes) : nullptr), bytes_(bytes) {}

Buffer::~Buffer() {
  if (data_ != nullptr) device_->release(data_);
}

Buffer::Buffer(Buffer&& other) noexcept
    : device_(other.device_), data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

}  // namespace jitconv::tools
