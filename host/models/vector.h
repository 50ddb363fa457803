// CPU model of device/vector.cuh: copying an ElementVector is one access.
template <int kElements>
struct alignas(kElements * sizeof(Element)) ElementVector {
  Element at[kElements];
  JITCONV_ONE_ACCESS(ElementVector, kElements * sizeof(Element))
};
