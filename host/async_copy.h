// Asynchronous operations of a block in flight: who issued each, through which proxy it writes what, and what completes
// it. The data moves at issue or at completion, the earliest and the latest moment it may; in between the destination
// holds NaNs (late) and counts as being written (always). Knows the marks of shared memory, no threads or barriers.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/source.h"
#include "host/engine.h"
#include "host/random.h"
#include "host/shared_memory.h"
#include "host/tensor_box.h"

namespace jitconv::host {

/// What an operation's issuer, or those who wait, wait for.
enum class Completion : std::uint8_t {
  group,  ///< the issuing thread waits for the group that its next commit closes (cp.async, wgmma)
  object  ///< a barrier object in shared memory is told (bulk copies)
};

struct Operation {
  std::uint32_t issuer = 0;  ///< thread
  Proxy proxy = Proxy::generic;
  Completion completion = Completion::group;
  std::uint32_t object = 0;       ///< of Completion::object: its number
  std::uint32_t destination = 0;  ///< offset in shared memory
  const void* source = nullptr;   ///< nullptr: zeros are written
  std::uint32_t bytes = 0;
  std::uint32_t pc = 0;
  const codegen::TensorMapShape* map = nullptr;  ///< the source is such a tensor, and a box of it is written
  BoxPlace place = {};                           ///< of the box
};

class AsyncCopies {
 public:
  /// `memory` is the block's shared memory, `marks` what is known of it.
  AsyncCopies(std::uint32_t threads, std::uint32_t objects, char* memory, SharedMemory& marks);
  /// Nothing is in flight.
  void start_block();

  /// The source may be read and the destination lies in shared memory. Says what the write breaks.
  Conflict issue(const View& issuer, const Operation& operation, Landing landing, Random& random);

  /// Closes the group of what the thread issued since its last commit.
  void commit(std::uint32_t thread);
  /// All but the thread's `groups` newest closed groups complete: from now on the thread wrote their bytes.
  void wait(const View& thread, std::uint32_t groups);

  /// The oldest operation for the object that has not landed does, in the object's given phase. Its bytes, 0 if there
  /// is none.
  std::uint32_t land_next(std::uint32_t object, std::uint32_t phase);
  /// What landed for the object in phases before this one completes: `agent` of the clocks wrote it at `tick`.
  void complete(std::uint32_t object, std::uint32_t phases, std::uint32_t agent, Tick tick);
  /// Whether something for the object has not landed.
  bool flies(std::uint32_t object) const;
  /// The oldest operation for the object that is not complete; nullptr if there is none.
  const Operation* of_object(std::uint32_t object) const;

  bool in_flight() const { return in_flight_ != 0; }

 private:
  struct InFlight {
    Operation operation;
    std::uint32_t group = 0;  // of an object's: the phase it landed in
    bool landed = false;
  };
  struct Issued {
    std::vector<InFlight> operations;  // oldest first
    std::uint32_t closed_groups = 0;
  };
  void land(const InFlight& copy);

  char* memory_;
  SharedMemory& marks_;
  std::vector<Issued> of_thread_, of_object_;
  std::size_t in_flight_ = 0;
};

}  // namespace jitconv::host
