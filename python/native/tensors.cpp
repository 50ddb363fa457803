// Views of tensors, PyTorch's state, and memory from its allocator: see tensors.h.
#include "tensors.h"

#include <algorithm>

#include "dlpack_abi.h"

namespace jitconv::python {
namespace {

constexpr std::int64_t kScratchAlignment = 256;  // PyTorch's allocator of GPU memory gives 512

Torch bound;
const dlpack::ExchangeApi* exchange = nullptr;
Names interned;
PyObject* one_stride = nullptr;
std::int64_t device_count = 0;

void set_kind(TensorView& view, std::int64_t type, std::int64_t device_type) {
  view.kind = type | view.rank << 16 | device_type << 20 | (view.device + 1) << 32;
}

bool view_by_exchange(PyObject* tensor, TensorView& view) {
  dlpack::Tensor found{};
  if (exchange->view_of_object(tensor, &found) != 0) return false;
  if (found.rank > 4 || (found.rank != 0 && found.strides == nullptr)) return false;
  if (found.device_type != dlpack::kCpu && found.device_type != dlpack::kCuda) return false;
  view.data = static_cast<char*>(found.data) + found.byte_offset;
  view.rank = found.rank;
  view.device = found.device_type == dlpack::kCpu ? -1 : found.device;
  view.item_bytes = found.type_bits / 8;
  view.is_float32 = found.type_code == 2 && found.type_bits == 32;
  std::copy_n(found.shape, found.rank, view.shape.begin());
  std::copy_n(found.strides, found.rank, view.strides.begin());
  set_kind(view, found.type_code << 8 | found.type_bits, found.device_type);
  return true;
}

/// Copies a tuple of at most four integers; its length, or -1 if it is longer.
std::int64_t to_extents(PyObject* tuple, std::array<std::int64_t, 4>& extents) {
  const Py_ssize_t size = PyTuple_Size(tuple);
  if (size < 0) throw PythonError();
  if (size > 4) return -1;
  for (Py_ssize_t i = 0; i < size; ++i)
    extents[static_cast<std::size_t>(i)] = to_integer(checked(PyTuple_GetItem(tuple, i)));
  return size;
}

/// For PyTorch 2.9, which has no such interface.
bool view_by_attributes(PyObject* tensor, TensorView& view) {
  const Ref shape = attribute(tensor, interned.shape), strides = ask(tensor, interned.stride),
            dtype = attribute(tensor, interned.dtype);
  view.rank = to_extents(shape.get(), view.shape);
  if (view.rank < 0) return false;
  const bool on_cpu = attribute(tensor, interned.is_cpu).get() == Py_True;
  if (!on_cpu && attribute(tensor, interned.is_cuda).get() != Py_True) return false;
  to_extents(strides.get(), view.strides);
  view.data = PyLong_AsVoidPtr(ask(tensor, interned.data_ptr).get());
  view.device = to_integer(ask(tensor, interned.get_device).get());
  view.item_bytes = to_integer(attribute(dtype.get(), interned.itemsize).get());
  view.is_float32 = dtype.get() == PyTuple_GetItem(bound.dtypes, 0);
  std::int64_t type = 0;
  const Py_ssize_t types = PyTuple_Size(bound.dtypes);
  while (type < types && PyTuple_GetItem(bound.dtypes, type) != dtype.get()) ++type;
  if (type == types) return false;
  set_kind(view, type, on_cpu ? dlpack::kCpu : dlpack::kCuda);
  if (PyErr_Occurred() != nullptr) throw PythonError();
  return true;
}

}  // namespace

const Torch& torch() { return bound; }
const Names& names() { return interned; }

Ref attribute(PyObject* object, PyObject* name) { return Ref(checked(PyObject_GetAttr(object, name))); }

Ref ask(PyObject* object, PyObject* name) { return Ref(checked(PyObject_CallMethodObjArgs(object, name, nullptr))); }

std::int64_t to_integer(PyObject* number) {
  const long long value = PyLong_AsLongLong(number);
  if (value == -1 && PyErr_Occurred() != nullptr) throw PythonError();
  return value;
}

PyObject* py_bind_torch(PyObject*, PyObject* args, PyObject* keywords) {
  return guarded([&] {
    static const char* names[] = {
        "exchange_api",   "tensor",           "parameter",      "dtypes",       "noticing",         "forward_ad",
        "any_autocast",   "autocast_enabled", "autocast_dtype", "grad_enabled", "is_capturing",     "device_count",
        "current_device", "current_stream",   "fp32_precision", "benchmarks",   "is_deterministic", "new_empty_strided",
        "is_neg",         "is_inference",     "storage",        "weak_storage", "is_distributed",   "apply",
        "forward",        "backward",         nullptr};
    Torch t;
    PyObject* api = nullptr;
    if (PyArg_ParseTupleAndKeywords(args, keywords, "$OOOOOOOOOOOOOOOOOOOOOOOOOO:bind_torch", const_cast<char**>(names),
                                    &api, &t.tensor, &t.parameter, &t.dtypes, &t.noticing, &t.forward_ad,
                                    &t.autocast.any_enabled, &t.autocast.enabled, &t.autocast.dtype, &t.grad_enabled,
                                    &t.is_capturing, &t.device_count, &t.current_device, &t.current_stream,
                                    &t.fp32_precision, &t.benchmarks, &t.is_deterministic, &t.new_empty_strided,
                                    &t.is_neg, &t.is_inference, &t.storage, &t.weak_storage, &t.is_distributed,
                                    &t.function.apply, &t.function.forward, &t.function.backward) == 0)
      throw PythonError();
    exchange = nullptr;
    constexpr const char* kCapsule = "dlpack_exchange_api";
    if (PyCapsule_IsValid(api, kCapsule) != 0) {
      const auto* found = static_cast<const dlpack::ExchangeApi*>(PyCapsule_GetPointer(api, kCapsule));
      while (found != nullptr && found->major != dlpack::kMajorVersion) found = found->previous;
      if (found != nullptr && found->view_of_object != nullptr && found->current_stream != nullptr) exchange = found;
    }
    const auto name = [](const char* text) { return checked(PyUnicode_InternFromString(text)); };
    interned = {name("shape"),         name("stride"),         name("data_ptr"),
                name("get_device"),    name("is_cpu"),         name("is_cuda"),
                name("dtype"),         name("itemsize"),       name("_base"),
                name("_version"),      name("_cdata"),         name("storage_offset"),
                name("requires_grad"), name("_current_level"), name("to"),
                name("calls"),         name("gradient_calls"), name("convolution"),
                name("to_save"),       name("saved_tensors"),  name("needs_input_grad"),
                name("cpu"),           name("cuda"),           name("conv")};
    one_stride = checked(Py_BuildValue("(i)", 1));
    t.serves_cpu = bound.serves_cpu, t.declines_calls = bound.declines_calls;
    for (PyObject* object : {t.tensor,           t.parameter,         t.dtypes,
                             t.noticing,         t.forward_ad,        t.autocast.any_enabled,
                             t.autocast.enabled, t.autocast.dtype,    t.grad_enabled,
                             t.is_capturing,     t.device_count,      t.current_device,
                             t.current_stream,   t.fp32_precision,    t.benchmarks,
                             t.is_deterministic, t.new_empty_strided, t.is_neg,
                             t.is_inference,     t.storage,           t.weak_storage,
                             t.is_distributed,   t.function.apply,    t.function.forward,
                             t.function.backward})
      Py_INCREF(object);
    bound = t;
    Py_RETURN_NONE;
  });
}

namespace {
PyObject* set(bool& flag, PyObject* wanted) {
  return guarded([&] {
    const int truth = PyObject_IsTrue(wanted);
    if (truth < 0) throw PythonError();
    flag = truth != 0;
    Py_RETURN_NONE;
  });
}
}  // namespace

PyObject* py_serve_cpu(PyObject*, PyObject* wanted) { return set(bound.serves_cpu, wanted); }
PyObject* py_decline_calls(PyObject*, PyObject* wanted) { return set(bound.declines_calls, wanted); }

bool view_of(PyObject* tensor, TensorView& view) {
  bool viewed = false;
  try {
    viewed = exchange != nullptr ? view_by_exchange(tensor, view) : view_by_attributes(tensor, view);
  } catch (const PythonError&) {
    viewed = false;
  }
  PyErr_Clear();  // why it has no memory of its own is of no interest
  const auto is_zero = [](std::int64_t extent) { return extent == 0; };
  return viewed && (view.data != nullptr || std::any_of(view.shape.begin(), view.shape.begin() + view.rank, is_zero));
}

bool is_plain(PyObject* tensor) {
  PyTypeObject* const type = Py_TYPE(tensor);
  const auto is = [&](PyObject* known) { return type == reinterpret_cast<PyTypeObject*>(known); };
  return (is(bound.tensor) || is(bound.parameter)) && !asks(bound.is_neg, tensor);
}

void* stream_of(const TensorView& view) {
  if (view.device < 0) return nullptr;
  void* stream = nullptr;
  if (exchange != nullptr) {
    if (exchange->current_stream(dlpack::kCuda, static_cast<std::int32_t>(view.device), &stream) != 0)
      throw PythonError();
    return stream;
  }
  const Ref index(checked(PyLong_FromLongLong(view.device)));
  const Ref found(checked(PyObject_CallFunctionObjArgs(bound.current_stream, index.get(), nullptr)));
  stream = PyLong_AsVoidPtr(found.get());
  if (stream == nullptr && PyErr_Occurred() != nullptr) throw PythonError();
  return stream;
}

bool is_elsewhere(const TensorView& view) {
  if (view.device < 0) return false;
  // Asked with the first tensor on a GPU, when nobody can hide GPUs any more. Not in the initialisation of a static:
  // its guard would block a thread that has the interpreter.
  if (device_count == 0) device_count = to_integer(Ref(checked(PyObject_CallNoArgs(bound.device_count))).get());
  if (device_count == 1) return false;
  return to_integer(Ref(checked(PyObject_CallNoArgs(bound.current_device))).get()) != view.device;
}

bool is_capturing() { return asks(bound.is_capturing); }

bool asks(PyObject* function) {
  const Ref answer(checked(PyObject_CallNoArgs(function)));
  if (answer.get() == Py_False || answer.get() == Py_None) return false;
  const int truth = PyObject_IsTrue(answer.get());
  if (truth < 0) throw PythonError();
  return truth != 0;
}

bool asks(PyObject* function, PyObject* argument) {
  return Ref(checked(PyObject_CallFunctionObjArgs(function, argument, nullptr))).get() == Py_True;
}

bool tf32_is_allowed() {
  const Ref precision(
      checked(PyObject_CallFunctionObjArgs(bound.fp32_precision, interned.cuda, interned.conv, nullptr)));
  return PyUnicode_CompareWithASCIIString(precision.get(), "tf32") == 0;
}

bool something_notices() {
  const Py_ssize_t count = PyTuple_Size(bound.noticing);
  for (Py_ssize_t i = 0; i < count; ++i)
    if (asks(PyTuple_GetItem(bound.noticing, i))) return true;
  return to_integer(attribute(bound.forward_ad, interned.current_level).get()) >= 0;
}

Ref autocast_type(const TensorView& view) {
  if (!asks(bound.autocast.any_enabled)) return {};
  PyObject* const device = view.device < 0 ? interned.cpu : interned.cuda;
  if (!asks(bound.autocast.enabled, device)) return {};
  return Ref(checked(PyObject_CallFunctionObjArgs(bound.autocast.dtype, device, nullptr)));
}

bool is_supported(PyObject* dtype) {
  const Py_ssize_t count = PyTuple_Size(bound.dtypes);
  for (Py_ssize_t i = 0; i < count; ++i)
    if (PyTuple_GetItem(bound.dtypes, i) == dtype) return true;
  return false;
}

std::int64_t settings_of_choices() { return (asks(bound.benchmarks) ? 1 : 0) | (asks(bound.is_deterministic) ? 2 : 0); }

Ref new_tensor(PyObject* like, PyObject* shape, PyObject* strides) {
  return Ref(checked(PyObject_CallFunctionObjArgs(bound.new_empty_strided, like, shape, strides, nullptr)));
}

void* address_of(const Ref& tensor) {
  TensorView view;
  if (!view_of(tensor.get(), view)) throw InternalError("a tensor of this package cannot be viewed");
  return view.data;
}

Ref densified(const Ref& function, PyObject* operand, void*& data) {
  Ref dense(checked(PyObject_CallFunctionObjArgs(function.get(), operand, nullptr)));
  data = address_of(dense);
  return dense;
}

Scratch new_scratch(std::int64_t bytes, PyObject* like, const TensorView& view) {
  Scratch scratch;
  if (bytes == 0) return scratch;
  const std::int64_t all = bytes + (view.device < 0 ? kScratchAlignment : 0);
  const Ref shape(checked(Py_BuildValue("(L)", static_cast<long long>((all + view.item_bytes - 1) / view.item_bytes))));
  scratch.tensor = new_tensor(like, shape.get(), one_stride);
  void* const data = address_of(scratch.tensor);
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  constexpr auto kMask = static_cast<std::uintptr_t>(kScratchAlignment) - 1;
  scratch.data = static_cast<char*>(data) + (-address & kMask);
  return scratch;
}

}  // namespace jitconv::python
