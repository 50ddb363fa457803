// Small kernels that call the device functions of templates/device/* on many inputs and write down what came out, bit
// for bit. The same text runs on a GPU and, through host execution, on the CPU: there the models take the functions'
// places.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/source.h"
#include "jitconv/target.h"

namespace jitconv::test {

using Words = std::vector<std::uint32_t>;

/// Threads of a block; items come in multiples of it.
inline constexpr std::size_t kProbeThreads = 128;

/// One kernel. A thread takes one item: in_words words of input, out_words of output.
struct Probe {
  std::string name;                            ///< "copy_async f32 x4"
  std::vector<std::string_view> device_files;  ///< below templates/, in the order a kernel has them
  std::vector<std::string> functions;          ///< what it confirms, as all_device_functions() names it
  std::string body;                            ///< statements; the item is in[0..in_words), its results go to out[...]
  std::size_t in_words = 1, out_words = 1;
  std::size_t shared_bytes = 0;                           ///< dynamic shared memory, as `float shared[]`
  Words inputs;                                           ///< of all items
  int compute_capability = 75;                            ///< of the oldest GPU that has what it calls
  std::vector<codegen::TensorMapShape> maps = {};         ///< of all inputs, as parameters map0 and map1
  std::vector<codegen::TensorMapShape> output_maps = {};  ///< of all outputs, as parameters out_map0, ...
  int columns = 0;                                        ///< of the multiplications among the device files
  int resident_blocks = 0;                                ///< of a multiprocessor, that the kernel is bound to; 0: any
  std::size_t items() const { return inputs.size() / in_words; }
};

/// Every probe with all its inputs, the same on every machine.
const std::vector<Probe>& probes();

/// The seed of all inputs that are not exhaustive.
inline constexpr std::uint64_t kProbeSeed = 20251120;

/// The probe as a kernel with parameters (in, out) for `items` items.
codegen::KernelSource kernel_of(const Probe& probe, const Target& target, std::size_t items);

/// SHA-256 (hex) of what the device executes: changes when the probe or a device function does, not when a comment
/// does.
std::string text_digest(const Probe& probe);

}  // namespace jitconv::test
