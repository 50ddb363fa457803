// See probes.h.
#include "conformance/probes.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cmath>
#include <random>

#include "cache/digest.h"
#include "codegen/text/template_text.h"
#include "conformance/device_functions.h"
#include "conformance/gradient_probes.h"
#include "conformance/tensor_probes.h"
#include "support/multiply_text.h"
#include "tools/check/number.h"

namespace jitconv::test {
namespace {

constexpr std::size_t kRandomItems = 1 << 16;

/// Seeded per probe; the standard fixes what this generator gives on every machine.
using Random = std::mt19937_64;

std::uint32_t word(Random& random) { return static_cast<std::uint32_t>(random() >> 32); }

/// Any order will do; this one makes examples taken from anywhere look at everything.
void shuffle(Words& words, Random& random) {
  for (std::size_t i = words.size(); i > 1; --i) std::swap(words[i - 1], words[random() % i]);
}

Words every_16_bit_value(Random& random) {
  Words words(1 << 16);
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = static_cast<std::uint32_t>(i);
  shuffle(words, random);
  return words;
}

/// Floats around every value of a 16-bit type and around every border between two of them, where roundings differ, and
/// as many more of any bits.
Words floats_to_round(Random& random, float (*value_of)(std::uint16_t)) {
  Words words;
  for (std::uint32_t bits = 0; bits < 0xffff; ++bits) {
    const double value = value_of(static_cast<std::uint16_t>(bits));
    double next = value_of(static_cast<std::uint16_t>(bits + 1));
    if (!std::isfinite(value)) continue;
    // Beyond the largest value the border lies where the next one would be, were there one.
    if (!std::isfinite(next)) next = 2 * value - static_cast<double>(value_of(static_cast<std::uint16_t>(bits - 1)));
    for (const double middle : {value, (value + next) / 2})
      for (const std::uint32_t distance : {~0u, 0u, 1u})
        words.push_back(std::bit_cast<std::uint32_t>(static_cast<float>(middle)) + distance);
  }
  const Words more = random_words(random, words.size());
  words.insert(words.end(), more.begin(), more.end());
  shuffle(words, random);
  return words;
}

/// Three operands: of any bits, or near one another so that products and sums cancel, round and underflow.
Words fma_operands(Random& random) {
  Words words;
  for (std::size_t i = 0; i < kRandomItems; ++i) {
    const std::uint32_t kind = word(random) % 3;
    const Words bits = random_words(random, 4);
    if (kind == 0) {
      words.insert(words.end(), bits.begin(), bits.begin() + 3);
      continue;
    }
    // Exponents of a and b add up to about that of c; kind 2: at the lower end, where results are subnormal.
    const std::uint32_t a = 100 + bits[3] % 50, sum = kind == 1 ? 254 : 130;
    const std::uint32_t b = std::clamp<std::uint32_t>(sum - a, 1, 254);
    const std::uint32_t c =
        std::clamp<std::int32_t>(static_cast<std::int32_t>(a + b) - 127 + bits[3] / 64 % 5 - 2, 0, 254);
    const auto with_exponent = [](std::uint32_t from, std::uint32_t exponent) {
      return (from & 0x807fffffu) | exponent << 23;
    };
    words.push_back(with_exponent(bits[0], a));
    words.push_back(with_exponent(bits[1], b));
    words.push_back(with_exponent(bits[2], c));
  }
  return words;
}

/// Pairs of any bits, of equal and nearly equal magnitudes, zeros of both signs among them.
Words near_numbers(Random& random) {
  Words words;
  for (std::size_t i = 0; i < kRandomItems; ++i) {
    const Words bits = random_words(random, 3);
    const std::uint32_t sign = bits[2] & 0x80000000u;
    const std::uint32_t first = bits[2] % 16 == 0 ? bits[0] & 0x80000000u : bits[0];
    words.push_back(first);
    words.push_back(bits[2] % 4 == 0 ? first ^ sign : bits[2] % 4 == 1 ? (first ^ sign) + bits[1] % 8 : bits[1]);
  }
  return words;
}

struct ProbedType {
  std::string name;  ///< "f16"
  std::size_t bytes = 4;
  std::string_view file;
  float (*value_of)(std::uint16_t) = nullptr;  ///< of 16-bit types
};

const ProbedType kProbedF32{"f32", 4, "device/element_f32.cuh", nullptr};
const ProbedType kProbedF16{"f16", 2, "device/element_f16.cuh", check::from_f16};
const ProbedType kProbedBf16{"bf16", 2, "device/element_bf16.cuh", check::from_bf16};

class ProbeList {
 public:
  void add(Probe probe) {
    // Blocks are full: the last item is repeated.
    while (probe.items() % kProbeThreads != 0)
      probe.inputs.insert(probe.inputs.end(), probe.inputs.end() - static_cast<std::ptrdiff_t>(probe.in_words),
                          probe.inputs.end());
    all_.push_back(std::move(probe));
  }
  Random random(const std::string& name) const { return random_of_probe(name); }

