// kElements consecutive elements that are read or written by one instruction; the address is a multiple of their size.
template <int kElements>
struct alignas(kElements * sizeof(Element)) ElementVector {
  Element at[kElements];
};
