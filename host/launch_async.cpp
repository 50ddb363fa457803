// What a launch does for instructions that complete later: barrier objects, bulk copies, operations of a warpgroup.
// Checks addresses, and turns what the parts say is broken into findings.
#include <fmt/format.h>

#include "host/launch_state.h"

namespace jitconv::host {
namespace {

constexpr std::int64_t kMostCopied = 1 << 20;
constexpr std::uint32_t kCopyUnit = 16;
constexpr const char* kTensorCopy = "tensor copy";

}  // namespace

void LaunchState::report_barrier(const void* barrier, const void* pc, std::string&& text,
                                 const PhaseBarriers::Barrier* known) {
  block_.report({Rule::barrier_misuse, pc, block_.running().index, place(barrier, PhaseBarriers::kBytes),
                 std::move(text), known != nullptr ? pc_near(pc, known->pc) : nullptr},
                true);
}

void LaunchState::phase_init(void* barrier, std::int64_t arrivals, const void* pc) {
  const Access access{barrier, PhaseBarriers::kBytes, "initialisation of a barrier", pc};
  const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(barrier) - shared_begin_;
  if (offset >= shared_bytes_) report_place(Rule::out_of_bounds, access, "outside shared memory");
  check_shared(offset, access);
  const auto at = static_cast<std::uint32_t>(offset);
  const PhaseBarriers::Barrier* const before = barriers_.find(at);
  std::string text = barriers_.init(block_.view(), at, arrivals, low_half(pc));
  if (!text.empty()) return report_barrier(barrier, pc, std::move(text), before);
  // Nobody may touch these bytes but through the barrier's operations, as if a copy were on its way there.
  const Conflict conflict = shared_.begin_write(Proxy::generic, block_.view(), at, PhaseBarriers::kBytes, low_half(pc));
  if (conflict) report_conflict(conflict, access);
}

// Does not come back if the thread may not use the barrier.
PhaseBarriers::Barrier& LaunchState::used_barrier(void* barrier, const char* verb, const void* pc) {
  const Access access{barrier, PhaseBarriers::kBytes, verb, pc};
  const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(barrier) - shared_begin_;
  if (offset >= shared_bytes_) report_place(Rule::out_of_bounds, access, "outside shared memory");
  check_shared(offset, access);
  PhaseBarriers::Barrier* const found = barriers_.find(static_cast<std::uint32_t>(offset));
  if (found == nullptr) report_barrier(barrier, pc, fmt::format("{}: this is no barrier yet", verb), nullptr);
  if (std::string text = barriers_.check_use(*found, block_.view()); !text.empty())
    report_barrier(barrier, pc, fmt::format("{}: {}", verb, text), found);
  return *found;
}

void LaunchState::phase_arrive(void* barrier, std::int64_t announced, const void* pc) {
  PhaseBarriers::Barrier& at = used_barrier(barrier, "arrival", pc);
  const std::uint32_t phase = at.phase;
  if (std::string text = barriers_.arrive(at, block_.running().index, announced); !text.empty())
    report_barrier(barrier, pc, "arrival: " + text, &at);
  block_.renew_view();
  if (at.phase != phase) block_.pass_phase(at.number, phase % 2);
}

void LaunchState::phase_wait(void* barrier, std::int64_t parity, const void* pc) {
  const std::uint32_t number = used_barrier(barrier, "wait", pc).number;
  if (parity != 0 && parity != 1)
    report_barrier(barrier, pc, fmt::format("wait for parity {}: it is 0 or 1", parity), nullptr);
  const auto wanted = static_cast<std::uint32_t>(parity);
  if (!PhaseBarriers::passes(barriers_.at(number), wanted)) block_.wait_phase(number, wanted, pc);
  PhaseBarriers::Barrier& at = barriers_.at(number);
  // The copies of complete phases are there for those who wait, and for whom they tell: not before.
  if (copies_.of_object(number) != nullptr)
    copies_.complete(number, at.phase, clocks_.column(number), clocks_.release_agent(number, at.complete));
  clocks_.acquire(block_.running().index, at.complete);
  block_.renew_view();
}

// One side of a bulk copy; of no bytes if it cannot have so many.
LaunchState::Access LaunchState::bulk_access(const void* address, std::int64_t bytes, const void* pc) {
  const bool sized = bytes > 0 && bytes <= kMostCopied && bytes % kCopyUnit == 0;
  return {address, sized ? static_cast<std::uint32_t>(bytes) : 0, "bulk copy", pc};
}

void LaunchState::copy_bulk(void* destination, const void* source, std::int64_t bytes, void* barrier, const void* pc) {
  PhaseBarriers::Barrier& arrival = used_barrier(barrier, "bulk copy", pc);
  const Access write = bulk_access(destination, bytes, pc), read = bulk_access(source, bytes, pc);
  const std::uint32_t offset = check_bulk(write, read, bytes);
  check_source(read);

  Operation operation;
  operation.object = arrival.number;
  operation.destination = offset;
  operation.source = source;
  if (module_.counts()) count_bulk(source, read.bytes, counters_.global_loads, counters_.shared_stores);
  issue_bulk(operation, write);
}

void LaunchState::copy_tensor(void* destination, const jitconv_host_tensor_map& map, int rank, const BoxPlace& place,
                              void* barrier, const void* pc) {
  PhaseBarriers::Barrier& arrival = used_barrier(barrier, kTensorCopy, pc);
  const Buffer& tensor = mapped_buffer(map, rank, place, pc);
  const codegen::TensorMapShape& shape = tensor.map;
  const Access write{destination, static_cast<std::uint32_t>(shape.box_bytes()), kTensorCopy, pc};
  const std::uint32_t offset = check_box(write, tensor, place);
  Operation operation;
  operation.object = arrival.number;
  operation.destination = offset;
  operation.source = tensor.data;
  operation.map = &shape;
  operation.place = place;
  TensorBox(shape, tensor.data, place).visit_runs([&](const char* source, std::uint32_t bytes, std::uint32_t) {
    check_source_in(global_.find(reinterpret_cast<std::uintptr_t>(source), bytes), {source, bytes, kTensorCopy, pc});
    if (module_.counts()) count_sectors(source, bytes, counters_.global_loads);
  });
  if (module_.counts()) {
    counters_.global_loads.requests += 1;
    count_wavefronts(write.bytes, counters_.shared_stores);
  }
  issue_bulk(operation, write);
}

// The object, the place and what goes there are the caller's.
void LaunchState::issue_bulk(Operation operation, const Access& write) {
  operation.issuer = block_.running().index;
  operation.proxy = Proxy::async;
  operation.completion = Completion::object;
  operation.bytes = write.bytes;
  operation.pc = low_half(write.pc);
  // When the object is told is decided here: late is when nobody can do anything else.
  const Conflict conflict = copies_.issue(block_.view(), operation, Landing::late, random_);
  if (conflict) report_conflict(conflict, write);
  if (lands_early(settings_.landing, random_)) land_on(barriers_.at(operation.object));
}

void LaunchState::store_bulk(void* destination, const void* source, std::int64_t bytes, const void* pc) {
  const Access write = bulk_access(destination, bytes, pc), read = bulk_access(source, bytes, pc);
  const std::uint32_t offset = check_bulk(read, write, bytes);
  if (const Conflict conflict = shared_.check_read(block_.view(), offset, read.bytes)) report_conflict(conflict, read);
  if (!stores_to_buffer(write)) report_place(Rule::out_of_bounds, write, "outside the buffers of the launch");
  if (module_.counts()) count_bulk(destination, write.bytes, counters_.global_stores, counters_.shared_loads);
  bulk_stores_.issue(
      {block_.running().index, static_cast<const char*>(source), static_cast<char*>(destination), read.bytes, pc},
      lands_early(settings_.landing, random_));
}

void LaunchState::store_tensor(const jitconv_host_tensor_map& map, int rank, const BoxPlace& place, const void* source,
                               const void* pc) {
  const Buffer& tensor = mapped_buffer(map, rank, place, pc);
  if (tensor.map.rounds_to_tf32) {
    block_.report({Rule::out_of_bounds, pc, block_.running().index, "",
                   "tensor copy to global memory by a map that rounds: what that stores is not known", nullptr},
                  true);
  }
  const Access read{source, static_cast<std::uint32_t>(tensor.map.box_bytes()), kTensorCopy, pc};
  const std::uint32_t offset = check_box(read, tensor, place);
  if (const auto refusal = TensorBox::store_refusal(tensor.map, place))
    report_place(refusal->rule, read, refusal->text.c_str());
  if (const Conflict conflict = shared_.check_read(block_.view(), offset, read.bytes)) report_conflict(conflict, read);
  const TensorBox box = TensorBox::of_store(tensor.map, tensor.data, place);
  box.visit_runs([&](const char* address, std::uint32_t bytes, std::uint32_t) {
    const Access write{address, bytes, kTensorCopy, pc};
    if (!stores_to_buffer(write)) report_place(Rule::out_of_bounds, write, "outside the buffers of the launch");
    if (module_.counts()) count_sectors(address, bytes, counters_.global_stores);
  });
  if (module_.counts()) {
    counters_.global_stores.requests += 1;
    count_wavefronts(read.bytes, counters_.shared_loads);
  }
  bulk_stores_.issue({block_.running().index, static_cast<const char*>(source), static_cast<char*>(tensor.data),
                      read.bytes, pc, &tensor.map, place},
                     lands_early(settings_.landing, random_));
}

// From here on the sources may be overwritten by threads that come behind this one: it counts as their reader.
void LaunchState::store_bulk_wait(std::uint32_t groups, const void* pc) {
  for (const BulkStores::Finished& done : bulk_stores_.wait(block_.running().index, groups)) {
    const BulkStores::Store& store = done.store;
    if (done.change) {
      if (log_.known(Rule::unfinished_copy, pc)) continue;
      block_.report({Rule::unfinished_copy, pc, block_.running().index,
                     place(store.source + *done.change, store.bytes - *done.change),
                     "what the copy in line {line} reads was changed before this wait for it", store.pc},
                    false);
      continue;
    }
    const auto offset = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(store.source) - shared_begin_);
    if (const Conflict conflict = shared_.load_slow(block_.view(), offset, store.bytes, low_half(store.pc)))
      report_conflict(conflict, bulk_access(store.source, store.bytes, store.pc));
  }
}

