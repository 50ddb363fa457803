"""convert() makes jitconv's layers of a model's convolutions, revert() makes torch's of them again.

A layer changes its class and keeps everything else: itself, its parameters, hooks, training flag, device and name. What
it becomes is a subclass of what it was, so the model's code, state_dict and optimizer do not notice.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple, TypeVar

import torch
from torch import fx, nn
from torch.nn.utils.fusion import fuse_conv_bn_weights
from torch.nn.utils.parametrize import is_parametrized

from jitconv.torch import modules
from jitconv.torch._convolution import Settings, convolution
from jitconv.torch._fusion import BATCHNORMS, CONVOLUTIONS, Chain, chains, chains_of_graph, trace
from jitconv.torch._table import Table

Model = TypeVar("Model", bound=nn.Module)

_JITCONV: dict[type[nn.Module], type[nn.Module]] = {
    nn.Conv1d: modules.Conv1d,
    nn.Conv2d: modules.Conv2d,
    nn.ConvTranspose1d: modules.ConvTranspose1d,
    nn.ConvTranspose2d: modules.ConvTranspose2d,
}
_TORCH = {mine: theirs for theirs, mine in _JITCONV.items()}
_TYPES = (torch.float32, torch.float16, torch.bfloat16)
_UNFUSED = "_jitconv_unfused"


class _Unfused(NamedTuple):
    """What a fused layer was before, kept in its attribute _UNFUSED. Parameters are null if the fusion left them."""

    weight: nn.Parameter | None
    bias: nn.Parameter | None
    in_graph: bool
    batchnorms: tuple[nn.Module, ...] = ()


class Fused(nn.Identity):
    """Stands where a module was that a convolution now computes. `original` is that module; it is no submodule."""

    original: nn.Module

    def __init__(self, original: nn.Module) -> None:
        super().__init__()
        self.training = original.training
        self.__dict__["original"] = original

    def extra_repr(self) -> str:
        """Show the module that is computed elsewhere."""
        return repr(self.original)


def convert(
    model: Model,
    *,
    inplace: bool = True,
    fuse_batchnorm: bool = False,
    fuse_activation: bool = False,
    graph: bool = False,
    math: str | None = None,
    policy: str | None = None,
    verbose: bool = False,
) -> Model | nn.Module:
    """Replace the convolution layers of a model by jitconv's.

    Layers of exactly the classes `torch.nn.Conv1d`, `Conv2d`, `ConvTranspose1d` and `ConvTranspose2d` are converted,
    also with parametrizations such as `weight_norm`. Subclasses, which may compute something else, and layers of a type
    that jitconv does not have, such as float64, stay; `conversion(model)` names them and says why.

    Parameters
    ----------
    model : torch.nn.Module
        May itself be a convolution layer.
    inplace : bool
        Whether to change `model`, as `Module.to()` does, or a deep copy of it.
    fuse_batchnorm : bool
        Fold a BatchNorm that alone follows a convolution into its weights. Only of layers in `eval()` whose weight is a
        parameter, neither parametrized nor pruned. The layer gets new parameters; an optimizer that has the old ones
        does not train it any more.
    fuse_activation : bool
        Let a convolution compute the activation that alone follows it, also in training.
    graph : bool
        Return a `torch.fx.GraphModule` in which also those activations are fused that are functions (`F.relu`) or
        modules that several layers share. The model must be traceable; needs ``inplace=False``.
    math : str, optional
        The math mode of every layer of jitconv's in the result. Without it a layer that is jitconv's already keeps its
        own, and the others follow PyTorch's settings.
    policy : str, optional
        ``"always"`` or ``"auto"``, of the same layers. Without it a layer keeps its own, and the others get
        ``"always"``.
    verbose : bool
        Print the table of `conversion()`.

    Returns
    -------
    torch.nn.Module
        The converted model: `model` itself if `inplace`.

    Raises
    ------
    ValueError
        If `graph` is asked for in place, or of a model that `torch.fx` cannot trace; or if `math` or `policy` is no
        name of one.

    Notes
    -----
    A `torch.compile`d model is converted before it is compiled, not after.
    """
    convolution(Settings(math=math, policy="always" if policy is None else policy))  # checks both
    if graph and inplace:
        raise ValueError("graph=True returns a new torch.fx.GraphModule: pass inplace=False with it")
    result: nn.Module = model if inplace else copy.deepcopy(model)
    if graph:
        result = _rewritten(result, fuse_batchnorm, fuse_activation)
    elif fuse_batchnorm or fuse_activation:
        _fuse_modules(result, fuse_batchnorm, fuse_activation)
    asked = {name: value for name, value in (("math", math), ("policy", policy)) if value is not None}
    for layer in result.modules():
        if _class_of(layer) in _JITCONV and _reason_to_keep(layer) is None:
            _adopt(layer)
        if isinstance(layer, modules._Layer):
            _set(layer, **asked)
    if verbose:
        print(conversion(result))
    return result


def revert(model: Model, *, inplace: bool = True) -> Model:
    """Make torch's layers of jitconv's again, and undo the fusions of `convert()`.

    Parameters
    ----------
    model : torch.nn.Module
        A model with jitconv's layers, whether `convert()` made them or not.
    inplace : bool
        Whether to change `model` or a deep copy of it.

    Returns
    -------
    torch.nn.Module
        The model with torch's layers. A fused layer gets the parameters that it had before, and the BatchNorm behind it
        is in its place again, on the layer's device. Modules that were fused have the mode, `train()` or `eval()`, that
        was set since.

    Raises
    ------
    ValueError
        If a layer has an activation of its own, which torch's class cannot compute.
    """
    result = model if inplace else copy.deepcopy(model)
    layers = [(name, layer) for name, layer in result.named_modules() if _class_of(layer) in _TORCH]
    for name, layer in layers:
        unfused = layer.__dict__.get(_UNFUSED)
        if unfused is not None and unfused.in_graph:
            raise ValueError(f"{name} was fused by graph=True, which cannot be undone: use the original model")
        if unfused is None and getattr(layer, "activation", None) is not None:
            raise ValueError(
                f"{name or 'the layer'} has activation={layer.activation!r}, which torch.nn has no layer for"
            )
    for _, layer in layers:
        if _UNFUSED in layer.__dict__:
            _restore(layer)
        _release(layer)
    for parent in list(result.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, Fused):
                setattr(parent, name, child.original.train(child.training))
    return result


def conversion(model: nn.Module) -> Table:
    """Say of every convolution, BatchNorm and fused module of a model which library computes it, and why.

    Parameters
    ----------
    model : torch.nn.Module
        Any model. The table is read off its present state.

    Returns
    -------
    Table
        Columns `layer`, `kind`, `computed by` and `remark`. `print()` aligns it; `as_dicts()` gives rows.
    """
    rows = tuple(_rows(model))
    count = Counter(row[2] for row in rows)
    notes = (f"{count['jitconv']} convolution layers by jitconv, {count['PyTorch']} by PyTorch",)
    return Table(("layer", "kind", "computed by", "remark"), rows, notes=notes)


def _rows(model: nn.Module) -> Iterator[tuple[str, str, str, str]]:
    for name, layer in model.named_modules():
        kind = type(layer).__name__
        if isinstance(layer, modules._Layer):
            yield name or "(model)", kind, "jitconv", _remark(layer)
        elif isinstance(layer, (*CONVOLUTIONS, nn.Conv3d, nn.ConvTranspose3d)):
            assert isinstance(layer, nn.Module)
            yield name or "(model)", kind, "PyTorch", _reason_to_keep(layer) or "not converted"
        elif isinstance(layer, Fused):
            yield name, type(layer.original).__name__, "the layer before", "fused"


def _remark(layer: nn.Module) -> str:
    activation = getattr(layer, "activation", None)
    unfused = layer.__dict__.get(_UNFUSED)
    parts = ["BatchNorm folded into the weights"] if unfused is not None and unfused.weight is not None else []
    if activation is not None:
        parts.append(f"activation {activation}")
    return ", ".join(parts)


def _class_of(layer: nn.Module) -> type[nn.Module]:
    """Return the class of a layer, or, if parametrizations have put a class of their own over it, the one below."""
    cls = type(layer)
    return cls.__base__ if is_parametrized(layer) else cls  # type: ignore[return-value]


def _set_class(layer: nn.Module, cls: type[nn.Module]) -> None:
    """Give a layer another class, below that of its parametrizations if it has any."""
    if is_parametrized(layer):
        own = {name: value for name, value in vars(type(layer)).items() if name not in ("__dict__", "__weakref__")}
        cls = type(f"Parametrized{cls.__name__}", (cls,), own)
    layer.__class__ = cls


def _reason_to_keep(layer: nn.Module) -> str | None:
    """Why a layer stays torch's; None if it need not."""
    if _class_of(layer) not in _JITCONV:
        is_lazy = isinstance(layer, nn.modules.lazy.LazyModuleMixin)
        if is_lazy:
            return "lazy: convert it after its first call"
        return "3-D" if isinstance(layer, nn.Conv3d | nn.ConvTranspose3d) else "a subclass, which may compute more"
    weight = layer.weight
    assert isinstance(weight, torch.Tensor)
    return None if weight.dtype in _TYPES else f"{str(weight.dtype).removeprefix('torch.')} tensors"


