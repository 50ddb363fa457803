// A warp's store to shared memory of four matrices of eight by eight 16-bit elements (stmatrix, sm_90). Lane l holds of
// row l / 4 of each matrix the columns 2 (l % 4) + {0, 1}, the first in the low half. What is written are columns: lane
// l says where column l % 8 of matrix l / 8 goes, 16 bytes at a multiple of 16.
__device__ __forceinline__ void store_transposed(void* column, const unsigned (&matrix)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                   static_cast<unsigned>(__cvta_generic_to_shared(column))),
               "r"(matrix[0]), "r"(matrix[1]), "r"(matrix[2]), "r"(matrix[3])
               : "memory");
}
