// See tensor_probes.h. Here are the probes that neither convert operands, copy by maps nor multiply.
#include "conformance/tensor_probes.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "conformance/multiply_probes.h"
#include "conformance/operand_probes.h"
#include "conformance/swizzled_multiply_probes.h"
#include "conformance/tensor_copy_probes.h"

namespace jitconv::test {
namespace {

/// Copies of the block's items, asked for by one thread, read by another thread than the one whose item it is. The
/// second goes where the first went, once everybody has said that it was read.
Probe bulk_copies() {
  Probe probe;
  probe.name = "bulk copies";
  probe.device_files = {"device/barrier.cuh", "device/bulk_copy.cuh"};
  for (const char* function : {"barrier_address", "barrier_init", "barrier_init_visible", "barrier_arrive",
                               "barrier_arrive_expecting", "barrier_wait"})
    probe.functions.push_back(std::string("barrier.cuh: ") + function);
  probe.functions.push_back("bulk_copy.cuh: bulk_copy_to_shared");
  probe.body = fmt::format(
      "  constexpr int kThreads = {0}, kBytes = kThreads * 16;\n"
      "  Barrier* const full = reinterpret_cast<Barrier*>(shared + kThreads * 4);\n"
      "  Barrier* const empty = full + 1;\n"
      "  const int thread = static_cast<int>(threadIdx.x);\n"
      "  if (thread == 0) {{\n"
      "    barrier_init(full, 1);\n"
      "    barrier_init(empty, kThreads);\n"
      "    barrier_init_visible();\n"
      "  }}\n"
      "  __syncthreads();\n"
      "  const int other = thread ^ 37;\n"
      "#pragma unroll 1\n"
      "  for (int round = 0; round < 4; ++round) {{\n"
      "    if (thread == 0) {{\n"
      "      barrier_wait(empty, (round + 1) % 2);\n"
      "      barrier_arrive_expecting(full, kBytes);\n"
      "      bulk_copy_to_shared(shared, in + round % 2 * kThreads * 2, kBytes / 2, full);\n"
      "      bulk_copy_to_shared(shared + kThreads * 2, in + (round + 1) % 2 * kThreads * 2, kBytes / 2, full);\n"
      "    }}\n"
      "    barrier_wait(full, round % 2);\n"
      "    out[round] = __float_as_uint(shared[other * 4 + round]);\n"
      "    barrier_arrive(empty);\n"
      "  }}\n"
      "  out[4] = barrier_address(empty) - barrier_address(full);\n",
      kProbeThreads);
  probe.in_words = 4;
  probe.out_words = 5;
  probe.shared_bytes = kProbeThreads * 16 + 16;
  probe.inputs = random_words(probe.name, kProbeItems * probe.in_words);
  probe.compute_capability = kHopper;
  return probe;
}

/// Copies of what all of a warp staged, asked for by one lane, to y and back through a load. The second overwrites what
/// the first read, once it has.
Probe bulk_stores() {
  Probe probe;
  probe.name = "bulk stores";
  probe.device_files = {"device/warpgroup.cuh", "device/bulk_store.cuh"};
  for (const char* function : {"bulk_copy_to_global", "bulk_stores_commit", "bulk_stores_wait_read"})
    probe.functions.push_back(std::string("bulk_store.cuh: ") + function);
  probe.body =
      "  const int lane = static_cast<int>(threadIdx.x % 32);\n"
      "  unsigned* const staged = reinterpret_cast<unsigned*>(shared) + threadIdx.x / 32 * 128;\n"
      "#pragma unroll 1\n"
      "  for (int round = 0; round < 2; ++round) {\n"
      "    if (lane == 7) bulk_stores_wait_read<0>();\n"
      "    __syncwarp();\n"
      "    for (int i = 0; i < 4; ++i) staged[lane * 4 + i] = __float_as_uint(in[i]) ^ static_cast<unsigned>(round * "
      "(i + 1));\n"
      "    fence_async_proxy();\n"
      "    __syncwarp();\n"
      "    if (lane == 7) {\n"
      "      bulk_copy_to_global(out - lane * 8 + round * 128, staged, 256);\n"
      "      bulk_copy_to_global(out - lane * 8 + round * 128 + 64, staged + 64, 256);\n"
      "      bulk_stores_commit();\n"
      "    }\n"
      "  }\n"
      "  if (lane == 7) bulk_stores_wait_read<0>();\n";
  probe.in_words = 4;
  probe.out_words = 8;
  probe.shared_bytes = kProbeThreads * 16;
  probe.inputs = random_words(probe.name, kProbeItems * probe.in_words);
  probe.compute_capability = kHopper;
  return probe;
}

/// The address of a load that is off is drawn at random: it must not be followed.
Probe loads(const ElementType& type) {
  const bool words = type.name == "f32";
  Probe probe;
  probe.name = type.name + " load_if";
  const std::string file = words ? "load_32bit.cuh" : "load_16bit.cuh";
  probe.device_files = {type.element, words ? "device/load_32bit.cuh" : "device/load_16bit.cuh"};
  probe.functions = {file + ": load_if"};
  const std::string bits = words ? "__float_as_uint({})" : "{}.bits";
  probe.body =
      "  const unsigned control = in[4];\n"
      "  const bool valid = (control & 3u) != 0;\n"
      "  const Element* source = reinterpret_cast<const Element*>(in) + 2;\n"
      "  if (!valid) source = reinterpret_cast<const Element*>(static_cast<unsigned long long>(control) << 4);\n";
  for (const int offset : {-2, -1, 0, 1}) {
    probe.body += fmt::format("  out[{}] = {};\n", offset + 2,
                              fmt::format(fmt::runtime(bits), fmt::format("load_if<{}>(source, valid)", offset)));
  }
  probe.in_words = words ? 6 : 5;  // pairs of floats lie at multiples of 8 bytes
  probe.functions.push_back(file + ": load_pair_if");
  if (words) {
    probe.body +=
        "  Element pair[4];\n"
        "  load_pair_if<-2>(source, valid, pair[0], pair[1]);\n"
        "  load_pair_if<0>(source, valid, pair[2], pair[3]);\n"
        "  for (int i = 0; i < 4; ++i) out[4 + i] = __float_as_uint(pair[i]);\n";
    probe.out_words = 8;
  } else {
    probe.body +=
        "  out[4] = load_pair_if<-2>(source, valid);\n"
        "  out[5] = load_pair_if<2>(source, valid);\n";
    probe.out_words = 6;
  }
  probe.inputs = random_words(probe.name, kProbeItems * probe.in_words);
  return probe;
}

/// As above, of a whole vector, whose address is a multiple of 16 bytes.
Probe vector_loads(const ElementType& type) {
  Probe probe;
  probe.name = type.name + " load_vector_if";
  probe.device_files = {type.element, "device/load_vector.cuh"};
  probe.functions = {"load_vector.cuh: load_vector_if"};
  probe.body =
      "  const unsigned control = in[4];\n"
      "  const bool valid = (control & 3u) != 0;\n"
      "  const Element* source = reinterpret_cast<const Element*>(in);\n"
      "  if (!valid) source = reinterpret_cast<const Element*>(static_cast<unsigned long long>(control) << 4);\n"
      "  const uint4 value = load_vector_if(source, valid);\n"
      "  out[0] = value.x;\n  out[1] = value.y;\n  out[2] = value.z;\n  out[3] = value.w;\n";
  probe.in_words = 8;
  probe.out_words = 4;
  probe.inputs = random_words(probe.name, kProbeItems * probe.in_words);
  return probe;
}

/// The channels that there are of 16 bytes, in loads of so many.
Probe channel_loads(const ElementType& type, int bytes) {
  Probe probe;
  probe.name = fmt::format("{} load_channels<{}>", type.name, bytes);
  probe.device_files = {type.element, "device/load_channels.cuh"};
  probe.functions = {"load_channels.cuh: load_channels"};
  probe.body = fmt::format(
      "  constexpr int kElements = {0} / static_cast<int>(sizeof(Element)), kAll = 16 / "
      "static_cast<int>(sizeof(Element));\n"
      "  const unsigned control = in[7];\n"
      "  const int channels = static_cast<int>(control % (2 * kAll / kElements)) * kElements - kAll / 2 / kElements * "
      "kElements;\n"
      "  const Element* source = reinterpret_cast<const Element*>(reinterpret_cast<const char*>(in) + {0});\n"
      "  if (channels <= 0) source = reinterpret_cast<const Element*>(static_cast<unsigned long long>(control) << 4);\n"
      "  const uint4 value = load_channels<{0}>(source, channels);\n"
      "  out[0] = value.x;\n  out[1] = value.y;\n  out[2] = value.z;\n  out[3] = value.w;\n",
      bytes);
  probe.in_words = 8;
  probe.out_words = 4;
  probe.inputs = random_words(probe.name, kProbeItems * probe.in_words);
  return probe;
}

/// One store of each size to a place of its own, each on or off.
Probe word_stores() {
  Probe probe;
  probe.name = "store_if";
  probe.device_files = {"device/store_words.cuh"};
  probe.functions = {"store_words.cuh: store_if"};
  probe.body =
      "  const unsigned control = in[7];\n"
      "  store_if(out, make_uint4(in[0], in[1], in[2], in[3]), (control & 3u) != 0);\n"
      "  store_if(out + 4, make_uint2(in[4], in[5]), (control & 12u) != 0);\n"
      "  store_if(out + 6, in[6], (control & 48u) != 0);\n"
      "  store_if(out + 7, static_cast<unsigned short>(control >> 16), (control & 192u) != 0);\n";
  probe.in_words = probe.out_words = 8;
  probe.inputs = random_words(probe.name, kProbeItems * probe.in_words);
  return probe;
}

/// Each warp stores four matrices at places that its inputs choose, the same ones for all matrices and another order in
/// each round, and reads them back as they lie; warps of a warpgroup read each other's.
Probe transposed_stores() {
  Probe probe;
  probe.name = "store_transposed";
  probe.device_files = {"device/store_transposed.cuh", "device/warpgroup_sync.cuh"};
  probe.functions = {"store_transposed.cuh: store_transposed", "warpgroup_sync.cuh: warpgroup_sync"};
  probe.body = fmt::format(
      "  constexpr int kThreads = {};\n"
      "  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;\n"
      "  const unsigned matrix[4] = {{in[0], in[1], in[2], in[3]}};\n"
      "#pragma unroll 1\n"
      "  for (int round = 0; round < 2; ++round) {{\n"
      "    warpgroup_sync(1 + round);\n"
      "    store_transposed(shared + (thread / 32 * 32 + (lane * 5 + round * 7) % 32) * 4, matrix);\n"
      "    warpgroup_sync(2 - round);\n"
      "    const int other = (thread + 37) % kThreads;\n"
      "#pragma unroll\n"
      "    for (int i = 0; i < 4; ++i) out[round * 4 + i] = __float_as_uint(shared[other * 4 + i]);\n"
      "  }}\n",
      kProbeThreads);
  probe.in_words = 4;
  probe.out_words = 8;
  probe.shared_bytes = kProbeThreads * 16;
  probe.inputs = random_words(probe.name, kProbeItems * probe.in_words);
  probe.compute_capability = kHopper;
  return probe;
}

Probe opaque_values() {
  Probe probe;
  probe.name = "opaque";
  probe.device_files = {"device/opaque.cuh"};
  probe.functions = {"opaque.cuh: opaque"};
  probe.body = "  out[0] = static_cast<unsigned>(opaque(static_cast<int>(in[0])));\n";
  probe.inputs = random_words(probe.name, kProbeItems);
  return probe;
}

/// Nothing comes out of it but that it comes back: the kernel is launched plainly, behind one that has finished.
Probe dependent_launches() {
  Probe probe;
  probe.name = "dependent launches";
  probe.device_files = {"device/dependent_launch.cuh"};
  probe.functions = {"dependent_launch.cuh: let_next_kernel_start", "dependent_launch.cuh: wait_for_previous_kernel"};
  probe.body =
      "  let_next_kernel_start();\n"
      "  wait_for_previous_kernel();\n"
      "  out[0] = in[0] * 5u;\n";
  probe.inputs = random_words(probe.name, kProbeItems);
  probe.compute_capability = kHopper;
  return probe;
}

Probe maxima() {
  Probe probe;
  probe.name = "max_nan";
  probe.device_files = {"device/max_nan.cuh"};
  probe.functions = {"max_nan.cuh: max_nan"};
  probe.body =
      "  out[0] = __float_as_uint(max_nan(__uint_as_float(in[0]), __uint_as_float(in[1])));\n"
      "  out[1] = __float_as_uint(max_nan(__uint_as_float(in[0]), 0.0f));\n";
  probe.in_words = probe.out_words = 2;
  probe.inputs = random_words(probe.name, kProbeItems * 8 * probe.in_words);
  const Words special{0u, 0x80000000u, 0x80000000u, 0u, 0x7f800001u, 0u, 0u, 0xffc12345u, 0xff800000u, 0x7f800000u};
  std::copy(special.begin(), special.end(), probe.inputs.begin());
  probe.compute_capability = 80;
  return probe;
}

/// Both ways to write a vector: all of it or nothing, and element by element.
Probe stores(const ElementType& type) {
  const bool words = type.name == "f32";
  const int elements = words ? 4 : 8;
  Probe probe;
  probe.name = type.name + " store_elements";
  const std::string file = words ? "store_32bit.cuh" : "store_16bit.cuh";
  probe.device_files = {type.element};
  if (!words) probe.device_files.push_back(type.name == "f16" ? "device/pair_f16.cuh" : "device/pair_bf16.cuh");
  probe.device_files.push_back(words ? "device/store_32bit.cuh" : "device/store_16bit.cuh");
  probe.functions = {file + ": store_elements", file + ": store_all_if"};
  if (!words) probe.functions.push_back(file + ": elements_of");
  probe.body = fmt::format(
      "  float value[{0}];\n"
      "#pragma unroll\n"
      "  for (int i = 0; i < {0}; ++i) value[i] = __uint_as_float(in[i]);\n"
      "  const unsigned control = in[{0}];\n"
      "  store_elements(reinterpret_cast<Element*>(out), value, (control >> 8 & 3u) == 0 ? {1}u : control & {1}u);\n"
      "  store_all_if(reinterpret_cast<Element*>(out + 4), value, (control >> 10 & 3u) != 0);\n",
      elements, (1 << elements) - 1);
  probe.in_words = static_cast<std::size_t>(elements) + 1;
  probe.out_words = 8;
  probe.inputs = random_words(probe.name, kProbeItems * probe.in_words);
  return probe;
}

/// Nothing comes out of it but that it comes back. Without a number of resident blocks ptxas drops the instructions.
Probe registers() {
  Probe probe;
  probe.name = "registers";
  probe.device_files = {"device/warpgroup.cuh"};
  probe.functions = {"warpgroup.cuh: shrink_registers_to", "warpgroup.cuh: grow_registers_to"};
  probe.body =
      "  shrink_registers_to<24>();\n"
      "  __syncthreads();\n"
      "  grow_registers_to<32>();\n"
      "  out[0] = in[0] * 3u;\n";
  probe.inputs = random_words(probe.name, kProbeItems);
  probe.resident_blocks = 1;
  probe.compute_capability = kHopper;
  return probe;
}

}  // namespace

Words random_words(std::mt19937_64& random, std::size_t count) {
  Words words(count);
  std::generate(words.begin(), words.end(), [&random] { return static_cast<std::uint32_t>(random() >> 32); });
  return words;
}

Words random_words(const std::string& name, std::size_t count) {
  std::mt19937_64 random = random_of_probe(name);
  return random_words(random, count);
}

Words words_to_round(const std::string& name, std::size_t count) {
  Words words = random_words(name, count);
  const Words special{0u,          0x80000000u, 0x7f7fffffu, 0xff7fffffu, 0x7f800000u, 0xff800000u, 0x7f800001u,
                      0xffc12345u, 1u,          0x00001000u, 0x007fffffu, 0x7f7fefffu, 0x7f7ff000u, 0x807ff000u,
                      0x7fffffffu, 0xffffffffu, 0xff800001u, 0x7fc00000u, 0x00003000u, 0x80001000u, 0x80003000u,
                      0x3f801000u, 0x3f803000u, 0xbf801000u, 0xbf803000u, 0x3ffff000u, 0xff7ff000u, 0x80000001u};
  // Every other one lies on the border between two TF32 numbers, or next to it; every fourth one is special.
  for (std::size_t i = 0; i < words.size(); i += 2)
    words[i] = ((words[i] & ~0x1fffu) | 0x1000u) + static_cast<std::uint32_t>(i / 2 % 3) - 1;
  for (std::size_t i = 1; i < words.size(); i += 4) words[i] = special[i / 4 % special.size()];
  return words;
}

std::vector<Probe> tensor_probes() {
  std::vector<Probe> all{bulk_copies(), bulk_stores(), registers()};
  all.push_back(maxima());
  all.push_back(opaque_values());
  all.push_back(word_stores());
  all.push_back(transposed_stores());
  all.push_back(dependent_launches());
  for (const ElementType& type : {kF32, kF16, kBf16}) {
    all.push_back(loads(type));
    all.push_back(vector_loads(type));
    for (const int bytes : {8, 4}) all.push_back(channel_loads(type, bytes));
    if (type.name != kF32.name) all.push_back(channel_loads(type, 2));
    all.push_back(stores(type));
  }
  for (std::vector<Probe> more :
       {operand_probes(), tensor_copy_probes(), multiply_probes(), swizzled_multiply_probes()})
    std::move(more.begin(), more.end(), std::back_inserter(all));
  return all;
}

}  // namespace jitconv::test