def _adopt(layer: nn.Module) -> None:
    """Make a layer of torch's class one of jitconv's, with the constructor's defaults."""
    _set_class(layer, _JITCONV[_class_of(layer)])
    _set(layer, **modules._OWN)


def _release(layer: nn.Module) -> None:
    for name in (*modules._OWN, "_static"):
        layer.__dict__.pop(name, None)
    _set_class(layer, _TORCH[_class_of(layer)])


def _set(layer: nn.Module, **values: object) -> None:
    for name, value in values.items():
        setattr(layer, name, value)


def _fuse_modules(model: nn.Module, batchnorm: bool, activation: bool) -> None:
    """Fuse what can be left out by putting an identity in its place."""
    places: dict[nn.Module, list[tuple[nn.Module, str]]] = {}
    for parent in model.modules():
        for name, child in parent._modules.items():
            if child is not None:
                places.setdefault(child, []).append((parent, name))
    for chain in list(chains(model, batchnorm=batchnorm, activation=activation)):
        if not _can_fuse(chain):
            continue
        left_out = [module for module in (chain.batchnorm, chain.activation_module) if module is not None]
        if any(len(places.get(module, ())) != 1 for module in (chain.convolution, *left_out)):
            continue  # registered twice, or the model itself
        _fuse(chain)
        for module in left_out:
            ((parent, name),) = places[module]
            setattr(parent, name, Fused(module))


