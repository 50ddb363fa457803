// Accumulators are the threads' registers, here memory of their stacks. Between a multiplication and its wait the sums
// live in a tile of the warpgroup; the threads' own hold NaNs (late) or a copy (early), which the wait finds changed if
// a thread touched them.
#include "host/warpgroups.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "host/operand_place.h"
#include "host/register_maps.h"

namespace jitconv::host {
namespace {

constexpr std::uint32_t kRegistersOfBlock = 65536, kMostRegisters = 256, kFewestRegisters = 24;

std::string group_name(std::uint32_t warpgroup) {
  return fmt::format("threads {} to {}", warpgroup * kWarpgroupThreads, (warpgroup + 1) * kWarpgroupThreads - 1);
}

}  // namespace

Warpgroups::Warpgroups(std::uint32_t threads, std::uint32_t first_agent, const char* memory, std::uint32_t memory_bytes,
                       SharedMemory& marks, Clocks& clocks, Landing landing, Random& random)
    : first_agent_(first_agent),
      memory_(memory),
      memory_bytes_(memory_bytes),
      marks_(marks),
      clocks_(clocks),
      landing_(landing),
      random_(random),
      launch_registers_(std::min(kRegistersOfBlock / threads / 8 * 8, kMostRegisters)),
      begun_(threads),
      committed_(threads),
      warpgroups_(threads / kWarpgroupThreads) {
  start_block();
}

void Warpgroups::start_block() {
  std::fill(begun_.begin(), begun_.end(), 0);
  std::fill(committed_.begin(), committed_.end(), 0);
  for (Warpgroup& group : warpgroups_) {
    group.accumulators.clear();
    group.multiplications.clear();
    group.closed_groups = 0;
    group.committed = 0;
    group.registers = launch_registers_;
    group.registers_set = false;
  }
  free_registers_ = 0;
  in_flight_ = 0;
}

std::optional<WarpgroupFault> Warpgroups::differs(Calls calls) const {
  const WarpgroupCall& first = *calls[0];
  for (std::uint32_t t = 1; t < kWarpgroupThreads; ++t) {
    const WarpgroupCall& call = *calls[t];
    std::string text;
    if (call.type != first.type || call.accumulators != first.accumulators)
      text = fmt::format("multiplies 64 x {} sums, thread 0 of the warpgroup {}", call.accumulators * 2,
                         first.accumulators * 2);
    else if ((call.a_registers == nullptr) != (first.a_registers == nullptr))
      text = fmt::format("multiplies an operand in {}, thread 0 of the warpgroup one in {}",
                         call.a_registers == nullptr ? "shared memory" : "registers",
                         first.a_registers == nullptr ? "shared memory" : "registers");
    else if (call.a != first.a || call.b != first.b)
      text = fmt::format("multiplies the operands {:#x} and {:#x}, thread 0 of the warpgroup {:#x} and {:#x}", call.a,
                         call.b, first.a, first.b);
    else if (call.accumulate != first.accumulate)
      text =
          fmt::format("{}, thread 0 of the warpgroup {}", call.accumulate ? "adds to its sums" : "overwrites its sums",
                      first.accumulate ? "adds" : "overwrites");
    else if (call.number != first.number || call.more != first.more)
      text = fmt::format("asks for {}, thread 0 of the warpgroup for {}", call.number, first.number);
    else
      continue;
    WarpgroupFault fault{Rule::divergent_barrier, t, fmt::format("thread {} of the warpgroup {}", t, text)};
    fault.fatal = true;
    return fault;
  }
  return std::nullopt;
}

// Groups that its threads have closed since the last time all were there.
std::optional<WarpgroupFault> Warpgroups::close_groups(std::uint32_t warpgroup) {
  Warpgroup& group = warpgroups_[warpgroup];
  const std::uint64_t* const committed = committed_.data() + warpgroup * kWarpgroupThreads;
  for (std::uint32_t t = 1; t < kWarpgroupThreads; ++t) {
    if (committed[t] == committed[0]) continue;
    WarpgroupFault fault{Rule::divergent_barrier, t,
                         fmt::format("thread {} of the warpgroup committed {} groups so far, thread 0 {}", t,
                                     committed[t], committed[0])};
    fault.fatal = true;
    return fault;
  }
  group.closed_groups += static_cast<std::uint32_t>(committed[0] - group.committed);
  group.committed = committed[0];
  return std::nullopt;
}

std::optional<WarpgroupFault> Warpgroups::take_operand(std::uint32_t warpgroup, const View& view, Tick tick,
                                                       const OperandPlace& place, std::uint32_t rows, std::uint32_t pc,
                                                       TileOperand& taken) {
  const auto fatal = [](Rule rule, std::string text) {
    WarpgroupFault fault{rule, 0, std::move(text)};
    fault.fatal = true;
    return fault;
  };
  if (auto refusal = place.refusal()) return fatal(refusal->rule, std::move(refusal->text));
  taken = place.tile(memory_);
  const SharedMemory::AsyncReader reader{warpgroup, clocks_.column(first_agent_ + warpgroup), tick};
  std::optional<WarpgroupFault> found;
  place.visit_runs(rows, [&](std::uint32_t row, std::uint32_t offset, std::uint32_t bytes) {
    if (offset + bytes > memory_bytes_) {
      found = fatal(Rule::out_of_bounds, fmt::format("rows of an operand from {} on are at shared + {:#x}; the block "
                                                     "has {} bytes of shared memory",
                                                     row, offset, memory_bytes_));
      return false;
    }
    const Conflict conflict = marks_.begin_read(view, reader, offset, bytes, pc);
    if (!conflict || found) return true;
    found.emplace();
    found->conflict = conflict;
    found->offset = offset;
    found->bytes = bytes;
    return true;
  });
  return found;
}

void Warpgroups::take_registers(Calls calls, Multiplication& multiplication) {
  multiplication.rows.resize(std::size_t{2} * kHalfBytes);
  for (std::uint32_t t = 0; t < kWarpgroupThreads; ++t) multiplication.registers[t] = calls[t]->a_registers;
  for_each_register([&](std::uint32_t thread, std::uint32_t word, std::uint32_t offset) {
    std::memcpy(multiplication.rows.data() + offset, multiplication.registers[thread] + word, 4);
  });
}

// The hardware reads them some time before the wait.
std::optional<WarpgroupFault> Warpgroups::changed_registers(const Multiplication& multiplication) {
  if (multiplication.rows.empty()) return std::nullopt;
  std::uint32_t touched = kWarpgroupThreads;
  for_each_register([&](std::uint32_t thread, std::uint32_t word, std::uint32_t offset) {
    if (std::memcmp(multiplication.rows.data() + offset, multiplication.registers[thread] + word, 4) != 0)
      touched = std::min(touched, thread);
  });
  if (touched == kWarpgroupThreads) return std::nullopt;
  WarpgroupFault fault{Rule::unfinished_multiplication, touched,
                       fmt::format("thread {} of the warpgroup changed its part of an operand after the multiplication "
                                   "in line {{line}} and before this wait",
                                   touched)};
  fault.other_pc = multiplication.pc;
  return fault;
}

std::optional<WarpgroupFault> Warpgroups::take_accumulators(std::uint32_t warpgroup, Calls calls, std::size_t& index) {
  Warpgroup& group = warpgroups_[warpgroup];
  const std::uint32_t count = calls[0]->accumulators;
  const auto same = [&](const Accumulators& one) {
    if (one.count != count) return false;
    for (std::uint32_t t = 0; t < kWarpgroupThreads; ++t)
      if (one.of_thread[t] != calls[t]->sum) return false;
    return true;
  };
  for (index = 0; index < group.accumulators.size() && !same(group.accumulators[index]);) ++index;
  if (index == group.accumulators.size()) {
    for (const Accumulators& other : group.accumulators) {
      const bool apart =
          calls[0]->sum + count <= other.of_thread[0] || other.of_thread[0] + other.count <= calls[0]->sum;
      if (apart || other.in_flight == 0) continue;
      WarpgroupFault fault{Rule::unfinished_multiplication, 0,
                           "these sums are, in part, those of the multiplication in line {line}, which has not been "
                           "waited for"};
      fault.other_pc = other.pc;
      fault.fatal = true;
      return fault;
    }
    Accumulators& added = group.accumulators.emplace_back();
    added.count = count;
    for (std::uint32_t t = 0; t < kWarpgroupThreads; ++t) added.of_thread[t] = calls[t]->sum;
    added.tile.resize(std::size_t{kMultiplyRows} * 2 * count);
    added.begun = ~std::uint64_t{0};
  }
  Accumulators& taken = group.accumulators[index];
  if (taken.in_flight != 0) return std::nullopt;
  const std::uint64_t begun = begun_[warpgroup * kWarpgroupThreads];
  std::optional<WarpgroupFault> fault;
  if (begun == 0) {
    fault = WarpgroupFault{Rule::unfinished_multiplication, 0,
                           "the warpgroup's first multiplication has no "
                           "multiply_begin() before it"};
  }
  std::uint32_t touched = kWarpgroupThreads;
  for_each_pair(count, [&](std::uint32_t thread, std::uint32_t at, std::uint32_t offset) {
    if (same_bits(taken.tile.data() + offset, taken.of_thread[thread] + at)) return;
    std::memcpy(taken.tile.data() + offset, taken.of_thread[thread] + at, 8);
    touched = std::min(touched, thread);
  });
  if (touched < kWarpgroupThreads && taken.begun == begun && !fault) {
    fault = WarpgroupFault{Rule::unfinished_multiplication, touched,
                           fmt::format("thread {} of the warpgroup changed its sums after the multiplication in line "
                                       "{{line}}, and no multiply_begin() orders that before this one",
                                       touched)};
    fault->other_pc = taken.pc;
  }
  return fault;
}

void Warpgroups::compute(Warpgroup& group, Multiplication& multiplication) {
  Accumulators& accumulators = group.accumulators[multiplication.accumulators];
  if (!multiplication.accumulate) std::fill(accumulators.tile.begin(), accumulators.tile.end(), 0.0f);
  if (!multiplication.rows.empty())
    multiplication.a = {{multiplication.rows.data(), multiplication.rows.data() + kHalfBytes}, 128};
  multiply_tile(multiplication.type, accumulators.tile.data(), 2 * accumulators.count, multiplication.a,
                multiplication.b);
  multiplication.computed = true;
}

std::optional<WarpgroupFault> Warpgroups::multiply(std::uint32_t warpgroup, Calls calls) {
  if (auto fault = differs(calls)) return fault;
  if (auto fault = close_groups(warpgroup)) return fault;
  const WarpgroupCall& call = *calls[0];
  if (call.accumulators % 4 != 0 || call.accumulators == 0 || 2 * call.accumulators > kMostMultiplyColumns) {
    WarpgroupFault fault{Rule::out_of_bounds, 0,
                         fmt::format("a multiplication of {} columns: it takes multiples of 8 up to {}",
                                     2 * call.accumulators, kMostMultiplyColumns)};
    fault.fatal = true;
    return fault;
  }
  Warpgroup& group = warpgroups_[warpgroup];
  const auto pc = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(call.pc));
  Multiplication one;
  std::optional<WarpgroupFault> found = take_accumulators(warpgroup, calls, one.accumulators);
  if (found && found->fatal) return found;
  one.type = call.type;
  one.accumulate = call.accumulate;
  one.group = group.closed_groups;
  one.tick = clocks_.tick_of_agent();
  one.pc = pc;
  const View view = clocks_.common_view(warpgroup * kWarpgroupThreads, kWarpgroupThreads);
  if (call.a_registers != nullptr) take_registers(calls, one);
  for (const auto& [operand, order, rows, taken] : {std::tuple(call.a, call.a_order, kMultiplyRows, &one.a),
                                                    std::tuple(call.b, call.b_order, 2 * call.accumulators, &one.b)}) {
    if (taken == &one.a && call.a_registers != nullptr) continue;
    auto fault = take_operand(warpgroup, view, one.tick, OperandPlace(operand, order), rows, pc, *taken);
    if (fault && fault->fatal) return fault;
    if (fault && !found) found = fault;
  }

