// See gradient_probes.h.
#include "conformance/gradient_probes.h"

#include <fmt/format.h>

#include <random>

namespace jitconv::test {
namespace {

constexpr std::size_t kItems = 8 * kProbeThreads;

/// Any words, another sequence for each number.
void add_words(Probe& probe, std::uint64_t number) {
  std::mt19937_64 random(kProbeSeed + number);
  for (std::size_t i = 0; i < kItems * probe.in_words; ++i)
    probe.inputs.push_back(static_cast<std::uint32_t>(random() >> 32));
}

/// `count` elements of an item's first 16 bytes, or zeros if its fifth word is even.
Probe copies(std::string_view element, bool async, int count, int bytes) {
  Probe probe;
  const std::string file = async ? "copy_elements_async.cuh" : "copy_elements.cuh";
  probe.name = fmt::format("{} of {} x{}", file, element, count);
  probe.device_files = {element, "device/vector.cuh",
                        async ? "device/copy_elements_async.cuh" : "device/copy_elements.cuh"};
  for (const char* function : {"copy_elements", "copy_commit", "copy_wait"})
    probe.functions.push_back(fmt::format("{}: {}", file, function));
  probe.body = fmt::format(
      "  unsigned* const to = reinterpret_cast<unsigned*>(shared) + threadIdx.x * 4;\n"
      "  to[0] = to[1] = to[2] = to[3] = 0x12345678u;\n"
      "  copy_elements<{}>(reinterpret_cast<Element*>(to), reinterpret_cast<const Element*>(in), (in[4] & 1u) != 0);\n"
      "  copy_commit();\n"
      "  copy_wait<0>();\n"
      "  for (int i = 0; i < {}; ++i) out[i] = to[i];\n",
      count, bytes / 4);
  probe.in_words = 8;
  probe.out_words = static_cast<std::size_t>(bytes / 4);
  probe.shared_bytes = 16 * kProbeThreads;
  probe.compute_capability = async ? 80 : 75;
  add_words(probe, static_cast<std::uint64_t>(count * 32 + bytes));
  return probe;
}

Probe shifted_words(const std::string& function, int places) {
  Probe probe;
  probe.name = function;
  probe.device_files = {"device/shifted_words.cuh"};
  probe.functions = {"shifted_words.cuh: " + function};
  probe.body = fmt::format(
      "  const unsigned word[8] = {{in[0], in[1], in[2], in[3], in[4], in[5], in[6], in[7]}};\n"
      "  const uint4 row = {}(word, static_cast<int>(in[8] % {}u));\n"
      "  out[0] = row.x;\n  out[1] = row.y;\n  out[2] = row.z;\n  out[3] = row.w;\n",
      function, places);
  probe.in_words = 9;
  probe.out_words = 4;
  add_words(probe, static_cast<std::uint64_t>(places));
  return probe;
}

Probe settled_sums() {
  Probe probe;
  probe.name = "settle";
  probe.device_files = {"device/warpgroup.cuh"};
  probe.functions = {"warpgroup.cuh: settle"};
  probe.body =
      "  float sum[4];\n"
      "  for (int i = 0; i < 4; ++i) sum[i] = __uint_as_float(in[i]);\n"
      "  settle(sum);\n"
      "  for (int i = 0; i < 4; ++i) out[i] = __float_as_uint(sum[i]);\n";
  probe.in_words = probe.out_words = 4;
  add_words(probe, 4);
  return probe;
}

Probe vectors_of_floats() {
  Probe probe;
  probe.name = "float_vector";
  probe.device_files = {"device/float_vector.cuh"};
  probe.functions = {"float_vector.cuh"};
  probe.body =
      "  const FloatVector<4> from = *reinterpret_cast<const FloatVector<4>*>(in);\n"
      "  FloatVector<4> to;\n"
      "  for (int i = 0; i < 4; ++i) to.at[i] = from.at[3 - i];\n"
      "  *reinterpret_cast<FloatVector<4>*>(out) = to;\n";
  probe.in_words = probe.out_words = 4;
  add_words(probe, 5);
  return probe;
}

}  // namespace

std::vector<Probe> gradient_probes() {
  std::vector<Probe> all = {shifted_words("words_from", 5), shifted_words("pixels_from", 8), settled_sums(),
                            vectors_of_floats()};
  for (const int bytes : {4, 8, 16}) {
    for (const bool async : {false, true}) {
      all.push_back(copies("device/element_f32.cuh", async, bytes / 4, bytes));
      all.push_back(copies("device/element_bf16.cuh", async, bytes / 2, bytes));
    }
  }
  return all;
}

}  // namespace jitconv::test
