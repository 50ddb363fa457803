// Memory, data and launches on the CPU.
#include "tools/host_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <new>
#include <string>

#include "host/backend.h"
#include "runtime/backend.h"
#include "runtime/compile.h"

namespace jitconv::tools {
namespace {

/// What a GPU's allocator gives, so that alignments are tested as they would be there.
constexpr std::align_val_t kAlignment{256};

/// The text behind `key` in a file of `key : text` lines; empty if there is none.
std::string field_of(const char* file, const std::string& key) {
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    if (line.compare(0, key.size(), key) != 0) continue;
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::size_t first = line.find_first_not_of(" \t", colon + 1);
    return first == std::string::npos ? std::string() : line.substr(first);
  }
  return {};
}

bool is_nan_bits(std::uint32_t bits, DataType type) {
  switch (type) {
    case DataType::f32:
      return (bits & 0x7fffffffu) > 0x7f800000u;
    case DataType::f16:
      return (bits & 0x7fffu) > 0x7c00u;
    case DataType::bf16:
      return (bits & 0x7fffu) > 0x7f80u;
  }
  return false;
}

std::uint32_t bits_at(const void* from, DataType type, std::int64_t index) {
  const std::size_t size = static_cast<std::size_t>(element_bytes(type));
  std::uint16_t narrow = 0;
  std::uint32_t bits = 0;
  const char* at = static_cast<const char*>(from) + static_cast<std::size_t>(index) * size;
  if (size == sizeof bits) {
    std::memcpy(&bits, at, sizeof bits);
    return bits;
  }
  std::memcpy(&narrow, at, sizeof narrow);
  return narrow;
}

}  // namespace

HostDevice::HostDevice(const Target& target) {
  properties_.name = field_of("/proc/cpuinfo", "model name");
  if (properties_.name.empty()) properties_.name = "CPU";
  properties_.driver = runtime::backend_for(target).compiler().version;
  properties_.target = target;
}

std::vector<host::Report> HostDevice::take_reports() {
  std::vector<host::Report> reports;
  reports.swap(reports_);
  return reports;
}

std::int64_t HostDevice::free_bytes() const {
  const std::string kilobytes = field_of("/proc/meminfo", "MemAvailable");
  return kilobytes.empty() ? INT64_MAX : std::stoll(kilobytes) * 1024;
}

void* HostDevice::allocate(std::int64_t bytes) {
  void* data = ::operator new(static_cast<std::size_t>(bytes), kAlignment, std::nothrow);
  if (data == nullptr)
    throw CudaError(ErrorCode::cuda, 0, "allocate", fmt::format("{} bytes of memory are not to be had", bytes));
  return data;
}

void HostDevice::release(void* data) noexcept { ::operator delete(data, kAlignment); }

void HostDevice::upload(void* to, const void* from, std::int64_t bytes) {
  std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

void HostDevice::download(void* to, const void* from, std::int64_t bytes) {
  std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

void HostDevice::set_bytes(void* to, std::uint8_t value, std::int64_t bytes) {
  if (bytes > 0) std::memset(to, value, static_cast<std::size_t>(bytes));
}

void HostDevice::generate(void* to, std::int64_t count, const check::Fill& fill) {
  const std::size_t bytes = static_cast<std::size_t>(count * element_bytes(fill.type));
  check::fill_elements(fill, 0, {static_cast<std::byte*>(to), bytes});
}

void HostDevice::gather(const void* from, DataType type, std::span<const std::int64_t> indices,
                        std::span<std::uint32_t> out) {
  std::transform(indices.begin(), indices.end(), out.begin(),
                 [&](std::int64_t index) { return bits_at(from, type, index); });
}

std::int64_t HostDevice::count_nan(const void* from, DataType type, std::int64_t count) {
  std::int64_t found = 0;
  for (std::int64_t i = 0; i < count; ++i) found += is_nan_bits(bits_at(from, type, i), type) ? 1 : 0;
  return found;
}

std::int64_t HostDevice::count_other_bytes(const void* from, std::uint8_t value, std::int64_t count) {
  const auto* first = static_cast<const std::uint8_t*>(from);
  return count - std::count(first, first + count, value);
}

void HostDevice::prepare(const Kernel& kernel) { runtime::prepare(kernel); }

void HostDevice::launch(const Kernel& kernel, const LaunchArgs& args) {
  const host::Session session(settings_);
  kernel.launch(nullptr, args);
  const std::vector<host::Report>& made = session.reports();
  reports_.insert(reports_.end(), made.begin(), made.end());
}

std::vector<double> HostDevice::time_ms(const std::function<void()>& before, const std::function<void()>& work,
                                        int repeat) {
  std::vector<double> ms;
  for (int i = 0; i < repeat; ++i) {
    if (before) before();
    const auto begin = std::chrono::steady_clock::now();
    work();
    ms.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
  }
  return ms;
}

}  // namespace jitconv::tools
