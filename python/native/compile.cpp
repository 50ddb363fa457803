// compile() and prepare() of jitconv._native: from lines of text, which jitconv::parse_spec() reads, to kernels.
#include <optional>
#include <vector>

#include "native.h"

namespace jitconv::python {
namespace {

/// The target named by a str such as "sm_90a", "host" or "host-sm_90a"; none for None, the current device.
std::optional<Target> to_target(PyObject* arch) {
  if (arch == Py_None) return std::nullopt;
  const std::string name = to_text(arch);
  if (name == "host") return Target::host();
  constexpr std::string_view host = "host-";
  if (name.starts_with(host)) return Target::host(parse_target(std::string_view(name).substr(host.size())));
  return parse_target(name);
}

const char* origin_name(Origin origin) {
  switch (origin) {
    case Origin::memory:
      return "memory";
    case Origin::disk:
      return "disk";
    case Origin::compiler:
      return "compiler";
    case Origin::failed:
      return "failed";
  }
  return "unknown";
}

std::vector<ConvSpec> to_specs(PyObject* list) {
  std::vector<ConvSpec> specs;
  const Ref iterator(checked(PyObject_GetIter(list)));
  while (true) {
    const Ref item(PyIter_Next(iterator.get()));
    if (!item) break;
    specs.push_back(to_spec(item.get()));
  }
  if (PyErr_Occurred() != nullptr) throw PythonError();
  return specs;
}

}  // namespace

std::string to_text(PyObject* text) {
  Py_ssize_t bytes = 0;
  const char* const begin = PyUnicode_AsUTF8AndSize(text, &bytes);
  if (begin == nullptr) throw PythonError();
  return {begin, static_cast<std::size_t>(bytes)};
}

ConvSpec to_spec(PyObject* text) { return parse_spec(to_text(text)); }

PyObject* py_compile(PyObject*, PyObject* args, PyObject* keywords) {
  return guarded([&] {
    static const char* names[] = {"spec", "arch", nullptr};
    PyObject *text = nullptr, *arch = Py_None;
    if (PyArg_ParseTupleAndKeywords(args, keywords, "O|O:compile", const_cast<char**>(names), &text, &arch) == 0)
      throw PythonError();
    const ConvSpec spec = to_spec(text);
    const std::optional<Target> target = to_target(arch);
    std::optional<Kernel> kernel;
    {
      const WithoutGil released;
      kernel = target ? compile(spec, *target) : compile(spec);
    }
    return new_kernel(*std::move(kernel));
  });
}

PyObject* py_prepare(PyObject*, PyObject* args, PyObject* keywords) {
  return guarded([&] {
    static const char* names[] = {"specs", "arch", "threads", "progress", nullptr};
    PyObject *list = nullptr, *arch = Py_None, *callback = Py_None;
    int threads = 0;
    if (PyArg_ParseTupleAndKeywords(args, keywords, "O|OiO:prepare", const_cast<char**>(names), &list, &arch, &threads,
                                    &callback) == 0)
      throw PythonError();
    const std::vector<ConvSpec> specs = to_specs(list);
    const std::optional<Target> target = to_target(arch);
    std::vector<Kernel> kernels;
    {
      WithoutGil released;
      PrepareOptions options;
      options.threads = threads;
      if (callback != Py_None) {
        options.progress = [&](const Progress& progress) {
          released.with_gil([&] {
            const Ref ignored(checked(PyObject_CallFunction(
                callback, "nnns", static_cast<Py_ssize_t>(progress.done), static_cast<Py_ssize_t>(progress.total),
                static_cast<Py_ssize_t>(progress.index), origin_name(progress.origin))));
          });
        };
      }
      kernels = target ? prepare(specs, *target, options) : prepare(specs, options);
    }
    Ref result(checked(PyList_New(0)));
    for (Kernel& kernel : kernels) {
      const Ref item(new_kernel(std::move(kernel)));
      if (PyList_Append(result.get(), item.get()) < 0) throw PythonError();
    }
    return result.release();
  });
}

}  // namespace jitconv::python
