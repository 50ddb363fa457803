// See arena.h.
#include "support/arena.h"

#include <fmt/format.h>

#include <algorithm>

#include "jitconv/error.h"

namespace jitconv::test {
namespace {

constexpr std::int64_t kGranule = 512;  // what allocations are aligned to

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace

void Arena::reset(std::int64_t bytes, int tensors) {
  tensors_.clear();
  allocations_.clear();
  used_ = 0;
  if (mode_ == Mode::exact_allocations) return;
  const std::int64_t needed = bytes + (tensors + 1) * (kRedzoneBytes + 2 * kGranule);
  if (memory_.bytes() >= needed) return;
  memory_ = tools::Buffer();  // first, so that both need not fit
  memory_ = tools::Buffer(device_, round_up(needed, 64 << 20));
}

void* Arena::add(const std::string& name, std::int64_t bytes, std::int64_t alignment) {
  if (bytes == 0) return nullptr;
  if (mode_ == Mode::exact_allocations) return allocations_.emplace_back(device_, bytes).data();
  const std::int64_t begin = round_up(used_ + kRedzoneBytes, kGranule) + (alignment < 256 ? alignment : 0);
  used_ = begin + bytes;
  if (used_ + kRedzoneBytes > memory_.bytes()) throw InternalError("Arena::reset() was promised less: " + name);
  tensors_.push_back({begin, used_, name});
  return memory_.at(begin);
}

std::vector<Arena::Range> Arena::redzones() const {
  std::vector<Range> result;
  if (mode_ == Mode::exact_allocations) return result;
  Range zone{0, 0, "the start"};
  for (const Range& tensor : tensors_) {
    zone.end = tensor.begin;
    result.push_back(zone);
    zone = {tensor.end, 0, tensor.after};
  }
  zone.end = zone.begin + kRedzoneBytes;
  result.push_back(zone);
  return result;
}

void Arena::seal() {
  for (const Range& zone : redzones()) device_.set_bytes(memory_.at(zone.begin), kNanByte, zone.end - zone.begin);
}

std::string Arena::damage() const {
  std::string text;
  for (const Range& zone : redzones()) {
    const std::int64_t hit = device_.count_other_bytes(memory_.at(zone.begin), kNanByte, zone.end - zone.begin);
    if (hit > 0) text += fmt::format("{} bytes of the redzone after {} were written; ", hit, zone.after);
  }
  return text;
}

std::int64_t Arena::guarded_bytes() const {
  std::int64_t total = 0;
  for (const Range& zone : redzones()) total += zone.end - zone.begin;
  return total;
}

}  // namespace jitconv::test
