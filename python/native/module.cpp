// The module jitconv._native: its functions and its initialisation. jitconv/_native.pyi describes it for type checkers.
#include <array>
#include <optional>

#include "jitconv/jitconv.h"
#include "tensors.h"

namespace jitconv::python {
namespace {

PyObject* shape_tuple(const TensorShape& shape) {
  return checked(Py_BuildValue("(LLLL)", static_cast<long long>(shape.n), static_cast<long long>(shape.c),
                               static_cast<long long>(shape.h), static_cast<long long>(shape.w)));
}

PyObject* py_output_shape(PyObject*, PyObject* text) {
  return guarded([&] { return shape_tuple(output_shape(to_spec(text))); });
}

PyObject* py_result_shape(PyObject*, PyObject* text) {
  return guarded([&] { return shape_tuple(result_shape(to_spec(text))); });
}

PyObject* py_canonical(PyObject*, PyObject* text) {
  return guarded([&] {
    const ConvSpec spec = to_spec(text);
    validate(spec);
    return to_python(to_string(spec));
  });
}

PyObject* py_current_arch(PyObject*, PyObject*) {
  return guarded([&] {
    std::optional<Target> target;
    {
      const WithoutGil released;
      target = current_target();
    }
    return to_python(target->arch());
  });
}

PyObject* py_statistics(PyObject*, PyObject*) {
  return guarded([&] {
    const Statistics s = statistics();
    return checked(Py_BuildValue("{s:K,s:K,s:K,s:K,s:K,s:K}", "memory_hits", s.memory_hits, "disk_hits", s.disk_hits,
                                 "disk_misses", s.disk_misses, "compilations", s.compilations, "disk_errors",
                                 s.disk_errors, "kernels", s.kernels));
  });
}

PyObject* py_release_unused_kernels(PyObject*, PyObject*) {
  return guarded([&] {
    std::size_t released_kernels = 0;
    {
      const WithoutGil released;
      released_kernels = release_unused_kernels();
    }
    return checked(PyLong_FromSize_t(released_kernels));
  });
}

std::array<PyMethodDef, 16> functions = {{
    {"compile", method(py_compile), METH_VARARGS | METH_KEYWORDS,
     "compile(spec, arch=None)\n\nCompile one operation, given as a line of text."},
    {"prepare", method(py_prepare), METH_VARARGS | METH_KEYWORDS,
     "prepare(specs, arch=None, threads=0, progress=None)\n\nCompile many operations at once. "
     "progress(done, total, index, origin) is called for each."},
    {"output_shape", py_output_shape, METH_O, "output_shape(spec)\n\nN, K, P, Q of the forward result."},
    {"result_shape", py_result_shape, METH_O, "result_shape(spec)\n\nThe extents of the operation's result."},
    {"canonical", py_canonical, METH_O, "canonical(spec)\n\nThe spec with every field, or SpecError."},
    {"current_arch", py_current_arch, METH_NOARGS, "current_arch()\n\nThe architecture of the current GPU."},
    {"statistics", py_statistics, METH_NOARGS, "statistics()\n\nCounters of this process, a dict."},
    {"release_unused_kernels", py_release_unused_kernels, METH_NOARGS,
     "release_unused_kernels()\n\nDrop kernels that nothing refers to; their number."},
    {"bind_torch", method(py_bind_torch), METH_VARARGS | METH_KEYWORDS,
     "bind_torch(*, ...)\n\nHand over what calls need of PyTorch."},
    {"serve_cpu", py_serve_cpu, METH_O, "serve_cpu(wanted)\n\nWhether ForwardCalls.call() takes CPU tensors."},
    {"decline_calls", py_decline_calls, METH_O, "decline_calls(wanted)\n\nWhether ForwardCalls.call() knows nothing."},
    {"forward_calls", py_forward_calls, METH_VARARGS,
     "forward_calls(owner, transposed, follows_math, is_choice, has_activation, saves_result)"},
    {"function_forward", method(py_function_forward), METH_FASTCALL, "function_forward(ctx, x, w, b, convolution)"},
    {"function_backward", method(py_function_backward), METH_FASTCALL, "function_backward(ctx, dy)"},
    {"gradient_calls", py_gradient_calls, METH_VARARGS, "gradient_calls(transposed, follows_math, is_choice)"},
    {nullptr, nullptr, 0, nullptr},
}};

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "jitconv._native",
                          "jitconv's C++ library.",
                          -1,
                          functions.data(),
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

PyObject* make_module() {
  Ref module(checked(PyModule_Create(&definition)));
  add_errors(module.get());
  add_kernel_type(module.get());
  add_forward_calls_type(module.get());
  add_gradient_calls_type(module.get());
  if (PyModule_AddStringConstant(module.get(), "__version__", version()) < 0 ||
      PyModule_AddIntConstant(module.get(), "ABI_VERSION", JITCONV_ABI_VERSION) < 0)
    throw PythonError();
  return module.release();
}

}  // namespace
}  // namespace jitconv::python

// NOLINTNEXTLINE(readability-identifier-naming): the name is Python's
PyMODINIT_FUNC PyInit__native() { return jitconv::python::guarded(jitconv::python::make_module); }
