// Where an access goes if not to shared memory, and the words for what it breaks.
#include "host/launch_state.h"

#include <fmt/format.h>

#include <algorithm>

namespace jitconv::host {
namespace {

// Where shared memory lies in the module, the bytes before it belong to the module, too. An access to bytes as near as
// this is meant for shared memory.
constexpr std::uintptr_t kNearShared = 1024;

std::vector<void*> values_of(const Launch& launch) {
  std::vector<void*> values;
  for (const Buffer& buffer : launch.buffers) values.push_back(buffer.data);
  return values;
}

std::vector<jitconv_host_tensor_map> maps_of(const Launch& launch) {
  std::vector<jitconv_host_tensor_map> maps;
  for (const Buffer& buffer : launch.buffers) maps.push_back({buffer.data, maps.size(), {}});
  return maps;
}

std::vector<void*> addresses_of(const Launch& launch, std::vector<void*>& values,
                                std::vector<jitconv_host_tensor_map>& maps) {
  std::vector<void*> addresses;
  for (std::size_t i = 0; i < launch.buffers.size(); ++i)
    addresses.push_back(launch.buffers[i].map.rank == 0 ? static_cast<void*>(&values[i]) : &maps[i]);
  return addresses;
}

template <typename T>
bool lies_in(const std::vector<T>& memory, const void* address) {
  const auto* begin = reinterpret_cast<const char*>(memory.data());
  return address >= begin && address < begin + memory.size() * sizeof(T);
}

}  // namespace

LaunchState::LaunchState(const Module& module, Module::Entry entry, const Launch& launch, const Settings& settings,
                         Random& random)
    : module_(module),
      settings_(settings),
      random_(random),
      log_(module, launch.entry, settings.most_findings),
      clocks_(launch.threads, PhaseBarriers::kMost + kMostWarpgroups),
      shared_(launch.shared_bytes),
      global_(launch.buffers),
      shared_begin_(reinterpret_cast<std::uintptr_t>(module.shared_memory())),
      shared_bytes_(launch.shared_bytes),
      copies_(launch.threads, PhaseBarriers::kMost, static_cast<char*>(module.shared_memory()), shared_),
      bulk_stores_(launch.threads),
      barriers_(clocks_),
      warpgroups_(launch.threads, PhaseBarriers::kMost, static_cast<const char*>(module.shared_memory()),
                  launch.shared_bytes, shared_, clocks_, settings.landing, random),
      buffers_(launch.buffers),
      values_(values_of(launch)),
      maps_(maps_of(launch)),
      parameters_(addresses_of(launch, values_, maps_)),
      block_(launch.threads, {entry, parameters_.data(), module.current_thread(), module.counts()}, clocks_, log_,
             random_, *this),
      grid_(launch.grid) {
  if (module.counts() && module.fma_count() != nullptr) *module.fma_count() = 0;
}

Counters LaunchState::counters() const {
  Counters counters = counters_;
  if (module_.counts() && module_.fma_count() != nullptr) counters.fmas = *module_.fma_count();
  return counters;
}

void LaunchState::run_block(const std::array<std::uint32_t, 3>& index) {
  if (clocks_.exhausted()) {  // races with blocks before this point go unseen
    shared_.clear();
    global_.clear();
    clocks_.restart();
    barriers_.clear();
    started_.clear();
  }
  for (std::uint32_t i = 0; i < barriers_.count(); ++i)  // no barrier of the next block lies there
    shared_.finish_write(Proxy::generic, 0, 0, barriers_.at(i).offset, PhaseBarriers::kBytes, 0);
  barriers_.start_block();
  warpgroups_.start_block();
  copies_.start_block();
  bulk_stores_.start_block();
  block_.run(index, grid_, counters_);
  started_.push_back({clocks_.first(), index});
}

// Accesses to shared memory.

void LaunchState::check_shared(std::uintptr_t offset, const Access& access) {
  if (access.bytes > shared_bytes_ - offset) report_place(Rule::out_of_bounds, access, "past the end");
  if (!is_aligned(offset, access.bytes)) report_place(Rule::misaligned, access, "at no multiple of its size");
}

void LaunchState::load_shared(std::uintptr_t offset, std::uint32_t bytes, const void* pc) {
  const auto at = static_cast<std::uint32_t>(offset);
  if (bytes > shared_bytes_ - offset || !is_aligned(offset, bytes)) [[unlikely]] {
    check_shared(offset, {reinterpret_cast<const void*>(shared_begin_ + offset), bytes, "load", pc});
  }
  if (shared_.load_fast(block_.view(), at, bytes, low_half(pc))) [[likely]]
    return;
  if (const Conflict conflict = shared_.load_slow(block_.view(), at, bytes, low_half(pc)))
    report_conflict(conflict, {reinterpret_cast<const void*>(shared_begin_ + offset), bytes, "load", pc});
}

void LaunchState::store_shared(std::uintptr_t offset, std::uint32_t bytes, const void* pc) {
  const auto at = static_cast<std::uint32_t>(offset);
  if (bytes > shared_bytes_ - offset || !is_aligned(offset, bytes)) [[unlikely]] {
    check_shared(offset, {reinterpret_cast<const void*>(shared_begin_ + offset), bytes, "store", pc});
  }
  if (shared_.store_fast(block_.view(), at, bytes, low_half(pc))) [[likely]]
    return;
  if (const Conflict conflict = shared_.store_slow(block_.view(), at, bytes, low_half(pc)))
    report_conflict(conflict, {reinterpret_cast<const void*>(shared_begin_ + offset), bytes, "store", pc});
}

// Accesses outside shared memory.

bool LaunchState::near_shared(const void* address) const {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  return at - (shared_begin_ - kNearShared) < kNearShared + Module::kSharedBytes &&
         address != static_cast<const void*>(module_.current_thread());
}

bool LaunchState::in_module(const void* address, std::uint32_t bytes) const {
  if (near_shared(address)) return false;
  return module_.contains(address) && module_.contains(static_cast<const char*>(address) + bytes - 1);
}

// The buffer that holds the access; nullptr if no buffer does.
GlobalMemory::Region* LaunchState::checked_region(const Access& access) {
  const auto address = reinterpret_cast<std::uintptr_t>(access.address);
  GlobalMemory::Region* region = global_.find(address, access.bytes);
  if (region != nullptr && !is_aligned(address, access.bytes)) {
    report_place(Rule::misaligned, access, "at no multiple of its size");
  }
  return region;
}

void LaunchState::load_elsewhere(const void* address, std::uint32_t bytes, const void* pc) {
  const Access access{address, bytes, "load", pc};
  if (GlobalMemory::Region* region = checked_region(access)) {
    if (!region->writable()) return;
    const Conflict conflict =
        global_.load(*region, block_.view(), reinterpret_cast<std::uintptr_t>(address), bytes, low_half(pc));
    if (conflict) report_conflict(conflict, access);
    return;
  }
  if (in_module(address, bytes) || lies_in(values_, address) || lies_in(maps_, address) ||
      lies_in(parameters_, address))
    return;
  report_place(Rule::out_of_bounds, access, "outside the buffers of the launch");
}

void LaunchState::store_elsewhere(void* address, std::uint32_t bytes, const void* pc) {
  const Access access{address, bytes, "store", pc};
  if (stores_to_buffer(access)) return;
  if (in_module(address, bytes)) report_place(Rule::read_only, access, "to the kernel's constants");
  report_place(Rule::out_of_bounds, access, "outside the buffers of the launch");
}

// False if it goes to no buffer of the launch.
bool LaunchState::stores_to_buffer(const Access& access) {
  GlobalMemory::Region* const region = checked_region(access);
  if (region == nullptr) return false;
  if (!region->writable()) report_place(Rule::read_only, access, "to an input");
  const Conflict conflict = global_.store(*region, block_.view(), reinterpret_cast<std::uintptr_t>(access.address),
                                          access.bytes, low_half(access.pc));
  if (conflict) report_conflict(conflict, access);
  return true;
}

// A copy reads global memory.
void LaunchState::check_source(const Access& access) { check_source_in(checked_region(access), access); }

// `region`: the buffer that holds what it reads, nullptr if none does.
void LaunchState::check_source_in(GlobalMemory::Region* region, const Access& access) {
  if (region == nullptr) report_place(Rule::out_of_bounds, access, "outside the buffers of the launch");
  if (!region->writable()) return;
  const Conflict conflict = global_.load(*region, block_.view(), reinterpret_cast<std::uintptr_t>(access.address),
                                         access.bytes, low_half(access.pc));
  if (conflict) report_conflict(conflict, access);
}

void LaunchState::copy_async(void* destination, const void* source, std::uint32_t bytes, bool valid, const void* pc) {
  const Access write{destination, bytes, "asynchronous copy", pc};
  const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(destination) - shared_begin_;
  if (offset >= shared_bytes_) report_place(Rule::out_of_bounds, write, "outside shared memory");
  check_shared(offset, write);
  if (valid) {
    check_source({source, bytes, "asynchronous copy", pc});
  }
  Operation operation;
  operation.issuer = block_.running().index;
  operation.destination = static_cast<std::uint32_t>(offset);
  operation.source = valid ? source : nullptr;
  operation.bytes = bytes;
  operation.pc = low_half(pc);
  const Conflict conflict = copies_.issue(block_.view(), operation, settings_.landing, random_);
  if (conflict) report_conflict(conflict, write);
}

void LaunchState::count(const void* address, std::uint32_t bytes, bool is_store, const void* pc) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const unsigned lane = block_.running().index % 32;
  if (at - shared_begin_ < shared_bytes_) {
    block_.requests().add(is_store ? RequestKind::shared_store : RequestKind::shared_load, lane, at - shared_begin_,
                          bytes, pc);
  } else if (global_.find(at, bytes) != nullptr) {
    block_.requests().add(is_store ? RequestKind::global_store : RequestKind::global_load, lane, at, bytes, pc);
  }
}

