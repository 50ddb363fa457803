// Which elements of a warpgroup's multiplication a thread holds in registers (wgmma, sm_90a): PTX ISA, "Asynchronous
// Warpgroup Level Matrix Instructions", "Register Fragments", figures of .m64nNk8 and .m64nNk16. A warp has 16 rows of
// the accumulators in two halves of eight, a lane a row of each half and, of every eight columns, two neighbours:
// sum[4 j + 2 half + e] is in row accumulator_row(warp, lane, half) and column 8 j + accumulator_column(lane) + e.

constexpr int kWarpRows = 16;
constexpr int kHalfRows = 8;
// Lanes that share a row.
constexpr int kRowLanes = 4;
__device__ __forceinline__ int warp_first_row(int warp) { return warp % 4 * kWarpRows; }
// A lane's row of the eight of a half.
__device__ __forceinline__ int lane_row(int lane) { return lane / kRowLanes; }
__device__ __forceinline__ int accumulator_row(int warp, int lane, int half) {
  return warp_first_row(warp) + half * kHalfRows + lane_row(lane);
}
// The first of a lane's columns.
__device__ __forceinline__ int accumulator_column(int lane) { return lane % kRowLanes * 2; }
// Which of a lane's sums lies in its row of a half and in its column `e`, 0 or 1, of the eight columns number `eight`.
__device__ constexpr int accumulator_index(int eight, int half, int e) { return eight * 4 + half * 2 + e; }
// Of an operand in registers, a lane has the same rows, and of every 16 bytes of a row a word.
__device__ __forceinline__ int operand_word(int lane) { return lane % kRowLanes; }

// Two eights of columns by a warp's two halves of rows are the four matrices of a store_transposed(), of which lane l
// writes column l % 8 of matrix l / 8: eight rows of the warp's 16.

__device__ __forceinline__ int transposed_column(int lane) { return lane / 16 * 8 + lane % 8; }
__device__ __forceinline__ int transposed_first_row(int lane) { return lane / 8 % 2 * kHalfRows; }
