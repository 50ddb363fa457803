// A group completes for its issuer only, so its bytes become the issuer's writes and other threads still need a
// barrier; an object completes for those who wait for it, so its bytes become an agent's writes that the object's clock
// carries.
#include "host/async_copy.h"

#include <algorithm>
#include <cstring>

namespace jitconv::host {

AsyncCopies::AsyncCopies(std::uint32_t threads, std::uint32_t objects, char* memory, SharedMemory& marks)
    : memory_(memory), marks_(marks), of_thread_(threads), of_object_(objects) {}

void AsyncCopies::start_block() {
  for (std::vector<Issued>* all : {&of_thread_, &of_object_})
    for (Issued& issued : *all) {
      // What nobody waited for is not pending in the next block: nothing wrote there.
      for (const InFlight& copy : issued.operations)
        marks_.finish_write(Proxy::generic, 0, 0, copy.operation.destination, copy.operation.bytes, 0);
      issued.operations.clear();  // keeps its memory
      issued.closed_groups = 0;
    }
  in_flight_ = 0;
}

void AsyncCopies::land(const InFlight& copy) {
  const Operation& operation = copy.operation;
  if (operation.map != nullptr)
    TensorBox(*operation.map, operation.source, operation.place).land(memory_ + operation.destination);
  else if (operation.source == nullptr)
    std::memset(memory_ + operation.destination, 0, operation.bytes);
  else
    std::memcpy(memory_ + operation.destination, operation.source, operation.bytes);
}

Conflict AsyncCopies::issue(const View& issuer, const Operation& operation, Landing landing, Random& random) {
  const Conflict conflict =
      marks_.begin_write(operation.proxy, issuer, operation.destination, operation.bytes, operation.pc);
  Issued& issued =
      operation.completion == Completion::group ? of_thread_[operation.issuer] : of_object_[operation.object];
  InFlight copy{operation, issued.closed_groups, false};
  if (lands_early(landing, random)) {
    land(copy);
    copy.landed = true;
  } else {
    std::memset(memory_ + operation.destination, kPoison, operation.bytes);
  }
  issued.operations.push_back(copy);
  ++in_flight_;
  return conflict;
}

void AsyncCopies::commit(std::uint32_t thread) { ++of_thread_[thread].closed_groups; }

void AsyncCopies::wait(const View& thread, std::uint32_t groups) {
  Issued& issued = of_thread_[thread.thread];
  if (issued.closed_groups <= groups) return;
  const std::uint32_t complete = issued.closed_groups - groups;  // groups below this number
  auto end = issued.operations.begin();
  for (; end != issued.operations.end() && end->group < complete; ++end) {
    if (!end->landed) land(*end);
    marks_.finish_write(end->operation.proxy, thread.thread, thread.now, end->operation.destination,
                        end->operation.bytes, end->operation.pc);
  }
  in_flight_ -= static_cast<std::size_t>(end - issued.operations.begin());
  issued.operations.erase(issued.operations.begin(), end);
}

std::uint32_t AsyncCopies::land_next(std::uint32_t object, std::uint32_t phase) {
  for (InFlight& copy : of_object_[object].operations) {
    if (copy.landed) continue;
    land(copy);
    copy.landed = true;
    copy.group = phase;
    return copy.operation.bytes;
  }
  return 0;
}

void AsyncCopies::complete(std::uint32_t object, std::uint32_t phases, std::uint32_t agent, Tick tick) {
  Issued& issued = of_object_[object];
  const auto rest =
      std::stable_partition(issued.operations.begin(), issued.operations.end(),
                            [phases](const InFlight& copy) { return copy.landed && copy.group < phases; });
  for (auto copy = issued.operations.begin(); copy != rest; ++copy) {
    marks_.finish_write(copy->operation.proxy, agent, tick, copy->operation.destination, copy->operation.bytes,
                        copy->operation.pc);
  }
  in_flight_ -= static_cast<std::size_t>(rest - issued.operations.begin());
  issued.operations.erase(issued.operations.begin(), rest);
}

bool AsyncCopies::flies(std::uint32_t object) const {
  const std::vector<InFlight>& operations = of_object_[object].operations;
  return std::any_of(operations.begin(), operations.end(), [](const InFlight& copy) { return !copy.landed; });
}

const Operation* AsyncCopies::of_object(std::uint32_t object) const {
  const std::vector<InFlight>& operations = of_object_[object].operations;
  return operations.empty() ? nullptr : &operations.front().operation;
}

}  // namespace jitconv::host