  void conversions(const ProbedType& type) {
    const std::string file = std::string(type.file.substr(7));
    Probe to{type.name + " to_float", {type.file}, {file + ": to_float"}, {}, 1, 1, 0, {}};
    Probe from{type.name + " from_float", {type.file}, {file + ": from_float"}, {}, 1, 1, 0, {}};
    Random to_random = random(to.name), from_random = random(from.name);
    if (type.bytes == 4) {
      to.body = "  out[0] = __float_as_uint(to_float(__uint_as_float(in[0])));\n";
      from.body = "  out[0] = __float_as_uint(from_float(__uint_as_float(in[0])));\n";
      to.inputs = random_words(to_random, kRandomItems);
      from.inputs = random_words(from_random, kRandomItems);
    } else {
      to.body =
          "  Element value;\n"
          "  value.bits = static_cast<unsigned short>(in[0]);\n"
          "  out[0] = __float_as_uint(to_float(value));\n";
      from.body = "  out[0] = from_float(__uint_as_float(in[0])).bits;\n";
      to.inputs = every_16_bit_value(to_random);
      from.inputs = floats_to_round(from_random, type.value_of);
    }
    add(std::move(to));
    add(std::move(from));
  }

  /// Reads and writes n elements by one instruction each, in reverse order.
  void vectors(const ProbedType& type, std::size_t n) {
    Probe probe{fmt::format("{} vector x{}", type.name, n),
                {type.file, "device/vector.cuh"},
                {"vector.cuh"},
                fmt::format("  using Vector = ElementVector<{}>;\n"
                            "  const Vector from = *reinterpret_cast<const Vector*>(in);\n"
                            "  Vector to;\n"
                            "#pragma unroll\n"
                            "  for (int i = 0; i < {}; ++i) to.at[i] = from.at[{} - i];\n"
                            "  *reinterpret_cast<Vector*>(out) = to;\n",
                            n, n, n - 1),
                words_of(type, n),
                words_of(type, n),
                0,
                {}};
    Random generator = random(probe.name);
    probe.inputs = random_words(generator, kRandomItems / 8 * probe.in_words);
    add(std::move(probe));
  }