  Accumulators& accumulators = group.accumulators[one.accumulators];
  const bool waits = std::any_of(group.multiplications.begin(), group.multiplications.end(),
                                 [](const Multiplication& earlier) { return !earlier.computed; });
  if (!waits && lands_early(landing_, random_)) {
    compute(group, one);
    for_each_pair(accumulators.count, [&](std::uint32_t thread, std::uint32_t at, std::uint32_t offset) {
      std::memcpy(accumulators.of_thread[thread] + at, accumulators.tile.data() + offset, 8);
    });
    accumulators.hidden = false;
  } else if (accumulators.in_flight == 0 || !accumulators.hidden) {
    for (float* const own : accumulators.of_thread) std::memset(own, kPoison, accumulators.count * sizeof(float));
    accumulators.hidden = true;
  }
  ++accumulators.in_flight;
  accumulators.pc = pc;
  group.multiplications.push_back(one);
  ++in_flight_;
  return found;
}

// The threads get their sums back, and may not have touched them before.
std::optional<WarpgroupFault> Warpgroups::give_back(std::uint32_t warpgroup, Accumulators& accumulators) {
  std::uint32_t touched = kWarpgroupThreads;
  float poison[2];
  std::memset(poison, kPoison, sizeof(poison));
  for_each_pair(accumulators.count, [&](std::uint32_t thread, std::uint32_t at, std::uint32_t offset) {
    float* const own = accumulators.of_thread[thread] + at;
    const float* const value = accumulators.tile.data() + offset;
    if (!same_bits(own, accumulators.hidden ? poison : value)) touched = std::min(touched, thread);
    std::memcpy(own, value, 8);
  });
  accumulators.hidden = false;
  accumulators.begun = begun_[warpgroup * kWarpgroupThreads];
  if (touched == kWarpgroupThreads) return std::nullopt;
  WarpgroupFault fault{Rule::unfinished_multiplication, touched,
                       fmt::format("thread {} of the warpgroup changed its sums after the multiplication in line "
                                   "{{line}} and before this wait",
                                   touched)};
  fault.other_pc = accumulators.pc;
  return fault;
}

