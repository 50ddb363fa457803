// Sizes of warpgroups and of the matrices that they multiply (wgmma, sm_90a).

constexpr int kWarpgroupWarps = 4;
constexpr int kWarpgroupThreads = 128;
// Rows of a product.
constexpr int kInstructionRows = 64;
// Operands in shared memory consist of core matrices: eight rows of 16 bytes.
constexpr int kOperandRowBytes = 16;
constexpr int kCoreRows = 8;
// Rows of the widest swizzle, and the eight of them after which its pattern begins again: boxes start at a multiple.
constexpr int kSwizzleBytes = 128;
constexpr int kSwizzleAtomBytes = 1024;