// A bulk copy's two sides; returns the place in shared memory. Does not come back if the copy cannot be made.
std::uint32_t LaunchState::check_bulk(const Access& shared, const Access& global, std::int64_t bytes) {
  if (shared.bytes == 0)
    report_place(Rule::misaligned, shared, fmt::format("asked for {}: no multiple of 16", bytes).c_str());
  const std::uint32_t offset = check_block(shared, kCopyUnit);
  if (reinterpret_cast<std::uintptr_t>(global.address) % kCopyUnit != 0)
    report_place(Rule::misaligned, global, "at no multiple of 16");
  return offset;
}

// The tensor of a map that the kernel was given. Does not come back if it is of another kind than the copy.
const Buffer& LaunchState::mapped_buffer(const jitconv_host_tensor_map& map, int rank, const BoxPlace& place,
                                         const void* pc) {
  const bool known = map.parameter < buffers_.size() && map.tensor == buffers_[map.parameter].data &&
                     buffers_[map.parameter].map.rank == rank &&
                     buffers_[map.parameter].map.im2col.has_value() == place.offset.has_value();
  if (!known) {
    block_.report(
        {Rule::out_of_bounds, pc, block_.running().index, "",
         fmt::format("tensor copy by what is no {}map of {} axes of the launch", place.offset ? "im2col " : "", rank),
         nullptr},
        true);
  }
  return buffers_[map.parameter];
}

