// The Python type jitconv._native.GradientCalls: the launches of one convolution's gradients by the shapes of its
// tensors, as far as jitconv/torch/_gradients.py has added them. One call computes all that are asked for.
#include <array>
#include <memory>
#include <optional>
#include <unordered_map>

#include "calls.h"

namespace jitconv::python {
namespace {

struct GradientLaunch {
  std::optional<Kernel> data, weight;
  Ref dx_shape, dx_strides, dw_shape, dw_strides, db_shape, db_strides;  ///< db's are null if no kernel computes it
  Ref like;                                                              ///< of the type of dw and db, if not w
  Ref dense_dy, dense_x, dense_w, dense_saved;  ///< functions that copy what the kernels cannot read as it lies
  Ref bias_gradient;                            ///< a function of dy and saved where no kernel computes db
  std::int64_t workspace = 0;                   ///< of both launches, which follow each other on the stream
};

/// Who computes which gradients: the kernels those of a launch, and a function of PyTorch's the others.
struct Choice {
  std::shared_ptr<GradientLaunch> launch;  ///< null if none is the kernels'
  Ref by_pytorch;                          ///< of dy, x, w and saved; null if none is PyTorch's
};

using Key = CallKey<4>;

struct Operands {
  PyObject *dy, *x, *w, *saved;  ///< saved is null if there is none
  TensorView dy_view, x_view, w_view, saved_view;

  bool view() {
    return view_of(dy, dy_view) && view_of(x, x_view) && view_of(w, w_view) &&
           (saved == nullptr || view_of(saved, saved_view));
  }
};

struct GradientCalls {
  GradientCalls(bool a_transposed, bool a_follows_math, bool a_choice)
      : transposed(a_transposed), follows_math(a_follows_math), is_choice(a_choice) {}

  bool transposed, follows_math;
  bool is_choice;  ///< has choices between jitconv and PyTorch in place of launches; PyTorch's settings are in the key
  std::unordered_map<Key, std::shared_ptr<GradientLaunch>, CallKeyHash> launches;
  std::unordered_map<Key, std::shared_ptr<Choice>, CallKeyHash> choices;

