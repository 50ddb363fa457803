// Who last wrote and read each part of a block's shared memory, and whether the next access is ordered after them.
// Holds marks, not data. Cells are 2 bytes; a cell has the marks of its last write exactly and those of its readers
// approximately: it can miss a race among many readers, it never invents one (see kept_reader() in shared_memory.cpp).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "host/clocks.h"
#include "host/conflict.h"

namespace jitconv::host {

/// The two ways to shared memory that hardware keeps apart: ordinary instructions and cp.async take the generic proxy,
/// bulk copies and warpgroup matrix instructions the async proxy.
enum class Proxy : std::uint8_t { generic, async };

class SharedMemory {
 public:
  explicit SharedMemory(std::uint32_t bytes);
  std::uint32_t bytes() const { return bytes_; }

  // An access of `view.thread` to [offset, offset + bytes), which lies inside, aligned to its size if that is a power
  // of two up to 16. Marks the cells and says what the access breaks; after a conflict the cells count as the new
  // access's.
  Conflict load(const View& view, std::uint32_t offset, std::uint32_t bytes, std::uint32_t pc) {
    return load_fast(view, offset, bytes, pc) ? Conflict{} : load_slow(view, offset, bytes, pc);
  }
  Conflict store(const View& view, std::uint32_t offset, std::uint32_t bytes, std::uint32_t pc) {
    return store_fast(view, offset, bytes, pc) ? Conflict{} : store_slow(view, offset, bytes, pc);
  }
  // The same in two parts. The fast ones mark the cells and return true, or leave them alone and return false.
  bool load_fast(const View& view, std::uint32_t offset, std::uint32_t bytes, std::uint32_t pc) {
    switch (bytes) {
      case 4:
        return load_cells<2>(view, offset, pc);
      case 8:
        return load_cells<4>(view, offset, pc);
      case 16:
        return load_cells<8>(view, offset, pc);
      default:
        return false;
    }
  }
  bool store_fast(const View& view, std::uint32_t offset, std::uint32_t bytes, std::uint32_t pc) {
    if (!async_reads_.empty() && !read_finished(view, offset, bytes)) return false;
    switch (bytes) {
      case 4:
        return store_cells<2>(view, offset, pc);
      case 8:
        return store_cells<4>(view, offset, pc);
      case 16:
        return store_cells<8>(view, offset, pc);
      default:
        return false;
    }
  }
  Conflict load_slow(const View& view, std::uint32_t offset, std::uint32_t bytes, std::uint32_t pc);
  Conflict store_slow(const View& view, std::uint32_t offset, std::uint32_t bytes, std::uint32_t pc);

  // An asynchronous read through the async proxy begins, issued by threads that know what `view` does: as load(), and
  // writes of the generic proxy must have been fenced. Until a thread knows of `reader`'s `tick`, its stores there are
  // conflicts. Readers are warpgroups; `column` is the reader's in View::seen. Offset and size are multiples of 16.
  struct AsyncReader {
    std::uint32_t warpgroup, column;
    Tick tick;
  };
  static constexpr std::uint32_t kReadUnit = 16;
  Conflict begin_read(const View& view, const AsyncReader& reader, std::uint32_t offset, std::uint32_t bytes,
                      std::uint32_t pc);
  // What such a read breaks, without marks of it: for who finds changes by other means.
  Conflict check_read(const View& view, std::uint32_t offset, std::uint32_t bytes) const;

  // An asynchronous write begins: `view.thread` issued it, and until finish_write() every access is a conflict. One
  // through the async proxy must not overtake writes of the generic one.
  Conflict begin_write(Proxy proxy, const View& view, std::uint32_t offset, std::uint32_t bytes, std::uint32_t pc);
  // It is complete: the bytes count as written by `writer` (a thread, or an agent of Clocks) at `tick`, through
  // `proxy`.
  void finish_write(Proxy proxy, std::uint32_t writer, Tick tick, std::uint32_t offset, std::uint32_t bytes,
                    std::uint32_t pc);

  /// Forgets everything, for Clocks::restart().
  void clear();

 private:
  template <std::uint32_t kCells>
  bool load_cells(const View& view, std::uint32_t offset, std::uint32_t pc);
  template <std::uint32_t kCells>
  bool store_cells(const View& view, std::uint32_t offset, std::uint32_t pc);
  Conflict load_cell(const View& view, std::uint32_t cell, std::uint32_t pc);
  Conflict store_cell(const View& view, std::uint32_t cell, std::uint32_t pc);
  Conflict load_range(const View& view, std::uint32_t first, std::uint32_t last, std::uint32_t pc);
  Conflict store_range(const View& view, std::uint32_t first, std::uint32_t last, std::uint32_t pc);
  int kept_reader(const View& view, std::uint32_t cell) const;
  bool read_finished(const View& view, std::uint32_t offset, std::uint32_t bytes) const;
  Conflict unfinished_read(const View& view, std::uint32_t offset, std::uint32_t bytes) const;
  Conflict unfenced(const View& view, std::uint32_t first, std::uint32_t last) const;

