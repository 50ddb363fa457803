// Bulk copies from shared to global memory in flight: what each was asked to copy, and whether that is still there when
// its issuer waits. The data moves at issue or at the wait, the earliest and the latest moment the source may be read;
// until then nobody may change it. (On a GPU it may arrive later, which no kernel that does not read it can tell.)
// Knows no marks: who may read and write where is the launch's business.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "host/tensor_box.h"

namespace jitconv::host {

class BulkStores {
 public:
  struct Store {
    std::uint32_t issuer = 0;  ///< thread
    const char* source = nullptr;
    char* destination = nullptr;
    std::uint32_t bytes = 0;  ///< of the source
    const void* pc = nullptr;
    const codegen::TensorMapShape* map = nullptr;  ///< else the destination is a tensor, and the source a box of it
    BoxPlace place = {};
  };
  struct Finished {
    Store store;
    std::optional<std::uint32_t> change;  ///< offset of the first byte of the source that is not what it was
  };

  explicit BulkStores(std::uint32_t threads) : of_thread_(threads) {}
  /// Nothing is in flight.
  void start_block();

  void issue(const Store& store, bool early);
  /// Closes the group of what the thread issued since its last commit.
  void commit(std::uint32_t thread) { ++of_thread_[thread].closed_groups; }
  /// All but the thread's `groups` newest closed groups move.
  std::vector<Finished> wait(std::uint32_t thread, std::uint32_t groups);
  /// A store that nobody has waited for; nullptr if there is none.
  const Store* unfinished() const;

 private:
  static void move(const Store& store);

  struct InFlight {
    Store store;
    std::uint32_t group = 0;
    bool moved = false;
    std::vector<char> bytes;  // of the source, when the store was issued
  };
  struct Issued {
    std::vector<InFlight> stores;  // oldest first
    std::uint32_t closed_groups = 0;
  };
  std::vector<Issued> of_thread_;
  std::size_t in_flight_ = 0;
};

}  // namespace jitconv::host
