// An engine for one thread that only writes down what a module asks of it.
#pragma once

#include <csetjmp>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "host/module.h"

namespace jitconv::test {

struct Event {
  enum class Kind { load, store, barrier, exchange, copy, commit, wait, undefined };
  Kind kind{};
  std::uintptr_t address = 0;  ///< of copies the destination
  unsigned bytes = 0;          ///< of barriers the threads, of waits the groups, of exchanges the mask
  std::string text;
  const void* pc = nullptr;
};

class RecordingEngine {
 public:
  std::vector<Event> events;
  std::uint64_t blocks = 0;      ///< basic blocks
  std::uint64_t lanes[32] = {};  ///< what the other lanes of the warp hand in to an exchange
  jitconv_host_thread thread{{0, 0, 0}, {0, 0, 0}, {32, 1, 1}, {1, 1, 1}};

  /// Runs an entry. A store to nowhere ends it, as it would end the block.
  void run(const host::Module& module, const std::string& entry, std::vector<void*> pointers) {
    std::vector<void*> parameters;
    for (void*& pointer : pointers) parameters.push_back(&pointer);
    module.connect(&api());
    *module.current_thread() = &thread;
    current() = this;
    events.clear();
    const host::Module::Entry function = module.entry(entry);
    if (setjmp(end_) == 0) function(parameters.data());
  }

  /// Events other than accesses of the thread's own stack.
  std::vector<Event> of(Event::Kind kind) const {
    std::vector<Event> found;
    for (const Event& event : events)
      if (event.kind == kind) found.push_back(event);
    return found;
  }

 private:
  static RecordingEngine*& current() {
    static RecordingEngine* engine = nullptr;
    return engine;
  }
  static void add(Event event) { current()->events.push_back(std::move(event)); }

  static void load(const void* address, unsigned bytes, const void* pc) {
    add({Event::Kind::load, reinterpret_cast<std::uintptr_t>(address), bytes, {}, pc});
  }
  static void store(void* address, unsigned bytes, const void* pc) {
    if (address == nullptr) std::longjmp(current()->end_, 1);
    add({Event::Kind::store, reinterpret_cast<std::uintptr_t>(address), bytes, {}, pc});
  }
  static void barrier(unsigned id, unsigned threads, const void* pc) {
    add({Event::Kind::barrier, id, threads, {}, pc});
  }
  static void exchange(unsigned mask, const void* mine, void* all, unsigned bytes, const void* pc) {
    add({Event::Kind::exchange, bytes, mask, {}, pc});
    const unsigned own = current()->thread.thread_index.x % 32;
    for (unsigned lane = 0; lane < 32 && bytes > 0; ++lane) {
      const void* const from = lane == own ? mine : &current()->lanes[lane];
      std::memcpy(static_cast<char*>(all) + lane * bytes, from, bytes);
    }
  }
  static void copy(void* destination, const void*, unsigned bytes, int valid, const void* pc) {
    add({Event::Kind::copy, reinterpret_cast<std::uintptr_t>(destination), bytes, valid != 0 ? "valid" : "zeros", pc});
  }
  static void commit(const void* pc) { add({Event::Kind::commit, 0, 0, {}, pc}); }
  static void wait(unsigned groups, const void* pc) { add({Event::Kind::wait, 0, groups, {}, pc}); }
  static void block(const void*) { ++current()->blocks; }
  static void undefined(const char* what, const void* pc) { add({Event::Kind::undefined, 0, 0, what, pc}); }

  static const jitconv_host_api& api() {
    static const jitconv_host_api table = [] {
      jitconv_host_api some{};
      some.load = load;
      some.store = store;
      some.barrier = barrier;
      some.warp_exchange = exchange;
      some.copy_async = copy;
      some.copy_async_commit = commit;
      some.copy_async_wait = wait;
      some.basic_block = block;
      some.undefined = undefined;
      return some;
    }();
    return table;
  }

  std::jmp_buf end_;
};

}  // namespace jitconv::test
