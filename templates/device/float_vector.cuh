// kFloats consecutive sums that are read or written by one instruction; the address is a multiple of their size.
template <int kFloats>
struct alignas(kFloats * sizeof(float)) FloatVector {
  float at[kFloats];
};
