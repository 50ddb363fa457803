// See tensor_copy_probes.h. Maps are of the words of all items.
#include "conformance/tensor_copy_probes.h"

#include <fmt/format.h>

#include <array>

#include "conformance/tensor_probes.h"

namespace jitconv::test {
namespace {

/// A probe of copies by the maps of two tensors that the block's items are. What one thread gets depends on all items:
/// there is one block of them. `constants` has kRounds, `copies` asks for a round's at `boxes`, which end at word
/// `end`, and `reads` writes down what came.
Probe copies_in_rounds(const std::string& name, const std::string& function, const codegen::TensorMapShape& first,
                       const codegen::TensorMapShape& second, const std::string& constants, const std::string& end,
                       const std::string& copies, const std::string& reads) {
  Probe probe;
  probe.name = name;
  probe.device_files = {"device/barrier.cuh", "device/tensor_map.cuh", "device/tensor_copy.cuh"};
  probe.functions = {"tensor_map.cuh", "tensor_copy.cuh: " + function};
  probe.maps = {first, second};
  probe.body = constants +
               "  float* const boxes = shared + (1024 - __cvta_generic_to_shared(shared) % 1024) % 1024 / 4;\n"
               "  Barrier* const full = reinterpret_cast<Barrier*>(boxes + " +
               end +
               ");\n"
               "  const int thread = static_cast<int>(threadIdx.x);\n"
               "  if (thread == 0) {\n"
               "    barrier_init(full, 1);\n"
               "    barrier_init_visible();\n"
               "  }\n"
               "  __syncthreads();\n"
               "#pragma unroll 1\n"
               "  for (int round = 0; round < kRounds; ++round) {\n" +
               copies + "    barrier_wait(full, round % 2);\n" + reads +
               "    __syncthreads();\n"
               "  }\n";
  probe.in_words = 32;
  probe.out_words = 8 * 8;
  probe.inputs = random_words(probe.name, kProbeThreads * probe.in_words);
  probe.compute_capability = kHopper;
  return probe;
}

/// Boxes, both of 2048 bytes, that stick out on every side.
Probe tensor_copies(const std::string& name, const codegen::TensorMapShape& first,
                    const codegen::TensorMapShape& second) {
  const std::string i2 = first.rank == 4 ? "i2, round % 3, " : first.rank == 3 ? "i2, " : "";
  const std::string function = fmt::format("tensor_copy_{}d_to_shared", first.rank);
  Probe probe = copies_in_rounds(
      name, function, first, second, "  constexpr int kWords = 512, kRounds = 8;\n", "2 * kWords",
      "    const int i0 = (round * 5 % 9 - 4) * 16, i1 = round * 23 % 61 - 14, i2 = round * 5 % 11 - 3;\n"
      "    if (thread == 0) {\n"
      "      barrier_arrive_expecting(full, 2 * kWords * 4);\n"
      "      " +
          function + "(boxes, &map0, i0, i1, " + i2 +
          "full);\n"
          "      " +
          function + "(boxes + kWords, &map1, i0 / 2, i1 + 3, " + i2 +
          "full);\n"
          "    }\n",
      fmt::format("    for (int i = 0; i < 2 * kWords / {0}; ++i)\n"
                  "      out[round * (2 * kWords / {0}) + i] = __float_as_uint(boxes[i * {0} + thread]);\n",
                  kProbeThreads));
  probe.shared_bytes = 1024 + 2 * 2048 + 8;
  return probe;
}
Probe copies_of_planes() {
  return tensor_copies("tensor copies of 2 axes",
                       {.rank = 2, .extents = {50, 60}, .strides = {1, 64}, .box = {32, 16}, .swizzle_bytes = 128},
                       {.rank = 2, .element_bytes = 2, .extents = {37, 40}, .strides = {1, 48}, .box = {32, 32}});
}
Probe copies_of_volumes() {
  return tensor_copies("tensor copies of 3 axes",
                       {.rank = 3,
                        .element_bytes = 2,
                        .extents = {70, 11, 7},
                        .strides = {1, 72, 1000},
                        .box = {64, 4, 4},
                        .swizzle_bytes = 128},
                       {.rank = 3, .extents = {27, 13, 9}, .strides = {1, 28, 400}, .box = {16, 8, 4}});
}

Probe copies_of_images() {
  return tensor_copies("tensor copies of 4 axes",
                       {.rank = 4,
                        .element_bytes = 2,
                        .extents = {70, 11, 4, 2},
                        .strides = {1, 72, 1000, 4000},
                        .box = {64, 4, 2, 2},
                        .swizzle_bytes = 128},
                       {.rank = 4, .extents = {27, 13, 4, 2}, .strides = {1, 28, 400, 1600}, .box = {16, 8, 4, 1}});
}

Probe copies_that_round() {
  Probe probe =
      tensor_copies("tensor copies that round",
                    {.rank = 2,
                     .extents = {61, 60},
                     .strides = {1, 64},
                     .box = {32, 16},
                     .swizzle_bytes = 128,
                     .rounds_to_tf32 = true},
                    {.rank = 2, .extents = {60, 63}, .strides = {1, 60}, .box = {16, 32}, .rounds_to_tf32 = true});
  probe.inputs = words_to_round(probe.name, probe.inputs.size());
  return probe;
}

/// The call of round `round` that copies pixels of an im2col map to word `place`, from another one each time, and at
/// other offsets, up to 5: some of the pixels lie outside, before and behind. The last channels do too, in some rounds.
std::string im2col_call(int place, int number, const codegen::TensorMapShape& map) {
  const codegen::TensorMapShape::Im2col& im2col = *map.im2col;
  std::array<std::int64_t, 2> count{};
  for (std::size_t i = 0; i < 2; ++i) {
    const std::int64_t length = map.extents[i + 1] + im2col.upper[i] - im2col.lower[i];
    count[i] = (length + im2col.stride[i] - 1) / im2col.stride[i];
  }
  return fmt::format(
      "      {{\n"
      "        const int pixel = (round * 11 + 2) % {all}, w = pixel % {w}, h = pixel / {w} % {h};\n"
      "        tensor_im2col_to_shared(boxes + {place}, &map{number}, round * 3 % 5 * 8, {lower_w} + w * {stride_w},\n"
      "                                {lower_h} + h * {stride_h}, pixel / {image}, round * 7 % 6, round * 5 % 4, "
      "full);\n"
      "      }}\n",
      fmt::arg("all", count[0] * count[1] * map.extents[3]), fmt::arg("w", count[0]), fmt::arg("h", count[1]),
      fmt::arg("image", count[0] * count[1]), fmt::arg("place", place), fmt::arg("number", number),
      fmt::arg("lower_w", im2col.lower[0]), fmt::arg("lower_h", im2col.lower[1]),
      fmt::arg("stride_w", im2col.stride[0]), fmt::arg("stride_h", im2col.stride[1]));
}

/// Copies in im2col mode of two tensors, which bring 1536 and 2560 bytes.
Probe tensor_im2col_copies(const std::string& name, const codegen::TensorMapShape& first,
                           const codegen::TensorMapShape& second) {
  Probe probe = copies_in_rounds(
      name, "tensor_im2col_to_shared", first, second,
      "  constexpr int kFirst = 384, kSecond = 640, kSecondPlace = 512, kRounds = 8;\n", "kSecondPlace + kSecond",
      "    if (thread == 0) {\n"
      "      barrier_arrive_expecting(full, (kFirst + kSecond) * 4);\n" +
          im2col_call(0, 0, first) + im2col_call(512, 1, second) + "    }\n",
      fmt::format("    for (int i = 0; i < (kFirst + kSecond) / {0}; ++i) {{\n"
                  "      const int word = i * {0} + thread;\n"
                  "      out[round * ((kFirst + kSecond) / {0}) + i] =\n"
                  "          __float_as_uint(boxes[word < kFirst ? word : word - kFirst + kSecondPlace]);\n"
                  "    }}\n",
                  kProbeThreads));
  probe.shared_bytes = 1024 + (512 + 640) * 4 + 8;
  return probe;
}

Probe im2col_copies_that_round() {
  codegen::TensorMapShape map{
      .rank = 4,
      .extents = {44, 6, 5, 3},
      .strides = {1, 44, 268, 1340},
      .box = {32, 12},
      .swizzle_bytes = 128,
      .rounds_to_tf32 = true,
      .im2col = codegen::TensorMapShape::Im2col{.lower = {-1, -1}, .upper = {-1, -1}, .stride = {2, 2}}};
  codegen::TensorMapShape other = map;
  other.box[1] = 20;
  other.im2col = codegen::TensorMapShape::Im2col{.lower = {-2, 0}, .upper = {-2, -3}, .stride = {1, 1}};
  Probe probe = tensor_im2col_copies("tensor walks that round", map, other);
  probe.inputs = words_to_round(probe.name, probe.inputs.size());
  return probe;
}
Probe im2col_copies_of_halves() {
  codegen::TensorMapShape map{.rank = 4,
                              .element_bytes = 2,
                              .extents = {50, 7, 6, 3},
                              .strides = {1, 56, 400, 2400},
                              .box = {32, 24},
                              .swizzle_bytes = 64,
                              .im2col = codegen::TensorMapShape::Im2col{.lower = {-3, -1}, .upper = {-3, -1}}};
  codegen::TensorMapShape other = map;
  other.box = {16, 80};
  other.swizzle_bytes = 32;
  other.im2col = codegen::TensorMapShape::Im2col{.lower = {-1, -2}, .upper = {0, -2}, .stride = {3, 2}};
  return tensor_im2col_copies("tensor walks of 16 bits", map, other);
}

/// Boxes side by side that cover all of the output's tensor and stick out at the end of every axis, and some that begin
/// there or behind it; none begins before the tensor, which hardware refuses. None overlap: in which order they arrive
/// is nobody's to say. A box is read while the next is staged.
Probe tensor_stores(int element_bytes, int swizzle_bytes) {
  constexpr int kPlainRow = 80, kMostBoxBytes = 2048;
  const int unit = 16 / element_bytes, row = (swizzle_bytes != 0 ? swizzle_bytes : kPlainRow) / element_bytes;
  codegen::TensorMapShape map{.rank = 4,
                              .element_bytes = element_bytes,
                              .extents = {2 * row - unit - 5, 6, 3, 3},
                              .box = {row, 4, 2, 2},
                              .swizzle_bytes = swizzle_bytes};
  map.strides = {1, 2 * row, 12 * row + unit, 36 * row + 8 * unit};
  Probe probe;
  probe.name = fmt::format("tensor stores of {} bits, {}", element_bytes * 8,
                           swizzle_bytes != 0 ? fmt::format("rows of {} bytes", swizzle_bytes) : "not swizzled");
  probe.device_files = {"device/warpgroup.cuh", "device/bulk_store.cuh", "device/tensor_map.cuh",
                        "device/tensor_store.cuh"};
  probe.functions = {"tensor_store.cuh: tensor_copy_to_global"};
  probe.output_maps = {map};
  probe.in_words = probe.out_words = 32;
  probe.body = fmt::format(
      "  constexpr int kThreads = {threads}, kInputs = {inputs}, kWords = {words}, kRounds = 81;\n"
      "  float* const boxes = shared + (1024 - __cvta_generic_to_shared(shared) % 1024) % 1024 / 4;\n"
      "  const int thread = static_cast<int>(threadIdx.x);\n"
      "#pragma unroll 1\n"
      "  for (int round = 0; round < kRounds; ++round) {{\n"
      "    float* const box = boxes + round % 2 * {most_words};\n"
      "    if (thread == 0) bulk_stores_wait_read<1>();\n"
      "    __syncthreads();\n"
      "    for (int i = thread; i < kWords; i += kThreads)\n"
      "      box[i] = __uint_as_float(all_in[(round * 113 + i) % kInputs]);\n"
      "    fence_async_proxy();\n"
      "    __syncthreads();\n"
      "    if (thread == 0) {{\n"
      "      const int i2 = round / 9 % 3, i3 = round / 27;  // 0, 2 and 3\n"
      "      tensor_copy_to_global(&out_map0, round % 3 * {row}, round / 3 % 3 * 4, i2 * 2 - i2 / 2, i3 * 2 - i3 / 2,\n"
      "                            box);\n"
      "      bulk_stores_commit();\n"
      "    }}\n"
      "  }}\n"
      "  if (thread == 0) bulk_stores_wait_read<0>();\n",
      fmt::arg("threads", kProbeThreads), fmt::arg("inputs", kProbeThreads * probe.in_words),
      fmt::arg("words", map.box_bytes() / 4), fmt::arg("most_words", kMostBoxBytes / 4), fmt::arg("row", row));
  probe.shared_bytes = 1024 + 2 * kMostBoxBytes;
  probe.inputs = random_words(probe.name, kProbeThreads * probe.in_words);
  probe.compute_capability = kHopper;
  return probe;
}

}  // namespace

std::vector<Probe> tensor_copy_probes() {
  return {copies_of_planes(),         copies_of_volumes(),       copies_of_images(),    copies_that_round(),
          im2col_copies_that_round(), im2col_copies_of_halves(), tensor_stores(4, 0),   tensor_stores(4, 128),
          tensor_stores(4, 32),       tensor_stores(2, 0),       tensor_stores(2, 128), tensor_stores(2, 64)};
}

}  // namespace jitconv::test
