"""The layers against PyTorch's, over the combinations of arguments that PyTorch's own module tests use."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from reference import exact, excess
from torch import nn
from torch.testing._internal.common_modules import module_db
from torch.testing._internal.common_nn import get_new_module_tests

import jitconv.torch as jt
from jitconv.spec import MATH_MODES

pytestmark = pytest.mark.usefixtures("host")

CLASSES = ("Conv1d", "Conv2d", "ConvTranspose1d", "ConvTranspose2d")
LAZY = tuple(f"Lazy{name}" for name in CLASSES)


@contextmanager
def replaced() -> Iterator[None]:
    """Let ``nn.Conv2d`` and the others mean jitconv's."""
    saved = {name: getattr(nn, name) for name in CLASSES + LAZY}
    try:
        for name in saved:
            setattr(nn, name, getattr(jt, name))
        yield
    finally:
        for name, value in saved.items():
            setattr(nn, name, value)


def entries() -> list[Any]:
    """Return the tests of torch.testing._internal.common_nn: a name, a constructor and the input's shape."""
    found = []
    for entry in get_new_module_tests():
        name = entry.get("fullname") or entry["module_name"]
        if not name.startswith(CLASSES):
            continue
        if "constructor" in entry:
            make: Callable[[], nn.Module] = entry["constructor"]
        else:

            def make(n: str = name, a: tuple[Any, ...] = entry["constructor_args"]) -> nn.Module:
                return getattr(nn, n)(*a)  # type: ignore[no-any-return]

        found.append(pytest.param(make, entry["input_size"], id=f"{name}-{entry.get('desc') or 'default'}"))
    return found


ENTRIES = entries()


def test_all_entries_are_found() -> None:
    assert len(ENTRIES) >= 45


def check(ours: nn.Module, theirs: nn.Module, x: torch.Tensor) -> None:
    """Compare the layers' results and gradients; ours with the exact ones, within their bounds."""
    ours.load_state_dict(theirs.state_dict())
    x = x.detach().requires_grad_()
    y = ours(x)
    expected = theirs(x)
    assert y.shape == expected.shape
    dy = torch.randn_like(y)
    y.backward(dy)
    double = copy.deepcopy(theirs).double()

    def function(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None) -> torch.Tensor:
        parameters = {"weight": w} if b is None else {"weight": w, "bias": b}
        return torch.func.functional_call(double, parameters, (x,))  # type: ignore[no-any-return]

    truth = exact(function, x, ours.weight, ours.bias, dy)
    gradients = (x.grad, ours.weight.grad, None if ours.bias is None else ours.bias.grad)
    for which, actual in enumerate((y, *gradients)):
        if actual is not None:
            assert excess(actual, truth, which, "fp32") <= 1


@pytest.mark.parametrize(("make", "shape"), ENTRIES)
def test_common_nn(make: Callable[[], nn.Module], shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    theirs = make()
    with replaced():
        ours = make()
    assert type(ours).__module__ == "jitconv.torch.modules"
    assert repr(ours) == repr(theirs)
    check(ours, theirs, torch.randn(shape))


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", CLASSES + LAZY)
def test_common_modules(name: str, training: bool) -> None:
    (info,) = [info for info in module_db if info.module_cls is getattr(nn, name)]
    inputs = info.module_inputs_func(info, device="cpu", dtype=torch.float32, requires_grad=True, training=training)
    for module_input in inputs:
        args, kwargs = module_input.constructor_input.args, module_input.constructor_input.kwargs
        torch.manual_seed(0)
        theirs = getattr(nn, name)(*args, **kwargs)
        torch.manual_seed(0)
        ours = getattr(jt, name)(*args, **kwargs)
        assert repr(ours) == repr(theirs)
        x = module_input.forward_input.args[0].detach()
        theirs(x), ours(x)  # lazy ones become what they are
        assert type(ours) is getattr(jt, name.removeprefix("Lazy"))
        check(ours.train(training), theirs.train(training), x)


@pytest.mark.parametrize("name", CLASSES)
def test_initialisation_and_state(name: str) -> None:
    arguments = {"stride": 2, "padding": 1, "groups": 2}
    torch.manual_seed(0)
    theirs = getattr(nn, name)(4, 6, 3, **arguments)
    torch.manual_seed(0)
    ours = getattr(jt, name)(4, 6, 3, **arguments, activation="relu", math="tf32")
    assert isinstance(ours, getattr(nn, name))
    assert list(ours.state_dict()) == list(theirs.state_dict())
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert torch.equal(a, b)
    assert repr(ours) == repr(theirs)[:-1] + ", activation='relu', math='tf32')"
    theirs.load_state_dict(ours.state_dict(), strict=True)


def test_copies_and_pickles() -> None:
    torch.manual_seed(0)
    layer, x = jt.Conv2d(3, 4, 3, padding="same", activation="leaky_relu", slope=0.3), torch.randn(1, 3, 4, 4)
    expected = layer(x)
    buffer = io.BytesIO()
    torch.save(layer, buffer)
    buffer.seek(0)
    copies = (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer)), torch.load(buffer, weights_only=False))
    for other in copies:
        assert repr(other) == repr(layer)
        assert torch.equal(other(x), expected)
        with torch.no_grad():
            other.weight.zero_()
    assert torch.equal(layer(x), expected)


