// One bit for each element of a store that lies in [first, end).
__device__ __forceinline__ unsigned elements_within(int first, int end) {
  constexpr unsigned kAll = (1u << kStoreElements) - 1;
  const unsigned before_end = end >= kStoreElements ? kAll : end <= 0 ? 0u : (1u << end) - 1;
  const unsigned before_first = first >= kStoreElements ? kAll : first <= 0 ? 0u : (1u << first) - 1;
  return before_end & ~before_first;
}
