// What the files of jitconv._native share: the limited API of Python 3.10, references that release themselves, and
// exceptions carried between C++ and Python. The limited API is used directly: binding generators offer a stable ABI
// only from Python 3.12 on, and one wheel has to serve 3.10.
#pragma once

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030A0000
#include <Python.h>

#include <string>
#include <string_view>
#include <utility>

#include "jitconv/jitconv.hpp"

namespace jitconv::python {

/// An owned reference, or null.
class Ref {
 public:
  Ref() = default;
  explicit Ref(PyObject* owned) : object_(owned) {}
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  Ref(const Ref&) = delete;
  Ref& operator=(const Ref&) = delete;
  ~Ref() { Py_XDECREF(object_); }

  PyObject* get() const { return object_; }
  PyObject* release() { return std::exchange(object_, nullptr); }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  PyObject* object_ = nullptr;
};

/// A Python exception is set: unwinds to guarded().
struct PythonError {};

/// Throws PythonError if `object` is null.
inline PyObject* checked(PyObject* object) {
  if (object == nullptr) throw PythonError();
  return object;
}

/// Releases the interpreter while it lives.
class WithoutGil {
 public:
  WithoutGil() : state_(PyEval_SaveThread()) {}
  ~WithoutGil() { PyEval_RestoreThread(state_); }
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

  /// Runs `body` with the interpreter.
  template <typename Body>
  void with_gil(Body body) {
    PyEval_RestoreThread(state_);
    try {
      body();
    } catch (...) {
      state_ = PyEval_SaveThread();
      throw;
    }
    state_ = PyEval_SaveThread();
  }

 private:
  PyThreadState* state_;
};

/// Creates the exception classes and adds them to the module. Throws PythonError.
void add_errors(PyObject* module);
/// Sets the Python exception that stands for the C++ exception being handled.
void set_python_error() noexcept;

/// Creates the type Kernel and adds it to the module. Throws PythonError.
void add_kernel_type(PyObject* module);
/// A new Python object for a kernel. Throws PythonError.
PyObject* new_kernel(Kernel kernel);

/// compile() and prepare() of the module.
PyObject* py_compile(PyObject* module, PyObject* args, PyObject* keywords);
PyObject* py_prepare(PyObject* module, PyObject* args, PyObject* keywords);

/// Adds the types ForwardCalls and GradientCalls, and makes their objects.
void add_forward_calls_type(PyObject* module);
void add_gradient_calls_type(PyObject* module);
PyObject* py_forward_calls(PyObject* module, PyObject* args);
PyObject* py_gradient_calls(PyObject* module, PyObject* args);
/// The two halves of the package's autograd function, of shapes that are known; the others are left to Python's.
PyObject* py_function_forward(PyObject* module, PyObject* const* args, Py_ssize_t count);
PyObject* py_function_backward(PyObject* module, PyObject* const* args, Py_ssize_t count);

/// Throws PythonError with a TypeError unless a function was given as many arguments as it takes.
void check_count(const char* name, Py_ssize_t given, Py_ssize_t wanted);

/// Runs `body`, which returns a new reference, and turns C++ exceptions into Python ones.
template <typename Body>
PyObject* guarded(Body body) noexcept {
  try {
    return body();
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

inline PyObject* to_python(std::string_view text) {
  return checked(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
}

/// The bytes of a str. Throws PythonError.
std::string to_text(PyObject* text);
/// A spec from its line of text. Throws SpecError and PythonError.
ConvSpec to_spec(PyObject* text);

/// A method's function pointer in the one type that PyMethodDef knows.
template <typename Function>
PyCFunction method(Function function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

}  // namespace jitconv::python