  Key key_of(const Operands& o, std::int64_t mask, bool wide) const {
    Key key;
    for (const TensorView* view : {&o.dy_view, &o.x_view, &o.w_view, &o.saved_view}) key.put(*view);
    key.put((is_choice ? settings_of_choices() : 0) << 4 | mask << 1 | (wide ? 1 : 0));
    key.put(follows_math && o.x_view.is_float32 && tf32_is_allowed() ? 1 : 0);
    key.put(low_bits({o.dy_view.data, o.x_view.data, o.w_view.data, o.saved_view.data}));
    return key;
  }
};

using Type = HeldType<GradientCalls>;

Operands to_operands(PyObject* dy, PyObject* x, PyObject* w, PyObject* saved) {
  return {dy, x, w, saved == Py_None ? nullptr : saved, {}, {}, {}, {}};
}

/// Which of dx, dw and db are asked for, from a tuple of at least as many bools.
std::int64_t to_mask(PyObject* tuple) {
  std::int64_t mask = 0;
  for (Py_ssize_t i = 0; i < 3; ++i)
    if (checked(PyTuple_GetItem(tuple, i)) == Py_True) mask |= std::int64_t{1} << i;
  return mask;
}

Ref none_or(Ref tensor) { return tensor ? std::move(tensor) : Ref(Py_NewRef(Py_None)); }

/// dx, dw and db, None where they are not asked for.
using Gradients = std::array<Ref, 3>;

/// Enqueues the gradients.
Gradients enqueue(const GradientCalls& calls, const GradientLaunch& launch, const Operands& o) {
  void* const stream = stream_of(o.x_view);
  void *dy = o.dy_view.data, *x = o.x_view.data, *w = o.w_view.data, *saved = o.saved_view.data;
  Ref dense_dy, dense_x, dense_w, dense_saved;
  if (launch.dense_dy) dense_dy = densified(launch.dense_dy, o.dy, dy);
  if (launch.dense_saved) dense_saved = densified(launch.dense_saved, o.saved, saved);
  if (launch.dense_x && launch.weight) dense_x = densified(launch.dense_x, o.x, x);
  if (launch.dense_w && launch.data) dense_w = densified(launch.dense_w, o.w, w);
  const Scratch workspace = new_scratch(launch.workspace, o.x, o.x_view);
  Ref dx, dw, db;
  LaunchArgs data, weight;
  if (launch.data) {
    dx = new_tensor(o.x, launch.dx_shape.get(), launch.dx_strides.get());
    data.w = w;
    (calls.transposed ? data.x : data.dy) = dy;
    (calls.transposed ? data.y : data.dx) = address_of(dx);
    data.workspace = workspace.data;
    data.saved = saved;
  }
  if (launch.weight) {
    PyObject* const like = launch.like ? launch.like.get() : o.w;
    dw = new_tensor(like, launch.dw_shape.get(), launch.dw_strides.get());
    // Of the convolution whose data gradient a transposed one is, x is the gradient dy, and dy is the input x.
    weight.x = calls.transposed ? dy : x;
    weight.dy = calls.transposed ? x : dy;
    weight.dw = address_of(dw);
    if (launch.db_shape) {
      db = new_tensor(like, launch.db_shape.get(), launch.db_strides.get());
      weight.db = address_of(db);
    }
    weight.workspace = workspace.data;
    weight.saved = saved;
  }
  {
    const WithoutGil released;
    if (launch.data) launch.data->launch(stream, data);
    if (launch.weight) launch.weight->launch(stream, weight);
  }
  if (launch.bias_gradient) {
    PyObject* const after = o.saved == nullptr ? Py_None : o.saved;
    db = Ref(checked(PyObject_CallFunctionObjArgs(launch.bias_gradient.get(), o.dy, after, nullptr)));
  }
  return {none_or(std::move(dx)), none_or(std::move(dw)), none_or(std::move(db))};
}

/// The gradients of a choice.
Gradients run_both(const GradientCalls& calls, const Choice& choice, const Operands& o) {
  Gradients g = {none_or({}), none_or({}), none_or({})};
  if (choice.launch != nullptr) g = enqueue(calls, *choice.launch, o);
  if (!choice.by_pytorch) return g;
  PyObject* const saved = o.saved == nullptr ? Py_None : o.saved;
  const Ref others(checked(PyObject_CallFunctionObjArgs(choice.by_pytorch.get(), o.dy, o.x, o.w, saved, nullptr)));
  for (std::size_t i = 0; i < g.size(); ++i) {
    PyObject* const other = checked(PyTuple_GetItem(others.get(), static_cast<Py_ssize_t>(i)));
    if (other != Py_None) g[i] = Ref(Py_NewRef(other));
  }
  return g;
}

/// The gradients; nothing if the shapes are new, or the GPU is not the current one.
std::optional<Gradients> run_known(GradientCalls& calls, Operands& o, std::int64_t mask, bool wide) {
  if (!o.view() || is_elsewhere(o.x_view)) return std::nullopt;
  const Key key = calls.key_of(o, mask, wide);
  if (calls.is_choice) {
    const std::shared_ptr<Choice> choice = find(calls.choices, key);
    return choice == nullptr ? std::nullopt : std::optional(run_both(calls, *choice, o));
  }
  const std::shared_ptr<GradientLaunch> launch = find(calls.launches, key);
  return launch == nullptr ? std::nullopt : std::optional(enqueue(calls, *launch, o));
}

PyObject* run(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  return guarded([&] {
    check_count("run", count, 6);
    Operands o = to_operands(args[0], args[1], args[2], args[3]);
    const std::optional<Gradients> g = run_known(Type::of(self), o, to_mask(args[4]), args[5] == Py_True);
    if (!g) Py_RETURN_NONE;
    return checked(PyTuple_Pack(3, (*g)[0].get(), (*g)[1].get(), (*g)[2].get()));
  });
}

PyObject* add(PyObject* self, PyObject* args, PyObject* keywords) {
  return guarded([&] {
    static const char* fields[] = {"dy",       "x",       "w",          "saved",       "mask",          "wide",
                                   "data",     "weight",  "dx_strides", "dw_strides",  "db_shape",      "like",
                                   "dense_dy", "dense_x", "dense_w",    "dense_saved", "bias_gradient", nullptr};
    PyObject *dy = nullptr, *x = nullptr, *w = nullptr, *saved = nullptr, *mask = nullptr, *data = nullptr,
             *weight = nullptr, *dx_strides = nullptr, *dw_strides = nullptr, *db_shape = nullptr, *like = nullptr,
             *dense_dy = nullptr, *dense_x = nullptr, *dense_w = nullptr, *dense_saved = nullptr,
             *bias_gradient = nullptr;
    int wide = 0;
    if (PyArg_ParseTupleAndKeywords(args, keywords, "OOOOOpOOOOOOOOOOO:add", const_cast<char**>(fields), &dy, &x, &w,
                                    &saved, &mask, &wide, &data, &weight, &dx_strides, &dw_strides, &db_shape, &like,
                                    &dense_dy, &dense_x, &dense_w, &dense_saved, &bias_gradient) == 0)
      throw PythonError();
    Operands o = to_operands(dy, x, w, saved);
    if (!o.view()) throw InternalError("operands cannot be viewed");
    auto launch = std::make_shared<GradientLaunch>();
    if (data != Py_None) launch->data = to_kernel(data);
    if (weight != Py_None) launch->weight = to_kernel(weight);
    for (const std::optional<Kernel>* kernel : {&launch->data, &launch->weight})
      if (*kernel) launch->workspace = std::max(launch->workspace, (*kernel)->workspace_bytes());
    launch->dx_shape = attribute(x, names().shape);
    launch->dw_shape = attribute(w, names().shape);
    launch->dx_strides = Ref(Py_NewRef(dx_strides));
    launch->dw_strides = Ref(Py_NewRef(dw_strides));
    launch->db_shape = unless_none(db_shape);
    launch->db_strides = Ref(checked(Py_BuildValue("(i)", 1)));
    launch->like = unless_none(like);
    launch->dense_dy = unless_none(dense_dy), launch->dense_x = unless_none(dense_x);
    launch->dense_w = unless_none(dense_w), launch->dense_saved = unless_none(dense_saved);
    launch->bias_gradient = unless_none(bias_gradient);
    GradientCalls& calls = Type::of(self);
    calls.launches.try_emplace(calls.key_of(o, to_mask(mask), wide != 0), std::move(launch));
    Py_RETURN_NONE;
  });
}

PyObject* choose(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  return guarded([&] {
    check_count("choose", count, 9);
    Operands o = to_operands(args[1], args[2], args[3], args[4]);
    GradientCalls &calls = Type::of(self), &other = Type::checked_of(args[0]);
    const std::int64_t mask = to_mask(args[5]), part = to_mask(args[7]);
    const bool wide = args[6] == Py_True;
    if (!o.view()) Py_RETURN_NONE;
    auto choice = std::make_shared<Choice>();
    choice->by_pytorch = unless_none(args[8]);
    if (part != 0) choice->launch = find(other.launches, other.key_of(o, part, wide));
    if (part != 0 && choice->launch == nullptr) Py_RETURN_NONE;
    calls.choices.insert_or_assign(calls.key_of(o, mask, wide), std::move(choice));
    Py_RETURN_NONE;
  });
}

PyObject* clear(PyObject* self, PyObject*) {
  return guarded([&] {
    GradientCalls& calls = Type::of(self);
    const auto launches = std::exchange(calls.launches, {});
    const auto choices = std::exchange(calls.choices, {});
    Py_RETURN_NONE;
  });
}

}  // namespace

PyObject* py_gradient_calls(PyObject*, PyObject* args) {
  return guarded([&] {
    int transposed = 0, follows_math = 0, is_choice = 0;
    if (PyArg_ParseTuple(args, "ppp:gradient_calls", &transposed, &follows_math, &is_choice) == 0) throw PythonError();
    return Type::create(transposed != 0, follows_math != 0, is_choice != 0);
  });
}

PyObject* py_function_backward(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guarded([&] {
    check_count("function_backward", count, 2);
    PyObject *const ctx = args[0], *const dy = args[1];
    // x, w, what the activation's derivative is computed from, and w as it was cast; see _eager.py. Unpacked once:
    // a hook, as checkpointing has, may refuse a second time.
    const Ref saved = attribute(ctx, names().saved_tensors);
    const auto leave = [&] {
      return checked(PyObject_CallFunctionObjArgs(torch().function.backward, ctx, dy, saved.get(), nullptr));
    };
    if (asks(torch().grad_enabled) || something_notices()) return leave();  // the first: create_graph=True
    const Py_ssize_t size = PyTuple_Size(saved.get());
    if (size < 2 || size > 4) return leave();
    PyObject* const x = PyTuple_GetItem(saved.get(), 0);
    Operands o = to_operands(dy, x, PyTuple_GetItem(saved.get(), size == 4 ? 3 : 1),
                             size > 2 ? PyTuple_GetItem(saved.get(), 2) : Py_None);
    for (PyObject* tensor : {o.dy, o.x, o.w, o.saved})  // of a hook that autograd unpacks with, it can be anything
      if (tensor != nullptr && !is_plain(tensor)) return leave();
    // Of a cast w the gradient is float32, which autograd casts to another type.
    const bool wide = size == 4 && attribute(x, names().dtype).get() != PyTuple_GetItem(torch().dtypes, 0);
    const Ref convolution = attribute(ctx, names().convolution);
    const Ref calls = attribute(convolution.get(), names().gradient_calls),
              mask = attribute(ctx, names().needs_input_grad);
    const std::optional<Gradients> g = run_known(Type::checked_of(calls.get()), o, to_mask(mask.get()), wide);
    if (!g) return leave();
    return checked(PyTuple_Pack(4, (*g)[0].get(), (*g)[1].get(), (*g)[2].get(), Py_None));
  });
}

void add_gradient_calls_type(PyObject* module) {
  static std::array<PyMethodDef, 5> methods = {{
      {"run", method(run), METH_FASTCALL,
       "run(dy, x, w, saved, mask, wide)\n\ndx, dw and db, or None if these extents are not known."},
      {"add", method(add), METH_VARARGS | METH_KEYWORDS, "add(**fields)\n\nMake tensors of these extents known."},
      {"choose", method(choose), METH_FASTCALL,
       "choose(other, dy, x, w, saved, mask, wide, part, by_pytorch)\n\nTake the gradients of `part` from another one, "
       "if it knows these extents, and the others from a function of dy, x, w and saved."},
      {"clear", clear, METH_NOARGS, "clear()\n\nForget all extents."},
      {nullptr, nullptr, 0, nullptr},
  }};
  Type::add(module, "jitconv._native.GradientCalls", "GradientCalls",
            "The launches of a convolution's gradients by its tensors' extents.", methods.data());
}

}  // namespace jitconv::python