def _can_fuse(chain: Chain) -> bool:
    layer = chain.convolution
    if _reason_to_keep(layer) is not None and _class_of(layer) not in _TORCH:
        return False
    # What a parametrization or a hook computes anew cannot be scaled.
    return chain.batchnorm is None or "weight" in layer._parameters


def _rewritten(model: nn.Module, batchnorm: bool, activation: bool) -> fx.GraphModule:
    try:
        graph = trace(model)
    except Exception as error:
        raise ValueError(f"graph=True: torch.fx cannot trace {type(model).__name__}: {error}") from error
    for chain in list(chains_of_graph(model, graph, batchnorm=batchnorm, activation=activation, shared=True)):
        if not _can_fuse(chain):
            continue
        _fuse(chain, in_graph=True)
        convolution, *others = chain.nodes
        others[-1].replace_all_uses_with(convolution)
        for node in reversed(others):
            graph.erase_node(node)
    result = fx.GraphModule(model, graph, type(model).__name__)
    result.train(model.training)
    return result


def _fuse(chain: Chain, *, in_graph: bool = False) -> None:
    """Give a convolution what follows it. The layer becomes jitconv's: torch's has no activation."""
    layer = chain.convolution
    before: _Unfused = layer.__dict__.get(_UNFUSED, _Unfused(None, None, False))
    if chain.batchnorm is not None:
        if before.weight is None:
            before = before._replace(weight=layer.weight, bias=layer.bias)  # type: ignore[arg-type]
        if not in_graph:
            before = before._replace(batchnorms=(*before.batchnorms, chain.batchnorm))
        _fold(layer, chain.batchnorm)
    if _class_of(layer) not in _TORCH:
        _adopt(layer)
    if chain.activation is not None:
        _set(layer, **chain.activation._asdict())
    layer.__dict__[_UNFUSED] = before._replace(in_graph=before.in_graph or in_graph)


def _fold(layer: nn.Module, batchnorm: nn.Module) -> None:
    """Scale the filters, and add the rest to the bias."""
    assert isinstance(batchnorm, BATCHNORMS)
    layer.weight, layer.bias = fuse_conv_bn_weights(
        layer.weight,  # type: ignore[arg-type]
        layer.bias,  # type: ignore[arg-type]
        batchnorm.running_mean,  # type: ignore[arg-type]
        batchnorm.running_var,  # type: ignore[arg-type]
        batchnorm.eps,  # type: ignore[arg-type]
        batchnorm.weight,  # type: ignore[arg-type]
        batchnorm.bias,  # type: ignore[arg-type]
        transpose=bool(getattr(layer, "transposed", False)),
    )


def _restore(layer: nn.Module) -> None:
    """Undo the fusions of one layer. What a fusion took away follows to where the layer is now, and to its type."""
    unfused: _Unfused = layer.__dict__.pop(_UNFUSED)
    if unfused.weight is not None:
        now = layer.weight
        assert isinstance(now, torch.Tensor)
        is_other_type = now.dtype != unfused.weight.dtype
        for batchnorm in unfused.batchnorms:  # which may have had another type than the layer
            batchnorm.to(now.device, now.dtype if is_other_type else None)
        for parameter in (unfused.weight, unfused.bias):
            if parameter is not None:
                parameter.data = parameter.data.to(now)
        layer.weight = unfused.weight
        layer.bias = unfused.bias  # type: ignore[assignment]
    _set(layer, activation=None)
