// What the fake driver remembers between calls: shared by its entry points (fake_driver.cpp) and by the functions that
// tests control it with (fake_driver_control.cpp). Tests include fake_driver.h alone.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fake_driver.h"

namespace fake_driver {

struct Library;
struct Kernel {
  std::string name;
  Library* library;
  std::map<int, int> dynamic_shared;  // per device
};
struct Library {
  std::vector<Kernel*> kernels;
};

struct State {
  std::mutex mutex;
  bool recording = true;
  int device_count = 2, major = 9, minor = 0, version = 12080;
  bool capturing = false;
  std::size_t arguments = 0;
  int countdown = 0, countdown_result = 0;
  std::map<std::string, std::pair<int, int>, std::less<>> failures;  // call -> result, times
  std::vector<std::string> calls, violations;
  std::vector<Launch> launches;
  std::map<const void*, TensorMap> maps;  // that no launch has had yet, by where they are
  std::set<Library*> libraries;
  int retained = 0;

  int keep(void* map, TensorMap made) {
    const auto at = [](const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); };
    if (at(map) % 64 != 0 || at(made.address) % 16 != 0) return 1;
    maps[map] = std::move(made);
    std::memset(map, 0xcd, 128);
    return 0;
  }
};

State& state();

extern thread_local int current_device;  ///< -1 for none
extern std::atomic<bool> fast;           ///< nothing is recorded

/// Counts a call, and takes the lock for the rest of it.
struct Entry {
  std::unique_lock<std::mutex> lock{state().mutex};
  int result = 0;  ///< that the call is to fail with, or 0
  explicit Entry(const char* name, bool counted = true);
};

/// Records what a real driver would have refused or crashed on.
void violate(const std::string& text);

}  // namespace fake_driver