std::optional<WarpgroupFault> Warpgroups::wait(std::uint32_t warpgroup, Calls calls) {
  if (auto fault = differs(calls)) return fault;
  if (auto fault = close_groups(warpgroup)) return fault;
  Warpgroup& group = warpgroups_[warpgroup];
  const std::uint32_t in_flight = calls[0]->number;
  if (group.closed_groups <= in_flight) return std::nullopt;
  const std::uint32_t complete = group.closed_groups - in_flight;  // groups below this number
  std::optional<WarpgroupFault> found;
  Tick tick = 0;
  auto end = group.multiplications.begin();
  for (; end != group.multiplications.end() && end->group < complete; ++end) {
    if (auto fault = changed_registers(*end); fault && !found) found = fault;
    if (!end->computed) compute(group, *end);
    tick = end->tick;
    Accumulators& accumulators = group.accumulators[end->accumulators];
    if (--accumulators.in_flight != 0) continue;
    auto fault = give_back(warpgroup, accumulators);
    if (fault && !found) found = fault;
  }
  in_flight_ -= static_cast<std::size_t>(end - group.multiplications.begin());
  group.multiplications.erase(group.multiplications.begin(), end);
  if (tick != 0) {
    for (std::uint32_t t = 0; t < kWarpgroupThreads; ++t)
      clocks_.acquire_agent(warpgroup * kWarpgroupThreads + t, first_agent_ + warpgroup, tick);
  }
  return found;
}