// Findings.

std::string LaunchState::place(const void* address, std::uint32_t bytes) const {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  if (near_shared(address)) {
    return at >= shared_begin_ ? fmt::format("shared + {:#x} ({} bytes)", at - shared_begin_, bytes)
                               : fmt::format("shared - {:#x} ({} bytes)", shared_begin_ - at, bytes);
  }
  const GlobalMemory::Region* region = global_.find_any(at);
  if (region == nullptr) region = global_.nearest(at);
  if (region == nullptr) return fmt::format("{} ({} bytes)", address, bytes);
  return at >= region->begin() ? fmt::format("{} + {:#x} ({} bytes)", region->name(), at - region->begin(), bytes)
                               : fmt::format("{} - {:#x} ({} bytes)", region->name(), region->begin() - at, bytes);
}

// A thread cannot go on after a wrong address: the kernel's instruction comes next. So this does not come back.
void LaunchState::report_place(Rule rule, const Access& access, const char* why) {
  Violation violation{rule,
                      access.pc,
                      block_.running().index,
                      place(access.address, access.bytes),
                      fmt::format("{} of {} bytes {}", access.verb, access.bytes, why),
                      nullptr};
  if (rule == Rule::out_of_bounds) {
    const auto at = reinterpret_cast<std::uintptr_t>(access.address);
    if (near_shared(access.address))
      violation.text += fmt::format("; the block has {} bytes of shared memory", shared_bytes_);
    else if (const GlobalMemory::Region* region = global_.nearest(at))
      violation.text += fmt::format("; {} has {} bytes", region->name(), region->end() - region->begin());
  }
  block_.report(std::move(violation), true);
}

