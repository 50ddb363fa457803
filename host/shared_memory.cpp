// The slow paths of the shared-memory marks: accesses after an earlier one in the same barrier interval, first touches,
// odd sizes, asynchronous writes.
#include "host/shared_memory.h"

#include <algorithm>
#include <bit>

namespace jitconv::host {

SharedMemory::SharedMemory(std::uint32_t bytes)
    : bytes_(bytes),
      cells_((bytes + 1) / 2),
      write_tick_(std::make_unique<Tick[]>(cells_)),
      read_tick_(std::make_unique<Tick[]>(cells_)),
      write_pc_(std::make_unique<std::uint32_t[]>(cells_)),
      read_pc_(std::make_unique<std::uint32_t[]>(cells_)),
      read_warps_(std::make_unique<std::uint32_t[]>(cells_)),
      read_lanes_(std::make_unique<std::uint32_t[]>(cells_)),
      writer_(std::make_unique<std::uint16_t[]>(cells_)),
      last_reader_(std::make_unique<std::uint16_t[]>(cells_)) {}

void SharedMemory::clear() {
  std::fill_n(write_tick_.get(), cells_, 0);
  std::fill_n(read_tick_.get(), cells_, 0);
  async_reads_.clear();
}

// A recorded reader that is certainly unordered with `view`, or -1. Readers of a cell are kept as a set of warps and a
// set of lanes, whose product may name threads that never read, and one tick that none of the reads is older than. So a
// warp is certain only if all its lanes of the set are unordered, and a read that is newer than that tick and unordered
// can be missed if the thread's older reads are ordered. The last reader and the readers of a single warp are exact.
int SharedMemory::kept_reader(const View& view, std::uint32_t cell) const {
  const Tick tick = read_tick_[cell];
  const std::uint32_t last = last_reader_[cell] & kThreadMask;
  if (!view.after(last, tick)) return static_cast<int>(last);
  const std::uint32_t warps = read_warps_[cell], lanes = read_lanes_[cell];
  const bool one_warp = std::has_single_bit(warps), one_lane = std::has_single_bit(lanes);
  const bool exact = one_warp || one_lane;
  for (std::uint32_t w = warps; w != 0; w &= w - 1) {
    const auto warp = static_cast<std::uint32_t>(std::countr_zero(w));
    int unordered = -1;
    bool all = true;
    for (std::uint32_t l = lanes; l != 0; l &= l - 1) {
      const std::uint32_t thread = warp * 32 + static_cast<std::uint32_t>(std::countr_zero(l));
      if (view.after(thread, tick))
        all = false;
      else if (unordered < 0)
        unordered = static_cast<int>(thread);
    }
    if (unordered >= 0 && (all || exact)) return unordered;
  }
  return -1;
}

Conflict SharedMemory::load_cell(const View& view, std::uint32_t cell, std::uint32_t pc) {
  Conflict conflict;
  const Tick written = write_tick_[cell];
  if (written < view.first) {
    conflict.hazard = Hazard::uninitialised;
  } else if (written == Clocks::kPending) {
    conflict.hazard = Hazard::copied;
  } else if (!view.after(writer_[cell] & kThreadMask, written)) {
    conflict.hazard = Hazard::written;
  }
  conflict.thread = writer_[cell] & kThreadMask;
  conflict.pc = write_pc_[cell];
  conflict.tick = written;

  // Record the reader. Readers that are all ordered before this one are replaced: who is unordered with them is
  // unordered with this one too. For that their ticks must be known, so not if they are mixed.
  const Tick read = read_tick_[cell];
  bool replace = read <= view.ordered;
  if (!replace && read != view.now && (last_reader_[cell] & kMixedReaders) == 0) {
    replace = true;
    for (std::uint32_t w = read_warps_[cell]; replace && w != 0; w &= w - 1)
      for (std::uint32_t l = read_lanes_[cell]; replace && l != 0; l &= l - 1)
        replace = view.after(static_cast<std::uint32_t>(std::countr_zero(w) * 32 + std::countr_zero(l)), read);
  }
  std::uint16_t mixed = 0;
  if (replace) {
    read_warps_[cell] = view.warp_bit;
    read_lanes_[cell] = view.lane_bit;
    read_tick_[cell] = view.now;
  } else {
    if (read != view.now || (last_reader_[cell] & kMixedReaders) != 0) mixed = kMixedReaders;
    read_warps_[cell] |= view.warp_bit;
    read_lanes_[cell] |= view.lane_bit;
    read_tick_[cell] = std::min(read, view.now);
  }
  last_reader_[cell] = static_cast<std::uint16_t>(view.thread | mixed);
  read_pc_[cell] = pc;
  return conflict;
}

Conflict SharedMemory::store_cell(const View& view, std::uint32_t cell, std::uint32_t pc) {
  Conflict conflict;
  const Tick written = write_tick_[cell];
  if (written == Clocks::kPending || !view.after(writer_[cell] & kThreadMask, written)) {
    conflict.hazard = written == Clocks::kPending ? Hazard::copied : Hazard::written;
    conflict.thread = writer_[cell] & kThreadMask;
    conflict.pc = write_pc_[cell];
    conflict.tick = written;
  } else if (read_tick_[cell] > view.ordered) {
    if (const int reader = kept_reader(view, cell); reader >= 0) {
      conflict.hazard = Hazard::read;
      conflict.thread = static_cast<std::uint16_t>(reader);
      conflict.pc = read_pc_[cell];
      conflict.tick = read_tick_[cell];
    }
  }
  write_tick_[cell] = view.now;
  writer_[cell] = static_cast<std::uint16_t>(view.thread);
  write_pc_[cell] = pc;
  return conflict;
}

Conflict SharedMemory::load_range(const View& view, std::uint32_t first, std::uint32_t last, std::uint32_t pc) {
  Conflict found;
  for (std::uint32_t cell = first; cell < last; ++cell) {
    Conflict conflict = load_cell(view, cell, pc);
    if (!conflict || found) continue;
    found = conflict;
    found.offset = (cell - first) * 2;
  }
  return found;
}

Conflict SharedMemory::store_range(const View& view, std::uint32_t first, std::uint32_t last, std::uint32_t pc) {
  Conflict found;
  for (std::uint32_t cell = first; cell < last; ++cell) {
    Conflict conflict = store_cell(view, cell, pc);
    if (!conflict || found) continue;
    found = conflict;
    found.offset = (cell - first) * 2;
  }
  return found;
}

// Accesses of single bytes share a cell with their neighbour, perhaps another thread's. Only what holds for both bytes
// is checked (uninitialised, copied), and a store counts as ordered for everybody.
Conflict SharedMemory::load_slow(const View& view, std::uint32_t offset, std::uint32_t bytes, std::uint32_t pc) {
  if (bytes % 2 == 0 && offset % 2 == 0) return load_range(view, offset / 2, (offset + bytes) / 2, pc);
  for (std::uint32_t cell = offset / 2; cell <= (offset + bytes - 1) / 2; ++cell) {
    const Tick written = write_tick_[cell];
    if (written >= view.first && written != Clocks::kPending) continue;
    Conflict conflict;
    conflict.hazard = written == Clocks::kPending ? Hazard::copied : Hazard::uninitialised;
    conflict.thread = writer_[cell] & kThreadMask;
    conflict.pc = write_pc_[cell];
    return conflict;
  }
  return {};
}

Conflict SharedMemory::store_slow(const View& view, std::uint32_t offset, std::uint32_t bytes, std::uint32_t pc) {
  Conflict found = unfinished_read(view, offset, bytes);
  if (bytes % 2 == 0 && offset % 2 == 0) {
    const Conflict other = store_range(view, offset / 2, (offset + bytes) / 2, pc);
    return found ? found : other;
  }
  for (std::uint32_t cell = offset / 2; cell <= (offset + bytes - 1) / 2; ++cell) {
    if (write_tick_[cell] == Clocks::kPending && !found) {
      found.hazard = Hazard::copied;
      found.thread = writer_[cell] & kThreadMask;
      found.pc = write_pc_[cell];
    }
    write_tick_[cell] = view.first;
    writer_[cell] = static_cast<std::uint16_t>(view.thread);
    write_pc_[cell] = pc;
  }
  return found;
}

Conflict SharedMemory::unfinished_read(const View& view, std::uint32_t offset, std::uint32_t bytes) const {
  for (const AsyncReads& reads : async_reads_) {
    for (std::uint32_t unit = offset / kReadUnit; unit <= (offset + bytes - 1) / kReadUnit; ++unit) {
      if (reads.tick[unit] < view.first || reads.tick[unit] <= view.seen[reads.column]) continue;
      Conflict found;
      found.hazard = Hazard::multiplied;
      found.thread = static_cast<std::uint16_t>(reads.warpgroup * 128);
      found.pc = reads.pc[unit];
      found.tick = reads.tick[unit];
      found.offset = std::max(unit * kReadUnit, offset) - offset;
      return found;
    }
  }
  return {};
}

Conflict SharedMemory::unfenced(const View& view, std::uint32_t first, std::uint32_t last) const {
  for (std::uint32_t cell = first; cell < last; ++cell) {
    const std::uint32_t writer = writer_[cell] & kThreadMask;
    const Tick written = write_tick_[cell];
    if ((writer_[cell] & kAsyncProxy) != 0 || written < view.first || written <= view.fenced[writer]) continue;
    Conflict found;
    found.hazard = Hazard::written_unfenced;
    found.thread = static_cast<std::uint16_t>(writer);
    found.pc = write_pc_[cell];
    found.tick = written;
    found.offset = (cell - first) * 2;
    return found;
  }
  return {};
}

Conflict SharedMemory::begin_read(const View& view, const AsyncReader& reader, std::uint32_t offset,
                                  std::uint32_t bytes, std::uint32_t pc) {
  auto reads = std::find_if(async_reads_.begin(), async_reads_.end(),
                            [&](const AsyncReads& one) { return one.warpgroup == reader.warpgroup; });
  if (reads == async_reads_.end()) {
    const std::uint32_t units = bytes_ / kReadUnit + 1;
    async_reads_.push_back(
        {reader.warpgroup, reader.column, std::make_unique<Tick[]>(units), std::make_unique<std::uint32_t[]>(units)});
    reads = async_reads_.end() - 1;
  }
  std::fill_n(reads->tick.get() + offset / kReadUnit, bytes / kReadUnit, reader.tick);
  std::fill_n(reads->pc.get() + offset / kReadUnit, bytes / kReadUnit, pc);
  return check_read(view, offset, bytes);
}

// Cells that were written together are decided together: of a row of an operand only the first is looked at closely.
Conflict SharedMemory::check_read(const View& view, std::uint32_t offset, std::uint32_t bytes) const {
  Tick good_tick = -1;  // of no cell: none has been found good
  std::uint16_t good_writer = 0;
  for (std::uint32_t cell = offset / 2; cell < (offset + bytes) / 2; ++cell) {
    const Tick written = write_tick_[cell];
    if (written == good_tick && writer_[cell] == good_writer) continue;
    Conflict found;
    found.thread = writer_[cell] & kThreadMask;
    found.pc = write_pc_[cell];
    found.tick = written;
    found.offset = cell * 2 - offset;
    if (written < view.first) {
      found.hazard = Hazard::uninitialised;
    } else if (written == Clocks::kPending) {
      found.hazard = Hazard::copied;
    } else if (!view.after(found.thread, written)) {
      found.hazard = Hazard::written;
    } else if ((writer_[cell] & kAsyncProxy) == 0 && written > view.fenced[found.thread]) {
      found.hazard = Hazard::written_unfenced;
    }
    if (found) return found;
    good_tick = written;
    good_writer = writer_[cell];
  }
  return {};
}

Conflict SharedMemory::begin_write(Proxy proxy, const View& view, std::uint32_t offset, std::uint32_t bytes,
                                   std::uint32_t pc) {
  const std::uint32_t first = offset / 2, last = (offset + bytes + 1) / 2;
  Conflict found = unfinished_read(view, offset, bytes);
  Conflict other = proxy == Proxy::async ? unfenced(view, first, last) : Conflict{};
  if (const Conflict stored = store_range(view, first, last, pc)) other = stored;
  if (!found) found = other;
  std::fill(write_tick_.get() + first, write_tick_.get() + last, Clocks::kPending);
  return found;
}

void SharedMemory::finish_write(Proxy proxy, std::uint32_t writer, Tick tick, std::uint32_t offset, std::uint32_t bytes,
                                std::uint32_t pc) {
  const auto marked = static_cast<std::uint16_t>(writer | (proxy == Proxy::async ? kAsyncProxy : 0u));
  for (std::uint32_t cell = offset / 2; cell < (offset + bytes + 1) / 2; ++cell) {
    write_tick_[cell] = tick;
    writer_[cell] = marked;
    write_pc_[cell] = pc;
  }
}

}  // namespace jitconv::host
