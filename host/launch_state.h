// Everything one launch knows: its memory, its block, its findings. The functions below are what a module's accesses
// come to, millions of times a second: shared memory first, then the thread's stack, then buffers; no allocation.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "host/async_copy.h"
#include "host/block.h"
#include "host/bulk_stores.h"
#include "host/engine.h"
#include "host/global_memory.h"
#include "host/phase_barriers.h"
#include "host/shared_memory.h"
#include "host/tensor_box.h"
#include "host/warpgroups.h"

namespace jitconv::host {

class LaunchState : private BlockEvents {
 public:
  LaunchState(const Module& module, Module::Entry entry, const Launch& launch, const Settings& settings,
              Random& random);
  LaunchState(const LaunchState&) = delete;
  LaunchState& operator=(const LaunchState&) = delete;

  void run_block(const std::array<std::uint32_t, 3>& index);
  FindingLog& log() { return log_; }
  Block& block() { return block_; }
  Counters counters() const;

  // On the fibers.
  void load(const void* address, std::uint32_t bytes, const void* pc) {
    const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(address) - shared_begin_;
    if (offset < shared_bytes_) return load_shared(offset, bytes, pc);
    if (!block_.on_own_stack(address)) return load_elsewhere(address, bytes, pc);
    if (warpgroups_.in_flight()) check_sums(address, bytes, "load", pc);
  }
  void store(void* address, std::uint32_t bytes, const void* pc) {
    const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(address) - shared_begin_;
    if (offset < shared_bytes_) return store_shared(offset, bytes, pc);
    if (!block_.on_own_stack(address)) return store_elsewhere(address, bytes, pc);
    if (warpgroups_.in_flight()) check_sums(address, bytes, "store", pc);
  }
  void copy_async(void* destination, const void* source, std::uint32_t bytes, bool valid, const void* pc);
  void copy_async_commit() { copies_.commit(block_.running().index); }
  void copy_async_wait(std::uint32_t groups) { copies_.wait(block_.view(), groups); }
  void undefined(const char* what, const void* pc);

  void phase_init(void* barrier, std::int64_t arrivals, const void* pc);
  void phase_init_visible() { barriers_.make_visible(block_.running().index); }
  void phase_arrive(void* barrier, std::int64_t announced, const void* pc);
  void phase_wait(void* barrier, std::int64_t parity, const void* pc);
  void copy_bulk(void* destination, const void* source, std::int64_t bytes, void* barrier, const void* pc);
  /// `rank`: how many indices the place has.
  void copy_tensor(void* destination, const jitconv_host_tensor_map& map, int rank, const BoxPlace& place,
                   void* barrier, const void* pc);
  void store_bulk(void* destination, const void* source, std::int64_t bytes, const void* pc);
  void store_tensor(const jitconv_host_tensor_map& map, int rank, const BoxPlace& place, const void* source,
                    const void* pc);
  void store_bulk_commit() { bulk_stores_.commit(block_.running().index); }
  void store_bulk_wait(std::uint32_t groups, const void* pc);
  void fence_async_proxy();
  void multiply_begin() { warpgroups_.begin(block_.running().index); }
  void multiply_commit() { warpgroups_.commit(block_.running().index); }
  void warpgroup(const WarpgroupCall& call) { block_.warpgroup(call); }
  /// Adds an access of the running lane to its warp's requests.
  void count(const void* address, std::uint32_t bytes, bool is_store, const void* pc);

 private:
  struct Access {
    const void* address;
    std::uint32_t bytes;
    const char* verb;  // "load"
    const void* pc;
  };

  static std::uint32_t low_half(const void* pc) {
    return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(pc));
  }
  static bool is_aligned(std::uintptr_t address, std::uint32_t bytes) {
    return (bytes & (bytes - 1)) != 0 || bytes > 16 || (address & (bytes - 1)) == 0;
  }
  [[gnu::noinline]] void load_shared(std::uintptr_t offset, std::uint32_t bytes, const void* pc);
  [[gnu::noinline]] void store_shared(std::uintptr_t offset, std::uint32_t bytes, const void* pc);
  void check_shared(std::uintptr_t offset, const Access& access);
  void check_source(const Access& access);
  void check_source_in(GlobalMemory::Region* region, const Access& access);
  static Access bulk_access(const void* address, std::int64_t bytes, const void* pc);
  const Buffer& mapped_buffer(const jitconv_host_tensor_map& map, int rank, const BoxPlace& place, const void* pc);
  std::uint32_t check_box(const Access& shared, const Buffer& tensor, const BoxPlace& place);
  std::uint32_t check_block(const Access& shared, std::uint32_t alignment);
  std::uint32_t check_bulk(const Access& shared, const Access& global, std::int64_t bytes);
  void check_sums(const void* address, std::uint32_t bytes, const char* verb, const void* pc);
  PhaseBarriers::Barrier& used_barrier(void* barrier, const char* verb, const void* pc);
  void report_barrier(const void* barrier, const void* pc, std::string&& text, const PhaseBarriers::Barrier* known);
  /// `address`: of the side in global memory.
  static void count_bulk(const void* address, std::uint32_t bytes, GlobalCounters& global, SharedCounters& shared);
  static void count_sectors(const void* address, std::uint32_t bytes, GlobalCounters& global);
  static void count_wavefronts(std::uint32_t bytes, SharedCounters& shared);
  void issue_bulk(Operation operation, const Access& write);
  void land_on(PhaseBarriers::Barrier& barrier);

  // BlockEvents.
  bool warpgroup(std::uint32_t warpgroup, Warpgroups::Calls calls) override;
  bool try_again(std::uint32_t warpgroup, const WarpgroupCall& call) override;
  bool land() override;
  void end() override;
  std::string missing(std::uint32_t phase_barrier) const override;
  std::string missing_registers(std::uint32_t warpgroup, const WarpgroupCall& call) const override;

  void load_elsewhere(const void* address, std::uint32_t bytes, const void* pc);
  void store_elsewhere(void* address, std::uint32_t bytes, const void* pc);
  bool stores_to_buffer(const Access& access);
  GlobalMemory::Region* checked_region(const Access& access);
  bool in_module(const void* address, std::uint32_t bytes) const;
  bool near_shared(const void* address) const;

  static const void* pc_near(const void* pc, std::uint32_t low);
  [[gnu::cold]] void report_conflict(const Conflict& conflict, const Access& access);
  Violation violation_of(const Conflict& conflict, const Access& access, std::uint32_t thread) const;
  [[gnu::cold]] void report_place(Rule rule, const Access& access, const char* why);
  std::string place(const void* address, std::uint32_t bytes) const;
  std::string other_thread(const Conflict& conflict) const;

  const Module& module_;
  const Settings settings_;
  Random& random_;
  FindingLog log_;
  Clocks clocks_;
  SharedMemory shared_;
  GlobalMemory global_;
  std::uintptr_t shared_begin_;
  std::uintptr_t shared_bytes_;
  AsyncCopies copies_;
  BulkStores bulk_stores_;
  PhaseBarriers barriers_;
  Warpgroups warpgroups_;
  const std::vector<Buffer>& buffers_;
  std::vector<void*> values_;                  // of the parameters, if they are pointers
  std::vector<jitconv_host_tensor_map> maps_;  // and if not
  std::vector<void*> parameters_;              // pointers to them
  Block block_;
  Counters counters_;
  std::array<std::uint32_t, 3> grid_;
  struct Started {
    Tick first;
    std::array<std::uint32_t, 3> index;
  };
  std::vector<Started> started_;  // blocks so far, to name the one an old mark is of
};

}  // namespace jitconv::host
