// CUDA's built-in functions that concern threads, memory and bits. A function that is not here or in math.h is one that
// the compiler does not know: an error, not a guess. Part of every kernel's prelude.
#pragma once

// --- barriers and warps ----------------------------------------------------------------------------------------------

JITCONV_HOOK void __syncthreads() { jitconv_api->barrier(0, 0, JITCONV_PC); }
// bar.sync id, threads: for models of device functions.
JITCONV_HOOK void jitconv_barrier(unsigned id, unsigned threads) { jitconv_api->barrier(id, threads, JITCONV_PC); }
JITCONV_HOOK void jitconv_sync_warp(unsigned mask) {
  jitconv_api->warp_exchange(mask, nullptr, nullptr, 0, JITCONV_PC);
}
JITCONV_INLINE void __syncwarp(unsigned mask = 0xffffffffu) { jitconv_sync_warp(mask); }

JITCONV_HOOK __attribute__((const)) unsigned jitconv_lane() {
  const jitconv_host_dim3 at = jitconv_thread->thread_index, size = jitconv_thread->block_dim;
  return (at.x + size.x * (at.y + size.y * at.z)) % 32;
}

enum jitconv_shuffle { jitconv_shuffle_index, jitconv_shuffle_up, jitconv_shuffle_down, jitconv_shuffle_xor };

// The lane shfl.sync reads; its own if the one asked for is outside the segment of `width` lanes (PTX ISA, shfl.sync).
JITCONV_HOOK unsigned jitconv_source_lane(jitconv_shuffle kind, unsigned lane, unsigned operand, unsigned width) {
  const unsigned first = lane & ~(width - 1), last = first + width - 1;
  switch (kind) {
    case jitconv_shuffle_index:
      return first + (operand & (width - 1));
    case jitconv_shuffle_up:
      return operand > lane - first ? lane : lane - operand;
    case jitconv_shuffle_down:
      return operand > last - lane ? lane : lane + operand;
    default:
      return (lane ^ operand) > last ? lane : lane ^ operand;
  }
}

template <int kBytes>
struct jitconv_integer;
template <>
struct jitconv_integer<4> {
  typedef unsigned type;
};
template <>
struct jitconv_integer<8> {
  typedef unsigned long type;
};

template <class Bits>
JITCONV_PLAIN Bits jitconv_shuffle_bits(jitconv_shuffle kind, unsigned mask, Bits mine, unsigned operand, int width) {
  Bits all[32];
  jitconv_api->warp_exchange(mask, &mine, all, sizeof(Bits), JITCONV_PC);
  if (width <= 0 || width > 32 || (width & (width - 1)) != 0) {
    jitconv_api->undefined("shuffle of a width that is no power of two up to 32", JITCONV_PC);
    return mine;
  }
  const unsigned lane = jitconv_lane();
  const unsigned source = jitconv_source_lane(kind, lane, operand & 31, static_cast<unsigned>(width));
  if ((mask >> source & 1) == 0) {
    jitconv_api->undefined("shuffle from a lane that is not in the mask", JITCONV_PC);
    return mine;
  }
  return all[source];
}

template <class T>
JITCONV_INLINE T jitconv_shuffle_value(jitconv_shuffle kind, unsigned mask, T value, unsigned operand, int width) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "shuffles take values of 4 or 8 bytes");
  typename jitconv_integer<sizeof(T)>::type bits;
  __builtin_memcpy(&bits, &value, sizeof(T));
  bits = jitconv_shuffle_bits(kind, mask, bits, operand, width);
  __builtin_memcpy(&value, &bits, sizeof(T));
  return value;
}

template <class T>
JITCONV_INLINE T __shfl_sync(unsigned mask, T value, int lane, int width = 32) {
  return jitconv_shuffle_value(jitconv_shuffle_index, mask, value, static_cast<unsigned>(lane), width);
}
template <class T>
JITCONV_INLINE T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  return jitconv_shuffle_value(jitconv_shuffle_up, mask, value, delta, width);
}
template <class T>
JITCONV_INLINE T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  return jitconv_shuffle_value(jitconv_shuffle_down, mask, value, delta, width);
}
template <class T>
JITCONV_INLINE T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32) {
  return jitconv_shuffle_value(jitconv_shuffle_xor, mask, value, static_cast<unsigned>(lane_mask), width);
}

