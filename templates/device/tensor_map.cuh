// A tensor as TMA sees it (CUtensorMap): made by the host for every launch, a parameter of the kernel.
struct alignas(64) TensorMap {
  unsigned long long words[16];
};
