// PyTorch's tensors as launches need them, without linking PyTorch: one wheel serves all its versions. Addresses and
// extents come through DLPack's C interface; what else there is to ask or do, through Python functions bound once.
#pragma once

#include <array>
#include <cstdint>

#include "native.h"

namespace jitconv::python {

/// Images or sequences, filters or biases: of up to four dimensions.
struct TensorView {
  void* data = nullptr;
  std::int64_t rank = 0;
  std::int64_t kind = 0;    ///< type, rank and device in one number, to compare
  std::int64_t device = 0;  ///< the number of a GPU, -1 for the CPU
  std::int64_t item_bytes = 1;
  bool is_float32 = false;
  std::array<std::int64_t, 4> shape{}, strides{};

  bool same_type(const TensorView& other) const { return (kind & kTypeMask) == (other.kind & kTypeMask); }
  static constexpr std::int64_t kTypeMask = 0xffff;
};

/// What the package's Python side hands over once, by bind_torch(). References stay until the process ends.
struct Torch {
  PyObject *tensor = nullptr, *parameter = nullptr;  ///< the classes
  PyObject* dtypes = nullptr;                        ///< a tuple of the types that there are kernels for, float32 first
  PyObject* noticing = nullptr;    ///< a tuple of functions; one that returns something true would notice an operator
  PyObject* forward_ad = nullptr;  ///< the module
  struct {
    PyObject *any_enabled = nullptr, *enabled = nullptr, *dtype = nullptr;
  } autocast;
  PyObject *grad_enabled = nullptr, *is_capturing = nullptr, *device_count = nullptr, *current_device = nullptr,
           *current_stream = nullptr, *fp32_precision = nullptr, *benchmarks = nullptr, *is_deterministic = nullptr;
  /// Methods of Tensor.
  PyObject *new_empty_strided = nullptr, *is_neg = nullptr, *is_inference = nullptr, *storage = nullptr;
  PyObject* weak_storage = nullptr;    ///< makes a weak reference to a storage
  PyObject* is_distributed = nullptr;  ///< whether torch.distributed may write tensors
  struct {
    PyObject* apply = nullptr;                         ///< runs it
    PyObject *forward = nullptr, *backward = nullptr;  ///< of it, for what function_forward() and _backward() leave
  } function;                                          ///< autograd's
  bool serves_cpu = false, declines_calls = false;
};
const Torch& torch();

/// Names of attributes, interned once.
struct Names {
  PyObject *shape = nullptr, *stride = nullptr, *data_ptr = nullptr, *get_device = nullptr, *is_cpu = nullptr,
           *is_cuda = nullptr, *dtype = nullptr, *itemsize = nullptr, *base = nullptr, *version = nullptr,
           *cdata = nullptr, *storage_offset = nullptr, *requires_grad = nullptr, *current_level = nullptr,
           *to = nullptr, *calls = nullptr, *gradient_calls = nullptr, *convolution = nullptr, *to_save = nullptr,
           *saved_tensors = nullptr, *needs_input_grad = nullptr, *cpu = nullptr, *cuda = nullptr, *conv = nullptr;
};
const Names& names();

/// object.name, and object.name(). Throw PythonError.
Ref attribute(PyObject* object, PyObject* name);
Ref ask(PyObject* object, PyObject* name);
/// Throws PythonError if it is no integer.
std::int64_t to_integer(PyObject* number);

/// bind_torch(exchange_api, classes, ...), serve_cpu(bool) and decline_calls(bool) of the module.
PyObject* py_bind_torch(PyObject* module, PyObject* args, PyObject* keywords);
PyObject* py_decline_calls(PyObject* module, PyObject* wanted);
PyObject* py_serve_cpu(PyObject* module, PyObject* wanted);

/// False if there is nothing that a kernel could read: no tensor, more than four dimensions, another kind of device, or
/// a tensor without memory of its own, as sparse ones, those of transforms and those that only stand for zeros are.
bool view_of(PyObject* tensor, TensorView& view);

/// Whether the memory of a tensor holds its values, as far as view_of() does not see it: its class is PyTorch's own,
/// and it does not wait to be negated. Throws PythonError.
bool is_plain(PyObject* tensor);

/// PyTorch's current stream of a GPU; null for the CPU. Throws PythonError.
void* stream_of(const TensorView& view);

/// Whether a GPU is not the current one, so that nothing may be launched on it now. Throws PythonError.
bool is_elsewhere(const TensorView& view);

/// Whether the current stream is being captured into a CUDA graph. Throws PythonError.
bool is_capturing();

/// The truth of what a bound function of no argument, or of one, returns. Throws PythonError.
bool asks(PyObject* function);
bool asks(PyObject* function, PyObject* argument);

/// Whether an operator that is not called would be missed: by a mode, a transform, a trace, a profiler.
bool something_notices();

/// The type that autocast gives an operand on its device; null if autocast is off there. Throws PythonError.
Ref autocast_type(const TensorView& view);

/// Whether there are kernels for a type of PyTorch's.
bool is_supported(PyObject* dtype);

/// Whether PyTorch's settings ask for TF32 in convolutions. Throws PythonError.
bool tf32_is_allowed();

/// PyTorch's settings on which the choice between it and jitconv depends, as bits. Throws PythonError.
std::int64_t settings_of_choices();

/// like.new_empty_strided(shape, strides). Throws PythonError.
Ref new_tensor(PyObject* like, PyObject* shape, PyObject* strides);

/// Of a tensor that was made here. Throws PythonError.
void* address_of(const Ref& tensor);

/// Memory for a launch from PyTorch's allocator, at a multiple of 256.
struct Scratch {
  Ref tensor;
  void* data = nullptr;

  Scratch again() const { return {Ref(Py_NewRef(tensor.get())), data}; }
};
/// Empty for no bytes. The type is that of `like`: PyTorch takes twice as long to make a tensor of another one.
Scratch new_scratch(std::int64_t bytes, PyObject* like, const TensorView& view);

/// What a function makes of an operand that a kernel cannot read as it lies; `data` becomes its address.
Ref densified(const Ref& function, PyObject* operand, void*& data);

/// What a call is looked up by: so many tensors, and three numbers. Zeros behind what is put in.
template <std::size_t Tensors>
struct CallKey {
  std::array<std::int64_t, Tensors * 9 + 3> words{};
  std::size_t used = 0;

  void put(std::int64_t word) { words[used++] = word; }
  void put(const TensorView& view) {
    put(view.kind);
    for (std::size_t i = 0; i < static_cast<std::size_t>(view.rank); ++i) {
      put(view.shape[i]);
      put(view.strides[i]);
    }
  }
  bool operator==(const CallKey&) const = default;
};

struct CallKeyHash {
  template <std::size_t Tensors>
  std::size_t operator()(const CallKey<Tensors>& key) const {
    std::uint64_t hash = key.used;
    for (std::size_t i = 0; i < key.used; ++i) {
      hash = (hash ^ static_cast<std::uint64_t>(key.words[i])) * 0x9e3779b97f4a7c15U;
      hash ^= hash >> 32U;
    }
    return hash;
  }
};

/// A Python object of type Kernel. Throws PythonError if it is none.
const Kernel& to_kernel(PyObject* object);

}  // namespace jitconv::python