  static constexpr std::uint16_t kAsyncProxy = 1u << 15;    // in writer_
  static constexpr std::uint16_t kMixedReaders = 1u << 15;  // in last_reader_: the readers have different ticks
  static constexpr std::uint16_t kThreadMask = (1u << 15) - 1;

  std::uint32_t bytes_, cells_;
  // One array per mark, so that the cells of an access are compared with one vector instruction per mark.
  std::unique_ptr<Tick[]> write_tick_, read_tick_;  // read_tick_: no recorded reader has an older one
  std::unique_ptr<std::uint32_t[]> write_pc_, read_pc_, read_warps_, read_lanes_;
  std::unique_ptr<std::uint16_t[]> writer_, last_reader_;  // thread or agent, and a flag
  // The last asynchronous read of every kReadUnit bytes, for each warpgroup that reads so.
  struct AsyncReads {
    std::uint32_t warpgroup = 0, column = 0;
    std::unique_ptr<Tick[]> tick;
    std::unique_ptr<std::uint32_t[]> pc;
  };
  std::vector<AsyncReads> async_reads_;
};

inline bool SharedMemory::read_finished(const View& view, std::uint32_t offset, std::uint32_t bytes) const {
  for (const AsyncReads& reads : async_reads_) {
    for (std::uint32_t unit = offset / kReadUnit; unit <= (offset + bytes - 1) / kReadUnit; ++unit)
      if (reads.tick[unit] >= view.first && reads.tick[unit] > view.seen[reads.column]) return false;
  }
  return true;
}

// The fast paths: every cell was last written before the last full barrier (so neither pending nor uninitialised), and
// was last read before it or by threads at this thread's tick. Everything else is decided cell by cell.

template <std::uint32_t kCells>
inline bool SharedMemory::load_cells(const View& view, std::uint32_t offset, std::uint32_t pc) {
  const std::uint32_t cell = offset / 2;
  Tick* const __restrict read_tick = read_tick_.get() + cell;
  std::uint32_t* const __restrict warps = read_warps_.get() + cell;
  std::uint32_t* const __restrict lanes = read_lanes_.get() + cell;
  std::uint32_t* const __restrict read_pc = read_pc_.get() + cell;
  std::uint16_t* const __restrict last_reader = last_reader_.get() + cell;
  const Tick* const __restrict write_tick = write_tick_.get() + cell;
  std::int32_t slow = 0;
  for (std::uint32_t i = 0; i < kCells; ++i) {
    slow |= (write_tick[i] < view.first) | (write_tick[i] > view.ordered);
    slow |= (read_tick[i] > view.ordered) & (read_tick[i] != view.now);
  }
  if (slow != 0) return false;
  for (std::uint32_t i = 0; i < kCells; ++i) {
    const std::uint32_t keep = read_tick[i] == view.now ? ~0u : 0u;
    warps[i] = (warps[i] & keep) | view.warp_bit;
    lanes[i] = (lanes[i] & keep) | view.lane_bit;
    read_tick[i] = view.now;
    read_pc[i] = pc;
    last_reader[i] = static_cast<std::uint16_t>((last_reader[i] & keep & kMixedReaders) | view.thread);
  }
  return true;
}

template <std::uint32_t kCells>
inline bool SharedMemory::store_cells(const View& view, std::uint32_t offset, std::uint32_t pc) {
  const std::uint32_t cell = offset / 2;
  Tick* const __restrict write_tick = write_tick_.get() + cell;
  std::uint16_t* const __restrict writer = writer_.get() + cell;
  std::uint32_t* const __restrict write_pc = write_pc_.get() + cell;
  const Tick* const __restrict read_tick = read_tick_.get() + cell;
  std::int32_t slow = 0;
  for (std::uint32_t i = 0; i < kCells; ++i) slow |= (write_tick[i] > view.ordered) | (read_tick[i] > view.ordered);
  if (slow != 0) return false;
  for (std::uint32_t i = 0; i < kCells; ++i) {
    write_tick[i] = view.now;
    writer[i] = static_cast<std::uint16_t>(view.thread);
    write_pc[i] = pc;
  }
  return true;
}

}  // namespace jitconv::host
