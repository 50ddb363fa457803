// The buffers of a launch: which addresses a kernel may touch, and for those it may write, who last did and whether the
// next access is ordered after that. Blocks of a launch are never ordered.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "host/clocks.h"
#include "host/conflict.h"

namespace jitconv::host {

struct Buffer;

class GlobalMemory {
 public:
  explicit GlobalMemory(std::span<const Buffer> buffers);
  ~GlobalMemory();

  /// A buffer and the marks of its 2-byte cells, which exist if it is writable. Two concurrent readers are kept per
  /// cell: one exactly, and the last other one.
  class Region {
   public:
    explicit Region(const Buffer& buffer);
    bool contains(std::uintptr_t address, std::size_t bytes) const {
      return address >= begin_ && address <= end_ && bytes <= end_ - address;
    }
    bool writable() const { return writable_; }
    std::uintptr_t begin() const { return begin_; }
    std::uintptr_t end() const { return end_; }
    const std::string& name() const { return name_; }
    void clear();

   private:
    friend class GlobalMemory;
    struct Free {
      void operator()(void* memory) const;
    };
    template <typename T>
    using Marks = std::unique_ptr<T[], Free>;
    template <typename T>
    static Marks<T> marks(std::size_t cells);

    std::string name_;
    std::uintptr_t begin_, end_;
    bool writable_;
    bool was_read_ = false;  // until then the marks of readers are left alone
    Marks<Tick> write_tick_, read_tick_, other_read_tick_;
    Marks<std::uint32_t> write_pc_, read_pc_, other_read_pc_;
    Marks<std::uint16_t> writer_, reader_, other_reader_;
  };

  /// The buffer that holds all of the bytes, a writable one if there are several; nullptr if none does.
  Region* find(std::uintptr_t address, std::size_t bytes) {
    for (Region& region : regions_)
      if (region.contains(address, bytes)) return &region;
    return nullptr;
  }
  /// The buffer an address lies in; nullptr if in none.
  const Region* find_any(std::uintptr_t address) const {
    for (const Region& region : regions_)
      if (region.contains(address, 1)) return &region;
    return nullptr;
  }
  /// The buffer whose bytes are nearest to the address; nullptr if there are no buffers.
  const Region* nearest(std::uintptr_t address) const;

  // Mark an access of `view.thread` to bytes of a writable region and say what it breaks. Accesses of single bytes
  // share a cell with their neighbour, perhaps another thread's, and are not checked.
  Conflict load(Region& region, const View& view, std::uintptr_t address, std::uint32_t bytes, std::uint32_t pc);
  Conflict store(Region& region, const View& view, std::uintptr_t address, std::uint32_t bytes, std::uint32_t pc);

  /// Forgets all accesses, for Clocks::restart().
  void clear();

 private:
  std::vector<Region> regions_;  // writable ones first
};

}  // namespace jitconv::host
