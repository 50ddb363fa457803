"""Finds what may be fused into a convolution layer of a model: a BatchNorm in evaluation, then an activation.

Edges come from `torch.fx` where a module can be traced, so that they are those of the data and not of the registration
order; a `Sequential` inside a module that cannot be traced is read as the chain that it is. `_convert.py` acts on them.
"""

from __future__ import annotations

import inspect
import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import fx, nn
from torch.nn import functional

#: The layers that jitconv has, by torch's class.
CONVOLUTIONS: tuple[type[nn.Module], ...] = (nn.Conv1d, nn.Conv2d, nn.ConvTranspose1d, nn.ConvTranspose2d)
BATCHNORMS: tuple[type[nn.Module], ...] = (nn.BatchNorm1d, nn.BatchNorm2d)


class Activation(NamedTuple):
    """An activation, as the arguments of jitconv's layers."""

    activation: str
    slope: float = 0.01
    clamp_min: float = 0.0
    clamp_max: float = 6.0


@dataclass
class Chain:
    """A convolution of a traced module and what follows it alone. Nodes are null where a `Sequential` was read."""

    convolution: nn.Module
    batchnorm: nn.Module | None = None
    activation: Activation | None = None
    activation_module: nn.Module | None = None
    nodes: tuple[fx.Node, ...] = ()


def activation_of(module: nn.Module) -> Activation | None:
    """Return what a module of `torch.nn` computes, in jitconv's words; None if jitconv has no such activation."""
    kind = type(module)
    if kind in (nn.Hardtanh, nn.ReLU6):
        assert isinstance(module, nn.Hardtanh)
        return Activation("clamp", clamp_min=float(module.min_val), clamp_max=float(module.max_val))
    if kind is nn.LeakyReLU:
        assert isinstance(module, nn.LeakyReLU)
        # The derivative is computed from the result, which says the input's sign only if the slope is above 0.
        return Activation("leaky_relu", slope=module.negative_slope) if module.negative_slope > 0 else None
    if kind is nn.GELU:
        return Activation("gelu_tanh" if module.approximate == "tanh" else "gelu_erf")
    simple: dict[type[nn.Module], str] = {
        nn.ReLU: "relu",
        nn.SiLU: "silu",
        nn.Sigmoid: "sigmoid",
        nn.Tanh: "tanh",
        nn.Hardswish: "hardswish",
    }
    return Activation(simple[kind]) if kind in simple else None


_FUNCTIONS: dict[object, str] = {
    functional.relu: "relu",
    torch.relu: "relu",
    torch.relu_: "relu",
    functional.silu: "silu",
    functional.hardswish: "hardswish",
    torch.sigmoid: "sigmoid",
    functional.sigmoid: "sigmoid",
    torch.tanh: "tanh",
    functional.tanh: "tanh",
    "relu": "relu",
    "relu_": "relu",
    "sigmoid": "sigmoid",
    "tanh": "tanh",
}


def _activation_of_node(node: fx.Node, modules: dict[str, nn.Module]) -> tuple[Activation | None, nn.Module | None]:
    if node.op == "call_module":
        module = modules[str(node.target)]
        return (None, None) if _hooked(module) else (activation_of(module), module)
    if node.op not in ("call_function", "call_method") or len(node.args) != 1:
        return None, None
    if node.target is functional.relu6:
        return Activation("clamp"), None
    if node.target is functional.gelu:
        return Activation("gelu_tanh" if node.kwargs.get("approximate") == "tanh" else "gelu_erf"), None
    if set(node.kwargs) - {"inplace"}:
        return None, None
    name = _FUNCTIONS.get(node.target)
    return (Activation(name) if name else None), None


def _takes_fusion(layer: nn.Module) -> bool:
    """Whether a layer is a convolution whose result nobody else sees, and to which nothing has been fused yet."""
    return isinstance(layer, CONVOLUTIONS) and not _hooked(layer) and getattr(layer, "activation", None) is None


def _hooked(module: nn.Module) -> bool:
    """Whether somebody observes the module, who would miss it."""
    hooks = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    return any(getattr(module, name, None) for name in hooks)


class _Tracer(fx.Tracer):
    """Convolutions are leaves, also jitconv's, which are no part of `torch.nn`."""

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return isinstance(m, CONVOLUTIONS) or super().is_leaf_module(m, module_qualified_name)


def trace(model: nn.Module, arguments: dict[str, Any] | None = None) -> fx.Graph:
    """Return the model's graph. Raises whatever the model raises when it is called with proxies."""
    return _Tracer().trace(model, arguments)


def _other_graphs(model: nn.Module) -> Iterator[fx.Graph]:
    """Yield what a trace does not see: the model without its optional arguments, and in its other mode.

    What cannot be traced is left out.
    """
    parameters = inspect.signature(model.forward).parameters.values()
    absent = {parameter.name: None for parameter in parameters if parameter.default is None}
    modes = {module: module.training for module in model.modules()}
    for other_mode in (False, True):
        for arguments in (None, absent) if absent else (None,):
            if not other_mode and arguments is None:
                continue
            for module, training in modes.items():
                module.training = training is not other_mode
            try:
                yield trace(model, arguments)
            except Exception:  # as in chains()
                continue
            finally:
                for module, training in modes.items():
                    module.training = training