// Where a copy by a map is in shared memory. Does not come back if it cannot be made.
std::uint32_t LaunchState::check_box(const Access& shared, const Buffer& tensor, const BoxPlace& place) {
  const std::uint32_t offset = check_block(shared, TensorBox::alignment(tensor.map));
  if (reinterpret_cast<std::uintptr_t>(tensor.data) % kCopyUnit != 0)
    report_place(Rule::misaligned, {tensor.data, shared.bytes, kTensorCopy, shared.pc},
                 "of a tensor at no multiple of 16");
  if (const auto refusal = TensorBox::refusal(tensor.map, place))
    report_place(refusal->rule, shared, refusal->text.c_str());
  return offset;
}

std::uint32_t LaunchState::check_block(const Access& shared, std::uint32_t alignment) {
  const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(shared.address) - shared_begin_;
  if (offset >= shared_bytes_ || shared.bytes > shared_bytes_ - offset)
    report_place(Rule::out_of_bounds, shared, "outside shared memory");
  if (offset % alignment != 0)
    report_place(Rule::misaligned, shared, fmt::format("in shared memory at no multiple of {}", alignment).c_str());
  return static_cast<std::uint32_t>(offset);
}

// Whole sectors and wavefronts, by one instruction.
void LaunchState::count_bulk(const void* address, std::uint32_t bytes, GlobalCounters& global, SharedCounters& shared) {
  global.requests += 1;
  count_sectors(address, bytes, global);
  count_wavefronts(bytes, shared);
}

void LaunchState::count_sectors(const void* address, std::uint32_t bytes, GlobalCounters& global) {
  const auto first = reinterpret_cast<std::uintptr_t>(address);
  global.sectors += (first + bytes - 1) / 32 - first / 32 + 1;
  global.bytes += bytes;
}

void LaunchState::count_wavefronts(std::uint32_t bytes, SharedCounters& shared) {
  shared.requests += 1;
  shared.wavefronts += (bytes + 127) / 128;
  shared.ideal += (bytes + 127) / 128;
  shared.bytes += bytes;
}

void LaunchState::land_on(PhaseBarriers::Barrier& barrier) {
  const Operation* const oldest = copies_.of_object(barrier.number);
  const std::uint32_t phase = barrier.phase;
  const std::uint32_t bytes = copies_.land_next(barrier.number, phase);
  // Bytes that nobody announced come to light when somebody waits in vain; a counter that is full cannot.
  std::string text = barriers_.land(barrier, bytes);
  if (!text.empty() && oldest != nullptr) barrier.bytes = -PhaseBarriers::kMostCounted;
  if (barrier.phase != phase) block_.pass_phase(barrier.number, phase % 2);
}

