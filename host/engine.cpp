// The functions a kernel module calls, and the loop over the blocks of a launch. A launch's state is one object, found
// through one variable: modules have one shared memory and one current thread, so a second launch at a time could not
// be anyway.
#include "host/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <numeric>

#include "host/async_copy.h"
#include "host/block.h"
#include "host/global_memory.h"
#include "host/launch_state.h"
#include "host/shared_memory.h"
#include "jitconv/error.h"

namespace jitconv::host {
namespace {

LaunchState* active = nullptr;

// Out of line: how a module's calls reach the launch. The plain flavour and the one that counts differ in load, store
// and copy_async.
void load(const void* address, unsigned bytes, const void* pc) { active->load(address, bytes, pc); }
void store(void* address, unsigned bytes, const void* pc) { active->store(address, bytes, pc); }
void copy_async(void* destination, const void* source, unsigned bytes, int valid, const void* pc) {
  active->copy_async(destination, source, bytes, valid != 0, pc);
}
void counted_load(const void* address, unsigned bytes, const void* pc) {
  active->count(address, bytes, false, pc);
  active->load(address, bytes, pc);
}
void counted_store(void* address, unsigned bytes, const void* pc) {
  active->count(address, bytes, true, pc);
  active->store(address, bytes, pc);
}
void counted_copy_async(void* destination, const void* source, unsigned bytes, int valid, const void* pc) {
  if (valid != 0) active->count(source, bytes, false, pc);
  active->count(destination, bytes, true, pc);
  active->copy_async(destination, source, bytes, valid != 0, pc);
}
void copy_async_commit(const void*) { active->copy_async_commit(); }
void copy_async_wait(unsigned groups, const void*) { active->copy_async_wait(groups); }
void barrier(unsigned id, unsigned threads, const void* pc) { active->block().barrier(id, threads, pc); }
void warp_exchange(unsigned mask, const void* mine, void* all, unsigned bytes, const void* pc) {
  active->block().warp_exchange(mask, mine, all, bytes, pc);
}
void basic_block(const void* pc) { active->block().basic_block(pc); }
void undefined(const char* what, const void* pc) { active->undefined(what, pc); }

void phase_init(void* object, int arrivals, const void* pc) { active->phase_init(object, arrivals, pc); }
void phase_init_visible(const void*) { active->phase_init_visible(); }
void phase_arrive(void* object, int announced, const void* pc) { active->phase_arrive(object, announced, pc); }
void phase_wait(void* object, int parity, const void* pc) { active->phase_wait(object, parity, pc); }
void copy_bulk(void* destination, const void* source, int bytes, void* object, const void* pc) {
  active->copy_bulk(destination, source, bytes, object, pc);
}
void copy_tensor(void* destination, const jitconv_host_tensor_map* map, const int* indices, unsigned rank,
                 const int* offset, void* object, const void* pc) {
  BoxPlace place;
  std::copy_n(indices, rank, place.first.begin());
  if (offset != nullptr) place.offset = {offset[0], offset[1]};
  active->copy_tensor(destination, *map, static_cast<int>(rank), place, object, pc);
}
void store_bulk(void* destination, const void* source, int bytes, const void* pc) {
  active->store_bulk(destination, source, bytes, pc);
}
void store_tensor(const jitconv_host_tensor_map* map, const int* indices, unsigned rank, const void* source,
                  const void* pc) {
  BoxPlace place;
  std::copy_n(indices, rank, place.first.begin());
  active->store_tensor(*map, static_cast<int>(rank), place, source, pc);
}
void store_bulk_commit(const void*) { active->store_bulk_commit(); }
void store_bulk_wait(unsigned groups, const void* pc) { active->store_bulk_wait(groups, pc); }
void fence_async_proxy(const void*) { active->fence_async_proxy(); }

MultiplyType type_of(jitconv_host_multiply_type type) {
  switch (type) {
    case jitconv_multiply_tf32:
      return MultiplyType::tf32;
    case jitconv_multiply_f16:
      return MultiplyType::f16;
    case jitconv_multiply_bf16:
      return MultiplyType::bf16;
  }
  return MultiplyType::tf32;
}
void multiply(const jitconv_host_multiply* asked, const void* pc) {
  WarpgroupCall call;
  call.kind = WarpgroupCall::Kind::multiply;
  call.pc = pc;
  call.type = type_of(asked->type);
  call.accumulate = asked->accumulate != 0;
  call.sum = asked->sum;
  call.accumulators = asked->accumulators;
  call.a = asked->a;
  call.b = asked->b;
  call.a_registers = asked->a_registers;
  call.a_order = asked->a_mn_major != 0 ? OperandOrder::mn_major : OperandOrder::k_major;
  call.b_order = asked->b_mn_major != 0 ? OperandOrder::mn_major : OperandOrder::k_major;
  active->warpgroup(call);
}
void multiply_begin(const void*) { active->multiply_begin(); }
void multiply_commit(const void*) { active->multiply_commit(); }
void multiply_wait(unsigned groups, const void* pc) {
  WarpgroupCall call;
  call.kind = WarpgroupCall::Kind::wait;
  call.pc = pc;
  call.number = groups;
  active->warpgroup(call);
}
void set_registers(unsigned registers, int more, const void* pc) {
  WarpgroupCall call;
  call.kind = WarpgroupCall::Kind::registers;
  call.pc = pc;
  call.number = registers;
  call.more = more != 0;
  active->warpgroup(call);
}

constexpr jitconv_host_api kApi = {load,
                                   store,
                                   barrier,
                                   warp_exchange,
                                   copy_async,
                                   copy_async_commit,
                                   copy_async_wait,
                                   phase_init,
                                   phase_init_visible,
                                   phase_arrive,
                                   phase_wait,
                                   copy_bulk,
                                   copy_tensor,
                                   store_bulk,
                                   store_tensor,
                                   store_bulk_commit,
                                   store_bulk_wait,
                                   fence_async_proxy,
                                   multiply,
                                   multiply_begin,
                                   multiply_commit,
                                   multiply_wait,
                                   set_registers,
                                   basic_block,
                                   undefined};
constexpr jitconv_host_api counting(jitconv_host_api api) {
  api.load = counted_load;
  api.store = counted_store;
  api.copy_async = counted_copy_async;
  return api;
}
constexpr jitconv_host_api kCountingApi = counting(kApi);

void check(const Launch& launch) {
  const auto refuse = [](const char* field, const std::string& message) {
    throw SpecError(ErrorCode::invalid_argument, field, fmt::format("{} {}", field, message));
  };
  if (launch.threads < 1 || launch.threads > 1024)
    refuse("threads", fmt::format("is {}; a block has 1 to 1024", launch.threads));
  if (launch.shared_bytes > Module::kSharedBytes)
    refuse("shared_bytes", fmt::format("is {}; a block has at most {}", launch.shared_bytes, Module::kSharedBytes));
  for (const std::uint32_t extent : launch.grid)
    if (extent < 1) refuse("grid", "has an extent of 0");
}

}  // namespace

// The order of blocks: i -> (first + step * i) mod count runs through all of them if step and count share no factor.
class BlockOrder {
 public:
  BlockOrder(std::uint64_t count, Random& random)
      : count_(count), first_(random.next() % count), step_(random.next() % count) {
    while (std::gcd(step_, count_) != 1) step_ = (step_ + 1) % count_;
  }
  std::uint64_t at(std::uint64_t i) const {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>((Wide{first_} + Wide{step_} * i) % count_);
  }

 private:
  std::uint64_t count_, first_, step_;
};

Report execute(const Module& module, const Launch& launch, const Settings& settings) {
  check(launch);
  const Module::Entry entry = module.entry(launch.entry);
  if (entry == nullptr)
    throw SpecError(ErrorCode::invalid_argument, "entry", fmt::format("the module has no entry {}", launch.entry));

  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  Random random(settings.seed);
  LaunchState state(module, entry, launch, settings, random);
  struct Activation {
    explicit Activation(LaunchState& launched) { active = &launched; }
    ~Activation() { active = nullptr; }
  } const activation(state);
  module.connect(module.counts() ? &kCountingApi : &kApi);

  const auto [x, y, z] = launch.grid;
  const std::uint64_t blocks = std::uint64_t{x} * y * z;
  const BlockOrder order(blocks, random);
  Report report;
  for (; report.blocks < blocks && !state.log().full(); ++report.blocks) {
    const std::uint64_t number = order.at(report.blocks);
    state.run_block({static_cast<std::uint32_t>(number % x), static_cast<std::uint32_t>(number / x % y),
                     static_cast<std::uint32_t>(number / x / y)});
  }
  report.findings = state.log().take();
  report.counters = state.counters();
  return report;
}

}  // namespace jitconv::host