def _holds_in(graph: fx.Graph, model: nn.Module, chain: Chain) -> bool:
    """Whether the modules of a chain follow each other in another graph of the model as well, or are none of its."""
    modules = dict(model.named_modules(remove_duplicate=False))
    parts = [part for part in (chain.convolution, chain.batchnorm, chain.activation_module) if part is not None]
    calls: dict[nn.Module, list[fx.Node]] = {part: [] for part in parts}
    for node in graph.nodes:
        if node.op == "call_module":
            calls.get(modules[str(node.target)], []).append(node)
    if not any(calls.values()):
        return True
    if any(len(nodes) != 1 for nodes in calls.values()):
        return False
    return all(_only_user(calls[first][0]) is calls[second][0] for first, second in itertools.pairwise(parts))


def _fusible_batchnorm(convolution: nn.Module, batchnorm: nn.Module) -> bool:
    if type(batchnorm) not in BATCHNORMS or _hooked(batchnorm) or convolution.training or batchnorm.training:
        return False
    assert isinstance(batchnorm, nn.BatchNorm1d | nn.BatchNorm2d)
    grouped_transposed = getattr(convolution, "transposed", False) and getattr(convolution, "groups", 1) != 1
    return batchnorm.running_mean is not None and batchnorm.running_var is not None and not grouped_transposed


def chains_of_graph(
    model: nn.Module, graph: fx.Graph, *, batchnorm: bool, activation: bool, shared: bool
) -> Iterator[Chain]:
    """Yield each convolution of the graph that has something to fuse.

    `shared` also takes activations that are functions, or modules that several layers call: only a rewritten graph can
    leave those out.
    """
    modules = dict(model.named_modules(remove_duplicate=False))
    calls = Counter(id(modules[str(node.target)]) for node in graph.nodes if node.op == "call_module")
    for node in graph.nodes:
        if node.op != "call_module":
            continue
        layer = modules[str(node.target)]
        if not _takes_fusion(layer) or calls[id(layer)] != 1:
            continue
        chain, last = Chain(layer, nodes=(node,)), node
        follower = _only_user(last)
        if batchnorm and follower is not None and follower.op == "call_module":
            module = modules[str(follower.target)]
            if calls[id(module)] == 1 and _fusible_batchnorm(layer, module):
                chain.batchnorm, last = module, follower
                chain.nodes += (follower,)
                follower = _only_user(last)
        if activation and follower is not None:
            found, module_or_none = _activation_of_node(follower, modules)
            single = module_or_none is not None and calls[id(module_or_none)] == 1
            if found is not None and (single or shared):
                chain.activation, chain.activation_module = found, module_or_none if single else None
                chain.nodes += (follower,)
        if chain.batchnorm is not None or chain.activation is not None:
            yield chain


def _only_user(node: fx.Node) -> fx.Node | None:
    users = list(node.users)
    return users[0] if len(users) == 1 and users[0].args[:1] == (node,) else None


def _chains_of_sequential(sequential: nn.Sequential, batchnorm: bool, activation: bool) -> Iterator[Chain]:
    children = list(sequential)
    for i, layer in enumerate(children):
        if not _takes_fusion(layer) or children.count(layer) != 1:
            continue
        chain, rest = Chain(layer), children[i + 1 : i + 3]
        if batchnorm and rest and _fusible_batchnorm(layer, rest[0]) and children.count(rest[0]) == 1:
            chain.batchnorm = rest.pop(0)
        if activation and rest and children.count(rest[0]) == 1 and not _hooked(rest[0]):
            chain.activation = activation_of(rest[0])
            chain.activation_module = rest[0] if chain.activation else None
        if chain.batchnorm is not None or chain.activation is not None:
            yield chain


def chains(model: nn.Module, *, batchnorm: bool, activation: bool) -> Iterator[Chain]:
    """Yield what can be fused by replacing modules: of the model if it can be traced, else of its children."""
    try:
        graph = trace(model)
    except Exception:  # a proxy fails in a forward() in any way that its author did not think of
        if type(model).forward is nn.Sequential.forward:
            assert isinstance(model, nn.Sequential)
            yield from _chains_of_sequential(model, batchnorm, activation)
        for child in model.children():
            if any(isinstance(layer, CONVOLUTIONS) for layer in child.modules()):
                yield from chains(child, batchnorm=batchnorm, activation=activation)
        return
    found = list(chains_of_graph(model, graph, batchnorm=batchnorm, activation=activation, shared=False))
    others = list(_other_graphs(model)) if found else []
    yield from (chain for chain in found if all(_holds_in(other, model, chain) for other in others))
