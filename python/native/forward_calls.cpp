// The Python type jitconv._native.ForwardCalls: the launches of one convolution by the shapes of its tensors, as far as
// jitconv/torch/_convolution.py has added them. A call is one look-up, the memory of its result, and the launch.
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "calls.h"
#include "kept_operands.h"

namespace jitconv::python {
namespace {

struct ForwardLaunch {
  explicit ForwardLaunch(const Kernel& a_kernel) : kernel(a_kernel) {}

  Kernel kernel;
  Ref shape, strides;             ///< of the result
  Ref dense_x, dense_w, dense_b;  ///< functions that copy an operand the kernel cannot read as it lies; else null
  std::int64_t workspace = 0, packed_workspace = 0, packed_bytes = 0;
  KeptOperands kept;

  bool keeps_weights() const { return packed_bytes > 0 || dense_w; }
};

using Key = CallKey<3>;

struct Operands {
  PyObject *x, *w, *b;  ///< b is null if there is none
  TensorView x_view, w_view, b_view;

  Operands(PyObject* an_x, PyObject* a_w, PyObject* a_b) : x(an_x), w(a_w), b(a_b == Py_None ? nullptr : a_b) {}
  bool view() { return view_of(x, x_view) && view_of(w, w_view) && (b == nullptr || view_of(b, b_view)); }
};

/// Where the activation is applied while autograd records the convolution.
enum class Trained { none, in_kernel, behind_it };

struct ForwardCalls {
  ForwardCalls(Ref an_owner, bool a_transposed, bool a_follows_math, bool a_choice, Trained an_activation)
      : owner(std::move(an_owner)),
        transposed(a_transposed),
        follows_math(a_follows_math),
        is_choice(a_choice),
        trained(an_activation) {}

  Ref owner;  ///< a weak reference to the Convolution, which refers to this
  bool transposed, follows_math;
  bool is_choice;  ///< has what was measured to be faster than PyTorch, under settings that are part of the key
  Trained trained;
  /// A CUDA graph has a training step, whose replays may write weights without counting a version.
  bool trains_in_graph = false;
  std::unordered_map<Key, std::shared_ptr<ForwardLaunch>, CallKeyHash> launches;
  std::unordered_map<Key, Ref, CallKeyHash> by_pytorch;  ///< functions of x, w and b, where PyTorch is the faster

  void forget_weights() {
    std::vector<KeptOperands> dropped;  // whose destructors may run Python
    for (auto& [key, launch] : launches)
      if (!launch->kept.empty()) dropped.push_back(std::exchange(launch->kept, {}));
  }