  /// Copies n elements, or zeros, over what lay in shared memory, and has another thread read them. The address of a
  /// copy of zeros is drawn at random: it must not be followed.
  void copies(const ProbedType& type, const std::string& file, std::size_t n) {
    const std::size_t words = words_of(type, n);
    Probe probe{fmt::format("{} {} x{}", file.substr(0, file.find('.')), type.name, n),
                files_of(type, file),
                {file + ": copy_to_shared", file + ": copy_commit", file + ": copy_wait"},
                fmt::format("  constexpr int kElements = {};\n"
                            "  float* mine = shared + threadIdx.x * kElements;\n"
                            "  for (int i = 0; i < kElements; ++i) mine[i] = 12345.0f;\n"
                            "  __syncthreads();\n"
                            "  const unsigned control = in[{}];\n"
                            "  const bool valid = (control & 3u) != 0;\n"
                            "  const Element* source = reinterpret_cast<const Element*>(in);\n"
                            "  if (!valid) source = reinterpret_cast<const Element*>(\n"
                            "      static_cast<unsigned long long>(control) << 4);\n"
                            "  copy_to_shared<kElements>(mine, source, valid);\n"
                            "  copy_commit();\n"
                            "  copy_wait<0>();\n"
                            "  __syncthreads();\n"
                            "  const int other = threadIdx.x ^ 1;\n"
                            "  unsigned* other_out = out + (other - static_cast<int>(threadIdx.x)) * kElements;\n"
                            "  for (int i = 0; i < kElements; ++i)\n"
                            "    other_out[i] = __float_as_uint(shared[other * kElements + i]);\n",
                            n, words),
                2 * words,  // keeps every item as aligned as its copy has to be
                n,
                kProbeThreads * n * sizeof(float),
                {}};
    Random generator = random(probe.name);
    probe.inputs = random_words(generator, kRandomItems / 8 * probe.in_words);
    probe.compute_capability = capability_of(file);
    add(std::move(probe));
  }

  /// Four groups of one copy each. What copy_wait<in_flight>() waited for is read before the rest is waited for.
  void groups(const ProbedType& type, const std::string& file, int in_flight) {
    Probe probe{
        fmt::format("{} {} groups, {} in flight", file.substr(0, file.find('.')), type.name, in_flight),
        files_of(type, file),
        {file + ": copy_to_shared", file + ": copy_commit", file + ": copy_wait"},
        fmt::format("  constexpr int kThreads = {}, kWaited = {};\n"
                    "#pragma unroll\n"
                    "  for (int group = 0; group < 4; ++group) {{\n"
                    "    copy_to_shared<1>(shared + group * kThreads + threadIdx.x,\n"
                    "                      reinterpret_cast<const Element*>(in + group), (in[group] & 7u) != 0);\n"
                    "    copy_commit();\n"
                    "  }}\n"
                    "  copy_wait<4 - kWaited>();\n"
                    "  __syncthreads();\n"
                    "  const int other = threadIdx.x ^ 1;\n"
                    "  unsigned* other_out = out + (other - static_cast<int>(threadIdx.x)) * 4;\n"
                    "  for (int group = 0; group < kWaited; ++group)\n"
                    "    other_out[group] = __float_as_uint(shared[group * kThreads + other]);\n"
                    "  copy_wait<0>();\n"
                    "  __syncthreads();\n"
                    "  for (int group = kWaited; group < 4; ++group)\n"
                    "    other_out[group] = __float_as_uint(shared[group * kThreads + other]);\n",
                    kProbeThreads, 4 - in_flight),
        4,
        4,
        kProbeThreads * 4 * sizeof(float),
        {}};
    Random generator = random(probe.name);
    probe.inputs = random_words(generator, kRandomItems / 8 * probe.in_words);
    probe.compute_capability = capability_of(file);
    add(std::move(probe));
  }

  /// Parts of CUDA that kernels use, or may come to use, beside the device functions. `in` and `out` are words; NaN is
  /// compared as NaN: a GPU makes one kind of it, a CPU keeps an operand's.
  void built_in(const std::string& name, std::size_t in_words, const std::string& expression, bool is_float,
                Words (*inputs)(Random&)) {
    Probe probe{"built-in " + name, {}, {"built-in: " + name}, {}, in_words, 1, 0, {}};
    if (is_float) {
      probe.body = fmt::format(
          "  const auto number = [in](int i) {{ return __uint_as_float(in[i]); }};\n"
          "  const float value = {};\n"
          "  out[0] = value != value ? 0x7fffffffu : __float_as_uint(value);\n",
          expression);
    } else {
      probe.body = fmt::format("  out[0] = static_cast<unsigned>({});\n", expression);
    }
    Random generator = random(probe.name);
    probe.inputs = inputs(generator);
    add(std::move(probe));
  }

