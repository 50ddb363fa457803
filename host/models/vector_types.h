// CUDA's vector types. A vector is one access of memory on a GPU, so copying one is one access here. Part of every
// kernel's prelude.
#pragma once

// A type that is read and written at once, whatever the memory holds. Vectors, since optimisers take integers that are
// made of two values apart again.
template <int kBytes>
struct jitconv_word;
template <>
struct jitconv_word<2> {
  typedef unsigned short type __attribute__((may_alias));
};
template <>
struct jitconv_word<4> {
  typedef unsigned short type __attribute__((may_alias, vector_size(4)));
};
template <>
struct jitconv_word<8> {
  typedef unsigned type __attribute__((may_alias, vector_size(8)));
};
template <>
struct jitconv_word<16> {
  typedef unsigned type __attribute__((may_alias, vector_size(16)));
};

template <int kBytes>
JITCONV_INLINE void jitconv_copy_word(void* to, const void* from) {
  using Word = typename jitconv_word<kBytes>::type;
  *static_cast<Word*>(to) = *static_cast<const Word*>(from);
}

// The members a class needs to be copied by one access.
#define JITCONV_ONE_ACCESS(name, bytes)                                              \
  name() = default;                                                                  \
  JITCONV_INLINE name(const name& other) { jitconv_copy_word<bytes>(this, &other); } \
  JITCONV_INLINE name& operator=(const name& other) {                                \
    jitconv_copy_word<bytes>(this, &other);                                          \
    return *this;                                                                    \
  }

#define JITCONV_VECTOR2(name, type)                                     \
  struct alignas(2 * sizeof(type)) name {                               \
    type x, y;                                                          \
    JITCONV_ONE_ACCESS(name, 2 * sizeof(type))                          \
    JITCONV_INLINE name(type the_x, type the_y) : x(the_x), y(the_y) {} \
  };                                                                    \
  JITCONV_INLINE name make_##name(type x, type y) { return name(x, y); }

#define JITCONV_VECTOR4(name, type)                                                                                 \
  struct alignas(4 * sizeof(type)) name {                                                                           \
    type x, y, z, w;                                                                                                \
    JITCONV_ONE_ACCESS(name, 4 * sizeof(type))                                                                      \
    JITCONV_INLINE name(type the_x, type the_y, type the_z, type the_w) : x(the_x), y(the_y), z(the_z), w(the_w) {} \
  };                                                                                                                \
  JITCONV_INLINE name make_##name(type x, type y, type z, type w) { return name(x, y, z, w); }

JITCONV_VECTOR2(float2, float)
JITCONV_VECTOR4(float4, float)
JITCONV_VECTOR2(int2, int)
JITCONV_VECTOR4(int4, int)
JITCONV_VECTOR2(uint2, unsigned)
JITCONV_VECTOR4(uint4, unsigned)
JITCONV_VECTOR2(short2, short)
JITCONV_VECTOR4(short4, short)
JITCONV_VECTOR2(ushort2, unsigned short)
JITCONV_VECTOR4(ushort4, unsigned short)
JITCONV_VECTOR2(char2, signed char)
JITCONV_VECTOR4(char4, signed char)
JITCONV_VECTOR2(uchar2, unsigned char)
JITCONV_VECTOR4(uchar4, unsigned char)
JITCONV_VECTOR2(double2, double)
JITCONV_VECTOR2(longlong2, long long)
JITCONV_VECTOR2(ulonglong2, unsigned long long)