@pytest.mark.parametrize("math", MATH_MODES)
def test_copies_and_pickles_keep_the_math_mode(math: str) -> None:
    layer = jt.Conv2d(3, 4, 3, math=math)
    for other in (layer, copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert other.math == math
        assert repr(other) == f"{repr(nn.Conv2d(3, 4, 3))[:-1]}, math='{math}')"


def test_attributes_may_change() -> None:
    torch.manual_seed(0)
    layer, x = jt.Conv2d(3, 4, 3), torch.randn(1, 3, 6, 6)
    assert layer(x).shape[2:] == (4, 4)
    layer.padding, layer.stride = (1, 1), (2, 2)
    torch.testing.assert_close(layer(x), nn.functional.conv2d(x, layer.weight, layer.bias, 2, 1), rtol=1e-4, atol=1e-5)
    layer.activation = "relu"
    assert layer(x).min() >= 0


def test_a_state_of_pytorchs_layer() -> None:
    theirs = nn.Conv2d(3, 4, 3)
    ours = jt.Conv2d.__new__(jt.Conv2d)
    ours.__setstate__(theirs.__dict__.copy())
    assert ours.activation is None
    assert ours.policy == "always"


def test_output_size() -> None:
    torch.manual_seed(0)
    ours, theirs = jt.ConvTranspose2d(3, 4, 3, 2, 1), nn.ConvTranspose2d(3, 4, 3, 2, 1)
    theirs.load_state_dict(ours.state_dict())
    x = torch.randn(1, 3, 4, 5)
    for size in ([7, 9], [8, 10]):
        torch.testing.assert_close(ours(x, output_size=size), theirs(x, output_size=size), rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="output size"):
        ours(x, output_size=[20, 20])


def test_hooks_run() -> None:
    seen: list[str] = []
    layer = jt.Conv2d(3, 4, 3)
    layer.register_forward_hook(lambda *_: seen.append("forward"))
    layer.register_full_backward_hook(lambda *_: seen.append("backward"))
    layer(torch.randn(1, 3, 4, 4, requires_grad=True)).sum().backward()
    assert seen == ["forward", "backward"]


def test_own_arguments_are_checked() -> None:
    for arguments, words in (
        ({"activation": "mish"}, "relu"),
        ({"activation": ["relu"]}, "must be None or one of"),
        ({"math": "fp8"}, "ieee, fp32, tf32, fp16x3"),
        ({"policy": "x"}, "auto"),
    ):
        with pytest.raises(ValueError, match=words):
            jt.Conv2d(3, 4, 3, **arguments)
    with pytest.raises(TypeError, match="slope is None, must be a number"):
        jt.Conv2d(3, 4, 3, activation="leaky_relu", slope=None)(torch.ones(1, 3, 5, 5))


def test_torchscript_is_told_what_to_do() -> None:
    with pytest.raises(NotImplementedError, match=r"jitconv\.torch\.revert"):
        torch.jit.script(nn.Sequential(jt.Conv2d(3, 4, 3)))


@pytest.mark.parametrize("none", ["none", ""])
def test_the_librarys_name_of_no_activation_is_none(none: str) -> None:
    layer = jt.Conv2d(3, 4, 3, activation=none)
    assert layer.activation is None
    assert repr(layer) == repr(nn.Conv2d(3, 4, 3))
    layer.activation = none
    assert type(jt.revert(layer)) is nn.Conv2d
