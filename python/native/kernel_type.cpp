// The Python type jitconv._native.Kernel. Kernel.launch() is what an operator calls each time: its arguments are plain
// integers, read without a keyword or a tuple, and the interpreter is released while the driver works.
#include <array>
#include <memory>
#include <new>

#include "tensors.h"

namespace jitconv::python {
namespace {

struct KernelObject {
  PyObject_HEAD Kernel kernel;
};

PyTypeObject* kernel_type = nullptr;

const Kernel& kernel_of(PyObject* self) { return reinterpret_cast<KernelObject*>(self)->kernel; }

/// An address as Python's integer; None is null.
void* to_pointer(PyObject* address) {
  if (address == Py_None) return nullptr;
  void* const pointer = PyLong_AsVoidPtr(address);
  if (pointer == nullptr && PyErr_Occurred() != nullptr) throw PythonError();
  return pointer;
}

PyObject* launch(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  return guarded([&] {
    constexpr std::size_t kPointers = 13;
    check_count("launch", count, kPointers);
    std::array<void*, kPointers> p;
    for (std::size_t i = 0; i < kPointers; ++i) p[i] = to_pointer(args[i]);
    const LaunchArgs launch_args{p[1], p[2], p[3], p[4], p[5], p[6], p[7], p[8], p[9], p[10], p[11], p[12]};
    {
      const WithoutGil released;
      kernel_of(self).launch(p[0], launch_args);
    }
    Py_RETURN_NONE;
  });
}

PyObject* pack_weights(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  return guarded([&] {
    check_count("pack_weights", count, 3);
    void *const stream = to_pointer(args[0]), *const w = to_pointer(args[1]), *const packed_w = to_pointer(args[2]);
    {
      const WithoutGil released;
      kernel_of(self).pack_weights(stream, w, packed_w);
    }
    Py_RETURN_NONE;
  });
}

PyObject* resources(PyObject* self, PyObject*) {
  return guarded([&] {
    Ref list(checked(PyList_New(0)));
    for (const Resources& r : kernel_of(self).resources()) {
      const Ref entry(checked(Py_BuildValue("{s:i,s:L,s:L,s:i}", "registers", r.registers, "local_bytes",
                                            static_cast<long long>(r.local_bytes), "shared_bytes",
                                            static_cast<long long>(r.shared_bytes), "threads", r.threads)));
      if (PyList_Append(list.get(), entry.get()) < 0) throw PythonError();
    }
    return list.release();
  });
}

template <typename Get>
PyObject* text(PyObject* self, Get get) {
  return guarded([&] { return to_python(get(kernel_of(self))); });
}

template <typename Get>
PyObject* number(PyObject* self, Get get) {
  return guarded([&] { return checked(PyLong_FromLongLong(get(kernel_of(self)))); });
}

PyObject* get_spec(PyObject* self, void*) {
  return text(self, [](const Kernel& k) { return to_string(k.spec()); });
}
PyObject* get_target(PyObject* self, void*) {
  return text(self, [](const Kernel& k) { return to_string(k.target()); });
}
PyObject* get_source(PyObject* self, void*) {
  return text(self, [](const Kernel& k) { return std::string_view(k.source()); });
}
PyObject* get_plan(PyObject* self, void*) {
  return text(self, [](const Kernel& k) { return k.plan(); });
}
PyObject* get_explain(PyObject* self, void*) {
  return text(self, [](const Kernel& k) { return k.explain(); });
}
PyObject* get_cache_key(PyObject* self, void*) {
  return text(self, [](const Kernel& k) { return k.cache_key(); });
}
PyObject* get_compile_log(PyObject* self, void*) {
  return text(self, [](const Kernel& k) { return std::string_view(k.compile_log()); });
}
PyObject* get_image(PyObject* self, void*) {
  return guarded([&] {
    const std::string& image = kernel_of(self).image();
    return checked(PyBytes_FromStringAndSize(image.data(), static_cast<Py_ssize_t>(image.size())));
  });
}
PyObject* get_from_cache(PyObject* self, void*) {
  return guarded([&] { return checked(PyBool_FromLong(kernel_of(self).from_cache() ? 1 : 0)); });
}
PyObject* get_workspace(PyObject* self, void*) {
  return number(self, [](const Kernel& k) { return k.workspace_bytes(); });
}
PyObject* get_packed_workspace(PyObject* self, void*) {
  return number(self, [](const Kernel& k) { return k.workspace_bytes_with_packed_weights(); });
}
PyObject* get_packed_bytes(PyObject* self, void*) {
  return number(self, [](const Kernel& k) { return k.packed_weight_bytes(); });
}

void deallocate(PyObject* self) {
  std::destroy_at(&reinterpret_cast<KernelObject*>(self)->kernel);
  PyTypeObject* const type = Py_TYPE(self);
  PyObject_Free(self);
  Py_DECREF(type);
}

}  // namespace

void check_count(const char* name, Py_ssize_t given, Py_ssize_t wanted) {
  if (given == wanted) return;
  PyErr_Format(PyExc_TypeError, "%s() takes %zd positional arguments but %zd were given", name, wanted, given);
  throw PythonError();
}

const Kernel& to_kernel(PyObject* object) {
  if (Py_TYPE(object) == kernel_type) return kernel_of(object);
  PyErr_SetString(PyExc_TypeError, "a Kernel is needed");
  throw PythonError();
}

PyObject* new_kernel(Kernel kernel) {
  auto* const self = PyObject_New(KernelObject, kernel_type);
  checked(reinterpret_cast<PyObject*>(self));
  new (&self->kernel) Kernel(std::move(kernel));
  return reinterpret_cast<PyObject*>(self);
}

void add_kernel_type(PyObject* module) {
  static std::array<PyMethodDef, 4> methods = {{
      {"launch", method(launch), METH_FASTCALL,
       "launch(stream, x, w, bias, residual, y, workspace, packed_w, dy, dx, dw, db, saved)\n\n"
       "Enqueue the operation. Every argument is an address as int, or None."},
      {"pack_weights", method(pack_weights), METH_FASTCALL,
       "pack_weights(stream, w, packed_w)\n\nEnqueue the packing of w for later launches."},
      {"resources", resources, METH_NOARGS, "resources()\n\nWhat each GPU kernel of a launch uses, a list of dict."},
      {nullptr, nullptr, 0, nullptr},
  }};
  static std::array<PyGetSetDef, 13> properties = {{
      {"spec", get_spec, nullptr, "The convolution in canonical form, one line.", nullptr},
      {"target", get_target, nullptr, "The GPU that the kernel was compiled for.", nullptr},
      {"source", get_source, nullptr, "The complete CUDA source.", nullptr},
      {"plan", get_plan, nullptr, "The numbers of the plan, lines of `name: value`.", nullptr},
      {"explain", get_explain, nullptr, "Which kernel family was chosen and why.", nullptr},
      {"cache_key", get_cache_key, nullptr, "The key in the disk cache.", nullptr},
      {"compile_log", get_compile_log, nullptr, "The compiler's log.", nullptr},
      {"image", get_image, nullptr, "The cubin, or for the host the shared object.", nullptr},
      {"from_cache", get_from_cache, nullptr, "Whether the image came from the disk cache.", nullptr},
      {"workspace_bytes", get_workspace, nullptr, "The size of the workspace for a launch with w.", nullptr},
      {"workspace_bytes_with_packed_weights", get_packed_workspace, nullptr,
       "The size of the workspace for a launch with packed_w.", nullptr},
      {"packed_weight_bytes", get_packed_bytes, nullptr, "The size of the packed weights, 0 if w is read as it is.",
       nullptr},
      {nullptr, nullptr, nullptr, nullptr, nullptr},
  }};
  static std::array<PyType_Slot, 5> slots = {{
      {Py_tp_doc, const_cast<char*>("A compiled operation of one convolution. compile() and prepare() make it.")},
      {Py_tp_methods, methods.data()},
      {Py_tp_getset, properties.data()},
      {Py_tp_dealloc, reinterpret_cast<void*>(deallocate)},
      {0, nullptr},
  }};
  static PyType_Spec spec = {"jitconv._native.Kernel", sizeof(KernelObject), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots.data()};
  PyObject* const type = checked(PyType_FromSpec(&spec));
  kernel_type = reinterpret_cast<PyTypeObject*>(type);
  if (PyModule_AddObjectRef(module, "Kernel", type) < 0) throw PythonError();
}

}  // namespace jitconv::python
