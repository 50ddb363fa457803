// Marks come from calloc(): pages of a large output that no block of the launch reaches are never touched.
#include "host/global_memory.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "host/engine.h"

namespace jitconv::host {
namespace {

std::size_t cells_of(std::uintptr_t begin, std::uintptr_t end) { return (end - begin + 1) / 2; }

// Another block's accesses have ticks before the block's first.
bool unordered(const View& view, std::uint16_t thread, Tick tick) {
  return tick != 0 && (tick < view.first || !view.after(thread, tick));
}

}  // namespace

void GlobalMemory::Region::Free::operator()(void* memory) const { std::free(memory); }

template <typename T>
GlobalMemory::Region::Marks<T> GlobalMemory::Region::marks(std::size_t cells) {
  void* memory = std::calloc(std::max<std::size_t>(cells, 1), sizeof(T));
  if (memory == nullptr) throw std::bad_alloc();
  return Marks<T>(static_cast<T*>(memory));
}

GlobalMemory::Region::Region(const Buffer& buffer)
    : name_(buffer.name),
      begin_(reinterpret_cast<std::uintptr_t>(buffer.data)),
      end_(begin_ + static_cast<std::uintptr_t>(std::max<std::int64_t>(buffer.bytes, 0))),
      writable_(buffer.writable) {
  if (!writable_) return;
  const std::size_t cells = cells_of(begin_, end_);
  write_tick_ = marks<Tick>(cells);
  read_tick_ = marks<Tick>(cells);
  other_read_tick_ = marks<Tick>(cells);
  write_pc_ = marks<std::uint32_t>(cells);
  read_pc_ = marks<std::uint32_t>(cells);
  other_read_pc_ = marks<std::uint32_t>(cells);
  writer_ = marks<std::uint16_t>(cells);
  reader_ = marks<std::uint16_t>(cells);
  other_reader_ = marks<std::uint16_t>(cells);
}

void GlobalMemory::Region::clear() {
  if (!writable_) return;
  const std::size_t cells = cells_of(begin_, end_);
  std::fill_n(write_tick_.get(), cells, 0);
  std::fill_n(read_tick_.get(), cells, 0);
  std::fill_n(other_read_tick_.get(), cells, 0);
}

GlobalMemory::GlobalMemory(std::span<const Buffer> buffers) {
  regions_.reserve(buffers.size());
  for (const bool writable : {true, false})
    for (const Buffer& buffer : buffers)
      if (buffer.writable == writable && buffer.data != nullptr) regions_.emplace_back(buffer);
}

GlobalMemory::~GlobalMemory() = default;

void GlobalMemory::clear() {
  for (Region& region : regions_) region.clear();
}

const GlobalMemory::Region* GlobalMemory::nearest(std::uintptr_t address) const {
  const auto distance = [address](const Region& region) -> std::uintptr_t {
    if (address < region.begin()) return region.begin() - address;
    return address >= region.end() ? address - region.end() + 1 : 0;
  };
  const auto found = std::min_element(regions_.begin(), regions_.end(),
                                      [&](const Region& a, const Region& b) { return distance(a) < distance(b); });
  return found == regions_.end() ? nullptr : &*found;
}

Conflict GlobalMemory::load(Region& region, const View& view, std::uintptr_t address, std::uint32_t bytes,
                            std::uint32_t pc) {
  Conflict found;
  if (((address | bytes) & 1) != 0) return found;
  region.was_read_ = true;
  const auto me = static_cast<std::uint16_t>(view.thread);
  const std::size_t first = (address - region.begin_) / 2, last = first + bytes / 2;
  for (std::size_t cell = first; cell < last; ++cell) {
    if (!found && unordered(view, region.writer_[cell], region.write_tick_[cell])) {
      found.hazard = Hazard::written;
      found.thread = region.writer_[cell];
      found.pc = region.write_pc_[cell];
      found.tick = region.write_tick_[cell];
      found.offset = static_cast<std::uint32_t>((cell - first) * 2);
    }
    if (!unordered(view, region.reader_[cell], region.read_tick_[cell])) {
      region.read_tick_[cell] = view.now;
      region.reader_[cell] = me;
      region.read_pc_[cell] = pc;
    } else {
      region.other_read_tick_[cell] = view.now;
      region.other_reader_[cell] = me;
      region.other_read_pc_[cell] = pc;
    }
  }
  found.other_block = found && found.tick < view.first;
  return found;
}

Conflict GlobalMemory::store(Region& region, const View& view, std::uintptr_t address, std::uint32_t bytes,
                             std::uint32_t pc) {
  Conflict found;
  if (((address | bytes) & 1) != 0) return found;
  const std::size_t first = (address - region.begin_) / 2, last = first + bytes / 2;
  const auto report = [&](Hazard hazard, std::uint16_t thread, std::uint32_t other_pc, Tick tick, std::size_t cell) {
    if (!found)
      found = {hazard, tick < view.first, thread, other_pc, tick, static_cast<std::uint32_t>((cell - first) * 2)};
  };
  for (std::size_t cell = first; cell < last; ++cell) {
    if (unordered(view, region.writer_[cell], region.write_tick_[cell]))
      report(Hazard::written, region.writer_[cell], region.write_pc_[cell], region.write_tick_[cell], cell);
    if (region.was_read_) {
      if (unordered(view, region.reader_[cell], region.read_tick_[cell]))
        report(Hazard::read, region.reader_[cell], region.read_pc_[cell], region.read_tick_[cell], cell);
      if (unordered(view, region.other_reader_[cell], region.other_read_tick_[cell]))
        report(Hazard::read, region.other_reader_[cell], region.other_read_pc_[cell], region.other_read_tick_[cell],
               cell);
    }
    region.write_tick_[cell] = view.now;
    region.writer_[cell] = static_cast<std::uint16_t>(view.thread);
    region.write_pc_[cell] = pc;
  }
  return found;
}

}  // namespace jitconv::host