  Key key_of(const Operands& o, bool activation, bool pack, bool casts) const {
    Key key;
    key.put(o.x_view);
    key.put(o.w_view);
    key.put(o.b_view);
    const std::int64_t choice = is_choice ? (pack ? 1 : 0) | settings_of_choices() << 1 : 0;
    key.put((activation ? 1 : 0) | (casts ? 2 : 0) | choice << 2);
    key.put(follows_math && o.x_view.is_float32 && tf32_is_allowed() ? 1 : 0);
    key.put(low_bits({o.x_view.data, o.w_view.data, o.b_view.data}));
    return key;
  }
};

using Type = HeldType<ForwardCalls>;

/// An operand as the kernel reads it, packed or made dense, kept for later calls. Nothing if it must not be, where
/// nobody could notice that it changes: so it is of inference tensors, which have no version counter, under
/// torch.distributed, whose collectives count none, and with CUDA graphs, whose replays run no Python.
std::optional<Scratch> kept(PyObject* self, ForwardLaunch& launch, PyObject* operand, const TensorView& view,
                            const Ref& dense, bool pack, void* stream) {
  ForwardCalls& calls = Type::of(self);
  if ((view.device >= 0 && is_capturing()) || asks(torch().is_inference, operand)) return std::nullopt;
  if (calls.trains_in_graph || asks(torch().is_distributed)) {
    calls.forget_weights();
    return std::nullopt;
  }
  const Ref base = attribute(operand, names().base);
  const bool is_view = base.get() != Py_None;
  PyObject* const owner = is_view ? base.get() : operand;
  const std::int64_t version = to_integer(attribute(operand, names().version).get());
  const Ref storage(checked(PyObject_CallFunctionObjArgs(torch().storage, operand, nullptr)));
  const std::int64_t storage_address = to_integer(attribute(storage.get(), names().cdata).get());
  const KeptKey key{owner, is_view ? to_integer(ask(operand, names().storage_offset).get()) : 0, stream};
  if (const auto found = launch.kept.find(key); found != launch.kept.end() && found->second.version == version &&
                                                found->second.pointer == view.data &&
                                                found->second.storage == storage_address) {
    const Ref alive(checked(PyObject_CallNoArgs(found->second.owner.get())));
    if (alive.get() == owner) return found->second.made.again();
  }
  Kept made;
  made.version = version;
  made.pointer = view.data;
  made.storage = storage_address;
  made.weak_storage = Ref(checked(PyObject_CallFunctionObjArgs(torch().weak_storage, storage.get(), nullptr)));
  void* data = view.data;
  Ref copy;
  if (dense) copy = densified(dense, operand, data);
  if (pack) {
    made.made = new_scratch(launch.packed_bytes, operand, view);
    const WithoutGil released;
    launch.kernel.pack_weights(stream, data, made.made.data);
  } else {
    made.made = {std::move(copy), data};
  }
  const Ref forget(checked(PyObject_GetAttrString(self, "forget")));
  made.owner = Ref(checked(PyWeakref_NewRef(owner, forget.get())));
  Scratch result = made.made.again();
  std::swap(launch.kept[key], made);
  return result;
}

/// Enqueues the convolution; its result.
PyObject* enqueue(PyObject* self, const ForwardCalls& calls, ForwardLaunch& launch, const Operands& o, bool pack) {
  void* const stream = stream_of(o.x_view);
  void *x = o.x_view.data, *w = o.w_view.data, *b = o.b_view.data;
  Ref dense_x, dense_w, dense_b;
  if (launch.dense_x) dense_x = densified(launch.dense_x, o.x, x);
  Ref y = new_tensor(o.x, launch.shape.get(), launch.strides.get());
  std::optional<Scratch> kept_w, kept_b;
  if (pack && launch.keeps_weights())
    kept_w = kept(self, launch, o.w, o.w_view, launch.dense_w, launch.packed_bytes > 0, stream);
  LaunchArgs args;
  std::int64_t bytes = launch.workspace;
  if (!kept_w) {
    if (launch.dense_w) dense_w = densified(launch.dense_w, o.w, w);
    args.w = w;
  } else if (launch.packed_bytes > 0) {
    args.packed_w = kept_w->data;
    bytes = launch.packed_workspace;
  } else {
    args.w = kept_w->data;
  }
  if (launch.dense_b) {
    if (pack) kept_b = kept(self, launch, o.b, o.b_view, launch.dense_b, /*pack=*/false, stream);
    if (kept_b)
      b = kept_b->data;
    else
      dense_b = densified(launch.dense_b, o.b, b);
  }
  const Scratch workspace = new_scratch(bytes, o.x, o.x_view);
  args.bias = b;
  args.workspace = workspace.data;
  (calls.transposed ? args.dy : args.x) = x;
  (calls.transposed ? args.dx : args.y) = address_of(y);
  {
    const WithoutGil released;
    launch.kernel.launch(stream, args);
  }
  return y.release();
}

/// The result, or None: the shapes are new, or the GPU is not the current one.
PyObject* run_known(PyObject* self, ForwardCalls& calls, const Operands& o, bool activation, bool pack, bool casts) {
  const Key key = calls.key_of(o, activation, pack, casts);
  if (const auto found = calls.by_pytorch.find(key); found != calls.by_pytorch.end()) {
    const Ref function(Py_NewRef(found->second.get()));
    PyObject* const b = o.b == nullptr ? Py_None : o.b;
    return checked(PyObject_CallFunctionObjArgs(function.get(), o.x, o.w, b, nullptr));
  }
  const std::shared_ptr<ForwardLaunch> launch = find(calls.launches, key);
  if (launch == nullptr || is_elsewhere(o.x_view)) Py_RETURN_NONE;
  return enqueue(self, calls, *launch, o, pack);
}

PyObject* run(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  return guarded([&] {
    check_count("run", count, 6);
    Operands o(args[0], args[1], args[2]);
    if (!o.view()) Py_RETURN_NONE;
    return run_known(self, Type::of(self), o, args[3] == Py_True, args[4] == Py_True, args[5] == Py_True);
  });
}

/// tensor.to(type), and its view.
Ref cast(PyObject* tensor, const Ref& type, TensorView& view) {
  Ref made(checked(PyObject_CallMethodObjArgs(tensor, names().to, type.get(), nullptr)));
  if (!view_of(made.get(), view)) throw InternalError("a cast tensor cannot be viewed");
  return made;
}

PyObject* call(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  return guarded([&] {
    check_count("call", count, 4);
    if (torch().declines_calls) Py_RETURN_NONE;
    Operands o(args[0], args[1], args[2]);
    for (PyObject* tensor : {o.x, o.w, o.b})
      if (tensor != nullptr && !is_plain(tensor)) Py_RETURN_NONE;
    if (something_notices() || !o.view()) Py_RETURN_NONE;
    const std::int64_t rank = to_integer(args[3]) + 2;
    if (o.x_view.rank != rank || o.w_view.rank != rank || (o.x_view.device < 0 && !torch().serves_cpu)) Py_RETURN_NONE;
    const bool grad_enabled = asks(torch().grad_enabled);
    bool recorded = false;
    if (grad_enabled)
      for (PyObject* tensor : {o.x, o.w, o.b})
        recorded = recorded || (tensor != nullptr && attribute(tensor, names().requires_grad).get() == Py_True);
    Ref cast_x;
    const Ref type = autocast_type(o.x_view);
    if (type) {
      const Ref own = attribute(o.x, names().dtype);
      if (!is_supported(own.get()) || !is_supported(type.get())) Py_RETURN_NONE;
      if (own.get() != type.get()) {
        cast_x = cast(o.x, type, o.x_view);
        o.x = cast_x.get();
      }
    }
    const bool same = o.x_view.same_type(o.w_view) && (o.b == nullptr || o.x_view.same_type(o.b_view));
    if (!same && !type) Py_RETURN_NONE;
    ForwardCalls& calls = Type::of(self);
    if (recorded) {
      const Ref owner(checked(PyObject_CallNoArgs(calls.owner.get())));
      if (owner.get() == Py_None) Py_RETURN_NONE;
      PyObject* const b = o.b == nullptr ? Py_None : o.b;
      return checked(PyObject_CallFunctionObjArgs(torch().function.apply, o.x, o.w, b, owner.get(), nullptr));
    }
    return run_known(self, calls, o, /*activation=*/true, /*pack=*/!grad_enabled, /*casts=*/!same);
  });
}

PyObject* add(PyObject* self, PyObject* args) {
  return guarded([&] {
    PyObject *x = nullptr, *w = nullptr, *b = nullptr, *kernel = nullptr, *shape = nullptr, *strides = nullptr;
    PyObject *dense_x = nullptr, *dense_w = nullptr, *dense_b = nullptr;
    int activation = 0, casts = 0;
    if (PyArg_ParseTuple(args, "OOOppOOOOOO:add", &x, &w, &b, &activation, &casts, &kernel, &shape, &strides, &dense_x,
                         &dense_w, &dense_b) == 0)
      throw PythonError();
    ForwardCalls& calls = Type::of(self);
    Operands o(x, w, b);
    if (!o.view()) throw InternalError("operands cannot be viewed");
    const auto made = std::make_shared<ForwardLaunch>(to_kernel(kernel));
    ForwardLaunch& launch = *made;
    launch.shape = Ref(Py_NewRef(shape));
    launch.strides = Ref(Py_NewRef(strides));
    launch.dense_x = unless_none(dense_x), launch.dense_w = unless_none(dense_w), launch.dense_b = unless_none(dense_b);
    launch.workspace = launch.kernel.workspace_bytes();
    launch.packed_workspace = launch.kernel.workspace_bytes_with_packed_weights();
    launch.packed_bytes = launch.kernel.packed_weight_bytes();
    calls.launches.try_emplace(calls.key_of(o, activation != 0, /*pack=*/false, casts != 0), made);
    Py_RETURN_NONE;
  });
}

PyObject* share(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  return guarded([&] {
    check_count("share", count, 7);
    Operands o(args[1], args[2], args[3]);
    ForwardCalls &calls = Type::of(self), &other = Type::checked_of(args[0]);
    const bool activation = args[4] == Py_True, pack = args[5] == Py_True, casts = args[6] == Py_True;
    if (!o.view()) Py_RETURN_NONE;
    if (auto launch = find(other.launches, other.key_of(o, activation, pack, casts)))
      calls.launches.insert_or_assign(calls.key_of(o, activation, pack, casts), std::move(launch));
    Py_RETURN_NONE;
  });
}

PyObject* leave(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  return guarded([&] {
    check_count("leave", count, 7);
    Operands o(args[1], args[2], args[3]);
    ForwardCalls& calls = Type::of(self);
    const bool activation = args[4] == Py_True, pack = args[5] == Py_True, casts = args[6] == Py_True;
    if (o.view()) calls.by_pytorch.try_emplace(calls.key_of(o, activation, pack, casts), Py_NewRef(args[0]));
    Py_RETURN_NONE;
  });
}

/// The weights that a weak reference was made of are gone.
PyObject* forget(PyObject* self, PyObject* reference) {
  return guarded([&] {
    std::vector<Kept> dropped;  // whose destructors may run Python
    for (auto& [key, launch] : Type::of(self).launches)
      for (auto kept = launch->kept.begin(); kept != launch->kept.end();) {
        if (kept->second.owner.get() != reference) {
          ++kept;
          continue;
        }
        dropped.push_back(std::move(kept->second));
        kept = launch->kept.erase(kept);
      }
    Py_RETURN_NONE;
  });
}

PyObject* forget_weights(PyObject* self, PyObject*) {
  return guarded([&] {
    Type::of(self).forget_weights();
    Py_RETURN_NONE;
  });
}

PyObject* clear(PyObject* self, PyObject*) {
  return guarded([&] {
    ForwardCalls& calls = Type::of(self);
    const auto launches = std::exchange(calls.launches, {});
    const auto functions = std::exchange(calls.by_pytorch, {});
    Py_RETURN_NONE;
  });
}

}  // namespace

PyObject* py_forward_calls(PyObject*, PyObject* args) {
  return guarded([&] {
    PyObject* owner = nullptr;
    int transposed = 0, follows_math = 0, is_choice = 0, has_activation = 0, saves_result = 0;
    if (PyArg_ParseTuple(args, "Oppppp:forward_calls", &owner, &transposed, &follows_math, &is_choice, &has_activation,
                         &saves_result) == 0)
      throw PythonError();
    const Trained activation = has_activation == 0 ? Trained::none
                               : saves_result != 0 ? Trained::in_kernel
                                                   : Trained::behind_it;
    return Type::create(Ref(checked(PyWeakref_NewRef(owner, nullptr))), transposed != 0, follows_math != 0,
                        is_choice != 0, activation);
  });
}

PyObject* py_function_forward(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guarded([&] {
    check_count("function_forward", count, 5);
    PyObject *const ctx = args[0], *const convolution = args[4];
    const Ref object = attribute(convolution, names().calls);
    ForwardCalls& calls = Type::checked_of(object.get());
    PyObject *const x = args[1], *const w = args[2], *const b = args[3];
    Operands o(x, w, b);
    Ref y(Py_NewRef(Py_None)), cast_w, cast_b;
    const bool has_views = o.view();
    if (has_views && o.x_view.device >= 0 && is_capturing()) calls.trains_in_graph = true;
    if (calls.trained != Trained::behind_it && has_views) {
      const Ref type = attribute(x, names().dtype);  // autocast's: it has cast x
      bool casts = true;
      const auto cast_to_type = [&](PyObject*& operand, TensorView& view, Ref& made) {
        if (operand == nullptr || view.same_type(o.x_view)) return;
        casts = casts && is_supported(attribute(operand, names().dtype).get());
        if (casts) operand = (made = cast(operand, type, view)).get();
      };
      cast_to_type(o.w, o.w_view, cast_w);
      cast_to_type(o.b, o.b_view, cast_b);
      const bool applied = calls.trained == Trained::in_kernel;
      if (casts) y = Ref(run_known(object.get(), calls, o, applied, /*pack=*/false, /*casts=*/false));
    }
    if (y.get() == Py_None)
      return checked(PyObject_CallFunctionObjArgs(torch().function.forward, ctx, x, w, b, convolution, nullptr));
    PyObject* const result = calls.trained == Trained::none ? Py_None : y.get();
    const Ref saved(checked(cast_w              ? PyTuple_Pack(4, x, w, result, cast_w.get())
                            : result == Py_None ? PyTuple_Pack(2, x, w)
                                                : PyTuple_Pack(3, x, w, result)));
    if (PyObject_SetAttr(ctx, names().convolution, convolution) < 0 ||
        PyObject_SetAttr(ctx, names().to_save, saved.get()) < 0)
      throw PythonError();
    return y.release();
  });
}

void add_forward_calls_type(PyObject* module) {
  static std::array<PyMethodDef, 9> methods = {{
      {"call", method(call), METH_FASTCALL,
       "call(x, w, b, dimensions)\n\nThe convolution with its activation, also where autograd records it, or None: the "
       "extents are not known, or an operator has to be called."},
      {"run", method(run), METH_FASTCALL,
       "run(x, w, b, activation, pack, casts)\n\nThe convolution of tensors that autograd has no part in, or None."},
      {"add", method(add), METH_VARARGS,
       "add(x, w, b, activation, casts, kernel, shape, strides, dense_x, dense_w, dense_b)\n\nMake these extents "
       "known."},
      {"share", method(share), METH_FASTCALL,
       "share(other, x, w, b, activation, pack, casts)\n\nMake known what another one knows, if it does."},
      {"leave", method(leave), METH_FASTCALL,
       "leave(function, x, w, b, activation, pack, casts)\n\nLeave these extents to a function of x, w and b."},
      {"forget", forget, METH_O, "forget(reference)\n\nDrop what was kept of weights that are gone."},
      {"forget_weights", forget_weights, METH_NOARGS, "forget_weights()\n\nDrop what was kept of all weights."},
      {"clear", clear, METH_NOARGS, "clear()\n\nForget all extents."},
      {nullptr, nullptr, 0, nullptr},
  }};
  Type::add(module, "jitconv._native.ForwardCalls", "ForwardCalls",
            "The launches of a convolution by its tensors' extents.", methods.data());
}

}  // namespace jitconv::python
