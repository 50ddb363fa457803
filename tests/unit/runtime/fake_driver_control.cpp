// The functions of fake_driver.h, and what entry points do first and last: see fake_driver_state.h.
#include <algorithm>
#include <new>
#include <string_view>

#include "fake_driver_state.h"

namespace fake_driver {

thread_local int current_device = -1;
std::atomic<bool> fast{false};

State& state() {
  static State* const instance = new State;
  return *instance;
}

Entry::Entry(const char* name, bool counted) {
  State& s = state();
  try {
    if (s.recording) s.calls.push_back(name);
  } catch (const std::bad_alloc&) {  // it goes unrecorded: no exception may leave the driver
  }
  if (counted && s.countdown > 0 && --s.countdown == 0) result = s.countdown_result;
  if (const auto found = s.failures.find(std::string_view(name));
      found != s.failures.end() && found->second.second > 0) {
    --found->second.second;
    result = found->second.first;
  }
}

void violate(const std::string& text) { state().violations.push_back(text); }

void reset() {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.recording = true;
  fast = false;
  s.capturing = false;
  s.device_count = 2;
  s.major = 9;
  s.minor = 0;
  s.version = 12080;
  s.countdown = 0;
  s.failures.clear();
  s.calls.clear();
  s.violations.clear();
  s.launches.clear();
  s.maps.clear();
  current_device = -1;
}

template <typename T>
void set(T State::*member, T value) {
  const std::lock_guard lock(state().mutex);
  state().*member = value;
}

template <typename T>
T get(T State::*member) {
  const std::lock_guard lock(state().mutex);
  return state().*member;
}

void fail_call_number(int n, int result) {
  set(&State::countdown, n);
  set(&State::countdown_result, result);
}

bool failure_was_not_reached() {
  const std::lock_guard lock(state().mutex);
  return std::exchange(state().countdown, 0) > 0;
}

void fail(const std::string& call, int result, int times) {
  const std::lock_guard lock(state().mutex);
  state().failures[call] = {result, times};
}

std::vector<std::string> calls() { return get(&State::calls); }

int count(const std::string& call) {
  const auto all = calls();
  return static_cast<int>(std::count(all.begin(), all.end(), call));
}

std::vector<Launch> launches() { return get(&State::launches); }
void expect_arguments(std::size_t count) { set(&State::arguments, count); }
void record(bool on) {
  set(&State::recording, on);
  fast = !on;
}
void set_current_device(int device) { current_device = device; }
void set_device_count(int count) { set(&State::device_count, count); }
void set_capability(int major, int minor) {
  set(&State::major, major);
  set(&State::minor, minor);
}
void set_driver_version(int version) { set(&State::version, version); }
void set_capturing(bool capturing) { set(&State::capturing, capturing); }

int live_libraries() {
  const std::lock_guard lock(state().mutex);
  return static_cast<int>(state().libraries.size());
}
int retained_primary_contexts() { return get(&State::retained); }
std::vector<std::string> violations() { return get(&State::violations); }

}  // namespace fake_driver
