// What ForwardCalls and GradientCalls share: Python types that hold a C++ object, and small conversions.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <new>
#include <unordered_map>
#include <utility>

#include "tensors.h"

namespace jitconv::python {

/// A Python type whose objects hold a `Held`. create() is the only way to one.
template <typename Held>
class HeldType {
 public:
  static void add(PyObject* module, const char* full_name, const char* name, const char* doc, PyMethodDef* methods) {
    PyType_Slot slots[] = {
        {Py_tp_doc, const_cast<char*>(doc)},
        {Py_tp_methods, methods},
        {Py_tp_dealloc, reinterpret_cast<void*>(deallocate)},
        {0, nullptr},
    };
    PyType_Spec spec = {full_name, sizeof(Object), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
    PyObject* const made = checked(PyType_FromSpec(&spec));
    type = reinterpret_cast<PyTypeObject*>(made);
    if (PyModule_AddObjectRef(module, name, made) < 0) throw PythonError();
  }

  template <typename... Arguments>
  static PyObject* create(Arguments&&... arguments) {
    auto* const self = PyObject_New(Object, type);
    checked(reinterpret_cast<PyObject*>(self));
    new (&self->held) Held(std::forward<Arguments>(arguments)...);
    return reinterpret_cast<PyObject*>(self);
  }

  static Held& of(PyObject* self) { return reinterpret_cast<Object*>(self)->held; }

  /// Of an argument. Throws PythonError if it has another type.
  static Held& checked_of(PyObject* object) {
    if (Py_TYPE(object) == type) return of(object);
    PyErr_SetString(PyExc_TypeError, "an object of the extension module is needed");
    throw PythonError();
  }

 private:
  struct Object {
    PyObject_HEAD Held held;
  };

  static void deallocate(PyObject* self) {
    std::destroy_at(&of(self));
    PyTypeObject* const its_type = Py_TYPE(self);
    PyObject_Free(self);
    Py_DECREF(its_type);
  }

  static inline PyTypeObject* type = nullptr;
};

/// The launch of a key, or null. Held by itself: while Python runs, another thread may clear the table.
template <typename Launch, typename Key>
std::shared_ptr<Launch> find(const std::unordered_map<Key, std::shared_ptr<Launch>, CallKeyHash>& launches,
                             const Key& key) {
  const auto found = launches.find(key);
  return found == launches.end() ? nullptr : found->second;
}

/// A function, or null for None.
inline Ref unless_none(PyObject* object) { return object == Py_None ? Ref() : Ref(Py_NewRef(object)); }

/// The bits that keep addresses from being multiples of 16. The alignment that all have depends on nothing else.
inline std::int64_t low_bits(std::initializer_list<void*> addresses) {
  std::uintptr_t bits = 0;
  for (void* address : addresses) bits |= reinterpret_cast<std::uintptr_t>(address);
  return static_cast<std::int64_t>(bits & 15U);
}

}  // namespace jitconv::python
