// The exception classes of the package, one for each of include/jitconv/error.h, and the translation between them.
#include <array>
#include <new>

#include "native.h"

namespace jitconv::python {
namespace {

PyObject *error, *spec_error, *unsupported_error, *compile_error, *cuda_error, *kernel_fault, *internal_error;

PyObject* add_error(PyObject* module, const char* name, PyObject* bases, const char* doc) {
  const std::string full_name = std::string("jitconv.") + name;
  PyObject* const type = checked(PyErr_NewExceptionWithDoc(full_name.c_str(), doc, bases, nullptr));
  if (PyModule_AddObjectRef(module, name, type) < 0) throw PythonError();
  return type;  // referred to until the process ends
}

const char* code_name(ErrorCode code) {
  constexpr std::array<const char*, 11> names = {
      "ok",        "invalid_spec", "invalid_argument", "unsupported", "compile_failed", "compiler_missing", "no_driver",
      "no_device", "cuda",         "internal",         "kernel_fault"};
  return names.at(static_cast<std::size_t>(code));
}

/// Raises `type` with the attributes code, field and log.
void raise(PyObject* type, const Error& what, const std::string& field = {}, const std::string& log = {}) {
  const std::string message = log.empty() ? what.what() : std::string(what.what()) + "\n" + log;
  const Ref text(to_python(message));
  const Ref instance(checked(PyObject_CallFunctionObjArgs(type, text.get(), nullptr)));
  const Ref code(to_python(code_name(what.code()))), field_text(to_python(field)), log_text(to_python(log));
  if (PyObject_SetAttrString(instance.get(), "code", code.get()) < 0 ||
      PyObject_SetAttrString(instance.get(), "field", field_text.get()) < 0 ||
      PyObject_SetAttrString(instance.get(), "log", log_text.get()) < 0)
    throw PythonError();
  PyErr_SetObject(type, instance.get());
}

void translate() {
  try {
    throw;
  } catch (const PythonError&) {
    return;
  } catch (const SpecError& e) {
    raise(e.code() == ErrorCode::unsupported ? unsupported_error : spec_error, e, e.field());
  } catch (const CompileError& e) {
    raise(compile_error, e, {}, e.log());
  } catch (const CudaError& e) {
    raise(cuda_error, e);
  } catch (const KernelFault& e) {
    raise(kernel_fault, e);
  } catch (const Error& e) {
    raise(internal_error, e);
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& e) {
    raise(internal_error, InternalError(e.what()));
  }
}

}  // namespace

void add_errors(PyObject* module) {
  error = add_error(module, "Error", PyExc_RuntimeError,
                    "The base of jitconv's exceptions.\n\nAttributes: code (str), field (str), log (str).");
  const Ref spec_bases(checked(PyTuple_Pack(2, error, PyExc_ValueError)));
  spec_error = add_error(module, "SpecError", spec_bases.get(), "The convolution or an argument breaks a rule.");
  unsupported_error =
      add_error(module, "UnsupportedError", spec_error, "A valid request that this version has no kernel for.");
  compile_error = add_error(module, "CompileError", error, "The compiler is missing or rejected the source.");
  cuda_error = add_error(module, "CudaError", error, "A call of the CUDA driver failed, or there is no driver.");
  kernel_fault = add_error(module, "KernelFault", error, "Host execution found that a kernel breaks a rule of CUDA.");
  internal_error = add_error(module, "InternalError", error, "A bug in jitconv.");
}

void set_python_error() noexcept {
  try {
    translate();
  } catch (...) {
    if (PyErr_Occurred() == nullptr) PyErr_NoMemory();
  }
}

}  // namespace jitconv::python