std::optional<WarpgroupFault> Warpgroups::check_registers(std::uint32_t warpgroup, Calls calls) const {
  if (auto fault = differs(calls)) return fault;
  const WarpgroupCall& call = *calls[0];
  const std::uint32_t held = warpgroups_[warpgroup].registers;
  std::string text;
  if (call.number % 8 != 0 || call.number < kFewestRegisters || call.number > kMostRegisters)
    text = fmt::format("{} registers: must be a multiple of 8 from {} to {}", call.number, kFewestRegisters,
                       kMostRegisters);
  else if (call.more ? call.number < held && warpgroups_[warpgroup].registers_set : call.number > held)
    text = fmt::format("{} to {} registers, where the warpgroup has {}", call.more ? "grows" : "shrinks", call.number,
                       held);
  else
    return std::nullopt;
  WarpgroupFault fault{Rule::registers, 0, std::move(text)};
  fault.fatal = true;
  return fault;
}

bool Warpgroups::set_registers(std::uint32_t warpgroup, const WarpgroupCall& call) {
  std::uint32_t& held = warpgroups_[warpgroup].registers;
  if (call.number > held) {
    const std::uint32_t needed = (call.number - held) * kWarpgroupThreads;
    if (needed > free_registers_) return false;
    free_registers_ -= needed;
  } else if (!call.more) {
    free_registers_ += (held - call.number) * kWarpgroupThreads;
  }
  held = call.number;
  warpgroups_[warpgroup].registers_set = true;
  return true;
}

std::string Warpgroups::describe_registers(std::uint32_t warpgroup, const WarpgroupCall& call) const {
  return fmt::format("{} more registers for each of {}, {} in all: others have given back {}",
                     call.number - warpgroups_[warpgroup].registers, group_name(warpgroup),
                     (call.number - warpgroups_[warpgroup].registers) * kWarpgroupThreads, free_registers_);
}

std::optional<std::uint32_t> Warpgroups::owner_of(std::uint32_t thread, const void* address) const {
  if (thread / kWarpgroupThreads >= warpgroups_.size()) return std::nullopt;
  for (const Accumulators& one : warpgroups_[thread / kWarpgroupThreads].accumulators) {
    const float* const first = one.of_thread[thread % kWarpgroupThreads];
    if (one.in_flight != 0 && address >= first && address < first + one.count) return one.pc;
  }
  return std::nullopt;
}

std::optional<std::uint32_t> Warpgroups::unfinished(std::uint32_t warpgroup) const {
  const std::vector<Multiplication>& all = warpgroups_[warpgroup].multiplications;
  if (all.empty()) return std::nullopt;
  return all.front().pc;
}

}  // namespace jitconv::host
