// A kernel compiled for the CPU, loaded: its entries, its shared memory and the lines its addresses come from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "host/module_abi.h"

namespace jitconv::host {

class Module {
 public:
  /// Loads what compile_module() made, from memory. Throws CudaError: with result() == kInvalidImage if the bytes are
  /// no module for this machine and this version, which compiling again mends, else with what the system refused.
  explicit Module(const std::string& image);
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  static constexpr int kInvalidImage = 200;  ///< the driver's number for the same trouble with a cubin

  /// Calls entry `name` with pointers to its parameters. nullptr if there is none of that name.
  using Entry = void (*)(void** parameters);
  Entry entry(const std::string& name) const;

  /// Gives the module's code the engine: both are variables of the module.
  void connect(const jitconv_host_api* api) const;
  jitconv_host_thread** current_thread() const;
  std::uint64_t* fma_count() const;

  /// The block's shared memory and the most bytes it can have.
  void* shared_memory() const;
  static constexpr std::size_t kSharedBytes = JITCONV_HOST_SHARED_BYTES;
  bool counts() const;  ///< compiled to count
  /// Whether an address lies in the module itself (constants), other than in shared memory.
  bool contains(const void* address) const;

  /// Line of the generated source a return address belongs to; 0 if unknown. Slow: runs addr2line.
  int line_of(const void* pc) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace jitconv::host