std::string LaunchState::other_thread(const Conflict& conflict) const {
  if (conflict.thread >= clocks_.threads()) return "a bulk copy";
  if (!conflict.other_block) return fmt::format("thread {}", conflict.thread);
  const auto after = std::upper_bound(started_.begin(), started_.end(), conflict.tick,
                                      [](Tick tick, const Started& block) { return tick < block.first; });
  if (after == started_.begin()) return fmt::format("thread {} of another block", conflict.thread);
  const auto& [x, y, z] = (after - 1)->index;
  return fmt::format("thread {} of block ({}, {}, {})", conflict.thread, x, y, z);
}

// Marks keep half of a return address; the module is smaller than that.
const void* LaunchState::pc_near(const void* pc, std::uint32_t low) {
  const auto distance = static_cast<std::int32_t>(low - low_half(pc));
  return reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(pc) +
                                       static_cast<std::uintptr_t>(std::intptr_t{distance}));
}

void LaunchState::report_conflict(const Conflict& conflict, const Access& access) {
  Violation violation = violation_of(conflict, access, block_.running().index);
  if (!log_.known(violation.rule, access.pc)) block_.report(std::move(violation), false);
}

Violation LaunchState::violation_of(const Conflict& conflict, const Access& access, std::uint32_t thread) const {
  Violation violation;
  violation.rule = Rule::race;
  violation.pc = access.pc;
  violation.thread = thread;
  violation.other_pc = pc_near(access.pc, conflict.pc);
  const char* const first = static_cast<const char*>(access.address) + conflict.offset;
  violation.address = place(first, access.bytes - conflict.offset);
  violation.text = fmt::format("{} of {} bytes: ", access.verb, access.bytes);
  switch (conflict.hazard) {
    case Hazard::none:
      break;
    case Hazard::uninitialised:
      violation.rule = Rule::uninitialised;
      violation.text += "nothing in this block has written there";
      violation.other_pc = nullptr;
      break;
    case Hazard::written:
      violation.text +=
          fmt::format("{} wrote there in line {{line}}, and nothing orders the two", other_thread(conflict));
      break;
    case Hazard::read:
      violation.text +=
          fmt::format("{} read there in line {{line}}, and nothing orders the two", other_thread(conflict));
      break;
    case Hazard::copied:
      if (const auto offset = reinterpret_cast<std::uintptr_t>(first) - shared_begin_;
          barriers_.find(static_cast<std::uint32_t>(offset), 1) != nullptr) {
        violation.rule = Rule::barrier_misuse;
        violation.text += fmt::format("thread {} made this a barrier in line {{line}}", conflict.thread);
        break;
      }
      violation.rule = Rule::unfinished_copy;
      violation.text +=
          fmt::format("the copy that {} started in line {{line}} has not been waited for", other_thread(conflict));
      break;
    case Hazard::written_unfenced:
      violation.text +=
          fmt::format("{} wrote there in line {{line}}, without a fence for the async proxy", other_thread(conflict));
      break;
    case Hazard::multiplied:
      violation.rule = Rule::unfinished_multiplication;
      violation.text += fmt::format(
          "the multiplication of threads {} to {} in line {{line}} reads there, and nothing says that it is complete",
          conflict.thread, conflict.thread + kWarpgroupThreads - 1);
      break;
  }
  return violation;
}

void LaunchState::undefined(const char* what, const void* pc) {
  if (log_.known(Rule::overflow, pc)) return;
  block_.report({Rule::overflow, pc, block_.running().index, "", what, nullptr}, false);
}

}  // namespace jitconv::host
