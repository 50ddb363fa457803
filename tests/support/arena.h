// A device's memory for the tensors of one convolution. In one allocation, each tensor between redzones of NaN: what is
// written out of bounds shows there, and what is read out of bounds shows in the result. Or, for compute-sanitizer,
// which knows allocations and nothing inside them, one allocation per tensor without a byte to spare.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/device.h"

namespace jitconv::test {

inline constexpr std::uint8_t kNanByte = 0xff;  // NaN in every element type, when all bytes are this

class Arena {
 public:
  static constexpr std::int64_t kRedzoneBytes = 64 * 1024;

  enum class Mode { redzones, exact_allocations };
  explicit Arena(tools::Device& device, Mode mode = Mode::redzones) : device_(device), mode_(mode) {}

  /// Forgets all tensors and makes room for `tensors` of `bytes` in all.
  void reset(std::int64_t bytes, int tensors);

  /// A tensor at a multiple of `alignment`. With redzones: of nothing larger, up to 256. Null if `bytes` is 0.
  void* add(const std::string& name, std::int64_t bytes, std::int64_t alignment);

  /// Fills the redzones, after the last add(). Asynchronous, like everything here but damage().
  void seal();

  /// Which redzone was written, and how much of it; empty if none.
  std::string damage() const;

  /// Bytes of redzones that damage() looks at.
  std::int64_t guarded_bytes() const;

 private:
  struct Range {
    std::int64_t begin = 0, end = 0;
    std::string after;  // the tensor before it
  };
  std::vector<Range> redzones() const;

  tools::Device& device_;
  Mode mode_;
  tools::Buffer memory_;
  std::int64_t used_ = 0;
  std::vector<Range> tensors_;
  std::vector<tools::Buffer> allocations_;
};

}  // namespace jitconv::test