  std::vector<Probe> take() { return std::move(all_); }

 private:
  static std::size_t words_of(const ProbedType& type, std::size_t n) {
    return std::max<std::size_t>(1, n * type.bytes / 4);
  }
  static int capability_of(const std::string& file) { return file == "copy_async.cuh" ? 80 : 75; }
  static std::vector<std::string_view> files_of(const ProbedType& type, const std::string& file) {
    for (const codegen::EmbeddedFile& one : codegen::embedded_files())
      if (one.name == "device/" + file) return {type.file, "device/vector.cuh", one.name};
    return {type.file, "device/vector.cuh", "device/?"};  // reported when the text is put together
  }

  std::vector<Probe> all_;
};

std::vector<Probe> make_probes() {
  ProbeList list;
  for (const ProbedType& type : {kProbedF32, kProbedF16, kProbedBf16}) {
    list.conversions(type);
    for (const std::size_t n : {1u, 2u, 4u, 8u})
      if (n * type.bytes <= 16) list.vectors(type, n);
    for (const std::size_t n : {1u, 2u, 4u, 8u})
      if (n * type.bytes <= 16) list.copies(type, "copy_registers.cuh", n);
    list.groups(type, "copy_registers.cuh", 1);
  }
  for (const std::size_t n : {1u, 2u, 4u}) list.copies(kProbedF32, "copy_async.cuh", n);
  for (const int in_flight : {0, 1, 2, 3}) list.groups(kProbedF32, "copy_async.cuh", in_flight);

  const auto any_one = [](Random& random) { return random_words(random, kRandomItems); };
  const auto any_two = [](Random& random) { return random_words(random, 2 * kRandomItems); };
  list.built_in("fmaf", 3, "fmaf(number(0), number(1), number(2))", true, fma_operands);
  list.built_in("float +", 2, "number(0) + number(1)", true, near_numbers);
  list.built_in("float *", 2, "number(0) * number(1)", true, any_two);
  list.built_in("float /", 2, "number(0) / number(1)", true, any_two);
  list.built_in("fminf", 2, "fminf(number(0), number(1))", true, near_numbers);
  list.built_in("fmaxf", 2, "fmaxf(number(0), number(1))", true, near_numbers);
  list.built_in("copysignf", 2, "copysignf(number(0), number(1))", true, any_two);
  for (const std::string name : {"sqrtf", "fabsf", "floorf", "ceilf", "truncf", "rintf"})
    list.built_in(name, 1, name + "(number(0))", true, any_one);
  for (const std::string name : {"__popc", "__clz", "__ffs"}) list.built_in(name, 1, name + "(in[0])", false, any_one);
  list.built_in("__umulhi", 2, "__umulhi(in[0], in[1])", false, any_two);
  list.built_in("__mulhi", 2, "__mulhi(static_cast<int>(in[0]), static_cast<int>(in[1]))", false, any_two);
  // All lanes ask for one distance, from the first lane's item; lanes of their own only where each has one.
  list.built_in("__shfl_sync", 1, "__shfl_sync(0xffffffffu, in[0], static_cast<int>(in[0] & 31u))", false, any_one);
  list.built_in("__shfl_sync of 8", 1, "__shfl_sync(0xffffffffu, in[0], static_cast<int>(in[0] & 31u), 8)", false,
                any_one);
  for (const std::string name : {"__shfl_up_sync", "__shfl_down_sync", "__shfl_xor_sync"}) {
    list.built_in(name, 1, name + "(0xffffffffu, in[0], in[-static_cast<int>(threadIdx.x % 32)] & 31u)", false,
                  any_one);
    list.built_in(name + " of 8", 1, name + "(0xffffffffu, in[0], in[-static_cast<int>(threadIdx.x % 32)] & 7u, 8)",
                  false, any_one);
  }
  list.built_in("__ballot_sync", 1, "__ballot_sync(0xffffffffu, (in[0] & 3u) != 0)", false, any_one);
  list.built_in("__any_sync", 1, "__any_sync(0xffffffffu, (in[0] & 31u) == 0)", false, any_one);
  list.built_in("__all_sync", 1, "__all_sync(0xffffffffu, (in[0] & 31u) != 0)", false, any_one);
  for (Probe& probe : tensor_probes()) list.add(std::move(probe));
  for (Probe& probe : gradient_probes()) list.add(std::move(probe));
  return list.take();
}

constexpr char kMapType[] = "const __grid_constant__ TensorMap";

/// The parameters behind (in, out).
std::vector<codegen::Argument> map_parameters(const Probe& probe) {
  std::vector<codegen::Argument> parameters;
  for (std::size_t i = 0; i < probe.maps.size(); ++i)
    parameters.push_back({codegen::Tensor::x, kMapType, fmt::format("map{}", i), probe.maps[i]});
  for (std::size_t i = 0; i < probe.output_maps.size(); ++i)
    parameters.push_back({codegen::Tensor::y, kMapType, fmt::format("out_map{}", i), probe.output_maps[i]});
  return parameters;
}

std::string text_of(const Probe& probe) {
  std::string text = "// A probe of the conformance suite: " + probe.name + ".\n";
  for (const std::string_view file : probe.device_files) {
    text += file.starts_with("device/multiply_") ? test::multiply_text(file, probe.columns)
                                                 : std::string(codegen::embedded_text(file));
    text += '\n';
  }
  std::string maps;
  for (const codegen::Argument& map : map_parameters(probe)) maps += fmt::format(", {} {}", map.type, map.name);
  text += fmt::format(
      "extern \"C\" __global__ void __launch_bounds__({0}{5})\n"
      "probe(const unsigned* __restrict__ all_in, unsigned* __restrict__ all_out{6}) {{\n"
      "{1}"
      "  const unsigned* in = all_in + (blockIdx.x * {0} + threadIdx.x) * {2};\n"
      "  unsigned* out = all_out + (blockIdx.x * {0} + threadIdx.x) * {3};\n"
      "{4}}}\n",
      kProbeThreads, probe.shared_bytes > 0 ? "  extern __shared__ __align__(128) float shared[];\n" : "",
      probe.in_words, probe.out_words, probe.body,
      probe.resident_blocks > 0 ? fmt::format(", {}", probe.resident_blocks) : "", maps);
  return text;
}

}  // namespace

std::mt19937_64 random_of_probe(const std::string& name) {
  std::uint64_t seed = kProbeSeed;
  for (const char c : name) seed = seed * 31 + static_cast<unsigned char>(c);
  return std::mt19937_64(seed);
}

const std::vector<Probe>& probes() {
  static const std::vector<Probe> all = make_probes();
  return all;
}

codegen::KernelSource kernel_of(const Probe& probe, const Target& target, std::size_t items) {
  codegen::KernelSource source;
  source.text = text_of(probe);
  source.options = {"--gpu-architecture=" + target.arch(), "--std=c++17"};
  codegen::KernelEntry entry;
  entry.name = "probe";
  entry.grid = {static_cast<std::uint32_t>(items / kProbeThreads), 1, 1};
  entry.threads = kProbeThreads;
  entry.shared_bytes = static_cast<std::uint32_t>(probe.shared_bytes);
  entry.arguments = {{codegen::Tensor::x, "const unsigned* __restrict__", "all_in"},
                     {codegen::Tensor::y, "unsigned* __restrict__", "all_out"}};
  for (codegen::Argument& map : map_parameters(probe)) entry.arguments.push_back(std::move(map));
  source.entries.push_back(std::move(entry));
  return source;
}

std::string text_digest(const Probe& probe) {
  std::string text = without_comments(text_of(probe));
  std::erase_if(text, [](unsigned char c) { return std::isspace(c) != 0; });  // lines may be broken elsewhere
  return cache::to_hex(cache::sha256(text));
}

}  // namespace jitconv::test