// Accumulators are the only memory of a thread's own that others may not touch.
void LaunchState::check_sums(const void* address, std::uint32_t bytes, const char* verb, const void* pc) {
  const auto multiplication = warpgroups_.owner_of(block_.running().index, address);
  if (!multiplication || log_.known(Rule::unfinished_multiplication, pc)) return;
  block_.report({Rule::unfinished_multiplication, pc, block_.running().index, "",
                 fmt::format("{} of {} bytes of the sums of the multiplication in line {{line}}, which has not been "
                             "waited for",
                             verb, bytes),
                 pc_near(pc, *multiplication)},
                false);
}

void LaunchState::fence_async_proxy() {
  clocks_.fence_async_proxy(block_.running().index);
  block_.renew_view();
}

// On the scheduler's stack.

bool LaunchState::land() {
  std::array<std::uint32_t, PhaseBarriers::kMost> in_flight{};
  std::uint32_t count = 0;
  for (std::uint32_t i = 0; i < barriers_.count(); ++i)
    if (copies_.flies(i)) in_flight[count++] = i;
  if (count == 0) return false;
  land_on(barriers_.at(in_flight[random_.below(count)]));
  return true;
}

bool LaunchState::warpgroup(std::uint32_t warpgroup, Warpgroups::Calls calls) {
  const WarpgroupCall& call = *calls[0];
  std::optional<WarpgroupFault> fault;
  switch (call.kind) {
    case WarpgroupCall::Kind::multiply:
      fault = warpgroups_.multiply(warpgroup, calls);
      if (module_.counts())
        counters_.multiply_adds += std::uint64_t{kMultiplyRows} * 2 * call.accumulators * depth(call.type);
      break;
    case WarpgroupCall::Kind::wait:
      fault = warpgroups_.wait(warpgroup, calls);
      break;
    case WarpgroupCall::Kind::registers:
      fault = warpgroups_.check_registers(warpgroup, calls);
      break;
  }
  if (fault) {
    const std::uint32_t thread = warpgroup * kWarpgroupThreads + fault->thread;
    Violation violation{fault->rule, call.pc, thread, "", std::move(fault->text), nullptr};
    if (fault->conflict) {
      const void* const address = reinterpret_cast<const void*>(shared_begin_ + fault->offset);
      violation = violation_of(fault->conflict, {address, fault->bytes, "multiplication", call.pc}, thread);
    } else if (fault->other_pc != 0) {
      violation.other_pc = pc_near(call.pc, fault->other_pc);
    }
    block_.log(std::move(violation), fault->fatal);
    if (fault->fatal) return true;
  }
  return call.kind != WarpgroupCall::Kind::registers || warpgroups_.set_registers(warpgroup, call);
}

bool LaunchState::try_again(std::uint32_t warpgroup, const WarpgroupCall& call) {
  return warpgroups_.set_registers(warpgroup, call);
}

// A block that ends while something of it is in flight.
void LaunchState::end() {
  const void* const near = module_.current_thread();  // any address in the module
  for (std::uint32_t i = 0; i < barriers_.count(); ++i) {
    const Operation* const copy = copies_.of_object(i);
    if (copy == nullptr) continue;
    block_.log({Rule::unfinished_copy, pc_near(near, copy->pc), copy->issuer,
                place(reinterpret_cast<const void*>(shared_begin_ + copy->destination), copy->bytes),
                fmt::format("bulk copy of {} bytes: the block ended, and nobody had waited for it", copy->bytes),
                nullptr});
  }
  if (const BulkStores::Store* const store = bulk_stores_.unfinished()) {
    block_.log({Rule::unfinished_copy, store->pc, store->issuer, place(store->source, store->bytes),
                fmt::format("bulk copy of {} bytes: the block ended, and nobody had waited for it", store->bytes),
                nullptr});
  }
  for (std::uint32_t g = 0; (g + 1) * kWarpgroupThreads <= clocks_.threads(); ++g) {
    const auto pc = warpgroups_.unfinished(g);
    if (!pc) continue;
    block_.log({Rule::unfinished_multiplication, pc_near(near, *pc), g * kWarpgroupThreads, "",
                "the block ended, and this multiplication had not been waited for", nullptr});
  }
}

std::string LaunchState::missing(std::uint32_t phase_barrier) const {
  return PhaseBarriers::describe(barriers_.at(phase_barrier));
}

std::string LaunchState::missing_registers(std::uint32_t warpgroup, const WarpgroupCall& call) const {
  return warpgroups_.describe_registers(warpgroup, call);
}

}  // namespace jitconv::host
