// What the calls of a convolution keep of weights and biases: the form in which a kernel reads them, packed or dense.
// Whether anything may be kept is decided where it is made, in forward_calls.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "native.h"
#include "tensors.h"

namespace jitconv::python {

/// An operand as the kernel reads it, as long as nothing has written to the one that it was made of.
struct Kept {
  Ref owner;  ///< a weak reference: the operand, of a view its base
  void* pointer = nullptr;
  std::int64_t version = 0;
  std::int64_t storage = 0;  ///< its address, which no other storage gets as long as there is
  Ref weak_storage;          ///< a weak reference
  Scratch made;
};

/// One for each stream, so that no stream reads what another may still be writing.
struct KeptKey {
  PyObject* owner;
  std::int64_t offset;  ///< of a view
  void* stream;
  bool operator==(const KeptKey&) const = default;
};

struct KeptKeyHash {
  std::size_t operator()(const KeptKey& key) const {
    const auto mixed = reinterpret_cast<std::uintptr_t>(key.owner) ^ static_cast<std::uintptr_t>(key.offset);
    return (mixed ^ reinterpret_cast<std::uintptr_t>(key.stream)) * 0x9e3779b97f4a7c15U >> 16U;
  }
};

using KeptOperands = std::unordered_map<KeptKey, Kept, KeptKeyHash>;

}  // namespace jitconv::python