// Bit i: lane i is in the mask and its predicate is not 0.
JITCONV_HOOK unsigned __ballot_sync(unsigned mask, int predicate) {
  const unsigned mine = predicate != 0;
  unsigned all[32];
  jitconv_api->warp_exchange(mask, &mine, all, sizeof(mine), JITCONV_PC);
  unsigned ballot = 0;
  for (unsigned lane = 0; lane < 32; ++lane) {
    if ((mask >> lane & 1) != 0 && all[lane] != 0) ballot |= 1u << lane;
  }
  return ballot;
}
JITCONV_INLINE int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
JITCONV_INLINE int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) == mask; }

// --- memory ----------------------------------------------------------------------------------------------------------

JITCONV_INLINE unsigned long __cvta_generic_to_shared(const void* address) {
  return static_cast<unsigned long>(static_cast<const char*>(address) - jitconv_shared_memory);
}

template <class T>
JITCONV_INLINE T __ldg(const T* address) {
  return *address;
}
template <class T>
JITCONV_INLINE T __ldcg(const T* address) {
  return *address;
}
template <class T>
JITCONV_INLINE T __ldcs(const T* address) {
  return *address;
}
template <class T>
JITCONV_INLINE void __stcg(T* address, T value) {
  *address = value;
}
template <class T>
JITCONV_INLINE void __stcs(T* address, T value) {
  *address = value;
}

// Threads run one at a time and are switched only inside the engine, so load, sum and store are one step. To the engine
// they are plain accesses: atomics of two threads to one address count as a race.
template <class T>
JITCONV_PLAIN T jitconv_atomic_add(T* address, T value) {
  jitconv_api->load(address, sizeof(T), JITCONV_PC);
  const T old = *address;
  jitconv_api->store(address, sizeof(T), JITCONV_PC);
  *address = old + value;
  return old;
}
JITCONV_INLINE float atomicAdd(float* address, float value) { return jitconv_atomic_add(address, value); }
JITCONV_INLINE unsigned atomicAdd(unsigned* address, unsigned value) { return jitconv_atomic_add(address, value); }
// Wraps, as the GPU's does.
JITCONV_INLINE int atomicAdd(int* address, int value) {
  return static_cast<int>(jitconv_atomic_add(reinterpret_cast<unsigned*>(address), static_cast<unsigned>(value)));
}

// cp.async, for models of device functions.
JITCONV_HOOK void jitconv_copy_async(void* destination, const void* source, unsigned bytes, int valid) {
  jitconv_api->copy_async(destination, source, bytes, valid, JITCONV_PC);
}
JITCONV_HOOK void jitconv_copy_async_commit() { jitconv_api->copy_async_commit(JITCONV_PC); }
JITCONV_HOOK void jitconv_copy_async_wait(unsigned groups_in_flight) {
  jitconv_api->copy_async_wait(groups_in_flight, JITCONV_PC);
}

// --- bits ------------------------------------------------------------------------------------------------------------

#define JITCONV_SAME_BITS(name, To, From)          \
  JITCONV_INLINE To name(From value) {             \
    static_assert(sizeof(To) == sizeof(From), ""); \
    To result;                                     \
    __builtin_memcpy(&result, &value, sizeof(To)); \
    return result;                                 \
  }
JITCONV_SAME_BITS(__float_as_uint, unsigned, float)
JITCONV_SAME_BITS(__float_as_int, int, float)
JITCONV_SAME_BITS(__uint_as_float, float, unsigned)
JITCONV_SAME_BITS(__int_as_float, float, int)
JITCONV_SAME_BITS(__double_as_longlong, long long, double)
JITCONV_SAME_BITS(__longlong_as_double, double, long long)

JITCONV_INLINE int __popc(unsigned value) { return __builtin_popcount(value); }
JITCONV_INLINE int __clz(int value) { return value == 0 ? 32 : __builtin_clz(static_cast<unsigned>(value)); }
JITCONV_INLINE int __ffs(int value) { return __builtin_ffs(value); }
JITCONV_INLINE unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(static_cast<unsigned long>(a) * b >> 32);
}
JITCONV_INLINE int __mulhi(int a, int b) { return static_cast<int>(static_cast<long>(a) * b >> 32); }
